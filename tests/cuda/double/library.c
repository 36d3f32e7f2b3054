/* See library.h. */
#include "tests/cuda/double/library.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 32, NAME = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static bool configured;
static uint64_t version;
static struct {
    char function[NAME];
    uint64_t n;
    bool onwards;
    int status;
} fault;
static struct {
    char name[NAME];
    uint64_t n;
} counts[FUNCTIONS];
static _Atomic int64_t alive;
static _Atomic uint64_t mistakes;
static const char *last = "";

static bool take_word(const char *word) {
    char plus[2] = "";
    unsigned long long n;
    int status;
    if (strncmp(word, "version=", 8) == 0) {
        version = strtoull(word + 8, NULL, 10);
        return version > 0;
    }
    if (strcmp(word, "fail=") == 0) {
        fault.n = 0;
        return true;
    }
    if (sscanf(word, "fail=%63[^:]:%llu%1[+]:%d", fault.function, &n, plus, &status) != 4 &&
        sscanf(word, "fail=%63[^:]:%llu:%d", fault.function, &n, &status) != 3)
        return false;
    fault.n = n;
    fault.onwards = plus[0] == '+';
    fault.status = status;
    return true;
}

static bool configure(const char *words) {
    char copy[512], *rest = copy;
    bool ok = true;
    snprintf(copy, sizeof copy, "%s", words ? words : "");
    fault.n = version = 0;
    memset(counts, 0, sizeof counts);
    last = "";
    for (char *word; (word = strtok_r(rest, " ;", &rest));)
        if (!take_word(word)) {
            fprintf(stderr, "%s: '%s' is not understood\n", library_variable, word);
            ok = false;
        }
    configured = true;
    return ok;
}

static void start(void) {
    if (!configured)
        configure(getenv(library_variable));
}

bool library_configure(const char *words) {
    pthread_mutex_lock(&lock);
    bool ok = configure(words);
    pthread_mutex_unlock(&lock);
    return ok;
}

static uint64_t count(const char *function) {
    for (int i = 0; i < FUNCTIONS; i++) {
        if (!counts[i].name[0])
            snprintf(counts[i].name, NAME, "%s", function);
        if (strcmp(counts[i].name, function) == 0)
            return ++counts[i].n;
    }
    abort(); /* more functions than there are */
}

int library_enter(const char *function) {
    pthread_mutex_lock(&lock);
    start();
    uint64_t n = count(function);
    bool fails = fault.n && strcmp(fault.function, function) == 0 &&
                 (n == fault.n || (fault.onwards && n > fault.n));
    int status = fails ? fault.status : 0;
    pthread_mutex_unlock(&lock);
    return status;
}

uint64_t library_calls(const char *function) {
    uint64_t n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FUNCTIONS; i++)
        if (!function || strcmp(counts[i].name, function) == 0)
            n += counts[i].n;
    pthread_mutex_unlock(&lock);
    return n;
}

uint64_t library_version(uint64_t otherwise) {
    pthread_mutex_lock(&lock);
    start();
    uint64_t v = version ? version : otherwise;
    pthread_mutex_unlock(&lock);
    return v;
}

void library_made(int n) {
    atomic_fetch_add(&alive, n);
}

int64_t library_alive(void) {
    return atomic_load(&alive);
}

int library_mistake(int status, const char *format, ...) {
    char line[400];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "%s: %s\n", library_variable, line);
    atomic_fetch_add(&mistakes, 1);
    return status;
}

uint64_t library_mistakes(void) {
    return atomic_load(&mistakes);
}

void library_say(const char *what) {
    pthread_mutex_lock(&lock);
    last = what;
    pthread_mutex_unlock(&lock);
}

const char *library_last(void) {
    pthread_mutex_lock(&lock);
    const char *what = last;
    pthread_mutex_unlock(&lock);
    return what;
}

/* ---- numbers ----------------------------------------------------------------------------- */

int64_t number_bytes(number_type type) {
    return type == NUMBER_F64 ? 8 : type == NUMBER_F32 ? 4 : 2;
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00)
        return from_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    /* 2^112 brings the exponent to where f32 has it, subnormal numbers too. */
    return from_bits(sign | to_bits(from_bits(rest << 13) * 0x1p112F));
}

static uint16_t float_to_half(float x) {
    uint32_t bits = to_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x47800000) /* 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) /* subnormal: adding 1/2 rounds to a multiple of 2^-24 */
        return (uint16_t)(sign | (to_bits(from_bits(rest) + 0.5F) - to_bits(0.5F)));
    rest += 0xfff + (rest >> 13 & 1); /* may carry into infinity */
    return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}

static uint16_t float_to_bfloat(float x) {
    uint32_t bits = to_bits(x);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void numbers_load(number_type type, const void *from, int64_t at, int64_t stride, int64_t n,
                  double *to) {
    for (int64_t i = 0; i < n; i++, at += stride)
        to[i] = type == NUMBER_F64   ? ((const double *)from)[at]
                : type == NUMBER_F32 ? ((const float *)from)[at]
                : type == NUMBER_F16 ? half_to_float(((const uint16_t *)from)[at])
                                     : from_bits((uint32_t)((const uint16_t *)from)[at] << 16);
}

void numbers_store(number_type type, void *to, int64_t at, int64_t stride, int64_t n,
                   const double *from) {
    for (int64_t i = 0; i < n; i++, at += stride)
        if (type == NUMBER_F64)
            ((double *)to)[at] = from[i];
        else if (type == NUMBER_F32)
            ((float *)to)[at] = (float)from[i];
        else
            ((uint16_t *)to)[at] = type == NUMBER_F16 ? float_to_half((float)from[i])
                                                      : float_to_bfloat((float)from[i]);
}

double number_tf32(double x) {
    uint32_t bits = to_bits((float)x);
    if ((bits & 0x7f800000) == 0x7f800000)
        return x;
    return from_bits((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000);
}
