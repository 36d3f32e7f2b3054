/* Batches on their way; see slot.h. */
#include "nn/data/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

tn_status tnn_slot_init(tnn_slot *s, const tnn_source *source, int64_t capacity) {
    s->indices = calloc((size_t)capacity, sizeof *s->indices);
    if (!s->indices)
        return tn_fail(TN_ERR_OUT_OF_MEMORY,
                       "tn_data_loader_create: no memory for batches of %" PRId64 " samples",
                       capacity);
    s->copied = tn_event_create(source->device, false);
    if (!s->copied)
        return tn_error_status();
    for (uint32_t k = 0; k < source->n_fields; k++) {
        s->host[k] = tn_pinned_alloc(source->device, source->out_bytes[k] * (uint64_t)capacity);
        if (!s->host[k])
            return tn_error_status();
    }
    return TN_OK;
}

void tnn_slot_finish(tnn_slot *s) {
    tnn_slot_clear(s);
    for (int k = 0; k < TN_DATA_MAX_FIELDS; k++)
        tn_pinned_free(s->host[k]);
    tn_event_destroy(s->copied);
    free(s->indices);
}

void tnn_slot_clear(tnn_slot *s) {
    for (int k = 0; k < TN_DATA_MAX_FIELDS; k++) {
        tn_drop(s->tensors[k]);
        s->tensors[k] = NULL;
    }
    s->is_staged = false;
}

/* ---- filling ----------------------------------------------------------------------------- */

/* Keeps what failed; a message that stood before is not of it. */
static void note(tnn_slot *s, tn_status status, bool was_clear, int64_t index) {
    const char *text = was_clear ? tn_error_message() : "";
    char number[64] = "";
    if (status < 0 || status >= TN_STATUS_COUNT) {
        snprintf(number, sizeof number, "the callback returned %d, which is no tn_status", status);
        status = TN_ERR_INTERNAL;
        text = number;
    }
    s->status = status;
    snprintf(s->message, sizeof s->message, "sample %" PRId64 ": %s", index,
             *text ? text : tn_status_text(status));
}

static tn_status fill_sample(const tnn_slot *s, const tnn_source *source, void *const *scratch,
                             int64_t i) {
    TN_SCOPE;
    void *out[TN_DATA_MAX_FIELDS] = {NULL};
    int64_t index = s->indices[i];
    for (uint32_t k = 0; k < source->n_fields; k++)
        out[k] = (char *)s->host[k] + (uint64_t)i * source->out_bytes[k];
    const tn_dataset *d = &source->dataset;
    if (!source->transform)
        return d->read(d->user, index, out);
    tn_status status = d->read(d->user, index, scratch);
    if (status != TN_OK)
        return status;
    tn_data_random random = tn_data_random_of(source->seed, s->epoch, index);
    return source->transform(source->user, index, &random, (const void *const *)scratch, out);
}

void tnn_slot_fill(tnn_slot *s, const tnn_source *source, void *const *scratch,
                   const atomic_bool *cancels) {
    bool was_clear = tn_error_status() == TN_OK;
    s->status = s->is_copied ? tn_event_synchronize(s->copied) : TN_OK;
    s->is_copied = false;
    if (s->status != TN_OK)
        note(s, s->status, was_clear, s->indices[0]);
    for (int64_t i = 0; i < s->n && s->status == TN_OK && !atomic_load(cancels); i++) {
        tn_status status = fill_sample(s, source, scratch, i);
        if (status != TN_OK)
            note(s, status, was_clear, s->indices[i]);
        if (was_clear && tn_error_status() != TN_OK)
            tn_error_clear();
    }
    if (was_clear)
        tn_error_clear();
}

/* ---- to the device, and to the caller ---------------------------------------------------- */

static tn_status copy_fields(tnn_slot *s, const tnn_source *source) {
    TN_SCOPE;
    for (uint32_t k = 0; k < source->n_fields; k++) {
        const tn_data_field *f = &source->fields[k];
        int64_t sizes[TN_MAX_RANK] = {s->n};
        for (int32_t i = 0; i < f->rank; i++)
            sizes[1 + i] = f->sizes[i];
        tn_ints shape = tn_ints_of(sizes, 1 + f->rank);
        s->tensors[k] = tn_keep(tn_from_data(s->host[k], shape, f->dtype, source->device));
        if (!s->tensors[k])
            return tn_error_status();
    }
    return tn_event_record(s->copied, source->stream);
}

tn_status tnn_slot_stage(tnn_slot *s, const tnn_source *source) {
    if (s->is_staged)
        return TN_OK;
    tn_stream *before = tn_stream_keep(tn_current_stream(source->device));
    if (!before)
        return tn_error_status();
    tn_status status = tn_set_current_stream(source->stream);
    if (status == TN_OK) {
        status = copy_fields(s, source);
        tn_status restored = tn_set_current_stream(before);
        status = status == TN_OK ? restored : status;
    }
    tn_stream_drop(before);
    if (status != TN_OK) {
        tnn_slot_clear(s);
        return status;
    }
    s->is_copied = s->is_staged = true;
    return TN_OK;
}

tn_status tnn_slot_give(tnn_slot *s, const tnn_source *source, tn_data_batch *out) {
    tn_stream *now = tn_current_stream(source->device);
    tn_status status = now ? tn_event_wait(s->copied, now) : tn_error_status();
    for (uint32_t k = 0; k < source->n_fields && status == TN_OK; k++)
        status = tn_record_stream(s->tensors[k], now);
    if (status != TN_OK)
        return status;
    for (uint32_t k = 0; k < source->n_fields; k++) {
        out->fields[k] = tn_give(s->tensors[k]);
        s->tensors[k] = NULL; /* also without memory for the scope, which drops it */
        if (out->fields[k])
            continue;
        tnn_slot_clear(s); /* and is staged once more */
        *out = (tn_data_batch){0};
        return tn_error_status();
    }
    out->n = s->n;
    out->n_fields = source->n_fields;
    s->is_staged = false;
    return TN_OK;
}
