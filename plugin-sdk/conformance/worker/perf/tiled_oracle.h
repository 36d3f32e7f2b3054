/* Checks a large call against a small one, of which it is a tiling.
 *
 * The oracle takes half a microsecond for an element and some 20 ns for a product, a device a
 * thousandth of it. But rows of a softmax, images of a convolution, rows and columns of a product
 * know nothing of each other. Along such dimensions a call is cut to a part that the oracle has
 * done in a moment, and the call's inputs hold the part's over and over: [i, j] of the whole is [i
 * % m, j % n] of the part, in inputs and outputs alike, so that every element of a large output is
 * checked. What is cut has a prime size: who mixes up blocks of a power of two is seen.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_TILED_ORACLE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_TILED_ORACLE_H

#include "plugin-sdk/conformance/worker/kernel/execute.h"

/* Reads the case into both, fills the inputs, and computes what the part's outputs must be. `whole`
 * has images and no values. Where nothing can be cut, the part is as large. False with `why`. */
bool tc_tiled_make(const tc_case *c, tc_arena *arena, tc_invocation *part, tc_invocation *whole,
                   char why[TC_MESSAGE]);

/* Checks all elements of the outputs that were read back. `good[k]` keeps the part's elements as
 * the device computed them first, NULL before: what has the same bits is as good. */
void tc_tiled_check(const tc_invocation *part, const tc_invocation *whole, const tc_result *result,
                    const tc_subject *s, unsigned char *good[TC_MAX_OUTS], tc_verdict *out);

#endif
