/* The handler of the key StorageDtype. */
#ifndef TNI_CORE_CALL_STORAGE_DTYPE_H
#define TNI_CORE_CALL_STORAGE_DTYPE_H

#include "core/call/op_info.h"

tn_status tni_storage_dtype_handler(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                    tn_cell *rets, void *user);

#endif
