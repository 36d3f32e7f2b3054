/* See trial.h. */
#include "plugin-sdk/conformance/runner/shrink/trial.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/json_record.h"
#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/runner/run/kind.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/run/worker_program.h"

void tc_trial_init(tc_trial *t, const tc_worker_pool_options *options, unsigned device) {
    memset(t, 0, sizeof *t);
    t->options = options;
    t->device = device;
    t->child.in = t->child.verdicts = t->child.output = -1;
}

void tc_trial_finish(tc_trial *t) {
    tc_child_stop(&t->child);
    t->n = 0;
}

static bool start(tc_trial *t, const tc_schedule *schedule, tc_verdict *out) {
    char why[TC_MESSAGE];
    if (t->child.pid && (t->program != schedule->program || schedule->fresh))
        tc_trial_finish(t);
    if (t->child.pid)
        return true;
    t->program = schedule->program;
    t->n = 0;
    if (tc_worker_start(t->options, &t->child, schedule, "work", t->device, why))
        return true;
    *out = (tc_verdict){.status = TC_ERROR};
    snprintf(out->message, sizeof out->message, "%s", why);
    return false;
}

static void wait_for(tc_trial *t, double deadline, tc_verdict *out) {
    char line[TC_MAX_LINE], words[TC_MESSAGE];
    int status = 0;
    bool closed = false;
    for (;;) {
        struct pollfd fds[] = {{.fd = closed ? -1 : t->child.verdicts, .events = POLLIN},
                               {.fd = t->child.output, .events = POLLIN}};
        double left = deadline - tc_now();
        if (left <= 0) {
            *out = (tc_verdict){.status = TC_TIMEOUT, .message = "no answer in time"};
            return;
        }
        poll(fds, 2, closed ? 10 : left < 1 ? (int)(left * 1000) + 1 : 1000);
        tc_child_drain(&t->child);
        tc_read got = closed ? TC_READ_END : tc_child_read(&t->child);
        if (got == TC_READ_LINE && tc_verdict_read(t->child.line, out, line))
            return;
        if (got == TC_READ_LINE || got == TC_READ_GARBAGE) {
            *out = (tc_verdict){.status = TC_ERROR, .message = "what came back was no verdict"};
            return;
        }
        closed = got == TC_READ_END;
        if (closed && tc_child_ended(&t->child, &status)) {
            *out = (tc_verdict){.status = TC_CRASH};
            snprintf(out->message, sizeof out->message, "%s", tc_child_words(status, words));
            return;
        }
    }
}

void tc_trial_run(tc_trial *t, const char *line, tc_verdict *out) {
    const tc_schedule *schedule = tc_schedule_get(tc_schedule_of(line));
    if (!start(t, schedule, out))
        return;
    tc_output_clear(&t->child.printed);
    tc_child_send(&t->child, line); /* nobody there: the verdicts' end shows it */
    wait_for(t, tc_now() + t->options->timeout * tc_schedule_patience(line), out);
    t->n++;
    if (tc_trial_failed(out) || out->status == TC_ERROR || schedule->fresh)
        tc_trial_finish(t);
}

void tc_trial_run_alone(tc_trial *t, const char *line, tc_verdict *out) {
    tc_trial_finish(t);
    tc_trial_run(t, line, out);
}

bool tc_trial_failed(const tc_verdict *v) {
    return v->status == TC_FAIL || v->status == TC_CRASH || v->status == TC_TIMEOUT;
}

bool tc_trial_same(const char *line, const tc_verdict *a, const tc_verdict *b) {
    char x[TC_MESSAGE], y[TC_MESSAGE];
    return strcmp(tc_kind(line, a->status, a->requirement, a->message, x),
                  tc_kind(line, b->status, b->requirement, b->message, y)) == 0;
}
