/* See worker_program.h. */
#include "plugin-sdk/conformance/runner/run/worker_program.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/clock.h"

bool tc_worker_start(const tc_worker_pool_options *o, tc_child *child, const tc_schedule *schedule,
                     const char *command, unsigned index, char why[TC_MESSAGE]) {
    const char *program = schedule->program == TC_PROGRAM_CORE    ? o->core_worker
                          : schedule->program == TC_PROGRAM_TORCH ? o->torch_worker
                                                                  : o->worker;
    char device[16];
    snprintf(device, sizeof device, "%u", index);
    if (!program && schedule->program == TC_PROGRAM_TORCH)
        return tc_why(why, TC_MESSAGE,
                      "%s/ needs the program tenon-conform-torch, which was not found; install the "
                      "Python package tenon-torch, or name it: TENON_CONFORM_TORCH=PATH",
                      schedule->class);
    if (!program)
        return tc_why(
            why, TC_MESSAGE,
            "%s/ needs the program tenon-conform-core, which was not found; install Tenon "
            "itself, or name it: --core-worker PATH or TENON_CONFORM_CORE=PATH",
            schedule->class);
    const char *argv[] = {program, command, "--plugin", o->plugin, "--device", device, NULL};
    tc_child_kind kind = {.counts_heap = schedule->heap,
                          .has_company = o->jobs > 1 && !schedule->alone};
    return tc_child_start(child, (char *const *)argv, kind, why);
}

bool tc_worker_describe(const tc_worker_pool_options *options, unsigned device,
                        char out[TC_VERDICT_LINE + 2], char why[TC_VERDICT_MESSAGE]) {
    tc_child child;
    char reason[TC_MESSAGE];
    if (!tc_worker_start(options, &child, tc_schedule_get(TC_UNKNOWN_SCHEDULE), "describe", device,
                         reason))
        return tc_why(why, TC_VERDICT_MESSAGE, "%s", reason);
    double deadline = tc_now() + options->timeout;
    bool found = false, ended = false;
    int status = 0;
    while (!found && !ended && tc_now() < deadline) {
        struct pollfd fds[] = {{.fd = child.verdicts, .events = POLLIN},
                               {.fd = child.output, .events = POLLIN}};
        poll(fds, 2, 50);
        tc_child_drain(&child);
        tc_read got = tc_child_read(&child);
        found = got == TC_READ_LINE;
        ended = got == TC_READ_GARBAGE || (got != TC_READ_LINE && tc_child_ended(&child, &status));
    }
    /* The last words may have been written between the two looks. */
    found = found || tc_child_read(&child) == TC_READ_LINE;
    tc_child_drain(&child);
    if (found) {
        memcpy(out, child.line, strlen(child.line) + 1);
    } else {
        char printed[TC_EXCERPT], words[TC_MESSAGE];
        snprintf(why, TC_VERDICT_MESSAGE, "the worker, asked what the plugin is, %s%s%s",
                 ended ? tc_child_words(status, words) : "did not answer in time",
                 *tc_output_excerpt(&child.printed, printed) ? "; printed: " : "", printed);
    }
    tc_child_stop(&child);
    return found;
}
