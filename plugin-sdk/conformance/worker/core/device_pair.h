/* The device under test, and the CPU that it is compared with, through libtenon.
 *
 * The process loads exactly two plugins, the subject and the reference CPU plugin (one, where the
 * subject is that itself), with fallback policy `error`. The pair stays open between cases;
 * switching its mode closes and opens it.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_DEVICE_PAIR_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_DEVICE_PAIR_H

#include <tenon/tenon.h>
#include "plugin-sdk/conformance/worker/worker.h"

typedef enum tc_mode {
    TC_MODE_NATIVE,
    TC_MODE_DECOMPOSED /* kernels of the subject outside of the small set are left out */
} tc_mode;

typedef struct tc_device_pair {
    tn_device subject, cpu;
    char name[160]; /* the subject's device */
    char id[128];   /* its plugin's */
} tc_device_pair;

/* The open pair, or NULL with `out` filled: a FAIL where the subject does not come up, an ERROR
 * where the reference does not. No tensor may be alive. */
const tc_device_pair *tc_device_pair_open(const tc_options *options, tc_mode mode, tc_verdict *out);
/* Adds two numbers on the subject, or moves them there and back where it has no add; false where that
 * fails or is wrong. */
bool tc_device_pair_is_usable(const tc_device_pair *pair);
void tc_device_pair_close(void);

#endif
