/* More lines of an operator from those of its family.
 *
 * The first dense ones are computed once more with an offset of its own for each tensor, and a few in
 * place, where that can be (the pointwise family has such lines of its own). Some are computed with
 * every tensor lying in a way of its own at once, some with dimensions of one element whose strides say
 * nothing, and some with one size grown until threads, chunks and tiles are many. Special values are
 * there once more with tensors that lie apart. A dense line and one with strides have all tensors in one
 * allocation, and a few have their inputs in the memory of one of them, each with sizes of its own; in a few the
 * rows of each input overlap. Each scalar attribute is made each end of its dtype, and of f64 what f32 has not. In one dtype there is one with each attribute changed alone, and one with each tensor dense in other orders of its
 * dimensions. And some become random neighbours of themselves: sizes, ranks and strides that nobody
 * thought of. What becomes of a line follows from the line alone, whatever stands around it.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_FORMS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_FORMS_H

#include "plugin-sdk/conformance/worker/kernel/record.h"
#include "plugin-sdk/conformance/worker/suite.h"

typedef struct tc_forms {
    tc_sink sink; /* takes the family's lines */
    tc_sink *to;  /* gets them, and more */
    const tc_record *record;
    tn_dtype dtype;
    bool few;  /* so many as forms.c says; else of every line that has such */
    int grows; /* how many lines are grown in this dtype */
    bool paired, turned;
    int apart, relaid, idle, grown, neighbours, specials, together, within, overlaps, sliding;
    bool extremes;
    int in_place[TC_MAX_ARGS], shared; /* lines; for each argument */
} tc_forms;

/* Forms of the record's lines in one dtype of its first type variable; few in the standard set. */
tc_forms tc_forms_start(const tc_record *record, tn_dtype dtype, tc_set set, tc_sink *to);

#endif
