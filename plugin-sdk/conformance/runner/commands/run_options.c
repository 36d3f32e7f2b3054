/* See run_options.h. */
#include "plugin-sdk/conformance/runner/commands/run_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const tc_report_names[TC_N_REPORTS] = {
#define NAME(name) #name,
    TC_REPORTS(NAME)
#undef NAME
};

tc_report *const tc_reports[TC_N_REPORTS] = {
#define FUNCTION(name) tc_report_##name,
    TC_REPORTS(FUNCTION)
#undef FUNCTION
};

static bool usage(const char *problem, const char *word) {
    fprintf(stderr, "tenon-conform run: %s%s\n", problem, word);
    fputs(
        "usage: tenon-conform run PLUGIN.so [OPTION]... ['CASE LINE']...\n"
        "  --device N                index among the plugin's devices (0)\n"
        "  --set SET                 smoke, standard (as a rule), exhaustive or perf; "
        "standard+perf is both\n"
        "  --filter PATTERN          only cases it finds: 'kernel/add T=f32', '/regex/'; "
        "repeatable\n"
        "  --cases FILE              only the lines of this file (-: stdin); repeatable\n"
        "  --lists FILE              skip, xfail and waive entries; repeatable\n"
        "  --level LEVEL             run only what this level asks, of the set that it takes, and "
        "succeed\n"
        "                            only if it passes; repeatable\n"
        "  -j, --jobs N              workers at once (1)\n"
        "  --timeout S               seconds a case may take (60); training takes 20 times that\n"
        "  --reruns N                fresh processes in which a failure is run again (2)\n"
        "  --stop-after-failures N   then stop\n"
        "  --log FILE                write a log; --resume FILE goes on with one\n"
        "  --junit, --tap, --html, --markdown FILE\n"
        "                            reports (-: stdout)\n"
        "  --worker PROGRAM          a worker to use in place of the built-in one\n"
        "  --core-worker PROGRAM     where tenon-conform-core is\n"
        "  --quiet                   the last line and failures only\n",
        stderr);
    return false;
}

static bool number(const char *text, double least, double most, double *out) {
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && *out >= least && *out <= most;
}

static bool whole(const char *text, double least, unsigned *out) {
    double value;
    if (!number(text, least, 1e9, &value) || value != (double)(unsigned)value)
        return false;
    *out = (unsigned)value;
    return true;
}

/* Takes a word into one of the arrays. */
static bool put(const char **words, size_t *n, const char *word) {
    if (*n == TC_MOST_WORDS)
        return usage("too many of one kind; --cases FILE has room for more: ", word);
    words[(*n)++] = word;
    return true;
}

/* An option with its value; *known says whether it is one. */
static bool take(tc_run_options *o, const char *name, const char *value, bool *known) {
    unsigned count;
    *known = true;
    for (size_t i = 0; i < TC_N_REPORTS; i++)
        if (strcmp(name + 2, tc_report_names[i]) == 0) {
            o->reports[i] = value;
            return true;
        }
    if (strcmp(name, "--filter") == 0)
        return put(o->filters, &o->n_filters, value);
    if (strcmp(name, "--cases") == 0)
        return put(o->case_files, &o->n_case_files, value);
    if (strcmp(name, "--lists") == 0)
        return put(o->lists, &o->n_lists, value);
    if (strcmp(name, "--set") == 0)
        return tc_sets_find(value, &o->sets) || usage("no set is named ", value);
    if (strcmp(name, "--timeout") == 0)
        return number(value, 0.01, 1e6, &o->timeout) || usage("--timeout: no seconds: ", value);
    if (strcmp(name, "--device") == 0)
        return whole(value, 0, &o->device) || usage("--device: no index: ", value);
    if (strcmp(name, "--jobs") == 0 || strcmp(name, "-j") == 0)
        return (whole(value, 1, &o->jobs) && o->jobs <= 256) ||
               usage("--jobs: a number from 1 to 256, not ", value);
    if (strcmp(name, "--reruns") == 0)
        return whole(value, 0, &o->reruns) || usage("--reruns: no number: ", value);
    if (strcmp(name, "--stop-after-failures") == 0) {
        bool good = whole(value, 1, &count);
        o->stop_after = good ? count : 0;
        return good || usage("--stop-after-failures: a number from 1, not ", value);
    }
    if (strcmp(name, "--level") == 0)
        return put(o->levels, &o->n_levels, value);
    const struct {
        const char *name, **where;
    } texts[] = {{"--log", &o->log},
                 {"--resume", &o->resume},
                 {"--worker", &o->worker},
                 {"--core-worker", &o->core_worker}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].where = value;
            return true;
        }
    *known = false;
    return false;
}

bool tc_run_options_read(int argc, char **argv, tc_run_options *out) {
    memset(out, 0, sizeof *out);
    out->jobs = 1;
    out->reruns = 2;
    out->timeout = 60;
    const char *plugin = NULL;
    for (int i = 1; i < argc; i++) {
        bool known;
        if (strcmp(argv[i], "--quiet") == 0) {
            out->quiet = true;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            char joined[8] = "-j";
            const char *name = argv[i], *value = argv[i + 1];
            if (name[1] == 'j' && name[2]) { /* -j8 */
                value = name + 2;
                name = joined;
            } else {
                i++;
            }
            if (!value)
                return usage("a value is missing after ", name);
            if (!take(out, name, value, &known))
                return known ? false : usage("no option: ", name);
        } else if (!plugin) {
            plugin = argv[i];
        } else if (!put(out->cases, &out->n_cases, argv[i])) {
            return false;
        }
    }
    if (!plugin)
        return usage("the plugin is missing", "");
    if (!realpath(plugin, out->plugin)) {
        fprintf(stderr, "tenon-conform run: %s: %s\n", plugin, strerror(errno));
        return false;
    }
    if (out->log && out->resume && strcmp(out->log, out->resume) != 0)
        return usage("--resume goes on with its own file; --log is another: ", out->log);
    return true;
}
