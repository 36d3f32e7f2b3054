/* How an operation is written: once, as an expression of x, y and z, and done for the lanes of a warp.
 *
 * These files are compiled for two instruction sets, where the compiler has the second. A list X(name,
 * operands, body) gives the functions and the forms that the reader finds them by; `_` in a name stands
 * for the dot of PTX. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_LANES_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_LANES_H

#include "tests/cuda/double/ptx_code.h"

#include <string.h>

#ifndef PTX_ISA
#define PTX_ISA base
#endif
#define PTX_NAME__(name, isa) name##_##isa
#define PTX_NAME_(name, isa) PTX_NAME__(name, isa)
/* What the files of one instruction set share. */
#define PTX_NAME(name) PTX_NAME_(name, PTX_ISA)

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* Rows are the same or apart, so no lane waits for another. */
#define EACH(...) \
    if (lanes == PTX_ALL) { \
        INDEPENDENT for (int l = 0; l < PTX_LANES; l++) { \
            __VA_ARGS__ \
        } \
    } else { \
        for (uint32_t left = lanes; left; left &= left - 1) { \
            int l = __builtin_ctz(left); \
            __VA_ARGS__ \
        } \
    }

#define ROW(T, k) ((T *)ptx_row(warp, at->o[k]))

#define UNARY(D, A, ...) \
    D *d = ROW(D, 0); \
    const A *a = ROW(const A, 1); \
    EACH(A x = a[l]; d[l] = (D)(__VA_ARGS__);)
#define BINARY(D, A, B, ...) \
    D *d = ROW(D, 0); \
    const A *a = ROW(const A, 1); \
    const B *b = ROW(const B, 2); \
    EACH(A x = a[l]; B y = b[l]; d[l] = (D)(__VA_ARGS__);)
#define TERNARY(D, A, B, C, ...) \
    D *d = ROW(D, 0); \
    const A *a = ROW(const A, 1); \
    const B *b = ROW(const B, 2); \
    const C *c = ROW(const C, 3); \
    EACH(A x = a[l]; B y = b[l]; C z = c[l]; d[l] = (D)(__VA_ARGS__);)

/* A predicate: asked of all lanes, as nothing traps. */
#define SET_BITS(k, value) \
    do { \
        uint32_t *word = ROW(uint32_t, k); \
        *word = (*word & ~lanes) | ((value)&lanes); \
    } while (0)
#define COMPARE(A, ...) \
    const A *a = ROW(const A, 1); \
    const A *b = ROW(const A, 2); \
    uint32_t bits = 0; \
    for (int l = 0; l < PTX_LANES; l++) { \
        A x = a[l]; \
        A y = b[l]; \
        bits |= (uint32_t)(__VA_ARGS__) << l; \
    } \
    SET_BITS(0, bits)
#define TEST(A, ...) \
    const A *a = ROW(const A, 1); \
    uint32_t bits = 0; \
    for (int l = 0; l < PTX_LANES; l++) { \
        A x = a[l]; \
        bits |= (uint32_t)(__VA_ARGS__) << l; \
    } \
    SET_BITS(0, bits)

#define DEFINE_OPERATION(name, operands, ...) \
    static void name(const ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) { \
        __VA_ARGS__; \
    }
#define OPERATION_FORM(name, operands, ...) {#name, operands, name},

static inline float ptx_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint32_t ptx_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double ptx_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint64_t ptx_double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The NaN that operations of f32 give. */
static inline float ptx_canonical(float x) {
    return x == x ? x : ptx_float(0x7fffffff);
}

#endif
