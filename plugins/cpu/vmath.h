/* The elementary functions of ../elementary.h, and sin, cos and tan, which are made as those
 * are; their polynomials are FreeBSD's (msun, k_sinf.c and k_cosf.c). f64 uses the C library. */
#ifndef TNI_PLUGINS_CPU_VMATH_H
#define TNI_PLUGINS_CPU_VMATH_H

#include "plugins/cpu/elementary.h"

#include <math.h>

/* sin and cos: x = n pi/2 + r in f64 with pi/2 in two parts, good for |x| < TNC_TRIG_MAX. */
#define TNC_TRIG_MAX 1.0e6f

ELEMENTARY float tnc_sin_quarter(float x, uint64_t quarter) {
    double shifted = (double)x * 0.636619772367581343076 + ROUND_F64;
    double n = shifted - ROUND_F64;
    double r = x - n * 1.57079632673412561417;
    r = r - n * 6.07710050650619224932e-11;
    double z = r * r;
    double s = 2.7183114939898219064e-6;
    s = s * z - 1.98393348360966317347e-4;
    s = s * z + 8.3333293858894631756e-3;
    s = s * z - 1.66666666416265235595e-1;
    s = s * (z * r) + r;
    double c = 2.43904487962774090654e-5;
    c = c * z - 1.38867637746099294692e-3;
    c = c * z + 4.16666233237390631894e-2;
    c = c * z - 4.99999997251031003120e-1;
    c = c * z + 1.0;
    uint64_t q = tnc_bits64(shifted) + quarter;
    double y = q & 1 ? c : s;
    return (float)tnc_double(tnc_bits64(y) ^ (q & 2) << 62);
}

ELEMENTARY float tnc_sin(float x) {
    return x == 0.0f ? x : tnc_sin_quarter(x, 0);
}

ELEMENTARY float tnc_cos(float x) {
    return tnc_sin_quarter(x, 1);
}

ELEMENTARY float tnc_tan(float x) {
    return x == 0.0f ? x : tnc_sin_quarter(x, 0) / tnc_sin_quarter(x, 1);
}

/* ---- the same names for f64 -------------------------------------------------------------- */

static inline double em_normal_cdf_f64(double x) {
    return 0.5 * erfc(x * -0.707106781186547524400844362104849039);
}

static inline double em_sigmoid_f64(double x) {
    double e = exp(-fabs(x)), r = 1 / (1 + e);
    return x < 0 ? e * r : r;
}

#endif
