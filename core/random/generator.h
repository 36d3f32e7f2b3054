/* The generators inside the core: who draws reserves a range of a device's stream first. */
#ifndef TNI_CORE_RANDOM_GENERATOR_H
#define TNI_CORE_RANDOM_GENERATOR_H

#include "core/device/device.h"

#include <tenon/random.h>

/* Reserves `n_words` 32-bit words, rounded up to whole Philox blocks of four, and returns what the
 * kernel random_bits takes: word i of the caller is word 4 * offset + i of the seed's stream. */
void tni_generator_take(tni_device *device, uint64_t n_words, uint64_t *out_seed,
                        uint64_t *out_offset);

/* Forgets where the devices' generators stand, and the seed: for tn_shutdown, after which the same
 * ordinals may mean other devices. */
void tni_generators_finish(void);

#endif
