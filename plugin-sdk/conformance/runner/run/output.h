/* What a worker has printed since its case began: the head of it, where sanitizers and drivers say
 * what is wrong, and the end, which is the last it said. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_OUTPUT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TC_OUTPUT_HEAD = 32768, TC_OUTPUT_TAIL = 32768, TC_EXCERPT = 600 };

typedef struct tc_output {
    char head[TC_OUTPUT_HEAD]; /* the first bytes */
    char tail[TC_OUTPUT_TAIL]; /* a ring: byte i is at i % TC_OUTPUT_TAIL */
    size_t n;                  /* that were printed */
} tc_output;

void tc_output_add(tc_output *output, const char *bytes, size_t n);
void tc_output_clear(tc_output *output);

/* Whether a sanitizer's report is in the head. */
bool tc_output_is_reported(const tc_output *output);

/* Both ends on one line, printable, " | " for newlines, "..." for what lies between; from a
 * sanitizer's report on where there is one. Returns out, "" where nothing was printed. */
char *tc_output_excerpt(const tc_output *output, char out[TC_EXCERPT]);

/* Whether the excerpt leaves something out. */
bool tc_output_is_long(const tc_output *output);

/* What was printed from byte `from` on, as far as it was kept and there is room; ends with a zero. */
void tc_output_copy(const tc_output *output, size_t from, char *out, size_t room);

/* All that was kept, as it was printed. */
void tc_output_put(const tc_output *output, FILE *out);

#endif
