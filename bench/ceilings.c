/* See ceilings.h. */
#include "bench/ceilings.h"
#include "bench/common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 256, TRIES = 7, BYTES = 64 << 20, LANES = 16, CHAINS = 12, STEPS = 2000000 };

typedef struct part {
    pthread_barrier_t *meet;
    char *to, *from;
    size_t bytes;
    float seen;
} part;

static int count_threads(void) {
    const char *said = getenv("OMP_NUM_THREADS");
    int n = said && atoi(said) > 0 ? atoi(said) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

static void *copy(void *context) {
    part *p = context;
    pthread_barrier_wait(p->meet);
    memcpy(p->to, p->from, p->bytes);
    pthread_barrier_wait(p->meet);
    return NULL;
}

/* Chains that do not wait for each other hide how long one step takes. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static float
chains(float by) {
    lanes sum[CHAINS];
    lanes factor;
    for (int i = 0; i < LANES; i++)
        factor[i] = by;
    for (int c = 0; c < CHAINS; c++)
        sum[c] = factor * (float)c;
    for (int step = 0; step < STEPS; step++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            sum[c] = sum[c] * factor + factor;
    for (int c = 1; c < CHAINS; c++)
        sum[0] += sum[c];
    return sum[0][0];
}

static void *multiply(void *context) {
    part *p = context;
    pthread_barrier_wait(p->meet);
    p->seen = chains(0.999f);
    BENCH_OPAQUE(p);
    pthread_barrier_wait(p->meet);
    return NULL;
}

/* The least seconds that all threads took for their parts. */
static double least(void *(*work)(void *), part *parts, int n) {
    pthread_t threads[MAX_THREADS];
    pthread_barrier_t meet;
    double best = 1e9;
    pthread_barrier_init(&meet, NULL, (unsigned)n + 1);
    for (int t = 0; t < TRIES; t++) {
        for (int i = 0; i < n; i++) {
            parts[i].meet = &meet;
            pthread_create(&threads[i], NULL, work, &parts[i]);
        }
        pthread_barrier_wait(&meet);
        double start = bench_now();
        pthread_barrier_wait(&meet);
        double took = bench_now() - start;
        best = took < best ? took : best;
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&meet);
    return best;
}

double bench_ceiling_copy(void) {
    part parts[MAX_THREADS] = {0};
    int n = count_threads();
    char *to = malloc(BYTES), *from = malloc(BYTES);
    double gb = -1;
    if (to && from) {
        memset(to, 1, BYTES);
        memset(from, 2, BYTES);
        for (int i = 0; i < n; i++) {
            parts[i].bytes = BYTES / (size_t)n;
            parts[i].to = to + (size_t)i * parts[i].bytes;
            parts[i].from = from + (size_t)i * parts[i].bytes;
        }
        gb = 2e-9 * (double)parts[0].bytes * n / least(copy, parts, n);
    }
    free(to);
    free(from);
    return gb;
}

double bench_ceiling_multiply(void) {
    part parts[MAX_THREADS] = {0};
    int n = count_threads();
    return 2e-9 * LANES * CHAINS * (double)STEPS * n / least(multiply, parts, n);
}
