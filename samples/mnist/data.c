/* Reads MNIST and hands out batches.
 *
 * The whole set is sent to the device once, as bytes; a batch is picked there by index and turned
 * into floating point there, so no pixel crosses from host to device while training. */
#include "data.h"

#include <stdio.h>

/* Of the 60,000 training images, with pixels from 0 to 1. */
static const double pixel_mean = 0.1307, pixel_deviation = 0.3081;

/* Reads an IDX file, converts it, keeps the first `limit` entries. A reference of the caller's. */
static tn_tensor *read_file(const char *folder, const char *prefix, const char *suffix,
                            tn_dtype dtype, int64_t limit, tn_device device) {
    TN_SCOPE;
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s-%s-ubyte.gz", folder, prefix, suffix);

    tn_tensor *t;
    if (tn_idx_read(path, device, &t) != TN_OK)
        return NULL;
    if (limit > 0 && limit < tn_size(t, 0))
        t = tn_clone(tn_narrow(t, 0, 0, limit));
    return tn_keep(tn_to_dtype(t, dtype));
}

tn_status dataset_load(dataset *set, const char *folder, const char *prefix, int64_t limit,
                       tn_device device) {
    set->images = read_file(folder, prefix, "images-idx3", TN_U8, limit, device);
    set->labels = read_file(folder, prefix, "labels-idx1", TN_I64, limit, device);
    set->n = set->images ? tn_size(set->images, 0) : 0;
    return set->images && set->labels ? TN_OK : tn_error_status();
}

void dataset_drop(dataset *set) {
    tn_drop(set->images);
    tn_drop(set->labels);
}

tn_tensor *dataset_shuffled(const dataset *set) {
    return tn_randperm(set->n, TN_I64, tn_device_of(set->images));
}

static tn_tensor *normalised(tn_tensor *pixels) {
    tn_tensor *x = tn_to_dtype(pixels, TN_F32);
    x = tn_sub_scalar(x, tn_float(255 * pixel_mean));
    x = tn_mul_scalar(x, tn_float(1 / (255 * pixel_deviation)));
    return tn_unsqueeze(x, 1); /* one channel */
}

void dataset_batch(const dataset *set, tn_tensor *order, int64_t start, int64_t n,
                   tn_tensor **out_images, tn_tensor **out_labels) {
    if (start + n > set->n)
        n = set->n - start;
    if (order) {
        tn_tensor *picked = tn_narrow(order, 0, start, n);
        *out_images = normalised(tn_index_select(set->images, 0, picked));
        *out_labels = tn_index_select(set->labels, 0, picked);
    } else {
        *out_images = normalised(tn_narrow(set->images, 0, start, n));
        *out_labels = tn_narrow(set->labels, 0, start, n);
    }
}
