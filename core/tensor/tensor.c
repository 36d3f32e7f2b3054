/* The life of tensors and storages: one slab slot holds both.
 *
 * A slot is free when its tensor and its embedded storage are dead. A tensor that made its storage
 * holds one reference to it, so the storage is never the first of the two to die, and whoever drops
 * the storage's last reference frees the slot. A view keeps the tensor it was made from alive, an
 * alias the storage alone. */
#include "core/autograd/autograd.h"
#include "core/tensor/tensor.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"

#include <pthread.h>
#include <string.h>

TNI_TLS tni_fresh_state tni_fresh = {TN_KEY_BIT(TN_KEY_INPLACE_OR_VIEW), 0};

/* ---- counting ---------------------------------------------------------------------------- */

/* Tensors made minus tensors destroyed by one thread. Written by its thread alone, so a load and a
 * store are enough; the sum over all threads is what is alive. */
typedef struct counter {
    _Atomic int64_t n;
    struct counter *next;
    bool known; /* in the list */
} counter;

static TNI_TLS counter mine;
static pthread_mutex_t counters_lock = PTHREAD_MUTEX_INITIALIZER;
static counter *counters;
static _Atomic int64_t n_of_others; /* of threads that ended, or could not be listed */

/* Alive in the parent of a forked child that had other threads: what those held is there for ever. */
static int64_t left_behind;
static int64_t of_living_threads; /* at the fork under way */

static void fork_before_COUNTERS(void) {
    pthread_mutex_lock(&counters_lock);
    of_living_threads = 0;
    for (counter *c = counters; c; c = c->next)
        of_living_threads += c == &mine ? 0 : atomic_load_explicit(&c->n, memory_order_relaxed);
}

/* In a child: the counters of the others lie in memory that new threads will have. */
static void fork_after_COUNTERS(bool in_child) {
    bool alone = !counters || (counters == &mine && !mine.next);
    pthread_mutex_unlock(&counters_lock);
    if (!in_child || alone)
        return;
    atomic_fetch_add(&n_of_others, of_living_threads);
    mine.next = NULL;
    counters = mine.known ? &mine : NULL;
    left_behind = tni_tensors_alive() - (int64_t)tni_scopes.n;
    if (left_behind < 0)
        left_behind = 0;
}

TNI_FORK_PART(COUNTERS)

int64_t tni_tensors_left_behind(void) {
    return left_behind;
}

static void forget_thread(void) {
    pthread_mutex_lock(&counters_lock);
    counter **p = &counters;
    while (*p && *p != &mine)
        p = &(*p)->next;
    if (*p)
        *p = mine.next;
    atomic_fetch_add(&n_of_others, atomic_exchange(&mine.n, 0));
    mine.known = false;
    pthread_mutex_unlock(&counters_lock);
}

static __attribute__((noinline)) void count_slow(int64_t by) {
    if (!tni_slab_thread_init() || !tni_thread_at_exit(forget_thread)) {
        atomic_fetch_add(&n_of_others, by);
        return;
    }
    pthread_mutex_lock(&counters_lock);
    mine.next = counters;
    counters = &mine;
    mine.known = true;
    atomic_store_explicit(&mine.n, by, memory_order_relaxed);
    pthread_mutex_unlock(&counters_lock);
}

static inline void count(int64_t by) {
    if (TNI_UNLIKELY(!mine.known)) {
        count_slow(by);
        return;
    }
    int64_t n = atomic_load_explicit(&mine.n, memory_order_relaxed);
    atomic_store_explicit(&mine.n, n + by, memory_order_relaxed);
}

int64_t tni_tensors_alive(void) {
    pthread_mutex_lock(&counters_lock);
    int64_t n = atomic_load(&n_of_others);
    for (counter *c = counters; c; c = c->next)
        n += atomic_load_explicit(&c->n, memory_order_relaxed);
    pthread_mutex_unlock(&counters_lock);
    return n;
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* Says which of the conditions for a tensor's sizes does not hold. */
static __attribute__((noinline, cold)) tn_tensor *refuse(tni_device *device, tn_dtype dtype,
                                                         int32_t rank, const int64_t *sizes) {
    if (rank < 0 || rank > TN_MAX_RANK)
        return tni_fail_null(TN_ERR_SHAPE, "a tensor of rank %d on %s: ranks go from 0 to %d", rank,
                             device->name, TN_MAX_RANK);
    const char *text = TNI_SHAPE_OF_SIZES(rank, sizes);
    if (!tni_is_dtype(dtype))
        return tni_fail_null(TN_ERR_DTYPE, "a tensor %s on %s: %d is no dtype", text, device->name,
                             dtype);
    if (!(device->dtypes & TN_DTYPE_BIT(dtype)))
        return tni_fail_null(
            TN_ERR_DTYPE,
            "a tensor %s: device %s cannot store %s; use another dtype, or another device", text,
            device->name, tn_dtype_name(dtype));
    for (int32_t i = 0; i < rank; i++) {
        if (sizes[i] < 0)
            return tni_fail_null(TN_ERR_SHAPE,
                                 "a tensor %s of %s: size %lld of dimension %d is negative", text,
                                 tn_dtype_name(dtype), (long long)sizes[i], i);
    }
    return tni_fail_null(TN_ERR_SHAPE,
                         "a tensor %s of %s: its size in bytes is more than 63 bits hold", text,
                         tn_dtype_name(dtype));
}

/* Gives back a slot in which nothing lives yet. Out of line, which keeps registers free on the path
 * that every operator takes. */
static __attribute__((noinline, cold)) tn_tensor *undo(tn_tensor *slot) {
    tni_slab_free(TNI_SLAB_TENSOR, slot);
    return NULL;
}

static bool storable(const tni_device *device, tn_dtype dtype) {
    return (uint32_t)dtype < TN_DTYPE_END && ((device->dtypes >> dtype) & 1);
}

/* ---- making ------------------------------------------------------------------------------ */

/* The key that a tensor asks for because of its dtype. */
static inline uint32_t keys_of(tn_dtype dtype) {
    return tni_is_storage_dtype(dtype) ? TN_KEY_BIT(TN_KEY_STORAGE_DTYPE) : 0;
}

static inline void fill_common(tn_tensor *t, tni_device *device, tn_dtype dtype, int32_t rank,
                               int64_t numel) {
    t->head.backends = device->backends;
    atomic_init(&t->refs, 1);
    t->device = device;
    t->autograd = NULL;
    t->owner = NULL;
    t->view_kind = 0;
    t->view.struct_size = sizeof t->view;
    t->view.numel = numel;
    t->view.dtype = dtype;
    t->view.rank = rank;
    t->view.sizes = t->sizes;
    t->view.strides = t->strides;
    t->view.layout = 0;
    t->view.reserved = 0;
}

/* Gives a slot, whose sizes and strides are set, its keys and `bytes` of fresh memory. */
static inline __attribute__((always_inline)) tn_tensor *finish_new(tn_tensor *t, tni_device *device,
                                                                   tn_dtype dtype, int32_t rank,
                                                                   int64_t numel, uint64_t bytes) {
    tni_block *block = NULL;
    if (TNI_LIKELY(bytes && !device->is_meta)) {
        block = tni_block_alloc(device, tni_stream_current(device), bytes);
        if (TNI_UNLIKELY(!block))
            return undo(t);
        t->own.memory = block->memory;
        t->own.offset = block->offset;
        t->own.host = block->host;
    } else {
        t->own.memory = 0;
        t->own.offset = 0;
        t->own.host = NULL;
    }
    fill_common(t, device, dtype, rank, numel);
    t->head.keys = tni_fresh.keys | keys_of(dtype);
    t->flags = tni_fresh.flags;
    t->storage = &t->own;
    t->view.memory = t->own.memory;
    t->view.offset = t->own.offset;
    atomic_init(&t->own.refs, 1);
    atomic_init(&t->own.version, 0);
    t->own.block = block;
    t->own.bytes = bytes;
    t->own.release = NULL;
    count(1);
    return t;
}

tn_tensor *tni_tensor_new(tni_device *device, tn_dtype dtype, int32_t rank, const int64_t *sizes) {
    if (TNI_UNLIKELY(!storable(device, dtype) || (uint32_t)rank > TN_MAX_RANK))
        return refuse(device, dtype, rank, sizes);
    tn_tensor *t = tni_slab_alloc(TNI_SLAB_TENSOR);
    if (TNI_UNLIKELY(!t))
        return tni_fail_memory_null("a tensor");
    int64_t stride = 1, numel = 1, bytes;
    bool wrong = false;
    for (int32_t i = rank - 1; i >= 0; i--) {
        int64_t n = sizes[i];
        t->sizes[i] = n;
        t->strides[i] = stride;
        wrong |= n < 0;
        numel = n ? numel : 0;
        wrong |= __builtin_mul_overflow(stride, n + !n, &stride);
    }
    wrong |= __builtin_mul_overflow(stride, tni_dtype_size(dtype), &bytes);
    if (TNI_UNLIKELY(wrong)) {
        undo(t);
        return refuse(device, dtype, rank, sizes);
    }
    return finish_new(t, device, dtype, rank, numel ? stride : 0, numel ? (uint64_t)bytes : 0);
}

tn_tensor *tni_tensor_new_like(const tn_tensor *like, tn_dtype dtype) {
    tni_device *device = like->device;
    int32_t rank = like->view.rank;
    if (TNI_UNLIKELY(!storable(device, dtype)))
        return refuse(device, dtype, rank, like->sizes);
    tn_tensor *t = tni_slab_alloc(TNI_SLAB_TENSOR);
    if (TNI_UNLIKELY(!t))
        return tni_fail_memory_null("a tensor");
    int64_t stride = 1, numel = like->view.numel;
    for (int32_t i = rank - 1; i >= 0; i--) {
        int64_t n = like->sizes[i];
        t->sizes[i] = n;
        t->strides[i] = stride;
        stride *= n + !n;
    }
    return finish_new(t, device, dtype, rank, numel, (uint64_t)(numel * tni_dtype_size(dtype)));
}

tn_tensor *tni_tensor_new_strided(tni_device *device, tn_dtype dtype, int32_t rank,
                                  const int64_t *sizes, const int64_t *strides) {
    if (!storable(device, dtype) || (uint32_t)rank > TN_MAX_RANK)
        return refuse(device, dtype, rank, sizes);
    int64_t numel, extent, bytes;
    for (int32_t i = 0; i < rank; i++) {
        if (strides[i] < 0)
            return tni_fail_null(TN_ERR_SHAPE,
                                 "a tensor with strides %s: strides are never negative",
                                 TNI_SHAPE_OF_SIZES(rank, strides));
    }
    if (!tni_reach(rank, sizes, strides, &numel, &extent) ||
        !tni_mul_i64(extent, tni_dtype_size(dtype), &bytes))
        return refuse(device, dtype, rank, sizes);
    tn_tensor *t = tni_slab_alloc(TNI_SLAB_TENSOR);
    if (!t)
        return tni_fail_memory_null("a tensor");
    for (int32_t i = 0; i < rank; i++) {
        t->sizes[i] = sizes[i];
        t->strides[i] = strides[i];
    }
    return finish_new(t, device, dtype, rank, numel, (uint64_t)bytes);
}

static __attribute__((noinline, cold)) tn_tensor *refuse_view(const tn_tensor *base, int32_t rank,
                                                              const int64_t *sizes,
                                                              const int64_t *strides,
                                                              int64_t offset) {
    if (rank < 0 || rank > TN_MAX_RANK)
        return tni_fail_null(TN_ERR_SHAPE, "tn_as_strided: rank %d; ranks go from 0 to %d", rank,
                             TN_MAX_RANK);
    const char *size_text = TNI_SHAPE_OF_SIZES(rank, sizes);
    const char *stride_text = TNI_SHAPE_OF_SIZES(rank, strides);
    int64_t numel, extent, bytes;
    if (offset < 0) {
        tni_fail(TN_ERR_SHAPE, "tn_as_strided: offset %lld is negative", (long long)offset);
    } else if (!tni_reach(rank, sizes, strides, &numel, &extent) ||
               !tni_add_i64(extent, offset, &extent) ||
               !tni_mul_i64(extent, tni_dtype_size(base->view.dtype), &bytes)) {
        tni_fail(TN_ERR_SHAPE,
                 "tn_as_strided: sizes %s, strides %s: sizes and strides must not be negative, and"
                 " what they reach must fit in 63 bits",
                 size_text, stride_text);
    } else {
        tni_fail(
            TN_ERR_SHAPE,
            "tn_as_strided: sizes %s, strides %s, offset %lld of %s need %lld bytes, storage has"
            " %llu",
            size_text, stride_text, (long long)offset, tn_dtype_name(base->view.dtype),
            (long long)bytes, (unsigned long long)base->storage->bytes);
    }
    return NULL;
}

/* A tensor over `storage`, whose sizes, strides, keys and flags are for the caller to fill in, as
 * what it keeps alive is for the caller to say. `offset` in bytes, in the memory. */
static inline tn_tensor *blank(tni_device *device, tn_storage *storage, tn_dtype dtype,
                               int32_t rank, int64_t numel, uint64_t offset) {
    tn_tensor *t = tni_slab_alloc(TNI_SLAB_TENSOR);
    if (TNI_UNLIKELY(!t))
        return tni_fail_memory_null("a view");
    fill_common(t, device, dtype, rank, numel);
    t->storage = storage;
    t->view.memory = storage->memory;
    t->view.offset = offset;
    count(1);
    return t;
}

/* The same, with the keys and flags of a view of base. */
static inline tn_tensor *blank_view(const tn_tensor *base, int32_t rank, int64_t numel,
                                    uint64_t offset) {
    tn_tensor *t = blank(base->device, base->storage, base->view.dtype, rank, numel, offset);
    if (TNI_UNLIKELY(!t))
        return NULL;
    t->head.keys =
        base->head.keys & (TN_KEY_BIT(TN_KEY_INPLACE_OR_VIEW) | TN_KEY_BIT(TN_KEY_STORAGE_DTYPE));
    t->flags = base->flags & TNI_TENSOR_INFERENCE;
    return t;
}

tn_tensor *tni_tensor_view_blank(tn_tensor *base, int32_t rank) {
    tn_tensor *t = blank_view(base, rank, base->view.numel, base->view.offset);
    if (TNI_LIKELY(t != NULL))
        t->owner = tni_keep(base->owner ? base->owner : base);
    return t;
}

static inline tn_tensor *make_view(tn_tensor *base, int32_t rank, const int64_t *sizes,
                                   const int64_t *strides, int64_t numel, uint64_t offset) {
    tn_tensor *t = blank_view(base, rank, numel, offset);
    if (TNI_UNLIKELY(!t))
        return NULL;
    t->owner = tni_keep(base->owner ? base->owner : base);
    for (int32_t i = 0; i < rank; i++) {
        t->sizes[i] = sizes[i];
        t->strides[i] = strides[i];
    }
    return t;
}

tn_tensor *tni_tensor_view(tn_tensor *base, int32_t rank, const int64_t *sizes,
                           const int64_t *strides, int64_t offset) {
    int64_t numel, extent, bytes;
    int64_t item = tni_dtype_size(base->view.dtype);
    /* An empty view touches nothing, so its offset may be anywhere, as in PyTorch. */
    if (TNI_UNLIKELY((uint32_t)rank > TN_MAX_RANK || offset < 0 ||
                     !tni_reach(rank, sizes, strides, &numel, &extent) ||
                     !tni_add_i64(extent, offset, &extent) || !tni_mul_i64(extent, item, &bytes) ||
                     (numel && (uint64_t)bytes > base->storage->bytes)))
        return refuse_view(base, rank, sizes, strides, offset);
    return make_view(base, rank, sizes, strides, numel,
                     base->storage->offset + (uint64_t)(offset * item));
}

tn_tensor *tni_tensor_view_all(tn_tensor *base, int32_t rank, const int64_t *sizes,
                               const int64_t *strides) {
    return make_view(base, rank, sizes, strides, base->view.numel, base->view.offset);
}

/* Gives a blank tensor its geometry and a reference to its storage. */
static tn_tensor *use_storage(tn_tensor *t, int32_t rank, const int64_t *sizes,
                              const int64_t *strides) {
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    if (rank > 0) {
        memcpy(t->sizes, sizes, (size_t)rank * sizeof *sizes);
        memcpy(t->strides, strides, (size_t)rank * sizeof *strides);
    }
    return t;
}

tn_tensor *tni_tensor_alias(tn_tensor *t) {
    tn_tensor *alias = blank_view(t, t->view.rank, t->view.numel, t->view.offset);
    return TNI_LIKELY(alias) ? use_storage(alias, t->view.rank, t->sizes, t->strides) : NULL;
}

tn_tensor *tni_tensor_part(tn_tensor *t, tn_dtype dtype, int32_t part) {
    int64_t size = tni_dtype_size(dtype), n_parts = tni_dtype_size(t->view.dtype) / size;
    tn_tensor *parts = blank(t->device, t->storage, dtype, t->view.rank, t->view.numel,
                             t->view.offset + (uint64_t)(part * size));
    if (!parts)
        return NULL;
    parts->head.keys = (t->head.keys & TN_KEY_BIT(TN_KEY_INPLACE_OR_VIEW)) | keys_of(dtype);
    parts->flags = t->flags & TNI_TENSOR_INFERENCE;
    use_storage(parts, t->view.rank, t->sizes, t->strides);
    for (int32_t d = 0; d < t->view.rank; d++)
        parts->strides[d] *= n_parts;
    return parts;
}

tn_tensor *tni_tensor_over(tn_storage *storage, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                           const int64_t *strides, int64_t numel, uint64_t offset) {
    tni_device *device = tni_storage_device(storage);
    if (!storable(device, dtype) || (uint32_t)rank > TN_MAX_RANK)
        return refuse(device, dtype, rank, sizes);
    tn_tensor *t = blank(device, storage, dtype, rank, numel, offset);
    if (!t)
        return NULL;
    t->head.keys = tni_fresh.keys | keys_of(dtype);
    t->flags = tni_fresh.flags;
    return use_storage(t, rank, sizes, strides);
}

tn_tensor *tni_tensor_foreign(tni_device *device, tn_dtype dtype, int32_t rank,
                              const int64_t *sizes, const int64_t *strides, tn_memory memory,
                              void *host, uint64_t bytes, void (*release)(void *), void *user) {
    if (!storable(device, dtype) || (uint32_t)rank > TN_MAX_RANK)
        return refuse(device, dtype, rank, sizes);
    int64_t numel, extent, needed;
    if (!tni_reach(rank, sizes, strides, &numel, &extent) ||
        !tni_mul_i64(extent, tni_dtype_size(dtype), &needed) || (uint64_t)needed > bytes)
        return tni_fail_null(
            TN_ERR_SHAPE,
            "foreign memory of %llu bytes: sizes %s with strides %s of %s do not fit in it",
            (unsigned long long)bytes, TNI_SHAPE_OF_SIZES(rank, sizes),
            TNI_SHAPE_OF_SIZES(rank, strides), tn_dtype_name(dtype));
    tn_tensor *t = tni_slab_alloc(TNI_SLAB_TENSOR);
    if (!t)
        return tni_fail_memory_null("a tensor");
    for (int32_t i = 0; i < rank; i++) {
        t->sizes[i] = sizes[i];
        t->strides[i] = strides[i];
    }
    t = finish_new(t, device, dtype, rank, numel, 0);
    t->own.memory = t->view.memory = memory;
    t->own.host = host;
    t->own.bytes = bytes;
    t->own.release = release;
    t->own.release_user = user;
    return t;
}

/* ---- dying ------------------------------------------------------------------------------- */

static inline void free_slot(tn_tensor *slot) {
    if (TNI_UNLIKELY(atomic_load_explicit(&tni_lifetimes_watched, memory_order_relaxed)))
        tni_slot_retire(slot);
    else
        tni_slab_free(TNI_SLAB_TENSOR, slot);
}

/* With the last reference the memory goes, and the slot. */
static inline __attribute__((always_inline)) void storage_drop(tn_storage *storage) {
    if (TNI_LIKELY(atomic_load_explicit(&storage->refs, memory_order_acquire) == 1) ||
        atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) == 1) {
        if (TNI_LIKELY(storage->block != NULL))
            tni_block_free(storage->block);
        else if (storage->release)
            storage->release(storage->release_user);
        free_slot((tn_tensor *)((char *)storage - offsetof(tn_tensor, own)));
    }
}

void tni_tensor_destroy(tn_tensor *t) {
    if (TNI_UNLIKELY(t->autograd != NULL))
        tni_autograd_destroy(t);
    tn_storage *storage = t->storage;
    tn_tensor *owner = t->owner;
    if (TNI_UNLIKELY(atomic_load_explicit(&tni_lifetimes_watched, memory_order_relaxed)))
        atomic_store_explicit(&t->refs, 0, memory_order_relaxed);
    if (storage != &t->own)
        free_slot(t);
    count(-1);
    if (owner)
        tni_drop(owner);
    else
        storage_drop(storage);
}

/* A handle that a program keeps counts among the tensors that are alive: what it has is not to be
 * lost in tn_shutdown. */
tn_storage *tn_storage_keep(tn_storage *storage) {
    if (storage) {
        atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
        count(1);
    }
    return storage;
}

void tn_storage_drop(tn_storage *storage) {
    if (storage) {
        count(-1);
        storage_drop(storage);
    }
}
