/* See stopwatch.h. */
#include "plugin-sdk/conformance/worker/perf/stopwatch.h"

#include "plugin-sdk/conformance/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUNS = 5,
    FEWEST_RUNS = 2,      /* where one takes long */
    MOST_CALLS = 1000000, /* in a row: a queue may have to hold them all */
    WARM_UPS = 12,        /* runs that find the number of calls, at most */
};
static const double run_ns = 20e6, long_ns = 5e8; /* of one run; of all of them */

/* A pair of events with a clock, where the device has them. */
typedef struct clocks {
    const tn_event_ops *ops; /* NULL: there are none */
    tn_event_impl *start, *end;
} clocks;

static void clocks_init(clocks *c, const tc_subject *s) {
    *c = (clocks){0};
    const tn_event_ops *ops = s->stream ? s->ops->events : NULL;
    if (!ops || !TN_HAS(ops, tn_event_ops, elapsed) || !ops->elapsed)
        return;
    if (ops->create(s->device, TN_EVENT_TIMING, &c->start) != TN_OK)
        return;
    if (ops->create(s->device, TN_EVENT_TIMING, &c->end) == TN_OK)
        c->ops = ops;
    else
        ops->destroy(c->start);
}

static void clocks_finish(clocks *c) {
    if (!c->ops)
        return;
    c->ops->destroy(c->start);
    c->ops->destroy(c->end);
}

/* One run of n calls: nanoseconds that the host and the device (0: it has no clock) saw. */
static double run(tc_subject *s, const tc_timed *what, clocks *c, int64_t n, tc_result *result,
                  double *out_device_ns) {
    bool timed = c->ops != NULL;
    *result = (tc_result){.run = TN_OK};
    *out_device_ns = 0;
    tc_host_forget();
    double start = 1e9 * tc_now();
    timed = timed && c->ops->record(c->start, s->stream) == TN_OK;
    for (int64_t i = 0; i < n && result->run == TN_OK; i++)
        result->run = what->call(what->context);
    if (result->run != TN_OK)
        tc_reason(result->run, result->message);
    timed = timed && c->ops->record(c->end, s->stream) == TN_OK;
    result->sync = tc_subject_sync(s);
    double ns = 1e9 * tc_now() - start;
    if (result->run == TN_OK && result->sync != TN_OK)
        tc_reason(result->sync, result->message);
    if (timed && c->ops->elapsed(c->start, c->end, out_device_ns) != TN_OK)
        *out_device_ns = 0;
    return ns;
}

static bool failed(const tc_result *r) {
    return r->run != TN_OK || r->sync != TN_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool tc_time(tc_subject *s, const tc_timed *what, tc_figures *out, tc_verdict *verdict) {
    clocks c;
    tc_result result;
    double ns = 0, total = 0, host[RUNS], device[RUNS];
    int64_t n = 1;
    int runs = 0;
    clocks_init(&c, s);
    for (int i = 0; i < WARM_UPS && ns < run_ns / 2; i++) { /* the first may take long: twice */
        double wanted = i < 2 ? 1 : (double)n * run_ns / (ns > 1 ? ns : 1);
        n = wanted > 10 * (double)n ? 10 * n : wanted > 1 ? (int64_t)wanted : 1;
        n = n > MOST_CALLS ? MOST_CALLS : n;
        ns = run(s, what, &c, n, &result, &device[0]);
        if (failed(&result) || n == MOST_CALLS)
            break;
    }
    for (; runs < RUNS && !(runs >= FEWEST_RUNS && total > long_ns); runs++) {
        if (!what->spoil(what->context, verdict))
            break;
        ns = run(s, what, &c, n, &result, &device[runs]);
        what->check(what->context, &result, verdict);
        if (verdict->status != TC_PASS) {
            size_t at = strlen(verdict->message);
            snprintf(verdict->message + at, sizeof verdict->message - at,
                     "; found after the timed run %d of %d, of %" PRId64 " calls", runs + 1, RUNS,
                     n);
            break;
        }
        total += ns;
        host[runs] = ns / (double)n;
        device[runs] /= (double)n;
    }
    clocks_finish(&c);
    if (verdict->status != TC_PASS || runs == 0)
        return false;
    out->ns = median(host, runs);
    out->device_ns = median(device, runs);
    out->spread = (host[runs - 1] - host[0]) / out->ns;
    return true;
}
