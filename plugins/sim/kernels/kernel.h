/* What the kernels of the chip see, and their list.
 *
 * launch.c checks a call, copies it whole into a task and queues that. Later the stream's thread
 * runs the task's compute function, which finds real pointers in it. */
#ifndef TNI_PLUGINS_SIM_KERNELS_KERNEL_H
#define TNI_PLUGINS_SIM_KERNELS_KERNEL_H

#include "plugins/sim/sim.h"

#include <tenon/kernels.h>

/* The kernels: those of the small set, with which every operator of Tenon runs on a device, and the
 * one that captured work draws random numbers with. */
#define SIM_KERNELS(X) \
    X(copy) \
    X(fill) \
    X(arange) \
    X(random_bits) \
    X(random_bits_from) \
    X(add) \
    X(mul) \
    X(div) \
    X(floor_divide) \
    X(remainder) \
    X(maximum) \
    X(pow) \
    X(exp) \
    X(log) \
    X(sqrt) \
    X(sin) \
    X(cos) \
    X(tanh) \
    X(erf) \
    X(floor) \
    X(eq) \
    X(lt) \
    X(where) \
    X(bitwise_and) \
    X(bitwise_or) \
    X(bitwise_xor) \
    X(sum) \
    X(amax) \
    X(cumsum) \
    X(sort) \
    X(gather) \
    X(scatter_add) \
    X(bmm)

typedef struct sim_tensor {
    void *data; /* of the first element */
    tn_dtype dtype;
    int32_t rank;
    int64_t numel;
    const int64_t *sizes, *strides;
} sim_tensor;

/* tn_cell, with the view resolved. */
typedef struct sim_value {
    uint32_t tag; /* tn_cell_tag */
    uint32_t n;
    union {
        int64_t i64;
        double f64;
        const int64_t *ints;
        const sim_tensor *tensor;
    } v;
} sim_value;

typedef struct sim_task sim_task;
typedef void sim_compute(sim_task *task);

struct sim_task {
    sim_command command;
    sim_compute *compute;
    tn_device_impl *device;
    const char *op;
    const sim_value *args;
    const sim_tensor *outs;
    void *workspace;

    /* What went wrong, set by sim_task_fail. */
    tn_status error;
    char *message;
};

/* A kernel: its record and what the launch needs to know of it. */
typedef struct sim_kernel {
    tn_kernel record;

    /* The arguments, '>', the outputs. A tensor: T of the dtype that chooses the compute function,
     * B bool, L i64, A any. Not a tensor: s scalar, i integer, b boolean, I list of integers. */
    const char *signature;
    bool pointwise; /* all tensors have the same number of elements */

    sim_compute *compute[TN_DTYPE_COUNT]; /* by the dtype of the first T or A, outputs included */
} sim_kernel;

#define SIM_KERNEL_DECLARE(name) extern const sim_kernel sim_kernel_##name;
SIM_KERNELS(SIM_KERNEL_DECLARE)
#undef SIM_KERNEL_DECLARE

/* All kernels repeat bit by bit, and index with 64 bits. Most take contiguous
 * tensors and nothing more; the core adapts every other call to that. */
#define SIM_FLAGS (TN_KERNEL_DETERMINISTIC | TN_KERNEL_INDEX64)

/* The head of a record with more flags than those; then the masks of its type variables. */
#define SIM_RECORD_WITH(name, more_flags, ...) \
    .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##name, \
    .schema_hash = TN_KERNEL_HASH_##name, .dtypes = {__VA_ARGS__}, \
    .flags = SIM_FLAGS | (more_flags), .user = (void *)&sim_kernel_##name, .run = sim_launch
#define SIM_RECORD(name, types) SIM_RECORD_WITH(name, 0, types)

/* An element of sim_kernel.compute, for the lists of dtype.h. */
#define SIM_COMPUTE(t, NAME, stored, value, wrap, name) [TN_##NAME] = name##_##t,

/* tn_kernel.run of every kernel; `user` is its sim_kernel. */
tn_status sim_launch(const tn_call *call);

/* Sets the task's error; the stream reports it. The message names the operator. */
void sim_task_fail(sim_task *task, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A scalar, whichever cell it came in. */
static inline double sim_scalar_f64(const sim_value *value) {
    return value->tag == TN_CELL_F64 ? value->v.f64 : (double)value->v.i64;
}

static inline int64_t sim_scalar_i64(const sim_value *value) {
    return value->tag == TN_CELL_F64 ? (int64_t)value->v.f64 : value->v.i64;
}

#endif
