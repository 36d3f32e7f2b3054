/* Files into datasets, pictures into batches. What is random happens on the host, byte by byte, in the
 * loader's workers; floating point begins on the device, so that a quarter of the bytes crosses. */
#include "data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MNIST_SIDE = 28, BORDER = (SIDE - MNIST_SIDE) / 2, MOVES = 4, PATH = 4096, N_FILES = 5 };

/* ---- files ------------------------------------------------------------------------------- */

static tn_status open_cifar(tn_dataset *d, const char *folder, const char *format, int n) {
    char names[N_FILES][PATH];
    const char *paths[N_FILES];
    int n_found = 0;
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, format, i + 1);
        snprintf(names[n_found], PATH, "%s/%s", folder, name);
        paths[n_found] = names[n_found];
        n_found += i == 0 || access(names[n_found], F_OK) == 0;
    }
    tn_data_records r = {.record_bytes = 1 + PIXELS, .n_fields = 2, .offsets = {1, 0}};
    r.fields[0] = tn_data_field_of(TN_U8, TN_SHAPE(CHANNELS, SIDE, SIDE));
    r.fields[1] = tn_data_field_of(TN_U8, TN_SCALAR_SHAPE);
    return tn_dataset_init_records(d, paths, (uint64_t)n_found, &r);
}

static tn_status open_mnist(tn_dataset *d, const char *folder, const char *prefix) {
    char images[PATH], labels[PATH];
    snprintf(images, PATH, "%s/%s-images-idx3-ubyte.gz", folder, prefix);
    snprintf(labels, PATH, "%s/%s-labels-idx1-ubyte.gz", folder, prefix);
    tn_status status = tn_dataset_init_idx(d, (const char *[]){images, labels}, 2);
    const tn_data_field *f = d->fields;
    if (status == TN_OK && (f[0].dtype != TN_U8 || f[0].rank != 2 || f[0].sizes[0] != MNIST_SIDE ||
                            f[0].sizes[1] != MNIST_SIDE || f[1].dtype != TN_U8 || f[1].rank != 0))
        status = tn_fail(TN_ERR_IO, "%s does not have pictures of 28x28 bytes, and labels", folder);
    return status;
}

/* By which channels get a mean of 0 and a deviation of 1; of pixels from 0 to 1. */
static tn_status keep_scales(pictures *p, const double mean[CHANNELS],
                             const double deviation[CHANNELS], tn_device device) {
    TN_SCOPE;
    float means[CHANNELS], scales[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
        means[c] = (float)(255 * mean[c]);
        scales[c] = (float)(1 / (255 * deviation[c]));
    }
    p->mean = tn_keep(tn_from_data(means, TN_SHAPE(CHANNELS, 1, 1), TN_F32, device));
    p->scale = tn_keep(tn_from_data(scales, TN_SHAPE(CHANNELS, 1, 1), TN_F32, device));
    return p->scale ? TN_OK : tn_error_status();
}

tn_status pictures_open(pictures *p, const char *folder, tn_device device) {
    static const double cifar_mean[] = {0.4914, 0.4822, 0.4465},
                        cifar_deviation[] = {0.2470, 0.2435, 0.2616},
                        mnist_mean[] = {0.1001, 0.1001, 0.1001}, /* with their border */
        mnist_deviation[] = {0.2752, 0.2752, 0.2752};
    char path[PATH];
    snprintf(path, PATH, "%s/data_batch_1.bin", folder);
    bool is_cifar = access(path, F_OK) == 0;
    *p = (pictures){.is_cifar = is_cifar, .flips = is_cifar};
    tn_status status = is_cifar ? open_cifar(&p->train, folder, "data_batch_%d.bin", N_FILES)
                                : open_mnist(&p->train, folder, "train");
    if (status == TN_OK)
        status = is_cifar ? open_cifar(&p->test, folder, "test_batch.bin", 1)
                          : open_mnist(&p->test, folder, "t10k");
    if (status == TN_OK)
        status = keep_scales(p, is_cifar ? cifar_mean : mnist_mean,
                             is_cifar ? cifar_deviation : mnist_deviation, device);
    return status;
}

void pictures_finish(pictures *p) {
    tn_dataset_finish(&p->train);
    tn_dataset_finish(&p->test);
    tn_drop(p->mean);
    tn_drop(p->scale);
}

/* ---- transforms: run in the loader's threads --------------------------------------------- */

/* Any picture as [3, 32, 32]: a grey one three times, in the middle. */
static void put_in_shape(const pictures *p, const uint8_t *from, uint8_t *to) {
    if (p->is_cifar) {
        memcpy(to, from, PIXELS);
        return;
    }
    memset(to, 0, PIXELS);
    for (int c = 0; c < CHANNELS; c++)
        for (int y = 0; y < MNIST_SIDE; y++)
            memcpy(to + (c * SIDE + y + BORDER) * SIDE + BORDER, from + y * MNIST_SIDE, MNIST_SIDE);
}

static tn_status put_label(uint8_t label, void *to) {
    if (label >= N_CLASSES)
        return tn_fail(TN_ERR_IO, "a label is %d, and there are classes from 0 to %d", label,
                       N_CLASSES - 1);
    *(int64_t *)to = label;
    return TN_OK;
}

static tn_status as_it_is(void *user, int64_t index, tn_data_random *random, const void *const *in,
                          void *const *out) {
    put_in_shape(user, in[0], out[0]);
    return put_label(*(const uint8_t *)in[1], out[1]);
}

/* A random part of the picture with a black border of MOVES pixels, mirrored or not. */
static tn_status augmented(void *user, int64_t index, tn_data_random *random, const void *const *in,
                           void *const *out) {
    const pictures *p = user;
    uint8_t whole[PIXELS], *to = out[0];
    put_in_shape(p, in[0], whole);
    int down = (int)tn_data_random_below(random, 2 * MOVES + 1) - MOVES;
    int right = (int)tn_data_random_below(random, 2 * MOVES + 1) - MOVES;
    bool mirrors = tn_data_random_below(random, 2) == 1 && p->flips;
    for (int c = 0; c < CHANNELS; c++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                int from_y = y + down, from_x = (mirrors ? SIDE - 1 - x : x) + right;
                bool inside = from_y >= 0 && from_y < SIDE && from_x >= 0 && from_x < SIDE;
                *to++ = inside ? whole[(c * SIDE + from_y) * SIDE + from_x] : 0;
            }
    return put_label(*(const uint8_t *)in[1], out[1]);
}

/* ---- loaders ----------------------------------------------------------------------------- */

static tn_data_loader_options options_of(const pictures *p, tn_data_transform_fn transform,
                                         int64_t batch) {
    tn_data_loader_options o = {.batch_size = batch,
                                .device = tn_device_of(p->mean),
                                .transform = transform,
                                .user = (void *)p,
                                .n_fields = 2};
    o.fields[0] = tn_data_field_of(TN_U8, TN_SHAPE(CHANNELS, SIDE, SIDE));
    o.fields[1] = tn_data_field_of(TN_I64, TN_SCALAR_SHAPE);
    return o;
}

tn_data_loader *pictures_train_loader(const pictures *p, int64_t batch, uint64_t seed,
                                      uint32_t n_workers) {
    tn_data_loader_options o = options_of(p, augmented, batch);
    o.shuffle = o.drop_last = true;
    o.seed = seed;
    o.n_workers = n_workers;
    return tn_data_loader_create(&p->train, &o);
}

tn_data_loader *pictures_test_loader(const pictures *p, int64_t batch, int64_t limit) {
    tn_data_loader_options o = options_of(p, as_it_is, batch);
    tn_dataset first = p->test;
    first.length = limit < first.length ? limit : first.length;
    return tn_data_loader_create(&first, &o);
}

tn_tensor *pictures_prepared(const pictures *p, tn_tensor *bytes, int64_t side) {
    tn_tensor *x = tn_mul(tn_sub(tn_to_dtype(bytes, TN_F32), p->mean), p->scale);
    return side == SIDE ? x : tn_upsample_bilinear2d(x, TN_SHAPE(side, side), false);
}
