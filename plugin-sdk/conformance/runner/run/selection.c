/* See selection.h. */
#include "plugin-sdk/conformance/runner/run/selection.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"

void tc_selection_finish(tc_selection *selection) {
    for (size_t i = 0; i < selection->n; i++)
        free(selection->at[i].line);
    free(selection->at);
    *selection = (tc_selection){0};
}

bool tc_selection_add(tc_selection *selection, const char *line, bool in_set,
                      char why[TC_VERDICT_MESSAGE]) {
    tc_case c;
    char text[TC_MAX_LINE], reason[TC_MESSAGE];
    if (!tc_case_parse(line, &c, reason))
        return tc_why(why, TC_VERDICT_MESSAGE, "`%.500s` is no case: %s", line, reason);
    if (selection->n == selection->room) {
        size_t room = selection->room ? 2 * selection->room : 1024;
        tc_candidate *at = realloc(selection->at, room * sizeof *at);
        if (!at)
            return tc_why(why, TC_VERDICT_MESSAGE, "no memory for %zu lines", room);
        selection->at = at;
        selection->room = room;
    }
    tc_candidate *p = &selection->at[selection->n];
    *p = (tc_candidate){
        .line = strdup(tc_case_line(&c, text)), .in_set = in_set, .order = selection->n};
    if (!p->line)
        return tc_why(why, TC_VERDICT_MESSAGE, "no memory for a line");
    p->schedule = tc_schedule_of(p->line);
    selection->n++;
    return true;
}

/* ---- where lines come from --------------------------------------------------------------- */

typedef struct collector {
    tc_sink sink;
    tc_selection *selection;
    char *why;
    bool good;
} collector;

static void collect(tc_sink *sink, const char *line) {
    collector *c = (collector *)sink;
    c->good = c->good && tc_selection_add(c->selection, line, true, c->why);
}

static bool add_stream(tc_selection *selection, FILE *file, bool in_set, const char *name,
                       char why[TC_VERDICT_MESSAGE]) {
    char *line = NULL, reason[TC_VERDICT_MESSAGE];
    size_t room = 0;
    bool good = true;
    for (unsigned number = 1; good && getline(&line, &room, file) >= 0; number++) {
        line[strcspn(line, in_set ? "\n" : "\r\n#")] = '\0';
        if (line[strspn(line, " \t")] == '\0')
            continue;
        good = tc_selection_add(selection, line, in_set, reason);
        if (!good)
            snprintf(why, TC_VERDICT_MESSAGE, "%.300s:%u: %.700s", name, number, reason);
    }
    if (good && ferror(file)) {
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", name, strerror(errno));
        good = false;
    }
    free(line);
    return good;
}

/* Reads what `PROGRAM list` prints. */
bool tc_selection_add_program(tc_selection *selection, tc_set set, const char *program,
                              char why[TC_VERDICT_MESSAGE]) {
    int ends[2], status = 0;
    pid_t pid = 0;
    const char *argv[] = {program, "list", "--set", tc_set_name(set), NULL};
    posix_spawn_file_actions_t files;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s: %s", program, strerror(errno));
    int error = posix_spawn_file_actions_init(&files);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&files, ends[1], 1);
        if (!error)
            error = posix_spawn(&pid, program, &files, NULL, (char *const *)argv, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    close(ends[1]);
    FILE *file = error ? NULL : fdopen(ends[0], "r");
    if (!file) {
        close(ends[0]);
        snprintf(why, TC_VERDICT_MESSAGE, "%s: cannot be started: %s", program,
                 strerror(error ? error : errno));
        if (pid)
            waitpid(pid, NULL, 0);
        return false;
    }
    bool good = add_stream(selection, file, true, program, why);
    fclose(file);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (good && status != 0)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s list: it failed (wait status %d)", program,
                      status);
    return good;
}

static bool add_set(tc_selection *selection, tc_set set, const char *worker,
                    const char *core_worker, char why[TC_VERDICT_MESSAGE]) {
    collector c = {{collect}, selection, why, true};
    if (worker)
        c.good = tc_selection_add_program(selection, set, worker, why);
    else
        tc_suite_list(&tc_builtin_suite, set, &c.sink);
    return c.good && (!core_worker || tc_selection_add_program(selection, set, core_worker, why));
}

bool tc_selection_add_sets(tc_selection *selection, tc_sets sets, const char *worker,
                           const char *core_worker, char why[TC_VERDICT_MESSAGE]) {
    bool good = true;
    for (unsigned i = 0; good && i < TC_N_SETS; i++)
        good = !(sets & TC_SET_BIT(i)) || add_set(selection, (tc_set)i, worker, core_worker, why);
    return good;
}

bool tc_selection_add_file(tc_selection *selection, const char *path,
                           char why[TC_VERDICT_MESSAGE]) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(errno));
    bool good = add_stream(selection, file, false, path, why);
    if (file != stdin)
        fclose(file);
    return good;
}

/* ---- order ------------------------------------------------------------------------------- */

static int by_line(const void *a, const void *b) {
    const tc_candidate *x = a, *y = b;
    int order = strcmp(x->line, y->line);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int by_schedule(const void *a, const void *b) {
    const tc_candidate *x = a, *y = b;
    if (x->schedule != y->schedule)
        return x->schedule < y->schedule ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

void tc_selection_settle(tc_selection *selection) {
    if (selection->n == 0)
        return;
    qsort(selection->at, selection->n, sizeof *selection->at, by_line);
    size_t kept = 1;
    for (size_t i = 1; i < selection->n; i++) {
        tc_candidate *last = &selection->at[kept - 1];
        if (strcmp(last->line, selection->at[i].line) == 0) {
            last->in_set |= selection->at[i].in_set;
            last->selected |= selection->at[i].selected;
            free(selection->at[i].line);
        } else {
            selection->at[kept++] = selection->at[i];
        }
    }
    selection->n = kept;
}

tc_candidate *tc_selection_find(tc_selection *selection, const char *line) {
    size_t low = 0, high = selection->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(selection->at[middle].line, line);
        if (order == 0)
            return &selection->at[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void tc_selection_order(tc_selection *selection) {
    if (selection->n)
        qsort(selection->at, selection->n, sizeof *selection->at, by_schedule);
}
