/* Streams: order, waiting, and the end of one. */
#include "buffers.h"

#include <stdio.h>
#include <string.h>

static bool has_streams(tc_contract *k) {
    if (!k->subject->ops->streams)
        TC_NOT_OFFERED(k, "the device has no streams");
    return k->subject->ops->streams != NULL;
}

/* Long work, then a change, then `destroy`: the change is there. */
static void destroy_finishes(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b;
    tn_pstream *stream;
    if (!has_streams(k) || !tc_work_create(k, s, &work))
        return;
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b)) {
        for (int i = 0; i < 6 && !tc_failed(k) && tc_stream_create(k, s, i - 3, &stream); i++) {
            if (i % 2 == 0)
                tc_work_queue(k, &work, stream);
            memset(b.model, 0x40 + i, b.bytes);
            tc_must(k, 48,
                    s->memory->fill(s->device, stream, b.memory, 0, (uint32_t)(0x40 + i), b.bytes),
                    "fill");
            s->ops->streams->destroy(stream);
            tc_buffer_check(k, &b, s->stream, 54, "what a stream had queued when it was destroyed");
        }
        tc_buffer_destroy(&b);
    }
    tc_work_destroy(&work);
}

/* While work is left, `query` says TN_NOT_READY at once; when it says TN_OK the data is there. One
 * that is late once was held up; one that is each time waits for the work. */
static void query(tc_contract *k) {
    enum { TIMES = 6 };
    int late = 0;
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b;
    tn_pstream *stream;
    if (!has_streams(k) || !tc_work_create(k, s, &work))
        return;
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, 300000, &b) && tc_stream_create(k, s, 0, &stream)) {
        for (int i = 0; i < TIMES && !tc_failed(k); i++) {
            memset(b.model, 0x70 + i, b.bytes);
            tc_work_queue(k, &work, stream);
            tc_must(k, 48,
                    s->memory->fill(s->device, stream, b.memory, 0, (uint32_t)(0x70 + i), b.bytes),
                    "fill");
            const double start = tc_clock();
            tn_status status = s->ops->streams->query(stream);
            late += status != TN_NOT_READY && tc_clock() - start > work.seconds / 4;
            while (status == TN_NOT_READY && tc_clock() < start + 30)
                status = s->ops->streams->query(stream);
            if (!tc_must(k, 55, status, "query of a stream, asked until its work was done,"))
                break;
            /* The other stream waits for nothing. */
            tc_buffer_check(k, &b, s->stream, 55, "what a stream wrote that `query` says is done");
        }
        if (late == TIMES)
            TC_BROKEN(
                k, 55,
                "query of a busy stream waits until its work is done; answer TN_NOT_READY at once");
        s->ops->streams->destroy(stream);
    }
    tc_buffer_destroy(&b);
    tc_work_destroy(&work);
}

static void synchronize(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b;
    tn_pstream *stream;
    if (!has_streams(k) || !tc_work_create(k, s, &work))
        return;
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, 200000, &b) && tc_stream_create(k, s, 0, &stream)) {
        for (int i = 0; i < 4 && !tc_failed(k); i++) {
            memset(b.model, 0x10 + i, b.bytes);
            tc_work_queue(k, &work, stream);
            tc_must(k, 48,
                    s->memory->fill(s->device, stream, b.memory, 0, (uint32_t)(0x10 + i), b.bytes),
                    "fill");
            tc_must(k, 56, s->ops->streams->synchronize(stream), "synchronize");
            if (s->ops->streams->query(stream) != TN_OK)
                TC_BROKEN(k, 55, "query after synchronize is not TN_OK");
            tc_buffer_check(k, &b, s->stream, 56, "what a stream wrote that was synchronized");
        }
        s->ops->streams->destroy(stream);
    }
    tc_buffer_destroy(&b);
    tc_work_destroy(&work);
}

/* Many at once, of all priorities, each with work of its own. */
static void many(tc_contract *k) {
    enum { N = 40 };
    tc_subject *s = k->subject;
    tn_pstream *streams[N] = {0};
    tc_buffer b;
    if (!has_streams(k) || !tc_buffer_create(k, s, TN_SPACE_DEVICE, N * 100, &b))
        return;
    int n = 0;
    while (n < N && tc_stream_create(k, s, n % 21 - 10, &streams[n]))
        n++;
    for (int i = 0; i < n; i++)
        for (int step = 0; step < 5; step++) { /* in order within each */
            memset(b.model + i * 100 + step, i + step, 100 - (size_t)step);
            tc_must(k, 48,
                    s->memory->fill(s->device, streams[i], b.memory, (uint64_t)(i * 100 + step),
                                    (uint32_t)(i + step), (uint64_t)(100 - step)),
                    "fill");
        }
    for (int i = 0; i < n; i++)
        tc_must(k, 56, s->ops->streams->synchronize(streams[i]), "synchronize");
    for (int i = 0; i < n; i++) {
        if (TN_HAS(s->ops->streams, tn_stream_ops, native_handle) && s->ops->streams->native_handle)
            s->ops->streams->native_handle(streams[i]);
        s->ops->streams->destroy(streams[(i * 7) % n]);
    }
    if (!tc_failed(k))
        tc_buffer_check(k, &b, s->stream, 53, "what many streams wrote, each in its order");
    tc_buffer_destroy(&b);
}

const tc_contract_row tc_stream_rows[] = {
    {"stream-destroy-finishes", "", TC_SMOKE, destroy_finishes},
    {"stream-query", "", TC_SMOKE, query},
    {"stream-synchronize", "", TC_SMOKE, synchronize},
    {"stream-many", "", TC_SMOKE, many},
    {0},
};
