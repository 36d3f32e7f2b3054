/* See draw.h. */
#include "plugin-sdk/conformance/worker/kernel/draw.h"

#include "plugin-sdk/conformance/worker/kernel/mutate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BASE = 20000, /* elements of a line that others are made of */
    TRIES = 24,
    MOST_TERMS = 1 << 13
};

/* How large a drawn call is, in elements; most are small, for these are cheap. */
static const int64_t regimes[] = {0, 1 << 10, 1 << 6, 1 << 14, 1 << 12, 40000, 0, 80000};
enum { N_REGIMES = sizeof regimes / sizeof *regimes };

void tc_urn_add(tc_urn *urn, const char *line) {
    char why[TC_MESSAGE];
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    bool good = tc_case_parse(line, &c, why) && tc_invocation_parse(&c, &arena, &call, why) &&
                !tc_is_extra(&c, &call);
    for (uint32_t a = 0; good && a < call.record->n_args; a++)
        good = call.args[a].tensor.shape.numel <= MOST_BASE;
    for (uint32_t k = 0; good && k < call.record->n_outs; k++)
        good = call.outs[k].tensor.shape.numel <= MOST_BASE;
    tc_arena_finish(&arena);
    if (good && urn->n == urn->room) {
        size_t room = urn->room ? 2 * urn->room : 64;
        char **lines = realloc(urn->lines, room * sizeof *lines);
        good = lines != NULL;
        if (good) {
            urn->lines = lines;
            urn->room = room;
        }
    }
    if (good && (urn->lines[urn->n] = strdup(line)))
        urn->n++;
}

void tc_urn_finish(tc_urn *urn) {
    for (size_t i = 0; i < urn->n; i++)
        free(urn->lines[i]);
    free(urn->lines);
    *urn = (tc_urn){.record = urn->record};
}

/* ---- one line ---------------------------------------------------------------------------- */

static const char *pick(const tc_urn *urn, tc_random *r) {
    return urn->lines[tc_below(r, urn->n)];
}

static bool is_attribute(const tc_urn *urn, const char *name) {
    int32_t a = tc_record_arg(urn->record, name);
    return a >= 0 && urn->record->args[a].kind != TC_ARG_TENSOR;
}

static bool is_kept(tc_draft *d, const tc_draft *before) {
    char line[TC_MAX_LINE];
    if (tc_draft_line(d, line))
        return true;
    *d = *before;
    return false;
}

/* Attributes of other lines, each on its own, as far as they fit; or none. */
static void cross_attributes(const tc_urn *urn, tc_draft *d, tc_random *r, bool one) {
    char why[TC_MESSAGE];
    for (int i = 0; i < (int)d->n; i++) {
        tc_draft other, before = *d;
        if (!is_attribute(urn, d->at[i].name) || tc_below(r, 2) ||
            !tc_draft_read(pick(urn, r), &other, why))
            continue;
        int at = tc_draft_find(&other, d->at[i].name);
        if (at < 0 || strcmp(other.at[at].value, d->at[i].value) == 0)
            continue;
        tc_draft_set(d, d->at[i].name, other.at[at].value);
        if (is_kept(d, &before) && one)
            return;
    }
}

/* The tensors of a call, by the names of their parameters. */
static int tensor_at(const tc_urn *urn, const tc_draft *d, uint32_t a) {
    tc_shape s;
    int at = urn->record->args[a].kind == TC_ARG_TENSOR
                 ? tc_draft_find(d, urn->record->args[a].name)
                 : -1;
    return at >= 0 && tc_draft_shape(d, at, &s) ? at : -1;
}

static void forget_outs(tc_draft *d, const tc_urn *urn) {
    if (urn->record->family == &tc_family_factory)
        return;
    for (int i = (int)d->n - 1; i >= 0; i--)
        if (strncmp(d->at[i].name, "out", 3) == 0 && tc_record_arg(urn->record, d->at[i].name) < 0)
            tc_draft_remove(d, i);
}

/* Sizes at which vectors, tiles and blocks end, and their neighbours. */
static int64_t edge(int64_t most, tc_random *r) {
    int64_t power = 1;
    while (power < most && tc_below(r, 8))
        power *= 2;
    int64_t size = power + (int64_t)tc_below(r, 3) - 1;
    return size < 1 ? 1 : size;
}

/* All shapes dense, one or two sizes anew, about as many elements as the regime has. */
static void resize(const tc_urn *urn, tc_draft *d, int64_t numel, tc_random *r) {
    tc_draft before;
    forget_outs(d, urn);
    if (numel == 0) {
        before = *d;
        tc_mutate_shapes(d, r);
        is_kept(d, &before);
        return;
    }
    for (int n = 1 + (int)tc_below(r, 2), tries = 0; n > 0 && tries < 6; tries++) {
        uint32_t a = (uint32_t)tc_below(r, urn->record->n_args);
        int at = tensor_at(urn, d, a);
        tc_shape s;
        before = *d;
        if (at < 0 || !tc_draft_shape(d, at, &s) || s.rank == 0)
            continue;
        int32_t dim = (int32_t)tc_below(r, (uint64_t)s.rank);
        int64_t room = numel / (s.numel / s.sizes[dim]);
        if (room < 1)
            continue;
        int64_t size = n == 1 && tc_below(r, 3) ? room + (int64_t)tc_below(r, 7) : edge(room, r);
        tc_mutate_resize(d, s.sizes[dim], size);
        n -= is_kept(d, &before);
    }
}

static void place(tc_shape *s, const tc_urn *urn, bool out, tc_random *r) {
    uint64_t way = tc_below(r, 4);
    if (way == 1)
        s->offset = 1 + (int64_t)tc_below(r, 33);
    else if (way > 1)
        tc_mutate_place(s, r, !out && urn->record->pointwise);
    s->placed = way > 0;
}

static void relay(const tc_urn *urn, tc_draft *d, tc_random *r) {
    char name[TC_OUT_NAME], why[TC_MESSAGE], line[TC_MAX_LINE];
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    tc_shape s;
    for (uint32_t a = 0; a < urn->record->n_args; a++) {
        int at = tensor_at(urn, d, a);
        if (at < 0 || !tc_draft_shape(d, at, &s))
            continue;
        s = tc_dense(s.rank, s.sizes);
        place(&s, urn, false, r);
        tc_draft before = *d;
        tc_draft_put_shape(d, at, &s);
        is_kept(d, &before);
    }
    if (tc_draft_find(d, "in-place") < 0 && tc_draft_line(d, line) &&
        tc_case_parse(line, &c, why) && tc_invocation_parse(&c, &arena, &call, why))
        for (uint32_t k = 0; k < urn->record->n_outs; k++) {
            tc_draft before = *d;
            s = tc_dense(call.outs[k].tensor.shape.rank, call.outs[k].tensor.shape.sizes);
            place(&s, urn, true, r);
            tc_draft_set_shape(d, tc_record_out(urn->record, k, name), &s);
            is_kept(d, &before);
        }
    tc_arena_finish(&arena);
}

static void choose_data(const tc_urn *urn, tc_draft *d, tc_random *r) {
    tc_draft_set(d, "data",
                 tc_data_name(tc_below(r, 4) ? tc_mutate_data(urn->record, r) : TC_DATA_RANDOM));
}

/* In place, or a tensor's value as a cell, now and then. */
static void choose_form(const tc_urn *urn, tc_draft *d, tc_random *r) {
    const char *form = tc_below(r, 2) ? "in-place" : "scalar";
    const tc_arg *arg = &urn->record->args[tc_below(r, urn->record->n_args)];
    tc_draft before = *d;
    if (tc_below(r, 6) || arg->kind != TC_ARG_TENSOR || tc_draft_find(d, "in-place") >= 0 ||
        tc_draft_find(d, "scalar") >= 0 || (*form == 's' && !urn->record->pointwise))
        return;
    forget_outs(d, urn);
    tc_draft_set(d, form, arg->name);
    is_kept(d, &before);
}

static bool is_affordable(const tc_urn *urn, const tc_invocation *call, int64_t most) {
    int64_t numel = 0, terms = urn->record->family->terms(call);
    /* of many numbers that nobody chose only whole ones prove something */
    int64_t longest = call->data == TC_DATA_EXACT ? 2 * most : MOST_TERMS;
    for (uint32_t k = 0; k < urn->record->n_outs; k++)
        numel = call->outs[k].tensor.shape.numel > numel ? call->outs[k].tensor.shape.numel : numel;
    if (terms > longest || numel > 8 * most / terms)
        return false;
    for (uint32_t k = 0; k < urn->record->n_outs; k++)
        if (call->outs[k].tensor.shape.extent > 4 * most)
            return false;
    for (uint32_t a = 0; a < urn->record->n_args; a++)
        if (urn->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            (call->args[a].tensor.shape.numel > 2 * most ||
             call->args[a].tensor.shape.extent > 4 * most))
            return false;
    return true;
}

/* From the draft `d`, if it is the one before; else from a line of the urn. */
static bool draw(const tc_urn *urn, int i, bool on, tc_draft *d, tc_random *r) {
    char why[TC_MESSAGE];
    if (on) {
        switch (tc_below(r, 3)) {
        case 0:
            cross_attributes(urn, d, r, true);
            break;
        case 1:
            relay(urn, d, r);
            break;
        default:
            choose_data(urn, d, r);
        }
        return true;
    }
    if (!tc_draft_read(pick(urn, r), d, why))
        return false;
    cross_attributes(urn, d, r, false);
    resize(urn, d, regimes[i % N_REGIMES], r);
    choose_form(urn, d, r);
    relay(urn, d, r);
    choose_data(urn, d, r);
    return true;
}

void tc_urn_draw(const tc_urn *urn, int first, int n, tc_sink *to) {
    char line[TC_MAX_LINE], number[24], why[TC_MESSAGE];
    tc_draft last = {.n = 0}, d;
    bool follows = false;
    for (int i = first; urn->n > 0 && i < first + n; i++) {
        tc_random r = {tc_hash(urn->lines[0]) + (uint64_t)i * 0x9e3779b97f4a7c15u};
        /* which of the sizes comes first is another for each operator */
        int regime = i + (int)(tc_hash(urn->lines[0]) % N_REGIMES);
        bool on = follows && i % 3 == 2, done = false;
        for (int tries = 0; !done && tries < TRIES; tries++) {
            tc_arena arena = {NULL};
            tc_case c;
            tc_invocation call;
            d = last;
            done = draw(urn, regime, on, &d, &r);
            snprintf(number, sizeof number, "%d", i);
            tc_draft_set(&d, "drawn", number);
            done = done && tc_draft_line(&d, line) && tc_case_parse(line, &c, why) &&
                   tc_invocation_parse(&c, &arena, &call, why) &&
                   is_affordable(urn, &call, 1 << 17);
            tc_arena_finish(&arena);
        }
        if (done)
            to->line(to, line);
        follows = done;
        last = d;
    }
}
