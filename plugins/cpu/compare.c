/* Comparisons, whose output is bool, and the choice between two tensors by one. */
#include "plugins/cpu/pointwise.h"

#define COMPARE_LOOPS(sfx, T, U, DT) \
    TNC_LOOP2(eq_##sfx, uint8_t, T, TNC_NOTHING, a == b) \
    TNC_LOOP2(ne_##sfx, uint8_t, T, TNC_NOTHING, a != b) \
    TNC_LOOP2(lt_##sfx, uint8_t, T, TNC_NOTHING, a < b) \
    TNC_LOOP2(le_##sfx, uint8_t, T, TNC_NOTHING, a <= b) \
    TNC_LOOP2(gt_##sfx, uint8_t, T, TNC_NOTHING, a > b) \
    TNC_LOOP2(ge_##sfx, uint8_t, T, TNC_NOTHING, a >= b) \
    TNC_LOOP1(logical_not_##sfx, uint8_t, T, TNC_NOTHING, a == 0)
COMPARE_LOOPS(f32, float, float, F32)
COMPARE_LOOPS(bf16, tnc_bf16, float, BF16)
COMPARE_LOOPS(f64, double, double, F64)
TNC_INT_TYPES(COMPARE_LOOPS)

/* where only moves bits: one loop per size. Halves beside a scalar pass through it as f32, unchanged. */
#define WHERE_LOOP(bits) \
    TNC_LOOP_HEAD(where_##bits) { \
        uint##bits##_t *r = out[0]; \
        const uint8_t *condition = in[0]; \
        const uint##bits##_t *pa = in[1], *pb = in[2]; \
        TNC_INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            uint##bits##_t a = pa[i], b = pb[i]; \
            r[i] = condition[i] ? a : b; \
        } \
    }
WHERE_LOOP(8)
WHERE_LOOP(16)
WHERE_LOOP(32)
WHERE_LOOP(64)

#define WHERE(DT, loop, ...) TNC_TERNARY(where, DT, loop, .bool_in = 1, __VA_ARGS__)

#define COMPARE(op) \
    TNC_NUMBERS(TNC_BINARY, op, .bool_out = 1), TNC_BINARY(op, BOOL, op##_u8, .bool_out = 1)

static const tn_kernel records[] = {
    COMPARE(eq),
    COMPARE(ne),
    COMPARE(lt),
    COMPARE(le),
    COMPARE(gt),
    COMPARE(ge),
    TNC_NUMBERS(TNC_UNARY, logical_not, .bool_out = 1),
    TNC_UNARY(logical_not, BOOL, logical_not_u8, .bool_out = 1),
    WHERE(F32, where_32),
    WHERE(F64, where_64),
    WHERE(F16, where_32, .stored = where_16),
    WHERE(BF16, where_32, .stored = where_16),
    WHERE(I8, where_8),
    WHERE(I16, where_16),
    WHERE(I32, where_32),
    WHERE(I64, where_64),
    WHERE(U8, where_8),
    WHERE(BOOL, where_8),
};
TNC_PUBLISH(compare, records);
