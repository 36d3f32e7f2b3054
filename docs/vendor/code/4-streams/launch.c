/* launch.c: how a kernel runs. The call is copied into a job, and computed when its turn comes. */
#include "internal.h"
#include "stream.h"
#include "task.h"

struct launch {
    struct npu_job job;
    const tn_host *host;
    struct npu_task task;
};

static tn_status run_launch(struct npu_job *job, const char **out_message) {
    struct launch *launch = (struct launch *)job;
    launch->task.compute(&launch->task);
    launch->host->dealloc(launch->host, launch);
    return TN_OK;
}

tn_status npu_launch(const tn_call *call) {
    struct launch *launch = npu_new_job(call->device, sizeof *launch);
    if (!launch)
        return TN_ERR_OUT_OF_MEMORY;
    launch->job.run = run_launch;
    launch->host = call->device->self->host;
    npu_task_init(&launch->task, call);
    npu_push(call->stream, &launch->job);
    return TN_OK;
}
