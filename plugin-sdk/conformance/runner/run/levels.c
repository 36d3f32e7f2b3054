/* See levels.h. */
#include "plugin-sdk/conformance/runner/run/levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <tenon/kernels.h>

static const struct {
    const char *name;
    bool small;
} kernels[] = {
#define KERNEL(name, hash, small, kind, schema) {#name, small},
    TN_KERNEL_TABLE(KERNEL)
#undef KERNEL
};

enum { N_KERNELS = sizeof kernels / sizeof *kernels };

const char *tc_level_state_name(tc_level_state state) {
    static const char *const names[] = {"passed", "failed", "not run"};
    return names[state];
}

static void finish(tc_level *level) {
    for (size_t k = 0; k < level->n_demands; k++) {
        tc_pattern_destroy(level->demands[k].pattern);
        tc_pattern_destroy(level->demands[k].fallback);
    }
    free(level->demands);
    free(level->name);
    free(level->title);
}

void tc_levels_finish(tc_levels *levels) {
    while (levels->n)
        finish(&levels->at[--levels->n]);
}

tc_level *tc_levels_find(tc_levels *levels, const char *name) {
    for (unsigned i = 0; i < levels->n; i++)
        if (strcasecmp(levels->at[i].name, name) == 0 || strcasecmp(levels->at[i].title, name) == 0)
            return &levels->at[i];
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

static bool demand(tc_level *level, tc_demand_kind kind, const char *text, char why[TC_MESSAGE]) {
    tc_demand *demands = realloc(level->demands, (level->n_demands + 1) * sizeof *demands);
    if (!demands)
        return tc_why(why, TC_MESSAGE, "no memory");
    level->demands = demands;
    tc_pattern *pattern = tc_pattern_create(text, why);
    if (!pattern)
        return false;
    level->demands[level->n_demands++] = (tc_demand){kind, pattern, NULL, 0};
    return true;
}

/* "operator/?* in f32 i64". */
static bool every(tc_level *level, char *text, char why[TC_MESSAGE]) {
    uint64_t dtypes = 0;
    char *in = strstr(text, " in "), *rest = NULL;
    if (in) {
        *in = '\0';
        for (char *word = strtok_r(in + 4, " \t", &rest); word;
             word = strtok_r(NULL, " \t", &rest)) {
            tn_dtype dtype;
            if (!tc_read_dtype(word, &dtype, why))
                return false;
            dtypes |= TN_DTYPE_BIT(dtype);
        }
    }
    if (!demand(level, TC_EVERY, text, why))
        return false;
    level->demands[level->n_demands - 1].dtypes = dtypes;
    return true;
}

/* Adds a requirement, once for each operator where it names a group of them. */
static bool require(tc_level *level, const char *text, char why[TC_MESSAGE]) {
    const char *at = strchr(text, '@');
    if (!at)
        return demand(level, TC_REQUIRE, text, why);
    size_t n = strcspn(at, " ");
    bool small = n == 6 && memcmp(at, "@small", 6) == 0;
    if (!small && !(n == 4 && memcmp(at, "@all", 4) == 0))
        return tc_why(why, TC_MESSAGE, "%.*s: a group is @small or @all", n > 64 ? 64 : (int)n, at);
    for (size_t i = 0; i < N_KERNELS; i++) {
        char one[TC_MAX_LINE];
        if (small && !kernels[i].small)
            continue;
        snprintf(one, sizeof one, "%.*s%s%s", (int)(at - text), text, kernels[i].name, at + n);
        if (!demand(level, TC_REQUIRE, one, why))
            return false;
        one[strcspn(one, " ")] = '\0';
        if (at[n] && !(level->demands[level->n_demands - 1].fallback = tc_pattern_create(one, why)))
            return false;
    }
    return true;
}

static bool clause(tc_levels *levels, tc_level *level, char *text, char why[TC_MESSAGE]) {
    size_t n = strcspn(text, " \t");
    char *rest = text + n + strspn(text + n, " \t");
    text[n] = '\0';
    if (*rest == '\0')
        return tc_why(why, TC_MESSAGE, "%.64s: something is missing behind it", text);
    if (strcmp(text, "require") == 0)
        return require(level, rest, why);
    if (strcmp(text, "every") == 0)
        return every(level, rest, why);
    if (strcmp(text, "clean") == 0)
        return demand(level, TC_CLEAN, rest, why);
    if (strcmp(text, "version") == 0) {
        char *end;
        level->version = (unsigned)strtoul(rest, &end, 10);
        if (*end == '\0' && level->version > 0)
            return true;
        return tc_why(why, TC_MESSAGE, "version %.64s: a number from 1", rest);
    }
    if (strcmp(text, "set") == 0) {
        if (tc_set_find(rest, &level->set))
            return true;
        return tc_why(why, TC_MESSAGE, "set %.64s: smoke, standard, exhaustive or perf", rest);
    }
    if (strcmp(text, "title") == 0) {
        free(level->title);
        level->title = strdup(rest);
        return level->title || (snprintf(why, TC_MESSAGE, "no memory"), false);
    }
    if (strcmp(text, "includes") == 0) {
        const tc_level *other = tc_levels_find(levels, rest);
        if (other && level->n_includes < TC_MAX_LEVELS) {
            level->includes[level->n_includes++] = (unsigned)(other - levels->at);
            return true;
        }
        return tc_why(why, TC_MESSAGE, "includes %.64s: no level before it has that name", rest);
    }
    return tc_why(why, TC_MESSAGE, "%.64s: version, title, set, includes, require, every or clean",
                  text);
}

bool tc_levels_add(tc_levels *levels, const char *name, const char *text,
                   char why[TC_VERDICT_MESSAGE]) {
    char reason[TC_MESSAGE] = "";
    char *copy = strdup(text);
    tc_level level = {.name = strdup(name), .title = strdup(name), .set = TC_STANDARD};
    bool good = copy && level.name && level.title && levels->n < TC_MAX_LEVELS;
    unsigned number = 0;
    if (!good)
        snprintf(reason, sizeof reason, "no room for another level");
    for (char *line = copy, *next; good && line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t");
        for (size_t n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--)
            line[n - 1] = '\0';
        if (*line)
            good = clause(levels, &level, line, reason);
    }
    if (good && level.version == 0) {
        snprintf(reason, sizeof reason, "it has no version");
        good = false;
    }
    bool asks = level.n_includes > 0; /* nothing asked would be passed by nothing */
    for (size_t i = 0; i < level.n_demands; i++)
        asks |= level.demands[i].kind != TC_CLEAN;
    if (good && !asks) {
        snprintf(reason, sizeof reason, "it requires nothing");
        good = false;
    }
    free(copy);
    if (good) {
        levels->at[levels->n++] = level;
        return true;
    }
    snprintf(why, TC_VERDICT_MESSAGE, "level %s:%u: %s", name, number, reason);
    finish(&level);
    return false;
}

bool tc_levels_builtin(tc_levels *levels, char why[TC_VERDICT_MESSAGE]) {
    for (const tc_level_text *t = tc_level_texts; t->name; t++)
        if (!tc_levels_add(levels, t->name, t->text, why)) {
            tc_levels_finish(levels);
            return false;
        }
    return true;
}

/* ---- judging ----------------------------------------------------------------------------- */

static bool in_set(const tc_pattern *pattern, const tc_selection *selection) {
    for (size_t i = 0; i < selection->n; i++)
        if (selection->at[i].in_set && tc_pattern_finds(pattern, selection->at[i].line))
            return true;
    return false;
}

/* What a demand speaks of in this selection. */
static const tc_pattern *pattern_of(const tc_demand *d, const tc_selection *selection) {
    return d->fallback && !in_set(d->pattern, selection) ? d->fallback : d->pattern;
}

/* The bit of a line's T=; 0 where it has none. */
static uint64_t dtype_of(const char *line) {
    const char *at = strstr(line, " T=");
    char word[16], why[TC_MESSAGE];
    tn_dtype dtype;
    if (!at)
        return 0;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 3, " "), at + 3);
    return tc_read_dtype(word, &dtype, why) ? TN_DTYPE_BIT(dtype) : 0;
}

/* Is it a case of which an `every` speaks, whatever its dtype? */
static bool is_one_of_every(const tc_demand *d, const char *line) {
    return d->kind == TC_EVERY && tc_pattern_finds(d->pattern, line) && !strstr(line, " how=") &&
           !strstr(line, " invalid=");
}

/* Does the demand speak of the line? `pattern` is pattern_of it. */
static bool is_meant(const tc_demand *d, const tc_pattern *pattern, const char *line) {
    return d->kind == TC_EVERY
               ? is_one_of_every(d, line) && (!d->dtypes || (d->dtypes & dtype_of(line)))
               : tc_pattern_finds(pattern, line);
}

static bool is_missing(const tc_demand *d, const tc_result *r) {
    return d->kind == TC_EVERY && r->status != TC_PASS && r->status != TC_WAIVED &&
           is_meant(d, d->pattern, r->line);
}

static bool collect_needs(const tc_demand *d, const tc_log *log, tc_needs *needs) {
    bool good = true;
    for (size_t i = 0; i < log->n_results && good; i++)
        good = !is_missing(d, &log->results[i]) || tc_needs_add(needs, &log->results[i]);
    return good;
}

bool tc_level_has_every(const tc_level *level) {
    for (size_t k = 0; k < level->n_demands; k++)
        if (level->demands[k].kind == TC_EVERY)
            return true;
    return false;
}

bool tc_level_wants(const tc_levels *levels, const tc_level *level, const char *line) {
    for (unsigned i = 0; i < level->n_includes; i++)
        if (tc_level_wants(levels, &levels->at[level->includes[i]], line))
            return true;
    for (size_t k = 0; k < level->n_demands; k++)
        if (level->demands[k].kind == TC_EVERY &&
            is_meant(&level->demands[k], level->demands[k].pattern, line))
            return true;
    return false;
}

bool tc_level_needs(const tc_levels *levels, const tc_level *level, const tc_log *log,
                    tc_needs *needs) {
    bool good = true;
    for (unsigned i = 0; i < level->n_includes && good; i++)
        good = tc_level_needs(levels, &levels->at[level->includes[i]], log, needs);
    for (size_t k = 0; k < level->n_demands && good; k++)
        good = collect_needs(&level->demands[k], log, needs);
    return good;
}

static void explain_missing(const tc_demand *d, const tc_log *log, char why[TC_VERDICT_MESSAGE]) {
    tc_needs needs = {0};
    snprintf(why, TC_VERDICT_MESSAGE, "no memory for what is missing");
    if (collect_needs(d, log, &needs)) {
        tc_needs_settle(&needs);
        tc_needs_text(&needs, why);
    }
    tc_needs_finish(&needs);
}

/* A demand's own state. */
static tc_level_state judge_demand(const tc_demand *d, const tc_selection *selection,
                                   const tc_log *log, char why[TC_VERDICT_MESSAGE]) {
    const tc_pattern *pattern = pattern_of(d, selection);
    size_t n_passed = 0, n_ran = 0;
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        bool accepted = r->status == TC_PASS || r->status == TC_WAIVED;
        if (!is_meant(d, pattern, r->line))
            continue;
        if (d->kind == TC_REQUIRE && accepted)
            return TC_LEVEL_PASSED;
        n_ran++;
        n_passed += accepted;
        if (d->kind == TC_CLEAN && !accepted && r->status != TC_UNSUPPORTED) {
            snprintf(why, TC_VERDICT_MESSAGE, "%s: `%s`", tc_status_name(r->status), r->line);
            return TC_LEVEL_FAILED;
        }
    }
    if (d->kind == TC_EVERY && n_passed < n_ran) {
        explain_missing(d, log, why);
        return TC_LEVEL_FAILED;
    }
    for (size_t i = 0; i < selection->n; i++)
        if (selection->at[i].in_set && !selection->at[i].ran &&
            is_meant(d, pattern, selection->at[i].line)) {
            snprintf(why, TC_VERDICT_MESSAGE, "`%s` did not run", selection->at[i].line);
            return TC_LEVEL_NOT_RUN;
        }
    if (d->kind == TC_CLEAN || (d->kind == TC_EVERY && n_ran > 0))
        return TC_LEVEL_PASSED;
    snprintf(why, TC_VERDICT_MESSAGE,
             n_ran ? "none of the cases of `%.900s` passed" : "nothing ran of `%.900s`",
             pattern->text);
    return n_ran ? TC_LEVEL_FAILED : TC_LEVEL_NOT_RUN;
}

/* All that is required and did not pass stands in one line. */
static void add_required(const tc_demand *d, const tc_selection *selection,
                         char why[TC_VERDICT_MESSAGE]) {
    size_t n = strlen(why);
    snprintf(why + n, TC_VERDICT_MESSAGE - n, "%s`%s`",
             strstr(why, "; nor of ") ? ", " : "; nor of ", pattern_of(d, selection)->text);
}

tc_level_state tc_level_judge(const tc_levels *levels, const tc_level *level, tc_sets sets,
                              const tc_selection *selection, const tc_log *log,
                              char why[TC_VERDICT_MESSAGE]) {
    tc_level_state state = TC_LEVEL_PASSED;
    char reason[TC_VERDICT_MESSAGE];
    *why = '\0';
    /* A failure outweighs what is missing, so all of it is looked at. */
    for (unsigned i = 0; i < level->n_includes && state != TC_LEVEL_FAILED; i++) {
        const tc_level *other = &levels->at[level->includes[i]];
        tc_level_state s = tc_level_judge(levels, other, sets, selection, log, reason);
        if (s != TC_LEVEL_PASSED && state != s) {
            state = s;
            snprintf(why, TC_VERDICT_MESSAGE, "%s: %.900s", other->title, reason);
        }
    }
    tc_demand_kind failed = TC_CLEAN; /* what kind of demand failed first */
    for (size_t i = 0; i < level->n_demands; i++) {
        const tc_demand *d = &level->demands[i];
        if (state == TC_LEVEL_FAILED && (failed != TC_REQUIRE || d->kind != TC_REQUIRE))
            continue;
        tc_level_state s = judge_demand(d, selection, log, reason);
        if (s == TC_LEVEL_FAILED && state == TC_LEVEL_FAILED) {
            add_required(d, selection, why);
        } else if (s == TC_LEVEL_FAILED || (s == TC_LEVEL_NOT_RUN && state == TC_LEVEL_PASSED)) {
            state = s;
            failed = d->kind;
            snprintf(why, TC_VERDICT_MESSAGE, "%s", reason);
        }
    }
    if (state == TC_LEVEL_PASSED && !tc_sets_have(sets, level->set)) {
        snprintf(why, TC_VERDICT_MESSAGE, "it takes --set %s", tc_set_name(level->set));
        return TC_LEVEL_NOT_RUN;
    }
    return state;
}

/* ---- what a level is worth --------------------------------------------------------------- */

static bool speaks_of(const tc_levels *levels, const tc_level *level, const char *line) {
    for (unsigned i = 0; i < level->n_includes; i++)
        if (speaks_of(levels, &levels->at[level->includes[i]], line))
            return true;
    for (size_t k = 0; k < level->n_demands; k++)
        if (is_meant(&level->demands[k], level->demands[k].pattern, line))
            return true;
    return false;
}

size_t tc_level_waived(const tc_levels *levels, const tc_level *level, const tc_log *log) {
    size_t n = 0;
    for (size_t i = 0; i < log->n_results; i++)
        n += log->results[i].status == TC_WAIVED && speaks_of(levels, level, log->results[i].line);
    return n;
}

uint64_t tc_level_dtypes(const tc_level *level) {
    uint64_t dtypes = 0;
    for (size_t k = 0; k < level->n_demands; k++)
        dtypes |= level->demands[k].dtypes;
    return dtypes;
}

uint64_t tc_level_also(const tc_level *level, const tc_selection *selection, const tc_log *log) {
    uint64_t passed = 0, not = 0;
    for (size_t k = 0; k < level->n_demands; k++) {
        const tc_demand *d = &level->demands[k];
        for (size_t i = 0; d->dtypes && i < selection->n; i++)
            if (selection->at[i].in_set && !selection->at[i].ran &&
                is_one_of_every(d, selection->at[i].line))
                not |= dtype_of(selection->at[i].line);
        for (size_t i = 0; d->dtypes && i < log->n_results; i++) {
            const tc_result *r = &log->results[i];
            if (is_one_of_every(d, r->line))
                *(r->status == TC_PASS ? &passed : &not ) |= dtype_of(r->line);
        }
    }
    return passed & ~not &~tc_level_dtypes(level);
}

/* ---- what is asked ----------------------------------------------------------------------- */

tc_sets tc_level_sets(const tc_levels *levels, const tc_level *level) {
    tc_sets sets = TC_SET_BIT(level->set);
    for (unsigned i = 0; i < level->n_includes; i++)
        sets = tc_sets_join(sets, tc_level_sets(levels, &levels->at[level->includes[i]]));
    return sets;
}

void tc_level_ask(const tc_levels *levels, const tc_level *level, tc_selection *selection) {
    for (unsigned i = 0; i < level->n_includes; i++)
        tc_level_ask(levels, &levels->at[level->includes[i]], selection);
    for (size_t k = 0; k < level->n_demands; k++) {
        const tc_demand *d = &level->demands[k];
        const tc_pattern *pattern = pattern_of(d, selection);
        for (size_t i = 0; i < selection->n; i++)
            selection->at[i].asked =
                selection->at[i].asked || is_meant(d, pattern, selection->at[i].line);
    }
}
