/* See needs.h. */
#include "plugin-sdk/conformance/runner/run/needs.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100 };

void tc_needs_finish(tc_needs *needs) {
    free(needs->at);
    *needs = (tc_needs){0};
}

/* ---- collecting -------------------------------------------------------------------------- */

static bool add(tc_needs *needs, const char *target, const char *item, size_t n) {
    if (needs->n == needs->room) {
        size_t room = needs->room ? 2 * needs->room : 256;
        tc_need *at = realloc(needs->at, room * sizeof *at);
        if (!at)
            return false;
        needs->at = at;
        needs->room = room;
    }
    tc_need *need = &needs->at[needs->n++];
    *need = (tc_need){.n_items = 0};
    snprintf(need->target, sizeof need->target, "%s", target);
    snprintf(need->item, sizeof need->item, "%.*s", (int)n, item);
    return true;
}

/* "any f32" of a case of operator/; of others the class, too. */
static void name_target(const char *line, char out[TC_NEED_FOR]) {
    const char *subject = strncmp(line, "operator/", 9) == 0 ? line + 9 : line;
    const char *dtype = strstr(line, " T=");
    snprintf(out, TC_NEED_FOR, "%.*s%s%.*s", (int)strcspn(subject, " "), subject, dtype ? " " : "",
             dtype ? (int)strcspn(dtype + 3, " ") : 0, dtype ? dtype + 3 : "");
}

bool tc_needs_add(tc_needs *needs, const tc_result *result) {
    char target[TC_NEED_FOR];
    name_target(result->line, target);
    size_t prefix = sizeof TC_LACKS - 1;
    if (result->status != TC_UNSUPPORTED || strncmp(result->message, TC_LACKS, prefix) != 0)
        return add(needs, target, "", 0);
    for (const char *item = result->message + prefix;; item += 2) {
        size_t n = strcspn(item, ",;");
        if (!add(needs, target, item, n))
            return false;
        item += n;
        if (*item != ',')
            return true;
    }
}

/* ---- order ------------------------------------------------------------------------------- */

static int by_target(const void *a, const void *b) {
    const tc_need *x = a, *y = b;
    int order = strcmp(x->target, y->target);
    return order ? order : strcmp(x->item, y->item);
}

/* Unknown ones last. */
static int by_item(const void *a, const void *b) {
    const tc_need *x = a, *y = b;
    if (!*x->item != !*y->item)
        return *x->item ? -1 : 1;
    int order = strcmp(x->item, y->item);
    return order ? order : strcmp(x->target, y->target);
}

/* The end of the run of needs of one item. */
static size_t end_of(const tc_needs *needs, size_t from) {
    size_t to = from + 1;
    while (to < needs->n && strcmp(needs->at[to].item, needs->at[from].item) == 0)
        to++;
    return to;
}

/* Of one item: how many operators it frees alone, and how many lack it at all. */
typedef struct group {
    size_t from, n_alone, n;
    bool known;
} group;

static int by_use(const void *a, const void *b) {
    const group *x = a, *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->n_alone != y->n_alone)
        return x->n_alone > y->n_alone ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static void sort_groups(tc_needs *needs) {
    group *groups = calloc(needs->n + 1, sizeof *groups);
    tc_need *sorted = malloc((needs->n + 1) * sizeof *sorted);
    size_t n_groups = 0, n = 0;
    for (size_t i = 0, to; groups && sorted && i < needs->n; i = to) {
        to = end_of(needs, i);
        group *g = &groups[n_groups++];
        *g = (group){.from = i, .n = to - i, .known = *needs->at[i].item != '\0'};
        for (size_t k = i; k < to; k++)
            g->n_alone += needs->at[k].n_items == 1;
        needs->n_items += g->known;
    }
    if (n_groups) {
        qsort(groups, n_groups, sizeof *groups, by_use);
        for (size_t g = 0; g < n_groups; g++)
            for (size_t k = 0; k < groups[g].n; k++)
                sorted[n++] = needs->at[groups[g].from + k];
        memcpy(needs->at, sorted, n * sizeof *sorted);
    }
    free(groups);
    free(sorted);
}

void tc_needs_settle(tc_needs *needs) {
    size_t kept = 0;
    needs->n_items = needs->n_targets = 0;
    if (needs->n == 0)
        return;
    qsort(needs->at, needs->n, sizeof *needs->at, by_target);
    for (size_t i = 0; i < needs->n; i++)
        if (kept == 0 || by_target(&needs->at[i], &needs->at[kept - 1]) != 0)
            needs->at[kept++] = needs->at[i];
    needs->n = kept;
    for (size_t i = 0, to; i < kept; i = to) {
        for (to = i + 1; to < kept && strcmp(needs->at[to].target, needs->at[i].target) == 0;)
            to++;
        needs->n_targets++;
        for (size_t k = i; k < to; k++)
            needs->at[k].n_items = to - i;
    }
    qsort(needs->at, kept, sizeof *needs->at, by_item);
    sort_groups(needs);
}

/* ---- words ------------------------------------------------------------------------------- */

/* "copy f32 -> i64", "tensors of bool". */
static const char *spell(const char *item, char out[TC_NEED_ITEM + 16]) {
    char first[TC_NEED_ITEM], second[TC_NEED_ITEM];
    if (sscanf(item, "copy %63s %63s", first, second) == 2)
        snprintf(out, TC_NEED_ITEM + 16, "copy %.24s -> %.24s", first, second);
    else if (sscanf(item, "dtype %63s", first) == 1)
        snprintf(out, TC_NEED_ITEM + 16, "tensors of %s", first);
    else
        snprintf(out, TC_NEED_ITEM + 16, "%s", item);
    return out;
}

/* Words that end at a margin. */
typedef struct margin {
    FILE *out;
    size_t column, indent;
    const char *between;
} margin;

static void put_word(margin *m, const char *word) {
    size_t n = strlen(word);
    if (m->between)
        m->column += (size_t)fprintf(m->out, "%s", m->between);
    if (m->column + n + 1 > WIDTH && m->between)
        m->column = (size_t)fprintf(m->out, "\n%*s", (int)m->indent, "") - 1;
    else if (m->between)
        m->column += (size_t)fprintf(m->out, " ");
    m->column += (size_t)fprintf(m->out, "%s", word);
    m->between = ",";
}

/* The targets of needs [from, to) that lack this alone, or not, as "any (bool f32)", each to `put`. */
static void each_target(const tc_needs *needs, size_t from, size_t to, bool alone,
                        void (*put)(void *user, const char *word), void *user) {
    char word[2 * TC_NEED_FOR] = "";
    size_t name = 0, n = 0; /* of the word: its operator, all of it */
    for (size_t i = from; i <= to; i++) {
        const char *target = i < to ? needs->at[i].target : "";
        if (i < to && (needs->at[i].n_items == 1) != alone)
            continue;
        size_t here = strcspn(target, " ");
        if (n && (here != name || memcmp(word, target, name) != 0 || n + 16 > sizeof word)) {
            snprintf(word + n, sizeof word - n, "%s", n > name ? ")" : "");
            put(user, word);
            n = 0;
        }
        if (i == to)
            break;
        const char *dtype = target[here] ? target + here + 1 : "";
        if (n == 0)
            n = name = (size_t)snprintf(word, sizeof word, "%.*s", (int)here, target);
        if (*dtype)
            n += (size_t)snprintf(word + n, sizeof word - n, "%s%s", n > name ? " " : " (", dtype);
    }
}

static void put_in_margin(void *user, const char *word) {
    put_word(user, word);
}

static void put_targets(const tc_needs *needs, size_t from, size_t to, bool alone,
                        const char *before, FILE *out) {
    bool any = false;
    for (size_t i = from; i < to && !any; i++)
        any = (needs->at[i].n_items == 1) == alone;
    if (!any)
        return;
    margin m = {out, (size_t)fprintf(out, "    %s", before), 8, NULL};
    each_target(needs, from, to, alone, put_in_margin, &m);
    fputc('\n', out);
}

void tc_needs_print(const tc_needs *needs, FILE *out) {
    for (size_t i = 0, to; i < needs->n; i = to) {
        char item[TC_NEED_ITEM + 16];
        to = end_of(needs, i);
        if (!*needs->at[i].item) {
            fputs("for another reason, which `tenon-conform run` tells\n", out);
            put_targets(needs, i, to, true, "", out);
            put_targets(needs, i, to, false, "", out);
            continue;
        }
        fprintf(out, "%s\n", spell(needs->at[i].item, item));
        put_targets(needs, i, to, true, "frees ", out);
        put_targets(needs, i, to, false, "with others ", out);
    }
}

static void put_in_array(void *user, const char *word) {
    json_array_append_new(user, json_string(word));
}

json_t *tc_needs_json(const tc_needs *needs) {
    json_t *made = json_array();
    for (size_t i = 0, to; i < needs->n; i = to) {
        char item[TC_NEED_ITEM + 16];
        json_t *frees = json_array(), *others = json_array();
        to = end_of(needs, i);
        each_target(needs, i, to, true, put_in_array, frees);
        each_target(needs, i, to, false, put_in_array, others);
        json_array_append_new(made,
                              json_pack("{s:s, s:o, s:o}", "item", spell(needs->at[i].item, item),
                                        "frees", frees, "with_others", others));
    }
    return made;
}

char *tc_needs_text(const tc_needs *needs, char out[TC_VERDICT_MESSAGE]) {
    FILE *text = fmemopen(out, TC_VERDICT_MESSAGE, "w");
    if (!text) {
        snprintf(out, TC_VERDICT_MESSAGE, "%zu do not run", needs->n_targets);
        return out;
    }
    fprintf(text, "%zu of operators and dtypes do not run", needs->n_targets);
    size_t n = 0;
    for (size_t i = 0; i < needs->n; i = end_of(needs, i)) {
        char item[TC_NEED_ITEM + 16];
        if (*needs->at[i].item)
            fprintf(text, "%s%s", n++ ? ", " : "; they lack ", spell(needs->at[i].item, item));
    }
    for (size_t i = 0; n == 0 && i < needs->n && i < 12; i++)
        fprintf(text, "%s%s", i ? ", " : ": ", needs->at[i].target);
    fclose(text);
    out[TC_VERDICT_MESSAGE - 1] = '\0';
    return out;
}
