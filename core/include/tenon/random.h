/* tenon/random.h: the random numbers that operators draw.
 *
 * Numbers come from a counter, not from a state that evolves: each device's generator is a seed and
 * the count of blocks of four 32-bit words it has given out. The same seed gives the same numbers
 * on every device, and the two numbers are all there is to save. Every function may be called from
 * any thread; threads that draw from one device share its stream.
 */
#ifndef TENON_RANDOM_H
#define TENON_RANDOM_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the generators of all devices anew with `seed`, of devices opened later too. Before the
 * first call the seed is TENON_SEED, else 67280421310721. */
TN_API void tn_manual_seed(uint64_t seed);

/* Where a device's generator stands, and putting it there: what is drawn after a set is what was
 * drawn after the get. */
TN_API tn_status tn_generator_get(tn_device device, uint64_t *out_seed, uint64_t *out_offset);
TN_API tn_status tn_generator_set(tn_device device, uint64_t seed, uint64_t offset);

#ifdef __cplusplus
}
#endif

#endif /* TENON_RANDOM_H */
