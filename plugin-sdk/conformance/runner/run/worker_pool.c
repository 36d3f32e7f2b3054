/* See worker_pool.h. */
#include "plugin-sdk/conformance/runner/run/worker_pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/give_up.h"
#include "plugin-sdk/conformance/runner/run/hang.h"
#include "plugin-sdk/conformance/runner/run/json_record.h"
#include "plugin-sdk/conformance/runner/run/output_file.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/run/worker_program.h"

enum {
    HISTORY = 256,           /* cases that are remembered to have gone before */
    CASES_PER_WORKER = 2000, /* then a fresh one, so that slow leaks do not meet the last cases */
    RERUN_FAILURES = 200,    /* with so many confirmed, more reruns tell nothing new */
    MOST_WORKERS = 256,
};

typedef enum phase { FIRST, RERUN, COMBINED } phase;

/* One worker and the case it is there for. */
typedef struct slot {
    tc_child child;
    unsigned device;
    tc_program program; /* what it was started for */
    bool fresh;
    bool closing; /* its stdin was closed, it is coming to its end */
    double deadline;
    size_t history[HISTORY]; /* what ran in this process, the last at (n_history - 1) % HISTORY */
    size_t n_history;

    bool busy;
    size_t item;
    phase phase;
    tc_verdict first;
    unsigned attempts, n_good;
    size_t before[HISTORY]; /* what went before the first failure */
    size_t n_before;
    size_t n_prefix, at; /* of `before`, the last n_prefix run first; `at` of them have */
} slot;

typedef struct pool {
    const tc_item *items;
    size_t n, next;
    const tc_worker_pool_options *options;
    const tc_worker_pool_events *events;
    slot *slots;
    unsigned n_slots;
    size_t n_confirmed;
    tc_give_up give_up;
    tc_output_file output;
    bool stopped, interrupted;
} pool;

/* What deserves a second look; a worker's own ERROR does not. */
static bool is_bad(const tc_verdict *v) {
    return v->status == TC_FAIL || v->status == TC_CRASH || v->status == TC_TIMEOUT;
}

static void add_to_message(tc_verdict *v, const char *text) {
    size_t n = strlen(v->message);
    snprintf(v->message + n, sizeof v->message - n, "%s%s", n ? "; " : "", text);
}

static void note(pool *p, const slot *s, const char *what, const char *how) {
    char text[2 * TC_MAX_LINE + TC_EXCERPT], printed[TC_EXCERPT];
    const char *last =
        s->n_history ? p->items[s->history[(s->n_history - 1) % HISTORY]].line : "no case";
    tc_output_excerpt(&s->child.printed, printed);
    snprintf(text, sizeof text, "a worker %s: %s; its last case was `%s`%s%s", what, how, last,
             *printed ? "; printed: " : "", printed);
    if (!p->events->note(p->events->context, text))
        p->stopped = true;
}

/* ---- one attempt ------------------------------------------------------------------------- */

static void conclude(pool *p, slot *s, const tc_verdict *v);

static void stop_child(slot *s) {
    tc_child_drain(&s->child);
    tc_child_stop(&s->child);
    s->closing = false;
}

static void retire(slot *s, double patience) {
    tc_child_close_in(&s->child);
    s->closing = true;
    s->deadline = tc_now() + patience;
}

static size_t current(const slot *s) {
    return s->at < s->n_prefix ? s->before[s->n_before - s->n_prefix + s->at] : s->item;
}

static void send(pool *p, slot *s) {
    const tc_item *item = &p->items[current(s)];
    tc_output_clear(&s->child.printed);
    s->deadline = tc_now() + p->options->timeout * tc_schedule_patience(item->line);
    tc_child_send(&s->child, item->line); /* nobody there: the verdict's end shows it */
}

/* Begins an attempt once the slot has the process it needs. */
static void begin(pool *p, slot *s) {
    const tc_schedule *schedule = tc_schedule_get(p->items[s->item].schedule);
    bool fresh = schedule->fresh || s->fresh || s->phase != FIRST ||
                 s->program != schedule->program || s->n_history >= CASES_PER_WORKER;
    if (s->child.pid && fresh && s->n_history) {
        retire(s, p->options->timeout);
        return;
    }
    if (s->child.pid && s->program != schedule->program)
        stop_child(s);
    if (!s->child.pid) {
        char why[TC_MESSAGE];
        s->program = schedule->program;
        s->fresh = schedule->fresh;
        s->n_history = 0;
        if (!tc_worker_start(p->options, &s->child, schedule, "work", s->device, why)) {
            tc_verdict v = {.status = TC_ERROR};
            snprintf(v.message, sizeof v.message, "the worker: %s", why);
            s->phase = FIRST;
            conclude(p, s, &v);
            return;
        }
    }
    send(p, s);
}

static void attempt(pool *p, slot *s, phase next, size_t n_prefix) {
    s->phase = next;
    s->n_prefix = n_prefix;
    s->at = 0;
    begin(p, s);
}

/* The items that are left of a class, which come next, will not run. */
static void give_up(pool *p, unsigned schedule, const char *why) {
    size_t first = p->next;
    while (p->next < p->n && p->items[p->next].schedule == schedule)
        p->next++;
    if (p->next > first && !p->events->given_up(p->events->context, first, p->next - first, why))
        p->stopped = true;
}

static void finish(pool *p, slot *s, tc_verdict *v) {
    const tc_item *item = &p->items[s->item];
    char why[TC_VERDICT_MESSAGE];
    s->busy = false;
    if (is_bad(v))
        p->n_confirmed++;
    if (!p->events->done(p->events->context, s->item, s->device, v))
        p->stopped = true;
    if (!p->stopped && tc_give_up_see(&p->give_up, item->schedule, item->line, v, why))
        give_up(p, item->schedule, why);
}

/* The second look is over: what it found is known of failures of this kind. */
static void learn(pool *p, const slot *s, bool failed) {
    const tc_item *item = &p->items[s->item];
    tc_give_up_again(&p->give_up, item->schedule, item->line, &s->first, failed);
}

static void finish_confirmed(pool *p, slot *s) {
    learn(p, s, true);
    finish(p, s, &s->first);
}

static void finish_flaky(pool *p, slot *s) {
    char text[160];
    learn(p, s, false);
    snprintf(text, sizeof text, "%s at first, then passed %u of %u times in a fresh process",
             tc_status_name(s->first.status), s->n_good, s->attempts);
    s->first.status = TC_FLAKY;
    add_to_message(&s->first, text);
    finish(p, s, &s->first);
}

static void finish_combined(pool *p, slot *s) {
    char text[TC_VERDICT_MESSAGE];
    learn(p, s, true);
    int n =
        snprintf(text, sizeof text,
                 "alone it passes; it does this after %zu case%s in the same process:", s->n_prefix,
                 s->n_prefix == 1 ? "" : "s");
    for (size_t i = 0; i < s->n_prefix && i < 3; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " `%.200s`",
                      p->items[s->before[s->n_before - s->n_prefix + i]].line);
    if (s->n_prefix > 3)
        snprintf(text + n, sizeof text - (size_t)n, " ...");
    add_to_message(&s->first, text);
    finish(p, s, &s->first);
}

static void conclude(pool *p, slot *s, const tc_verdict *v) {
    switch (s->phase) {
    case FIRST:
        s->first = *v;
        if (!is_bad(v) || p->options->reruns == 0 || p->n_confirmed >= RERUN_FAILURES ||
            tc_give_up_knows(&p->give_up, p->items[s->item].schedule, p->items[s->item].line, v)) {
            finish(p, s, &s->first);
            return;
        }
        /* The last of the history is the case itself. */
        s->n_before = s->n_history - 1 < HISTORY - 1 ? s->n_history - 1 : HISTORY - 1;
        for (size_t i = 0; i < s->n_before; i++)
            s->before[i] = s->history[(s->n_history - 1 - s->n_before + i) % HISTORY];
        s->attempts = s->n_good = 0;
        attempt(p, s, RERUN, 0);
        return;
    case RERUN:
        s->attempts++;
        s->n_good += !is_bad(v);
        if (s->attempts < p->options->reruns)
            attempt(p, s, RERUN, 0);
        else if (s->n_good == 0)
            finish_confirmed(p, s);
        else if (s->n_good == s->attempts && s->n_before > 0)
            attempt(p, s, COMBINED, 1);
        else
            finish_flaky(p, s);
        return;
    case COMBINED:
        if (is_bad(v))
            finish_combined(p, s);
        else if (s->n_prefix == s->n_before)
            finish_flaky(p, s);
        else
            attempt(p, s, COMBINED, 2 * s->n_prefix < s->n_before ? 2 * s->n_prefix : s->n_before);
        return;
    }
}

/* The case at hand has an outcome. */
static void outcome(pool *p, slot *s, tc_verdict *v) {
    char excerpt[TC_EXCERPT];
    s->history[s->n_history++ % HISTORY] = current(s);
    if (s->at < s->n_prefix) {
        s->at++;
        if (s->child.pid) {
            send(p, s);
            return;
        }
        memset(v, 0, sizeof *v); /* the way there failed otherwise: nothing was shown */
    } else if (v->status != TC_PASS && v->status != TC_UNSUPPORTED && v->status != TC_TIMEOUT) {
        tc_child_drain(&s->child);
        bool keep =
            s->phase == FIRST && (v->status == TC_CRASH || tc_output_is_long(&s->child.printed));
        tc_output_tell(&p->output, &s->child.printed, p->items[current(s)].line,
                       tc_output_excerpt(&s->child.printed, excerpt), keep, v);
    }
    conclude(p, s, v);
}

/* ---- what workers do --------------------------------------------------------------------- */

static void died(pool *p, slot *s, const char *how) {
    tc_child_drain(&s->child);
    stop_child(s);
    if (!s->busy) {
        note(p, s, "died between cases", how);
        return;
    }
    tc_verdict v = {.status = TC_CRASH};
    snprintf(v.message, sizeof v.message, "the worker was lost: %s", how);
    outcome(p, s, &v);
}

static void nonsense(pool *p, slot *s, const char *what) {
    tc_verdict v = {.status = TC_ERROR};
    char quoted[128];
    size_t n = 0;
    for (; n < sizeof quoted - 1 && s->child.line[n]; n++)
        quoted[n] = s->child.line[n] >= ' ' && s->child.line[n] <= '~' ? s->child.line[n] : '?';
    quoted[n] = '\0';
    snprintf(v.message, sizeof v.message, "%s on the descriptor for verdicts: `%s`", what, quoted);
    stop_child(s);
    if (s->busy)
        outcome(p, s, &v);
    else
        note(p, s, "went wrong between cases", v.message);
}

static void answered(pool *p, slot *s) {
    tc_verdict v;
    char line[TC_MAX_LINE];
    if (!s->busy || s->closing)
        nonsense(p, s, "an answer nobody asked for");
    else if (!tc_verdict_read(s->child.line, &v, line))
        nonsense(p, s, "what is no verdict");
    else if (strcmp(line, p->items[current(s)].line) != 0)
        nonsense(p, s, "a verdict for another case");
    else if (v.status > TC_ERROR)
        nonsense(p, s, "a status that is not a worker's to give");
    else {
        tc_child_drain(&s->child);
        if (!is_bad(&v) && tc_output_is_reported(&s->child.printed)) {
            v.status = TC_FAIL;
            snprintf(v.message, sizeof v.message, "a sanitizer has reported something");
        }
        outcome(p, s, &v);
    }
}

/* A worker that was asked to end has; what comes after needs a new one. */
static void closed(pool *p, slot *s, int status) {
    char words[TC_MESSAGE];
    tc_child_drain(&s->child);
    if (status != 0)
        note(p, s, "ended badly", tc_child_words(status, words));
    stop_child(s);
    if (s->busy && !p->stopped)
        begin(p, s);
}

static void verdicts_closed(pool *p, slot *s) {
    int status;
    char words[TC_MESSAGE];
    for (int i = 0; i < 50; i++) { /* it is on its way out, as a rule */
        if (tc_child_ended(&s->child, &status)) {
            if (s->closing)
                closed(p, s, status);
            else
                died(p, s, tc_child_words(status, words));
            return;
        }
        tc_child_drain(&s->child);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (s->closing) /* finish() may take its time */
        return;
    died(p, s, "it lives, but has closed the descriptor for verdicts; who closed it?");
}

static void look(pool *p, slot *s) {
    int status;
    char words[TC_MESSAGE];
    tc_child_drain(&s->child);
    tc_read got = tc_child_read(&s->child);
    if (got == TC_READ_NOTHING && tc_child_ended(&s->child, &status)) {
        got = tc_child_read(&s->child); /* written between the two looks */
        if (got != TC_READ_LINE) {
            if (s->closing)
                closed(p, s, status);
            else
                died(p, s, tc_child_words(status, words));
            return;
        }
    }
    if (got == TC_READ_LINE)
        answered(p, s);
    else if (got == TC_READ_GARBAGE)
        nonsense(p, s, "garbage");
    else if (got == TC_READ_END)
        verdicts_closed(p, s);
}

static void overdue(pool *p, slot *s) {
    tc_verdict v = {.status = TC_TIMEOUT};
    double limit = p->options->timeout * tc_schedule_patience(p->items[current(s)].line);
    if (s->closing) {
        note(p, s, "did not end", "its stdin was closed, and it was killed");
        stop_child(s);
        if (s->busy && !p->stopped)
            begin(p, s);
        return;
    }
    char excerpt[TC_EXCERPT], stack[TC_HANG] = "";
    tc_child_drain(&s->child);
    tc_output_excerpt(&s->child.printed, excerpt);
    bool first = s->phase == FIRST;
    if (first)
        tc_hang_look(&s->child, stack);
    stop_child(s);
    snprintf(v.message, sizeof v.message, "no answer within %g s, killed; --timeout gives more%s%s",
             limit, *stack ? "; it was in " : "", stack);
    tc_output_tell(&p->output, &s->child.printed, p->items[current(s)].line, excerpt, first, &v);
    outcome(p, s, &v);
}

/* ---- the loop ---------------------------------------------------------------------------- */

static unsigned n_busy(const pool *p) {
    unsigned n = 0;
    for (unsigned i = 0; i < p->n_slots; i++)
        n += p->slots[i].busy;
    return n;
}

static void give(pool *p, slot *s) {
    s->item = p->next++;
    s->busy = true;
    attempt(p, s, FIRST, 0);
}

/* Hands out cases; retires workers that have nothing to do any more. */
static void hand_out(pool *p) {
    bool more = p->next < p->n && !p->stopped;
    bool alone = more && tc_schedule_alone(p->items[p->next].line);
    bool other = false;
    if (p->slots[0].busy && tc_schedule_alone(p->items[p->slots[0].item].line))
        return; /* it is still */
    for (unsigned i = 0; i < p->n_slots; i++) {
        slot *s = &p->slots[i];
        if (!s->busy && s->child.pid && !s->closing && (!more || (alone && i > 0)))
            retire(s, p->options->timeout);
        other |= i > 0 && s->child.pid != 0;
    }
    if (alone) {
        while (!other && !p->slots[0].busy && !p->slots[0].closing && p->next < p->n && !p->stopped)
            give(p, &p->slots[0]);
        return;
    }
    for (unsigned i = 0; i < p->n_slots; i++)
        while (!p->slots[i].busy && !p->slots[i].closing && p->next < p->n && !p->stopped &&
               !tc_schedule_alone(p->items[p->next].line))
            give(p, &p->slots[i]);
}

static bool any_child(const pool *p) {
    for (unsigned i = 0; i < p->n_slots; i++)
        if (p->slots[i].child.pid)
            return true;
    return false;
}

static void take_signals(pool *p) {
    struct signalfd_siginfo info;
    while (read(p->options->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            p->interrupted = true;
}

static void wait_and_look(pool *p, struct pollfd *fds) {
    double soonest = tc_now() + 0.5; /* for the progress line */
    for (unsigned i = 0; i < p->n_slots; i++) {
        slot *s = &p->slots[i];
        bool runs = s->child.pid != 0;
        fds[2 * i] = (struct pollfd){.fd = runs ? s->child.verdicts : -1, .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){.fd = runs ? s->child.output : -1, .events = POLLIN};
        if (runs && (s->busy || s->closing) && s->deadline < soonest)
            soonest = s->deadline;
    }
    fds[2 * p->n_slots] = (struct pollfd){.fd = p->options->signals, .events = POLLIN};
    double wait = (soonest - tc_now()) * 1e3 + 1;
    bool ended = poll(fds, 2 * p->n_slots + 1, wait > 0 ? (int)wait : 0) < 0;
    if (ended && errno != EINTR)
        p->interrupted = true;
    if (ended)
        return;
    bool signalled = fds[2 * p->n_slots].revents != 0;
    if (signalled)
        take_signals(p);
    for (unsigned i = 0; i < p->n_slots && !p->interrupted; i++) {
        slot *s = &p->slots[i];
        if (!s->child.pid)
            continue;
        if (fds[2 * i].revents || signalled)
            look(p, s);
        else if (fds[2 * i + 1].revents)
            tc_child_drain(&s->child);
        if (s->child.pid && (s->busy || s->closing) && tc_now() >= s->deadline)
            overdue(p, s);
    }
}

tc_worker_pool_end tc_worker_pool_run(const tc_item *items, size_t n,
                                      const tc_worker_pool_options *options,
                                      const tc_worker_pool_events *events) {
    pool p = {.items = items,
              .n = n,
              .options = options,
              .events = events,
              .give_up.limit = options->give_up,
              .output.path = options->output};
    p.n_slots = options->jobs < 1 ? 1 : options->jobs > MOST_WORKERS ? MOST_WORKERS : options->jobs;
    p.slots = calloc(p.n_slots, sizeof *p.slots);
    struct pollfd *fds = calloc(2 * p.n_slots + 1, sizeof *fds);
    if (!p.slots || !fds) {
        events->note(events->context, "no memory for the workers; -j takes fewer");
        p.stopped = true;
    } else {
        for (unsigned i = 0; i < p.n_slots; i++) {
            p.slots[i].child.in = p.slots[i].child.verdicts = p.slots[i].child.output = -1;
            p.slots[i].device = options->devices[i % options->n_devices];
        }
        for (;;) {
            hand_out(&p);
            if (p.interrupted || p.stopped || !(n_busy(&p) || any_child(&p)))
                break;
            wait_and_look(&p, fds);
            if (events->tick)
                events->tick(events->context);
        }
        for (unsigned i = 0; i < p.n_slots; i++)
            stop_child(&p.slots[i]);
    }
    tc_output_close(&p.output);
    free(fds);
    free(p.slots);
    return p.interrupted ? TC_WORKER_POOL_INTERRUPTED
           : p.stopped   ? TC_WORKER_POOL_STOPPED
                         : TC_WORKER_POOL_DONE;
}
