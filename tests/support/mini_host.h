/* The smallest host that can drive a plugin, made with tenon/plugin.h alone.
 *
 * It loads one plugin, opens one device, places tensors in its memory and calls single kernels, so
 * that a plugin can be tested without libtenon. Works for devices with and without streams, and
 * treats memory handles as opaque. A mini adapts nothing: what a kernel's flags exclude, the test
 * must not hand it.
 *
 *     mini m;
 *     if (!mini_open(&m, "build/plugins/cpu/libtenon_cpu.so", 0)) fail(mini_error());
 *     mini_tensor *a = mini_tensor_create(&m, TN_F32, 1, (int64_t[]){3}, NULL, 0);
 *     mini_tensor_write(&m, a, (float[]){1, 2, 3});
 *     mini_tensor *r = mini_tensor_create(&m, TN_F32, 1, (int64_t[]){3}, NULL, 0);
 *     tn_status s = mini_run(&m, mini_find(&m, "neg", TN_F32, TN_DTYPE_NONE),
 *                            1, (tn_cell[]){mini_view(a)}, 1, (mini_tensor *[]){r});
 *     mini_tensor_read(&m, r, result);
 *     mini_close(&m);
 *
 * The host table has no context argument, so options, messages, the log and the allocation counters
 * belong to the process. One mini at a time. Its host functions may be called from any thread.
 */
#ifndef TNI_TESTS_SUPPORT_MINI_HOST_H
#define TNI_TESTS_SUPPORT_MINI_HOST_H

#include <stdbool.h>
#include <tenon/plugin.h>

enum { MINI_MAX_RANK = 8 };

typedef struct mini_tensor {
    struct mini_tensor *next; /* of the mini that owns it */
    tn_tensor_view view;      /* hand `&view` to kernels */
    int64_t sizes[MINI_MAX_RANK];
    int64_t strides[MINI_MAX_RANK];
    uint64_t bytes; /* of the whole allocation, from its start to the last element */
    void *host;     /* where the host may touch the memory, or NULL */
} mini_tensor;

typedef struct mini {
    void *object; /* from dlopen */
    const tn_plugin *plugin;
    tn_instance *self;
    const tn_device_ops *ops;
    tn_device_impl *device;
    tn_stream_impl *stream; /* NULL on a device without streams */
    mini_tensor *tensors;
} mini;

/* ---- the host table and what it has seen ------------------------------------------------- */

/* The table a mini hands to its plugin. */
const tn_host *mini_host_table(void);

/* Sets what host->option answers for `name`; NULL removes it. Both strings are kept, not copied. */
void mini_option(const char *name, const char *value);

/* The last message the calling thread gave to host->fail, or that mini_open made; "" if none. */
const char *mini_error(void);

/* The lines logged so far, each ended by a newline. */
const char *mini_log(void);

/* Blocks of host->alloc not yet freed. */
int64_t mini_outstanding(void);

/* Lets `n` more calls of host->alloc succeed and fails the next one; negative: none fails. */
void mini_fail_alloc_after(int64_t n);

/* ---- plugin and device ------------------------------------------------------------------- */

/* Loads the plugin at `path`, checks its table, opens device `index` and makes a stream where the
 * device has streams. On failure everything is undone and mini_error says why. */
bool mini_open(mini *m, const char *path, uint32_t index);

/* Undoes mini_open, tensors included. True when the plugin has given back all host memory. The
 * shared object stays mapped. */
bool mini_close(mini *m);

/* Waits for the stream and returns its error; TN_OK on a device without streams. */
tn_status mini_synchronize(mini *m);

/* ---- memory ------------------------------------------------------------------------------ */

/* Memory of `space`; on failure `*out_memory` is 0. */
tn_status mini_alloc(const tn_memory_ops *memory, tn_device_impl *device, int32_t space,
                     uint64_t bytes, tn_memory *out_memory, void **out_host);

/* ---- tensors ----------------------------------------------------------------------------- */

uint64_t mini_dtype_bytes(tn_dtype dtype);

/* A tensor in device memory, uninitialised. `strides` and `offset` count elements; NULL strides are
 * row-major. NULL when memory is exhausted. Owned by `m`. */
mini_tensor *mini_tensor_create(mini *m, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                                const int64_t *strides, int64_t offset);

/* Another view of the storage of `base`, which must outlive it. */
mini_tensor *mini_tensor_alias(mini *m, const mini_tensor *base, int32_t rank, const int64_t *sizes,
                               const int64_t *strides, int64_t offset);

/* Copy `t->bytes` bytes, the whole allocation and not only the elements of the view. */
tn_status mini_tensor_write(mini *m, mini_tensor *t, const void *src);
tn_status mini_tensor_read(mini *m, const mini_tensor *t, void *dst);

/* Frees every tensor. */
void mini_tensors_free(mini *m);

/* ---- calls ------------------------------------------------------------------------------- */

/* The record that serves `op` when its first type variables are `t0` and `t1`; TN_DTYPE_NONE leaves
 * one open. NULL when there is none, or the device does not support it. */
const tn_kernel *mini_find(const mini *m, const char *op, tn_dtype t0, tn_dtype t1);

/* Runs a kernel: asks `supports` and `prepare`, calls, waits, and returns the first failure. The
 * workspace is full of ones, NaN in every floating dtype: a kernel may not count on its content. */
tn_status mini_run(mini *m, const tn_kernel *kernel, uint32_t n_args, const tn_cell *args,
                   uint32_t n_outs, mini_tensor *const *outs);

/* Values for the arguments of a call. NULL tensors become TN_CELL_NONE. */
tn_cell mini_view(const mini_tensor *t);
tn_cell mini_i64(int64_t value);
tn_cell mini_f64(double value);
tn_cell mini_bool(bool value);
tn_cell mini_ints(const int64_t *values, uint32_t n);
tn_cell mini_string(const char *value);
tn_cell mini_none(void);

#endif /* TNI_TESTS_SUPPORT_MINI_HOST_H */
