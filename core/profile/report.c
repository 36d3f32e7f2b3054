/* A profile for people: the trace that a browser opens, the table. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "core/profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- trace ------------------------------------------------------------------------------- */

/* "Trace Event Format": complete events ("X") in microseconds. Threads of the program are lanes of
 * process 1; streams are lanes of process 2, numbered by device and stream. */
typedef struct trace {
    FILE *file;
    tni_text line; /* one event at a time */
    bool any;
    char lanes[64][80]; /* names of process 2's lanes */
    uint32_t n_lanes;
} trace;

/* Writes the line and starts the next. */
static void write_line(trace *t) {
    fprintf(t->file, "%s\n", t->any ? "," : "");
    fwrite(t->line.data, 1, t->line.n, t->file);
    t->line.n = 0;
    t->any = true;
}

/* Microseconds with three decimals, whatever the locale says of decimal points. */
static void add_us(tni_text *line, const char *key, int64_t ns) {
    tni_text_add(line, ",\"%s\":%" PRId64 ".%03" PRId64, key, ns / 1000, ns % 1000);
}

static void add_string(tni_text *line, const char *key, const char *value) {
    tni_text_add(line, "\"%s\":", key);
    tni_text_add_json(line, value);
}

static void write_name(trace *t, const char *what, int pid, uint32_t tid, const char *name) {
    tni_text_add(&t->line, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%u,\"args\":{", what,
                 pid, tid);
    add_string(&t->line, "name", name);
    tni_text_add(&t->line, "}}");
    write_line(t);
}

/* The lane of a stream, named at first sight; those past the table share the last. */
static uint32_t lane_of(trace *t, const tn_profile_event *e) {
    char name[80];
    snprintf(name, sizeof name, "%s stream %u", e->device, e->stream);
    uint32_t i = 0;
    while (i < t->n_lanes && strcmp(t->lanes[i], name) != 0)
        i++;
    if (i == t->n_lanes && i < 64) {
        memcpy(t->lanes[t->n_lanes++], name, sizeof name);
        write_name(t, "thread_name", 2, i, name);
    }
    return i < 64 ? i : 63;
}

static void write_event(trace *t, const tn_profile_event *e, int pid, uint32_t tid, int64_t at,
                        int64_t ns) {
    tni_text *line = &t->line;
    tni_text_add(line, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,", pid, tid);
    add_string(line, "name", e->op);
    tni_text_add(line, ",\"cat\":\"%s\"", tni_how_name(e->how));
    add_us(line, "ts", at);
    add_us(line, "dur", ns < 0 ? 0 : ns);
    tni_text_add(line, ",\"args\":{");
    add_string(line, "args", e->args);
    tni_text_add(line, ",");
    add_string(line, "device", e->device);
    tni_text_add(line, ",");
    add_string(line, "kernel", e->kernel);
    tni_text_add(line, ",\"stream\":%u,\"bytes\":%" PRId64 ",\"status\":\"%s\"}}", e->stream,
                 e->bytes, tn_status_name(e->status));
    write_line(t);
}

static void trace_event(const tn_profile_event *e, void *user) {
    trace *t = user;
    write_event(t, e, 1, e->thread, e->start_ns, e->host_ns);
    if (e->device_ns >= 0 && e->device_start_ns >= 0)
        write_event(t, e, 2, lane_of(t, e), e->device_start_ns, e->device_ns);
}

tn_status tn_profile_write_trace(const char *path) {
    if (!path)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_profile_write_trace: path is NULL");
    trace *t = tni_calloc(1, sizeof *t);
    if (!t)
        return tni_fail_memory("a trace");
    uint64_t lost = 0;
    errno = 0;
    t->file = fopen(path, "w");
    bool ok = t->file != NULL;
    if (ok) {
        fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", t->file);
        write_name(t, "process_name", 1, 0, "host threads");
        write_name(t, "process_name", 2, 0, "device streams");
        tn_profile_events(trace_event, t, &lost);
        fprintf(t->file, "\n],\"otherData\":{\"lost\":\"%" PRIu64 "\"}}\n", lost);
        ok = !ferror(t->file);
        ok = fclose(t->file) == 0 && ok;
    }
    bool short_of_memory = t->line.failed;
    tni_free(t->line.data);
    tni_free(t);
    if (short_of_memory)
        return tni_fail_memory("a trace");
    return ok ? TN_OK
              : tni_fail(TN_ERR_IO,
                         "tn_profile_write_trace: %s: %s; give a path that can be written", path,
                         strerror(errno ? errno : EIO));
}

/* ---- table ------------------------------------------------------------------------------- */

typedef struct line {
    const char *op, *device;
    tn_profile_how how;
    uint64_t calls;
    int64_t host_ns, self_ns, device_ns, bytes;
} line;

/* Calls end in the order of their events, so what is one deeper and came since the last of this
 * depth was within this one. */
enum { MAX_DEPTH = 64 };

typedef struct table {
    line *lines;
    size_t n, capacity;
    line total;                        /* of calls that no other call made */
    int64_t within[64][MAX_DEPTH + 2]; /* [thread][depth]: of calls that ended, not yet counted */
    bool failed;
} table;

static line *line_of(table *t, const tn_profile_event *e) {
    for (size_t i = 0; i < t->n; i++) {
        line *l = &t->lines[i];
        if (l->how == e->how && strcmp(l->op, e->op) == 0 && strcmp(l->device, e->device) == 0)
            return l;
    }
    if (!tni_grow(&t->lines, t->n, &t->capacity, sizeof *t->lines)) {
        t->failed = true;
        return NULL;
    }
    line *l = &t->lines[t->n++];
    *l = (line){.op = e->op, .device = e->device, .how = e->how, .device_ns = -1};
    return l;
}

static void add_total(line *total, const tn_profile_event *e) {
    total->calls++;
    if (e->depth > 0)
        return;
    total->host_ns += e->host_ns;
    if (e->device_ns >= 0)
        total->device_ns = (total->device_ns < 0 ? 0 : total->device_ns) + e->device_ns;
    if (e->bytes > 0)
        total->bytes += e->bytes;
}

static void table_event(const tn_profile_event *e, void *user) {
    table *t = user;
    line *l = line_of(t, e);
    if (!l)
        return;
    add_total(&t->total, e);
    int64_t *within = t->within[e->thread % 64];
    uint32_t depth = e->depth < MAX_DEPTH ? e->depth : MAX_DEPTH;
    l->calls++;
    l->host_ns += e->host_ns;
    l->self_ns += e->host_ns - within[depth + 1];
    within[depth + 1] = 0;
    within[depth] += e->host_ns;
    if (e->device_ns >= 0)
        l->device_ns = (l->device_ns < 0 ? 0 : l->device_ns) + e->device_ns;
    if (e->bytes > 0)
        l->bytes += e->bytes;
}

static int by_self(const void *a, const void *b) {
    const line *x = a, *y = b;
    return (x->self_ns < y->self_ns) - (x->self_ns > y->self_ns);
}

static void write_row(FILE *f, const line *l, const char *how, int64_t total) {
    char device_us[32] = "-";
    if (l->device_ns >= 0)
        snprintf(device_us, sizeof device_us, "%" PRId64, l->device_ns / 1000);
    int64_t permille = total > 0 ? l->self_ns * 1000 / total : 0;
    fprintf(f,
            "%-34s %-10s %-14s %8" PRIu64 " %11" PRId64 " %11" PRId64 " %5" PRId64 ".%" PRId64
            "%% %11s %10" PRId64 "\n",
            l->op, l->device, how, l->calls, l->host_ns / 1000, l->self_ns / 1000, permille / 10,
            permille % 10, device_us, l->bytes / 1024);
}

char *tn_profile_table(void) {
    table *t = tni_calloc(1, sizeof *t);
    char *text = NULL, *kept = NULL;
    size_t size = 0;
    FILE *f = t ? open_memstream(&text, &size) : NULL;
    uint64_t lost = 0;
    if (f) {
        t->total = (line){.op = "all", .device = "", .device_ns = -1};
        tn_profile_events(table_event, t, &lost);
        for (size_t i = 0; i < t->n; i++)
            t->total.self_ns += t->lines[i].self_ns;
        if (t->n)
            qsort(t->lines, t->n, sizeof *t->lines, by_self);
        fprintf(f, "%-34s %-10s %-14s %8s %11s %11s %7s %11s %10s\n", "operator", "device", "by",
                "calls", "host us", "self us", "self", "device us", "KiB");
        for (size_t i = 0; i < t->n; i++)
            write_row(f, &t->lines[i], tni_how_name(t->lines[i].how), t->total.self_ns);
        write_row(f, &t->total, "", t->total.self_ns);
        if (lost)
            fprintf(f, "%" PRIu64 " more calls are missing: there was no memory for them\n", lost);
        bool whole = !ferror(f) && !t->failed;
        if (fclose(f) == 0 && whole)
            kept = tni_strdup(text);
        free(text);
    }
    if (t)
        tni_free(t->lines);
    tni_free(t);
    if (!kept)
        tni_fail_memory("the table of a profile");
    return kept;
}
