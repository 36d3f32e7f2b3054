/* A run, as it is written down: a file of JSON objects, one a line, each flushed at once.
 *
 *     {"record":"head", ...}     what was run: suite, plugin and its SHA-256, device, host, options
 *     {"record":"case", ...}     a verdict, with what the lists made of it
 *     {"record":"note", ...}     what no case can be blamed for
 *     {"record":"resume", ...}   the run was interrupted before this, and went on
 *     {"record":"end", ...}      counts, levels, unused entries; a later one replaces it
 *
 * A log that was cut anywhere is good up to its last whole line.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LOG_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LOG_H

#include <sys/types.h>

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/runner/run/json_record.h"
#include "plugin-sdk/conformance/verdict.h"

typedef struct tc_result {
    char *line, *message;
    char *reason; /* what the list says, or NULL */
    tc_status status;
    tc_status found; /* before the lists were asked */
    uint32_t requirement;
    unsigned device; /* that it ran on */
    bool measured;
    double share, bias, milliseconds;
    int64_t worst;
    tc_figures figures;
} tc_result;

/* A log in memory, read or being made. */
typedef struct tc_log {
    json_t *head, *end; /* records; `end` is NULL before the run has one */
    tc_result *results;
    size_t n_results, room_results;
    char **notes;
    size_t n_notes;
    json_t *given_up; /* classes that were: array of objects with class, cases, why; or NULL */
    off_t whole;      /* bytes up to the last whole record */
    bool truncated;   /* something stood behind them */
} tc_log;

void tc_log_finish(tc_log *log);

/* Copies the verdict. NULL: no memory. */
tc_result *tc_log_add(tc_log *log, const char *line, const tc_verdict *v, tc_status found,
                      const char *reason);
bool tc_log_add_note(tc_log *log, const char *text);
/* A class of which `cases` will not run. */
bool tc_log_add_given_up(tc_log *log, const char *class, size_t cases, const char *why);

/* False with `why` where the file cannot be read or does not begin as a log does. */
bool tc_log_read(const char *path, tc_log *out, char why[TC_VERDICT_MESSAGE]);

/* A member of the head's plugin object, "" where it has none. */
const char *tc_log_plugin(const tc_log *log, const char *member);
/* What to call the device: its name, else the plugin's file. */
const char *tc_log_device(const tc_log *log);
/* The device of the head, the first where the run was on several. */
unsigned tc_log_first_device(const tc_log *log);
/* Puts the results in the order of their lines. */
void tc_log_sort(tc_log *log);
/* In a log that was sorted; NULL where the line is not in it. */
const tc_result *tc_log_find(const tc_log *log, const char *line);
/* What the end says of levels: an array of objects with name, state and why; NULL without an end. */
const json_t *tc_log_levels(const tc_log *log);

/* ---- writing ----------------------------------------------------------------------------- */

typedef struct tc_log_file {
    const char *path;
    int fd;             /* -1: nothing is written */
    bool names_devices; /* each result has the device that it ran on */
    off_t good;
} tc_log_file;

/* A new file; or, with `whole`, an existing one whose good part is that long, the rest is cut off.
 * False with `why`: it exists already, or cannot be written. */
bool tc_log_open(tc_log_file *file, const char *path, off_t whole, char why[TC_VERDICT_MESSAGE]);

/* Each writes one record. Where that fails, what was written of it is taken back, so that the log
 * stays whole. */
bool tc_log_put(tc_log_file *file, const json_t *record, char why[TC_VERDICT_MESSAGE]);
bool tc_log_put_result(tc_log_file *file, const tc_result *r, char why[TC_VERDICT_MESSAGE]);
bool tc_log_put_note(tc_log_file *file, const char *text, char why[TC_VERDICT_MESSAGE]);

void tc_log_close(tc_log_file *file);

#endif
