#include "python/torch/csrc/bridge.h"

#include <ATen/EmptyTensor.h>
#include <tenon/storage.h>

namespace tenon_torch {

tn_dtype dtype_of(c10::ScalarType type) {
    switch (type) {
    case c10::ScalarType::Float:
        return TN_F32;
    case c10::ScalarType::Double:
        return TN_F64;
    case c10::ScalarType::Half:
        return TN_F16;
    case c10::ScalarType::BFloat16:
        return TN_BF16;
    case c10::ScalarType::Char:
        return TN_I8;
    case c10::ScalarType::Short:
        return TN_I16;
    case c10::ScalarType::Int:
        return TN_I32;
    case c10::ScalarType::Long:
        return TN_I64;
    case c10::ScalarType::Byte:
        return TN_U8;
    case c10::ScalarType::Bool:
        return TN_BOOL;
    default:
        TORCH_CHECK_TYPE(false, "Tenon has no dtype ", c10::toString(type));
    }
}

c10::ScalarType scalar_type_of(tn_dtype dtype) {
    switch (dtype) {
    case TN_F32:
        return c10::ScalarType::Float;
    case TN_F64:
        return c10::ScalarType::Double;
    case TN_F16:
        return c10::ScalarType::Half;
    case TN_BF16:
        return c10::ScalarType::BFloat16;
    case TN_I8:
        return c10::ScalarType::Char;
    case TN_I16:
        return c10::ScalarType::Short;
    case TN_I32:
        return c10::ScalarType::Int;
    case TN_I64:
        return c10::ScalarType::Long;
    case TN_U8:
        return c10::ScalarType::Byte;
    case TN_BOOL:
        return c10::ScalarType::Bool;
    default:
        TORCH_CHECK_TYPE(false, "PyTorch has no dtype ", tn_dtype_name(dtype));
    }
}

tn_tensor *borrow(const at::Tensor &t) {
    TORCH_INTERNAL_ASSERT(t.device().type() == device_type);
    tn_dtype dtype = dtype_of(t.scalar_type());
    tn_storage *storage = t.numel() == 0 ? nullptr : storage_of(t.storage().data_ptr());
    if (storage == nullptr) {
        TORCH_CHECK(t.numel() == 0, "the storage of a tensor with ", t.numel(),
                    " elements was given back");
        return check(tn_empty(ints_of(t.sizes()), dtype, device_at(t.device().index())));
    }
    return check(tn_from_storage(storage, ints_of(t.sizes()), ints_of(t.strides()),
                                 t.storage_offset(), dtype));
}

at::Tensor adopt(tn_tensor *owned) {
    if (owned == nullptr || owned == TN_NONE)
        return {};
    c10::DeviceIndex index = index_of(tn_device_of(owned));
    tn_storage *storage = tn_storage_keep(tn_storage_of(owned));
    size_t bytes = tn_storage_bytes(storage);
    tn_ints sizes = tn_sizes(owned), strides = tn_strides(owned);
    at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(c10::Storage::use_byte_size_t(), bytes, data_of(storage, index), allocator(),
                     true),
        c10::DispatchKeySet(backend_key),
        c10::scalarTypeToTypeMeta(scalar_type_of(tn_dtype_of(owned))));
    result.unsafeGetTensorImpl()->set_sizes_and_strides(
        {sizes.data, static_cast<size_t>(sizes.n)}, {strides.data, static_cast<size_t>(strides.n)},
        tn_storage_offset(owned));
    tn_drop(owned);
    return result;
}

} // namespace tenon_torch
