/* Pictures of 3x32x32: CIFAR-10's, or MNIST's in that shape. */
#ifndef RESNET_DATA_H
#define RESNET_DATA_H

#include <tenon/data.h>
#include <tenon/tenon.h>

enum { SIDE = 32, CHANNELS = 3, PIXELS = CHANNELS * SIDE * SIDE, N_CLASSES = 10 };

typedef struct pictures {
    tn_dataset train, test;
    bool is_cifar;
    bool flips;              /* a picture stays what it is when it is mirrored: digits do not */
    tn_tensor *mean, *scale; /* of bytes, on the device: [3, 1, 1]; 1 / deviation */
} pictures;

/* Of a folder that has data_batch_1.bin and so on of the binary CIFAR-10, or the four IDX files of
 * MNIST (or of what has its form). pictures_finish afterwards in any case. */
tn_status pictures_open(pictures *p, const char *folder, tn_device device);
void pictures_finish(pictures *p);

/* Batches of bytes [n, 3, 32, 32] and labels [n], i64. For training the pictures are shuffled, moved
 * by up to 4 pixels in each direction, and mirrored half of the time where that is good for them. */
tn_data_loader *pictures_train_loader(const pictures *p, int64_t batch, uint64_t seed,
                                      uint32_t n_workers);
/* The first `limit` pictures to test on, as they are. */
tn_data_loader *pictures_test_loader(const pictures *p, int64_t batch, int64_t limit);

/* Bytes as the network wants them, on the device: [n, 3, side, side] of mean 0 and deviation 1. */
tn_tensor *pictures_prepared(const pictures *p, tn_tensor *bytes, int64_t side);

#endif
