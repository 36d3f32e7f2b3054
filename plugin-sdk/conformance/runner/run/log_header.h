/* The first record of a log: what ran, on what. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LOG_HEADER_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LOG_HEADER_H

#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/runner/run/json_record.h"

enum { TC_SHA256_HEX = 65 };

typedef struct tc_log_header {
    const char *plugin; /* real path */
    char sha256[TC_SHA256_HEX];
    const json_t *described; /* what the worker says of it, or NULL */
    const char *silence;     /* why it says nothing */
    json_t *devices;         /* what is known of each, where there are several; or NULL */
    unsigned device;         /* the first */
    tc_sets sets;
    bool part; /* of the sets or levels: cases were named, or filters */
    unsigned shard, n_shards;
    char **options; /* the words of the command */
    int n_options;
    const char *const *lists; /* paths */
    size_t n_lists;
    size_t n_planned;
} tc_log_header;

/* The record; NULL: no memory. */
json_t *tc_log_header_make(const tc_log_header *header);

#endif
