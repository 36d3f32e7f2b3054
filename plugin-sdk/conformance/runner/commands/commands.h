/* What tenon-conform can be asked to do; a file for each. `argv[0]` is the program's name and the
 * command's, and --help is answered by each. They return the exit status. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_COMMANDS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_COMMANDS_H

enum {
    TC_EXIT_GOOD,
    TC_EXIT_BAD,     /* something is not as it should be */
    TC_EXIT_USAGE,   /* asked wrongly */
    TC_EXIT_TROUBLE, /* could not do its work */
    TC_EXIT_NOTHING, /* no case is what was asked for */
    TC_EXIT_INTERRUPTED = 130
};

int tc_command_list(int argc, char **argv);
int tc_command_needs(int argc, char **argv);
int tc_command_run(int argc, char **argv);
int tc_command_report(int argc, char **argv);
int tc_command_diff(int argc, char **argv);
int tc_command_trend(int argc, char **argv);
int tc_command_fuzz(int argc, char **argv);
int tc_command_shrink(int argc, char **argv);

#endif
