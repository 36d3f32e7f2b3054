/* Instructions against C, with random bits and edges: in all lanes, and where every second has no
 * turn. */
#include "tests/cuda/ptx/ptx_rig.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the instruction under test ---------------------------------------------------------- */

enum { BLOCKS = 16, THREADS = 256, VALUES = BLOCKS * THREADS };
#define BEFORE UINT64_C(0xdeadbeefcafef00d)

typedef uint64_t reference(uint64_t a, uint64_t b, uint64_t c, uint64_t e);
typedef struct instruction {
    const char *name,
        *operands; /* "/" between results and sources; of two results the second is not compared */
    reference *expected;
    char kind; /* of the result: i, f (of its bytes), p */
} instruction;

static bool same(const instruction *t, uint64_t x, uint64_t y, int bytes) {
    if (t->kind == 'f' && bytes == 4) {
        float f, g;
        memcpy(&f, &x, 4);
        memcpy(&g, &y, 4);
        return (f != f && g != g) || (uint32_t)x == (uint32_t)y;
    }
    if (t->kind == 'f' && bytes == 8) {
        double f, g;
        memcpy(&f, &x, 8);
        memcpy(&g, &y, 8);
        return (f != f && g != g) || x == y;
    }
    uint64_t mask = t->operands[0] == 'p' ? 1
                    : bytes == 8          ? UINT64_MAX
                                          : (UINT64_C(1) << 8 * bytes) - 1;
    return !((x ^ y) & mask);
}

static void check(const instruction *t) {
    char text[4096];
    rig_kernel(text, sizeof text, t->name, t->operands);
    rig *r = rig_open(text, 1 << 20);
    uint64_t arrays[6];
    uint64_t *host[6];
    uint64_t state = 17;
    size_t results = strcspn(t->operands, "/");
    int bytes = t->operands[0] == 'p' ? 4 : t->operands[0] - '0';
    for (int k = 0; k < 6; k++) {
        arrays[k] = rig_take(r, VALUES * 8);
        host[k] = rig_host(r, arrays[k]);
    }
    for (uint64_t odd = 0; odd < 2; odd++) {
        for (int k = 0; k < 6; k++)
            for (int v = 0; v < VALUES; v++)
                host[k][v] = k < (int)results ? BEFORE : rig_bits(&state);
        RIG_RUN(r, "k", BLOCKS, THREADS, arrays[0], arrays[1], arrays[2], arrays[3], arrays[4],
                arrays[5], odd);
        for (int v = 0; v < VALUES; v++) {
            uint64_t s[4];
            for (size_t k = 0; k < 4; k++)
                s[k] = results + k < 6 ? host[results + k][v] : 0;
            uint64_t want = odd && v % 2 ? t->operands[0] == 'p' ? BEFORE & 1 : BEFORE
                                         : t->expected(s[0], s[1], s[2], s[3]);
            if (!same(t, host[0][v], want, bytes))
                fail_msg("%s of 0x%llx, 0x%llx, 0x%llx, 0x%llx: 0x%llx, not 0x%llx", t->name,
                         (unsigned long long)s[0], (unsigned long long)s[1],
                         (unsigned long long)s[2], (unsigned long long)s[3],
                         (unsigned long long)host[0][v], (unsigned long long)want);
        }
    }
    rig_close(r);
}

/* ---- in C -------------------------------------------------------------------------------- */

#define S16(x) ((int16_t)(x))
#define S32(x) ((int32_t)(x))
#define S64(x) ((int64_t)(x))
#define U16(x) ((uint16_t)(x))
#define U32(x) ((uint32_t)(x))
#define P(x) ((x)&1)
static float F(uint64_t x) {
    uint32_t bits = (uint32_t)x;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static double D(uint64_t x) {
    double f;
    memcpy(&f, &x, 8);
    return f;
}
static uint64_t f(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static uint64_t d(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static int64_t divided(int64_t x, int64_t y, int64_t least) {
    return y == 0 ? -1 : x == least && y == -1 ? least : x / y;
}
static int64_t remainder_of(int64_t x, int64_t y) {
    return y == 0 ? x : y == -1 ? 0 : x % y;
}
static uint64_t bits_of(uint64_t x, unsigned begin, unsigned length, unsigned bits,
                        bool is_signed) {
    uint64_t out = 0;
    unsigned top = begin + length - 1 < bits - 1 ? begin + length - 1 : bits - 1;
    for (unsigned k = 0; k < bits && length; k++)
        if (k < length && begin + k < bits)
            out |= (x >> (begin + k) & 1) << k;
        else if (is_signed)
            out |= (x >> top & 1) << k;
    return out;
}
static uint64_t put_bits(uint64_t x, uint64_t into, unsigned begin, unsigned length,
                         unsigned bits) {
    for (unsigned k = 0; k < length && begin + k < bits; k++)
        into = (into & ~(UINT64_C(1) << (begin + k))) | (x >> k & 1) << (begin + k);
    return into;
}
static uint64_t mirrored(uint64_t x, unsigned bits) {
    uint64_t out = 0;
    for (unsigned k = 0; k < bits; k++)
        out |= (x >> k & 1) << (bits - 1 - k);
    return out;
}
static uint64_t leading(uint64_t x, unsigned bits) {
    unsigned n = 0;
    while (n < bits && !(x >> (bits - 1 - n) & 1))
        n++;
    return n;
}
static uint64_t ones(uint64_t x, unsigned bits) {
    unsigned n = 0;
    for (unsigned k = 0; k < bits; k++)
        n += x >> k & 1;
    return n;
}
static uint64_t looked_up(uint64_t a, uint64_t b, uint64_t c, unsigned table) {
    uint64_t out = 0;
    for (int k = 0; k < 32; k++)
        out |= (uint64_t)(table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k;
    return out;
}
static uint64_t picked(uint64_t a, uint64_t b, uint64_t how) {
    uint8_t bytes[8];
    uint32_t x = (uint32_t)a, y = (uint32_t)b, out = 0;
    memcpy(bytes, &x, 4);
    memcpy(bytes + 4, &y, 4);
    for (int k = 0; k < 4; k++) {
        unsigned pick = how >> 4 * k & 15;
        uint32_t byte = bytes[pick & 7];
        out |= (pick & 8 ? (byte >> 7) * 255u : byte) << 8 * k;
    }
    return out;
}
static uint64_t least_of(float x, float y) {
    return f(x != x ? y : y != y ? x : x == y ? (signbit(x) ? x : y) : fminf(x, y));
}
static uint64_t most_of(float x, float y) {
    return f(x != x ? y : y != y ? x : x == y ? (signbit(x) ? y : x) : fmaxf(x, y));
}
static uint64_t least_of_doubles(double x, double y) {
    return d(x != x ? y : y != y ? x : x == y ? (signbit(x) ? x : y) : fmin(x, y));
}
static uint64_t most_of_doubles(double x, double y) {
    return d(x != x ? y : y != y ? x : x == y ? (signbit(x) ? y : x) : fmax(x, y));
}
static float to_zero(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}
static float in_unit(float x) {
    return x > 1 ? 1 : x > 0 ? x : 0;
}
static float rounded_sum(float x, float y, float z, int direction) {
    volatile float a = x, b = y, c = z;
    fesetround(direction);
    volatile float out = fmaf(a, b, c);
    fesetround(FE_TONEAREST);
    return out;
}
static double rounded_quotient(double x, double y, int direction) {
    volatile double a = x, b = y;
    fesetround(direction);
    volatile double out = a / b;
    fesetround(FE_TONEAREST);
    return out;
}
static int64_t dot(uint64_t a, uint64_t b, uint64_t c, bool sa, bool sb) {
    int64_t sum = S32(c);
    for (int k = 0; k < 4; k++) {
        int x = a >> 8 * k & 255, y = b >> 8 * k & 255;
        sum += (sa && x > 127 ? x - 256 : x) * (sb && y > 127 ? y - 256 : y);
    }
    return sum;
}

/* X(id, name, operands, kind, expression of a, b, c and e) */
#define INTEGERS(X) \
    X(add_u16, "add.u16", "2/22", 'i', a + b) \
    X(add_s32, "add.s32", "4/44", 'i', a + b) \
    X(add_s64, "add.s64", "8/88", 'i', a + b) \
    X(sub_s16, "sub.s16", "2/22", 'i', a - b) \
    X(sub_u32, "sub.u32", "4/44", 'i', a - b) \
    X(sub_s64, "sub.s64", "8/88", 'i', a - b) \
    X(add_sat, "add.sat.s32", "4/44", 'i', \
      S64(S32(a)) + S32(b) > INT32_MAX   ? INT32_MAX \
      : S64(S32(a)) + S32(b) < INT32_MIN ? INT32_MIN \
                                         : S32(a) + S32(b)) \
    X(mul_lo_s16, "mul.lo.s16", "2/22", 'i', a *b) \
    X(mul_lo_s32, "mul.lo.s32", "4/44", 'i', a *b) \
    X(mul_lo_u64, "mul.lo.u64", "8/88", 'i', a *b) \
    X(mul_hi_u16, "mul.hi.u16", "2/22", 'i', (uint64_t)U16(a) * U16(b) >> 16) \
    X(mul_hi_s32, "mul.hi.s32", "4/44", 'i', S64(S32(a)) * S32(b) >> 32) \
    X(mul_hi_u32, "mul.hi.u32", "4/44", 'i', (uint64_t)U32(a) * U32(b) >> 32) \
    X(mul_hi_s64, "mul.hi.s64", "8/88", 'i', (uint64_t)((__int128)S64(a) * S64(b) >> 64)) \
    X(mul_hi_u64, "mul.hi.u64", "8/88", 'i', (uint64_t)((unsigned __int128)a * b >> 64)) \
    X(mul_wide_s16, "mul.wide.s16", "4/22", 'i', (int64_t)S16(a) * S16(b)) \
    X(mul_wide_s32, "mul.wide.s32", "8/44", 'i', (int64_t)S32(a) * S32(b)) \
    X(mul_wide_u32, "mul.wide.u32", "8/44", 'i', (uint64_t)U32(a) * U32(b)) \
    X(mad_lo_s32, "mad.lo.s32", "4/444", 'i', a *b + c) \
    X(mad_lo_s64, "mad.lo.s64", "8/888", 'i', a *b + c) \
    X(mad_hi_u32, "mad.hi.u32", "4/444", 'i', ((uint64_t)U32(a) * U32(b) >> 32) + c) \
    X(mad_wide_s32, "mad.wide.s32", "8/448", 'i', (uint64_t)((int64_t)S32(a) * S32(b)) + c) \
    X(mad_wide_u16, "mad.wide.u16", "4/224", 'i', (uint64_t)U16(a) * U16(b) + c) \
    X(mul24, "mul24.lo.s32", "4/44", 'i', S64(S32(U32(a << 8)) >> 8) * (S32(U32(b << 8)) >> 8)) \
    X(div_s16, "div.s16", "2/22", 'i', divided(S16(a), S16(b), INT16_MIN)) \
    X(div_u16, "div.u16", "2/22", 'i', U16(b) ? U16(a) / U16(b) : UINT16_MAX) \
    X(div_s32, "div.s32", "4/44", 'i', divided(S32(a), S32(b), INT32_MIN)) \
    X(div_u32, "div.u32", "4/44", 'i', U32(b) ? U32(a) / U32(b) : UINT32_MAX) \
    X(div_s64, "div.s64", "8/88", 'i', divided(S64(a), S64(b), INT64_MIN)) \
    X(div_u64, "div.u64", "8/88", 'i', b ? a / b : UINT64_MAX) \
    X(rem_s32, "rem.s32", "4/44", 'i', remainder_of(S32(a), S32(b))) \
    X(rem_u32, "rem.u32", "4/44", 'i', U32(b) ? U32(a) % U32(b) : a) \
    X(rem_s64, "rem.s64", "8/88", 'i', remainder_of(S64(a), S64(b))) \
    X(rem_u16, "rem.u16", "2/22", 'i', U16(b) ? U16(a) % U16(b) : a) \
    X(abs_s32, "abs.s32", "4/4", 'i', S32(a) < 0 ? -a : a) \
    X(abs_s64, "abs.s64", "8/8", 'i', S64(a) < 0 ? -a : a) \
    X(neg_s16, "neg.s16", "2/2", 'i', -a) \
    X(neg_s64, "neg.s64", "8/8", 'i', -a) \
    X(min_s16, "min.s16", "2/22", 'i', S16(a) < S16(b) ? a : b) \
    X(min_u32, "min.u32", "4/44", 'i', U32(a) < U32(b) ? a : b) \
    X(max_s32, "max.s32", "4/44", 'i', S32(a) > S32(b) ? a : b) \
    X(max_u64, "max.u64", "8/88", 'i', a > b ? a : b) \
    X(min_s64, "min.s64", "8/88", 'i', S64(a) < S64(b) ? a : b) \
    X(sad_u32, "sad.u32", "4/444", 'i', (U32(a) > U32(b) ? a - b : b - a) + c) \
    X(and_b16, "and.b16", "2/22", 'i', a &b) \
    X(or_b32, "or.b32", "4/44", 'i', a | b) \
    X(xor_b64, "xor.b64", "8/88", 'i', a ^ b) \
    X(not_b32, "not.b32", "4/4", 'i', ~a) \
    X(cnot_b32, "cnot.b32", "4/4", 'i', U32(a) == 0) \
    X(shl_b16, "shl.b16", "2/24", 'i', U32(b) > 15 ? 0 : a << U32(b)) \
    X(shl_b32, "shl.b32", "4/44", 'i', U32(b) > 31 ? 0 : a << U32(b)) \
    X(shl_b64, "shl.b64", "8/84", 'i', U32(b) > 63 ? 0 : a << U32(b)) \
    X(shr_u16, "shr.u16", "2/24", 'i', U32(b) > 15 ? 0 : U16(a) >> U32(b)) \
    X(shr_s16, "shr.s16", "2/24", 'i', S16(a) >> (U32(b) > 15 ? 15 : U32(b))) \
    X(shr_u32, "shr.u32", "4/44", 'i', U32(b) > 31 ? 0 : U32(a) >> U32(b)) \
    X(shr_s32, "shr.s32", "4/44", 'i', S32(a) >> (U32(b) > 31 ? 31 : U32(b))) \
    X(shr_b64, "shr.b64", "8/84", 'i', U32(b) > 63 ? 0 : a >> U32(b)) \
    X(shr_s64, "shr.s64", "8/84", 'i', S64(a) >> (U32(b) > 63 ? 63 : U32(b))) \
    X(shf_l_wrap, "shf.l.wrap.b32", "4/444", 'i', \
      ((uint64_t)U32(b) << 32 | U32(a)) << (c & 31) >> 32) \
    X(shf_r_wrap, "shf.r.wrap.b32", "4/444", 'i', ((uint64_t)U32(b) << 32 | U32(a)) >> (c & 31)) \
    X(shf_l_clamp, "shf.l.clamp.b32", "4/444", 'i', \
      U32(c) >= 32 ? a : ((uint64_t)U32(b) << 32 | U32(a)) << U32(c) >> 32) \
    X(shf_r_clamp, "shf.r.clamp.b32", "4/444", 'i', \
      U32(c) >= 32 ? b : ((uint64_t)U32(b) << 32 | U32(a)) >> U32(c)) \
    X(popc_b32, "popc.b32", "4/4", 'i', ones(a, 32)) \
    X(popc_b64, "popc.b64", "4/8", 'i', ones(a, 64)) \
    X(clz_b32, "clz.b32", "4/4", 'i', leading(a, 32)) \
    X(clz_b64, "clz.b64", "4/8", 'i', leading(a, 64)) \
    X(brev_b32, "brev.b32", "4/4", 'i', mirrored(a, 32)) \
    X(brev_b64, "brev.b64", "8/8", 'i', mirrored(a, 64)) \
    X(bfe_u32, "bfe.u32", "4/444", 'i', bits_of(a, b & 255, c & 255, 32, false)) \
    X(bfe_s32, "bfe.s32", "4/444", 'i', bits_of(a, b & 255, c & 255, 32, true)) \
    X(bfe_u64, "bfe.u64", "8/844", 'i', bits_of(a, b & 255, c & 255, 64, false)) \
    X(bfe_s64, "bfe.s64", "8/844", 'i', bits_of(a, b & 255, c & 255, 64, true)) \
    X(bfi_b32, "bfi.b32", "4/4444", 'i', put_bits(a, b, c & 255, e & 255, 32)) \
    X(bfi_b64, "bfi.b64", "8/8844", 'i', put_bits(a, b, c & 255, e & 255, 64)) \
    X(bfind_u32, "bfind.u32", "4/4", 'i', U32(a) ? 31 - leading(a, 32) : UINT32_MAX) \
    X(bfind_s32, "bfind.s32", "4/4", 'i', \
      U32(S32(a) < 0 ? ~a : a) ? 31 - leading(S32(a) < 0 ? ~a : a, 32) : UINT32_MAX) \
    X(bfind_shift, "bfind.shiftamt.u64", "4/8", 'i', a ? leading(a, 64) : UINT32_MAX) \
    X(prmt, "prmt.b32", "4/444", 'i', picked(a, b, c)) \
    X(prmt_ecl, "prmt.b32.ecl", "4/444", 'i', \
      picked(a, b, (unsigned[]){0x3210, 0x3211, 0x3222, 0x3333}[c & 3])) \
    X(dp4a_s, "dp4a.s32.s32", "4/444", 'i', dot(a, b, c, true, true)) \
    X(dp4a_us, "dp4a.u32.s32", "4/444", 'i', dot(a, b, c, false, true)) \
    X(slct, "slct.b64.s32", "8/884", 'i', S32(c) >= 0 ? a : b) \
    X(selp, "selp.b64", "8/88p", 'i', P(c) ? a : b) \
    X(selp_16, "selp.b16", "2/22p", 'i', P(c) ? a : b) \
    X(and_pred, "and.pred", "p/pp", 'p', a &b) \
    X(xor_pred, "xor.pred", "p/pp", 'p', a ^ b) \
    X(not_pred, "not.pred", "p/p", 'p', ~a) \
    X(lt_s16, "setp.lt.s16", "p/22", 'p', S16(a) < S16(b)) \
    X(ge_u16, "setp.ge.u16", "p/22", 'p', U16(a) >= U16(b)) \
    X(eq_b32, "setp.eq.b32", "p/44", 'p', U32(a) == U32(b)) \
    X(lt_s32, "setp.lt.s32", "p/44", 'p', S32(a) < S32(b)) \
    X(hi_u32, "setp.hi.u32", "p/44", 'p', U32(a) > U32(b)) \
    X(le_s64, "setp.le.s64", "p/88", 'p', S64(a) <= S64(b)) \
    X(gt_u64, "setp.gt.u64", "p/88", 'p', a > b) \
    X(ne_and, "setp.ne.and.s32", "pp/44p", 'p', (U32(a) != U32(b)) & P(c)) \
    X(lt_xor, "setp.lt.xor.u32", "p/44p", 'p', (U32(a) < U32(b)) ^ P(c)) \
    X(set_u32, "set.gt.u32.s32", "4/44", 'i', S32(a) > S32(b) ? -1 : 0) \
    X(set_f32, "set.leu.or.f32.f32", "4/44p", 'i', !(F(a) > F(b)) || P(c) ? 0x3f800000 : 0)

#define FLOATS(X) \
    X(add_f32, "add.rn.f32", "4/44", 'f', f(F(a) + F(b))) \
    X(add_plain, "add.f32", "4/44", 'f', f(F(a) + F(b))) \
    X(add_ftz, "add.ftz.f32", "4/44", 'f', f(to_zero(to_zero(F(a)) + to_zero(F(b))))) \
    X(add_sat_f32, "add.sat.f32", "4/44", 'f', f(in_unit(F(a) + F(b)))) \
    X(sub_f32, "sub.rn.f32", "4/44", 'f', f(F(a) - F(b))) \
    X(mul_f32, "mul.rn.f32", "4/44", 'f', f(F(a) * F(b))) \
    X(mul_ftz_sat, "mul.ftz.sat.f32", "4/44", 'f', \
      f(in_unit(to_zero(to_zero(F(a)) * to_zero(F(b)))))) \
    X(div_f32, "div.rn.f32", "4/44", 'f', f(F(a) / F(b))) \
    X(fma_f32, "fma.rn.f32", "4/444", 'f', f(fmaf(F(a), F(b), F(c)))) \
    X(fma_rz, "fma.rz.f32", "4/444", 'f', f(rounded_sum(F(a), F(b), F(c), FE_TOWARDZERO))) \
    X(fma_rm, "fma.rm.f32", "4/444", 'f', f(rounded_sum(F(a), F(b), F(c), FE_DOWNWARD))) \
    X(fma_rp, "fma.rp.f32", "4/444", 'f', f(rounded_sum(F(a), F(b), F(c), FE_UPWARD))) \
    X(add_rm, "add.rm.f32", "4/44", 'f', f(rounded_sum(F(a), 1, F(b), FE_DOWNWARD))) \
    X(rcp_f32, "rcp.rn.f32", "4/4", 'f', f(1 / F(a))) \
    X(sqrt_f32, "sqrt.rn.f32", "4/4", 'f', f(sqrtf(F(a)))) \
    X(abs_f32, "abs.f32", "4/4", 'f', f(fabsf(F(a)))) \
    X(neg_f32, "neg.f32", "4/4", 'f', f(-F(a))) \
    X(min_f32, "min.f32", "4/44", 'f', least_of(F(a), F(b))) \
    X(max_f32, "max.f32", "4/44", 'f', most_of(F(a), F(b))) \
    X(max_nan, "max.NaN.f32", "4/44", 'f', \
      F(a) != F(a) || F(b) != F(b) ? f(NAN) : most_of(F(a), F(b))) \
    X(copysign_f32, "copysign.f32", "4/44", 'i', (a & 0x80000000) | (b & 0x7fffffff)) \
    X(copysign_f64, "copysign.f64", "8/88", 'i', (a & INT64_MIN) | (b & INT64_MAX)) \
    X(add_f64, "add.rn.f64", "8/88", 'f', d(D(a) + D(b))) \
    X(sub_f64, "sub.f64", "8/88", 'f', d(D(a) - D(b))) \
    X(mul_f64, "mul.rn.f64", "8/88", 'f', d(D(a) * D(b))) \
    X(div_f64, "div.rn.f64", "8/88", 'f', d(D(a) / D(b))) \
    X(div_rp_f64, "div.rp.f64", "8/88", 'f', d(rounded_quotient(D(a), D(b), FE_UPWARD))) \
    X(fma_f64, "fma.rn.f64", "8/888", 'f', d(fma(D(a), D(b), D(c)))) \
    X(sqrt_f64, "sqrt.rn.f64", "8/8", 'f', d(sqrt(D(a)))) \
    X(rcp_f64, "rcp.rn.f64", "8/8", 'f', d(1 / D(a))) \
    X(min_f64, "min.f64", "8/88", 'f', least_of_doubles(D(a), D(b))) \
    X(max_f64, "max.f64", "8/88", 'f', most_of_doubles(D(a), D(b))) \
    X(neg_f64, "neg.f64", "8/8", 'f', d(-D(a))) \
    X(abs_f64, "abs.f64", "8/8", 'f', d(fabs(D(a)))) \
    X(testp_finite, "testp.finite.f32", "p/4", 'p', isfinite(F(a))) \
    X(testp_subnormal, "testp.subnormal.f64", "p/8", 'p', fpclassify(D(a)) == FP_SUBNORMAL) \
    X(testp_normal, "testp.normal.f32", "p/4", 'p', isnormal(F(a))) \
    X(testp_nan, "testp.notanumber.f32", "p/4", 'p', isnan(F(a))) \
    X(eq_f32, "setp.eq.f32", "p/44", 'p', F(a) == F(b)) \
    X(ne_f32, "setp.ne.f32", "p/44", 'p', isless(F(a), F(b)) || isgreater(F(a), F(b))) \
    X(lt_f32, "setp.lt.f32", "p/44", 'p', isless(F(a), F(b))) \
    X(le_ftz, "setp.le.ftz.f32", "p/44", 'p', islessequal(to_zero(F(a)), to_zero(F(b)))) \
    X(gt_f64, "setp.gt.f64", "p/88", 'p', isgreater(D(a), D(b))) \
    X(ge_f64, "setp.ge.f64", "p/88", 'p', isgreaterequal(D(a), D(b))) \
    X(equ_f32, "setp.equ.f32", "p/44", 'p', F(a) == F(b) || isunordered(F(a), F(b))) \
    X(neu_f32, "setp.neu.f32", "p/44", 'p', F(a) != F(b)) \
    X(ltu_f32, "setp.ltu.f32", "p/44", 'p', !isgreaterequal(F(a), F(b))) \
    X(leu_f64, "setp.leu.f64", "p/88", 'p', !isgreater(D(a), D(b))) \
    X(gtu_f32, "setp.gtu.f32", "p/44", 'p', !islessequal(F(a), F(b))) \
    X(geu_f32, "setp.geu.f32", "p/44", 'p', !isless(F(a), F(b))) \
    X(num_f32, "setp.num.f32", "p/44", 'p', !isunordered(F(a), F(b))) \
    X(nan_f64, "setp.nan.f64", "p/88", 'p', isunordered(D(a), D(b)))

#define ALL(X) INTEGERS(X) FLOATS(X)
#define REFERENCE(id, name, operands, kind, ...) \
    static uint64_t expect_##id(uint64_t a, uint64_t b, uint64_t c, uint64_t e) { \
        (void)a; \
        (void)b; \
        (void)c; \
        (void)e; \
        return (uint64_t)(__VA_ARGS__); \
    }
ALL(REFERENCE)

static void instructions_do_what_c_does(void **state) {
    (void)state;
#define CHECK(id, name_, operands_, kind_, ...) \
    check(&(instruction){name_, operands_, expect_##id, kind_});
    ALL(CHECK)
}

static unsigned table;
static uint64_t expect_table(uint64_t a, uint64_t b, uint64_t c, uint64_t e) {
    (void)e;
    return looked_up(a, b, c, table);
}

static void lop3_has_every_table(void **state) {
    (void)state;
    for (table = 0; table < 256; table += 5) {
        char text[4096], lop3[64];
        rig_kernel(text, sizeof text, "lop3.b32", "4/444");
        char *end = strstr(strstr(text, "@%q lop3.b32"), ";");
        snprintf(lop3, sizeof lop3, ", 0x%02x", table);
        memmove(end + strlen(lop3), end, strlen(end) + 1);
        memcpy(end, lop3, strlen(lop3));
        rig *r = rig_open(text, 1 << 20);
        uint64_t arrays[4], *host[4], seed = table;
        for (int k = 0; k < 4; k++) {
            arrays[k] = rig_take(r, THREADS * 8);
            host[k] = rig_host(r, arrays[k]);
            for (int v = 0; v < THREADS; v++)
                host[k][v] = rig_bits(&seed);
        }
        RIG_RUN(r, "k", 1, THREADS, arrays[0], arrays[1], arrays[2], arrays[3], arrays[0],
                arrays[0], UINT64_C(0));
        for (int v = 0; v < THREADS; v++)
            assert_int_equal((uint32_t)host[0][v],
                             (uint32_t)expect_table(host[1][v], host[2][v], host[3][v], 0));
        rig_close(r);
    }
}

/* 128 bits from words of 32, with carries. */
static void carries_go_from_word_to_word(void **state) {
    (void)state;
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2)\n{\n"
        ".reg .b32 %r<16>; .reg .b64 %d<8>;\n"
        "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 16;\n"
        "ld.param.u64 %d1, [k_0]; ld.param.u64 %d2, [k_1]; ld.param.u64 %d3, [k_2];\n"
        "add.s64 %d1, %d1, %d0; add.s64 %d2, %d2, %d0; add.s64 %d3, %d3, %d0;\n"
        "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d2]; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, "
        "[%d3];\n"
        "add.cc.u32 %r8, %r0, %r4; addc.cc.u32 %r9, %r1, %r5; addc.cc.u32 %r10, %r2, %r6; addc.u32 "
        "%r11, %r3, %r7;\n"
        "st.global.v4.u32 [%d1], {%r8, %r9, %r10, %r11};\n"
        "sub.cc.u32 %r8, %r0, %r4; subc.cc.u32 %r9, %r1, %r5; subc.cc.u32 %r10, %r2, %r6; subc.u32 "
        "%r11, %r3, %r7;\n"
        "st.global.v4.u32 [%d2], {%r8, %r9, %r10, %r11};\n"
        /* The product of two of 64 bits. */
        "mul.lo.u32 %r8, %r0, %r4; mul.hi.u32 %r9, %r0, %r4;\n"
        "mad.lo.cc.u32 %r9, %r1, %r4, %r9; madc.hi.u32 %r10, %r1, %r4, 0;\n"
        "mad.lo.cc.u32 %r9, %r0, %r5, %r9; madc.hi.cc.u32 %r10, %r0, %r5, %r10; addc.u32 %r11, 0, "
        "0;\n"
        "mad.lo.cc.u32 %r10, %r1, %r5, %r10; madc.hi.u32 %r11, %r1, %r5, %r11;\n"
        "st.global.v4.u32 [%d3], {%r8, %r9, %r10, %r11};\nret;\n}\n";
    rig *r = rig_open(text, 1 << 16);
    uint64_t arrays[3], seed = 5;
    unsigned __int128 *host[3], before[2][96];
    for (int k = 0; k < 3; k++) {
        arrays[k] = rig_take(r, 96 * 16);
        host[k] = rig_host(r, arrays[k]);
        for (int v = 0; v < 96 && k; v++)
            host[k][v] = before[k - 1][v] =
                (unsigned __int128)rig_bits(&seed) << 64 | rig_bits(&seed);
    }
    RIG_RUN(r, "k", 1, 96, arrays[0], arrays[1], arrays[2]);
    for (int v = 0; v < 96; v++) {
        assert_true(host[0][v] == before[0][v] + before[1][v]);
        assert_true(host[1][v] == before[0][v] - before[1][v]);
        assert_true(host[2][v] ==
                    (unsigned __int128)(uint64_t)before[0][v] * (uint64_t)before[1][v]);
    }
    rig_close(r);
}

/* ---- approximations ---------------------------------------------------------------------- */

static double reciprocal(double x) {
    return 1 / x;
}
static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

/* Each within what PTX promises for it, but not nearer throughout than it promises. `ulps` are of
 * f32. */
static void approximations_are_as_near_as_promised(void **state) {
    static const struct {
        const char *name;
        double (*exact)(double);
        float least, most;
        double absolute, relative, ulps;
    } cases[] = {
        {"ex2.approx.f32", exp2, -100, 100, 0, 0, 2},
        {"ex2.approx.ftz.f32", exp2, -100, 100, 0, 0, 2},
        {"lg2.approx.f32", log2, 0.5f, 2, 0x1p-22, 0, 0},
        {"lg2.approx.f32", log2, 2, 1e30f, 0, 0x1p-22, 0},
        {"sin.approx.f32", sin, -6.28f, 6.28f, 0x1.6a09e6p-21, 0, 0},
        {"cos.approx.f32", cos, -6.28f, 6.28f, 0x1.6a09e6p-21, 0, 0},
        {"cos.approx.f32", cos, 6.3f, 314, 0x1.3b2c48p-15, 0, 0},
        {"tanh.approx.f32", tanh, -9, 9, 0, 0x1p-11, 0},
        {"sqrt.approx.f32", sqrt, 0, 1e30f, 0, 0x1p-23, 0},
        {"rsqrt.approx.f32", reciprocal_root, 1e-30f, 9, 0, 0x1.125fbep-23, 0},
        {"rcp.approx.f32", reciprocal, 1e-30f, 1e30f, 0, 0, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[4096];
        rig_kernel(text, sizeof text, cases[k].name, "4/4");
        rig *r = rig_open(text, 1 << 20);
        uint64_t to = rig_take(r, VALUES * 8), from = rig_take(r, VALUES * 8);
        uint64_t *out = rig_host(r, to), *in = rig_host(r, from);
        for (int v = 0; v < VALUES; v++)
            in[v] = f(cases[k].least + (cases[k].most - cases[k].least) * ((float)v / VALUES));
        RIG_RUN(r, "k", BLOCKS, THREADS, to, from, from, from, from, from, UINT64_C(0));
        double furthest = 0;
        for (int v = 0; v < VALUES; v++) {
            double want = cases[k].exact(F(in[v])), got = F(out[v]);
            double bound = cases[k].absolute + cases[k].relative * fabs(want) +
                           cases[k].ulps * ldexp(1, ilogb(want == 0 ? 1 : want) - 23);
            if (!(fabs(got - want) <= bound))
                fail_msg("%s of %a: %a, not %a", cases[k].name, F(in[v]), got, want);
            if (bound > 0)
                furthest = fmax(furthest, fabs(got - want) / bound);
        }
        if (furthest < 0.9)
            fail_msg("%s is never further off than %g of what it may be", cases[k].name, furthest);
        rig_close(r);
    }
}

static void approximations_of_quotients(void **state) {
    static const char *const names[] = {"div.approx.f32", "div.full.f32"};
    for (int k = 0; k < 2; k++) {
        char text[4096];
        rig_kernel(text, sizeof text, names[k], "4/44");
        rig *r = rig_open(text, 1 << 20);
        uint64_t to = rig_take(r, VALUES * 8), a = rig_take(r, VALUES * 8),
                 b = rig_take(r, VALUES * 8);
        uint64_t *out = rig_host(r, to), *x = rig_host(r, a), *y = rig_host(r, b);
        for (int v = 0; v < VALUES; v++) {
            x[v] = f(1 + (float)(v % 64) / 64);
            y[v] = f(v < VALUES / 2 ? 1 + (float)v / VALUES : -0x1.5p126f);
        }
        RIG_RUN(r, "k", BLOCKS, THREADS, to, a, b, a, a, a, UINT64_C(0));
        double furthest = 0;
        for (int v = 0; v < VALUES; v++) {
            double want = (double)F(x[v]) / F(y[v]), got = F(out[v]);
            double bound = 2 * fmax(ldexp(1, ilogb(want) - 23), 0x1p-149);
            if (k == 0 && v >= VALUES / 2) {
                assert_int_equal(out[v] & UINT32_MAX, 0x80000000u);
                continue;
            }
            assert_true(fabs(got - want) <= bound);
            furthest = fmax(furthest, fabs(got - want) / bound);
        }
        assert_true(furthest > 0.9);
        rig_close(r);
    }
}

/* What others are refined from has 20 bits, of an operand's 20; the other is as near as C's
 * functions. */
static void approximations_of_f64(void **state) {
    static const struct {
        const char *name;
        double (*exact)(double);
        double most, least;
        bool coarse;
    } cases[] = {
        {"rsqrt.approx.f64", reciprocal_root, 0x1p-52, 0, false},
        {"rsqrt.approx.ftz.f64", reciprocal_root, 0x1.8p-20, 0x1p-21, true},
        {"rcp.approx.ftz.f64", reciprocal, 0x1p-20, 0x1p-21, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[4096];
        rig_kernel(text, sizeof text, cases[k].name, "8/8");
        rig *r = rig_open(text, 1 << 20);
        uint64_t to = rig_take(r, VALUES * 8), from = rig_take(r, VALUES * 8);
        uint64_t *out = rig_host(r, to), *in = rig_host(r, from);
        for (int v = 0; v < VALUES; v++)
            in[v] = d(ldexp(1 + (double)(v * 7919 % VALUES) / VALUES + 0x1p-30 * v, v % 100 - 50));
        in[0] = d(0x1p-1074);
        in[1] = d(INFINITY);
        in[2] = d(-0.0);
        RIG_RUN(r, "k", BLOCKS, THREADS, to, from, from, from, from, from, UINT64_C(0));
        double furthest = 0;
        assert_true(D(out[0]) == (cases[k].coarse ? INFINITY : cases[k].exact(0x1p-1074)));
        assert_true(D(out[1]) == 0);
        assert_true(D(out[2]) == -INFINITY);
        for (int v = 3; v < VALUES; v++) {
            double want = cases[k].exact(D(in[v])), got = D(out[v]);
            furthest = fmax(furthest, fabs(got / want - 1));
            assert_true(!cases[k].coarse || !(out[v] & UINT32_MAX));
        }
        if (furthest > cases[k].most || furthest < cases[k].least)
            fail_msg("%s is up to %a off", cases[k].name, furthest);
        rig_close(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_do_what_c_does),
        cmocka_unit_test(lop3_has_every_table),
        cmocka_unit_test(carries_go_from_word_to_word),
        cmocka_unit_test(approximations_are_as_near_as_promised),
        cmocka_unit_test(approximations_of_quotients),
        cmocka_unit_test(approximations_of_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
