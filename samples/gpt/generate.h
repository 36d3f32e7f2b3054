/* Text from the model, a token at a time. */
#ifndef GPT_GENERATE_H
#define GPT_GENERATE_H

#include "model.h"

typedef struct generate_options {
    int64_t n;          /* tokens to add */
    double temperature; /* 0: the likeliest always; 1: as the model says */
    int64_t top_k;      /* only among so many likeliest; 0: among all */
    uint64_t seed;
} generate_options;

/* Goes on from n_prompt tokens (at least 1), and gives each new one to `put`. What does not fit into
 * the context is forgotten from the front, half of it at a time. */
tn_status generate(const gpt *m, const int64_t *prompt, int64_t n_prompt,
                   const generate_options *options, void (*put)(void *user, int64_t token),
                   void *user);

#endif
