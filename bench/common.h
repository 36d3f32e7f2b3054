/* What every benchmark shares, the peers' programs too: rows, timing, and how results are told.
 *
 * A program is a list of rows. bench_main runs them all and prints a table or JSON, or, with
 * --serve, runs one at a time as its standard input asks, which is how compare.py interleaves two
 * programs row by row. Compiles as C and as C++, so that both sides are timed by the same code.
 */
#ifndef TNI_BENCH_COMMON_H
#define TNI_BENCH_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One measurement: exactly one of `run`, `measure` and `child` is set. */
typedef struct bench_row {
    const char *name; /* as the command line and compare.py spell it */
    const char *what;
    const char *unit; /* "ns", "us", "ms" for run; free for the others */

    /* Does the work n times and returns the seconds it took; negative when it failed. */
    double (*run)(uint64_t n);
    /* The value itself, in `unit`; negative when it failed. */
    double (*measure)(void);
    /* The same, in a fresh process of this program, where nothing was done before. */
    double (*child)(uint32_t n_threads);
    /* Of a child: its value is what it says, or how long it took from its start to saying it. */
    bool times_child;
} bench_row;

typedef struct bench_program {
    const char *name;
    const char *subject; /* "Tenon", "PyTorch" */
    const bench_row *rows;
    int n_rows;
    /* Sets the number of threads; called once before any row. */
    bool (*start)(uint32_t n_threads);
    const char *(*error)(void);   /* why the last row failed */
    const char *(*version)(void); /* of what is measured, with its libraries */
} bench_program;

/* What main of a benchmark returns. */
int bench_main(const bench_program *program, int argc, char **argv);

/* Work is too small for its figures to mean anything (--tiny): for trying the programs. */
extern bool bench_tiny;

/* Sorts the samples. */
double bench_median(double *samples, int n);

/* Starts this program anew with `given` (seven at most, NULL ends them): the number that it prints
 * first, and the seconds until it did. False when it prints none, or a negative one. */
bool bench_spawn(char *const *given, double *out_value, double *out_took);

/* Seconds of a clock that only goes forward. */
static inline double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this process, in MiB, as the system counts: "VmRSS" now, "VmHWM" at most. Negative when it
 * does not say. */
double bench_resident(const char *field);

/* Keeps the compiler from looking through a value. */
#define BENCH_OPAQUE(p) __asm__ volatile("" : "+r"(p)::"memory")

#ifdef __cplusplus
}
#endif

#endif
