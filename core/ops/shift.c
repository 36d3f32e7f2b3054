/* Shifts of bits, by powers of two from a table. */
#include "core/call/promote.h"
#include "core/ops/functions.h"
#include "core/ops/resample.h"

/* Of an integer dtype, as i64. A shift that leaves no bit is clamped for the table, and its result
 * replaced. */
static tn_status shift(const char *call, const tn_cell *args, tn_dtype dtype, tn_tensor *other,
                       bool left, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t bits = 8 * (int64_t)tni_dtype_size(dtype), powers[64];
    if (tni_is_float(dtype) || dtype == TN_BOOL)
        return tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; the bits of integers are shifted",
                        call, tn_dtype_name(dtype));
    for (int i = 0; i < 64; i++)
        powers[i] = (int64_t)((uint64_t)1 << i);
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, tni_to_dtype(self, TN_I64));
    tn_tensor *by = tni_own(&tmp, tni_to_dtype(other, TN_I64));
    tn_tensor *out = tni_own(
        &tmp, tni_bitwise_or(tni_own(&tmp, tni_lt_scalar(by, tn_int(0))),
                             tni_own(&tmp, tni_gt_scalar(by, tn_int(left ? bits - 1 : 62)))));
    tn_tensor *table =
        tni_own(&tmp, tni_table(self->device, TN_I64, TN_SHAPE(64), powers, sizeof powers));
    by = tni_own(&tmp, tni_clamp(by, tn_int(0), tn_int(left ? 63 : 62)));
    tn_tensor *power = table && by ? tni_own(&tmp, tni_take(table, by)) : NULL;
    tn_tensor *gone, *y;
    if (left) {
        y = power ? tni_own(&tmp, tni_mul(x, power)) : NULL;
        gone = tni_own(&tmp, tni_zero_of(x));
    } else {
        y = power ? tni_own(&tmp, tni_floor_divide(x, power)) : NULL;
        gone = tni_own(&tmp, tni_to_dtype(tni_own(&tmp, tni_lt_scalar(x, tn_int(0))), TN_I64));
        gone = tni_own(&tmp, tni_neg(gone));
    }
    y = y ? tni_own(&tmp, tni_where(out, gone, y)) : NULL;
    return tni_temps_return(&tmp, y ? tni_own(&tmp, tni_to_dtype(y, dtype)) : NULL, rets);
}

static tn_dtype promoted(const tn_cell *args) {
    tni_promotion promotion = TNI_NO_PROMOTION;
    tni_promotion_add(&promotion, &args[0]);
    tni_promotion_add(&promotion, &args[1]);
    return tni_promotion_result(&promotion);
}

tn_status tni_run_shift_by_tensor(const char *call, const tn_cell *args, tn_cell *rets, bool left) {
    return shift(call, args, promoted(args), tni_arg_tensor(&args[1]), left, rets);
}

tn_status tni_run_shift_by_number(const char *call, const tn_cell *args, tn_cell *rets, bool left) {
    if (args[1].tag == TN_CELL_F64)
        return tni_fail(TN_ERR_DTYPE, "%s: other is %g; bits are shifted by a whole number", call,
                        args[1].v.f64);
    int64_t by = args[1].tag == TN_CELL_BOOL ? args[1].v.boolean : args[1].v.i64;
    tni_temps tmp = {0};
    tn_tensor *other = tni_own(
        &tmp, tni_full(TN_SCALAR_SHAPE, tn_int(by), TN_I64, tni_arg_tensor(&args[0])->device->id));
    tn_status status = other ? shift(call, args, promoted(args), other, left, rets) : tni_failed();
    tni_temps_finish(&tmp);
    return status;
}
