/* Operators without tensor arguments: the output's shape is the line's. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    (void)call, (void)why;
    return true; /* read_outs takes it from the line */
}

static int64_t terms(const tc_invocation *call) {
    (void)call;
    return 1;
}

static void list_fill(const tc_record *record, const tn_dtype *types, tc_sink *sink) {
    static const char *const floats[] = {"0",    "1",    "-2.5", "nan", "inf",
                                         "-inf", "-0.0", "0.1",  "1e-7"};
    /* The last two are for what has as many bits, which f32 and f64 have not. */
    static const char *const ints[] = {"0", "1", "7", "-3", "123456789", "1234567890123456789"};
    bool floating = tc_is_float(types[0]);
    uint64_t bytes = tc_dtype_bytes(types[0]);
    int n = floating              ? TC_LENGTH(floats)
            : types[0] == TN_BOOL ? 2
                                  : TC_LENGTH(ints) - (bytes < 8) - (bytes < 4);
    for (int k = 0; k < n; k++)
        for (int layout = 0; layout < TC_N_OUT_LAYOUTS; layout++) {
            tc_line l;
            tc_line_start(&l, "kernel", record, types);
            tc_line_add(&l, "value=%s", floating ? floats[k] : ints[k]);
            tc_line_tensor(&l, "out", 2, TC_SIZES(7, 9), (tc_layout)layout);
            tc_line_emit(&l, sink);
        }
    tc_line large; /* more than 16 bits count */
    tc_line_start(&large, "kernel", record, types);
    tc_line_add(&large, "value=1 out=[70001]");
    tc_line_emit(&large, sink);
}

static void list_arange(const tc_record *record, const tn_dtype *types, tc_sink *sink) {
    static const char *const floats[] = {"start=0 step=1", "start=-3.5 step=0.25",
                                         "start=0.1 step=0.3", "start=5 step=-1"};
    static const char *const ints[] = {"start=0 step=1", "start=-5 step=3", "start=100 step=-7"};
    bool floating = tc_is_float(types[0]);
    for (int k = 0; k < (floating ? TC_LENGTH(floats) : TC_LENGTH(ints)); k++)
        for (int layout = 0; layout < TC_N_OUT_LAYOUTS; layout++) {
            tc_line l;
            tc_line_start(&l, "kernel", record, types);
            tc_line_add(&l, "%s", floating ? floats[k] : ints[k]);
            tc_line_tensor(&l, "out", 1, TC_SIZES(101), (tc_layout)layout);
            tc_line_emit(&l, sink);
        }
}

static void list_random(const tc_record *record, const tn_dtype *types, tc_sink *sink) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 64, 1001, 5000};
    static const char *const choices[] = {"seed=0 offset=0", "seed=42 offset=1",
                                          "seed=987654321012 offset=4294967295",
                                          "seed=7 offset=1099511627776"};
    for (int n = 0; n < TC_LENGTH(lengths); n++)
        for (int k = 0; k < TC_LENGTH(choices); k++) {
            tc_line l;
            tc_line_start(&l, "kernel", record, types);
            tc_line_add(&l, "%s", choices[k]);
            tc_line_tensor(&l, "out", 1, &lengths[n], n % 2 ? TC_LAYOUT_SHIFTED : TC_LAYOUT_DENSE);
            tc_line_emit(&l, sink);
        }
    tc_line l;
    tc_line_start(&l, "kernel", record, types);
    tc_line_add(&l, "seed=5 offset=3 out=[6,5,7]");
    tc_line_emit(&l, sink);
}

static void list_timed(const tc_record *record, const tn_dtype *types, tc_sink *sink) {
    static const int64_t sizes[] = {1 << 20, 64};
    for (int k = 0; k < TC_LENGTH(sizes); k++) {
        tc_line l;
        tc_line_start(&l, "kernel", record, types);
        tc_line_add(&l, tc_record_arg(record, "value") >= 0   ? "value=1"
                        : tc_record_arg(record, "start") >= 0 ? "start=0 step=1"
                                                              : "seed=42 offset=1");
        tc_line_tensor(&l, "out", 1, &sizes[k], TC_LAYOUT_DENSE);
        tc_line_emit(&l, sink);
    }
}

/* All sets but the timed one have the same: they are few, and quick. */
static void list(const tc_record *record, const tn_dtype *types, tc_set set, tc_sink *sink) {
    if (set == TC_PERF) {
        if (tc_is_timed(record, types))
            list_timed(record, types, sink);
        return;
    }
    if (tc_record_arg(record, "value") >= 0)
        list_fill(record, types, sink);
    else if (tc_record_arg(record, "start") >= 0)
        list_arange(record, types, sink);
    else
        list_random(record, types, sink);
}

const tc_family tc_family_factory = {"factory", shapes, terms, NULL, list};
