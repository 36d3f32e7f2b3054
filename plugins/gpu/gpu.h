/* gpu.h: the operators of OpenCL and CUDA plugins, as far as they do not care which of the two it
 * is. The device code is in device/, written once (device/dialect.h); a file here chooses a variant
 * of it for a call, packs the parameters and launches it. What the plugin itself brings is declared
 * at the end.
 */
#ifndef TENON_GPU_H
#define TENON_GPU_H

#include <stdarg.h>
#include <stdbool.h>
#include <tenon/kernels.h>
#include <tenon/plugin.h>

enum {
    GPU_MAX_MEMORY = 8,   /* tensors of a launch */
    GPU_OPTIONS = 256,    /* bytes of a variant's options */
    GPU_PARAMETERS = 1024 /* bytes of a launch's parameters; every device takes so many */
};

/* ---- variants ---- */

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

extern const gpu_source gpu_source_pointwise, gpu_source_copy;

/* "f32"; the dialect's name is the same. */
const char *gpu_dtype_name(tn_dtype dtype);
uint32_t gpu_dtype_bytes(tn_dtype dtype);

/* ---- operators ---- */

/* What tn_kernel.user points to. */
typedef struct gpu_op {
    const char *name;
    uint32_t id;      /* smaller than 2^16, of no other operator */
    uint8_t n_in, n_out;
    uint8_t bool_in;  /* the first input is bool */
    uint8_t bool_out; /* the outputs are */
    bool converts;    /* copy: outputs of another dtype */
    /* Attributes to what the device code takes; see device/pointwise.c. */
    void (*numbers)(const tn_call *call, tn_dtype dtype, int64_t *out);
} gpu_op;

tn_status gpu_pointwise_run(const tn_call *call);

/* A number in the type that `dtype` is computed in, as device code takes it. */
int64_t gpu_number_f(tn_dtype dtype, double x);
int64_t gpu_number_i(tn_dtype dtype, int64_t x);
int64_t gpu_number(tn_dtype dtype, const tn_cell *cell);

extern const tn_kernel *const gpu_kernels[];
enum { GPU_N_KERNELS = 53 };

/* ---- what the plugin brings ------------------------------------------------------------------- */

typedef struct gpu_kernel gpu_kernel;

typedef struct gpu_launch {
    gpu_kernel *kernel;
    uint32_t n_memory;
    tn_memory memory[GPU_MAX_MEMORY]; /* the first arguments */
    const void *parameters;           /* the last, by value */
    uint64_t parameter_bytes;
    uint64_t groups[3]; /* work groups, 0 is 1 */
    uint64_t local[3];  /* work items of a group, 0 is 1 */
    bool may_fail;      /* takes the stream's error word after the memory */
} gpu_launch;

/* The variant that was built for `key` on the device, or NULL. [any-thread] */
gpu_kernel *gpu_kernel_find(tn_pdevice *device, uint64_t key);

/* Builds a variant, or waits for who does, and keeps it for `key`. [any-thread] */
tn_status gpu_kernel_build(tn_pdevice *device, uint64_t key, const gpu_variant *variant,
                           gpu_kernel **out);

tn_status gpu_launch_on(tn_pstream *stream, const gpu_launch *launch);

tn_status gpu_fail(tn_pdevice *device, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif /* TENON_GPU_H */
