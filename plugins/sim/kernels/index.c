/* Gather and scatter_add.
 *
 * All indices are looked at before anything is written: one out of range becomes the stream's error
 * and the call touches no memory. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"
#include "plugins/sim/view.h"

static bool indices_are_valid(sim_task *task, const sim_tensor *index, int64_t dim, int64_t size) {
    const int64_t *indices = index->data;
    for (int64_t i = 0; i < index->numel; i++)
        if (indices[i] < 0 || indices[i] >= size) {
            sim_task_fail(task, TN_ERR_INDEX_OUT_OF_RANGE,
                          "index %lld (element %lld of the index tensor) is out of range for "
                          "dimension %lld of size %lld",
                          (long long)indices[i], (long long)i, (long long)dim, (long long)size);
            return false;
        }
    return true;
}

/* A walk over the index tensor, row-major, beside positions (0) in a tensor whose place along `dim`
 * the index gives, and (1) in another. */
static void index_walk_init(sim_walk *walk, const sim_tensor *index, const sim_tensor *indexed,
                            int64_t dim, const sim_tensor *other) {
    int64_t strides[SIM_MAX_RANK];
    for (int32_t d = 0; d < index->rank; d++)
        strides[d] = d == dim ? 0 : indexed->strides[d];
    sim_walk_init(walk, index->rank, index->sizes, strides, other->strides);
}

/* What a tensor of rank 0 is indexed as: rank 1, size 1. */
static int64_t dim_size(const sim_tensor *tensor, int64_t dim) {
    return tensor->rank ? tensor->sizes[dim] : 1;
}

static int64_t dim_stride(const sim_tensor *tensor, int64_t dim) {
    return tensor->rank ? tensor->strides[dim] : 1;
}

/* ---- gather ------------------------------------------------------------------------------ */

#define GATHER(name, type) \
    static void name(sim_task *task) { \
        const sim_tensor *self = task->args[TN_ARG_gather_self].v.tensor; \
        const sim_tensor *index = task->args[TN_ARG_gather_index].v.tensor; \
        int64_t dim = task->args[TN_ARG_gather_dim].v.i64; \
        if (!indices_are_valid(task, index, dim, dim_size(self, dim))) \
            return; \
        int64_t stride = dim_stride(self, dim), *at = index->data; \
        const type *x = self->data; \
        type *z = task->outs[0].data; \
        sim_walk walk; \
        index_walk_init(&walk, index, self, dim, &task->outs[0]); \
        do \
            for (int64_t i = 0; i < walk.n; i++) \
                *z++ = x[walk.offset[0] + i * walk.step[0] + *at++ * stride]; \
        while (sim_walk_next(&walk)); \
    }

GATHER(gather_1, uint8_t)
GATHER(gather_2, uint16_t)
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)

const sim_kernel sim_kernel_gather = {
    .record = {SIM_RECORD(gather, TN_DTYPES_ALL)},
    .signature = "TiL>T",
    .compute = {[TN_F32] = gather_4,
                [TN_F64] = gather_8,
                [TN_F16] = gather_2,
                [TN_BF16] = gather_2,
                [TN_I8] = gather_1,
                [TN_I16] = gather_2,
                [TN_I32] = gather_4,
                [TN_I64] = gather_8,
                [TN_U8] = gather_1,
                [TN_BOOL] = gather_1},
};

/* ---- scatter_add ------------------------------------------------------------------------- */

/* Adds in row-major order of index. The sums are made in the workspace, in `wrap`, and rounded once
 * at the end: many small terms of an f16 tensor are not lost. */
#define SCATTER_ADD(t, NAME, stored, value, wrap, name) \
    static void name##_##t(sim_task *task) { \
        const sim_tensor *self = task->args[TN_ARG_scatter_add_self].v.tensor; \
        const sim_tensor *index = task->args[TN_ARG_scatter_add_index].v.tensor; \
        const sim_tensor *src = task->args[TN_ARG_scatter_add_src].v.tensor; \
        int64_t dim = task->args[TN_ARG_scatter_add_dim].v.i64; \
        if (!indices_are_valid(task, index, dim, dim_size(self, dim))) \
            return; \
        int64_t stride = dim_stride(self, dim), *at = index->data; \
        const stored *x = self->data, *y = src->data; \
        stored *z = task->outs[0].data; \
        wrap *sums = task->workspace; \
        for (int64_t i = 0; i < self->numel; i++) \
            sums[i] = (wrap)sim_load_##t(x[i]); \
        sim_walk walk; \
        index_walk_init(&walk, index, self, dim, src); \
        do \
            for (int64_t i = 0; i < walk.n; i++) \
                sums[walk.offset[0] + i * walk.step[0] + *at++ * stride] += \
                    (wrap)sim_load_##t(y[walk.offset[1] + i * walk.step[1]]); \
        while (sim_walk_next(&walk)); \
        for (int64_t i = 0; i < self->numel; i++) \
            z[i] = sim_store_##t(sums[i]); \
    }

SIM_ALL_TYPES(SCATTER_ADD, scatter_add)

#define WRAP_BYTES(t, NAME, stored, value, wrap, ...) [TN_##NAME] = sizeof(wrap),

static tn_status scatter_add_prepare(const tn_call *call, tn_plan *out) {
    static const uint8_t bytes[TN_DTYPE_COUNT] = {SIM_ALL_TYPES(WRAP_BYTES, )};
    out->workspace_bytes = (uint64_t)call->outs[0]->numel * bytes[call->outs[0]->dtype];
    return TN_OK;
}

const sim_kernel sim_kernel_scatter_add = {
    .record = {SIM_RECORD(scatter_add, TN_DTYPES_ALL), .prepare = scatter_add_prepare},
    .signature = "TiLT>T",
    .compute = {SIM_ALL_TYPES(SIM_COMPUTE, scatter_add)},
};
