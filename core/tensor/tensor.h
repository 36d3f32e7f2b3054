/* Tensors and storages inside the core.
 *
 * A storage is embedded in the tensor that made it, so that an operator's result is one object from
 * a slab. Views point to another tensor's storage; the slot of a tensor whose storage outlives it
 * is freed with the storage.
 */
#ifndef TNI_CORE_TENSOR_TENSOR_H
#define TNI_CORE_TENSOR_TENSOR_H

#include "base/alloc.h"
#include "base/slab.h"
#include "core/device/device.h"
#include "core/memory/allocator.h"
#include "dispatcher/registry.h"

#include <tenon/storage.h>

struct tn_storage {
    _Atomic uint32_t refs;    /* tensors that use it, and handles that programs keep */
    _Atomic uint32_t version; /* writes by in-place operators */
    tni_block *block;         /* NULL: no bytes, meta, or foreign memory */
    tn_memory memory;
    uint64_t offset; /* of the storage in `memory`, in bytes */
    uint64_t bytes;
    void *host;              /* address of the first byte where the host may use it, else NULL */
    void (*release)(void *); /* foreign memory: called with `release_user` instead of freeing */
    void *release_user;
};

struct tni_autograd; /* core/autograd/autograd.h */

/* Flags of a tensor: made in inference mode, and so without version and history for ever. */
enum { TNI_TENSOR_INFERENCE = 1u };

struct tn_tensor {
    tni_tensor_head head; /* must be first */
    _Atomic uint32_t refs;
    uint32_t flags;
    tni_device *device;
    tn_storage *storage;           /* &own, or another tensor's */
    struct tni_autograd *autograd; /* NULL until it has a gradient or a history */
    /* Of a view: the tensor it was made from, or that one's. A reference to it keeps the storage
     * alive; a view without (an alias) has a reference to the storage itself. */
    tn_tensor *owner;
    uint32_t base_version; /* of a view that autograd knows: version at which its node is right */
    uint32_t view_kind;    /* tni_view_kind; not NONE: `owner` is its base to autograd */
    tn_tensor_view view;   /* what kernels get; view.sizes and .strides point to the arrays below */
    tn_storage own;
    int64_t sizes[TN_MAX_RANK];
    int64_t strides[TN_MAX_RANK];
};
_Static_assert(sizeof(struct tn_tensor) <= TNI_SLAB_TENSOR_BYTES, "TNI_SLAB_TENSOR_BYTES");

/* ---- life -------------------------------------------------------------------------------- */

/* What tensors that the calling thread makes start with: InplaceOrView and no flags, or, while
 * tn_set_inference_mode is on, no keys and TNI_TENSOR_INFERENCE. Views take after their base. */
typedef struct tni_fresh_state {
    uint32_t keys;  /* of the head */
    uint32_t flags; /* TNI_TENSOR_* */
} tni_fresh_state;
extern TNI_TLS tni_fresh_state tni_fresh;

void tni_tensor_destroy(tn_tensor *t);

static inline tn_tensor *tni_keep(tn_tensor *t) {
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}
/* Allows NULL. When the count is one nobody else can see the tensor, and no atomic write is needed.
 */
static inline void tni_drop(tn_tensor *t) {
    if (t && (atomic_load_explicit(&t->refs, memory_order_acquire) == 1 ||
              atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1))
        tni_tensor_destroy(t);
}
/* References that may be NULL or TN_NONE. */
static inline bool tni_not_tensor(const tn_tensor *t) {
    return (uintptr_t)t <= 1;
}
static inline tn_tensor *tni_keep_opt(tn_tensor *t) {
    return tni_not_tensor(t) ? t : tni_keep(t);
}
static inline void tni_drop_opt(tn_tensor *t) {
    if (t != TN_NONE)
        tni_drop(t);
}

/* All of these return owned references, NULL with an error. */

/* Uninitialised, contiguous, on the device's current stream. */
tn_tensor *tni_tensor_new(tni_device *device, tn_dtype dtype, int32_t rank, const int64_t *sizes);
/* Uninitialised, with given non-overlapping strides (elements). */
tn_tensor *tni_tensor_new_strided(tni_device *device, tn_dtype dtype, int32_t rank,
                                  const int64_t *sizes, const int64_t *strides);
/* Uninitialised, with the sizes of a contiguous tensor of fewer than 2^31 elements, on its device.
 */
tn_tensor *tni_tensor_new_like(const tn_tensor *like, tn_dtype dtype);
/* Another view of base's storage, of base's dtype, that keeps base alive; offset in elements from
 * the start of the storage. Checked against the storage's end. Knows nothing of autograd. */
tn_tensor *tni_tensor_view(tn_tensor *base, int32_t rank, const int64_t *sizes,
                           const int64_t *strides, int64_t offset);
/* The same for a view of exactly base's elements, from its first: nothing is checked. */
tn_tensor *tni_tensor_view_all(tn_tensor *base, int32_t rank, const int64_t *sizes,
                               const int64_t *strides);
/* The same with sizes and strides for the caller to fill in. */
tn_tensor *tni_tensor_view_blank(tn_tensor *base, int32_t rank);
/* The same view of the same storage: a new tensor without history, that keeps no other alive. */
tn_tensor *tni_tensor_alias(tn_tensor *t);
/* The same elements, of each of them the `part`-th of those that it has in a smaller dtype: its carrier,
 * or a half of a complex one. The strides count accordingly. */
tn_tensor *tni_tensor_part(tn_tensor *t, tn_dtype dtype, int32_t part);
/* The same of any dtype over a storage that may have lost its tensors, in the calling thread's fresh
 * state. The range is checked by the caller; offset in bytes, in the memory. */
tn_tensor *tni_tensor_over(tn_storage *storage, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                           const int64_t *strides, int64_t numel, uint64_t offset);
/* A tensor over foreign memory. */
tn_tensor *tni_tensor_foreign(tni_device *device, tn_dtype dtype, int32_t rank,
                              const int64_t *sizes, const int64_t *strides, tn_memory memory,
                              void *host, uint64_t bytes, void (*release)(void *), void *user);

/* The device whose memory it is: of the tensor that made it, whose slot outlives that tensor. */
static inline tni_device *tni_storage_device(const tn_storage *storage) {
    return ((const tn_tensor *)((const char *)storage - offsetof(tn_tensor, own)))->device;
}

/* For calls that take a tensor: true, with an error that names the call, where it is NULL or TN_NONE
 * (an error that stands stays: a NULL is the trace of it), or no longer there (below). */
bool tni_no_tensor(const tn_tensor *t, const char *call);
/* The same for calls that answer NULL without an error; true where it is one. */
bool tni_is_tensor(const tn_tensor *t, const char *call);
/* Of a tensor that may be left out: true, with an error, where it was given and is no longer there. */
static inline bool tni_is_given_gone(const tn_tensor *t, const char *call) {
    return !tni_not_tensor(t) && !tni_is_tensor(t, call);
}

/* ---- tensors that are no longer there ---------------------------------------------------- */

/* With TENON_SCOPE_DEBUG=1 a tensor that ended has no references, and its slot waits in a queue
 * before it is used again, so that calls can refuse it. Else, and when the queue has passed it on,
 * nobody can tell. */
extern _Atomic bool tni_lifetimes_watched;
static inline bool tni_is_gone(const tn_tensor *t) {
    return TNI_UNLIKELY(atomic_load_explicit(&tni_lifetimes_watched, memory_order_relaxed)) &&
           atomic_load_explicit(&t->refs, memory_order_relaxed) == 0;
}
/* Sets the error of a call that was given such a tensor; `what` it was to the call, as "argument
 * 'self'". */
tn_status tni_refuse_gone(const tn_tensor *t, const char *call, const char *what);
/* Instead of tni_slab_free, while they are watched. */
void tni_slot_retire(tn_tensor *slot);
/* Asks the environment, on the first use of the library; ends in tn_shutdown, before the slabs do. */
tn_status tni_lifetimes_init(void);
void tni_lifetimes_finish(void);

/* Pushes an owned reference to the thread's innermost scope and returns t; drops it and returns
 * NULL when there is no memory for the stack. NULL passes through. */
typedef struct tni_scope_stack {
    tn_tensor **items;
    uint64_t n, capacity;
} tni_scope_stack;
extern TNI_TLS tni_scope_stack tni_scopes;
tn_tensor *tni_scope_push_slow(tn_tensor *t);
/* Makes room for one tensor, so that the next push succeeds; false with an error. */
bool tni_scope_reserve(void);
/* A scope round a program's function that the library calls in the middle of its work (hooks,
 * custom functions), and its end, whatever the function left open. Scopes from before cannot be
 * closed in it. */
typedef struct tni_callback_scope {
    tn_scope scope;
    size_t floor;
} tni_callback_scope;
tni_callback_scope tni_scope_enter(void);
void tni_scope_leave(tni_callback_scope before);
/* Closes the root scope and frees the stacks; at the end of a thread and in tn_shutdown. */
void tni_scope_finish(void);
static inline tn_tensor *tni_scope_push(tn_tensor *t) {
    if (TNI_UNLIKELY(!t || tni_scopes.n == tni_scopes.capacity))
        return tni_scope_push_slow(t);
    return tni_scopes.items[tni_scopes.n++] = t;
}

/* How many tensors are alive, in all threads. Exact while no other thread makes or drops any; for
 * tests and tn_shutdown. Each thread counts its own, so that a tensor costs no shared write. */
int64_t tni_tensors_alive(void);
/* Of them, those that a forked child may have from threads that it does not have. */
int64_t tni_tensors_left_behind(void);

/* ---- geometry ---------------------------------------------------------------------------- */

static inline bool tni_is_dtype(tn_dtype dtype) {
    uint64_t all = (TN_DTYPE_BIT(TN_DTYPE_COUNT) - 1) | TN_DTYPES_STORAGE;
    return (uint32_t)dtype < TN_DTYPE_END && ((all >> dtype) & 1);
}
static inline int64_t tni_dtype_size(tn_dtype dtype) {
    static const int8_t bytes[TN_DTYPE_END] = {
#define X(NAME, value, name, size, category) [value] = size,
        TN_DTYPE_MAP(X) TN_STORAGE_DTYPE_MAP(X)
#undef X
    };
    return bytes[dtype];
}
static inline bool tni_is_float(tn_dtype d) {
    return (TN_DTYPES_FLOAT >> d) & 1;
}
static inline bool tni_is_storage_dtype(tn_dtype d) {
    return (TN_DTYPES_STORAGE >> d) & 1;
}
static inline bool tni_is_complex(tn_dtype d) {
    return d == TN_C64 || d == TN_C128;
}
/* Which float the two halves of an element of a complex dtype are. */
static inline tn_dtype tni_real_dtype(tn_dtype complex) {
    return complex == TN_C64 ? TN_F32 : TN_F64;
}
/* What kernels get an element of a storage dtype as: `n` integers of `dtype`. */
typedef struct tni_carrier {
    tn_dtype dtype;
    int32_t n;
} tni_carrier;
static inline tni_carrier tni_carrier_of(tn_dtype storage_dtype) {
    int64_t size = tni_dtype_size(storage_dtype);
    return (tni_carrier){size == 2 ? TN_I16 : size == 4 ? TN_I32 : TN_I64, size == 16 ? 2 : 1};
}
static inline bool tni_is_half(tn_dtype d) {
    return d == TN_F16 || d == TN_BF16;
}
static inline tn_ints tni_sizes(const tn_tensor *t) {
    return tn_ints_of(t->sizes, t->view.rank);
}
static inline bool tni_has_shape(const tn_tensor *t, int32_t rank, const int64_t *sizes) {
    bool same = t->view.rank == rank;
    for (int32_t d = 0; same && d < rank; d++)
        same = t->sizes[d] == sizes[d];
    return same;
}
static inline bool tni_same_shape(const tn_tensor *a, const tn_tensor *b) {
    return tni_has_shape(a, b->view.rank, b->sizes);
}
/* Position of the first element in its storage. Element sizes are powers of two: no division. */
static inline int64_t tni_offset_elements(const tn_tensor *t) {
    return (int64_t)((t->view.offset - t->storage->offset) >>
                     __builtin_ctzll((uint64_t)tni_dtype_size(t->view.dtype)));
}

/* Fills row-major strides. */
void tni_contiguous_strides(int32_t rank, const int64_t *sizes, int64_t *out_strides);
/* Product of sizes, or false on overflow (also of numel * element size) or a negative size. */
bool tni_numel(int32_t rank, const int64_t *sizes, int64_t element_size, int64_t *out_numel);
/* Elements from the first to one past the last that sizes and strides reach; 0 when there are none.
 * False on overflow and on negative sizes or strides. */
static inline bool tni_reach(int32_t rank, const int64_t *sizes, const int64_t *strides,
                             int64_t *out_numel, int64_t *out_reach) {
    int64_t numel = 1, last = 0, step;
    bool empty = false;
    for (int32_t i = 0; i < rank; i++) {
        if (sizes[i] < 0 || strides[i] < 0)
            return false;
        if (sizes[i] == 0) {
            empty = true;
            continue;
        }
        if (!tni_mul_i64(numel, sizes[i], &numel) ||
            !tni_mul_i64(sizes[i] - 1, strides[i], &step) || !tni_add_i64(last, step, &last))
            return false;
    }
    if (last == INT64_MAX)
        return false;
    *out_numel = empty ? 0 : numel;
    *out_reach = empty ? 0 : last + 1;
    return true;
}
/* What programs give as a shape: sizes, and strides that may be left out (n < 0: row-major), checked.
 * Both return false with an error that begins with `call`. */
typedef struct tni_layout {
    int32_t rank;
    int64_t numel, bytes; /* `bytes`: from the first element to past the last */
    int64_t strides[TN_MAX_RANK];
} tni_layout;
bool tni_check_sizes(const char *call, tn_ints sizes);
bool tni_lay_out(const char *call, tn_ints sizes, tn_ints strides, tn_dtype dtype, tni_layout *out);
/* Row-major without holes; dimensions of size 1 do not matter. */
bool tni_is_contiguous(const tn_tensor_view *v);
/* Some permutation of a contiguous tensor: no holes, no overlap. */
bool tni_is_dense(const tn_tensor_view *v);
/* Can two elements share memory (a stride of zero, or overlapping strides)? Conservative: true if
 * unsure. */
bool tni_may_overlap(const tn_tensor_view *v);
/* Do the storages' byte ranges of the two intersect without being the same view? */
bool tni_partial_overlap(const tn_tensor *a, const tn_tensor *b);
/* First and one-past-last byte the view touches, from the start of `memory`. */
void tni_view_extent(const tn_tensor_view *v, uint64_t *out_begin, uint64_t *out_end);
/* dim in [-rank, rank) to [0, rank); rank 0 counts as 1. -1 with an error that names `what`. */
int32_t tni_wrap_dim(int64_t dim, int32_t rank, const char *what);
/* "[2, 3]" into a buffer; for messages. Returns out. */
enum { TNI_SHAPE_TEXT = 256 };
char *tni_shape_text(int32_t rank, const int64_t *sizes, char out[TNI_SHAPE_TEXT]);
/* The same of a tensor, of tn_ints, and of sizes: in memory of the block it is written in. */
#define TNI_SHAPE_OF(tensor) TNI_SHAPE_OF_SIZES((tensor)->view.rank, (tensor)->sizes)
#define TNI_SHAPE_OF_INTS(ints) TNI_SHAPE_OF_SIZES((int32_t)(ints).n, (ints).data)
#define TNI_SHAPE_OF_SIZES(rank, sizes) tni_shape_text(rank, sizes, (char[TNI_SHAPE_TEXT]){0})
/* out = the broadcast of a and b; false when they do not fit (no error is set). */
bool tni_broadcast(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b,
                   int32_t *out_rank, int64_t *out);

/* ---- data -------------------------------------------------------------------------------- */

/* Copies bytes between host memory and the storage, from t's first element on. Reading waits for
 * the stream and reports its errors; `call` names who reads, where a capture refuses it. Writing
 * to a meta tensor does nothing. */
tn_status tni_tensor_write(tn_tensor *t, const void *src, uint64_t bytes);
tn_status tni_tensor_read(tn_tensor *t, void *dst, uint64_t bytes, const char *call);
/* Value of a one-element tensor as a cell of its kind (synchronises). */
tn_status tni_tensor_scalar(tn_tensor *t, tn_scalar *out, const char *call);
/* A contiguous copy, and one only where t is not contiguous (else t itself kept); owned, without
 * history. Defined in core/call, which knows how to copy. */
tn_tensor *tni_copied_data(tn_tensor *t);
tn_tensor *tni_contiguous_data(tn_tensor *t);

/* Conversions used by data in and out and by printing. */
float tni_f16_to_f32(uint16_t bits);
uint16_t tni_f32_to_f16(float value);
float tni_bf16_to_f32(uint16_t bits);
uint16_t tni_f32_to_bf16(float value);
/* Element `i` of an array of `dtype` as a cell: of u64 the integer of these bits, of complex the real
 * part (an array of them is one of twice as many floats). */
tn_scalar tni_element(const void *data, tn_dtype dtype, int64_t i);

#endif
