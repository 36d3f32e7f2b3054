/* One seed for all devices, and for each device how far it is in the seed's stream.
 *
 * A device that has drawn nothing since the last tn_manual_seed has no state of its own: it starts
 * from the common seed, so seeding does not have to open devices. */
#include "core/random/generator.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fork.h"

static const uint64_t default_seed = 67280421310721u;

typedef struct generator {
    uint64_t seed, offset; /* offset in blocks of four words */
    bool own;              /* else it stands at the start of the common seed */
} generator;

static tni_lock lock = TNI_LOCK_INITIALIZER;
static uint64_t common_seed;
static bool seeded;
static generator generators[TNI_MAX_DEVICES]; /* by ordinal */

TNI_FORK_LOCK(GENERATORS, lock, tni_fork_as_it_is)

/* Under the lock. */
static generator *generator_of(const tni_device *device) {
    generator *g = &generators[device->ordinal];
    if (!g->own) {
        if (!seeded) {
            int64_t wish = tni_env_i64(TNI_ENV_SEED);
            common_seed = wish ? (uint64_t)wish : default_seed;
            seeded = true;
        }
        *g = (generator){common_seed, 0, true};
    }
    return g;
}

static void forget_all(void) {
    for (int i = 0; i < TNI_MAX_DEVICES; i++)
        generators[i].own = false;
}

void tn_manual_seed(uint64_t seed) {
    tni_lock_take(&lock);
    common_seed = seed;
    seeded = true;
    forget_all();
    tni_lock_give(&lock);
}

void tni_generators_finish(void) {
    tni_lock_take(&lock);
    seeded = false;
    forget_all();
    tni_lock_give(&lock);
}

void tni_generator_take(tni_device *device, uint64_t n_words, uint64_t *out_seed,
                        uint64_t *out_offset) {
    tni_lock_take(&lock);
    generator *g = generator_of(device);
    *out_seed = g->seed;
    *out_offset = g->offset;
    g->offset += n_words / 4 + (n_words % 4 != 0);
    tni_lock_give(&lock);
}

tn_status tn_generator_get(tn_device device, uint64_t *out_seed, uint64_t *out_offset) {
    if (!out_seed || !out_offset)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_generator_get: out_seed or out_offset is NULL");
    *out_seed = *out_offset = 0;
    tni_device *d = tni_device_get(device);
    if (!d)
        return tn_error_status();
    tni_generator_take(d, 0, out_seed, out_offset);
    return TN_OK;
}

tn_status tn_generator_set(tn_device device, uint64_t seed, uint64_t offset) {
    tni_device *d = tni_device_get(device);
    if (!d)
        return tn_error_status();
    tni_lock_take(&lock);
    generators[d->ordinal] = (generator){seed, offset, true};
    tni_lock_give(&lock);
    return TN_OK;
}

/* ---- draws that are made again ----------------------------------------------------------- */

TNI_TLS tni_drawing *tni_drawing_now;

tn_status tni_draw_note(tni_drawing *drawing, tni_draw draw) {
    tni_draws *d = drawing->draws;
    if (!tni_grow(&d->items, d->n, &d->capacity, sizeof *d->items))
        return tni_fail_memory("the random numbers of a function");
    d->items[d->n++] = draw;
    return TN_OK;
}

tn_status tni_draw_again(tni_drawing *drawing, const void *graph, tni_draw *out) {
    const tni_draws *d = drawing->draws;
    if (drawing->next == d->n)
        return tni_fail(TN_ERR_STATE,
                        "a function that ran again drew random numbers more often than the first "
                        "time (%llu times); it must do the same each time",
                        (unsigned long long)d->n);
    *out = d->items[drawing->next++];
    if (out->graph != graph)
        return tni_fail(TN_ERR_STATE,
                        "a function that drew random numbers %s a capture runs again %s; a model's "
                        "forward and backward pass are captured together",
                        out->graph ? "inside of" : "outside of",
                        graph ? "inside of one" : "outside of it");
    return TN_OK;
}
