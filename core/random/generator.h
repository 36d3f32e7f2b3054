/* The generators inside the core: who draws reserves a range of a device's stream first. */
#ifndef TNI_CORE_RANDOM_GENERATOR_H
#define TNI_CORE_RANDOM_GENERATOR_H

#include "core/device/device.h"

#include <tenon/random.h>

/* Reserves `n_words` 32-bit words, rounded up to whole Philox blocks of four, and returns what the
 * kernel random_bits takes: word i of the caller is word 4 * offset + i of the seed's stream. */
void tni_generator_take(tni_device *device, uint64_t n_words, uint64_t *out_seed,
                        uint64_t *out_offset);

/* What a function drew in this thread: noted, so that it draws the same when it runs again. */
typedef struct tni_draw {
    uint64_t seed, offset;
    const void *graph; /* that captured it: the offset is its own; NULL: none */
} tni_draw;
typedef struct tni_draws {
    tni_draw *items;
    size_t n, capacity;
} tni_draws;
typedef struct tni_drawing {
    tni_draws *draws;
    size_t next; /* to be given out again */
    bool again;
} tni_drawing;
extern TNI_TLS tni_drawing *tni_drawing_now; /* NULL: nobody notes */

tn_status tni_draw_note(tni_drawing *drawing, tni_draw draw);
/* The next one noted; TN_ERR_STATE where there is none such. */
tn_status tni_draw_again(tni_drawing *drawing, const void *graph, tni_draw *out);

/* Forgets where the devices' generators stand, and the seed: for tn_shutdown, after which the same
 * ordinals may mean other devices. */
void tni_generators_finish(void);

#endif
