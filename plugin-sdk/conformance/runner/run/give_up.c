/* See give_up.h. */
#include "plugin-sdk/conformance/runner/run/give_up.h"

#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/kind.h"

/* What says that the next case will hardly do better; 0: nothing of the kind. */
static uint64_t kind_of(const char *line, const tc_verdict *v) {
    char kind[TC_MESSAGE];
    bool hopeless =
        v->status == TC_CRASH || v->status == TC_TIMEOUT || v->status == TC_ERROR ||
        (v->status == TC_FAIL && strncmp(v->message, TC_CANNOT_OPEN, strlen(TC_CANNOT_OPEN)) == 0);
    if (!hopeless)
        return 0;
    return tc_hash(tc_kind(line, v->status, v->requirement, v->message, kind)) | 1;
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

bool tc_give_up_knows(const tc_give_up *g, unsigned schedule, const char *line,
                      const tc_verdict *v) {
    uint64_t kind = kind_of(line, v);
    size_t n = g->classes[schedule].n;
    return kind && kind == g->classes[schedule].kind && (n >= 3 || (n && v->status == TC_TIMEOUT));
}
