/* See ceilings.h. */
#include "plugin-sdk/conformance/worker/perf/ceilings.h"

#include "plugin-sdk/conformance/worker/perf/call.h"
#include "plugin-sdk/conformance/worker/perf/stopwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- launch: the smallest kernel --------------------------------------------------------- */

static bool measure_launch(tc_subject *s, tn_dtype dtype, tc_figures *out, tc_verdict *verdict) {
    static const char *const lines[] = {
        "perf/fill T=f32 value=1 out=[16]",
        "perf/copy S=f32 D=f32 self=[16]",
        "perf/add T=f32 self=[16] other=[16] alpha=1",
    };
    (void)dtype;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        tc_figures found = {0};
        tc_verdict v = {.status = TC_PASS};
        if (tc_time_line(s, lines[i], &found, &v) && !(out->ns > 0 && out->ns <= found.ns))
            *out = found;
        if (v.status != TC_PASS && v.status != TC_UNSUPPORTED)
            *verdict = v;
    }
    if (verdict->status == TC_PASS && !(out->ns > 0))
        tc_verdict_set(verdict, TC_UNSUPPORTED, TNP_NONE, "no fill, copy or add in f32");
    return verdict->status == TC_PASS;
}

/* ---- copy: as much as no cache holds ----------------------------------------------------- */

typedef struct copying {
    tc_subject *s;
    tn_memory from, to;
    uint64_t bytes;
    unsigned char *host;
} copying;

enum { FROM = 0x3c, SPOILT = 0xc3 };

static bool must(tc_verdict *verdict, tn_status status, const char *what) {
    char reason[TC_MESSAGE];
    if (status != TN_OK && !tc_excuses(verdict, TNP_ALLOC_HANDLE, status, what))
        tc_verdict_set(verdict, TC_FAIL,
                       status == TN_ERR_OUT_OF_MEMORY ? TNP_ALLOC_HANDLE : TNP_TRANSFER_RANGE,
                       "%s: %s", what, tc_reason(status, reason));
    return status == TN_OK;
}

static bool spoil(void *context, tc_verdict *verdict) {
    copying *c = context;
    const tn_memory_ops *m = c->s->memory;
    return must(verdict, m->fill(c->s->device, c->s->stream, c->to, 0, SPOILT, c->bytes), "fill") &&
           must(verdict, tc_subject_sync(c->s), "fill");
}

static tn_status copy(void *context) {
    copying *c = context;
    return c->s->memory->copy(c->s->device, c->s->stream, c->to, 0, c->from, 0, c->bytes);
}

static void check(void *context, tc_result *result, tc_verdict *verdict) {
    copying *c = context;
    if (result->run != TN_OK || result->sync != TN_OK) {
        tc_verdict_set(verdict, TC_FAIL, TNP_TRANSFER_RANGE, "copy: %s", result->message);
        return;
    }
    if (!must(
            verdict,
            c->s->memory->copy_to_host(c->s->device, c->s->stream, c->host, 0, c->to, 0, c->bytes),
            "read"))
        return;
    if (c->host[0] != FROM || memcmp(c->host, c->host + 1, c->bytes - 1) != 0)
        tc_verdict_set(verdict, TC_FAIL, TNP_TRANSFER_RANGE,
                       "copy of %llu bytes: some were not copied", (unsigned long long)c->bytes);
}

static bool measure_copy(tc_subject *s, tn_dtype dtype, tc_figures *out, tc_verdict *verdict) {
    enum { LARGE = 64 << 20, LEAST = 1 << 20 };
    copying c = {.s = s, .bytes = LARGE};
    void *host;
    (void)dtype;
    /* A small device has no room for two of them, or for one. */
    tn_status status = TN_ERR_OUT_OF_MEMORY;
    if (s->max_allocation && c.bytes > s->max_allocation)
        c.bytes = s->max_allocation;
    for (; status != TN_OK && c.bytes >= LEAST; c.bytes /= 2) {
        status = tc_alloc(s, TN_SPACE_DEVICE, c.bytes, &c.from, &host);
        if (status != TN_OK)
            continue;
        status = tc_alloc(s, TN_SPACE_DEVICE, c.bytes, &c.to, &host);
        if (status == TN_OK)
            break;
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, c.from);
    }
    if (!must(verdict, status, "alloc of two buffers"))
        return false;
    tc_timed what = {&c, spoil, copy, check};
    c.host = malloc(c.bytes);
    if (!c.host)
        TC_CASE_ERROR(verdict, "the host has no memory for a buffer");
    bool good =
        c.host &&
        must(verdict, s->memory->fill(s->device, s->stream, c.from, 0, FROM, c.bytes), "fill") &&
        tc_time(s, &what, out, verdict);
    out->bytes = 2 * (double)c.bytes;
    tc_subject_sync(s);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, c.from);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, c.to);
    free(c.host);
    return good;
}

/* ---- multiply: the best of larger and larger products ------------------------------------ */

static bool measure_multiply(tc_subject *s, tn_dtype dtype, tc_figures *out, tc_verdict *verdict) {
    static const double enough_ns = 20e6; /* the next would take eight times as long */
    for (int n = 128; n <= 4096; n *= 2) {
        char line[TC_MAX_LINE];
        tc_figures found = {0};
        snprintf(line, sizeof line, "perf/bmm T=%s self=[1,%d,%d] mat2=[1,%d,%d]",
                 tc_dtype_name(dtype), n, n, n, n);
        if (!tc_time_line(s, line, &found, verdict))
            return false;
        if (!(out->ns > 0) || found.flop / found.ns > out->flop / out->ns)
            *out = found;
        if (found.ns > enough_ns)
            break;
    }
    return true;
}

/* ---- once a process ---------------------------------------------------------------------- */

typedef struct kept {
    bool measured;
    tc_figures figures;
    tc_verdict verdict;
} kept;

static kept launch, copied, multiplied[TN_DTYPE_COUNT];

bool tc_ceiling_measure(tc_subject *s, tc_ceiling ceiling, tn_dtype dtype, tc_figures *out,
                        tc_verdict *verdict) {
    kept *k = ceiling == TC_CEILING_LAUNCH ? &launch
              : ceiling == TC_CEILING_COPY ? &copied
                                           : &multiplied[dtype];
    if (!k->measured) {
        k->measured = true;
        (ceiling == TC_CEILING_LAUNCH ? measure_launch
         : ceiling == TC_CEILING_COPY ? measure_copy
                                      : measure_multiply)(s, dtype, &k->figures, &k->verdict);
    }
    *out = k->figures;
    tc_verdict_set(verdict, k->verdict.status, k->verdict.requirement, "%s", k->verdict.message);
    return k->verdict.status == TC_PASS;
}

void tc_ceiling_compare(tc_subject *s, tn_dtype dtype, tc_figures *f) {
    double least[TC_N_CEILINGS] = {0}; /* the time that each allows */
    for (unsigned i = TC_CEILING_LAUNCH; i < TC_N_CEILINGS; i++) {
        tc_figures c = {0};
        tc_verdict unused = {.status = TC_PASS};
        if ((i == TC_CEILING_MULTIPLY && f->flop == 0) ||
            !tc_ceiling_measure(s, (tc_ceiling)i, dtype, &c, &unused))
            continue;
        least[i] = i == TC_CEILING_LAUNCH ? c.ns
                   : i == TC_CEILING_COPY ? f->bytes * c.ns / c.bytes
                                          : f->flop * c.ns / c.flop;
        if (least[i] > least[f->bound])
            f->bound = (tc_ceiling)i;
    }
    f->share = least[f->bound] / f->ns;
}
