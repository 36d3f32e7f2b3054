/* See reach.h. */
#include "plugin-sdk/conformance/worker/contract/reach.h"

#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <stdio.h>
#include <string.h>

typedef struct search {
    tc_sink sink;
    tc_contract *k;
    bool (*wanted)(const tn_kernel *kernel);
    tc_reached *reached; /* [n_kernels] */
    tc_drawn *drawn;     /* [n_kernels]; NULL where the first lines are looked for */
    tc_listed *listed;   /* [n_kernels]; NULL unless lists are looked for */
    int *numbers;        /* [n_kernels]; of `listed`, in the shapes at [0] */
    tc_arena arena;      /* of one line */
} search;

bool tc_record_counts(const tc_subject *s, const tn_kernel *kernel) {
    const tc_record *record = tc_record_find(kernel->op);
    return record && kernel->schema_hash == record->hash &&
           (!s->ops->accepts || s->ops->accepts(s->device, kernel) == TN_OK);
}

static int commas(const char *from, char end) {
    int n = 0;
    for (; *from && *from != end; from++)
        n += *from == ',';
    return n;
}

/* Of a line: how many numbers its longest list has, such as [0,2,4] of dim=[0,2,4]. */
static int list_length(const char *line, const tc_record *record) {
    int most = 0;
    for (uint32_t a = 0; a < record->n_args; a++) {
        char word[64];
        snprintf(word, sizeof word, " %s=[", record->args[a].name);
        const char *list = record->args[a].kind == TC_ARG_INTS ? strstr(line, word) : NULL;
        int n = list ? 1 + commas(list, ']') : 0;
        most = n > most ? n : most;
    }
    return most <= TC_MAX_RANK ? most : TC_MAX_RANK;
}

/* Is there no such line of record i yet, or one with fewer numbers? */
static bool is_new_list(const search *w, uint64_t i, const char *line, const tc_record *record) {
    int n = list_length(line, record);
    return n ? !w->listed[i].lines[n] : commas(line, '\0') > w->numbers[i];
}

static bool is_wanted(const search *w, uint64_t i) {
    const tn_kernel *kernel = w->k->subject->plugin->kernels[i];
    if (w->drawn || w->listed)
        return !w->wanted || w->wanted(kernel);
    return !w->reached[i].lines[TC_REACHING - 1] && (!w->wanted || w->wanted(kernel));
}

static bool is_of(const char *line, const tn_kernel *kernel) {
    const char *op = strchr(line, '/') + 1;
    size_t n = strcspn(op, " ");
    return strncmp(kernel->op, op, n) == 0 && !kernel->op[n];
}

/* Has the line's operator a record that is still looked for? */
static bool of_interest(const search *w, const char *line) {
    const tn_plugin *p = w->k->subject->plugin;
    for (uint64_t i = 0; i < p->n_kernels; i++)
        if (is_wanted(w, i) && is_of(line, p->kernels[i])) {
            const tc_record *record = tc_record_find(p->kernels[i]->op);
            if (!w->listed || (record && is_new_list(w, i, line, record)))
                return true;
        }
    return false;
}

static bool parse(search *w, const char *line, tc_case *c, tc_invocation *call) {
    char why[TC_MESSAGE];
    return tc_case_parse(line, c, why) && tc_invocation_parse(c, &w->arena, call, why);
}

/* Do the two plan alike: the same sizes, along the same dimensions? */
static bool alike(search *w, const char *line, const tc_invocation *call) {
    tc_case c;
    tc_invocation other;
    bool same = parse(w, line, &c, &other) &&
                tc_same_sizes(&other.outs[0].tensor.shape, &call->outs[0].tensor.shape);
    for (uint32_t a = 0; a < call->record->n_args && same; a++) {
        const tc_value *x = &call->args[a], *y = &other.args[a];
        if (call->record->args[a].kind == TC_ARG_INT)
            same = x->i == y->i;
        else if (call->record->args[a].kind == TC_ARG_TENSOR && !x->none && !y->none)
            same = tc_same_sizes(&x->tensor.shape, &y->tensor.shape);
    }
    return same;
}

static void note(search *w, uint64_t i, const char *line, const tc_invocation *call) {
    tc_reached *r = &w->reached[i];
    size_t bytes = strlen(line) + 1;
    if (r->lines[0] && alike(w, r->lines[0], call))
        return;
    char *kept = tc_arena_array(&w->k->arena, bytes, 1);
    if (kept)
        r->lines[r->lines[0] != NULL] = memcpy(kept, line, bytes);
}

static void note_list(search *w, uint64_t i, const char *line, const tc_record *record) {
    char *kept =
        is_new_list(w, i, line, record) ? tc_arena_array(&w->k->arena, strlen(line) + 1, 1) : NULL;
    if (!kept)
        return;
    w->numbers[i] = commas(line, '\0');
    w->listed[i].lines[list_length(line, record)] = strcpy(kept, line);
}

/* Reservoir sampling: the nth line takes the place of one with probability TC_DRAWN / n. */
static void draw(search *w, uint64_t i, const char *line) {
    tc_drawn *d = &w->drawn[i];
    uint64_t at = d->n_met < TC_DRAWN ? d->n_met : tc_below(&w->k->random, d->n_met + 1);
    d->n_met++;
    if (at >= TC_DRAWN)
        return;
    char *kept = tc_arena_array(&w->k->arena, strlen(line) + 1, 1);
    if (kept)
        d->lines[at] = strcpy(kept, line);
}

static void look(tc_sink *sink, const char *line) {
    search *w = (search *)sink;
    const tc_subject *s = w->k->subject;
    const tn_kernel *kernel;
    tc_case c;
    tc_invocation call;
    if (of_interest(w, line) && parse(w, line, &c, &call) && !tc_reaches_far(&call) &&
        !tc_is_flushed_away(s, &call) && tc_find_kernel(s, &call, NULL, &kernel) == TC_CLAIMED)
        for (uint64_t i = 0; i < s->plugin->n_kernels; i++)
            if (s->plugin->kernels[i] == kernel && is_wanted(w, i)) {
                if (w->listed)
                    note_list(w, i, line, call.record);
                else if (!w->drawn)
                    note(w, i, line, &call);
                else if (call.in_place < 0)
                    draw(w, i, line);
            }
    tc_arena_finish(&w->arena);
}

/* Zeroed, one for each record; NULL where the case has failed. */
static void *of_each_record(tc_contract *k, size_t bytes) {
    uint64_t n = k->subject->plugin->n_kernels;
    void *all = tc_arena_array(&k->arena, n + 1, bytes);
    if (!all)
        TC_CASE_ERROR(k->out, "the host has no memory for %llu records", (unsigned long long)n);
    else
        memset(all, 0, (n + 1) * bytes);
    return all;
}

tc_drawn *tc_reach_draw(tc_contract *k, tc_set set, bool (*wanted)(const tn_kernel *kernel)) {
    search w = {.sink = {look}, .k = k, .wanted = wanted};
    w.drawn = of_each_record(k, sizeof *w.drawn);
    if (w.drawn)
        tc_class_kernel.list(set, &w.sink);
    return w.drawn;
}

tc_listed *tc_reach_lists(tc_contract *k, tc_set set) {
    search w = {.sink = {look}, .k = k};
    w.listed = of_each_record(k, sizeof *w.listed);
    w.numbers = w.listed ? of_each_record(k, sizeof *w.numbers) : NULL;
    if (w.numbers)
        tc_class_kernel.list(set, &w.sink);
    return w.numbers ? w.listed : NULL;
}

tc_reached *tc_reach_records(tc_contract *k, tc_set set, bool (*wanted)(const tn_kernel *kernel)) {
    uint64_t n = k->subject->plugin->n_kernels;
    search w = {.sink = {look}, .k = k, .wanted = wanted};
    w.reached = of_each_record(k, sizeof *w.reached);
    if (!w.reached)
        return NULL;
    tc_class_kernel.list(TC_SMOKE, &w.sink); /* a small part of the work where it does */
    for (uint64_t i = 0; i < n && set > TC_SMOKE; i++)
        if (!w.reached[i].lines[0] && is_wanted(&w, i)) {
            tc_class_kernel.list(set, &w.sink);
            break;
        }
    return w.reached;
}
