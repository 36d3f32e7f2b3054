/* The tensors of attention or of a gradient of it, [B, H, L, N], as offsets and strides have them. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_ATTENTION_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_ATTENTION_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#define ATTENTION_QUERY 0
#define ATTENTION_KEY 1
#define ATTENTION_VALUE 2
#define ATTENTION_MASK 3
#define ATTENTION_LOGSUMEXP 4
#define ATTENTION_GRAD 5
#define ATTENTION_OUTPUT 6 /* as it was; backward alone */
#define ATTENTION_OUT 7    /* what is made */
#define ATTENTION_TENSORS 8

typedef struct attention_params {
    i64 offsets[ATTENTION_TENSORS];
    i64 strides[ATTENTION_TENSORS][4];
    i64 heads, share; /* of query; how many of them have one head of key and value */
    i64 queries, keys;
    i64 per;   /* groups for each head */
    i64 scale; /* a number of type A */
} attention_params;

#endif
