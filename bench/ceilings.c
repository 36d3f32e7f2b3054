/* See ceilings.h. */
#include "bench/ceilings.h"
#include "bench/common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, TRIES = 7, BYTES = 64 << 20, CHAINS = 12, STEPS = 10000000 };

typedef struct part {
    pthread_barrier_t *meet;
    double began, ended;
    char *to, *from; /* to copy */
    size_t bytes;
    float (*chains)(float by); /* to multiply */
    float product;
} part;

static void *copy(void *context) {
    part *p = context;
    pthread_barrier_wait(p->meet);
    p->began = bench_now();
    memcpy(p->to, p->from, p->bytes);
    p->ended = bench_now();
    return NULL;
}

/* Chains hide how long one step takes, since they do not wait for each other; there are registers for
 * all of them. */
#define CHAINS_OF(name, lanes, target) \
    target static float name(float by) { \
        typedef float vector __attribute__((vector_size((lanes) * sizeof(float)))); \
        vector sum[CHAINS], factor; \
        for (int i = 0; i < (lanes); i++) \
            factor[i] = by; \
        for (int c = 0; c < CHAINS; c++) \
            sum[c] = factor * (float)c; \
        for (int step = 0; step < STEPS; step++) { \
            _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) sum[c] = \
                sum[c] * factor + factor; \
        } \
        for (int c = 1; c < CHAINS; c++) \
            sum[0] += sum[c]; \
        return sum[0][0]; \
    }
CHAINS_OF(chains_of_4, 4, )
#ifdef __x86_64__
CHAINS_OF(chains_of_8, 8, __attribute__((target("avx2,fma"))))
CHAINS_OF(chains_of_16, 16, __attribute__((target("avx512f"))))
#endif

typedef struct width {
    float (*chains)(float by);
    int lanes;
} width;

static width find_widest(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return (width){chains_of_16, 16};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (width){chains_of_8, 8};
#endif
    return (width){chains_of_4, 4};
}

static void *multiply(void *context) {
    part *p = context;
    pthread_barrier_wait(p->meet);
    p->began = bench_now();
    p->product = p->chains(0.999f);
    p->ended = bench_now();
    BENCH_OPAQUE(p);
    return NULL;
}

/* The least seconds from the first thread's start to the last one's end. */
static double least(void *(*work)(void *), part *parts, int n) {
    pthread_t threads[MAX_THREADS];
    pthread_barrier_t meet;
    double best = 1e9;
    pthread_barrier_init(&meet, NULL, (unsigned)n);
    for (int t = 0; t < TRIES; t++) {
        double began = 1e300, ended = 0;
        for (int i = 0; i < n; i++) {
            parts[i].meet = &meet;
            if (pthread_create(&threads[i], NULL, work, &parts[i]) != 0) {
                fprintf(stderr, "ceilings: the system starts no %d threads\n", n);
                exit(1);
            }
        }
        for (int i = 0; i < n; i++) {
            pthread_join(threads[i], NULL);
            began = parts[i].began < began ? parts[i].began : began;
            ended = parts[i].ended > ended ? parts[i].ended : ended;
        }
        best = ended - began < best ? ended - began : best;
    }
    pthread_barrier_destroy(&meet);
    return best;
}

double bench_ceiling_copy(uint32_t n_threads) {
    part parts[MAX_THREADS] = {0};
    int n = n_threads < MAX_THREADS ? (int)n_threads : MAX_THREADS;
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

double bench_ceiling_multiply(uint32_t n_threads) {
    part parts[MAX_THREADS] = {0};
    int n = n_threads < MAX_THREADS ? (int)n_threads : MAX_THREADS;
    width widest = find_widest();
    for (int i = 0; i < n; i++)
        parts[i].chains = widest.chains;
    return 2e-9 * widest.lanes * CHAINS * (double)STEPS * n / least(multiply, parts, n);
}
