/* What a device lacks for a level: each kernel with its dtype, each pair of `copy`, each dtype that
 * it cannot store, with the operators that stand and fall with it. Made from the messages of what
 * did not pass (TC_LACKS of verdict.h).
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_NEEDS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_NEEDS_H

#include "plugin-sdk/conformance/runner/run/log.h"

enum { TC_NEED_ITEM = 64, TC_NEED_FOR = 128 };

/* One thing that is missing for one operator in one dtype. */
typedef struct tc_need {
    char item[TC_NEED_ITEM];  /* "amax bool"; "" where it failed otherwise, or nobody knows */
    char target[TC_NEED_FOR]; /* "any f32" */
    size_t n_items;           /* that the target lacks */
} tc_need;

typedef struct tc_needs {
    tc_need *at; /* after tc_needs_settle by item: those that free most first, unknown ones last */
    size_t n, room;
    size_t n_items, n_targets;
} tc_needs;

/* Adds what a case that should have passed lacks. False: no memory. */
bool tc_needs_add(tc_needs *needs, const tc_result *result);
void tc_needs_settle(tc_needs *needs);
void tc_needs_finish(tc_needs *needs);

/* "27 do not run: any (bool f32), ...; they lack amax bool, ..."; as much as fits. Returns out. */
char *tc_needs_text(const tc_needs *needs, char out[TC_VERDICT_MESSAGE]);
/* All of it, an item and what it frees on lines of their own. */
void tc_needs_print(const tc_needs *needs, FILE *out);
/* The same as an array of objects with item, frees and with_others. */
json_t *tc_needs_json(const tc_needs *needs);

#endif
