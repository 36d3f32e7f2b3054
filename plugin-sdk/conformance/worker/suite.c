/* See suite.h. */
#include "plugin-sdk/conformance/worker/suite.h"

#include "plugin-sdk/conformance/json.h"
#include "plugin-sdk/conformance/worker/contract/guard.h"
#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/conformance/worker/subject/subject.h"

static const tc_class *const classes[] = {&tc_class_kernel,   &tc_class_same,    &tc_class_refuse,
                                          &tc_class_contract, &tc_class_process, &tc_class_perf};

static void describe(const tc_options *options, FILE *out) {
    tc_subject s;
    char why[TC_MESSAGE];
    tn_cell cells[3];
    if (!tc_subject_open(&s, options->plugin, options->device, tc_host_table(), why)) {
        fprintf(out, "{\"error\":");
        tc_json_put(out, why);
        fprintf(out, "}");
        return;
    }
    static const int32_t asked[] = {TN_PROP_NAME, TN_PROP_DRIVER_VERSION, TN_PROP_FIRMWARE_VERSION};
    const char *said[3];
    for (int i = 0; i < 3; i++) {
        cells[i] = (tn_cell){.tag = TN_CELL_NONE};
        tn_status status = s.ops->property(s.self, s.index, asked[i], &cells[i]);
        said[i] = status == TN_OK && cells[i].tag == TN_CELL_STRING ? cells[i].v.string : NULL;
    }
    const char *const members[][2] = {
        {"id", s.plugin->id},
        {"version", s.plugin->version},
        {"type", s.plugin->device_type},
        {"name", s.plugin->name},
        {"device", said[0] ? said[0] : s.plugin->name},
        {"driver", said[1]},
        {"firmware", said[2]},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i][1])
            continue;
        fprintf(out, "%c\"%s\":", i ? ',' : '{', members[i][0]);
        tc_json_put(out, members[i][1]);
    }
    fprintf(out, ",\"n_devices\":%u,\"records\":%llu}", s.n_devices,
            (unsigned long long)s.plugin->n_kernels);
    tc_subject_close(&s);
}

static void finish(void) {
    tc_caller_end();
    tc_subject_shared_close();
}

const tc_suite tc_builtin_suite = {
    .classes = classes,
    .n_classes = sizeof classes / sizeof *classes,
    .finish = finish,
    .run = tc_guard_case,
    .describe = describe,
};
