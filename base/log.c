/* TENON_LOG is a level, or a list such as "warn,loader=debug,dispatch"; a subsystem alone logs all
 * it has. It stands behind the default, and the last match counts. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"error", "warn", "info", "debug", "trace"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int highest = -1; /* no subsystem logs above this level */
static char *rules;              /* the default and TENON_LOG; written once */

/* The function and its user pointer change together: readers take the lock. */
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static tn_log_fn sink;
static void *sink_user;
static int sink_level = -1; /* -1: TENON_LOG's rules decide */

TNI_FORK_MUTEX(LOG, sink_lock, tni_fork_no_mend)

static int parse_level(const char *s, size_t n) {
    for (int i = 0; i < 5; i++)
        if (strlen(level_names[i]) == n && memcmp(level_names[i], s, n) == 0)
            return i;
    return -1;
}

static bool is_level(const char *s, size_t n) {
    return parse_level(s, n) >= 0 || (n == 3 && memcmp(s, "off", 3) == 0);
}

/* Of every tni_log_line. */
#define SUBSYSTEMS "device, dispatch, env, fallback, loader, memory, plugin, scope, validation"

static bool is_subsystem(const char *s, size_t n) {
    for (const char *p = SUBSYSTEMS; *p; p += strspn(p, ", ")) {
        size_t word = strcspn(p, ", ");
        if (word == n && memcmp(p, s, n) == 0)
            return true;
        p += word;
    }
    return false;
}

/* The level that the rules give `subsystem`; with NULL the highest they give any. */
static int level_of(const char *subsystem) {
    int level = -1;
    for (const char *p = rules; p && *p;) {
        size_t n = strcspn(p, ",");
        const char *eq = memchr(p, '=', n);
        if (!eq && !is_level(p, n)) {
            if (!subsystem || (strlen(subsystem) == n && memcmp(subsystem, p, n) == 0))
                level = TN_LOG_TRACE;
        } else if (!eq) {
            int l = parse_level(p, n);
            level = subsystem || l > level ? l : level;
        } else {
            int l = parse_level(eq + 1, n - (size_t)(eq + 1 - p));
            size_t name = (size_t)(eq - p);
            if (!subsystem)
                level = l > level ? l : level;
            else if (strlen(subsystem) == name && memcmp(subsystem, p, name) == 0)
                level = l;
        }
        p += n;
        p += *p == ',';
    }
    return level;
}

/* Not by tni_env, which may have something to log. */
static void read_rules(void) {
    const char *asked = getenv(tni_env_table[TNI_ENV_LOG].name);
    rules = tni_format("%s,%s", tni_env_table[TNI_ENV_LOG].fallback, asked ? asked : "");
    atomic_store(&highest, level_of(NULL));
}

/* Says what is wrong with the first piece from *at on that is not understood, and goes behind it. */
static bool next_problem(const char **at, char *out, size_t size) {
    const char *p = *at;
    for (size_t n; *p; p += n + (p[n] == ',')) {
        n = strcspn(p, ",");
        const char *eq = memchr(p, '=', n);
        size_t name = eq ? (size_t)(eq - p) : n;
        bool alone = !eq && is_level(p, n);
        if (n == 0 || alone || (is_subsystem(p, name) && (!eq || is_level(eq + 1, n - name - 1))))
            continue;
        snprintf(out, size, "'%.*s' is ignored: it must be %s; subsystems are " SUBSYSTEMS,
                 n < 256 ? (int)n : 256, p, tni_env_table[TNI_ENV_LOG].allowed);
        *at = p + n + (p[n] == ',');
        return true;
    }
    return false;
}

bool tni_log_problem(char *out, size_t size) {
    const char *at = tni_env(TNI_ENV_LOG);
    return next_problem(&at, out, size);
}

void tni_log_check(void) {
    char problem[512];
    for (const char *at = tni_env(TNI_ENV_LOG); next_problem(&at, problem, sizeof problem);)
        tni_log_once(TN_LOG_WARN, "env", "TENON_LOG: %s", problem);
}

bool tni_log_on(int32_t level, const char *subsystem) {
    pthread_once(&once, read_rules);
    if (level > atomic_load_explicit(&highest, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&sink_lock);
    int limit = sink_level;
    pthread_mutex_unlock(&sink_lock);
    return level <= (limit >= 0 ? limit : level_of(subsystem));
}

/* Later lines of a message are indented: none looks like a line of the log. */
static void print_line(int32_t level, const char *subsystem, const char *line) {
    char text[2048];
    size_t n = 0;
    for (; *line && n < sizeof text - 8; line++) {
        text[n++] = *line;
        if (*line == '\n')
            n += (size_t)sprintf(text + n, "    ");
    }
    text[n] = '\0';
    fprintf(stderr, "tenon %s %s: %s\n", level_names[level], subsystem, text);
}

static void deliver(int32_t level, const char *subsystem, char *line) {
    tni_text_make_printable(line);
    pthread_mutex_lock(&sink_lock);
    tn_log_fn fn = sink;
    void *user = sink_user;
    pthread_mutex_unlock(&sink_lock);
    if (fn)
        fn(user, level, subsystem, line);
    else
        print_line(level, subsystem, line);
}

/* When there is no more room, lines are said again. */
static bool said_before(const char *line) {
    static _Atomic uint64_t said[512]; /* hashes */
    uint64_t hash = tni_hash(line, strlen(line)) | 1;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&said[i], &there, hash))
            return false;
        if (there == hash)
            return true;
    }
    return false;
}

static void write_line(bool rarely, int32_t level, const char *subsystem, const char *format,
                       va_list args) {
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    if (!rarely || !said_before(line))
        deliver(level, subsystem, line);
}

void tni_log_line(int32_t level, const char *subsystem, const char *format, ...) {
    if (!tni_log_on(level, subsystem))
        return;
    va_list args;
    va_start(args, format);
    write_line(false, level, subsystem, format, args);
    va_end(args);
}

void tni_log_once(int32_t level, const char *subsystem, const char *format, ...) {
    if (!tni_log_on(level, subsystem))
        return;
    va_list args;
    va_start(args, format);
    write_line(true, level, subsystem, format, args);
    va_end(args);
}

void tn_log_set(int32_t level, tn_log_fn fn, void *user) {
    pthread_once(&once, read_rules);
    pthread_mutex_lock(&sink_lock);
    sink = fn;
    sink_user = user;
    sink_level = level > TN_LOG_TRACE ? TN_LOG_TRACE : level;
    atomic_store(&highest, sink_level >= 0 ? sink_level : level_of(NULL));
    pthread_mutex_unlock(&sink_lock);
}
