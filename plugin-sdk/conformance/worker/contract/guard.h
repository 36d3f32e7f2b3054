/* What a case leaves of the process: state that the plugin must not change (TNP-94), and nothing on
 * standard output (TNP-97). */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_GUARD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_GUARD_H

#include "plugin-sdk/conformance/worker/worker.h"

/* Runs a case of the class. Where the process differs afterwards, it is put back as far as that can
 * be, and the case is run again with a look round every call, so that the call is named. */
void tc_guard_case(const tc_class *class, const tc_case *c, const tc_options *options,
                   tc_verdict *out);

#endif
