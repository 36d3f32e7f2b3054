/* Random mutations of a case line, for fuzzing. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_MUTATE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_MUTATE_H

#include "plugin-sdk/conformance/worker/data/element.h"
#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/record.h"

/* Changes some parameters of a draft: sizes, ranks, how tensors lie, dtypes, attributes, data, the
 * seed. What comes out need not be a case (tc_draft_line). False where it is larger than a fuzzer
 * has time for. */
bool tc_mutate(tc_draft *d, tc_random *r);

/* The same with sizes, ranks and how tensors lie alone. */
bool tc_mutate_shapes(tc_draft *d, tc_random *r);

/* Makes the size of dimension `dim` (-1: of any) of the shape `at`, wherever it stands, so large that
 * the shape has some `numel` elements, no round number of them. False where it is 1. */
bool tc_mutate_grow(tc_draft *d, int at, int32_t dim, int64_t numel, tc_random *r);

/* Size `from` becomes `to` wherever it stands, and the shapes it stood in dense. */
void tc_mutate_resize(tc_draft *d, int64_t from, int64_t to);

/* Another value of the attribute at `at`, a number or a bool; false where the parameter is none. */
bool tc_mutate_attribute(tc_draft *d, const tc_record *record, int at);
/* Another whole number, which differs only where 32 bits do not reach; false where it is none. */
bool tc_mutate_far_bit(tc_draft *d, const tc_record *record, int at);

/* Any kind of data; but where many steps follow each other, what overflows within them may come out as
 * NaN or infinite: then random numbers alone (`extremes` of a record). */
tc_data tc_mutate_data(const tc_record *record, tc_random *r);

/* How a tensor of these sizes lies: permuted, with gaps, shifted, and where it may be `broadcast` too,
 * each now and then. */
void tc_mutate_place(tc_shape *s, tc_random *r, bool broadcast);

#endif
