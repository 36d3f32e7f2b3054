/* What a library made ready for calls, kept by what the calls look like: shapes, strides, dtypes
 * and alignments. The first call opens the library. A table that only grows, to a size that is
 * fixed: it is searched without a lock, as every call does, and written under one. What finds no
 * room serves one call. */
#ifndef TNI_PLUGINS_CUDA_PLANS_H
#define TNI_PLUGINS_CUDA_PLANS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenon/plugin.h>

enum { CUDA_PLANS = 1024, CUDA_PLANS_KEPT = CUDA_PLANS / 4 * 3 };

/* What an address is a multiple of, as far as plans tell alignments apart: 256, 16 or less. */
static inline int64_t cuda_alignment(uint64_t address) {
    uint64_t lowest = (address | 256) & ~((address | 256) - 1);
    return (int64_t)(lowest == 256 || lowest < 16 ? lowest : 16);
}

/* The first member of a plan. */
typedef struct cuda_plan {
    const int64_t *key; /* inside the plan */
    bool is_kept;       /* else it is destroyed after its call */
    bool is_declined;   /* the library cannot do it; known, so that it is not asked again */
} cuda_plan;

typedef struct cuda_plans {
    void *owner;
    size_t key_words;
    bool is_needed_later; /* queued work needs the plan, so that none serves one call alone: where
                             there is no room, TN_ERR_UNSUPPORTED */
    /* Opens the library, which is done once; false: there is none that will do, and no plan. */
    bool (*open)(void *owner);
    /* Makes a plan for `key`; one that is declined is a plan, too. What may go well the next time
     * fails: TN_ERR_UNSUPPORTED and the like. One thread at a time is in it. */
    tn_status (*build)(void *owner, const int64_t *key, cuda_plan **out);
    void (*destroy)(void *owner, cuda_plan *plan);

    pthread_mutex_t building; /* guards what follows, but for reading */
    bool is_open;
    atomic_bool is_missing;
    int n_kept;
    _Atomic(cuda_plan *) plans[CUDA_PLANS];
} cuda_plans;

/* `plans` is zeros but for the first members. */
void cuda_plans_init(cuda_plans *plans);
void cuda_plans_finish(cuda_plans *plans);

/* The plan for `key`, found or built; TN_ERR_UNSUPPORTED where it is declined, or the library missing.
 * [any-thread] */
tn_status cuda_plans_get(cuda_plans *plans, const int64_t *key, cuda_plan **out);

/* To be called when the call that a plan was got for is over. [any-thread] */
void cuda_plans_put(cuda_plans *plans, cuda_plan *plan);

#endif
