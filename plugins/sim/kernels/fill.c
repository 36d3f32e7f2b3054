/* Constants and ranges. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

#define FILL(t, NAME, stored, value, wrap, name, scalar) \
    static void name##_##t(struct sim_task *task) { \
        stored *z = task->outs[0].data; \
        stored x = sim_store_##t((wrap)scalar(&task->args[TN_ARG_fill_value])); \
        for (int64_t i = 0; i < task->outs[0].numel; i++) \
            z[i] = x; \
    }

SIM_FLOAT_TYPES(FILL, fill, sim_scalar_f64)
SIM_INT_TYPES(FILL, fill, sim_scalar_i64)
SIM_BOOL_TYPES(FILL, fill, 0 != sim_scalar_f64)

const struct sim_kernel sim_kernel_fill = {
    .record = {SIM_RECORD(fill, TN_DTYPES_ALL)},
    .signature = "s>T",
    .compute = {SIM_ALL_TYPES(SIM_COMPUTE, fill)},
};

/* start + i * step, in f64 or i64, rounded once. */
#define ARANGE(t, NAME, stored, value, wrap, name, wide, scalar, round) \
    static void name##_##t(struct sim_task *task) { \
        stored *z = task->outs[0].data; \
        wide start = (wide)scalar(&task->args[TN_ARG_arange_start]); \
        wide step = (wide)scalar(&task->args[TN_ARG_arange_step]); \
        for (int64_t i = 0; i < task->outs[0].numel; i++) \
            z[i] = round(start + (wide)i * step); \
    }

static double same(double x) {
    return x;
}

#define TO_F32(x) (float)same(x)
#define TO_F16(x) sim_round_to_16(x, 10)
#define TO_BF16(x) sim_round_to_16(x, 7)

ARANGE(f32, F32, float, float, float, arange, double, sim_scalar_f64, TO_F32)
ARANGE(f64, F64, double, double, double, arange, double, sim_scalar_f64, same)
ARANGE(f16, F16, uint16_t, float, float, arange, double, sim_scalar_f64, TO_F16)
ARANGE(bf16, BF16, uint16_t, float, float, arange, double, sim_scalar_f64, TO_BF16)
SIM_INT_TYPES(ARANGE, arange, uint64_t, sim_scalar_i64, )

const struct sim_kernel sim_kernel_arange = {
    .record = {SIM_RECORD(arange, TN_DTYPES_NUMBER)},
    .signature = "ss>T",
    .compute = {SIM_NUMBER_TYPES(SIM_COMPUTE, arange)},
};
