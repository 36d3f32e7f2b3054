/* Lines that are drawn: what no rule of a family puts together.
 *
 * Families write each size, each layout, each kind of data with the others as they are as a rule. What
 * a device does may hang on two of them, or three: special values in a strided tensor of a half, so
 * long that threads share it. So lines are drawn, always the same ones, of all that an operator's lines
 * have: the attributes of one with the sizes of another, grown to a size about which kernels change
 * their way, each tensor and output lying in a way of its own, with any kind of data. A third of them
 * are the one before with a single thing changed, for what is kept from one call to the next.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_DRAW_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_DRAW_H

#include "plugin-sdk/conformance/worker/kernel/record.h"

/* The lines of one operator and choice of dtypes that others are drawn from. */
typedef struct tc_urn {
    const tc_record *record;
    char **lines;
    size_t n, room;
} tc_urn;

/* Keeps a line, unless it is too large to begin with. */
void tc_urn_add(tc_urn *urn, const char *line);
void tc_urn_finish(tc_urn *urn);

/* Draws `n` lines, the same ones each time, from the `first`th on. */
void tc_urn_draw(const tc_urn *urn, int first, int n, tc_sink *to);

/* Lines in which one tensor or output reaches over more than 2^31 elements (far.c). */
void tc_urn_stretch(const tc_urn *urn, const tn_dtype *types, tc_sink *to);

#endif
