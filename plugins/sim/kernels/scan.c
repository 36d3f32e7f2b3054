/* Running sums along one dimension. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

/* The tensor is [outer, n, inner], and the sums run along n. */
#define CUMSUM(t, NAME, stored, value, wrap, name, wide) \
    static void name##_##t(sim_task *task) { \
        const sim_tensor *in = task->args[TN_ARG_cumsum_self].v.tensor; \
        int64_t dim = task->args[TN_ARG_cumsum_dim].v.i64; \
        const stored *x = in->data; \
        stored *z = task->outs[0].data; \
        int64_t n = in->rank ? in->sizes[dim] : 1; \
        int64_t inner = 1; \
        for (int64_t d = dim + 1; d < in->rank; d++) \
            inner *= in->sizes[d]; \
        for (int64_t o = 0; o < in->numel; o += n * inner) \
            for (int64_t i = o; i < o + inner; i++) { \
                wide sum = 0; \
                for (int64_t k = i; k < i + n * inner; k += inner) { \
                    sum += (wide)sim_load_##t(x[k]); \
                    z[k] = sim_store_##t((wrap)sum); \
                } \
            } \
    }

SIM_FLOAT_TYPES(CUMSUM, cumsum, double)
SIM_INT_TYPES(CUMSUM, cumsum, uint64_t)

const sim_kernel sim_kernel_cumsum = {
    .record = {SIM_RECORD(cumsum, TN_DTYPES_NUMBER)},
    .signature = "Ti>T",
    .compute = {SIM_NUMBER_TYPES(SIM_COMPUTE, cumsum)},
};
