/* Reductions: what an operator says of its elements, and the one walk that all of them share.
 *
 * The input's dimensions fall into kept and reduced ones; a plan of each walks them. Outputs are
 * made in groups: one at a time, reading along the reduced dimension ("rows"), or up to TNC_GROUP
 * neighbours at once, adding row after row ("columns"), whichever follows memory. Where there are
 * few outputs the reduced range is cut into chunks, whose states are merged in order. Groups and
 * chunks depend on the shape alone, so results do not depend on the number of threads.
 */
#ifndef TNI_PLUGINS_CPU_REDUCE_H
#define TNI_PLUGINS_CPU_REDUCE_H

#include "plugins/cpu/cpu.h"

/* What is known of a group after some of its elements. */
typedef struct tnc_state {
    int64_t n; /* elements seen by each output */
    void *a;   /* [width] of 8 bytes: the sum, product, largest or mean so far */
    void *b;   /* [width] of 8 bytes: argmax's index, var's sum of squared distances */
} tnc_state;

/* An operator on one computing type. */
typedef struct tnc_reducer {
    /* n more elements, dense, of the one output; the first is element `first` of the range */
    void (*rows)(tnc_state *s, const void *x, int64_t n, int64_t first);
    /* `rows` more elements of each of `width` outputs, at most TNC_GROUP: element first + i of output j is
     * the j-th of the dense row at x + i * stride bytes */
    void (*columns)(tnc_state *s, const void *x, int64_t stride, int64_t rows, int64_t width,
                    int64_t first);
    /* the elements of `from` come after those of `into` */
    void (*merge)(tnc_state *into, const tnc_state *from, int64_t width);
    /* results, dense, of the computing type (i64 for argmax and argmin) */
    void (*finish)(const tnc_state *s, void *out, int64_t width, const tn_cell *attrs);
    bool stored; /* halves are read and written as they are stored */
} tnc_reducer;

enum {
    TNC_LANES = 32, /* partial results of a row: two to eight vectors, to hide latency */
    TNC_GROUP = 256 /* outputs */
};

/* The kernels' run, with the reducer as `user`, and their prepare (reduce.c). */
#define tnc_reduce TNC_ISA(tnc_reduce)
tn_status tnc_reduce(const tn_call *call);
#define tnc_reduce_prepare TNC_ISA(tnc_reduce_prepare)
tn_status tnc_reduce_prepare(const tn_call *call, tn_plan *out);

/* Records: the kernel operator and the name its reducers go by. */
#define TNC_REDUCTION(op, DT, reducer) \
    TNC_KERNEL(op, TN_DTYPE_BIT(TN_##DT), TNC_FLAGS_STRIDED, tnc_reduce, \
               .prepare = tnc_reduce_prepare, .user = (void *)&reducer)
#define TNC_REDUCTION_FLOATS(op, name) \
    TNC_REDUCTION(op, F32, name##_f32), TNC_REDUCTION(op, F64, name##_f64), \
        TNC_REDUCTION(op, F16, name##_f32), TNC_REDUCTION(op, BF16, name##_f32)
#define TNC_REDUCTION_INTS(op, name) \
    TNC_REDUCTION(op, I8, name##_i8), TNC_REDUCTION(op, I16, name##_i16), \
        TNC_REDUCTION(op, I32, name##_i32), TNC_REDUCTION(op, I64, name##_i64), \
        TNC_REDUCTION(op, U8, name##_u8)
#define TNC_REDUCTION_NUMBERS(op, name) TNC_REDUCTION_FLOATS(op, name), TNC_REDUCTION_INTS(op, name)

#endif
