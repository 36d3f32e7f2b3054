/* Operators whose output is made from nothing, or from a state of two numbers: its shape is the
 * line's. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <stdio.h>

/* That of the output read_outs takes from the line. */
static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_value *state = tc_invocation_arg(call, "state");
    if (state && (state->tensor.shape.rank != 1 || state->tensor.shape.sizes[0] != 2))
        return tc_why(why, TC_MESSAGE, "state=[2]");
    return true;
}

/* A key of 64 bits, and a counter of any length, as near to its end as to its beginning: an offset carries into its
 * upper half, or out of it. */
static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    uint64_t counter = tc_next(r) >> tc_below(r, 64);
    o->values[0].i = (int64_t)tc_next(r);
    o->values[1].i = (int64_t)(tc_below(r, 2) ? ~counter : counter);
    return true;
}

static int64_t terms(const tc_invocation *call) {
    (void)call;
    return 1;
}

static void emit(const tc_sampler *m, const char *attrs, int32_t rank, const int64_t *sizes,
                 tc_layout layout) {
    tc_line l = tc_line_start(m);
    tc_line_add(&l, "%s", attrs);
    tc_line_tensor(&l, "out", rank, sizes, layout);
    tc_emit(m, l);
}

static void list_fill(const tc_sampler *m) {
    static const char *const floats[] = {
        "0",    "1",   "-2.5", "nan",   "inf",   "-inf",
        "-0.0", "0.1", "1e-7", "65519", "65520", "-1e39"}; /* about to be infinite */
    /* The last two are for what has as many bits, which f32 and f64 have not. */
    static const char *const ints[] = {"0", "1", "7", "-3", "123456789", "1234567890123456789"};
    char value[40];
    bool floating = tc_is_float(m->types[0]);
    uint64_t bytes = tc_dtype_bytes(m->types[0]);
    int n = floating                 ? TC_LENGTH(floats)
            : m->types[0] == TN_BOOL ? 2
                                     : TC_LENGTH(ints) - (bytes < 8) - (bytes < 4);
    for (int k = 0; k < n; k++)
        for (int layout = 0; layout < TC_N_OUT_LAYOUTS; layout++) {
            snprintf(value, sizeof value, "value=%s", floating ? floats[k] : ints[k]);
            emit(m, value, 2, TC_SIZES(7, 9), (tc_layout)layout);
        }
    for (int k = 0; k < n; k++) { /* whole words, which a kernel may fill with a pattern */
        snprintf(value, sizeof value, "value=%s", floating ? floats[k] : ints[k]);
        emit(m, value, 1, TC_SIZES(64), TC_LAYOUT_DENSE);
    }
    for (int32_t rank = 0; m->set != TC_SMOKE && rank <= TC_MAX_RANK; rank++)
        emit(m, "value=1", rank, TC_SIZES(2, 1, 3, 2, 1, 2, 2, 1, 2, 1, 3, 2), TC_LAYOUT_PADDED);
    emit(m, "value=1", 1, TC_SIZES(4096), TC_LAYOUT_DENSE); /* whole blocks, nothing is left over */
    emit(m, "value=1", 1, TC_SIZES(70001), TC_LAYOUT_DENSE); /* more than 16 bits count */
    for (int way = 0; m->set != TC_SMOKE && way < 2; way++)  /* what memset does for some */
        emit(m, "value=0", 1, TC_SIZES(70001), way ? TC_LAYOUT_STEPPED : TC_LAYOUT_DENSE);
    if (tc_has_large(m))
        emit(m, "value=1", 1, TC_SIZES(TC_BEYOND), TC_LAYOUT_DENSE);
    /* Rows that are longer than a block, and lie apart; and so many that threads begin within one. */
    for (int layout = TC_LAYOUT_PADDED; m->set != TC_SMOKE && layout < TC_N_OUT_LAYOUTS; layout++) {
        emit(m, "value=1", 2, TC_SIZES(3, 1201), (tc_layout)layout);
        if (tc_has_large(m))
            emit(m, "value=1", 2, TC_SIZES(257, 515), (tc_layout)layout);
    }
}

static void list_arange(const tc_sampler *m) {
    static const char *const floats[] = {"start=0 step=1", "start=-3.5 step=0.25",
                                         "start=0.1 step=0.3", "start=5 step=-1"};
    /* The last two are of i64: more digits than f64 has. */
    static const char *const ints[] = {"start=0 step=1", "start=-5 step=3", "start=100 step=-7",
                                       "start=9007199254740993 step=2",
                                       "start=-4611686018427387905 step=9007199254740995"};
    bool floating = tc_is_float(m->types[0]);
    int n = floating ? TC_LENGTH(floats) : TC_LENGTH(ints) - (m->types[0] == TN_I64 ? 0 : 2);
    for (int k = 0; k < n; k++)
        for (int layout = 0; layout < TC_N_OUT_LAYOUTS; layout++)
            emit(m, floating ? floats[k] : ints[k], 1, TC_SIZES(101), (tc_layout)layout);
    if (m->set !=
        TC_SMOKE) /* more than a block, and so much that threads share it, of elements that lie apart */
        emit(m, floating ? floats[1] : ints[1], 1, TC_SIZES(tc_has_large(m) ? 70001 : 1201),
             TC_LAYOUT_STEPPED);
    if (floating) /* what is near 0 has the digits that the start had, all of them */
        emit(m, "start=-1000.1 step=10.003", 1, TC_SIZES(101), TC_LAYOUT_DENSE);
    /* whole blocks, nothing is left over */
    emit(m, floating ? floats[1] : ints[1], 1, TC_SIZES(1024), TC_LAYOUT_DENSE);
    if (m->types[0] == TN_F16) /* infinite at both ends */
        emit(m, "start=-70000 step=1400", 1, TC_SIZES(101), TC_LAYOUT_DENSE);
    if (floating) /* some are in the middle between two halves, but for what f32 rounds away */
        emit(m, "start=0 step=0.69999999", 1, TC_SIZES(5003), TC_LAYOUT_DENSE);
    if (tc_dtype_bytes(m->types[0]) > 1) /* more than the others count */
        emit(m, "start=-7 step=1", 1, TC_SIZES(tc_dtype_bytes(m->types[0]) > 2 ? 70001 : 30001),
             TC_LAYOUT_DENSE);
    if (tc_has_large(m))
        emit(m, "start=3 step=1", 1, TC_SIZES(TC_BEYOND), TC_LAYOUT_DENSE);
}

static void list_random(const tc_sampler *m) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 64, 1001, 4096};
    static const char *const fixed[] = {"seed=0 offset=0",
                                        "seed=42 offset=1",
                                        "seed=987654321012 offset=4294967295",
                                        "seed=7 offset=1099511627776",
                                        "seed=11 offset=9223372036854775806",
                                        "seed=-3 offset=-2",
                                        "seed=-9007199254740993 offset=5"}; /* all its bits count */
    static const char *const from[] = {"state=[2] offset=0",
                                       "state=[2] offset=1",
                                       "state=[2] offset=4294967295",
                                       "state=[2]+3 offset=1099511627776",
                                       "state=[2] offset=9223372036854775807",
                                       "state=[2]+1 offset=-9223372036854775807",
                                       "state=[2]+2 offset=9007199254740993"};
    bool has_state = tc_record_arg(m->record, "state") >= 0;
    const char *const *choices = has_state ? from : fixed;
    for (int n = 0; n < TC_LENGTH(lengths); n++)
        for (int k = 0; k < TC_LENGTH(fixed); k++)
            emit(m, choices[k], 1, &lengths[n], n % 2 ? TC_LAYOUT_SHIFTED : TC_LAYOUT_DENSE);
    if (m->set != TC_SMOKE) /* more blocks of four words than 16 bits count */
        emit(m, choices[2], 1, TC_SIZES(300007), TC_LAYOUT_DENSE);
    if (tc_has_large(m))
        emit(m, choices[2], 1, TC_SIZES(TC_BEYOND), TC_LAYOUT_DENSE);
    emit(m, has_state ? "state=[2] offset=3" : "seed=5 offset=3", 3, TC_SIZES(6, 5, 7),
         TC_LAYOUT_DENSE);
}

static void list_timed(const tc_sampler *m) {
    static const int64_t sizes[] = {1 << 20, 64};
    const char *attrs = tc_record_arg(m->record, "value") >= 0   ? "value=1"
                        : tc_record_arg(m->record, "start") >= 0 ? "start=0 step=1"
                        : tc_record_arg(m->record, "state") >= 0 ? "state=[2] offset=1"
                                                                 : "seed=42 offset=1";
    for (int k = 0; k < TC_LENGTH(sizes); k++)
        emit(m, attrs, 1, &sizes[k], TC_LAYOUT_DENSE);
}

/* All sets but the timed one have the same: they are few, and quick. */
static void list(const tc_sampler *m) {
    if (tc_record_arg(m->record, "value") >= 0)
        list_fill(m);
    else if (tc_record_arg(m->record, "start") >= 0)
        list_arange(m);
    else
        list_random(m);
}

const tc_family tc_family_factory = {"factory", shapes, terms, fill, list, list_timed};
