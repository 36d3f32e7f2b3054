/* matmul.c: batches of matrix products, as the definition says. */
#include "kernels.h"
#include "task.h"

/* self [B, M, K], mat2 [B, K, N], out [B, M, N] */
static void bmm(const struct npu_task *task) {
    const int64_t batch = task->out.sizes[0], m = task->out.sizes[1], n = task->out.sizes[2];
    const int64_t depth = task->in[0].sizes[2];
    for (int64_t b = 0; b < batch; b++) {
        const float *self = task->in[0].data + b * m * depth;
        const float *mat2 = task->in[1].data + b * depth * n;
        float *out = task->out.data + b * m * n;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float sum = 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += self[i * depth + k] * mat2[k * n + j];
                out[i * n + j] = sum;
            }
    }
}

const tn_kernel npu_kernel_bmm = {NPU_RECORD(bmm, bmm)};
