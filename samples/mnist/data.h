/* MNIST on the device: images as they were scanned, batches as the networks want them. */
#ifndef MNIST_DATA_H
#define MNIST_DATA_H

#include <tenon/tenon.h>

enum { IMAGE_SIDE = 28, N_CLASSES = 10 };

/* One of the two sets. Both tensors live on the device; one byte for each pixel. */
typedef struct dataset {
    tn_tensor *images; /* [n, 28, 28] u8 */
    tn_tensor *labels; /* [n] i64 */
    int64_t n;
} dataset;

/* Reads `prefix`-images-idx3-ubyte.gz and its labels from `folder`; keeps the first `limit` images
 * (0: all). */
tn_status dataset_load(dataset *set, const char *folder, const char *prefix, int64_t limit,
                       tn_device device);
void dataset_drop(dataset *set);

/* A new order of the images: [n] i64, from the generator that tn_manual_seed set. */
tn_tensor *dataset_shuffled(const dataset *set);

/* Images order[start .. start + n) as [n, 1, 28, 28] f32 with mean 0 and deviation 1, and their
 * labels. `order` NULL: as they stand in the file. Both belong to the scope. */
void dataset_batch(const dataset *set, tn_tensor *order, int64_t start, int64_t n,
                   tn_tensor **out_images, tn_tensor **out_labels);

#endif
