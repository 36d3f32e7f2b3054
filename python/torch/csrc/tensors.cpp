#include "python/torch/csrc/bridge.h"

#include <ATen/EmptyTensor.h>
#include <tenon/storage.h>

namespace tenon_torch {

static constexpr std::pair<c10::ScalarType, tn_dtype> dtypes[] = {
    {c10::ScalarType::Float, TN_F32},
    {c10::ScalarType::Double, TN_F64},
    {c10::ScalarType::Half, TN_F16},
    {c10::ScalarType::BFloat16, TN_BF16},
    {c10::ScalarType::Char, TN_I8},
    {c10::ScalarType::Short, TN_I16},
    {c10::ScalarType::Int, TN_I32},
    {c10::ScalarType::Long, TN_I64},
    {c10::ScalarType::Byte, TN_U8},
    {c10::ScalarType::Bool, TN_BOOL},
    {c10::ScalarType::UInt16, TN_U16},
    {c10::ScalarType::UInt32, TN_U32},
    {c10::ScalarType::UInt64, TN_U64},
    {c10::ScalarType::ComplexFloat, TN_C64},
    {c10::ScalarType::ComplexDouble, TN_C128},
};

tn_dtype dtype_of(c10::ScalarType type) {
    for (auto [torch, tenon] : dtypes)
        if (torch == type)
            return tenon;
    TORCH_CHECK_TYPE(false, "Tenon has no dtype ", c10::toString(type));
}

c10::ScalarType scalar_type_of(tn_dtype dtype) {
    for (auto [torch, tenon] : dtypes)
        if (tenon == dtype)
            return torch;
    TORCH_CHECK_TYPE(false, "PyTorch has no dtype ", tn_dtype_name(dtype));
}

tn_tensor *borrow(const at::Tensor &t) {
    TORCH_CHECK(t.device().type() == device_type, "a tensor is on ", t.device(),
                ", others are on a device of Tenon; copy it with .to(...)");
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

at::Tensor adopt(tn_tensor *t) {
    if (t == nullptr || t == TN_NONE)
        return {};
    c10::DeviceIndex index = index_of(tn_device_of(t));
    tn_storage *storage = tn_storage_of(t);
    size_t bytes = tn_storage_bytes(storage);
    tn_ints sizes = tn_sizes(t), strides = tn_strides(t);
    at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(c10::Storage::use_byte_size_t(), bytes, data_of(storage, index), allocator(),
                     true),
        c10::DispatchKeySet(backend_key),
        c10::scalarTypeToTypeMeta(scalar_type_of(tn_dtype_of(t))));
    result.unsafeGetTensorImpl()->set_sizes_and_strides(
        {sizes.data, static_cast<size_t>(sizes.n)}, {strides.data, static_cast<size_t>(strides.n)},
        tn_storage_offset(t));
    return result;
}

} // namespace tenon_torch
