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
    free(log->head);
    free(log->end);
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

/* ---- reading ----------------------------------------------------------------------------- */

static bool replace(char **where, const char *text) {
    free(*where);
    *where = strdup(text);
    return *where != NULL;
}

/* One line of a log; false where it is none, or *no_memory. */
static bool take(tc_log *log, const char *text, bool *no_memory) {
    char record[16], status[32], line[TC_MAX_LINE], note[2 * TC_VERDICT_MESSAGE];
    if (!tc_json_is_object(text) ||
        !tc_json_string(tc_json_member(text, "record"), record, sizeof record))
        return false;
    if (!log->head != (strcmp(record, "head") == 0))
        return false;
    bool kept = true;
    if (!log->head) {
        kept = replace(&log->head, text);
    } else if (strcmp(record, "end") == 0) {
        kept = replace(&log->end, text);
    } else if (strcmp(record, "note") == 0) {
        tc_json_string(tc_json_member(text, "text"), note, sizeof note);
        kept = tc_log_add_note(log, note);
    } else if (strcmp(record, "case") == 0) {
        tc_verdict v;
        tc_status found;
        char reason[TC_VERDICT_MESSAGE];
        if (!tc_verdict_read(text, &v, line))
            return false;
        if (!tc_json_string(tc_json_member(text, "found"), status, sizeof status) ||
            !tc_status_find(status, &found))
            found = v.status;
        bool has = tc_json_string(tc_json_member(text, "reason"), reason, sizeof reason);
        kept = tc_log_add(log, line, &v, found, has ? reason : NULL) != NULL;
    }
    *no_memory = !kept;
    return kept;
}

bool tc_log_read(const char *path, tc_log *out, char why[TC_VERDICT_MESSAGE]) {
    memset(out, 0, sizeof *out);
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(errno));
        return false;
    }
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    bool no_memory = false;
    while ((n = getline(&text, &room, file)) > 0) {
        bool whole = text[n - 1] == '\n' && memchr(text, '\0', (size_t)n) == NULL;
        text[n - 1] = whole ? '\0' : text[n - 1];
        if (!whole || !take(out, text, &no_memory)) {
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

char *tc_log_plugin(const tc_log *log, const char *member, char *out, size_t room) {
    const char *plugin = log->head ? tc_json_member(log->head, "plugin") : NULL;
    const char *value = plugin && *plugin == '{' ? tc_json_member(plugin, member) : NULL;
    double number;
    if (tc_json_string(value, out, room))
        return out;
    if (tc_json_number(value, &number))
        snprintf(out, room, "%.15g", number);
    else
        *out = '\0';
    return out;
}

char *tc_log_device(const tc_log *log, char *out, size_t room) {
    static const char *const members[] = {"device", "name", "id", "type"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (*tc_log_plugin(log, members[i], out, room))
            return out;
    tc_log_plugin(log, "path", out, room);
    const char *slash = strrchr(out, '/');
    if (slash)
        memmove(out, slash + 1, strlen(slash));
    return out;
}

bool tc_log_next_level(const tc_log *log, const char **at, tc_log_level *out) {
    if (!*at) {
        *at = log->end ? tc_json_member(log->end, "levels") : NULL;
        *at += *at != NULL; /* into the array */
    }
    if (!*at || **at != '{')
        return false;
    tc_json_string(tc_json_member(*at, "name"), out->name, sizeof out->name);
    tc_json_string(tc_json_member(*at, "state"), out->state, sizeof out->state);
    tc_json_string(tc_json_member(*at, "why"), out->why, sizeof out->why);
    *at = tc_json_skip(*at);
    *at += **at == ',';
    return true;
}

/* ---- writing ----------------------------------------------------------------------------- */

bool tc_log_open(tc_log_file *file, const char *path, off_t whole, char why[TC_VERDICT_MESSAGE]) {
    *file = (tc_log_file){.path = path, .good = whole};
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

bool tc_log_put(tc_log_file *file, const char *record, char why[TC_VERDICT_MESSAGE]) {
    if (file->fd < 0)
        return true;
    size_t n = strlen(record), done = 0;
    char *text = malloc(n + 1);
    int error = text ? 0 : ENOMEM;
    if (text) {
        memcpy(text, record, n);
        text[n++] = '\n';
    }
    while (!error && done < n) {
        ssize_t wrote = write(file->fd, text + done, n - done);
        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote == 0 || errno != EINTR)
            error = wrote ? errno : EIO;
    }
    free(text);
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
    char json[TC_VERDICT_LINE], reason[TC_VERDICT_MESSAGE] = "";
    char record[2 * TC_VERDICT_LINE];
    tc_verdict_write(&v, r->line, json);
    json[strlen(json) - 1] = '\0'; /* its closing brace; more members follow */
    if (r->reason)
        tc_json_quote(r->reason, reason, sizeof reason);
    snprintf(record, sizeof record, "{\"record\":\"case\",%s,\"found\":\"%s\"%s%s}", json + 1,
             tc_status_name(r->found), r->reason ? ",\"reason\":" : "", reason);
    return tc_log_put(file, record, why);
}

bool tc_log_put_note(tc_log_file *file, const char *text, char why[TC_VERDICT_MESSAGE]) {
    char quoted[2 * TC_VERDICT_LINE], record[sizeof quoted + 64];
    tc_json_quote(text, quoted, sizeof quoted);
    snprintf(record, sizeof record, "{\"record\":\"note\",\"text\":%s}", quoted);
    return tc_log_put(file, record, why);
}

void tc_log_close(tc_log_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
