/* Host memory with a count and a point of failure. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t made;    /* since the last tni_alloc_fail_at */
static _Atomic uint64_t fail_at; /* value of `made` that fails; 0 = never */
static _Atomic int64_t outstanding;

static bool refused(void) {
    uint64_t n = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return at != 0 && n == at;
}

static void *counted(void *p) {
    if (p)
        atomic_fetch_add_explicit(&outstanding, 1, memory_order_relaxed);
    return p;
}

void *tni_alloc(size_t bytes) {
    return refused() ? NULL : counted(malloc(bytes ? bytes : 1));
}

void *tni_calloc(size_t n, size_t bytes) {
    return refused() ? NULL : counted(calloc(n ? n : 1, bytes ? bytes : 1));
}

void *tni_realloc(void *p, size_t bytes) {
    if (!p)
        return tni_alloc(bytes);
    if (refused())
        return NULL;
    return realloc(p, bytes ? bytes : 1);
}

void *tni_alloc_aligned(size_t bytes, size_t alignment) {
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (refused() || bytes > SIZE_MAX - alignment)
        return NULL;
    bytes = (bytes + alignment - 1) & ~(alignment - 1);
    return counted(aligned_alloc(alignment, bytes ? bytes : alignment));
}

void tni_free(void *p) {
    if (p)
        atomic_fetch_sub_explicit(&outstanding, 1, memory_order_relaxed);
    free(p);
}

char *tni_strdup(const char *s) {
    size_t n = strlen(s) + 1;
    char *copy = tni_alloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

char *tni_format(const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *s = n < 0 ? NULL : tni_alloc((size_t)n + 1);
    if (s)
        vsnprintf(s, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return s;
}

bool tni_reserve(void *array_pointer, size_t n, size_t *capacity, size_t size) {
    size_t more = *capacity ? *capacity : 8;
    while (more < n)
        more *= 2;
    if (more == *capacity)
        return true;
    void *old;
    memcpy(&old, array_pointer, sizeof old);
    void *grown = tni_realloc(old, more * size);
    if (!grown)
        return false;
    memcpy(array_pointer, &grown, sizeof grown);
    *capacity = more;
    return true;
}

uint64_t tni_alloc_fail_at(uint64_t n) {
    atomic_store(&fail_at, n);
    return atomic_exchange(&made, 0);
}

int64_t tni_alloc_outstanding(void) {
    return atomic_load(&outstanding);
}
