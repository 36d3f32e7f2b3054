/* See give_up.h. */
#include "plugin-sdk/conformance/runner/run/give_up.h"

#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/kind.h"

static uint64_t hash_of(const char *line, const tc_verdict *v) {
    char kind[TC_MESSAGE];
    return tc_hash(tc_kind(line, v->status, v->requirement, v->message, kind)) | 1;
}

/* What says that the next case will hardly do better; 0: nothing of the kind. */
static uint64_t kind_of(const char *line, const tc_verdict *v) {
    bool hopeless =
        v->status == TC_CRASH || v->status == TC_TIMEOUT || v->status == TC_ERROR ||
        (v->status == TC_FAIL && strncmp(v->message, TC_CANNOT_OPEN, strlen(TC_CANNOT_OPEN)) == 0);
    return hopeless ? hash_of(line, v) : 0;
}

/* Seconds count more than cases. What had another class given up is known after a few. */
static size_t limit_of(const tc_give_up *g, unsigned schedule, tc_status status) {
    size_t limit = status == TC_TIMEOUT ? (g->limit + 3) / 4 : g->limit;
    for (unsigned i = 0; i < TC_N_SCHEDULES; i++)
        if (g->classes[i].over && g->classes[i].kind == g->classes[schedule].kind &&
            !g->classes[schedule].mixed)
            return (limit + 4) / 5;
    return limit;
}

bool tc_give_up_see(tc_give_up *g, unsigned schedule, const char *line, const tc_verdict *v,
                    char why[TC_VERDICT_MESSAGE]) {
    uint64_t kind = kind_of(line, v);
    if (g->limit == 0 || g->classes[schedule].over)
        return false;
    if (kind == 0 || kind != g->classes[schedule].kind) {
        g->classes[schedule].mixed |= kind == 0 || g->classes[schedule].kind != 0;
        g->classes[schedule].kind = kind;
        g->classes[schedule].n = 0;
    }
    if (kind == 0 || ++g->classes[schedule].n < limit_of(g, schedule, v->status))
        return false;
    g->classes[schedule].over = true;
    snprintf(why, TC_VERDICT_MESSAGE, "%zu in a row: %s: %.*s", g->classes[schedule].n,
             tc_status_name(v->status), (int)strcspn(v->message, ";"), v->message);
    return true;
}

void tc_give_up_again(tc_give_up *g, unsigned schedule, const char *line, const tc_verdict *v,
                      bool failed) {
    uint64_t kind = hash_of(line, v);
    for (int i = 0; v->status == TC_FAIL && i < TC_MOST_KNOWN; i++) {
        tc_known_failure *known = &g->classes[schedule].known[i];
        if (known->kind != 0 && known->kind != kind)
            continue;
        *known = (tc_known_failure){kind, failed ? known->n + 1 : 0};
        return;
    }
}

/* Enough of them were looked at twice. */
enum { ENOUGH = 3 };

static bool knows_failure(const tc_give_up *g, unsigned schedule, uint64_t kind) {
    for (int i = 0; i < TC_MOST_KNOWN; i++)
        if (g->classes[schedule].known[i].kind == kind)
            return g->classes[schedule].known[i].n >= ENOUGH;
    return false;
}

bool tc_give_up_knows(const tc_give_up *g, unsigned schedule, const char *line,
                      const tc_verdict *v) {
    uint64_t kind = kind_of(line, v);
    size_t n = g->classes[schedule].n;
    if (v->status == TC_FAIL && knows_failure(g, schedule, hash_of(line, v)))
        return true;
    return kind && kind == g->classes[schedule].kind &&
           (n >= ENOUGH || (n && v->status == TC_TIMEOUT));
}
