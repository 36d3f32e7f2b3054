/* One batch on its way: samples into pinned memory, from there to the device, from there to the
 * caller. At any moment one thread has a slot; loader.c says which. */
#ifndef TNI_NN_DATA_SLOT_H
#define TNI_NN_DATA_SLOT_H

#include "nn/data/data.h"

#include <stdatomic.h>
#include <tenon/device.h>

enum { TNN_MESSAGE_BYTES = 1024 };

/* What all slots of a loader have in common. */
typedef struct tnn_source {
    tn_dataset dataset;
    tn_data_transform_fn transform; /* or NULL */
    void *user;
    uint32_t n_fields; /* of a batch */
    tn_data_field fields[TN_DATA_MAX_FIELDS];
    uint64_t in_bytes[TN_DATA_MAX_FIELDS], out_bytes[TN_DATA_MAX_FIELDS]; /* of a sample */
    uint64_t seed;
    tn_device device;
    tn_stream *stream; /* of the copies */
} tnn_source;

typedef struct tnn_slot {
    int64_t epoch, n;
    int64_t *indices; /* [capacity] */
    void *host[TN_DATA_MAX_FIELDS];
    tn_event *copied;
    bool is_copied;                         /* `host` may still be read until the event */
    bool is_staged;                         /* the tensors are there */
    tn_tensor *tensors[TN_DATA_MAX_FIELDS]; /* kept */
    tn_status status;                       /* of filling it */
    char message[TNN_MESSAGE_BYTES];
} tnn_slot;

/* Room for `capacity` samples. After an error tnn_slot_finish, too. */
tn_status tnn_slot_init(tnn_slot *s, const tnn_source *source, int64_t capacity);
void tnn_slot_finish(tnn_slot *s);

/* Reads the samples s->indices[0 .. n) into host memory, after the copy before was done; what went
 * wrong is in status and message. `scratch` is room for a sample of the dataset. Stops early, at the
 * next sample, where `cancels` is set. */
void tnn_slot_fill(tnn_slot *s, const tnn_source *source, void *const *scratch,
                   const atomic_bool *cancels);
/* Queues the copies to the device, unless that was done. */
tn_status tnn_slot_stage(tnn_slot *s, const tnn_source *source);
/* Hands the tensors to the caller's scope and stream. */
tn_status tnn_slot_give(tnn_slot *s, const tnn_source *source, tn_data_batch *out);
/* Forgets what is staged. */
void tnn_slot_clear(tnn_slot *s);

#endif
