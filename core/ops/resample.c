#include "core/ops/functions.h"
#include "core/ops/resample.h"
tn_tensor *tni_table(tni_device *device, tn_dtype dtype, tn_ints sizes, const void *data,
                     uint64_t bytes) {
    tn_tensor *t = tni_tensor_new(device, dtype, (int32_t)sizes.n, sizes.data);
    if (t && tni_tensor_write(t, data, bytes) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    return t;
}
