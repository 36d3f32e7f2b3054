/* Temporaries: owned tensors of one call, dropped together at its end.
 *
 *     tni_temps tmp = {0};
 *     tn_tensor *x = tni_own(&tmp, tni_exp(self));
 *     x = tni_then(&tmp, tni_mul(x, x), x);             the first x is dropped at once
 *     return tni_temps_return(&tmp, x, rets);
 *
 * NULL passes through, so that a formula is checked once, at its end. What is borrowed, such as an
 * argument, may stand where a temporary may.
 */
#ifndef TNI_CORE_CALL_TEMPS_H
#define TNI_CORE_CALL_TEMPS_H

#include "core/call/cells.h"

#ifdef TNI_HARD
enum { TNI_TEMPS_ROOM = 2 };
#else
enum { TNI_TEMPS_ROOM = 12 };
#endif

typedef struct tni_temps {
    uint32_t n;
    tn_tensor *items[TNI_TEMPS_ROOM]; /* owned, or NULL */
    struct tni_temps *before;         /* full ones, of tni_alloc */
} tni_temps;

/* Hands an owned tensor (or NULL, or TN_NONE) to the list and returns it, borrowed; without memory
 * NULL, with an error. */
tn_tensor *tni_own_more(tni_temps *temps, tn_tensor *t);
static inline tn_tensor *tni_own(tni_temps *temps, tn_tensor *t) {
    if (TNI_UNLIKELY(tni_not_tensor(t) || temps->n == TNI_TEMPS_ROOM))
        return tni_own_more(temps, t);
    return temps->items[temps->n++] = t;
}
/* Hands over `result`, which was made of `used`, and drops that, if it is of the list. */
tn_tensor *tni_then(tni_temps *temps, tn_tensor *result, tn_tensor *used);
/* Drops all. */
void tni_temps_finish(tni_temps *temps);
/* Drops all but `result` (NULL passes), which is returned as an owned reference. */
tn_tensor *tni_temps_keep(tni_temps *temps, tn_tensor *result);
/* The same for the results of a boxed function. */
tn_status tni_temps_return(tni_temps *temps, tn_tensor *result, tn_cell *rets);
tn_status tni_temps_return_many(tni_temps *temps, tn_tensor **results, uint32_t n, tn_cell *rets);

#endif
