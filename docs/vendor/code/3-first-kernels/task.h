/* task.h: a kernel call made ready: every handle is an address, every list is copied.
 *
 * What a call hands over is borrowed until it returns (TNP-20). A task holds nothing of it, so it
 * can be computed now or later. */
#ifndef NPU_TASK_H
#define NPU_TASK_H

#include <tenon/plugin.h>

enum { NPU_MAX_INPUTS = 3 };

struct npu_tensor {
    float *data; /* the first element */
    int32_t rank;
    int64_t numel;
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
};

struct npu_task {
    void (*compute)(const struct npu_task *task);
    struct npu_tensor in[NPU_MAX_INPUTS], out; /* tensor arguments in order */
    double scalar;                             /* the last scalar argument */
    int64_t dims[TN_MAX_RANK];                 /* the last list */
    uint32_t n_dims;
    float *workspace; /* NULL when the kernel asked for none */
};

/* `call->user` is the compute function. */
void npu_task_init(struct npu_task *task, const tn_call *call);

/* tn_kernel.run of every kernel (launch.c). */
tn_status npu_launch(const tn_call *call);

#endif /* NPU_TASK_H */
