/* See case.h. */
#include "plugin-sdk/conformance/case.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG(...) tc_why(why, TC_MESSAGE, __VA_ARGS__)

bool tc_why(char *why, size_t room, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, room, format, args);
    va_end(args);
    return false;
}

/* ---- lines ------------------------------------------------------------------------------- */

static bool is_name(const char *s) {
    if (!isalpha((unsigned char)*s))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("-_.:", *s))
            return false;
    return true;
}

static bool is_value(const char *s) {
    for (const char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.:+,[]/", *p))
            return false;
    return *s != '\0';
}

/* A few: in place. */
static void sort_params(tc_case *c) {
    for (uint32_t i = 1; i < c->n_params; i++) {
        tc_param p = c->params[i];
        uint32_t at = i;
        for (; at > 0 && strcmp(p.name, c->params[at - 1].name) < 0; at--)
            c->params[at] = c->params[at - 1];
        c->params[at] = p;
    }
}

/* 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), then a mix, so that lines that differ
 * in one letter have seeds that differ everywhere (splitmix64, S. Vigna). */
uint64_t tc_hash(const char *text) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 27;
    h *= 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static bool find_seed(tc_case *c, char why[TC_MESSAGE]) {
    const char *given = tc_case_get(c, "seed");
    if (given) {
        char *end;
        errno = 0;
        c->seed = strtoull(given, &end, 16);
        /* an operator's own may be negative */
        return *end || errno || !isxdigit((unsigned char)given[*given == '-'])
                   ? WRONG("seed=%s: a seed is up to 16 hexadecimal digits", given)
                   : true;
    }
    char line[TC_MAX_LINE];
    c->seed = tc_hash(tc_case_line(c, line));
    return true;
}

/* Takes one word of c->text apart. */
static bool add_word(tc_case *c, char *word, char why[TC_MESSAGE]) {
    if (!c->class) {
        char *slash = strchr(word, '/');
        if (!slash)
            return WRONG("'%s': a case starts with its class and subject, such as kernel/add",
                         word);
        *slash = '\0';
        c->class = word;
        c->subject = slash + 1;
        return is_name(c->class) && is_name(c->subject)
                   ? true
                   : WRONG("'%s/%s': class and subject are names", c->class, c->subject);
    }
    char *equals = strchr(word, '=');
    if (!equals)
        return WRONG("'%s': a parameter is name=value", word);
    *equals = '\0';
    if (!is_name(word) || !is_value(equals + 1))
        return WRONG("'%s=%s': a name, =, and a value of letters, digits and -_.:+,[]/", word,
                     equals + 1);
    if (c->n_params == TC_MAX_PARAMS)
        return WRONG("'%s': more than %d parameters", word, TC_MAX_PARAMS);
    for (uint32_t i = 0; i < c->n_params; i++)
        if (tc_same_word(c->params[i].name, word))
            return WRONG("'%s' is given twice", word);
    c->params[c->n_params++] = (tc_param){word, equals + 1};
    return true;
}

bool tc_case_parse(const char *line, tc_case *out, char why[TC_MESSAGE]) {
    memset(out, 0, sizeof *out);
    if (strlen(line) >= sizeof out->text)
        return WRONG("a line of %zu characters; a case has %d at most", strlen(line),
                     TC_MAX_LINE - 1);
    strcpy(out->text, line);
    char *rest = NULL;
    for (char *word = strtok_r(out->text, " \t\r\n", &rest); word;
         word = strtok_r(NULL, " \t\r\n", &rest))
        if (!add_word(out, word, why))
            return false;
    if (!out->class)
        return WRONG("an empty line");
    sort_params(out);
    return find_seed(out, why);
}

/* Puts the text behind the n characters that a line has, as far as there is room; how many they are
 * then. Lists have some hundred thousand lines, each of which is made several times: no printf. */
static size_t append(char out[TC_MAX_LINE], size_t n, const char *text) {
    size_t more = strlen(text), room = TC_MAX_LINE - 1 - n;
    more = more < room ? more : room;
    memcpy(out + n, text, more);
    out[n + more] = '\0';
    return n + more;
}

char *tc_case_line(const tc_case *c, char out[TC_MAX_LINE]) {
    size_t n = append(out, 0, c->class);
    n = append(out, n, "/");
    n = append(out, n, c->subject);
    for (uint32_t i = 0; i < c->n_params; i++) {
        n = append(out, n, " ");
        n = append(out, n, c->params[i].name);
        n = append(out, n, "=");
        n = append(out, n, c->params[i].value);
    }
    return out;
}

const char *tc_case_get(const tc_case *c, const char *name) {
    for (uint32_t i = 0; i < c->n_params; i++)
        if (tc_same_word(c->params[i].name, name))
            return c->params[i].value;
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------ */

/* A whole number at *at, which moves behind it. */
static bool take_int(const char **at, int64_t *out) {
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)**at) && **at != '-')
        return false;
    *out = strtoll(*at, &end, 10);
    bool ok = end != *at && errno == 0;
    *at = end;
    return ok;
}

bool tc_read_int(const char *text, int64_t *out, char why[TC_MESSAGE]) {
    const char *at = text;
    return take_int(&at, out) && !*at ? true : WRONG("'%s' is no whole number of 64 bits", text);
}

bool tc_read_number(const char *text, double *out, char why[TC_MESSAGE]) {
    char *end;
    *out = strtod(text, &end); /* the C locale: the suite sets no other */
    return end != text && !*end ? true : WRONG("'%s' is no number", text);
}

bool tc_read_bool(const char *text, bool *out, char why[TC_MESSAGE]) {
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0 ? true
                                              : WRONG("'%s' is neither true nor false", text);
}

/* "[2,3]" at *at. */
static bool take_ints(const char **at, int64_t out[TC_MAX_RANK], int32_t *out_n) {
    *out_n = 0;
    if (*(*at)++ != '[')
        return false;
    if (**at == ']') {
        (*at)++;
        return true;
    }
    for (;;) {
        if (*out_n == TC_MAX_RANK || !take_int(at, &out[(*out_n)++]))
            return false;
        char next = *(*at)++;
        if (next == ']')
            return true;
        if (next != ',')
            return false;
    }
}

bool tc_read_ints(const char *text, int64_t out[TC_MAX_RANK], int32_t *out_n,
                  char why[TC_MESSAGE]) {
    const char *at = text;
    return take_ints(&at, out, out_n) && !*at
               ? true
               : WRONG("'%s' is no list of up to %d whole numbers, such as [2,3]", text,
                       TC_MAX_RANK);
}

bool tc_read_dtype(const char *text, tn_dtype *out, char why[TC_MESSAGE]) {
#define X(NAME, value, name, bytes, category) \
    if (strcmp(text, name) == 0) { \
        *out = value; \
        return true; \
    }
    TN_DTYPE_MAP(X)
#undef X
    return WRONG("'%s' is no dtype", text);
}

/* Row-major strides where none were given; elements; how far they reach. */
static bool complete(tc_shape *s, bool strided, const char *text, char why[TC_MESSAGE]) {
    int64_t stride = 1, last = 0, step;
    s->numel = 1;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        int64_t n = s->sizes[d];
        if (!strided)
            s->strides[d] = stride;
        if (n < 0 || s->strides[d] < 0)
            return WRONG("'%s': sizes and strides are not negative", text);
        if (__builtin_mul_overflow(stride, n ? n : 1, &stride) ||
            __builtin_mul_overflow(s->numel, n, &s->numel) ||
            __builtin_mul_overflow(n ? n - 1 : 0, s->strides[d], &step) ||
            __builtin_add_overflow(last, step, &last))
            return WRONG("'%s': more elements than 63 bits count", text);
    }
    if (s->offset < 0 || __builtin_add_overflow(last, s->offset, &last) || last == INT64_MAX)
        return WRONG("'%s': the offset is not negative, nor past what 63 bits count", text);
    s->extent = s->numel ? last + 1 : s->offset;
    return true;
}

bool tc_read_shape(const char *text, tc_shape *out, char why[TC_MESSAGE]) {
    const char *at = text;
    int32_t n_strides = 0;
    memset(out, 0, sizeof *out);
    bool ok = take_ints(&at, out->sizes, &out->rank);
    bool strided = ok && *at == '/';
    if (strided) {
        at++;
        ok = take_ints(&at, out->strides, &n_strides) && n_strides == out->rank;
    }
    bool moved = ok && *at == '+';
    if (moved) {
        at++;
        ok = take_int(&at, &out->offset); /* "[2,3]+5": dense, but not from the start */
    }
    out->placed = strided || moved;
    if (!ok || *at)
        return WRONG("'%s' is no shape, such as [3,4] or [3,4]/[1,3]+2 with as many strides", text);
    return complete(out, strided, text, why);
}

/* The digits end at `end`; where they begin. */
static char *digits_before(char *end, int64_t value) {
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--end = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--end = '-';
    return end;
}

/* What does not fit is left out whole, and what follows it. */
static size_t write_ints(char *out, size_t room, int32_t n, const int64_t *values) {
    size_t at = 0;
    for (int32_t i = 0; i <= n; i++) {
        char text[24], *end = text + sizeof text, *begin = end;
        if (i < n)
            begin = digits_before(end, values[i]);
        else
            *--begin = ']';
        if (i == 0 || i < n)
            *--begin = i == 0 ? '[' : ',';
        if ((size_t)(end - begin) >= room - at)
            break;
        memcpy(out + at, begin, (size_t)(end - begin));
        at += (size_t)(end - begin);
    }
    out[at] = '\0';
    return at;
}

char *tc_write_shape(const tc_shape *s, char *out, size_t room) {
    size_t at = write_ints(out, room, s->rank, s->sizes);
    if (s->placed && at + 1 < room) {
        out[at++] = '/';
        at += write_ints(out + at, room - at, s->rank, s->strides);
        if (s->offset)
            snprintf(out + at, room - at, "+%" PRId64, s->offset);
    }
    return out;
}
