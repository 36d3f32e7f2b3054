/* Checkpoints: what calls inside one would save for backward is computed again instead (Chen et al.,
 * arXiv:1604.06174).
 *
 * While its function runs, saved.c asks here: tensors other than leaves are counted and let go. The
 * first that backward wants runs the function again and collects the same ones in the same order. */
#ifndef TNI_CORE_AUTOGRAD_CHECKPOINT_H
#define TNI_CORE_AUTOGRAD_CHECKPOINT_H

#include "core/autograd/autograd.h"

/* A run of a checkpoint's function in this thread: the first, or one that collects. */
typedef struct tni_checkpoint_run tni_checkpoint_run;
extern TNI_TLS tni_checkpoint_run *tni_checkpoint_running;

/* Of a node recorded in it: lets t go, and notes in `saved` which one it was; *out_taken is false
 * where it is to be saved all the same. */
tn_status tni_checkpoint_save(tni_saved *saved, tn_tensor *t, uint32_t output, bool *out_taken);
/* What was let go, computed again: borrowed, lives while the checkpoint does; and the version it was
 * saved at. NULL with an error. */
tn_tensor *tni_checkpoint_saved(const tni_saved *saved, uint32_t *out_version);
void tni_checkpoint_drop(tni_checkpoint *checkpoint);

#endif
