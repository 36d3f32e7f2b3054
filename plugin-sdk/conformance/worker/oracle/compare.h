/* Compares a kernel's output with the reference's. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_ORACLE_COMPARE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_ORACLE_COMPARE_H

#include "plugin-sdk/conformance/worker/kernel/record.h"

/* Compares the elements of output k, found in `image`, with the call's expectation. An element may
 * be any number of its dtype between value - slack and value + slack, both rounded to the dtype;
 * NaN must be NaN, an infinity that infinity. `flushes`: the dtypes whose subnormal numbers the
 * device may take for zero. On the first element that is not right, fails `out` with its place,
 * what was expected and what is there; share, bias and worst are measured either way. */
void tc_compare(const tc_invocation *call, uint32_t k, const unsigned char *image, uint64_t flushes,
                tc_verdict *out);

/* Whether what elements may be off are numbers, and none of them negative: before anything is
 * compared. False with a reason where the reference, not a device, is wrong. */
bool tc_has_bounds(const tc_invocation *call, char why[TC_MESSAGE]);

/* Whether `got` is right for element i of output k. */
bool tc_accepts(const tc_invocation *call, uint32_t k, int64_t i, tc_number got, uint64_t flushes);

/* The least and the largest number that element i of output k, of a floating dtype, may be; both
 * NaN where it must be NaN, and without bounds where it is unspecified. */
void tc_bounds(const tc_invocation *call, uint32_t k, int64_t i, tc_real *out_low,
               tc_real *out_high);

/* Would outputs that are wrong have passed too: all zero, off by one element, 1/64 too large? Then
 * `out` becomes INCONCLUSIVE. */
void tc_check_conclusive(const tc_invocation *call, uint64_t flushes, tc_verdict *out);

#endif
