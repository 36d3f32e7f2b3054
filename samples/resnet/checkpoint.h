/* Models in safetensors files: torchvision's, and this program's, which hold what training needs to go
 * on beside it. */
#ifndef RESNET_CHECKPOINT_H
#define RESNET_CHECKPOINT_H

#include "model.h"

#include <tenon/data.h>

/* Where a training stands. */
typedef struct training_state {
    tn_optimizer *optimizer; /* of all parameters, in the order of the visit */
    tn_data_loader *loader;
    int64_t step; /* steps taken */
} training_state;

/* Writes the model, and where `state` is not NULL what training goes on from. */
tn_status checkpoint_save(const char *path, resnet *m, const training_state *state);

/* Makes the model of a file: stem, width and classes from the shapes of its tensors. It may have other
 * tensors, and may lack num_batches_tracked, as older files of torchvision do. After an error
 * resnet_finish, too. */
tn_status checkpoint_load(const char *path, resnet *m, tn_device device);

/* Puts back what checkpoint_save wrote of a training; *out_found: there was something. */
tn_status checkpoint_load_training(const char *path, resnet *m, training_state *state,
                                   bool *out_found);

#endif
