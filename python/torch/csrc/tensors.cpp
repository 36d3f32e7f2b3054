#include "python/torch/csrc/bridge.h"

#include <ATen/EmptyTensor.h>
#include <array>
#include <tenon/autograd.h>
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

/* The same by PyTorch's number: TN_DTYPE_NONE where Tenon has none such. */
static constexpr auto by_type = [] {
    std::array<tn_dtype, static_cast<size_t>(c10::ScalarType::NumOptions)> all{};
    for (tn_dtype &dtype : all)
        dtype = TN_DTYPE_NONE;
    for (auto [torch, tenon] : dtypes)
        all[static_cast<size_t>(torch)] = tenon;
    return all;
}();

tn_dtype dtype_of(c10::ScalarType type) {
    auto i = static_cast<size_t>(type);
    if (C10_LIKELY(i < by_type.size() && by_type[i] != TN_DTYPE_NONE))
        return by_type[i];
    TORCH_CHECK_TYPE(false, "Tenon has no dtype ", c10::toString(type));
}

c10::ScalarType scalar_type_of(tn_dtype dtype) {
    for (auto [torch, tenon] : dtypes)
        if (tenon == dtype)
            return torch;
    TORCH_CHECK_TYPE(false, "PyTorch has no dtype ", tn_dtype_name(dtype));
}

namespace {

bool equal(tn_ints a, c10::IntArrayRef b) {
    bool same = static_cast<size_t>(a.n) == b.size();
    for (size_t i = 0; same && i < b.size(); i++)
        same = a.data[i] == b[i];
    return same;
}

/* Is it the view of its storage that PyTorch's tensor is? */
bool is_same_view(tn_tensor *ours, const c10::TensorImpl &theirs, tn_dtype dtype) {
    return tn_dtype_of(ours) == dtype && equal(tn_sizes(ours), theirs.sizes()) &&
           equal(tn_strides(ours), theirs.strides()) &&
           tn_storage_offset(ours) == theirs.storage_offset();
}

tn_tensor *over(const at::Tensor &t, tn_storage *storage, tn_dtype dtype) {
    return check(tn_from_storage(storage, ints_of(t.sizes()), ints_of(t.strides()),
                                 t.storage_offset(), dtype));
}

/* Of one with elements: what made the storage. */
tn_tensor *maker_of(const at::Tensor &t) {
    TORCH_CHECK(t.is_privateuseone(), "a tensor is on ", t.device(),
                ", others are on a device of Tenon; copy it with .to(...)");
    const c10::TensorImpl *impl = t.unsafeGetTensorImpl();
    if (impl->numel() == 0)
        return nullptr;
    tn_tensor *maker = tensor_of(impl->unsafe_storage().data_ptr());
    TORCH_CHECK(maker != nullptr, "the storage of a tensor with ", t.numel(),
                " elements was given back");
    return maker;
}

tn_tensor *without_elements(const at::Tensor &t) {
    return check(
        tn_empty(ints_of(t.sizes()), dtype_of(t.scalar_type()), device_at(t.device().index())));
}

} // namespace

tn_tensor *borrow(const at::Tensor &t) {
    tn_tensor *maker = maker_of(t);
    if (maker == nullptr)
        return without_elements(t);
    tn_dtype dtype = dtype_of(t.scalar_type());
    if (is_same_view(maker, *t.unsafeGetTensorImpl(), dtype))
        return maker;
    return over(t, check(tn_storage_of(maker)), dtype);
}

tn_tensor *borrow_another(const at::Tensor &t) {
    tn_tensor *maker = maker_of(t);
    return maker == nullptr ? without_elements(t)
                            : over(t, check(tn_storage_of(maker)), dtype_of(t.scalar_type()));
}

at::Tensor adopt_owned(tn_tensor *owned, c10::DeviceIndex index) {
    /* memory of no bytes keeps no tensor */
    Reference kept(tn_numel(owned) == 0 ? tn_keep(owned) : nullptr, tn_drop);
    c10::DataPtr data = data_of(owned, index);
    tn_ints sizes = tn_sizes(owned), strides = tn_strides(owned);
    auto type = scalar_type_of(tn_dtype_of(owned));
    at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(c10::Storage::use_byte_size_t(), tn_storage_bytes(tn_storage_of(owned)),
                     std::move(data), allocator(), true),
        c10::DispatchKeySet(backend_key), c10::scalarTypeToTypeMeta(type));
    result.unsafeGetTensorImpl()->set_sizes_and_strides(
        {sizes.data, static_cast<size_t>(sizes.n)}, {strides.data, static_cast<size_t>(strides.n)},
        tn_storage_offset(owned));
    return result;
}

at::Tensor adopt(tn_tensor *t) {
    if (t == nullptr || t == TN_NONE)
        return {};
    c10::DeviceIndex index = index_of(tn_device_of(t));
    if (tn_requires_grad(t)) /* gradients are PyTorch's: no storage keeps a history of ours */
        t = check(tn_from_storage(check(tn_storage_of(t)), tn_sizes(t), tn_strides(t),
                                  tn_storage_offset(t), tn_dtype_of(t)));
    return adopt_owned(tn_keep(t), index);
}

} // namespace tenon_torch
