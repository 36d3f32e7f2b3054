/* Errors on their way up: what is not TN_OK has been told to the host where it was found. */
#ifndef TNI_PLUGINS_SHARED_TRY_H
#define TNI_PLUGINS_SHARED_TRY_H

#include <tenon/plugin.h>

/* Returns from the calling function with the status of `call`, unless that is TN_OK. */
#define PLUGIN_TRY(call) \
    do { \
        tn_status status_ = (call); \
        if (status_ != TN_OK) \
            return status_; \
    } while (0)

#endif
