/* See lacks.h. */
#include "plugin-sdk/conformance/worker/core/lacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, ITEM = 64 };

typedef struct items {
    char at[MOST][ITEM];
    size_t n;
} items;

void tc_lacks_begin(void) {
    tn_fallback_set_policy(TN_FALLBACK_CPU);
    tn_fallback_reset();
}

void tc_lacks_end(void) {
    tn_fallback_set_policy(TN_FALLBACK_ERROR);
}

static void add(const tn_fallback_info *info, void *user) {
    items *list = user;
    const char *what = *info->kernel ? info->kernel : info->operator_name;
    if (list->n == MOST)
        return;
    char *item = list->at[list->n++];
    if (info->to == TN_DTYPE_NONE)
        snprintf(item, ITEM, "%s %s", what, tn_dtype_name(info->dtype));
    else
        snprintf(item, ITEM, "%s %s %s", what, tn_dtype_name(info->dtype), tn_dtype_name(info->to));
}

static int by_text(const void *a, const void *b) {
    return strcmp(a, b);
}

char *tc_lacks_text(const tc_device_pair *pair, uint64_t wanted, char out[TC_LACKS_TEXT]) {
    items list = {.n = 0};
    size_t n = 0;
    out[0] = '\0';
    tn_fallback_list(add, &list);
    for (tn_dtype d = 0; d < TN_DTYPE_COUNT; d++)
        if ((wanted & TN_DTYPE_BIT(d)) && !tn_device_has_dtype(pair->subject, d) && list.n < MOST)
            snprintf(list.at[list.n++], ITEM, "dtype %s", tn_dtype_name(d));
    qsort(list.at, list.n, ITEM, by_text);
    for (size_t i = 0; i < list.n; i++) {
        if (i > 0 && strcmp(list.at[i], list.at[i - 1]) == 0)
            continue; /* of two operators */
        if (n + ITEM + 2 > TC_LACKS_TEXT)
            break;
        n += (size_t)snprintf(out + n, TC_LACKS_TEXT - n, "%s%s", n ? ", " : TC_LACKS, list.at[i]);
    }
    return out;
}
