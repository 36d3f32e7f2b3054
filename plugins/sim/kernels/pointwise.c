/* One loop over contiguous elements per operator and dtype.
 *
 * An expression sees `a` and `b` (and `alpha`) of type `value`, and may compute in `wrap`, which
 * overflows without harm; see dtype.h. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

#define BINARY(t, NAME, stored, value_, wrap_, name, expression) \
    static void name##_##t(sim_task *task) { \
        typedef value_ value __attribute__((unused)); \
        typedef wrap_ wrap; \
        int64_t n = task->outs[0].numel; \
        const stored *x = task->args[0].v.tensor->data, *y = task->args[1].v.tensor->data; \
        stored *restrict z = task->outs[0].data; \
        for (int64_t i = 0; i < n; i++) { \
            value a = sim_load_##t(x[i]), b = sim_load_##t(y[i]); \
            z[i] = sim_store_##t((wrap)(expression)); \
        } \
    }

#define COMPARISON(t, NAME, stored, value_, wrap_, name, expression) \
    static void name##_##t(sim_task *task) { \
        int64_t n = task->outs[0].numel; \
        const stored *x = task->args[0].v.tensor->data, *y = task->args[1].v.tensor->data; \
        uint8_t *restrict z = task->outs[0].data; \
        for (int64_t i = 0; i < n; i++) { \
            value_ a = sim_load_##t(x[i]), b = sim_load_##t(y[i]); \
            z[i] = (expression); \
        } \
    }

/* Transcendental functions are computed in f64, so that f32 results are as good as rounded once. */
#define UNARY(t, NAME, stored, value, wrap, name, function) \
    static void name##_##t(sim_task *task) { \
        int64_t n = task->outs[0].numel; \
        const stored *x = task->args[0].v.tensor->data; \
        stored *restrict z = task->outs[0].data; \
        for (int64_t i = 0; i < n; i++) \
            z[i] = sim_store_##t((wrap)function((double)sim_load_##t(x[i]))); \
    }

#define DEFINE_KERNEL(name, types, dtypes, signature_) \
    const sim_kernel sim_kernel_##name = { \
        .record = {SIM_RECORD(name, types)}, \
        .signature = signature_, \
        .pointwise = true, \
        .compute = {dtypes(SIM_COMPUTE, name)}, \
    };

/* ---- arithmetic -------------------------------------------------------------------------- */

#define ADD(t, NAME, stored, value, wrap, name, scalar) \
    static void name##_##t(sim_task *task) { \
        int64_t n = task->outs[0].numel; \
        const stored *x = task->args[TN_ARG_add_self].v.tensor->data; \
        const stored *y = task->args[TN_ARG_add_other].v.tensor->data; \
        wrap alpha = (wrap)scalar(&task->args[TN_ARG_add_alpha]); \
        stored *restrict z = task->outs[0].data; \
        for (int64_t i = 0; i < n; i++) \
            z[i] = sim_store_##t((wrap)sim_load_##t(x[i]) + alpha * (wrap)sim_load_##t(y[i])); \
    }

SIM_FLOAT_TYPES(ADD, add, sim_scalar_f64)
SIM_INT_TYPES(ADD, add, sim_scalar_i64)
SIM_BOOL_TYPES(ADD, add, 0 != sim_scalar_f64)
DEFINE_KERNEL(add, TN_DTYPES_ALL, SIM_ALL_TYPES, "TTs>T")

SIM_ALL_TYPES(BINARY, mul, (wrap)a *(wrap)b)
DEFINE_KERNEL(mul, TN_DTYPES_ALL, SIM_ALL_TYPES, "TT>T")

SIM_FLOAT_TYPES(BINARY, div, a / b)
DEFINE_KERNEL(div, TN_DTYPES_FLOAT, SIM_FLOAT_TYPES, "TT>T")

/* Python's //: the quotient of a less the remainder, which is exact where a / b would have been
 * rounded up to the next integer. */
static double floor_divide_real(double a, double b) {
    if (b == 0)
        return a / b;
    double remainder = fmod(a, b);
    double quotient = (a - remainder) / b;
    if (remainder != 0 && (remainder < 0) != (b < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(0, a / b);
    double down = floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

static int64_t floor_divide_int(int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t) - (uint64_t)a;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

SIM_FLOAT_TYPES(BINARY, floor_divide, floor_divide_real(a, b))
SIM_INT_TYPES(BINARY, floor_divide, floor_divide_int(a, b))
DEFINE_KERNEL(floor_divide, TN_DTYPES_NUMBER, SIM_NUMBER_TYPES, "TT>T")

/* What floor_divide leaves; fmod is exact. */
static double remainder_real(double a, double b) {
    double r = fmod(a, b);
    if (r == 0)
        return copysign(r, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static int64_t remainder_int(int64_t a, int64_t b) {
    if (b == 0 || b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

SIM_FLOAT_TYPES(BINARY, remainder, remainder_real(a, b))
SIM_INT_TYPES(BINARY, remainder, remainder_int(a, b))
DEFINE_KERNEL(remainder, TN_DTYPES_NUMBER, SIM_NUMBER_TYPES, "TT>T")

SIM_FLOAT_TYPES(BINARY, maximum, isnan(a) ? a : isnan(b) ? b : a > b ? a : b)
SIM_INT_BOOL_TYPES(BINARY, maximum, a > b ? a : b)
DEFINE_KERNEL(maximum, TN_DTYPES_ALL, SIM_ALL_TYPES, "TT>T")

/* base to the power of n, modulo 2^64. */
static uint64_t power_int(int64_t base, int64_t n) {
    if (n < 0)
        return base == 1 ? 1 : base == -1 ? (n % 2 ? UINT64_MAX : 1) : 0;
    uint64_t power = 1;
    for (uint64_t square = (uint64_t)base; n; n >>= 1, square *= square)
        if (n & 1)
            power *= square;
    return power;
}

SIM_FLOAT_TYPES(BINARY, pow, pow((double)a, (double)b))
SIM_INT_TYPES(BINARY, pow, power_int(a, b))
DEFINE_KERNEL(pow, TN_DTYPES_NUMBER, SIM_NUMBER_TYPES, "TT>T")

/* ---- functions --------------------------------------------------------------------------- */

#define DEFINE_UNARY(name, function) \
    SIM_FLOAT_TYPES(UNARY, name, function) \
    DEFINE_KERNEL(name, TN_DTYPES_FLOAT, SIM_FLOAT_TYPES, "T>T")

DEFINE_UNARY(exp, exp)
DEFINE_UNARY(log, log)
DEFINE_UNARY(sqrt, sqrt)
DEFINE_UNARY(sin, sin)
DEFINE_UNARY(cos, cos)
DEFINE_UNARY(tanh, tanh)
DEFINE_UNARY(erf, erf)
DEFINE_UNARY(floor, floor)

/* ---- comparison and selection ------------------------------------------------------------ */

SIM_ALL_TYPES(COMPARISON, eq, a == b)
DEFINE_KERNEL(eq, TN_DTYPES_ALL, SIM_ALL_TYPES, "TT>B")

SIM_ALL_TYPES(COMPARISON, lt, a < b)
DEFINE_KERNEL(lt, TN_DTYPES_ALL, SIM_ALL_TYPES, "TT>B")

/* Moves bits, so that no value is changed by passing through. */
#define WHERE(t, NAME, stored, value, wrap, name) \
    static void name##_##t(sim_task *task) { \
        int64_t n = task->outs[0].numel; \
        const uint8_t *condition = task->args[TN_ARG_where_condition].v.tensor->data; \
        const stored *x = task->args[TN_ARG_where_self].v.tensor->data; \
        const stored *y = task->args[TN_ARG_where_other].v.tensor->data; \
        stored *restrict z = task->outs[0].data; \
        for (int64_t i = 0; i < n; i++) \
            z[i] = condition[i] ? x[i] : y[i]; \
    }

SIM_ALL_TYPES(WHERE, where)
DEFINE_KERNEL(where, TN_DTYPES_ALL, SIM_ALL_TYPES, "BTT>T")

/* ---- bits -------------------------------------------------------------------------------- */

#define DTYPES_BITWISE (TN_DTYPES_INT | TN_DTYPE_BIT(TN_BOOL))

SIM_INT_BOOL_TYPES(BINARY, bitwise_and, (wrap)a &(wrap)b)
DEFINE_KERNEL(bitwise_and, DTYPES_BITWISE, SIM_INT_BOOL_TYPES, "TT>T")

SIM_INT_BOOL_TYPES(BINARY, bitwise_or, (wrap)a | (wrap)b)
DEFINE_KERNEL(bitwise_or, DTYPES_BITWISE, SIM_INT_BOOL_TYPES, "TT>T")

SIM_INT_BOOL_TYPES(BINARY, bitwise_xor, (wrap)a ^ (wrap)b)
DEFINE_KERNEL(bitwise_xor, DTYPES_BITWISE, SIM_INT_BOOL_TYPES, "TT>T")
