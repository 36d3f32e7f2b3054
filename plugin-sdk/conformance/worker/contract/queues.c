/* Asynchronous kernels: `run` returns while earlier work of its stream is still running. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include "plugin-sdk/conformance/worker/kernel/checks.h"

static const char *const lines[] = {
    "kernel/add T=f32 self=[64,33] other=[64,33] alpha=2 data=exact",
    "kernel/mul T=f32 self=[64,33] other=[64,33] data=exact",
    "kernel/exp T=f32 self=[64,33] data=exact",
    "kernel/where T=f32 condition=[64,33] self=[64,33] other=[64,33] data=exact",
    "kernel/copy S=f32 D=f32 self=[64,33] data=exact",
    "kernel/fill T=f32 value=3 out=[64,33] data=exact",
    "kernel/sum T=f32 self=[64,33] dim=[1] data=exact",
    "kernel/bmm T=f32 self=[2,33,40] mat2=[2,40,35] data=exact",
    "kernel/softmax T=f32 self=[64,33] dim=1 data=exact",
    "kernel/gather T=f32 self=[64,33] dim=0 index=[50,33]",
    "kernel/cumsum T=f32 self=[64,33] dim=1 data=exact",
    "kernel/sort T=f32 self=[64,33] dim=1 descending=false data=exact",
};

/* The next call of which the plugin says that it only queues. */
static const tn_kernel *next(tc_contract *k, size_t *at, tc_case *c, tc_invocation *call) {
    char why[TC_MESSAGE];
    const tn_kernel *kernel;
    while (*at < sizeof lines / sizeof *lines) {
        const char *line = lines[(*at)++];
        if (!tc_case_parse(line, c, why) || !tc_invocation_parse(c, &k->arena, call, why) ||
            !tc_invocation_fill(call, call->seed, why)) {
            TC_CASE_ERROR(k->out, "%s: %s", line, why);
            return NULL;
        }
        if (tc_find_kernel(k->subject, call, &kernel) == TC_CLAIMED && !kernel->workspace &&
            (kernel->flags & TN_KERNEL_CAPTURE_SAFE))
            return kernel;
    }
    return NULL;
}

/* The host may be held up once or twice; a kernel that waits is late each time. */
static void check(tc_contract *k, tc_work *work, tn_stream_impl *stream, const tn_kernel *kernel,
                  tc_placed *p) {
    enum { TIMES = 6 };
    const tn_stream_ops *streams = k->subject->ops->streams;
    int late = 0;
    for (int i = 0; i < TIMES && late == i && !tc_failed(k); i++) {
        if (i == 0) /* the first call may compile */
            tc_must(k, TNP_KERNEL_RESULT, tc_run_placed(p), kernel->op);
        if (!tc_must(k, TNP_STREAM_SYNCHRONIZE, streams->synchronize(stream), "synchronize") ||
            !tc_work_queue(k, work, stream) || streams->query(stream) != TN_NOT_READY ||
            !tc_must(k, TNP_KERNEL_RESULT, tc_run_placed(p), kernel->op))
            break;
        late += streams->query(stream) != TN_NOT_READY;
    }
    tc_must(k, TNP_STREAM_SYNCHRONIZE, streams->synchronize(stream), "synchronize");
    if (late == TIMES)
        TC_BROKEN(k, TNP_KERNEL_CAPTURE_SAFE,
                  "%s has TN_KERNEL_CAPTURE_SAFE, and run waits for the work before it; drop the "
                  "flag, or only queue",
                  kernel->op);
}

static void only_queues(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tn_stream_impl *stream;
    tc_case c;
    tc_invocation call;
    size_t at = 0;
    if (!tc_has_streams(k) || !tc_work_create(k, s, &work) || !tc_stream_create(k, s, 0, &stream))
        return;
    const tn_kernel *kernel = next(k, &at, &c, &call);
    if (!kernel)
        TC_NOT_OFFERED(k, "no kernel has TN_KERNEL_CAPTURE_SAFE");
    for (; kernel && !tc_failed(k); kernel = next(k, &at, &c, &call)) {
        tc_placed placed;
        if (tc_place_call(s, stream, kernel, &call, &placed, k->out) &&
            (!kernel->supports || kernel->supports(&placed.tn) == TN_OK))
            check(k, &work, stream, kernel, &placed);
        s->ops->streams->synchronize(stream);
        tc_unplace(&placed);
    }
}

const tc_contract_row tc_queue_rows[] = {
    {"kernel-only-queues", "", TC_SMOKE, only_queues},
    {0},
};
