/* Start + i * step, along one dimension. One work item makes one element.
 *
 *   T          the dtype
 *
 * Floating numbers are computed in f64 and rounded once. On a device without f64 integers do what
 * f64 does: the product and the sum are each rounded to 53 digits. */
#include "plugins/shared/gpu/device/arange.params.h"

#if !IS_FLOAT(T)

DEVICE void put(GLOBAL stored(T) * out, i64 to, i64 i, i64 start, i64 step) {
    store(T)(out, to, (computed(T))((u64)start + (u64)i * (u64)step));
}

#elif HAS_F64

DEVICE void put(GLOBAL stored(T) * out, i64 to, i64 i, i64 start, i64 step) {
    out[to] = narrow_f64_to(T)(number(f64)(start) + (f64)i * number(f64)(step));
}

#else

/* magnitude * 2^exponent */
typedef struct real {
    u64 magnitude;
    i32 exponent;
    bool negative;
} real;

/* How many binary digits x has. */
DEVICE i32 width(u64 x) {
    i32 n = 0;
    for (i32 s = 32; s; s >>= 1)
        if (x >> s) {
            x >>= s;
            n += s;
        }
    return n + (i32)x;
}

/* Without its last n digits; that they were not all zeros is kept in the last that stays. */
DEVICE u64 shift_sticky(u64 x, i32 n) {
    if (n <= 0)
        return x;
    return n > 63 ? x != 0 : x >> n | ((x & (((u64)1 << n) - 1)) != 0);
}

/* Loses its last n digits; to nearest even, or sticky. */
DEVICE real rounded(real x, i32 n, bool sticky) {
    if (n <= 0)
        return x;
    x.exponent += n;
    if (sticky || n > 63) {
        x.magnitude = sticky ? shift_sticky(x.magnitude, n) : 0;
        return x;
    }
    u64 rest = x.magnitude & (((u64)1 << n) - 1), middle = (u64)1 << (n - 1);
    x.magnitude >>= n;
    x.magnitude += rest > middle || (rest == middle && (x.magnitude & 1));
    return x;
}

/* As f64 keeps it. */
DEVICE real rounded_f64(real x) {
    return rounded(x, width(x.magnitude) - 53, false);
}

DEVICE real times(real x, u64 n) {
    u64 high = mul_high_u64(x.magnitude, n), low = x.magnitude * n;
    i32 over = width(high);
    x.magnitude = low;
    if (over) {
        x.magnitude = high << (64 - over) | shift_sticky(low, over);
        x.exponent += over;
    }
    return rounded_f64(x);
}

/* The one with more digits in front of the point goes ten digits up, so that there is room for what
 * the other has behind its end. */
DEVICE real sum(real a, real b) {
    if (!a.magnitude || !b.magnitude) {
        if (!a.magnitude && !b.magnitude)
            a.negative = a.negative && b.negative;
        return a.magnitude ? a : b.magnitude ? b : a;
    }
    i32 up_a = 63 - width(a.magnitude), up_b = 63 - width(b.magnitude);
    a.magnitude <<= up_a;
    a.exponent -= up_a;
    b.magnitude <<= up_b;
    b.exponent -= up_b;
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.magnitude < b.magnitude)) {
        real c = a;
        a = b;
        b = c;
    }
    b.magnitude = shift_sticky(b.magnitude, a.exponent - b.exponent);
    if (a.negative == b.negative)
        a.magnitude += b.magnitude;
    else
        a.magnitude -= b.magnitude;
    if (!a.magnitude)
        a.negative = false;
    return rounded_f64(a);
}

DEVICE real real_of_bits(u64 bits) {
    i32 e = (i32)(bits >> 52 & 0x7ff);
    real x;
    x.magnitude = (bits & (((u64)1 << 52) - 1)) | (u64)(e != 0) << 52;
    x.exponent = (e ? e : 1) - 1075;
    x.negative = bits >> 63 != 0;
    return x;
}

/* Infinity and NaN as they are, all else as 0. */
DEVICE f32 special(u64 bits) {
    if ((bits >> 52 & 0x7ff) != 0x7ff)
        return 0;
    u32 high = (u32)(bits >> 63) << 31 | 0x7f800000u;
    return f32_of_bits(bits & (((u64)1 << 52) - 1) ? high | 0x400000u : high);
}

/* Sticky where it is rounded again as it is stored. */
DEVICE f32 f32_of_real(real x) {
    i32 over = width(x.magnitude) - 24, below = -149 - x.exponent;
    x = rounded(x, over > below ? over : below, DTYPE(T) != DTYPE_f32);
    f32 size = ldexp((f32)x.magnitude, x.exponent);
    return x.negative ? -size : size;
}

DEVICE void put(GLOBAL stored(T) * out, i64 to, i64 i, i64 start, i64 step) {
    f32 a = special((u64)start), b = special((u64)step);
    f32 x = a + (f32)(i != 0) * b;
    if (a == 0 && b == 0)
        x = f32_of_real(sum(real_of_bits((u64)start), times(real_of_bits((u64)step), (u64)i)));
    store(T)(out, to, x);
}

#endif

KERNEL(arange)(GLOBAL stored(T) * out, const arange_params p) {
    i64 i = (i64)GLOBAL_ID(0);
    if (i < p.numel)
        put(out, p.offset + i * p.stride, i, p.start, p.step);
}
