/* Findings: each distinct one is logged when it comes up, kept, and counted from then on. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tenon/validation.h>

enum { MAX_FINDINGS = 1000 /* kept; what comes after is logged each time */ };

typedef struct finding {
    struct finding *next;
    const char *format; /* which check it is */
    int requirement;
    bool warning;
    uint64_t count;
    char *plugin, *slot, *op, *text; /* behind the struct */
} finding;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static finding *first, **last = &first;
static uint64_t n_findings, n_reports;

TNI_FORK_MUTEX(FINDINGS, lock, tni_fork_no_mend)

static char *put(char **at, const char *text) {
    size_t n = strlen(text) + 1;
    char *here = memcpy(*at, text, n);
    *at += n;
    return here;
}

static finding *make(const finding *f) {
    size_t n = strlen(f->plugin) + strlen(f->slot) + strlen(f->op) + strlen(f->text) + 4;
    finding *made = tni_alloc(sizeof *made + n);
    if (!made)
        return NULL;
    char *at = (char *)(made + 1);
    *made = *f;
    made->plugin = put(&at, f->plugin);
    made->slot = put(&at, f->slot);
    made->op = put(&at, f->op);
    made->text = put(&at, f->text);
    return made;
}

/* Counts it; true when it is new. */
static bool note(const finding *f) {
    pthread_mutex_lock(&lock);
    n_reports++;
    finding *found = first;
    while (found && (found->requirement != f->requirement || found->format != f->format ||
                     strcmp(found->plugin, f->plugin) != 0 || strcmp(found->slot, f->slot) != 0 ||
                     strcmp(found->op, f->op) != 0))
        found = found->next;
    finding *made = found || n_findings == MAX_FINDINGS ? NULL : make(f);
    if (found) {
        found->count++;
    } else if (made) {
        *last = made;
        last = &made->next;
        n_findings++;
    }
    pthread_mutex_unlock(&lock);
    return !found;
}

void tni_finding(const tni_watch *w, int requirement, const char *slot, const char *op,
                 const char *format, ...) {
    char text[768], who[32];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bool warning = (requirement & TNI_WARNING) != 0;
    int number = requirement & ~TNI_WARNING;
    const char *plugin = w ? w->name : "(unknown plugin)";
    finding f = {.format = format,
                 .requirement = number,
                 .warning = warning,
                 .count = 1,
                 .plugin = (char *)plugin,
                 .slot = (char *)slot,
                 .op = (char *)op,
                 .text = text};
    if (!note(&f))
        return;
    if (number)
        snprintf(who, sizeof who, "TNP-%d", number);
    else
        snprintf(who, sizeof who, "Tenon");
    tni_log_line(warning ? TN_LOG_WARN : TN_LOG_ERROR, "validation", "%s: %s, %s%s%s: %s", who,
                 plugin, slot, *op ? " of " : "", op, text);
}

void tni_validation_summary(void) {
    pthread_mutex_lock(&lock);
    uint64_t n = n_findings, reports = n_reports;
    n_reports = 0;
    pthread_mutex_unlock(&lock);
    if (reports)
        tni_log_line(TN_LOG_ERROR, "validation",
                     "%" PRIu64 " distinct findings are kept, %" PRIu64
                     " came up since the last shutdown; docs/validation.md says how to read them",
                     n, reports);
    else if (tn_validation_level() > 0)
        tni_log_line(TN_LOG_INFO, "validation", "nothing was found");
}

/* ---- for programs ------------------------------------------------------------------------ */

uint64_t tn_validation_count(void) {
    pthread_mutex_lock(&lock);
    uint64_t n = n_findings;
    pthread_mutex_unlock(&lock);
    return n;
}

tn_status tn_validation_get(uint64_t i, tn_validation_finding *out) {
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_validation_get: out is NULL");
    pthread_mutex_lock(&lock);
    uint64_t n = n_findings;
    const finding *f = first;
    for (uint64_t left = i; f && left > 0; left--)
        f = f->next;
    tn_validation_finding answer = {0};
    if (f)
        answer = (tn_validation_finding){.requirement = (uint32_t)f->requirement,
                                         .is_warning = f->warning,
                                         .count = f->count,
                                         .plugin = f->plugin,
                                         .slot = f->slot,
                                         .op = f->op,
                                         .text = f->text};
    pthread_mutex_unlock(&lock);
    if (!f)
        return tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
                        "tn_validation_get: there is no finding %" PRIu64 ", but %" PRIu64
                        "; ask tn_validation_count first",
                        i, n);
    answer.struct_size = out->struct_size < sizeof answer ? out->struct_size : sizeof answer;
    memcpy(out, &answer, answer.struct_size);
    return TN_OK;
}

void tn_validation_clear(void) {
    pthread_mutex_lock(&lock);
    finding *f = first;
    first = NULL;
    last = &first;
    n_findings = n_reports = 0;
    pthread_mutex_unlock(&lock);
    for (finding *next; f; f = next) {
        next = f->next;
        tni_free(f);
    }
}
