/* Models in safetensors files: GPT-2's, and this program's, which hold the optimizer beside it. */
#ifndef GPT_CHECKPOINT_H
#define GPT_CHECKPOINT_H

#include "model.h"

#include <tenon/safetensors.h>

enum { CHECKPOINT_OPTIMIZERS = 2 };

/* An optimizer and which of the model's parameters it has, in its order. */
typedef struct group {
    tn_optimizer *optimizer;
    int64_t n, which[GPT_MAX_PARAMETERS];
} group;

/* Writes the model, and where `groups` is not NULL what training needs to go on after `steps` steps. */
tn_status checkpoint_save(const char *path, const gpt *m, const group *groups, int64_t steps);

/* Makes the model of a file: sizes from the shapes of its tensors; the number of heads from what
 * checkpoint_save wrote, else `n_heads`, or where that is 0 one for 64 numbers as in all of GPT-2's.
 * Names may begin with "transformer.". After an error gpt_finish, too. */
tn_status checkpoint_load(const tn_safetensors *file, gpt *m, int64_t n_heads, tn_device device);

/* Puts back what checkpoint_save wrote of the groups; the steps taken, 0 for a file that has none. */
tn_status checkpoint_load_optimizers(const tn_safetensors *file, const gpt *m, group *groups,
                                     int64_t *out_steps);

#endif
