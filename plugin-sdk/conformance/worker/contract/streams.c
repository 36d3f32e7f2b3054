/* Streams: ordering, synchronization, destruction. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <stdio.h>
#include <string.h>

static bool has_streams(tc_contract *k) {
    if (!k->subject->ops->streams)
        TC_NOT_OFFERED(k, "the device has no streams");
    return k->subject->ops->streams != NULL;
}

/* Work (if any) and then a fill of the whole buffer, queued on `stream`. */
static void fill_behind(tc_contract *k, tc_work *work, tc_buffer *b, tn_pstream *stream,
                        int value) {
    tc_subject *s = k->subject;
    if (work)
        tc_work_queue(k, work, stream);
    memset(b->model, value, b->bytes);
    tc_must(k, TNP_FILL_VALUE,
            s->memory->fill(s->device, stream, b->memory, 0, (uint32_t)value, b->bytes), "fill");
}

/* A fill of so much takes longer than a look at what it reaches last. */
enum { LONG_BYTES = 16 << 20, END_BYTES = 64 };

/* The end of what a fill wrote, by way of a stream that waits for nothing. */
static void check_end(tc_contract *k, const tc_buffer *b, tn_requirement requirement,
                      const char *what) {
    tc_subject *s = k->subject;
    uint64_t from = b->bytes - END_BYTES;
    unsigned char now[END_BYTES];
    if (!tc_must(k, TNP_READ_COMPLETE,
                 s->memory->read(s->device, s->stream, now, b->memory, from, END_BYTES), "read"))
        return;
    if (memcmp(now, b->model + from, END_BYTES) != 0)
        TC_BROKEN(k, requirement, "%s: its last byte should be 0x%02x and is 0x%02x", what,
                  b->model[b->bytes - 1], now[END_BYTES - 1]);
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
            fill_behind(k, i % 2 == 0 ? &work : NULL, &b, stream, 0x40 + i);
            s->ops->streams->destroy(stream);
            tc_buffer_check(k, &b, s->stream, TNP_STREAM_DESTROY_FINISHES,
                            "what a stream had queued when it was destroyed");
        }
        tc_buffer_destroy(&b);
    }
    tc_work_destroy(&work);
}

/* While work is left, `query` says TN_NOT_READY at once; when it says TN_OK the data is there. */
static void query(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b;
    tn_pstream *stream;
    if (!has_streams(k) || !tc_work_create(k, s, &work))
        return;
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, LONG_BYTES, &b) &&
        tc_stream_create(k, s, 0, &stream)) {
        for (int i = 0; i < 4 && !tc_failed(k); i++) {
            fill_behind(k, &work, &b, stream, 0x70 + i);
            tn_status status = TN_NOT_READY;
            for (double end = tc_clock() + 30; status == TN_NOT_READY && tc_clock() < end;)
                status = s->ops->streams->query(stream);
            if (!tc_must(k, TNP_STREAM_QUERY, status,
                         "query of a stream, asked until its work was done,"))
                break;
            check_end(k, &b, TNP_STREAM_QUERY, "what a stream wrote that `query` says is done");
        }
        if (!tc_failed(k))
            tc_buffer_check(k, &b, s->stream, TNP_STREAM_QUERY,
                            "what a stream wrote that `query` says is done");
        s->ops->streams->destroy(stream);
    }
    tc_buffer_destroy(&b);
    tc_work_destroy(&work);
}

static tn_status ask_stream(tc_contract *k, void *of) {
    return k->subject->ops->streams->query(of);
}

static void query_at_once(tc_contract *k) {
    tc_work work;
    tn_pstream *stream;
    if (!has_streams(k) || !tc_work_create(k, k->subject, &work))
        return;
    if (tc_stream_create(k, k->subject, 0, &stream)) {
        if (tc_question_waits(k, &work, stream, NULL, ask_stream, stream))
            TC_BROKEN(k, TNP_STREAM_QUERY, "query of a stream always waits until its work is done");
        k->subject->ops->streams->destroy(stream);
    }
    tc_work_destroy(&work);
}

static void synchronize(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b;
    tn_pstream *stream;
    if (!has_streams(k) || !tc_work_create(k, s, &work))
        return;
    if (tc_buffer_create(k, s, TN_SPACE_DEVICE, LONG_BYTES, &b) &&
        tc_stream_create(k, s, 0, &stream)) {
        for (int i = 0; i < 4 && !tc_failed(k); i++) {
            fill_behind(k, &work, &b, stream, 0x10 + i);
            tc_must(k, TNP_STREAM_SYNCHRONIZE, s->ops->streams->synchronize(stream), "synchronize");
            if (s->ops->streams->query(stream) != TN_OK)
                TC_BROKEN(k, TNP_STREAM_QUERY, "query after synchronize is not TN_OK");
            check_end(k, &b, TNP_STREAM_SYNCHRONIZE, "what a stream wrote that was synchronized");
        }
        if (!tc_failed(k))
            tc_buffer_check(k, &b, s->stream, TNP_STREAM_SYNCHRONIZE,
                            "what a stream wrote that was synchronized");
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
            tc_must(k, TNP_FILL_VALUE,
                    s->memory->fill(s->device, streams[i], b.memory,
                                    (uint64_t)i * 100 + (uint64_t)step, (uint32_t)(i + step),
                                    100 - (uint64_t)step),
                    "fill");
        }
    for (int i = 0; i < n; i++)
        tc_must(k, TNP_STREAM_SYNCHRONIZE, s->ops->streams->synchronize(streams[i]), "synchronize");
    for (int i = 0; i < n; i++) {
        if (TN_HAS(s->ops->streams, tn_stream_ops, native_handle) && s->ops->streams->native_handle)
            s->ops->streams->native_handle(streams[i]);
        s->ops->streams->destroy(streams[(i * 7) % n]);
    }
    if (!tc_failed(k))
        tc_buffer_check(k, &b, s->stream, TNP_STREAM_ORDER,
                        "what many streams wrote, each in its order");
    tc_buffer_destroy(&b);
}

const tc_contract_row tc_stream_rows[] = {
    {"stream-destroy-finishes", "", TC_SMOKE, destroy_finishes},
    {"stream-query", "", TC_SMOKE, query},
    {"stream-query-at-once", "", TC_SMOKE, query_at_once},
    {"stream-synchronize", "", TC_SMOKE, synchronize},
    {"stream-many", "", TC_SMOKE, many},
    {0},
};
