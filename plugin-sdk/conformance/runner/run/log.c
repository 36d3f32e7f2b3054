/* See log.h. */
#include "plugin-sdk/conformance/runner/run/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin-sdk/conformance/json.h"

void tc_log_finish(tc_log *log) {
    for (size_t i = 0; i < log->n_results; i++) {
        free(log->results[i].line);
        free(log->results[i].message);
        free(log->results[i].reason);
    }
    for (size_t i = 0; i < log->n_notes; i++)
        free(log->notes[i]);
    free(log->results);
    free(log->notes);
    json_decref(log->head);
    json_decref(log->end);
    json_decref(log->given_up);
    memset(log, 0, sizeof *log);
}

tc_result *tc_log_add(tc_log *log, const char *line, const tc_verdict *v, tc_status found,
                      const char *reason) {
    if (log->n_results == log->room_results) {
        size_t room = log->room_results ? 2 * log->room_results : 256;
        tc_result *results = realloc(log->results, room * sizeof *results);
        if (!results)
            return NULL;
        log->results = results;
        log->room_results = room;
    }
    tc_result r = {.line = strdup(line),
                   .message = strdup(v->message),
                   .reason = reason ? strdup(reason) : NULL,
                   .status = v->status,
                   .found = found,
                   .requirement = v->requirement,
                   .measured = v->measured,
                   .share = v->share,
                   .bias = v->bias,
                   .milliseconds = v->milliseconds,
                   .worst = v->worst,
                   .figures = v->figures};
    if (!r.line || !r.message || (reason && !r.reason)) {
        free(r.line);
        free(r.message);
        free(r.reason);
        return NULL;
    }
    log->results[log->n_results] = r;
    return &log->results[log->n_results++];
}

bool tc_log_add_note(tc_log *log, const char *text) {
    char *copy = strdup(text);
    char **notes = copy ? realloc(log->notes, (log->n_notes + 1) * sizeof *notes) : NULL;
    if (!notes) {
        free(copy);
        return false;
    }
    log->notes = notes;
    log->notes[log->n_notes++] = copy;
    return true;
}

bool tc_log_add_given_up(tc_log *log, const char *class, size_t cases, const char *why) {
    if (!log->given_up)
        log->given_up = json_array();
    return json_array_append_new(log->given_up,
                                 json_pack("{s:s, s:I, s:o}", "class", class, "cases",
                                           (json_int_t)cases, "why", tc_json_text(why))) == 0;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* One record of a log; false where it is none, or *no_memory. */
static bool take(tc_log *log, json_t *record, bool *no_memory) {
    const char *kind = tc_json_string(record, "record");
    bool is_head = strcmp(kind, "head") == 0, kept = true;
    if (!*kind || is_head == (log->head != NULL))
        return false;
    if (is_head) {
        log->head = json_incref(record);
    } else if (strcmp(kind, "end") == 0) {
        json_decref(log->end);
        log->end = json_incref(record);
    } else if (strcmp(kind, "note") == 0) {
        kept = tc_log_add_note(log, tc_json_string(record, "text"));
    } else if (strcmp(kind, "case") == 0) {
        tc_verdict v;
        tc_status found;
        char line[TC_MAX_LINE];
        if (!tc_verdict_from_json(record, &v, line))
            return false;
        if (!tc_status_find(tc_json_string(record, "found"), &found))
            found = v.status;
        const char *reason = json_string_value(json_object_get(record, "reason"));
        tc_result *r = tc_log_add(log, line, &v, found, reason);
        double device = tc_log_first_device(log);
        tc_json_number(record, "device", &device);
        kept = r != NULL;
        if (r)
            r->device = device >= 0 && device < 1e9 ? (unsigned)device : 0;
    }
    *no_memory = !kept;
    return kept;
}

bool tc_log_read(const char *path, tc_log *out, char why[TC_VERDICT_MESSAGE]) {
    memset(out, 0, sizeof *out);
    FILE *file = fopen(path, "re");
    if (!file)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(errno));
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    bool no_memory = false;
    while ((n = getline(&text, &room, file)) > 0) {
        json_t *record = text[n - 1] == '\n' ? tc_json_parse(text, (size_t)n) : NULL;
        bool good = record && take(out, record, &no_memory);
        json_decref(record);
        if (!good) {
            out->truncated = true;
            break;
        }
        out->whole += n;
    }
    bool failed = ferror(file) != 0;
    free(text);
    fclose(file);
    if (failed || no_memory)
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", path,
                 no_memory ? "no memory" : "cannot be read");
    else if (!out->head)
        snprintf(why, TC_VERDICT_MESSAGE,
                 "%s: no log of tenon-conform: its first line is not a whole head record", path);
    if (!failed && !no_memory && out->head)
        return true;
    tc_log_finish(out);
    return false;
}

const char *tc_log_plugin(const tc_log *log, const char *member) {
    return tc_json_string(json_object_get(log->head, "plugin"), member);
}

const char *tc_log_device(const tc_log *log) {
    static const char *const members[] = {"device", "name", "id", "type"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (*tc_log_plugin(log, members[i]))
            return tc_log_plugin(log, members[i]);
    const char *path = tc_log_plugin(log, "path"), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

unsigned tc_log_first_device(const tc_log *log) {
    double device = 0;
    tc_json_number(log->head, "device", &device);
    return device >= 0 && device < 1e9 ? (unsigned)device : 0;
}

const json_t *tc_log_levels(const tc_log *log) {
    return json_object_get(log->end, "levels");
}

static int by_line(const void *a, const void *b) {
    return strcmp(((const tc_result *)a)->line, ((const tc_result *)b)->line);
}

void tc_log_sort(tc_log *log) {
    if (log->n_results)
        qsort(log->results, log->n_results, sizeof *log->results, by_line);
}

const tc_result *tc_log_find(const tc_log *log, const char *line) {
    tc_result key = {.line = (char *)line};
    return log->n_results ? bsearch(&key, log->results, log->n_results, sizeof key, by_line) : NULL;
}

/* ---- writing ----------------------------------------------------------------------------- */

bool tc_log_open(tc_log_file *file, const char *path, off_t whole, char why[TC_VERDICT_MESSAGE]) {
    *file = (tc_log_file){.path = path, .good = whole, .names_devices = file->names_devices};
    file->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | (whole ? 0 : O_CREAT), 0666);
    struct stat stat;
    if (file->fd < 0 || fstat(file->fd, &stat) != 0 || (whole && ftruncate(file->fd, whole) != 0)) {
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(errno));
        tc_log_close(file);
        return false;
    }
    if (!whole && S_ISREG(stat.st_mode) && stat.st_size > 0) {
        snprintf(why, TC_VERDICT_MESSAGE,
                 "%s exists; --resume goes on with it, another name begins anew", path);
        tc_log_close(file);
        return false;
    }
    return true;
}

/* Writes the n bytes of a record's line. */
static bool put_line(tc_log_file *file, const char *text, size_t n, char why[TC_VERDICT_MESSAGE]) {
    size_t done = 0;
    int error = 0;
    while (!error && done < n) {
        ssize_t wrote = write(file->fd, text + done, n - done);
        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote == 0 || errno != EINTR)
            error = wrote ? errno : EIO;
    }
    if (!error) {
        file->good += (off_t)n;
        return true;
    }
    snprintf(why, TC_VERDICT_MESSAGE, "%s: %s; the log is whole up to there", file->path,
             strerror(error));
    if (ftruncate(file->fd, file->good) != 0 && done > 0)
        snprintf(why, TC_VERDICT_MESSAGE,
                 "%s: %s; its last line is cut, which reading it passes over", file->path,
                 strerror(error));
    return false;
}

bool tc_log_put(tc_log_file *file, const json_t *record, char why[TC_VERDICT_MESSAGE]) {
    if (file->fd < 0)
        return true;
    char *text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
    size_t n = text ? strlen(text) : 0;
    if (!text)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s: no memory for a record", file->path);
    text[n++] = '\n'; /* in place of its zero */
    bool good = put_line(file, text, n, why);
    free(text);
    return good;
}

bool tc_log_put_result(tc_log_file *file, const tc_result *r, char why[TC_VERDICT_MESSAGE]) {
    if (file->fd < 0)
        return true;
    tc_verdict v = {.status = r->status,
                    .requirement = r->requirement,
                    .measured = r->measured,
                    .share = r->share,
                    .bias = r->bias,
                    .worst = r->worst,
                    .milliseconds = r->milliseconds,
                    .figures = r->figures};
    snprintf(v.message, sizeof v.message, "%s", r->message);
    char json[TC_VERDICT_LINE], reason[TC_VERDICT_MESSAGE] = "", device[32] = "";
    char record[2 * TC_VERDICT_LINE];
    tc_verdict_write(&v, r->line, json);
    json[strlen(json) - 1] = '\0'; /* its closing brace; more members follow */
    if (r->reason)
        tc_json_quote(r->reason, reason, sizeof reason);
    if (file->names_devices)
        snprintf(device, sizeof device, ",\"device\":%u", r->device);
    int n = snprintf(record, sizeof record, "{\"record\":\"case\",%s,\"found\":\"%s\"%s%s%s}\n",
                     json + 1, tc_status_name(r->found), device, r->reason ? ",\"reason\":" : "",
                     reason);
    return put_line(file, record, (size_t)n, why);
}

bool tc_log_put_note(tc_log_file *file, const char *text, char why[TC_VERDICT_MESSAGE]) {
    json_t *note = json_pack("{s:s, s:o}", "record", "note", "text", tc_json_text(text));
    bool good = tc_log_put(file, note, why);
    json_decref(note);
    return good;
}

void tc_log_close(tc_log_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
