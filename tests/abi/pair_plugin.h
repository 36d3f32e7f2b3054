/* What a plugin of a pairing saw, for the tests: its object exports `pair_seen`. */
#ifndef TNI_TESTS_ABI_PAIR_PLUGIN_H
#define TNI_TESTS_ABI_PAIR_PLUGIN_H

#include <stdint.h>

typedef struct pair_counts {
    int32_t highest_property; /* that was asked for */
    int32_t n_wrong; /* times that something was there, or not, against the host's version */
    uint64_t n_calls;
} pair_counts;

#endif
