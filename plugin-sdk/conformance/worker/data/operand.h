/* A tensor of a case, as the host keeps it.
 *
 * Its values are row-major in `values`; its bytes, with whatever lies before, between and behind
 * the elements, are in `image`, which is what the device's allocation is written with. The image
 * has GUARD bytes behind the last element; before the first there is what the offset leaves. All
 * that is no element is filled with a pattern that follows from the seed.
 *
 * Of an image of gigabytes, as far.c has them, only pieces are ever touched, here and on the device: the
 * pages in which elements lie, the first and the last one.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_OPERAND_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_OPERAND_H

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/worker/data/arena.h"
#include "plugin-sdk/conformance/worker/data/element.h"

enum { TC_GUARD = 256 };

typedef struct tc_piece {
    uint64_t at, bytes;
} tc_piece;

typedef struct tc_operand {
    tn_dtype dtype;
    tc_shape shape;
    tc_number *values;    /* [numel], rounded to the dtype */
    unsigned char *image; /* [bytes] */
    uint64_t bytes;       /* of the allocation: extent and guard */
    const tc_piece *pieces;
    uint64_t n_pieces; /* 0: the image is one */
} tc_operand;

/* Room for values and image in the arena; false where there is none. The image gets its pattern;
 * `values` are zero, or, where the caller writes all of them, anything. */
bool tc_operand_create(tc_arena *arena, tn_dtype dtype, const tc_shape *shape, uint64_t seed,
                       bool zero, tc_operand *out);

/* The image alone, with its pattern, of an operand that has dtype and shape. */
bool tc_operand_image(tc_arena *arena, uint64_t seed, tc_operand *o);

/* The pieces of the image, or of its first `bytes` bytes, in order: false behind the last. Starts at i = 0. */
bool tc_operand_piece(const tc_operand *o, uint64_t i, uint64_t bytes, tc_piece *out);

/* Writes the values into the image and reads them back: where elements share a place (a stride of
 * zero) the last one written holds for all, and all are rounded to the dtype. */
void tc_operand_settle(tc_operand *o);

/* Where row-major element i lies, in elements from the allocation's start. */
int64_t tc_place(const tc_shape *s, int64_t i);

/* The places of all elements in row-major order, in runs of equal distances:
 *
 *     for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
 *         for (int64_t k = 0; k < r.n; k++)
 *             element r.first + k lies at r.place + k * r.stride
 */
typedef struct tc_runs {
    const tc_shape *shape;
    int32_t rank;                    /* of what goes from run to run */
    int64_t first, place, n, stride; /* of the present run */
    int64_t index[TC_MAX_RANK];
} tc_runs;
tc_runs tc_runs_start(const tc_shape *s);
void tc_runs_on(tc_runs *r);

/* The elements' bytes in row-major order, taken from an image. */
void tc_gather_elements(const tc_operand *o, const unsigned char *image, void *out);

/* The same bytes, of as many elements, to where another's lie. False where there is no memory. */
bool tc_copy_elements(tc_arena *arena, const tc_operand *from, tc_operand *to);

/* A dense shape of these sizes. */
tc_shape tc_dense(int32_t rank, const int64_t *sizes);
bool tc_same_sizes(const tc_shape *a, const tc_shape *b);
bool tc_is_dense(const tc_shape *s);        /* row-major, whatever the offset */
bool tc_has_zero_stride(const tc_shape *s); /* in a dimension larger than 1 */

#endif
