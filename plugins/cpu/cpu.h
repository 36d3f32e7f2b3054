/* What the files of the CPU plugin share.
 *
 * The plugin is in two halves. plugin.c, error.c, device.c and threads.c are compiled once. Every file with
 * kernels is compiled once per instruction set (see meson.build), with TNC_ISA_NAME set to base,
 * avx2 or avx512; what such a file shows to others carries that name, everything else in it is
 * static, so that no instruction of one set can reach a machine without it. plugin.c picks one set
 * at load.
 *
 * A kernel file ends with its table of tn_kernel records, published as a tnc_family. A new family
 * is named in TNC_FAMILIES and in meson.build.
 */
#ifndef TNI_PLUGINS_CPU_CPU_H
#define TNI_PLUGINS_CPU_CPU_H

#include "plugins/shared/try.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tenon/kernels.h>
#include <tenon/plugin.h>

/* ---- the plugin and its device ----------------------------------------------------------- */

struct tn_instance {
    const tn_host *host;
    _Atomic uint32_t n_threads; /* that a kernel may use */
};

struct tn_device_impl {
    tn_instance *self;
};

/* Formats a message, hands it to the host and returns `status`. */
tn_status tnc_fail(const tn_instance *self, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

extern const tn_device_ops tnc_device_ops;

/* ---- threads ----------------------------------------------------------------------------- */

/* `option` is the value of option `threads` or NULL. */
tn_status tnc_threads_start(tn_instance *self, const char *option);
/* May OpenMP be called? Not by one that would run code of a set-uid program's caller: then there is one
 * thread. */
bool tnc_openmp_is_safe(void);

/* Ends the workers that OpenMP keeps for the calling thread, unless another self may use them. */
void tnc_threads_stop(void);

/* More than TNC_MAX_SLOTS are as many as that. */
void tnc_set_threads(tn_instance *self, uint32_t n);

/* How many threads the kernel of this call may use. */
static inline uint32_t tnc_get_threads(const tn_call *call) {
    return atomic_load_explicit(&call->device->self->n_threads, memory_order_relaxed);
}

/* Part [begin, end) of some work. `slot` tells the threads of one tnc_parallel apart: it is smaller
 * than the `n_slots` given there. */
typedef void (*tnc_body)(void *context, int64_t begin, int64_t end, int slot);

/* For `call`: splits [0, n) among at most `n_slots` threads, at multiples of `grain`, and waits.
 * Work of one grain or less is done by the caller without any OpenMP call. Where the splits lie
 * depends on the number of threads, so the result of an element must not depend on the split. */
void tnc_parallel(const tn_call *call, int64_t n, int64_t grain, int n_slots, tnc_body body,
                  void *context);

enum {
    TNC_MAX_SLOTS = 256,
    TNC_GRAIN = 32768,                  /* elements of cheap work worth a thread: about 10 us */
    TNC_GRAIN_MULTIPLICATIONS = 1 << 19 /* of a matrix product: the same */
};

/* ---- the kernel tables ------------------------------------------------------------------- */

typedef struct tnc_family {
    const tn_kernel *records;
    uint32_t n_records;
} tnc_family;

#define TNC_FAMILIES(X) \
    X(arithmetic) \
    X(compare) \
    X(math) \
    X(activation) \
    X(optim) \
    X(copy) \
    X(factory) \
    X(sum) \
    X(extreme) \
    X(variance) \
    X(scan) \
    X(sort) \
    X(index) \
    X(matmul) \
    X(softmax) \
    X(attention) \
    X(norm) \
    X(convolution) \
    X(pool) \
    X(loss)

#define TNC_JOIN_(name, isa) name##_##isa
#define TNC_JOIN(name, isa) TNC_JOIN_(name, isa)

/* A name with external linkage in a file that is compiled per instruction set. */
#define TNC_ISA(name) TNC_JOIN(name, TNC_ISA_NAME)

#define TNC_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define TNC_PUBLISH(family, table) \
    extern const tnc_family TNC_ISA(tnc_family_##family); \
    const tnc_family TNC_ISA(tnc_family_##family) = {table, TNC_LENGTH(table)}

/* One record: TNC_KERNEL(op, dtypes of the first type variable, flags, run, more members...). */
#define TNC_KERNEL(op_, mask, flags_, run_, ...) \
    { \
        .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##op_, \
        .schema_hash = TN_KERNEL_HASH_##op_, .dtypes = {mask}, .flags = flags_, .run = run_, \
        __VA_ARGS__ \
    }

/* Declared by nearly every kernel here. */
#define TNC_FLAGS_DENSE (TN_KERNEL_INDEX64 | TN_KERNEL_DETERMINISTIC)
#define TNC_FLAGS_STRIDED (TNC_FLAGS_DENSE | TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST)
#define TNC_FLAGS_POINTWISE (TNC_FLAGS_STRIDED | TN_KERNEL_IN_PLACE | TN_KERNEL_SCALARS)

/* ---- element types ----------------------------------------------------------------------- */

/* X(suffix, C type, unsigned C type to compute in without overflow, DTYPE) */
#define TNC_INT_TYPES(X) \
    X(i8, int8_t, uint32_t, I8) \
    X(i16, int16_t, uint32_t, I16) \
    X(i32, int32_t, uint32_t, I32) \
    X(i64, int64_t, uint64_t, I64) \
    X(u8, uint8_t, uint32_t, U8)

/* Two's complement: the lowest value of a signed T is the highest bit alone. */
#define TNC_LOWEST(T) ((T)((T)-1 < 0 ? (uint64_t)1 << (sizeof(T) * 8 - 1) : 0))
#define TNC_HIGHEST(T) ((T)~TNC_LOWEST(T))

/* ---- views ------------------------------------------------------------------------------- */

/* The address of a view's first element: on this device a memory handle is an address. */
static inline void *tnc_data(const tn_tensor_view *v) {
    return (void *)(uintptr_t)(v->memory + v->offset);
}

static inline const tn_tensor_view *tnc_view(const tn_call *call, int arg) {
    return call->args[arg].tag == TN_CELL_TENSOR ? call->args[arg].v.view : NULL;
}

static inline int64_t tnc_dtype_bytes(tn_dtype dtype) {
#define TNC_BYTES(NAME, value, name, bytes, category) bytes,
    static const uint8_t bytes_of[] = {TN_DTYPE_MAP(TNC_BYTES)};
#undef TNC_BYTES
    return bytes_of[dtype];
}

static inline bool tnc_is_half(tn_dtype dtype) {
    return dtype == TN_F16 || dtype == TN_BF16;
}

static inline int64_t tnc_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t tnc_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t tnc_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* lanes[0] of n lanes, a power of two up to 64, comes to all of them, combined in a tree. Every step has a constant
 * width, or the lanes would go through memory; those of 16 and 32 bytes are spelt out, or GCC takes lanes one by one. */
#define TNC_TREE_STEP(lanes, n, width, symbol) \
    if ((n) > (width) && (width) * sizeof *(lanes) >= 16 && (width) * sizeof *(lanes) <= 32) \
        for (int lane_ = 0; lane_ < (width); lane_ += 16 / (int)sizeof *(lanes)) { \
            __typeof__(*(lanes)) __attribute__((vector_size(16))) low_, high_; \
            memcpy(&low_, (lanes) + lane_, 16); \
            memcpy(&high_, (lanes) + (width) + lane_, 16); \
            low_ = low_ symbol high_; \
            memcpy((lanes) + lane_, &low_, 16); \
        } \
    else \
        for (int lane_ = 0; lane_ < ((n) > (width) ? (width) : 0); lane_++) \
            (lanes)[lane_] = (lanes)[lane_] symbol(lanes)[lane_ + (width)];
#define TNC_TREE(lanes, n, symbol) \
    do { \
        TNC_TREE_STEP(lanes, n, 32, symbol) \
        TNC_TREE_STEP(lanes, n, 16, symbol) \
        TNC_TREE_STEP(lanes, n, 8, symbol) \
        TNC_TREE_STEP(lanes, n, 4, symbol) \
        TNC_TREE_STEP(lanes, n, 2, symbol) \
        TNC_TREE_STEP(lanes, n, 1, symbol) \
    } while (0)

/* The iterations of the next loop are independent: an output may be one of the inputs, but then
 * element for element. Spares the compiler's overlap check, which would send in-place calls to
 * scalar code. */
#if defined(__clang__)
#define TNC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TNC_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TNC_INDEPENDENT
#endif

#endif
