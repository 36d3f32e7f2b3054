/* Temporaries of a composite: every intermediate is handed to the list and dropped at the end, so
 * that a formula reads as one. */
#ifndef TNI_CORE_CALL_TEMPS_H
#define TNI_CORE_CALL_TEMPS_H

#include "core/call/cells.h"
#include "core/ops/operators.h"

enum { TNI_TEMPS_MAX = 64 };

typedef struct tni_temps {
    uint32_t n;
    tn_tensor *items[TNI_TEMPS_MAX];
} tni_temps;

/* Hands an owned tensor (NULL and TN_NONE pass) to the list and returns it, borrowed. */
static inline tn_tensor *tni_own(tni_temps *temps, tn_tensor *t) {
    if ((uintptr_t)t <= 1)
        return t;
    if (temps->n == TNI_TEMPS_MAX) {
        tni_drop(t);
        tni_fail(TN_INTERNAL, "a composite makes more than %d temporaries", TNI_TEMPS_MAX);
        return NULL;
    }
    return temps->items[temps->n++] = t;
}
#define OWN(expression) tni_own(&temps, (expression))
#define RETURN(expression) return tni_temps_return(&temps, (expression), rets)
static inline tn_tensor *tni_then(tn_tensor *result, tn_tensor *used) {
    tni_drop(used);
    return result;
}
static inline tn_tensor *tni_then2(tn_tensor *result, tn_tensor *used1, tn_tensor *used2) {
    tni_drop(used1);
    tni_drop(used2);
    return result;
}

static inline void tni_temps_drop(tni_temps *temps) {
    for (uint32_t i = 0; i < temps->n; i++)
        tni_drop(temps->items[i]);
}

/* Keeps the result (a borrowed tensor of the list, or NULL), drops the list. */
static inline tn_tensor *tni_temps_keep(tni_temps *temps, tn_tensor *result) {
    tni_keep_opt(result);
    tni_temps_drop(temps);
    return result;
}
/* The same as the end of a boxed function. */
static inline tn_status tni_temps_return(tni_temps *temps, tn_tensor *result, tn_cell *rets) {
    return tni_return(rets, tni_temps_keep(temps, result));
}
static inline tn_status tni_temps_return2(tni_temps *temps, tn_tensor *a, tn_tensor *b,
                                          tn_cell *rets) {
    tn_tensor *both[2] = {tni_keep_opt(a), tni_keep_opt(b)};
    tni_temps_drop(temps);
    return tni_return_many(rets, both, 2);
}

static inline tn_tensor *tni_as_dtype(tn_tensor *owned, tn_dtype dtype) {
    if (!owned || owned->view.dtype == dtype)
        return owned;
    return tni_then(tni_to_dtype(owned, dtype), owned);
}

#endif
