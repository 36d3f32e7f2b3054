/* TENON_LOG is a level, or a list such as "warn,loader=debug,dispatch"; a subsystem alone logs all
 * it has. The last match counts. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"error", "warn", "info", "debug", "trace"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int highest = -1; /* no subsystem logs above this level */
static char *rules;              /* copy of TENON_LOG; written once */

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

/* The level that the rules give `subsystem`; with NULL the highest they give any. */
static int level_of(const char *subsystem) {
    int level = -1;
    for (const char *p = rules; p && *p;) {
        size_t n = strcspn(p, ",");
        const char *eq = memchr(p, '=', n);
        if (!eq && parse_level(p, n) < 0 && !(n == 3 && memcmp(p, "off", 3) == 0)) {
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

static void read_rules(void) {
    /* Who asks for checks wants to see what they find. */
    bool checked = !tni_env_is_set(TNI_ENV_LOG) && strcmp(tni_env(TNI_ENV_VALIDATE), "0") != 0;
    rules = tni_strdup(checked ? "validation=warn" : tni_env(TNI_ENV_LOG));
    atomic_store(&highest, level_of(NULL));
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

void tni_log_line(int32_t level, const char *subsystem, const char *format, ...) {
    if (!tni_log_on(level, subsystem))
        return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&sink_lock);
    tn_log_fn fn = sink;
    void *user = sink_user;
    pthread_mutex_unlock(&sink_lock);
    if (fn)
        fn(user, level, subsystem, line);
    else
        fprintf(stderr, "tenon %s %s: %s\n", level_names[level], subsystem, line);
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
