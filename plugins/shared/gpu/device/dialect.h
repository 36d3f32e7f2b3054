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
 *   dtypes    for a dtype X: stored(X), computed(X), load(X)(p, i), store(X)(p, i, value),
 *             DTYPE(X), IS_FLOAT(X), IS_INT(X), IS_BOOL(X); p is of stored(X) *
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
#define load_half(p, i) vload_half((size_t)(i), (GLOBAL const half *)(p))
#define store_half(p, i, v) vstore_half_rte((v), (size_t)(i), (GLOBAL half *)(p))
#if HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define f64_of_bits(x) as_double(x)
#define bits_of_f64(x) as_ulong(x)
#define store_half_of_f64(p, i, v) vstore_half_rte((v), (size_t)(i), (GLOBAL half *)(p))
#endif
#if DECLARES_BUILTINS
#include "plugins/shared/gpu/device/builtins.h"
#endif
#pragma OPENCL FP_CONTRACT OFF /* FMA() where it is meant */
#define DIVIDE(a, b) ((a) / (b))
#define SQRT(x) sqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#define mul_high_u64(a, b) mul_hi((u64)(a), (u64)(b))
#define set_if_zero(p, value) atomic_cmpxchg((p), 0, (value))

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
#define KERNEL_OF_GROUP(x, y, name) extern "C" __global__ void __launch_bounds__((x) * (y)) name
#define DEVICE __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define RESTRICT __restrict__
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
#define load_half(p, i) f32_of_half((p)[i])
#define store_half(p, i, v) ((p)[i] = half_of_f32(v))
#define store_half_of_f64(p, i, v) ((p)[i] = half_of_f64(v))
#define DIVIDE(a, b) ((a) / (b))
#define SQRT(x) sqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#define mul_high_u64(a, b) ((u64)__umul64hi(a, b))
#define set_if_zero(p, value) atomicCAS((p), 0, (value))

#endif

/* ---- CPUs -------------------------------------------------------------------------------- */

/* Their drivers' functions are often calls, which keep work items from being made vectors of. */
#if IS_CPU
#define ELEMENTARY DEVICE
#include "plugins/shared/elementary.h"
#undef load_half
#undef store_half
#define load_half(p, i) f32_of_f16((p)[i])
#define store_half(p, i, v) ((p)[i] = (u16)f16_of_f32(v))
#define EXP_32 em_exp
#define LOG_32 em_log
#define TANH_32 em_tanh
#define ERF_32 em_erf
#else
#define EXP_32 exp
#define LOG_32 log
#define TANH_32 tanh
#define ERF_32 erf
#endif
#if IS_CPU && HAS_F64
#define LOG1P_32 em_log1p
#define EXPM1_32 em_expm1
#else
#define LOG1P_32 log1p
#define EXPM1_32 expm1
#endif
#define EXP_64 exp
#define LOG_64 log
#define TANH_64 tanh
#define ERF_64 erf
#define LOG1P_64 log1p
#define EXPM1_64 expm1

/* Of numbers of type computed(X): EXP(X)(x). */
#define EXP(X) CAT(EXP_, COMPUTED_BITS(X))
#define LOG(X) CAT(LOG_, COMPUTED_BITS(X))
#define TANH(X) CAT(TANH_, COMPUTED_BITS(X))
#define ERF(X) CAT(ERF_, COMPUTED_BITS(X))
#define LOG1P(X) CAT(LOG1P_, COMPUTED_BITS(X))
#define EXPM1(X) CAT(EXPM1_, COMPUTED_BITS(X))
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
#define DTYPE(X) CAT(DTYPE_, X)
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

/* Stored as they are computed. */
#define PLAIN(X, type, wrapping) \
    typedef type stored_##X; \
    typedef type computed_##X; \
    typedef wrapping wrap_##X; \
    DEVICE type load_##X(GLOBAL const type *p, i64 i) { \
        return p[i]; \
    } \
    DEVICE void store_##X(GLOBAL type *p, i64 i, type value) { \
        p[i] = value; \
    }
PLAIN(f32, f32, f32)
PLAIN(i32, i32, u32)
PLAIN(i64, i64, u64)
#if HAS_F64
PLAIN(f64, f64, f64)
#endif

/* Narrow integers are computed in 32 bits and cut when they are stored. */
#define NARROW(X, type) \
    typedef type stored_##X; \
    typedef i32 computed_##X; \
    typedef u32 wrap_##X; \
    DEVICE i32 load_##X(GLOBAL const type *p, i64 i) { \
        return p[i]; \
    } \
    DEVICE void store_##X(GLOBAL type *p, i64 i, i32 value) { \
        p[i] = (type)value; \
    }
NARROW(i8, i8)
NARROW(i16, i16)
NARROW(u8, u8)

typedef u8 stored_bool;
typedef i32 computed_bool;
typedef u32 wrap_bool;
DEVICE i32 load_bool(GLOBAL const u8 *p, i64 i) {
    return p[i] != 0;
}
DEVICE void store_bool(GLOBAL u8 *p, i64 i, i32 value) {
    p[i] = value != 0;
}

/* Halves are stored as bits, so that a device without arithmetic on them can move them. */
typedef u16 stored_f16;
typedef f32 computed_f16;
typedef f32 wrap_f16;
DEVICE f32 load_f16(GLOBAL const u16 *p, i64 i) {
    return load_half(p, i);
}
DEVICE void store_f16(GLOBAL u16 *p, i64 i, f32 value) {
    store_half(p, i, value);
}

/* bf16 is the upper half of f32. Rounds to nearest even; a NaN stays one. */
typedef u16 stored_bf16;
typedef f32 computed_bf16;
typedef f32 wrap_bf16;
DEVICE f32 bf16_to_f32(u16 bits) {
    return f32_of_bits((u32)bits << 16);
}
DEVICE u16 f32_to_bf16(f32 value) {
    u32 bits = bits_of_f32(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (u16)(bits >> 16 | 0x40u);
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
DEVICE f32 load_bf16(GLOBAL const u16 *p, i64 i) {
    return bf16_to_f32(p[i]);
}
DEVICE void store_bf16(GLOBAL u16 *p, i64 i, f32 value) {
    p[i] = f32_to_bf16(value);
}

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

/* f64 to a floating dtype X, rounded once: store_of_f64(X)(p, i, value). */
#define store_of_f64(X) CAT(store_of_f64_, X)
#define store_of_f64_f64(p, i, v) store_f64(p, i, v)
#define store_of_f64_f32(p, i, v) store_f32(p, i, (f32)(v))
#define store_of_f64_f16(p, i, v) store_half_of_f64(p, i, v)
#define store_of_f64_bf16(p, i, v) store_bf16(p, i, odd_f32(v))
#endif

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
