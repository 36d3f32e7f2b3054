/* See ceilings.h. */
#include "bench/ceilings.h"
#include "bench/common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 256, TRIES = 7, BYTES = 64 << 20, CHAINS = 12, STEPS = 10000000 };

typedef struct part {
    pthread_barrier_t *meet;
    char *to, *from;
    size_t bytes;
    double began, ended;
    float (*chains)(float);
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
    p->began = bench_now();
    memcpy(p->to, p->from, p->bytes);
    p->ended = bench_now();
    return NULL;
}

/* CHAINS(name, lanes): chains that do not wait for each other hide how long one step takes. As wide as
 * registers are, of which there are enough. */
#define CHAINS_OF(name, lanes) \
    static float name(float by) { \
        typedef float vector __attribute__((vector_size((lanes) * sizeof(float)))); \
        vector sum[CHAINS], factor; \
        for (int i = 0; i < (lanes); i++) \
            factor[i] = by; \
        for (int c = 0; c < CHAINS; c++) \
            sum[c] = factor * (float)c; \
        for (int step = 0; step < STEPS; step++) \
            _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) sum[c] = \
                sum[c] * factor + factor; \
        for (int c = 1; c < CHAINS; c++) \
            sum[0] += sum[c]; \
        return sum[0][0]; \
    }
#ifdef __x86_64__
__attribute__((target("avx512f"))) CHAINS_OF(chains_of_16, 16) __attribute__((target("avx2,fma")))
CHAINS_OF(chains_of_8, 8)
#endif
    CHAINS_OF(chains_of_4, 4)

    /* The widest that runs here. */
    static float (*find_chains(int *out_lanes))(float) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        *out_lanes = 16;
        return chains_of_16;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *out_lanes = 8;
        return chains_of_8;
    }
#endif
    *out_lanes = 4;
    return chains_of_4;
}

static void *multiply(void *context) {
    part *p = context;
    pthread_barrier_wait(p->meet);
    p->began = bench_now();
    p->seen = p->chains(0.999f);
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
            pthread_create(&threads[i], NULL, work, &parts[i]);
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
    int n = count_threads(), lanes = 0;
    for (int i = 0; i < n; i++)
        parts[i].chains = find_chains(&lanes);
    return 2e-9 * lanes * CHAINS * (double)STEPS * n / least(multiply, parts, n);
}
