/* What tenon-conform can be asked to do; a file for each. `argv[0]` is the verb. They
 * return the exit status: 0 good, 1 not conformant, 2 asked wrongly, 3 could not do its work.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_VERBS_VERBS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_VERBS_VERBS_H

enum { TC_EXIT_GOOD, TC_EXIT_BAD, TC_EXIT_USAGE, TC_EXIT_TROUBLE, TC_EXIT_INTERRUPTED = 130 };

int tc_verb_list(int argc, char **argv);
int tc_verb_run(int argc, char **argv);
int tc_verb_report(int argc, char **argv);
int tc_verb_diff(int argc, char **argv);
int tc_verb_fuzz(int argc, char **argv);
int tc_verb_shrink(int argc, char **argv);

#endif
