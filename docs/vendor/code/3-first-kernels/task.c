/* task.c: from a kernel call to a task. */
#include "task.h"
#include "internal.h"

#include <string.h>

static void init_tensor(struct npu_tensor *tensor, const tn_tensor_view *view) {
    tensor->data = npu_address(view->memory, view->offset);
    tensor->rank = view->rank;
    tensor->numel = view->numel;
    memcpy(tensor->sizes, view->sizes, (size_t)view->rank * sizeof *view->sizes);
    memcpy(tensor->strides, view->strides, (size_t)view->rank * sizeof *view->strides);
}

void npu_task_init(struct npu_task *task, const tn_call *call) {
    memset(task, 0, sizeof *task);
    memcpy(&task->compute, &call->user, sizeof task->compute);
    uint32_t n_inputs = 0;
    for (uint32_t i = 0; i < call->n_args; i++) {
        const tn_cell *cell = &call->args[i];
        switch (cell->tag) {
        case TN_CELL_TENSOR:
            init_tensor(&task->in[n_inputs++], cell->v.view);
            break;
        case TN_CELL_INTS:
            task->n_dims = cell->n;
            memcpy(task->dims, cell->v.ints, cell->n * sizeof *task->dims);
            break;
        case TN_CELL_F64:
            task->scalar = cell->v.f64;
            break;
        default: /* I64 or BOOL */
            task->scalar = (double)cell->v.i64;
        }
    }
    init_tensor(&task->out, call->outs[0]);
    if (call->workspace)
        task->workspace = npu_address(call->workspace, call->workspace_offset);
}
