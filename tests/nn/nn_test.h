/* What the tests of libtenon-nn share: a folder for files, and those that are kept in the tree. */
#ifndef TNI_TESTS_NN_NN_TEST_H
#define TNI_TESTS_NN_NN_TEST_H

#include "tests/core/ops_test.h"

#include <tenon/nn.h>

/* Group setup and teardown: the folder, made and removed with all that is in it. */
int make_folder(void **state);
int remove_folder(void **state);

/* The path of a file there, and of one in tests/nn/data; valid until the fourth next call. */
const char *file_path(const char *name);
const char *data_path(const char *name);

#define LINEAR(n_in, n_out) \
    (&(tn_nn_linear_options){.in_features = (n_in), .out_features = (n_out)})
#define EMBEDDING(n, dim) \
    (&(tn_nn_embedding_options){.num_embeddings = (n), .embedding_dim = (dim)})

/* How many files the folder has. */
int n_files(void);
/* A file's bytes (free) and their number. */
char *read_file(const char *path, size_t *out_n);
void write_bytes(const char *path, const void *bytes, size_t n);
/* A safetensors file of this header, its length before it, and n_data bytes 0, 1, 0, 1 ... */
void write_header(const char *path, const char *json, size_t n_data);

#endif
