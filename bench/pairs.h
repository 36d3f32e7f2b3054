/* Two sides that do the same, in turns, in one process: medians of both and of their ratio, beside
 * what is to be reached. For programs that compare Tenon with what users have without it. */
#ifndef TNI_BENCH_PAIRS_H
#define TNI_BENCH_PAIRS_H

#include "bench/common.h"

enum { PAIRS_MAX_ROUNDS = 101 };

/* Does the work n times and returns the seconds it took; negative when it failed. */
typedef double (*pair_side)(uint64_t n);

typedef struct pair {
    const char *what, *peer_name;
    pair_side ours, peer; /* peer may be NULL */

    /* "us" or "ms" of one; with `amount`, the bytes or operations of one, "GB/s" or "TFLOP/s". */
    const char *unit;
    double amount, peer_amount;
    uint64_t n; /* how often in a round; 0: as often as it takes to measure it well */

    /* To reach, 0 for nothing: our figure, and our figure divided by the peer's; times at most,
     * rates at least. */
    double limit, ratio;
} pair;

/* Prints a line. 0, or 1 when a side failed, which is said in the line with `why`. */
int pair_run(const pair *p, int rounds, const char *(*why)(void));

#endif
