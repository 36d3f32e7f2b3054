/* See groups.h. */
#include "plugin-sdk/conformance/runner/run/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/kind.h"

enum { TALLIES_SHOWN = 4 };

static void destroy(tc_group *group) {
    for (size_t i = 0; i < group->n_tallies; i++)
        free(group->tallies[i].what);
    free(group->tallies);
    free(group);
}

void tc_groups_finish(tc_groups *groups) {
    for (size_t i = 0; i < groups->n; i++)
        destroy(groups->at[i]);
    free(groups->at);
    *groups = (tc_groups){0};
}

/* Class and subject, and the dtypes that tell its cases apart. */
static char *what_of(const char *line, char out[TC_MAX_LINE]) {
    size_t n = strcspn(line, " ");
    snprintf(out, TC_MAX_LINE, "%.*s", (int)n, line);
    for (const char *word = strchr(line, ' '); word; word = strchr(word + 1, ' ')) {
        size_t length = strcspn(word + 1, " ");
        if (word[1] && word[2] == '=' && (word[1] == 'T' || word[1] == 'S') &&
            n + length + 1 < TC_MAX_LINE)
            n += (size_t)snprintf(out + n, TC_MAX_LINE - n, " %.*s", (int)length, word + 1);
    }
    return out;
}

/* Equal lines come one after another, as a rule. */
static bool count(tc_group *group, const char *what) {
    for (size_t i = group->n_tallies; i-- > 0;)
        if (strcmp(group->tallies[i].what, what) == 0) {
            group->tallies[i].n++;
            return true;
        }
    tc_tally *tallies = realloc(group->tallies, (group->n_tallies + 1) * sizeof *tallies);
    if (!tallies)
        return false;
    group->tallies = tallies;
    tallies[group->n_tallies] = (tc_tally){strdup(what), 1};
    return tallies[group->n_tallies].what && ++group->n_tallies;
}

/* Where the key is, or belongs. */
static size_t find(const tc_groups *groups, uint64_t key) {
    size_t low = 0, high = groups->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (groups->at[middle]->key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

tc_group *tc_groups_add(tc_groups *groups, const tc_log *log, size_t index) {
    const tc_result *r = &log->results[index];
    char text[TC_MAX_LINE];
    uint64_t key = tc_hash(tc_kind(r->line, r->status, r->requirement, r->message, text));
    size_t at = find(groups, key);
    if (at == groups->n || groups->at[at]->key != key) {
        tc_group *group = calloc(1, sizeof *group);
        tc_group **all = group ? realloc(groups->at, (groups->n + 1) * sizeof *all) : NULL;
        if (!all) {
            free(group);
            return NULL;
        }
        *group = (tc_group){.key = key, .first = index};
        memmove(all + at + 1, all + at, (groups->n - at) * sizeof *all);
        all[at] = group;
        groups->at = all;
        groups->n++;
    }
    tc_group *group = groups->at[at];
    group->n++;
    return count(group, what_of(r->line, text)) ? group : NULL;
}

static int by_size(const void *a, const void *b) {
    const tc_group *x = *(tc_group *const *)a, *y = *(tc_group *const *)b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n)
                        : (x->first > y->first) - (x->first < y->first);
}

void tc_groups_order(tc_groups *groups) {
    if (groups->n)
        qsort(groups->at, groups->n, sizeof *groups->at, by_size);
}

bool tc_groups_make(tc_groups *groups, const tc_log *log, bool (*wanted)(const tc_result *)) {
    *groups = (tc_groups){0};
    for (size_t i = 0; i < log->n_results; i++)
        if (wanted(&log->results[i]) && !tc_groups_add(groups, log, i)) {
            tc_groups_finish(groups);
            return false;
        }
    tc_groups_order(groups);
    return true;
}

static int by_count(const void *a, const void *b) {
    const tc_tally *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->what, y->what);
}

char *tc_group_text(const tc_result *first, char out[TC_GROUP_TEXT]) {
    char requirement[32] = "";
    if (first->requirement)
        snprintf(requirement, sizeof requirement, " TNP-%u", first->requirement);
    const char *printed = strstr(first->message, "; printed");
    int n = printed ? (int)(printed - first->message) : (int)strlen(first->message);
    snprintf(out, TC_GROUP_TEXT, "%s%s: %.*s", tc_status_name(first->status), requirement, n,
             first->message);
    return out;
}

char *tc_group_subjects(tc_group *group, char *out, size_t room) {
    size_t n = 0, rest = 0;
    qsort(group->tallies, group->n_tallies, sizeof *group->tallies, by_count);
    out[0] = '\0';
    for (size_t i = 0; i < group->n_tallies; i++) {
        const tc_tally *t = &group->tallies[i];
        if (i >= TALLIES_SHOWN)
            rest += t->n;
        else if (n < room)
            n +=
                (size_t)snprintf(out + n, room - n, "%s%.160s (%zu)", i ? ", " : "", t->what, t->n);
    }
    if (rest && n < room)
        snprintf(out + n, room - n, " and %zu others (%zu)", group->n_tallies - TALLIES_SHOWN,
                 rest);
    return out;
}
