/* Comparisons of whole tensors, whose answer is the host's. */
#include "core/call/wrap.h"
#include "core/ops/functions.h"

/* Are all of `flags`, which is dropped, true? */
static tn_status are_all(tn_tensor *flags, bool *out) {
    int64_t value = 0;
    tn_tensor *all = flags ? tni_all(flags) : NULL;
    tn_status status = all ? tn_item_i64(all, &value) : tni_failed();
    tni_drop(all);
    tni_drop(flags);
    *out = status == TN_OK && value != 0;
    return status;
}

/* Integers of one dtype are equal where their carriers are; complex numbers where both halves are. */
static tn_status equal_in_parts(tn_tensor *self, tn_tensor *other, bool *out) {
    tn_dtype dtype = self->view.dtype;
    tn_dtype part = tni_is_complex(dtype) ? tni_real_dtype(dtype) : tni_carrier_of(dtype).dtype;
    tn_status status = TN_OK;
    *out = true;
    for (int32_t i = 0; i < (tni_is_complex(dtype) ? 2 : 1) && *out && status == TN_OK; i++) {
        tn_tensor *a = tni_tensor_part(self, part, i), *b = tni_tensor_part(other, part, i);
        status = a && b ? are_all(tni_eq(a, b), out) : tni_failed();
        tni_drop(a);
        tni_drop(b);
    }
    *out = *out && status == TN_OK;
    return status;
}

static tn_status check(const char *call, tn_tensor *self, tn_tensor *other, const bool *out) {
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: out is NULL", call);
    return tni_no_tensor(self, call) || tni_no_tensor(other, call) ? tni_failed() : TN_OK;
}

tn_status tn_equal(tn_tensor *self, tn_tensor *other, bool *out) {
    TNI_TRY(check("tn_equal", self, other, out));
    *out = false;
    if (!tni_same_shape(self, other))
        return TN_OK;
    bool is_stored =
        self->view.dtype == other->view.dtype && tni_is_storage_dtype(self->view.dtype);
    return is_stored ? equal_in_parts(self, other, out) : are_all(tni_eq(self, other), out);
}

tn_status tn_allclose(tn_tensor *self, tn_tensor *other, double rtol, double atol, bool equal_nan,
                      bool *out) {
    TNI_TRY(check("tn_allclose", self, other, out));
    *out = false;
    return are_all(tni_isclose(self, other, rtol, atol, equal_nan), out);
}
