/* launch.c: how a kernel runs. A device without streams computes before the call returns. */
#include "internal.h"
#include "task.h"

tn_status npu_launch(const tn_call *call) {
    struct npu_task task;
    npu_task_init(&task, call);
    task.compute(&task);
    return TN_OK;
}
