/* The operators of OpenCL and CUDA plugins, as far as they do not care which of the two it
 * is. The device code is in device/, written once (device/dialect.h); a file here chooses a variant
 * of it for a call, packs the parameters and launches it. What the plugin itself brings is declared
 * at the end.
 */
#ifndef TNI_PLUGINS_SHARED_GPU_GPU_H
#define TNI_PLUGINS_SHARED_GPU_GPU_H

#include <stdarg.h>
#include <stdbool.h>
#include <tenon/kernels.h>
#include <tenon/plugin.h>

enum {
    GPU_MAX_MEMORY = 8,   /* tensors of a launch */
    GPU_GROUP = 256,      /* work items of a group, as many as every device takes */
    GPU_LOCAL = 32 << 10, /* bytes of local memory, of which every device has so many */
    GPU_OPTIONS = 256,    /* bytes of a variant's options */
    GPU_ARGUMENTS = 1024  /* bytes of a launch's arguments, 8 for each memory and the parameters;
                             every device takes so many */
};

/* ---- variants ---------------------------------------------------------------------------- */

/* A file of device code. */
typedef struct gpu_source {
    const char *name, *text;
} gpu_source;

/* Device code with its macros chosen: "-DT=f32 -DOP=add". */
typedef struct gpu_variant {
    const gpu_source *source;
    const char *entry; /* the kernel's name there */
    char options[GPU_OPTIONS];
} gpu_variant;

/* One for each file of device/; embed.py makes them. */
extern const gpu_source gpu_source_pointwise;
extern const gpu_source gpu_source_copy;
extern const gpu_source gpu_source_gemm;
extern const gpu_source gpu_source_pad;
extern const gpu_source gpu_source_reduce;
extern const gpu_source gpu_source_fill;
extern const gpu_source gpu_source_arange;
extern const gpu_source gpu_source_random_bits;
extern const gpu_source gpu_source_max_pool2d;
extern const gpu_source gpu_source_max_pool2d_backward;
extern const gpu_source gpu_source_avg_pool2d;
extern const gpu_source gpu_source_index;
extern const gpu_source gpu_source_sort;
extern const gpu_source gpu_source_softmax;
extern const gpu_source gpu_source_norm;
extern const gpu_source gpu_source_scan;

/* What a variant is kept under: the family, and in 48 bits what distinguishes it there. */
#define GPU_KEY(family, bits) ((uint64_t)(family) << 48 | (uint64_t)(bits))

/* "f32"; the dialect's name is the same. */
const char *gpu_dtype_name(tn_dtype dtype);
uint32_t gpu_dtype_bytes(tn_dtype dtype);

/* ---- kernels ----------------------------------------------------------------------------- */

/* The records of one file. */
typedef struct gpu_family {
    const tn_kernel *records;
    uint32_t n_records;
} gpu_family;

/* X(family): a file here, and device/ has one or more for it. */
#define GPU_FAMILIES(X) \
    X(pointwise) \
    X(copy) \
    X(matmul) \
    X(convolution) \
    X(reduce) \
    X(factory) \
    X(pool) \
    X(index) \
    X(sort) \
    X(softmax) \
    X(norm) \
    X(scan)

/* The first part of their keys. */
enum {
#define GPU_FAMILY_ENUM(family) GPU_FAMILY_##family,
    GPU_FAMILIES(GPU_FAMILY_ENUM)
#undef GPU_FAMILY_ENUM
};

#define GPU_PUBLISH(family, records_) \
    const gpu_family gpu_family_##family = {records_, sizeof(records_) / sizeof *(records_)}

#define GPU_F64 TN_DTYPE_BIT(TN_F64)

/* A record; what follows are more of its members. */
#define GPU_RECORD(op_, dtypes_, flags_, run_, ...) \
    { \
        .struct_size = sizeof(tn_kernel), .op = #op_, .schema_hash = TN_KERNEL_HASH_##op_, \
        .dtypes = {dtypes_}, .flags = (flags_) | TN_KERNEL_DETERMINISTIC | TN_KERNEL_CAPTURE_SAFE, \
        .run = run_, __VA_ARGS__ \
    }

/* Two of them: not every device has f64, and a record is taken or left as a whole. */
#define GPU_KERNEL(op_, dtypes_, flags_, run_, ...) \
    GPU_RECORD(op_, (dtypes_) & ~GPU_F64, flags_, run_, __VA_ARGS__), \
        GPU_RECORD(op_, (dtypes_)&GPU_F64, flags_, run_, __VA_ARGS__)

#define GPU_FLAGS_STRIDED (TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST | TN_KERNEL_INDEX64)

/* All records of all families, made at the first call. [any-thread] */
const tn_kernel *const *gpu_kernels(uint64_t *out_n);

/* Has the record to do with f64? */
bool gpu_needs_f64(const tn_kernel *kernel);

/* ---- numbers ----------------------------------------------------------------------------- */

/* A number in the type that `dtype` is computed in, as device code takes it. */
int64_t gpu_number_f(tn_dtype dtype, double x);
int64_t gpu_number_i(tn_dtype dtype, int64_t x);
int64_t gpu_number(tn_dtype dtype, const tn_cell *cell);

/* A number as an element of `dtype`, rounded once, in the low bits. */
uint64_t gpu_element(tn_dtype dtype, const tn_cell *cell);

/* The integer whose bits are moved where those of a dtype of so many bytes are. */
tn_dtype gpu_moved_as(tn_dtype dtype);

/* Where a view's first element lies, in elements; an absent view's at 0. */
int64_t gpu_offset(const tn_tensor_view *view);

static inline int64_t gpu_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline const tn_tensor_view *gpu_arg(const tn_call *call, int at) {
    return call->args[at].tag == TN_CELL_TENSOR ? call->args[at].v.view : NULL;
}

/* ---- what the plugin brings -------------------------------------------------------------- */

/* What decides which variant a device is given. */
typedef struct gpu_traits {
    bool is_cpu; /* one work item is one thread with vector units, and local memory is no nearer
                    than any other */
    bool has_f64;
    uint32_t compute_units;
    uint32_t max_group;    /* work items, at least GPU_GROUP */
    uint32_t vector_bytes; /* of a CPU's vector registers: 16, 32 or 64 */
} gpu_traits;

const gpu_traits *gpu_device_traits(const tn_pdevice *device);

typedef struct gpu_kernel gpu_kernel;

typedef struct gpu_launch {
    gpu_kernel *kernel;
    uint32_t n_memory;
    tn_memory memory[GPU_MAX_MEMORY]; /* the first arguments */
    const void *parameters;           /* the last, by value */
    uint64_t parameter_bytes;
    uint64_t groups[3]; /* work groups, 0 is 1 */
    uint64_t local[3];  /* work items of a group, 0 is 1 */
    bool may_fail;      /* takes the stream's error word, GLOBAL i32 *, after the memory; see
                           report_index in device/dialect.h */
} gpu_launch;

/* The variant that was built for `key` on the device, or NULL; key as GPU_KEY makes it.
 * [any-thread] */
gpu_kernel *gpu_kernel_find(tn_pdevice *device, uint64_t key);

/* Builds a variant, or waits for who does, and keeps it for `key`. [any-thread] */
tn_status gpu_kernel_build(tn_pdevice *device, uint64_t key, const gpu_variant *variant,
                           gpu_kernel **out);

/* The two together: the kernel for `key`, which is built from `format` (options) if need be.
 * [any-thread] */
tn_status gpu_kernel_get(tn_pdevice *device, uint64_t key, const gpu_source *source,
                         const char *entry, gpu_kernel **out, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Queues a launch. What it takes is consumed when it returns. [any-thread] */
tn_status gpu_launch_on(tn_pstream *stream, const gpu_launch *launch);

/* Queues one of `n` work items, and more where they do not fill the last group of `group`.
 * [any-thread] */
tn_status gpu_launch_items(tn_pstream *stream, gpu_launch *launch, int64_t n, int64_t group);

#endif /* TNI_PLUGINS_SHARED_GPU_GPU_H */
