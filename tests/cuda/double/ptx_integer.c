/* Operations of PTX on integers, bits and predicates. */
#include "tests/cuda/double/ptx_lanes.h"

/* ---- arithmetic -------------------------------------------------------------------------- */

#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))
/* What division by zero gives is open; a host would trap. So does the least number over -1. */
#define DIVIDE_U(T, x, y) ((y) ? (x) / (y) : (T)-1)
#define REMAINDER_U(T, x, y) ((y) ? (x) % (y) : (x))
#define DIVIDE_S(U, x, y) ((y) == 0 ? (U)-1 : (y) == -1 ? (U)0 - (U)(x) : (U)((x) / (y)))
#define REMAINDER_S(U, x, y) ((y) == 0 ? (x) : (y) == -1 ? 0 : (x) % (y))

/* T: the type; U: unsigned, so wide that products of 16 bits do not overflow an int; n: bytes. */
#define OF_BOTH(X, t, T, U, n) \
    X(add_##t, n "/" n n, BINARY(T, T, T, (U)x + (U)y)) \
    X(sub_##t, n "/" n n, BINARY(T, T, T, (U)x - (U)y)) \
    X(mul_lo_##t, n "/" n n, BINARY(T, T, T, ((U)x * (U)y))) \
    X(mad_lo_##t, n "/" n n n, TERNARY(T, T, T, T, ((U)x * (U)y) + (U)z)) \
    X(min_##t, n "/" n n, BINARY(T, T, T, MIN(x, y))) \
    X(max_##t, n "/" n n, BINARY(T, T, T, MAX(x, y))) \
    X(sad_##t, n "/" n n n, TERNARY(T, T, T, T, (x < y ? (U)y - (U)x : (U)x - (U)y) + (U)z)) \
    X(setp_eq_##t, "p/" n n, COMPARE(T, x == y)) \
    X(setp_ne_##t, "p/" n n, COMPARE(T, x != y)) \
    X(setp_lt_##t, "p/" n n, COMPARE(T, x < y)) \
    X(setp_le_##t, "p/" n n, COMPARE(T, x <= y)) \
    X(setp_gt_##t, "p/" n n, COMPARE(T, x > y)) \
    X(setp_ge_##t, "p/" n n, COMPARE(T, x >= y))
#define OF_UNSIGNED(X, t, T, U, n, bits) \
    OF_BOTH(X, t, T, U, n) \
    X(div_##t, n "/" n n, BINARY(T, T, T, DIVIDE_U(T, x, y))) \
    X(rem_##t, n "/" n n, BINARY(T, T, T, REMAINDER_U(T, x, y))) \
    X(shr_##t, n "/" n "4", BINARY(T, T, uint32_t, y < bits ? x >> y : 0)) \
    X(setp_lo_##t, "p/" n n, COMPARE(T, x < y)) \
    X(setp_ls_##t, "p/" n n, COMPARE(T, x <= y)) \
    X(setp_hi_##t, "p/" n n, COMPARE(T, x > y)) \
    X(setp_hs_##t, "p/" n n, COMPARE(T, x >= y))
#define OF_SIGNED(X, t, T, U, n, bits) \
    OF_BOTH(X, t, T, U, n) \
    X(div_##t, n "/" n n, BINARY(T, T, T, DIVIDE_S(U, x, y))) \
    X(rem_##t, n "/" n n, BINARY(T, T, T, REMAINDER_S(U, x, y))) \
    X(abs_##t, n "/" n, UNARY(T, T, x < 0 ? (U)0 - (U)x : (U)x)) \
    X(neg_##t, n "/" n, UNARY(T, T, (U)0 - (U)x)) \
    X(shr_##t, n "/" n "4", BINARY(T, T, uint32_t, x >> (y < bits ? y : bits - 1)))

/* The upper half of a product, and the whole one; W: the type twice as wide. */
#define OF_PRODUCTS(X, t, T, U, W, n, bits) \
    X(mul_hi_##t, n "/" n n, BINARY(T, T, T, ((W)x * (W)y) >> bits)) \
    X(mad_hi_##t, n "/" n n n, TERNARY(T, T, T, T, (U)(((W)x * (W)y) >> bits) + (U)z))
#define OF_WIDE(X, t, T, W, UW, n, wide) \
    X(mul_wide_##t, wide "/" n n, BINARY(W, T, T, ((W)x * (W)y))) \
    X(mad_wide_##t, wide "/" n n wide, TERNARY(W, T, T, W, (UW)((W)x * (W)y) + (UW)z))

#define S24(x) ((int32_t)((x) << 8) >> 8)
#define U24(x) ((x)&0xffffffu)
#define OF_24(X) \
    X(mul24_lo_u32, "4/44", BINARY(uint32_t, uint32_t, uint32_t, U24(x) * U24(y))) \
    X(mul24_lo_s32, "4/44", \
      BINARY(uint32_t, uint32_t, uint32_t, (uint32_t)S24(x) * (uint32_t)S24(y))) \
    X(mad24_lo_u32, "4/444", TERNARY(uint32_t, uint32_t, uint32_t, uint32_t, U24(x) * U24(y) + z)) \
    X(mad24_lo_s32, "4/444", \
      TERNARY(uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)S24(x) * (uint32_t)S24(y) + z)) \
    X(add_sat_s32, "4/44", BINARY(int32_t, int32_t, int32_t, saturated((int64_t)x + y))) \
    X(sub_sat_s32, "4/44", BINARY(int32_t, int32_t, int32_t, saturated((int64_t)x - y)))

static inline int64_t saturated(int64_t x) {
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x;
}

/* ---- more than one word ------------------------------------------------------------------ */

/* The carry is a word of all lanes; `sum`, which reads it as k, has one bit more than T. */
typedef unsigned __int128 u128;
#define CARRYING(T, bits, n_in, writes, sum) \
    T *d = ROW(T, 0); \
    const T *a = ROW(const T, 1); \
    const T *b = ROW(const T, 2); \
    const T *c = ROW(const T, n_in); \
    uint32_t *carry = ptx_row(warp, PTX_CARRY); \
    uint32_t out = *carry; \
    EACH(u128 x = a[l]; u128 y = b[l]; u128 z = c[l]; uint32_t k = *carry >> l & 1; (void)z; \
         (void)k; u128 r = (sum); d[l] = (T)r; \
         out = (out & ~(1u << l)) | (uint32_t)(r >> bits & 1) << l;) \
    if (writes) \
    *carry = out
#define LOW(T, x) ((u128)(T)(x))
#define OF_CARRY(X, t, T, n, bits) \
    X(add_cc_##t, n "/" n n, CARRYING(T, bits, 2, 1, x + y)) \
    X(addc_##t, n "/" n n, CARRYING(T, bits, 2, 0, x + y + k)) \
    X(addc_cc_##t, n "/" n n, CARRYING(T, bits, 2, 1, x + y + k)) \
    X(sub_cc_##t, n "/" n n, CARRYING(T, bits, 2, 1, x - y)) \
    X(subc_##t, n "/" n n, CARRYING(T, bits, 2, 0, x - y - k)) \
    X(subc_cc_##t, n "/" n n, CARRYING(T, bits, 2, 1, x - y - k)) \
    X(mad_lo_cc_##t, n "/" n n n, CARRYING(T, bits, 3, 1, LOW(T, x *y) + z)) \
    X(madc_lo_##t, n "/" n n n, CARRYING(T, bits, 3, 0, LOW(T, x *y) + z + k)) \
    X(madc_lo_cc_##t, n "/" n n n, CARRYING(T, bits, 3, 1, LOW(T, x *y) + z + k))
/* The upper half of an unsigned product. */
#define OF_CARRY_HIGH(X, t, T, n, bits) \
    X(mad_hi_cc_##t, n "/" n n n, CARRYING(T, bits, 3, 1, (x * y >> bits) + z)) \
    X(madc_hi_##t, n "/" n n n, CARRYING(T, bits, 3, 0, (x * y >> bits) + z + k)) \
    X(madc_hi_cc_##t, n "/" n n n, CARRYING(T, bits, 3, 1, (x * y >> bits) + z + k))

/* ---- bits -------------------------------------------------------------------------------- */

#define OF_BITS(X, t, T, n, bits) \
    X(and_##t, n "/" n n, BINARY(T, T, T, x &y)) \
    X(or_##t, n "/" n n, BINARY(T, T, T, x | y)) \
    X(xor_##t, n "/" n n, BINARY(T, T, T, x ^ y)) \
    X(not_##t, n "/" n, UNARY(T, T, ~x)) \
    X(cnot_##t, n "/" n, UNARY(T, T, x == 0)) \
    X(shl_##t, n "/" n "4", BINARY(T, T, uint32_t, y < bits ? (uint64_t)x << y : 0)) \
    X(shr_##t, n "/" n "4", BINARY(T, T, uint32_t, y < bits ? x >> y : 0)) \
    X(setp_eq_##t, "p/" n n, COMPARE(T, x == y)) \
    X(setp_ne_##t, "p/" n n, COMPARE(T, x != y)) \
    X(mov_##t, n "/" n, UNARY(T, T, x))

static inline uint64_t reversed(uint64_t x) {
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(x);
}

/* A field of `length` bits from `begin` on, as far as there is one; a signed one repeats its highest
 * bit, or that of x where it ends behind it. */
static inline uint64_t field(uint64_t x, uint32_t begin, uint32_t length, unsigned bits,
                             bool is_signed) {
    begin &= 0xff;
    length &= 0xff;
    unsigned last = begin + length - 1 < bits - 1 ? begin + length - 1 : bits - 1;
    bool sign = is_signed && length && x >> last & 1;
    uint64_t out = begin < bits ? x >> begin : 0;
    if (length == 0)
        return 0;
    unsigned kept = begin < bits ? bits - begin : 0;
    kept = length < kept ? length : kept;
    uint64_t mask = kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1;
    return sign ? out | ~mask : out & mask;
}

static inline uint64_t inserted(uint64_t x, uint64_t into, uint32_t begin, uint32_t length,
                                unsigned bits) {
    begin &= 0xff;
    length &= 0xff;
    if (begin >= bits || length == 0)
        return into;
    unsigned kept = length < bits - begin ? length : bits - begin;
    uint64_t mask = (kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1) << begin;
    return (into & ~mask) | (x << begin & mask);
}

/* The highest bit that is not the sign; ~0 where there is none. `shift`: as a shift to the left. */
static inline uint32_t found(uint64_t x, unsigned bits, bool shift) {
    if (!x)
        return UINT32_MAX;
    uint32_t at = 63 - (uint32_t)__builtin_clzll(x);
    return shift ? bits - 1 - at : at;
}

#define OF_FIELDS(X, b, u, s, T, S, n, bits) \
    X(popc_##b, "4/" n, UNARY(uint32_t, T, __builtin_popcountll(x))) \
    X(clz_##b, "4/" n, UNARY(uint32_t, T, x ? __builtin_clzll(x) - (64 - bits) : bits)) \
    X(brev_##b, n "/" n, UNARY(T, T, reversed(x) >> (64 - bits))) \
    X(bfe_##u, n "/" n "44", TERNARY(T, T, uint32_t, uint32_t, field(x, y, z, bits, false))) \
    X(bfe_##s, n "/" n "44", TERNARY(T, T, uint32_t, uint32_t, field(x, y, z, bits, true))) \
    X(bfi_##b, n "/" n n "44", const uint32_t *e = ROW(const uint32_t, 4); \
      TERNARY(T, T, T, uint32_t, inserted(x, y, z, e[l], bits))) \
    X(bfind_##u, "4/" n, UNARY(uint32_t, T, found(x, bits, false))) \
    X(bfind_##s, "4/" n, UNARY(uint32_t, T, found((T)(x ^ (T)((S)x >> (bits - 1))), bits, false))) \
    X(bfind_shiftamt_##u, "4/" n, UNARY(uint32_t, T, found(x, bits, true))) \
    X(bfind_shiftamt_##s, "4/" n, \
      UNARY(uint32_t, T, found((T)(x ^ (T)((S)x >> (bits - 1))), bits, true)))

/* Bytes of y:x; where the number's bit 3 is set the byte's sign in all its bits. */
static inline uint32_t permuted(uint32_t x, uint32_t y, uint32_t how) {
    uint64_t both = (uint64_t)y << 32 | x;
    uint32_t out = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t pick = how >> 4 * k & 15;
        uint32_t byte = both >> 8 * (pick & 7) & 0xff;
        out |= (pick & 8 ? byte & 0x80 ? 0xffu : 0 : byte) << 8 * k;
    }
    return out;
}

/* What the modes of prmt choose, by the low two bits of the third operand. */
static const uint16_t prmt_f4e[4] = {0x3210, 0x4321, 0x5432, 0x6543};
static const uint16_t prmt_b4e[4] = {0x5670, 0x6701, 0x7012, 0x0123};
static const uint16_t prmt_rc8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
static const uint16_t prmt_ecl[4] = {0x3210, 0x3211, 0x3222, 0x3333};
static const uint16_t prmt_ecr[4] = {0x0000, 0x1110, 0x2210, 0x3210};
static const uint16_t prmt_rc16[4] = {0x1010, 0x3232, 0x1010, 0x3232};

#define PERMUTE(how) TERNARY(uint32_t, uint32_t, uint32_t, uint32_t, permuted(x, y, how))
#define FUNNEL(...) TERNARY(uint32_t, uint32_t, uint32_t, uint32_t, __VA_ARGS__)
#define JOINED ((uint64_t)y << 32 | x)
#define CLAMPED (z < 32 ? z : 32)
#define OF_WORDS(X) \
    X(prmt_b32, "4/444", PERMUTE(z)) \
    X(prmt_b32_f4e, "4/444", PERMUTE(prmt_f4e[z & 3])) \
    X(prmt_b32_b4e, "4/444", PERMUTE(prmt_b4e[z & 3])) \
    X(prmt_b32_rc8, "4/444", PERMUTE(prmt_rc8[z & 3])) \
    X(prmt_b32_ecl, "4/444", PERMUTE(prmt_ecl[z & 3])) \
    X(prmt_b32_ecr, "4/444", PERMUTE(prmt_ecr[z & 3])) \
    X(prmt_b32_rc16, "4/444", PERMUTE(prmt_rc16[z & 3])) \
    X(shf_l_wrap_b32, "4/444", FUNNEL((JOINED << (z & 31)) >> 32)) \
    X(shf_l_clamp_b32, "4/444", FUNNEL(z < 32 ? (JOINED << z) >> 32 : x)) \
    X(shf_r_wrap_b32, "4/444", FUNNEL(JOINED >> (z & 31))) \
    X(shf_r_clamp_b32, "4/444", FUNNEL(JOINED >> CLAMPED)) \
    X(lop3_b32, "4/4444", const uint32_t *e = ROW(const uint32_t, 4); \
      FUNNEL((e[l] & 1 ? ~x & ~y & ~z : 0) | (e[l] & 2 ? ~x & ~y & z : 0) | \
             (e[l] & 4 ? ~x & y & ~z : 0) | (e[l] & 8 ? ~x & y & z : 0) | \
             (e[l] & 16 ? x & ~y & ~z : 0) | (e[l] & 32 ? x & ~y & z : 0) | \
             (e[l] & 64 ? x & y & ~z : 0) | (e[l] & 128 ? x & y & z : 0)))

#define BYTE(T, x, k) ((int32_t)(T)((x) >> 8 * (k)))
#define DOT4(A, B) \
    FUNNEL(z + (uint32_t)(BYTE(A, x, 0) * BYTE(B, y, 0) + BYTE(A, x, 1) * BYTE(B, y, 1) + \
                          BYTE(A, x, 2) * BYTE(B, y, 2) + BYTE(A, x, 3) * BYTE(B, y, 3)))
#define HALF(T, x, k) ((int32_t)(T)((x) >> 16 * (k)))
#define DOT2(A, B, k) \
    FUNNEL(z + (uint32_t)HALF(A, x, 0) * (uint32_t)BYTE(B, y, k) + \
           (uint32_t)HALF(A, x, 1) * (uint32_t)BYTE(B, y, (k) + 1))
#define OF_DOTS(X, a, b, A4, B4, A2) \
    X(dp4a_##a##_##b, "4/444", DOT4(A4, B4)) \
    X(dp2a_lo_##a##_##b, "4/444", DOT2(A2, B4, 0)) \
    X(dp2a_hi_##a##_##b, "4/444", DOT2(A2, B4, 2))

/* ---- choices ----------------------------------------------------------------------------- */

#define SELECT(T) \
    T *d = ROW(T, 0); \
    const T *a = ROW(const T, 1); \
    const T *b = ROW(const T, 2); \
    uint32_t chosen = *ROW(const uint32_t, 3); \
    EACH(d[l] = chosen >> l & 1 ? a[l] : b[l];)
#define OF_SELECT(X, t, T, n) \
    X(selp_##t, n "/" n n "p", SELECT(T)) \
    X(slct_##t##_s32, n "/" n n "4", TERNARY(T, T, T, int32_t, z >= 0 ? x : y)) \
    X(slct_##t##_f32, n "/" n n "4", TERNARY(T, T, T, float, z >= 0 ? x : y))
#define OF_MOVES(X, t, T, n) X(mov_##t, n "/" n, UNARY(T, T, x))

#define BITS(k) (*ROW(const uint32_t, k))
#define OF_PREDICATES(X) \
    X(mov_pred, "p/p", SET_BITS(0, BITS(1))) \
    X(not_pred, "p/p", SET_BITS(0, ~BITS(1))) \
    X(and_pred, "p/pp", SET_BITS(0, BITS(1) & BITS(2))) \
    X(or_pred, "p/pp", SET_BITS(0, BITS(1) | BITS(2))) \
    X(xor_pred, "p/pp", SET_BITS(0, BITS(1) ^ BITS(2)))

/* ---- parts of others --------------------------------------------------------------------- */

/* mov of a vector: parts of a register, and a register of parts. */
#define TAKE(D, A, shift) UNARY(D, A, x >> shift)
#define OF_PARTS(X) \
    X(part0_2_4, "2/4", TAKE(uint16_t, uint32_t, 0)) \
    X(part1_2_4, "2/4", TAKE(uint16_t, uint32_t, 16)) \
    X(part0_4_8, "4/8", TAKE(uint32_t, uint64_t, 0)) \
    X(part1_4_8, "4/8", TAKE(uint32_t, uint64_t, 32)) \
    X(part0_2_8, "2/8", TAKE(uint16_t, uint64_t, 0)) \
    X(part1_2_8, "2/8", TAKE(uint16_t, uint64_t, 16)) \
    X(part2_2_8, "2/8", TAKE(uint16_t, uint64_t, 32)) \
    X(part3_2_8, "2/8", TAKE(uint16_t, uint64_t, 48)) \
    X(join_4_2, "4/22", BINARY(uint32_t, uint16_t, uint16_t, (uint32_t)y << 16 | x)) \
    X(join_8_4, "8/44", BINARY(uint64_t, uint32_t, uint32_t, (uint64_t)y << 32 | x)) \
    X(join_8_2, "8/2222", const uint16_t *e = ROW(const uint16_t, 4); \
      TERNARY(uint64_t, uint16_t, uint16_t, uint16_t, \
              (uint64_t)e[l] << 48 | (uint64_t)z << 32 | (uint64_t)y << 16 | x)) \
    X(set_4, "4/44p", SELECT(uint32_t)) \
    X(set_2, "2/22p", SELECT(uint16_t))

/* ---- all --------------------------------------------------------------------------------- */

#define ALL(X) \
    OF_UNSIGNED(X, u16, uint16_t, uint32_t, "2", 16) \
    OF_UNSIGNED(X, u32, uint32_t, uint32_t, "4", 32) \
    OF_UNSIGNED(X, u64, uint64_t, uint64_t, "8", 64) \
    OF_SIGNED(X, s16, int16_t, uint32_t, "2", 16) \
    OF_SIGNED(X, s32, int32_t, uint32_t, "4", 32) \
    OF_SIGNED(X, s64, int64_t, uint64_t, "8", 64) \
    OF_PRODUCTS(X, u16, uint16_t, uint32_t, uint32_t, "2", 16) \
    OF_PRODUCTS(X, s16, int16_t, uint32_t, int32_t, "2", 16) \
    OF_PRODUCTS(X, u32, uint32_t, uint32_t, uint64_t, "4", 32) \
    OF_PRODUCTS(X, s32, int32_t, uint32_t, int64_t, "4", 32) \
    OF_PRODUCTS(X, u64, uint64_t, uint64_t, u128, "8", 64) \
    OF_PRODUCTS(X, s64, int64_t, uint64_t, __int128, "8", 64) \
    OF_WIDE(X, u16, uint16_t, uint32_t, uint32_t, "2", "4") \
    OF_WIDE(X, s16, int16_t, int32_t, uint32_t, "2", "4") \
    OF_WIDE(X, u32, uint32_t, uint64_t, uint64_t, "4", "8") \
    OF_WIDE(X, s32, int32_t, int64_t, uint64_t, "4", "8") \
    OF_24(X) \
    OF_CARRY(X, u32, uint32_t, "4", 32) \
    OF_CARRY(X, s32, uint32_t, "4", 32) \
    OF_CARRY(X, u64, uint64_t, "8", 64) \
    OF_CARRY(X, s64, uint64_t, "8", 64) \
    OF_CARRY_HIGH(X, u32, uint32_t, "4", 32) \
    OF_CARRY_HIGH(X, u64, uint64_t, "8", 64) \
    OF_BITS(X, b16, uint16_t, "2", 16) \
    OF_BITS(X, b32, uint32_t, "4", 32) \
    OF_BITS(X, b64, uint64_t, "8", 64) \
    OF_FIELDS(X, b32, u32, s32, uint32_t, int32_t, "4", 32) \
    OF_FIELDS(X, b64, u64, s64, uint64_t, int64_t, "8", 64) \
    OF_WORDS(X) \
    OF_DOTS(X, u32, u32, uint8_t, uint8_t, uint16_t) \
    OF_DOTS(X, s32, s32, int8_t, int8_t, int16_t) \
    OF_DOTS(X, u32, s32, uint8_t, int8_t, uint16_t) \
    OF_DOTS(X, s32, u32, int8_t, uint8_t, int16_t) \
    OF_SELECT(X, b16, uint16_t, "2") \
    OF_SELECT(X, u16, uint16_t, "2") \
    OF_SELECT(X, s16, uint16_t, "2") \
    OF_SELECT(X, b32, uint32_t, "4") \
    OF_SELECT(X, u32, uint32_t, "4") \
    OF_SELECT(X, s32, uint32_t, "4") \
    OF_SELECT(X, f32, uint32_t, "4") \
    OF_SELECT(X, b64, uint64_t, "8") \
    OF_SELECT(X, u64, uint64_t, "8") \
    OF_SELECT(X, s64, uint64_t, "8") \
    OF_SELECT(X, f64, uint64_t, "8") \
    OF_MOVES(X, u16, uint16_t, "2") \
    OF_MOVES(X, s16, uint16_t, "2") \
    OF_MOVES(X, f16, uint16_t, "2") \
    OF_MOVES(X, u32, uint32_t, "4") \
    OF_MOVES(X, s32, uint32_t, "4") \
    OF_MOVES(X, f32, uint32_t, "4") \
    OF_MOVES(X, f16x2, uint32_t, "4") \
    OF_MOVES(X, u64, uint64_t, "8") \
    OF_MOVES(X, s64, uint64_t, "8") \
    OF_MOVES(X, f64, uint64_t, "8") \
    OF_PREDICATES(X) \
    OF_PARTS(X)

ALL(DEFINE_OPERATION)

extern const ptx_form PTX_NAME(ptx_integer)[];
const ptx_form PTX_NAME(ptx_integer)[] = {ALL(OPERATION_FORM){0}};
