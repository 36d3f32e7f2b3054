/* See output.h. */
#include "plugin-sdk/conformance/runner/run/output.h"

#include <ctype.h>
#include <string.h>

enum { HEAD_SHOWN = 380, TAIL_SHOWN = 200 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

void tc_output_add(tc_output *o, const char *bytes, size_t n) {
    if (o->n < TC_OUTPUT_HEAD)
        memcpy(o->head + o->n, bytes, least(n, TC_OUTPUT_HEAD - o->n));
    size_t skipped = n > TC_OUTPUT_TAIL ? n - TC_OUTPUT_TAIL : 0;
    for (size_t i = skipped; i < n; i++)
        o->tail[(o->n + i) % TC_OUTPUT_TAIL] = bytes[i];
    o->n += n;
}

void tc_output_clear(tc_output *o) {
    o->n = 0;
}

/* One of the bytes that were kept. */
static char byte_at(const tc_output *o, size_t i) {
    return i < TC_OUTPUT_HEAD ? o->head[i] : o->tail[i % TC_OUTPUT_TAIL];
}

/* Where the line of a sanitizer's report begins; n where there is none. */
static size_t find_report(const tc_output *o) {
    static const char *const marks[] = {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                                        "WARNING: ThreadSanitizer", "WARNING: MemorySanitizer",
                                        ": runtime error: "};
    size_t room = least(o->n, TC_OUTPUT_HEAD), first = o->n;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *at = memmem(o->head, room, marks[i], strlen(marks[i]));
        if (at && (size_t)(at - o->head) < first)
            first = (size_t)(at - o->head);
    }
    while (first < o->n && first > 0 && o->head[first - 1] != '\n')
        first--;
    return first;
}

bool tc_output_is_reported(const tc_output *o) {
    return find_report(o) < o->n;
}

/* Bytes from..to, printable; returns where it ended in out. Newlines at the end are left out, and
 * several of them are one. */
static char *put(const tc_output *o, size_t from, size_t to, char *out) {
    const char *start = out;
    bool broken = false;
    for (size_t i = from; i < to; i++) {
        char c = byte_at(o, i);
        if (c == '\n') {
            broken = true;
            continue;
        }
        if (broken && out > start) {
            memcpy(out, " | ", 3);
            out += 3;
        }
        broken = false;
        *out++ = isprint((unsigned char)c) ? c : '?';
    }
    *out = '\0';
    return out;
}

/* How far after `from` the text reaches that takes at most `room` letters. */
static size_t reach(const tc_output *o, size_t from, size_t room) {
    size_t used = 0;
    while (from < o->n && (used += byte_at(o, from) == '\n' ? 3 : 1) <= room)
        from++;
    return from;
}

static size_t reach_back(const tc_output *o, size_t to, size_t room) {
    size_t used = 0;
    while (to > 0 && (used += byte_at(o, to - 1) == '\n' ? 3 : 1) <= room)
        to--;
    return to;
}

char *tc_output_excerpt(const tc_output *o, char out[TC_EXCERPT]) {
    size_t report = find_report(o);
    size_t start = report < o->n ? report : 0;
    size_t head = reach(o, start, HEAD_SHOWN), tail = reach_back(o, o->n, TAIL_SHOWN);
    char *at = put(o, start, tail <= head ? o->n : head, out);
    if (tail > head)
        put(o, tail, o->n, stpcpy(at, " ... "));
    return out;
}

bool tc_output_is_long(const tc_output *o) {
    return reach(o, 0, HEAD_SHOWN) < reach_back(o, o->n, TAIL_SHOWN);
}

void tc_output_copy(const tc_output *o, size_t from, char *out, size_t room) {
    size_t n = 0;
    for (size_t i = from; i < o->n && n + 1 < room; i++)
        if (i < TC_OUTPUT_HEAD || i + TC_OUTPUT_TAIL >= o->n)
            out[n++] = byte_at(o, i);
    out[n] = '\0';
}

void tc_output_put(const tc_output *o, FILE *out) {
    size_t tail = o->n > TC_OUTPUT_TAIL ? o->n - TC_OUTPUT_TAIL : 0;
    size_t head = least(o->n, TC_OUTPUT_HEAD);
    fwrite(o->head, 1, head, out);
    if (tail > head)
        fprintf(out, "\n... %zu bytes are left out ...\n", tail - head);
    for (size_t i = tail > head ? tail : head; i < o->n; i++)
        fputc(byte_at(o, i), out);
    if (o->n > 0 && byte_at(o, o->n - 1) != '\n')
        fputc('\n', out);
}
