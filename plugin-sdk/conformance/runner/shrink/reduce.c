/* See reduce.h. */
#include "plugin-sdk/conformance/runner/shrink/reduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/clock.h"

bool tc_reduce_init(tc_reducer *r, tc_trial *trial, const char *line, const tc_verdict *wanted,
                    char why[TC_MESSAGE]) {
    tc_case c;
    memset(r, 0, sizeof *r);
    if (!tc_case_parse(line, &c, why) || !tc_draft_read(line, &r->draft, why))
        return false;
    tc_case_line(&c, r->line);
    r->trial = trial;
    r->wanted = r->verdict = *wanted;
    r->until = tc_now() + 1e9;
    return true;
}

/* Keeps the draft if it still fails the same way, in a fresh process too. */
static bool try(tc_reducer *r, const tc_draft *d) {
    char line[TC_MAX_LINE];
    tc_verdict v;
    if (tc_now() > r->until || !tc_draft_line(d, line) || strcmp(line, r->line) == 0)
        return false;
    r->n_tried++;
    bool fresh = r->trial->child.pid == 0;
    tc_trial_run(r->trial, line, &v);
    if (!tc_trial_same(line, &v, &r->wanted))
        return false;
    if (!fresh) {
        tc_trial_run_alone(r->trial, line, &v);
        if (!tc_trial_same(line, &v, &r->wanted))
            return false;
    }
    r->n_kept++;
    r->draft = *d;
    r->verdict = v;
    strcpy(r->line, line);
    if (r->step)
        r->step(line, &v);
    return true;
}

static bool try_value(tc_reducer *r, int at, const char *value) {
    tc_draft d = r->draft;
    if (strcmp(d.at[at].value, value) == 0)
        return false;
    tc_draft_set(&d, d.at[at].name, value);
    return try(r, &d);
}

/* ---- sizes ------------------------------------------------------------------------------- */

/* Which of the sizes that equal a value change with it. */
typedef enum extent { EVERYWHERE, SAME_FROM_LEFT, SAME_FROM_RIGHT, IN_ONE } extent;

static bool try_size(tc_reducer *r, int at, int32_t dim, int64_t size, extent how) {
    tc_draft d = r->draft;
    tc_shape here, s;
    tc_draft_shape(&d, at, &here);
    int64_t was = here.sizes[dim];
    for (int i = 0; i < (int)d.n; i++) {
        if (!tc_draft_shape(&d, i, &s) || (how == IN_ONE && i != at))
            continue;
        for (int32_t k = 0; k < s.rank; k++)
            if (s.sizes[k] == was && (how == EVERYWHERE || (how == SAME_FROM_LEFT && k == dim) ||
                                      (how == SAME_FROM_RIGHT && s.rank - k == here.rank - dim) ||
                                      (how == IN_ONE && k == dim)))
                s.sizes[k] = size;
        tc_draft_put_shape(&d, i, &s);
    }
    return try(r, &d);
}

static bool smaller_size(tc_reducer *r, int at, int32_t dim) {
    tc_shape s;
    tc_draft_shape(&r->draft, at, &s);
    int64_t was = s.sizes[dim], sizes[] = {1, was / 4, was / 2, was - 1, 0};
    for (int i = 0; i < 5; i++)
        for (int how = EVERYWHERE; how <= IN_ONE; how++)
            if (sizes[i] < was && (sizes[i] > 0 || (i == 4 && was == 1 && how == IN_ONE)) &&
                try_size(r, at, dim, sizes[i], (extent)how))
                return true;
    return false;
}

static bool smaller_sizes(tc_reducer *r) {
    tc_shape s;
    for (int i = 0; i < (int)r->draft.n; i++)
        if (tc_draft_shape(&r->draft, i, &s))
            for (int32_t k = 0; k < s.rank; k++)
                if (smaller_size(r, i, k))
                    return true;
    return false;
}

/* ---- dimensions -------------------------------------------------------------------------- */

static void drop_dim(tc_shape *s, int32_t dim) {
    for (int32_t k = dim; k + 1 < s->rank; k++) {
        s->sizes[k] = s->sizes[k + 1];
        s->strides[k] = s->strides[k + 1];
    }
    s->rank--;
}

/* Drops a dimension of all shapes, counted from the left or the right, or of one. An attribute that
 * names a dimension behind it moves along. */
static bool try_drop(tc_reducer *r, int at, int32_t dim, extent how, bool move) {
    tc_draft d = r->draft;
    tc_shape here, s;
    char text[32];
    tc_draft_shape(&d, at, &here);
    for (int i = 0; i < (int)d.n; i++) {
        if (!tc_draft_shape(&d, i, &s) || (how == IN_ONE && i != at))
            continue;
        int32_t k = how == SAME_FROM_RIGHT ? s.rank - (here.rank - dim) : dim;
        if (k < 0 || k >= s.rank)
            continue;
        drop_dim(&s, k);
        tc_draft_put_shape(&d, i, &s);
    }
    int named = tc_draft_find(&d, "dim");
    if (move) {
        long was = named >= 0 ? strtol(d.at[named].value, NULL, 10) : 0;
        if (was <= 0)
            return false;
        snprintf(text, sizeof text, "%ld", was - 1);
        tc_draft_set(&d, "dim", text);
    }
    return try(r, &d);
}

static bool fewer_dims(tc_reducer *r) {
    tc_shape s;
    for (int i = 0; i < (int)r->draft.n; i++)
        if (tc_draft_shape(&r->draft, i, &s))
            for (int32_t k = 0; k < s.rank; k++)
                for (int how = SAME_FROM_LEFT; how <= IN_ONE; how++)
                    if (try_drop(r, i, k, (extent)how, false) ||
                        try_drop(r, i, k, (extent)how, true))
                        return true;
    return false;
}

/* ---- where tensors lie ------------------------------------------------------------------- */

static bool denser(tc_reducer *r) {
    tc_shape s;
    for (int i = 0; i < (int)r->draft.n; i++) {
        if (!tc_draft_shape(&r->draft, i, &s) || !s.placed)
            continue;
        tc_draft d = r->draft;
        tc_shape plain = s;
        plain.placed = false;
        plain.offset = 0;
        tc_draft_put_shape(&d, i, &plain);
        if (try(r, &d))
            return true;
        plain = s;
        plain.offset = 0;
        d = r->draft;
        tc_draft_put_shape(&d, i, &plain);
        if (s.offset > 0 && try(r, &d))
            return true;
    }
    return false;
}

/* ---- everything else --------------------------------------------------------------------- */

/* A list is plainest with nothing but ones, then with zeros. */
static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    return end != text && *end == '\0';
}

static bool plainer(tc_reducer *r) {
    static const char *const kept[] = {"seed", "only", "bad", "how", "data"};
    for (int i = 0; i < (int)r->draft.n; i++) {
        bool keep = false;
        char value[TC_DRAFT_VALUE], half[32];
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            keep |= strcmp(r->draft.at[i].name, kept[k]) == 0;
        strcpy(value, r->draft.at[i].value);
        if (keep)
            continue;
        if (value[0] == '[' || !is_number(value)) {
            tn_dtype dtype;
            char why[TC_MESSAGE];
            if ((value[0] == '[' && try_value(r, i, "none")) ||
                (strcmp(value, "true") == 0 && try_value(r, i, "false")) ||
                (tc_read_dtype(value, &dtype, why) && dtype != TN_F32 && try_value(r, i, "f32")))
                return true;
            continue;
        }
        if (strcmp(value, "1") == 0 || strcmp(value, "0") == 0)
            continue;
        if (try_value(r, i, "1") || try_value(r, i, "0"))
            return true;
        snprintf(half, sizeof half, "%" PRId64, (int64_t)(strtod(value, NULL) / 2));
        if (strtod(value, NULL) >= 4 && try_value(r, i, half))
            return true;
    }
    return false;
}

static bool without(tc_reducer *r) {
    for (int i = 0; i < (int)r->draft.n; i++) {
        tc_draft d = r->draft;
        if (strcmp(d.at[i].name, "seed") == 0 || strcmp(d.at[i].name, "only") == 0 ||
            strcmp(d.at[i].name, "data") == 0)
            continue;
        tc_draft_remove(&d, i);
        if (try(r, &d))
            return true;
    }
    return false;
}

static bool plainer_data(tc_reducer *r) {
    tc_draft d = r->draft;
    int at = tc_draft_find(&d, "data");
    if (at >= 0 && strcmp(d.at[at].value, "exact") == 0)
        return false;
    tc_draft_set(&d, "data", "exact");
    if (try(r, &d))
        return true;
    if (at < 0 || strcmp(d.at[at].value, "random") == 0)
        return false;
    tc_draft_set(&d, "data", "random");
    return try(r, &d);
}

/* One element that is not plain; the ones behind the first few are tried in larger steps. */
static bool one_element(tc_reducer *r) {
    int64_t most = 1;
    tc_shape s;
    if (tc_draft_find(&r->draft, "only") >= 0)
        return false;
    for (int i = 0; i < (int)r->draft.n; i++)
        if (tc_draft_shape(&r->draft, i, &s) && s.numel > most)
            most = s.numel;
    for (int64_t i = 0; i < most && most > 1; i += i < 32 ? 1 : 1 + most / 32) {
        tc_draft d = r->draft;
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, i);
        tc_draft_set(&d, "only", text);
        if (try(r, &d))
            return true;
    }
    return false;
}

/* A case's data follows from its line: a change would change all of it, so the seed is pinned
 * first, where it can be, and let go at the end. */
static void pin_seed(tc_reducer *r) {
    tc_case c;
    char why[TC_MESSAGE], text[32];
    tc_draft d = r->draft;
    if (tc_draft_find(&d, "seed") >= 0 || !tc_case_parse(r->line, &c, why))
        return;
    snprintf(text, sizeof text, "%" PRIu64, c.seed);
    tc_draft_set(&d, "seed", text);
    try(r, &d);
}

static void let_seed_go(tc_reducer *r) {
    int at = tc_draft_find(&r->draft, "seed");
    if (at < 0)
        return;
    tc_draft d = r->draft;
    tc_draft_remove(&d, at);
    if (!try(r, &d) && strlen(r->draft.at[at].value) > 1)
        (void)(try_value(r, at, "1") || try_value(r, at, "2") || try_value(r, at, "3"));
}

/* Where the failure hangs on a fence (kernel/, by the seed), the line says so: a C file has none. */
static void name_fence(tc_reducer *r) {
    static const char *const fences[] = {"fenced", "fenced-before"};
    char line[TC_MAX_LINE];
    tc_verdict v;
    tc_draft d = r->draft;
    tc_draft_set(&d, "memory", "apart");
    if (strncmp(r->line, "kernel/", 7) != 0 || tc_draft_find(&r->draft, "memory") >= 0 ||
        !tc_draft_line(&d, line))
        return;
    tc_trial_run_alone(r->trial, line, &v);
    for (int i = 0; i < 2 && !tc_trial_same(line, &v, &r->wanted); i++) {
        tc_draft_set(&d, "memory", fences[i]);
        if (try(r, &d))
            return;
    }
}

void tc_reduce(tc_reducer *r) {
    pin_seed(r);
    while (without(r) || smaller_sizes(r) || fewer_dims(r) || denser(r) || plainer(r) ||
           plainer_data(r) || one_element(r))
        ;
    let_seed_go(r);
    name_fence(r);
}
