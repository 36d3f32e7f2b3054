/* See plans.h. */
#include "plugins/cuda/plans.h"

#include <string.h>

static uint64_t hash(const int64_t *key, size_t words) {
    uint64_t h = words;
    for (size_t i = 0; i < words; i++) {
        h = (h ^ (uint64_t)key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

/* The plan for `key`, or NULL and the free place where it would be. */
static cuda_plan *find(cuda_plans *plans, const int64_t *key, size_t *out_at) {
    size_t at = hash(key, plans->key_words) % CUDA_PLANS;
    for (;; at = (at + 1) % CUDA_PLANS) { /* ends: never more than CUDA_PLANS_KEPT are taken */
        cuda_plan *plan = atomic_load_explicit(&plans->plans[at], memory_order_acquire);
        *out_at = at;
        if (!plan || memcmp(plan->key, key, plans->key_words * sizeof *key) == 0)
            return plan;
    }
}

static bool is_missing(cuda_plans *plans) {
    return atomic_load_explicit(&plans->is_missing, memory_order_relaxed);
}

static bool open_once(cuda_plans *plans) {
    if (!plans->is_open && !is_missing(plans)) {
        plans->is_open = plans->open(plans->owner);
        atomic_store_explicit(&plans->is_missing, !plans->is_open, memory_order_relaxed);
    }
    return plans->is_open;
}

static tn_status build(cuda_plans *plans, const int64_t *key, cuda_plan **out) {
    size_t at;
    tn_status status = TN_OK;
    pthread_mutex_lock(&plans->building);
    *out = find(plans, key, &at);
    if (!*out &&
        (!open_once(plans) || (plans->is_needed_later && plans->n_kept == CUDA_PLANS_KEPT)))
        status = TN_ERR_UNSUPPORTED;
    else if (!*out) {
        status = plans->build(plans->owner, key, out);
        if (status == TN_OK && plans->n_kept < CUDA_PLANS_KEPT) {
            plans->n_kept++;
            (*out)->is_kept = true;
            atomic_store_explicit(&plans->plans[at], *out, memory_order_release);
        }
    }
    pthread_mutex_unlock(&plans->building);
    return status;
}

tn_status cuda_plans_get(cuda_plans *plans, const int64_t *key, cuda_plan **out) {
    size_t at;
    *out = NULL;
    if (is_missing(plans))
        return TN_ERR_UNSUPPORTED;
    *out = find(plans, key, &at);
    tn_status status = *out ? TN_OK : build(plans, key, out);
    if (status == TN_OK && (*out)->is_declined) {
        cuda_plans_put(plans, *out);
        *out = NULL;
        return TN_ERR_UNSUPPORTED;
    }
    return status;
}

void cuda_plans_put(cuda_plans *plans, cuda_plan *plan) {
    if (!plan->is_kept)
        plans->destroy(plans->owner, plan);
}

void cuda_plans_init(cuda_plans *plans) {
    pthread_mutex_init(&plans->building, NULL);
}

void cuda_plans_finish(cuda_plans *plans) {
    for (size_t at = 0; at < CUDA_PLANS; at++) {
        cuda_plan *plan = atomic_load_explicit(&plans->plans[at], memory_order_relaxed);
        if (plan)
            plans->destroy(plans->owner, plan);
    }
    pthread_mutex_destroy(&plans->building);
}
