#include "python/torch/csrc/bridge.h"

namespace tenon_torch {

void throw_error() {
    tn_status status = tn_error_status();
    std::string message = tn_error_message();
    tn_error_clear();
    switch (status) {
    case TN_ERR_UNSUPPORTED:
    case TN_ERR_NOT_FOUND:
        TORCH_CHECK_NOT_IMPLEMENTED(false, message);
    case TN_ERR_OUT_OF_MEMORY:
        TORCH_CHECK_WITH(OutOfMemoryError, false, message);
    case TN_ERR_INDEX_OUT_OF_RANGE:
        TORCH_CHECK_INDEX(false, message);
    default:
        TORCH_CHECK(false, message);
    }
    __builtin_unreachable();
}

} // namespace tenon_torch
