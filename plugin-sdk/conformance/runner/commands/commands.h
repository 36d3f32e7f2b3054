/* What tenon-conform can be asked to do; a file for each. `argv[0]` is the command. They
 * return the exit status: 0 good, 1 not conformant, 2 asked wrongly, 3 could not do its work.
 */
#ifndef TENON_CONFORMANCE_COMMANDS_H
#define TENON_CONFORMANCE_COMMANDS_H

enum { TC_EXIT_GOOD, TC_EXIT_BAD, TC_EXIT_USAGE, TC_EXIT_TROUBLE, TC_EXIT_INTERRUPTED = 130 };

int tc_command_list(int argc, char **argv);
int tc_command_run(int argc, char **argv);
int tc_command_report(int argc, char **argv);
int tc_command_diff(int argc, char **argv);
int tc_command_fuzz(int argc, char **argv);
int tc_command_shrink(int argc, char **argv);

#endif
