/* See pairs.h. */
#include "bench/pairs.h"

#include <stdio.h>
#include <string.h>

static const double ENOUGH = 0.02; /* seconds of one side in a round */
enum { MOST = 4096 };

static double unit_of(const pair *p) {
    return !strcmp(p->unit, "us")     ? 1e6
           : !strcmp(p->unit, "ms")   ? 1e3
           : !strcmp(p->unit, "GB/s") ? 1e-9
                                      : 1e-12;
}

/* How often to do it; the first times build programs and touch memory. 0 when it failed. */
static uint64_t calibrate(const pair *p, pair_side side) {
    uint64_t n = p->n ? p->n : 1;
    double took = side(n);
    if (p->n)
        return took < 0 ? 0 : n;
    for (took = side(1); took >= 0 && took < ENOUGH && n < MOST; took = side(n))
        n *= 2;
    return took < 0 ? 0 : n;
}

/* The side's figure, a time or a rate; negative when it failed. */
static double figure(const pair *p, pair_side side, double amount, uint64_t n) {
    double took = side(n) / (double)n;
    return took < 0 ? -1 : (p->amount > 0 ? amount / took : took) * unit_of(p);
}

static bool reached(double value, double limit, bool at_least) {
    return limit == 0 || (at_least ? value >= limit : value <= limit);
}

/* "to reach: 0.9 at least, 5 GB/s at least: met" */
static void print_target(const pair *p, double ours, double ratio) {
    bool is_rate = p->amount > 0;
    const char *sense = is_rate ? "least" : "most";
    if (p->limit == 0 && p->ratio == 0)
        return;
    printf("  to reach:");
    if (p->limit != 0)
        printf(" %g %s at %s%s", p->limit, p->unit, sense, p->ratio != 0 ? "," : "");
    if (p->ratio != 0)
        printf(" ratio %g at %s", p->ratio, sense);
    printf(": %s", reached(ours, p->limit, is_rate) && reached(ratio, p->ratio, is_rate)
                       ? "met"
                       : "missed");
}

int pair_run(const pair *p, int rounds, const char *(*why)(void)) {
    double a[PAIRS_MAX_ROUNDS], b[PAIRS_MAX_ROUNDS], ratios[PAIRS_MAX_ROUNDS];
    uint64_t n = calibrate(p, p->ours), n_peer = p->peer ? calibrate(p, p->peer) : 1;
    bool ok = n && n_peer;
    for (int i = 0; ok && i < rounds; i++) { /* who is first changes */
        if (p->peer && i % 2)
            b[i] = figure(p, p->peer, p->peer_amount, n_peer);
        a[i] = figure(p, p->ours, p->amount, n);
        if (p->peer && i % 2 == 0)
            b[i] = figure(p, p->peer, p->peer_amount, n_peer);
        ok = a[i] >= 0 && (!p->peer || b[i] >= 0);
        ratios[i] = p->peer ? a[i] / b[i] : 0;
    }
    printf("%-34s ", p->what);
    if (!ok) {
        printf("failed: %s\n", why());
        return 1;
    }
    double ours = bench_median(a, rounds), ratio = bench_median(ratios, rounds);
    printf("%10.4g %-7s", ours, p->unit);
    if (p->peer)
        printf(" %-12s %10.4g %-7s ratio %6.3f", p->peer_name, bench_median(b, rounds), p->unit,
               ratio);
    print_target(p, ours, ratio);
    putchar('\n');
    fflush(stdout);
    return 0;
}
