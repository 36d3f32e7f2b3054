/* The tensors of attention, or of its gradients, as offsets and strides have them. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_ATTENTION_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_ATTENTION_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#define ATTENTION_OUT 0    /* output, or the gradient of query, or of key */
#define ATTENTION_SECOND 1 /* logsumexp, or the gradient of value */
#define ATTENTION_QUERY 2
#define ATTENTION_KEY 3
#define ATTENTION_VALUE 4
#define ATTENTION_MASK 5
#define ATTENTION_GRAD 6      /* of output */
#define ATTENTION_OUTPUT 7    /* as it was, for `rows` */
#define ATTENTION_LOGSUMEXP 8 /* as it was, for `rows` */
#define ATTENTION_TENSORS 9

/* What is made, a sum of them. */
#define ATTENTION_MAKES_OUTPUT 1
#define ATTENTION_MAKES_QUERY 2
#define ATTENTION_MAKES_KEY 4
#define ATTENTION_MAKES_VALUE 8

#define ATTENTION_GROUP 16  /* a GPU's groups have so many work items along both sides */
#define ATTENTION_OTHERS 64 /* rows of the other side that a CPU looks at at once */

typedef struct attention_params {
    i64 offsets[ATTENTION_TENSORS];
    i64 strides[ATTENTION_TENSORS][4]; /* [B, H, L, N] */
    i64 heads, share;                  /* of query; how many of them have one head of key */
    i64 queries, keys, e, v;           /* L, S, E, V of tenon/kernels.h */
    i64 tiles;                         /* of rows of a head */
    i64 panels;                        /* of columns of what is made, on a GPU */
    i64 n_tasks;                       /* tiles, of all heads */
    i64 causal, masked;
    i64 scale;        /* a number */
    i64 rows, n_rows; /* backward: where logsumexp begins in `work`, and behind so many of
                                these what is subtracted from slopes */
    i64 scratch, per; /* of a CPU: where in `work`, and of each group */
} attention_params;

#endif
