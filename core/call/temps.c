/* See temps.h. */
#include "core/call/temps.h"
#include "base/alloc.h"

tn_tensor *tni_own_more(tni_temps *temps, tn_tensor *t) {
    if (tni_not_tensor(t))
        return t;
    tni_temps *full = tni_alloc(sizeof *full);
    if (!full) {
        tni_drop(t);
        return tni_fail_memory_null("a list of temporaries");
    }
    *full = *temps;
    temps->before = full;
    temps->n = 1;
    return temps->items[0] = t;
}

/* Where the list has t, or NULL. The last ones are looked for most. */
static tn_tensor **find(tni_temps *temps, const tn_tensor *t) {
    for (; temps && !tni_not_tensor(t); temps = temps->before)
        for (uint32_t i = temps->n; i-- > 0;)
            if (temps->items[i] == t)
                return &temps->items[i];
    return NULL;
}

tn_tensor *tni_then(tni_temps *temps, tn_tensor *result, tn_tensor *used) {
    tn_tensor **place = find(temps, used);
    if (!place || result == TN_NONE)
        return tni_own(temps, result);
    tni_drop(used);
    return *place = result;
}

void tni_temps_finish(tni_temps *temps) {
    for (uint32_t i = 0; i < temps->n; i++)
        tni_drop(temps->items[i]);
    for (tni_temps *full = temps->before; full; full = temps->before) {
        for (uint32_t i = 0; i < full->n; i++)
            tni_drop(full->items[i]);
        temps->before = full->before;
        tni_free(full);
    }
}

/* An owned reference: the list's, or another one to what is borrowed. */
static tn_tensor *take(tni_temps *temps, tn_tensor *t) {
    tn_tensor **place = find(temps, t);
    if (!place)
        return tni_keep_opt(t);
    *place = NULL;
    return t;
}

tn_tensor *tni_temps_keep(tni_temps *temps, tn_tensor *result) {
    take(temps, result);
    tni_temps_finish(temps);
    return result;
}

tn_status tni_temps_return(tni_temps *temps, tn_tensor *result, tn_cell *rets) {
    return tni_return(rets, tni_temps_keep(temps, result));
}

tn_status tni_temps_return_many(tni_temps *temps, tn_tensor **results, uint32_t n, tn_cell *rets) {
    for (uint32_t i = 0; i < n; i++)
        take(temps, results[i]);
    tni_temps_finish(temps);
    return tni_return_many(rets, results, n);
}
