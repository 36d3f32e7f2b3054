/* Operands of an elementwise call as views of one shape: broadcasting, reordering, coalescing. */
#ifndef TNI_CORE_CALL_OPERANDS_H
#define TNI_CORE_CALL_OPERANDS_H

#include "core/tensor/tensor.h"

enum { TNI_MAX_OPERANDS = 8 };

/* Operand 0 is the output. All have the same rank and sizes; strides are per operand. */
typedef struct tni_operands {
    uint32_t n;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    int64_t strides[TNI_MAX_OPERANDS][TN_MAX_RANK];
    tn_tensor_view views[TNI_MAX_OPERANDS]; /* sizes and strides point above */
} tni_operands;

/* Starts with a shape. */
void tni_operands_init(tni_operands *o, int32_t rank, const int64_t *sizes);
/* Adds a tensor, broadcast to the shape. */
void tni_operands_add(tni_operands *o, const tn_tensor *t);
/* Orders dimensions by the output's strides, drops those of size 1, merges neighbours that every
 * operand walks as one, and sets up the views. The rank is at least 1 afterwards. */
void tni_operands_coalesce(tni_operands *o);
/* After coalescing: is operand i one run without holes? */
static inline bool tni_operand_is_flat(const tni_operands *o, uint32_t i) {
    return o->rank == 1 && (o->strides[i][0] == 1 || o->sizes[0] == 1);
}
static inline bool tni_operand_is_broadcast(const tni_operands *o, uint32_t i) {
    for (int32_t d = 0; d < o->rank; d++)
        if (o->strides[i][d] == 0 && o->sizes[d] > 1)
            return true;
    return false;
}
/* Row-major over the coalesced dimensions? */
bool tni_operand_is_contiguous(const tni_operands *o, uint32_t i);

/* Does some operand extend over 2^31 elements or more? */
bool tni_operands_are_far(const tni_operands *o);
/* Calls fn on the operands, in pieces that do not unless far_ok; the first status that is not TN_OK
 * ends it, and the operands are as before. */
tn_status tni_operands_in_pieces(tni_operands *o, bool far_ok, tn_status (*fn)(void *user),
                                 void *user);

#endif
