/* How every call begins and ends: what it needs, what it was told to answer, what is counted. And the
 * driver as a whole: cuInit, its end, and what a forked child is left with. */
#include "tests/cuda/double/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

driver_state driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
_Thread_local context *running;
_Thread_local bool in_host_function;

/* ---- what the host and the devices share ------------------------------------------------- */

uint64_t thread_number(void) {
    static atomic_ullong n_threads;
    static _Thread_local uint64_t number;
    if (!number)
        number = atomic_fetch_add(&n_threads, 1) + 1;
    return number;
}

uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t random_next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void wait_for_change(void) {
    driver.n_waiting++;
    pthread_cond_wait(&driver.changed, &driver.lock);
    driver.n_waiting--;
}

void tell_change(void) {
    if (driver.n_waiting)
        pthread_cond_broadcast(&driver.changed);
}

/* ---- ThreadSanitizer --------------------------------------------------------------------- */

#ifdef __has_feature
#define IS_CHECKED __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define IS_CHECKED 1
#else
#define IS_CHECKED 0
#endif

#if IS_CHECKED
#define TELL(what) \
    void Annotate##what(const char *file, int line); \
    Annotate##what(__FILE__, __LINE__)
#else
#define TELL(what) (void)0
#endif

static _Thread_local bool looks_away;

void look_away(void) {
    if (!driver.settings.is_opaque)
        return;
    looks_away = true;
    TELL(IgnoreSyncBegin);
    TELL(IgnoreReadsBegin);
    TELL(IgnoreWritesBegin);
}

void look_again(void) {
    if (!looks_away)
        return;
    looks_away = false;
    TELL(IgnoreWritesEnd);
    TELL(IgnoreReadsEnd);
    TELL(IgnoreSyncEnd);
}

/* ---- calls ------------------------------------------------------------------------------- */

bool sticks(CUresult error) {
    return error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
           error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           error == CUDA_ERROR_ASSERT ||
           (error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED) ||
           error == CUDA_ERROR_EXTERNAL_DEVICE;
}

static CUresult told_to_fail(function_name function) {
    settings *s = &driver.settings;
    if (s->lose.at && driver.all_calls == s->lose.at && s->lose.device < s->n_devices) {
        driver.devices[s->lose.device].lost = s->lose.error;
        for (context *c = driver.contexts; c; c = c->next)
            if (c->device->ordinal == s->lose.device)
                context_break(c, s->lose.error);
    }
    for (int i = 0; i < s->n_rules; i++) {
        rule *r = &s->rules[i];
        uint64_t n = driver.calls[function];
        if (r->function != function || (r->always ? n < r->at : n != r->at))
            continue;
        context *broken;
        if (sticks(r->error) && context_current(&broken) == CUDA_SUCCESS)
            context_break(broken, r->error);
        return r->error;
    }
    return CUDA_SUCCESS;
}

static CUresult admit(function_name function, unsigned needs, context **out) {
    if (driver.ended)
        return CUDA_ERROR_DEINITIALIZED;
    if (in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult error = told_to_fail(function);
    if (error)
        return error;
    if ((needs & NEEDS_INIT) && !driver.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    context *current = NULL;
    if (needs & NEEDS_CONTEXT)
        error = context_current(&current);
    if (!error && (needs & NEEDS_SOUND))
        error = current->error;
    if (!error && (needs & UNSAFE))
        error = capture_minds();
    if (out)
        *out = current;
    return error;
}

CUresult enter(function_name function, unsigned needs, context **out) {
    /* A child has no threads of the parent's, and perhaps a lock that one of them held. */
    if (atomic_load(&driver.forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&driver.lock);
    settings_read();
    look_away();
    driver.calls[function]++;
    driver.all_calls++;
    CUresult error = admit(function, needs, out);
    return error ? leave(error) : CUDA_SUCCESS;
}

CUresult leave(CUresult result) {
    if ((unsigned)result < MAX_RESULTS)
        driver.results[result]++;
    pthread_mutex_unlock(&driver.lock);
    look_again();
    return result;
}

/* ---- the driver -------------------------------------------------------------------------- */

static void in_child(void) {
    if (driver.initialised)
        atomic_store(&driver.forked, true);
}

CUresult CUDAAPI cuInit(unsigned flags) {
    CUresult error = enter(CALL_cuInit, NEEDS_NOTHING, NULL);
    if (error)
        return error;
    if (driver.initialised)
        return leave(CUDA_SUCCESS);
    if (flags || driver.bad_words)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (!driver.settings.n_devices)
        return leave(CUDA_ERROR_NO_DEVICE);
    if (!memory_reserve())
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    static bool watched;
    if (!watched)
        pthread_atfork(NULL, NULL, in_child);
    watched = true;
    for (int i = 0; i < driver.settings.n_devices; i++)
        driver.devices[i].ordinal = i;
    driver.initialised = true;
    return leave(CUDA_SUCCESS);
}

/* Also what is told before cuInit: as the real one does. */
CUresult CUDAAPI cuDriverGetVersion(int *out) {
    CUresult error = enter(CALL_cuDriverGetVersion, NEEDS_NOTHING, NULL);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = driver.settings.version;
    return leave(CUDA_SUCCESS);
}

/* Runs at exit, or when the library is closed: no thread of the double outlives it. */
__attribute__((destructor)) static void end(void) {
    if (atomic_load(&driver.forked))
        return;
    pthread_mutex_lock(&driver.lock);
    if (driver.settings.report[0])
        write_report();
    driver.ending = true;
    driver.held = false;
    while (driver.contexts)
        context_destroy(driver.contexts);
    graphs_forget();
    if (driver.initialised)
        memory_release();
    objects_forget();
    driver.ended = true;
    pthread_mutex_unlock(&driver.lock);
}
