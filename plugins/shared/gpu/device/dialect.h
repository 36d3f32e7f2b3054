/* The language of device code, which is OpenCL C 1.2 here and CUDA C there.
 *
 * A file of device code is compiled once for each choice of dtypes, operator and shape of kernel
 * that is needed, chosen by macros (-DT=f32 -DOP=add). It sees no header but this one, and uses no
 * name of either language that is not made here. What all devices have in common:
 *
 *   kernels   KERNEL(name)(PARAMETERS) with memory first, then one struct of sizes and offsets;
 *             KERNEL_OF_GROUP where the group's size is fixed
 *   local     LOCAL arrays in a kernel. No pointer to them is given to a function: LLVM may move
 *             the array there, and PoCL then has one for all groups
 *   values    i8 .. u64, f32, f64; f16 and bf16 are stored, and computed in f32
 *   dtypes    for a dtype X: stored(X), computed(X), widen(X)(bits) and narrow(X)(value) between
 *             them, load(X)(p, i), store(X)(p, i, value), DTYPE(X), BYTES(X), IS_FLOAT(X),
 *             IS_INT(X), IS_BOOL(X); p is of stored(X) *
 *   packs     neighbours that are moved together, LOAD_PACK and STORE_PACK
 *   warps     where WARP is not 0, so many work items that follow each other by LOCAL_ID(0) read
 *             each other's registers: SHUFFLE and its like. All of them take part
 *
 *   registers AFRESH(X)(x) where x is of type computed(X): what was computed of it before is not kept,
 *             but computed anew
 *
 * IS_CPU is 1 where work items are threads of a CPU or lanes of its vectors. f64 is there where
 * HAS_F64 is 1, and OpenCL's functions are declared in builtins.h where DECLARES_BUILTINS is 1.
 * Integers wrap: they are computed in unsigned types (wrap(X)). */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* ---- the two languages ------------------------------------------------------------------- */

#ifdef __OPENCL_VERSION__

#define KERNEL(name) __kernel void name
#define KERNEL_OF_GROUP(x, y, name) \
    __kernel __attribute__((reqd_work_group_size(x, y, 1))) void name
#define DEVICE static
#define GLOBAL __global
#define LOCAL __local
#define RESTRICT restrict
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP_ID(d) get_group_id(d)
#define GROUPS(d) get_num_groups(d)
#define LOCAL_ID(d) get_local_id(d)
#define LOCAL_SIZE(d) get_local_size(d)
#define GLOBAL_ID(d) get_global_id(d)

typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;

#define f32_of_bits(x) as_float(x)
#define bits_of_f32(x) as_uint(x)
#if HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define f64_of_bits(x) as_double(x)
#define bits_of_f64(x) as_ulong(x)
#endif
#if DECLARES_BUILTINS
#include "plugins/shared/gpu/device/builtins.h"
#endif
DEVICE f32 f32_of_half(u16 bits) {
    return vload_half(0, (const half *)&bits);
}
DEVICE u16 half_of_f32(f32 value) {
    u16 bits;
    vstore_half_rte(value, 0, (half *)&bits);
    return bits;
}
#if HAS_F64
DEVICE u16 half_of_f64(f64 value) {
    u16 bits;
    vstore_half_rte(value, 0, (half *)&bits);
    return bits;
}
#endif
#pragma OPENCL FP_CONTRACT OFF /* FMA() where it is meant */
#define DIVIDE(a, b) ((a) / (b))
#define SQRT(x) sqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#define mul_high_u64(a, b) mul_hi((u64)(a), (u64)(b))
#define set_if_zero(p, value) atomic_cmpxchg((p), 0, (value))
#define AFRESH_32(x) (void)0
#define AFRESH_64(x) (void)0
#define WARP 0

/* Vectors, for devices whose work items are threads of a CPU: n elements of a type that is computed
 * in, integers as unsigned. CUDA has none and does not need any. */
#define lanes(X, n) CAT(CAT(lanes_, X), _)(n)
#define lanes_f32_(n) CAT(float, n)
#define lanes_f64_(n) CAT(double, n)
#define lanes_i32_(n) CAT(uint, n)
#define lanes_i64_(n) CAT(ulong, n)
#define load_lanes(n, p) CAT(vload, n)(0, p)
#define store_lanes(n, v, p) CAT(vstore, n)((v), 0, p)
/* LLVM halves vectors of 512 bits where it thinks that best; not where a kernel is written for
 * them. */
#if defined(__has_attribute)
#if __has_attribute(__min_vector_width__)
#define KERNEL_OF_VECTORS(name) \
    __kernel __attribute__((reqd_work_group_size(1, 1, 1), __min_vector_width__(512))) void name
#endif
#endif
#ifndef KERNEL_OF_VECTORS
#define KERNEL_OF_VECTORS(name) KERNEL_OF_GROUP(1, 1, name)
#endif

#else /* CUDA, as NVRTC takes it: no header of its is included, which would double the time */

#define KERNEL(name) extern "C" __global__ void name
/* Two such groups shall be there at once. */
#define KERNEL_OF_GROUP(x, y, name) extern "C" __global__ void __launch_bounds__((x) * (y), 2) name
#define DEVICE __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define RESTRICT __restrict__
#define ALIGNED(bytes) __align__(bytes)
#define BARRIER() __syncthreads()
#define DIM(v, d) ((d) == 0 ? (v).x : (d) == 1 ? (v).y : (v).z)
#define GROUP_ID(d) ((u64)DIM(blockIdx, d))
#define GROUPS(d) ((u64)DIM(gridDim, d))
#define LOCAL_ID(d) ((u64)DIM(threadIdx, d))
#define LOCAL_SIZE(d) ((u64)DIM(blockDim, d))
#define GLOBAL_ID(d) (GROUP_ID(d) * LOCAL_SIZE(d) + LOCAL_ID(d))

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define f32_of_bits(x) __uint_as_float(x)
#define bits_of_f32(x) __float_as_uint(x)
#define f64_of_bits(x) __longlong_as_double((i64)(x))
#define bits_of_f64(x) ((u64)__double_as_longlong(x))
DEVICE f32 f32_of_half(u16 bits) {
    f32 value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
DEVICE u16 half_of_f32(f32 value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
DEVICE u16 half_of_f64(f64 value) {
    u16 bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
    return bits;
}
#define DIVIDE(a, b) ((a) / (b))
#define SQRT(x) sqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#define mul_high_u64(a, b) ((u64)__umul64hi(a, b))
#define set_if_zero(p, value) atomicCAS((p), 0, (value))
#define AFRESH_32(x) asm("" : "+f"(x))
#define AFRESH_64(x) asm("" : "+d"(x))

#define WARP 32
/* What `v` is in the work item so many further on; in work item number `from` of the warp. */
#define SHUFFLE_DOWN(v, n) __shfl_down_sync(0xffffffffu, v, n)
#define SHUFFLE_UP(v, n) __shfl_up_sync(0xffffffffu, v, n)
#define SHUFFLE(v, from) __shfl_sync(0xffffffffu, v, from)

#endif

/* ---- CPUs -------------------------------------------------------------------------------- */

/* Their drivers' functions are often calls, which keep work items from being made vectors of. */
#if IS_CPU
#define ELEMENTARY DEVICE
#define em_sqrt SQRT
#define em_sqrt_f64 SQRT
#include "plugins/shared/elementary.h"
#define f32_of_half(bits) f32_of_f16(bits)
#define half_of_f32(value) ((u16)f16_of_f32(value))
#define EXP_32 em_exp
#define LOG_32 em_log
#define TANH_32 em_tanh
#define ERF_32 em_erf
#define EXP2_32 em_exp2
#define ASIN_32 em_asin
#define ACOS_32 em_acos
#define ATAN_32 em_atan
#define ATAN2_32 em_atan2
#define SINH_32 em_sinh
#define COSH_32 em_cosh
#else
#define EXP_32 exp
#define LOG_32 log
#define TANH_32 tanh
#define ERF_32 erf
#define EXP2_32 exp2
#define ASIN_32 asin
#define ACOS_32 acos
#define ATAN_32 atan
#define ATAN2_32 atan2
#define SINH_32 sinh
#define COSH_32 cosh
#endif
#if IS_CPU && HAS_F64
#define LOG1P_32 em_log1p
#define EXPM1_32 em_expm1
#define LOG2_32 em_log2
#define LOG10_32 em_log10
#define ASINH_32 em_asinh
#define ACOSH_32 em_acosh
#define ATANH_32 em_atanh
#else
#define LOG1P_32 log1p
#define EXPM1_32 expm1
#define LOG2_32 log2
#define LOG10_32 log10
#define ASINH_32 asinh
#define ACOSH_32 acosh
#define ATANH_32 atanh
#endif
#define EXP_64 exp
#define LOG_64 log
#define TANH_64 tanh
#define ERF_64 erf
#define LOG1P_64 log1p
#define EXPM1_64 expm1
#define EXP2_64 exp2
#define ASIN_64 asin
#define ACOS_64 acos
#define ATAN_64 atan
#define ATAN2_64 atan2
#define SINH_64 sinh
#define COSH_64 cosh
#define LOG2_64 log2
#define LOG10_64 log10
#define ASINH_64 asinh
#define ACOSH_64 acosh
#define ATANH_64 atanh

/* Of numbers of type computed(X): EXP(X)(x). */
#define EXP(X) CAT(EXP_, COMPUTED_BITS(X))
#define LOG(X) CAT(LOG_, COMPUTED_BITS(X))
#define TANH(X) CAT(TANH_, COMPUTED_BITS(X))
#define ERF(X) CAT(ERF_, COMPUTED_BITS(X))
#define LOG1P(X) CAT(LOG1P_, COMPUTED_BITS(X))
#define EXPM1(X) CAT(EXPM1_, COMPUTED_BITS(X))
#define EXP2(X) CAT(EXP2_, COMPUTED_BITS(X))
#define ASIN(X) CAT(ASIN_, COMPUTED_BITS(X))
#define ACOS(X) CAT(ACOS_, COMPUTED_BITS(X))
#define ATAN(X) CAT(ATAN_, COMPUTED_BITS(X))
#define ATAN2(X) CAT(ATAN2_, COMPUTED_BITS(X))
#define SINH(X) CAT(SINH_, COMPUTED_BITS(X))
#define COSH(X) CAT(COSH_, COMPUTED_BITS(X))
#define LOG2(X) CAT(LOG2_, COMPUTED_BITS(X))
#define LOG10(X) CAT(LOG10_, COMPUTED_BITS(X))
#define ASINH(X) CAT(ASINH_, COMPUTED_BITS(X))
#define ACOSH(X) CAT(ACOSH_, COMPUTED_BITS(X))
#define ATANH(X) CAT(ATANH_, COMPUTED_BITS(X))
#define AFRESH(X) CAT(AFRESH_, COMPUTED_BITS(X))
#define COMPUTED_BITS(X) CAT(COMPUTED_BITS_, X)
#define COMPUTED_BITS_f32 32
#define COMPUTED_BITS_f64 64
#define COMPUTED_BITS_f16 32
#define COMPUTED_BITS_bf16 32

/* ---- dtypes ------------------------------------------------------------------------------ */

/* X: stored, computed, wrapping */
#define stored(X) CAT(stored_, X)
#define computed(X) CAT(computed_, X)
#define wrap(X) CAT(wrap_, X)
#define load(X) CAT(load_, X)
#define store(X) CAT(store_, X)
#define widen(X) CAT(widen_, X)
#define narrow(X) CAT(narrow_, X)
#define DTYPE(X) CAT(DTYPE_, X)
#define BYTES(X) CAT(BYTES_, X)
#define IS_FLOAT(X) (DTYPE(X) < DTYPE_i8)
#define IS_BOOL(X) (DTYPE(X) == DTYPE_bool)
#define IS_INT(X) (!IS_FLOAT(X) && !IS_BOOL(X))

/* The numbers of tenon/plugin.h. */
#define DTYPE_f32 0
#define DTYPE_f64 1
#define DTYPE_f16 2
#define DTYPE_bf16 3
#define DTYPE_i8 4
#define DTYPE_i16 5
#define DTYPE_i32 6
#define DTYPE_i64 7
#define DTYPE_u8 8
#define DTYPE_bool 9

#define BYTES_f32 4
#define BYTES_f64 8
#define BYTES_f16 2
#define BYTES_bf16 2
#define BYTES_i8 1
#define BYTES_i16 2
#define BYTES_i32 4
#define BYTES_i64 8
#define BYTES_u8 1
#define BYTES_bool 1

/* A dtype's types; its widen and narrow are there. */
#define MAKE_DTYPE(X, type, computing, wrapping) \
    typedef type stored_##X; \
    typedef computing computed_##X; \
    typedef wrapping wrap_##X; \
    DEVICE computing load_##X(GLOBAL const type *p, i64 i) { \
        return widen_##X(p[i]); \
    } \
    DEVICE void store_##X(GLOBAL type *p, i64 i, computing value) { \
        p[i] = narrow_##X(value); \
    }

/* Stored as they are computed. */
#define widen_f32(x) (x)
#define narrow_f32(x) (x)
#define widen_i32(x) (x)
#define narrow_i32(x) (x)
#define widen_i64(x) (x)
#define narrow_i64(x) (x)
MAKE_DTYPE(f32, f32, f32, f32)
MAKE_DTYPE(i32, i32, i32, u32)
MAKE_DTYPE(i64, i64, i64, u64)
#if HAS_F64
#define widen_f64(x) (x)
#define narrow_f64(x) (x)
MAKE_DTYPE(f64, f64, f64, f64)
#endif

/* Narrow integers are computed in 32 bits and cut when they are stored. */
#define widen_i8(x) ((i32)(x))
#define narrow_i8(x) ((i8)(x))
#define widen_i16(x) ((i32)(x))
#define narrow_i16(x) ((i16)(x))
#define widen_u8(x) ((i32)(x))
#define narrow_u8(x) ((u8)(x))
#define widen_bool(x) ((i32)((x) != 0))
#define narrow_bool(x) ((u8)((x) != 0))
MAKE_DTYPE(i8, i8, i32, u32)
MAKE_DTYPE(i16, i16, i32, u32)
MAKE_DTYPE(u8, u8, i32, u32)
MAKE_DTYPE(bool, u8, i32, u32)

/* bf16 is the upper half of f32. Rounds to nearest even; a NaN stays one. */
DEVICE f32 widen_bf16(u16 bits) {
    return f32_of_bits((u32)bits << 16);
}
DEVICE u16 narrow_bf16(f32 value) {
    u32 bits = bits_of_f32(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (u16)(bits >> 16 | 0x40u);
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
MAKE_DTYPE(bf16, u16, f32, f32)

/* Halves are stored as bits, so that a device without arithmetic on them can move them. */
#define widen_f16(bits) f32_of_half(bits)
#define narrow_f16(value) half_of_f32(value)
MAKE_DTYPE(f16, u16, f32, f32)

#if HAS_F64
/* The f32 next to x whose last bit says whether anything was lost, so that it is rounded once. */
DEVICE f32 odd_f32(f64 x) {
    f32 near = (f32)x;
    u32 bits = bits_of_f32(near);
    if ((f64)near == x || x != x)
        return near;
    bits -= fabs((f64)near) > fabs(x);
    return f32_of_bits(bits | 1u);
}

/* f64 to a floating dtype X as it is stored, rounded once: narrow_f64_to(X)(value). */
#define narrow_f64_to(X) CAT(narrow_f64_to_, X)
#define narrow_f64_to_f64(v) (v)
#define narrow_f64_to_f32(v) ((f32)(v))
#define narrow_f64_to_f16(v) half_of_f64(v)
#define narrow_f64_to_bf16(v) narrow_bf16(odd_f32(v))
#endif

/* ---- packs ------------------------------------------------------------------------------- */

/* The type of n neighbours of dtype X, and whether that many at `p` can be moved at once. */
#define MAKE_PACK(X, n) MAKE_PACK_(CAT(pack_, X), stored(X), n, (n)*BYTES(X))
#define MAKE_PACK_(name, type, n, bytes) \
    typedef struct ALIGNED(bytes) name { \
        type e[n]; \
    } name;
#define packed(X) CAT(pack_, X)
#define IS_PACK(X, p) ((u64)(p) % sizeof(packed(X)) == 0)

/* The elements at `p`, or the first `count` of them, widened into x[0] .. x[n - 1]. */
#define LOAD_PACK(X, n, p, count, x) \
    do { \
        if ((count) == (n) && IS_PACK(X, p)) { \
            packed(X) all_ = *(GLOBAL const packed(X) *)(p); \
            for (int l = 0; l < (n); l++) \
                (x)[l] = widen(X)(all_.e[l]); \
        } else { \
            for (int l = 0; l < (n); l++) \
                if (l < (count)) \
                    (x)[l] = widen(X)((p)[l]); \
        } \
    } while (0)

/* The same way back; VALUE(x[l]) is what is stored. */
#define STORE_PACK(X, n, p, count, x, VALUE) \
    do { \
        if ((count) == (n) && IS_PACK(X, p)) { \
            packed(X) all_; \
            for (int l = 0; l < (n); l++) \
                all_.e[l] = VALUE((x)[l]); \
            *(GLOBAL packed(X) *)(p) = all_; \
        } else { \
            for (int l = 0; l < (n); l++) \
                if (l < (count)) \
                    (p)[l] = VALUE((x)[l]); \
        } \
    } while (0)

/* ---- scalars ----------------------------------------------------------------------------- */

/* A number of the computed type travels as 64 bits, whatever the device has. */
DEVICE f32 number_f32(i64 bits) {
    return f32_of_bits((u32)bits);
}
DEVICE i32 number_i32(i64 bits) {
    return (i32)bits;
}
DEVICE i64 number_i64(i64 bits) {
    return bits;
}
#if HAS_F64
DEVICE f64 number_f64(i64 bits) {
    return f64_of_bits((u64)bits);
}
#endif
#define number_f16 number_f32
#define number_bf16 number_f32
#define number_i8 number_i32
#define number_i16 number_i32
#define number_u8 number_i32
#define number_bool number_i32
#define number(X) CAT(number_, X)

#include "plugins/shared/gpu/device/params.h"

/* ---- where an element lies --------------------------------------------------------------- */

/* Adds to at[0] .. at[n - 1] where element `i` of the loop lies; INDEX counts elements. */
#define WALK(loop, n, INDEX, i, at) WALK_FROM(0, loop, n, INDEX, i, at)

/* The same of the dimensions from `first` on. */
#define WALK_FROM(first, loop, n, INDEX, i, at) \
    do { \
        INDEX rest_ = (i); \
        for (int d_ = (first); d_ < (int)(loop).rank; d_++) { \
            INDEX size_ = (INDEX)(loop).sizes[d_], next_ = rest_ / size_, \
                  here_ = rest_ - next_ * size_; \
            rest_ = next_; \
            for (int k_ = 0; k_ < (n); k_++) \
                (at)[k_] += here_ * (loop).strides[k_][d_]; \
        } \
    } while (0)

/* ---- indices out of range ---------------------------------------------------------------- */

/* `error` is the stream's error word, i32[4], zero while all is well. Who comes first tells. */
DEVICE void report_index(GLOBAL i32 *error, i64 index, i64 size) {
    if (set_if_zero(error, 1) != 0)
        return;
    error[1] = (i32)size;
    error[2] = (i32)index;
    error[3] = (i32)(index >> 32);
}
