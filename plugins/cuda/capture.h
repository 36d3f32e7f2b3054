/* Work that is recorded instead of run. */
#ifndef TNI_PLUGINS_CUDA_CAPTURE_H
#define TNI_PLUGINS_CUDA_CAPTURE_H

#include "plugins/cuda/cuda.h"

#include <tenon/ext/capture.h>

struct cuda_recording {
    atomic_int n_users;
    CUgraph graph;       /* NULL until the capture has ended */
    int32_t *error_word; /* as tn_stream_impl's, of the kernels that were recorded */
    bool may_fail;       /* one of them may set it */

    pthread_mutex_t lock; /* guards what follows, of all its graphs; before a stream's */
    CUevent last;         /* behind the latest launch, and so behind all */
    const tn_stream_impl *last_stream; /* where that was, NULL: there was none */
};

extern const tn_ext_capture cuda_capture;

#endif
