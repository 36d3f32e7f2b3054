/* One tensor, and where the generator stands. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_RANDOM_BITS_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_RANDOM_BITS_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct random_bits_params {
    i64 n_words;
    i64 offset; /* in words */
    i64 seed;   /* the key; of random_bits_from where key and first block lie, in elements */
    i64 first;  /* the first block, or what is added to it */
} random_bits_params;

#endif
