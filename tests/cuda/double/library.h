/* What doubles of libraries above the driver have in common: calls that are counted and fail on
 * demand, objects that are counted, misuse that is told.
 *
 * Words between spaces or semicolons, from the environment (TENON_TEST_CUBLASLT, TENON_TEST_CUDNN)
 * or a test:
 *
 *   version=110000           what the library says that it is
 *   fail=FUNCTION:N:STATUS   its Nth call fails with that number; N+: and all after it
 *
 * Like the driver double, each is found by its path. */
#ifndef TNI_TESTS_CUDA_DOUBLE_LIBRARY_H
#define TNI_TESTS_CUDA_DOUBLE_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

/* For tests; those of cuBLASLt begin with cublaslt_double_. */
#define DOUBLE_LIBRARY_FUNCTIONS(prefix) \
    __attribute__((visibility("default"))) bool prefix##_configure(const char *words); \
    /* Since the last configure(); NULL: of all functions. */ \
    __attribute__((visibility("default"))) uint64_t prefix##_calls(const char *function); \
    /* Handles and descriptors that were not destroyed. */ \
    __attribute__((visibility("default"))) int64_t prefix##_alive(void); \
    /* Calls that the library would not have been made for: wrong types or sizes of attributes, \
     * descriptors that are not finalized, addresses that are not aligned as was said. Each is told on \
     * stderr. */ \
    __attribute__((visibility("default"))) uint64_t prefix##_mistakes(void); \
    /* What was computed last: "tf32", "in place" and the like; "" where there is nothing to say. */ \
    __attribute__((visibility("default"))) const char *prefix##_last(void);

DOUBLE_LIBRARY_FUNCTIONS(cublaslt_double)
DOUBLE_LIBRARY_FUNCTIONS(cudnn_double)

/* ---- for the doubles --------------------------------------------------------------------- */

/* Counts a call; the status that it is to fail with, or 0. */
int library_enter(const char *function);

/* Objects made and destroyed. */
void library_made(int n);

/* Counts and tells a mistake; returns `status`. */
int library_mistake(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t library_version(uint64_t otherwise);
void library_say(const char *what);

/* Each library says who it is and defines what tests call. */
extern const char *const library_variable;

bool library_configure(const char *words);
uint64_t library_calls(const char *function);
int64_t library_alive(void);
uint64_t library_mistakes(void);
const char *library_last(void);

#define DOUBLE_LIBRARY_DEFINE(prefix, variable) \
    const char *const library_variable = variable; \
    bool prefix##_configure(const char *words) { \
        return library_configure(words); \
    } \
    uint64_t prefix##_calls(const char *function) { \
        return library_calls(function); \
    } \
    int64_t prefix##_alive(void) { \
        return library_alive(); \
    } \
    uint64_t prefix##_mistakes(void) { \
        return library_mistakes(); \
    } \
    const char *prefix##_last(void) { \
        return library_last(); \
    }

/* ---- numbers ----------------------------------------------------------------------------- */

typedef enum number_type { NUMBER_F32, NUMBER_F64, NUMBER_F16, NUMBER_BF16 } number_type;

int64_t number_bytes(number_type type);

/* Elements of a tensor in memory, which are `n` with `stride` between them, as f64, and back; those
 * of f16 and bf16 are rounded from f32. */
void numbers_load(number_type type, const void *from, int64_t at, int64_t stride, int64_t n,
                  double *to);
void numbers_store(number_type type, void *to, int64_t at, int64_t stride, int64_t n,
                   const double *from);

/* To 10 bits of fraction, as tensor cores take f32. */
double number_tf32(double x);

#endif
