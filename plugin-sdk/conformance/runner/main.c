/* tenon-conform: what holds of a plugin. */
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/runner/commands/commands.h"

static int work(int argc, char **argv) {
    return tc_worker_main(argc, argv, &tc_builtin_suite);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what; /* NULL: not for people */
} commands[] = {
    {"run", tc_command_run, "run cases on a plugin's device: tenon-conform run PLUGIN.so"},
    {"list", tc_command_list, "print the cases of a set"},
    {"report", tc_command_report, "make JUnit, TAP, HTML or Markdown of a log"},
    {"diff", tc_command_diff, "show what changed between two logs"},
    {"fuzz", tc_command_fuzz, "make random cases, and keep what they find"},
    {"shrink", tc_command_shrink, "make a failing case small, and a C file of it"},
    {"describe", work, NULL},
    {"work", work, NULL},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0);
    FILE *out = asked ? stdout : stderr;
    if (argc > 1 && !asked)
        fprintf(out, "tenon-conform: no command: %s\n", argv[1]);
    fputs("usage: tenon-conform COMMAND ...\n", out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].what)
            fprintf(out, "    %-8s %s\n", commands[i].name, commands[i].what);
    fputs("A command with --help tells its own. docs/conformance.md has the rest.\n", out);
    return asked ? TC_EXIT_GOOD : TC_EXIT_USAGE;
}
