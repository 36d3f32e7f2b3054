/* The text that is learnt: bytes, on the device. */
#ifndef GPT_CORPUS_H
#define GPT_CORPUS_H

#include <tenon/tenon.h>

typedef struct corpus {
    tn_tensor *train, *rest; /* i64 [n]: nine tenths, and what is left to test on */
    int64_t n_files;
} corpus;

/* Reads a file, or every .txt and .md file of a folder in the order of their names. Says what is wrong
 * on stderr, and is false. corpus_drop afterwards in any case. */
bool corpus_load(corpus *t, const char *path, tn_device device);
void corpus_drop(corpus *t);

/* n pieces of the text: tokens [n, length], and those that follow each, [n, length]. Where they are is
 * drawn from `seed` and `step` alone, so that a training that goes on sees what one that never stopped
 * does. */
tn_status corpus_batch(tn_tensor *bytes, uint64_t seed, int64_t step, int64_t n, int64_t length,
                       tn_tensor **out_tokens, tn_tensor **out_next);

/* Random numbers by counting: Steele and others, "Fast splittable pseudorandom number generators"
 * (OOPSLA 2014), the finalizer of SplitMix64. */
uint64_t counted_random(uint64_t seed, uint64_t i);

#endif
