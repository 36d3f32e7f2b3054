/* Host memory. All of the library's and the plugins' host memory comes from here, so that tests can
 * count it and make any allocation fail. Every function may be called from any thread. */
#ifndef TNI_BASE_ALLOC_H
#define TNI_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when there is no memory; no error is set (the caller knows what it was for). */
void *tni_alloc(size_t bytes);
void *tni_calloc(size_t n, size_t bytes);
/* On failure the old block is still there. In the hard build it always moves. */
void *tni_realloc(void *p, size_t bytes);
/* `alignment` a power of two. Freed with tni_free like the rest. */
void *tni_alloc_aligned(size_t bytes, size_t alignment);
void tni_free(void *p);
char *tni_strdup(const char *s);
/* printf into a new string. */
char *tni_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for n elements of `size` bytes, or for one more than n, in a growing array; false
 * without memory. */
bool tni_reserve(void *array_pointer, size_t n, size_t *capacity, size_t size);
static inline bool tni_grow(void *array_pointer, size_t n, size_t *capacity, size_t size) {
    return n < *capacity || tni_reserve(array_pointer, n + 1, capacity, size);
}

/* Sizes. Both return false on overflow. */
static inline bool tni_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tni_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/* For tests: the n-th allocation from now (1 = the next) fails, once; 0 = never. Returns how many
 * were made since the last call. */
uint64_t tni_alloc_fail_at(uint64_t n);
/* Blocks that were allocated and not freed. */
int64_t tni_alloc_outstanding(void);

#endif
