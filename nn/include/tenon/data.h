/* tenon/data.h: datasets, and loaders that make batches of them.
 *
 * A dataset is a struct of the program: how many samples there are, what one is made of, and a
 * function that puts one into host memory. A loader reads samples in order or shuffled, in the
 * caller's thread or in threads of its own, puts them together in pinned memory, and copies them to
 * the device on a stream of its own while the last batch is computed with:
 *
 *     tn_dataset set;
 *     tn_dataset_init_idx(&set, (const char *[]){"images.gz", "labels.gz"}, 2);
 *     tn_data_loader *loader = tn_data_loader_create(
 *         &set, &(tn_data_loader_options){.batch_size = 64, .shuffle = true, .n_workers = 2});
 *     for (int step = 0; step < n_steps; step++) {
 *         TN_SCOPE;
 *         tn_data_batch batch;
 *         if (tn_data_loader_next(loader, &batch) != TN_OK)
 *             break;
 *         if (batch.n == 0)
 *             continue;                       // an epoch is over; the next call begins another
 *         train(batch.fields[0], batch.fields[1]);
 *     }
 *     tn_data_loader_destroy(loader);
 *     tn_dataset_finish(&set);
 *
 * What comes in which order, and what a transform draws, follow from the seed, the epoch and the
 * sample's number alone: they are the same for any number of workers, and for a loader that was put
 * back where another one stood.
 *
 * Ownership: a dataset is the program's, and stays, with what its `user` points to, as long as
 * loaders read it. Batches belong to the scope. A loader is destroyed before tn_shutdown.
 *
 * Threads: one at a time uses a loader. Its callbacks run in its workers, several at once, each with
 * a scope and an error of its own; where n_workers is 0, in the thread that asks for a batch. They
 * may call Tenon, but not their own loader (TN_ERR_STATE). Workers run until the loader is
 * destroyed, with all signals blocked.
 *
 * Errors: what a callback says with tn_fail is what the caller gets, when that batch's turn comes,
 * with the sample's number before it. The loader stands before that batch then: it is tried again
 * by the next call, or passed over by tn_data_loader_set_state. So it is with every other error.
 *
 * The layout of the structs may change with the library's soname, 0 until it has settled.
 * In libtenon-nn: cc program.c $(pkg-config --cflags --libs tenon-nn)
 */
#ifndef TENON_DATA_H
#define TENON_DATA_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- datasets ---------------------------------------------------------------------------- */

#define TN_DATA_MAX_FIELDS 8
#define TN_DATA_MAX_RANK (TN_MAX_RANK - 1) /* a batch has one dimension more */

/* A part of a sample: an image, a label. */
typedef struct tn_data_field {
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_DATA_MAX_RANK];
} tn_data_field;

/* tn_data_field_of(TN_U8, TN_SHAPE(3, 32, 32)); a shape that is none is told when it is used. */
static inline tn_data_field tn_data_field_of(tn_dtype dtype, tn_ints shape) {
    tn_data_field field = {dtype, -1, {0}};
    if (shape.n < 0 || shape.n > TN_DATA_MAX_RANK || (shape.n > 0 && !shape.data))
        return field;
    field.rank = TN_CAST(int32_t, shape.n);
    for (int32_t i = 0; i < field.rank; i++)
        field.sizes[i] = shape.data[i];
    return field;
}

typedef struct tn_dataset {
    int64_t length; /* samples; less may be set, to use the first ones alone */
    uint32_t n_fields;
    tn_data_field fields[TN_DATA_MAX_FIELDS];
    /* Puts sample `index`, from 0 to length - 1, into out[k], row-major, for each field k. Called
     * from several threads at once. TN_OK, or what tn_fail returned. */
    tn_status (*read)(void *user, int64_t index, void *const *out);
    void (*finish)(void *user); /* NULL: there is nothing to give back */
    void *user;
} tn_dataset;

/* Calls `finish`, and leaves zeros. NULL and zeros: nothing. */
TN_API void tn_dataset_finish(tn_dataset *dataset);

/* Sample i is element i along the first dimension of each of n tensors, whose first sizes are equal.
 * They are read where they are if that is contiguous host memory (changes are seen then), and
 * copied to it otherwise. After an error, here and below, the dataset is zeros. */
TN_API tn_status tn_dataset_init_tensors(tn_dataset *dataset, tn_tensor *const *tensors,
                                         uint64_t n);

/* The same, of n IDX files, plain or compressed (tn_idx_read). */
TN_API tn_status tn_dataset_init_idx(tn_dataset *dataset, const char *const *paths, uint64_t n);

/* Records of one size, one after the other, as the binary CIFAR-10 has them. */
typedef struct tn_data_records {
    uint64_t header_bytes; /* of each file, which are no record */
    uint64_t record_bytes;
    uint32_t n_fields;
    tn_data_field fields[TN_DATA_MAX_FIELDS];
    uint64_t offsets[TN_DATA_MAX_FIELDS]; /* where in a record; multi-byte elements little-endian */
} tn_data_records;

/* Sample i is record i of n files, which are mapped, not read: memory is needed for what is looked at
 * alone. Files without a whole number of records are refused. They must stay as they are: one that
 * has become shorter is TN_ERR_IO for the next sample, and one that is cut while it is being read
 * can end the process with SIGBUS, as any mapped file. */
TN_API tn_status tn_dataset_init_records(tn_dataset *dataset, const char *const *paths, uint64_t n,
                                         const tn_data_records *records);

/* ---- random numbers of a sample ---------------------------------------------------------- */

/* As Tenon's own, numbers by counting (Philox 4x32-10: Salmon et al., 2011): those of one sample in
 * one epoch under one seed are the same wherever and whenever they are drawn. */
typedef struct tn_data_random {
    uint64_t seed;
    int64_t epoch, index;
    uint64_t n_drawn;
} tn_data_random;

static inline tn_data_random tn_data_random_of(uint64_t seed, int64_t epoch, int64_t index) {
    tn_data_random random = {seed, epoch, index, 0};
    return random;
}
/* 64 random bits. 0 of NULL, here and below. */
TN_API uint64_t tn_data_random_bits(tn_data_random *random);
/* From 0 to n - 1, each as likely; 0 where n is less than 2. */
TN_API int64_t tn_data_random_below(tn_data_random *random, int64_t n);
/* From [0, 1), in steps of 2^-53. */
TN_API double tn_data_random_uniform(tn_data_random *random);

/* ---- loaders ----------------------------------------------------------------------------- */

typedef struct tn_data_loader tn_data_loader;

/* Makes of a sample (in, as the dataset has it) one of a batch (out): in other fields if the options
 * have some, else in the dataset's. What it needs of chance it draws from `random`, so that it
 * neither depends on the other samples nor on threads. */
typedef tn_status (*tn_data_transform_fn)(void *user, int64_t index, tn_data_random *random,
                                          const void *const *in, void *const *out);

/* What is left out, zero, is the default, in brackets. */
typedef struct tn_data_loader_options {
    int64_t batch_size; /* must be set, at least 1 */
    bool shuffle;       /* [false] a new order for each epoch */
    bool drop_last;     /* [false] no batch that is smaller than the others */
    uint64_t seed;      /* [the device's generator's, of tn_manual_seed] of orders and transforms */
    uint32_t n_workers; /* [0] threads that read ahead; at most 256 */
    uint32_t prefetch;  /* [2 for each worker] batches at most that are read ahead; at most 1024 */
    tn_device device;   /* [the default device] */
    tn_data_transform_fn transform; /* [none] */
    void *user;                     /* the transform's */
    uint32_t n_fields;              /* [the dataset's] that the transform makes */
    tn_data_field fields[TN_DATA_MAX_FIELDS];
} tn_data_loader_options;

/* Begins with the first batch of epoch 0; workers begin to read. Both structs are copied. NULL with
 * an error. */
TN_API tn_data_loader *tn_data_loader_create(const tn_dataset *dataset,
                                             const tn_data_loader_options *options);
/* At any time, but from its own callbacks; waits for those that run. */
TN_API void tn_data_loader_destroy(tn_data_loader *loader);

typedef struct tn_data_batch {
    int64_t n; /* samples; 0: the epoch is over, and there are no tensors */
    uint32_t n_fields;
    tn_tensor *fields[TN_DATA_MAX_FIELDS]; /* [n, ...]; of the scope */
    const int64_t *indices; /* of the samples; the loader's, until the next call with it */
} tn_data_batch;

/* The next batch. Each epoch ends with one of no samples. The calling thread's current stream of the
 * device waits for the copy; for other streams tn_record_stream, as ever. Not while a graph is
 * captured. After an error *out is zeros. */
TN_API tn_status tn_data_loader_next(tn_data_loader *loader, tn_data_batch *out);

/* Samples and batches of an epoch; 0 of NULL. */
TN_API int64_t tn_data_loader_samples(const tn_data_loader *loader);
TN_API int64_t tn_data_loader_batches(const tn_data_loader *loader);

/* Where a loader stands, which is all there is to save; what was read ahead does not count. */
typedef struct tn_data_loader_state {
    uint64_t seed;
    int64_t epoch;    /* from 0 to 2^31 - 1 */
    int64_t position; /* samples of the epoch that were given out */
} tn_data_loader_state;

TN_API tn_status tn_data_loader_get_state(const tn_data_loader *loader, tn_data_loader_state *out);
/* What comes next is what came after the get. The batch size may be another one. */
TN_API tn_status tn_data_loader_set_state(tn_data_loader *loader,
                                          const tn_data_loader_state *state);

#ifdef __cplusplus
}
#endif

#endif /* TENON_DATA_H */
