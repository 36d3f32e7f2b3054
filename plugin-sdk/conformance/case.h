/* A case of the conformance suite, as one line of text.
 *
 *     kernel/add T=f32 self=[3,4]/[1,3]+2 other=[3,4] alpha=2 data=exact
 *     contract/memory-distinct pinned=1
 *
 * The class and the subject, then parameters, with blanks between. The same line lists a case,
 * selects it, reproduces it, and names it in a list of failures, waivers or a corpus. What a
 * parameter may be is the subject's business; how values are written:
 *
 *     word        f32, exact, npu          letters, digits and -_.:
 *     number      2, -0.5, 1e-3, inf, nan, true, false
 *     integers    [2,3], []                sizes, dimensions
 *     shape       [3,4], [3,4]/[1,3]+2     sizes, then strides and an offset in elements where the
 *                                          tensor does not lie densely from its allocation's start
 *
 * The seed of a case follows from its line, so that a case is the same in any subset and any order;
 * `seed=` overrides it. Two lines that differ in blanks or in the order of parameters are the same
 * case: the canonical form has parameters sorted by name.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_CASE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tenon/plugin.h>

enum { TC_MAX_PARAMS = 24, TC_MAX_RANK = 12, TC_MAX_LINE = 1024, TC_MESSAGE = 256 };

typedef struct tc_shape {
    int32_t rank;
    bool placed; /* strides and offset were given */
    int64_t sizes[TC_MAX_RANK];
    int64_t strides[TC_MAX_RANK]; /* row-major where they were not given */
    int64_t offset;
    int64_t numel;
    int64_t extent; /* elements from the allocation's start to one past the last */
} tc_shape;

typedef struct tc_param {
    const char *name, *value;
} tc_param;

/* Stays where it was parsed: its strings point into it. */
typedef struct tc_case {
    char text[TC_MAX_LINE]; /* the line, cut into its words */
    const char *class, *subject;
    tc_param params[TC_MAX_PARAMS]; /* by name */
    uint32_t n_params;
    uint64_t seed;
} tc_case;

/* Reads a line into `out`. False with `why` filled where it is no case: what is wrong, in which
 * word. Values are checked for their letters only, until someone asks for them. */
bool tc_case_parse(const char *line, tc_case *out, char why[TC_MESSAGE]);

/* Puts into `why` what is wrong. False, which is what most who found it return. */
bool tc_why(char *why, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The canonical line. Returns out. */
char *tc_case_line(const tc_case *c, char out[TC_MAX_LINE]);

/* A number that follows from a text, and is another one if a letter is. */
uint64_t tc_hash(const char *text);

/* Of a few names, which mostly differ in their first letter. */
static inline bool tc_same_word(const char *a, const char *b) {
    return *a == *b && strcmp(a, b) == 0;
}

/* A parameter's text, or NULL. */
const char *tc_case_get(const tc_case *c, const char *name);

/* Values; false with `why` filled where the text is none of the kind. */
bool tc_read_int(const char *text, int64_t *out, char why[TC_MESSAGE]);
bool tc_read_number(const char *text, double *out, char why[TC_MESSAGE]);
bool tc_read_bool(const char *text, bool *out, char why[TC_MESSAGE]);
bool tc_read_ints(const char *text, int64_t out[TC_MAX_RANK], int32_t *out_n, char why[TC_MESSAGE]);
bool tc_read_dtype(const char *text, tn_dtype *out, char why[TC_MESSAGE]);
/* Refuses what no tensor can be: negative sizes or strides, more elements than 63 bits count. */
bool tc_read_shape(const char *text, tc_shape *out, char why[TC_MESSAGE]);

/* Writes a shape as tc_read_shape reads it. Returns out. */
char *tc_write_shape(const tc_shape *s, char *out, size_t room);

#endif
