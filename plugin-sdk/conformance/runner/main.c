/* tenon-conform: what holds of a plugin. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/runner/commands/commands.h"

static int work(int argc, char **argv) {
    return tc_worker_main(argc, argv, &tc_builtin_suite);
}

static const struct {
    const char *name, *full_name;
    int (*run)(int argc, char **argv);
    const char *what; /* NULL: not for people */
} commands[] = {
    {"run", "tenon-conform run", tc_command_run,
     "run cases on a plugin's device: tenon-conform run PLUGIN.so"},
    {"list", "tenon-conform list", tc_command_list, "print the cases of a set"},
    {"needs", "tenon-conform needs", tc_command_needs, "list what a device lacks for a level"},
    {"report", "tenon-conform report", tc_command_report,
     "make JUnit, TAP, HTML or Markdown of a log"},
    {"diff", "tenon-conform diff", tc_command_diff, "show what changed between two logs"},
    {"trend", "tenon-conform trend", tc_command_trend, "show several logs beside each other"},
    {"fuzz", "tenon-conform fuzz", tc_command_fuzz, "make random cases, and keep what they find"},
    {"shrink", "tenon-conform shrink", tc_command_shrink,
     "make a failing case small, and a C file of it"},
    {"describe", "describe", work, NULL},
    {"work", "work", work, NULL},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

int main(int argc, char **argv) {
    argp_err_exit_status = TC_EXIT_USAGE;
    for (int i = 0; argc > 1 && i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            argv[1] = (char *)commands[i].full_name;
            return commands[i].run(argc - 1, argv + 1);
        }
    bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0);
    FILE *out = asked ? stdout : stderr;
    if (argc > 1 && !asked)
        fprintf(out, "tenon-conform: no command: %s\n", argv[1]);
    fputs("usage: tenon-conform COMMAND ...\n", out);
    for (int i = 0; i < N_COMMANDS; i++)
        if (commands[i].what)
            fprintf(out, "    %-8s %s\n", commands[i].name, commands[i].what);
    fputs("tenon-conform COMMAND --help tells its options and exit status; docs/conformance.md has "
          "the rest.\n",
          out);
    return asked ? TC_EXIT_GOOD : TC_EXIT_USAGE;
}
