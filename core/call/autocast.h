/* The handler of the key Autocast. */
#ifndef TNI_CORE_CALL_AUTOCAST_H
#define TNI_CORE_CALL_AUTOCAST_H

#include "core/call/op_info.h"

tn_status tni_autocast_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                               void *user);

#endif
