/* The first record of a log: what ran, on what. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_HEAD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_HEAD_H

#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/runner/run/sha256.h"

typedef struct tc_head {
    const char *plugin; /* real path */
    char sha256[TC_SHA256_HEX];
    const char *described; /* what the worker says of it: a JSON object, or NULL */
    const char *silence;   /* why it says nothing */
    unsigned device;
    tc_sets sets;
    char **options; /* the words of the command */
    int n_options;
    const char **lists; /* paths */
    size_t n_lists;
    size_t n_planned;
} tc_head;

/* The record as JSON; free() it. NULL: no memory. */
char *tc_head_write(const tc_head *head);

#endif
