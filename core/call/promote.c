/* Which dtype a call computes in: PyTorch's result_type, and what may be stored where.
 *
 * Tensors with dimensions decide; 0-dim tensors, and after them plain scalars, only if they are of
 * a higher category (bool < integer < floating < complex) than what decided before. */
#include "core/call/call.h"

static tn_dtype join(tn_dtype a, tn_dtype b) {
    return a == TN_DTYPE_NONE ? b : b == TN_DTYPE_NONE ? a : tn_promote(a, b);
}

void tni_promotion_add(tni_promotion *p, const tn_cell *cell) {
    switch (cell->tag) {
    case TN_CELL_TENSOR: {
        const tn_tensor *t = cell->v.pointer;
        tn_dtype *slot = t->view.rank > 0 ? &p->dims : &p->zero_dim;
        bool is_first = *slot == TN_DTYPE_NONE;
        *slot = join(*slot, t->view.dtype);
        p->to_none |= !is_first && *slot == TN_DTYPE_NONE;
        break;
    }
    case TN_CELL_F64:
        p->scalars = join(p->scalars, TN_F32);
        break;
    case TN_CELL_I64:
        p->scalars = join(p->scalars, TN_I64);
        break;
    case TN_CELL_BOOL:
        p->scalars = join(p->scalars, TN_BOOL);
        break;
    default:
        break;
    }
}

static tn_dtype combine(tn_dtype higher, tn_dtype lower) {
    if (tni_is_complex(higher))
        return higher;
    if (higher != TN_DTYPE_NONE && tni_is_float(higher))
        return tni_is_complex(lower) ? join(higher, TN_C64) : higher; /* as precise as it is */
    if (higher == TN_BOOL || tni_is_complex(lower) ||
        (lower != TN_DTYPE_NONE && tni_is_float(lower)))
        return join(higher, lower);
    return higher != TN_DTYPE_NONE ? higher : lower;
}

tn_dtype tni_promotion_result(const tni_promotion *p) {
    return p->to_none ? TN_DTYPE_NONE : combine(combine(p->dims, p->zero_dim), p->scalars);
}

tn_dtype tni_common_float(const tn_cell *args, uint32_t mask) {
    tni_promotion p = TNI_NO_PROMOTION;
    for (; mask; mask &= mask - 1)
        tni_promotion_add(&p, &args[__builtin_ctz(mask)]);
    tn_dtype dtype = tni_promotion_result(&p);
    return tni_is_float(dtype) ? dtype : TN_F32;
}

bool tni_fits(tn_scalar value, tn_dtype dtype) {
    if (value.tag != TN_CELL_F64 || tni_is_float(dtype) || tni_is_complex(dtype) ||
        dtype == TN_BOOL)
        return true;
    return value.v.f64 > -0x1p63 && value.v.f64 < (dtype == TN_U64 ? 0x1p64 : 0x1p63);
}

bool tni_can_cast(tn_dtype from, tn_dtype to) {
    if (tni_is_complex(from) || tni_is_complex(to))
        return tni_is_complex(to);
    if (tni_is_float(from) && !tni_is_float(to))
        return false;
    return from == TN_BOOL || to != TN_BOOL;
}
