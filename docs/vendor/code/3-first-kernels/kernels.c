/* kernels.c: the first kernels, in f32. The core brings every other call into the shape that a
 * record's flags promise to take, and what has no kernel is composed of those that are here. */
#include "kernels.h"
#include "internal.h"
#include "task.h"

/* All devices are alike. */
tn_status npu_accepts(tn_device_impl *device, const tn_kernel *kernel) {
    return TN_OK;
}

/* ---- add: contiguous, nothing else ------------------------------------------------------- */

static void add(const struct npu_task *task) {
    const float alpha = (float)task->scalar;
    for (int64_t i = 0; i < task->out.numel; i++)
        task->out.data[i] = task->in[0].data[i] + alpha * task->in[1].data[i];
}

const tn_kernel npu_kernel_add = {NPU_RECORD(add, add)};

/* ---- fill -------------------------------------------------------------------------------- */

static void fill(const struct npu_task *task) {
    for (int64_t i = 0; i < task->out.numel; i++)
        task->out.data[i] = (float)task->scalar;
}

const tn_kernel npu_kernel_fill = {NPU_RECORD(fill, fill)};

/* ---- copy: any strides, so that the core can make anything contiguous -------------------- */

/* On to the next index in row-major order; `out_offset` follows it by `strides`. */
static void step(int32_t rank, const int64_t *sizes, const int64_t *strides, int64_t *index,
                 int64_t *out_offset) {
    for (int32_t d = rank - 1; d >= 0; d--) {
        *out_offset += strides[d];
        if (++index[d] < sizes[d])
            return;
        *out_offset -= strides[d] * sizes[d];
        index[d] = 0;
    }
}

static void copy(const struct npu_task *task) {
    const struct npu_tensor *in = &task->in[0], *out = &task->out;
    int64_t from_index[TN_MAX_RANK] = {0}, to_index[TN_MAX_RANK] = {0}, from = 0, to = 0;
    for (int64_t i = 0; i < out->numel; i++) {
        out->data[to] = in->data[from];
        step(in->rank, in->sizes, in->strides, from_index, &from);
        step(out->rank, out->sizes, out->strides, to_index, &to);
    }
}

const tn_kernel npu_kernel_copy = {
    .struct_size = sizeof(tn_kernel),
    .op = TN_KERNEL_copy,
    .schema_hash = TN_KERNEL_HASH_copy,
    .dtypes = {TN_DTYPE_BIT(TN_F32), TN_DTYPE_BIT(TN_F32)}, /* from, to */
    .flags = TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST,
    .user = (void *)copy,
    .run = npu_launch,
};

/* ---- sum: the output has size 1 where the input is reduced ------------------------------- */

/* The outer index walks over the output, the inner one over what goes into one element of it. */
static void sum(const struct npu_task *task) {
    const struct npu_tensor *in = &task->in[0], *out = &task->out;
    int64_t inner_sizes[TN_MAX_RANK], inner[TN_MAX_RANK] = {0}, outer[TN_MAX_RANK] = {0};
    for (int32_t d = 0; d < in->rank; d++)
        inner_sizes[d] = 1;
    for (uint32_t i = 0; i < task->n_dims; i++)
        inner_sizes[task->dims[i]] = in->sizes[task->dims[i]];
    const int64_t n = in->numel / out->numel;

    int64_t from = 0;
    for (int64_t o = 0; o < out->numel; o++) {
        double total = 0; /* wider than the elements, as the table of kernels asks */
        int64_t offset = from;
        for (int64_t i = 0; i < n; i++) {
            total += in->data[offset];
            step(in->rank, inner_sizes, in->strides, inner, &offset);
        }
        out->data[o] = (float)total;
        step(out->rank, out->sizes, in->strides, outer, &from);
    }
}

const tn_kernel npu_kernel_sum = {NPU_RECORD(sum, sum)};
