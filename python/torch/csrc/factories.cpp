/* By hand: what makes tensors, what views them, and what changes their storage. */
#include "python/torch/csrc/hand.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

namespace tenon_torch {

namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

/* Makes the device current while a tensor is made on it. */
class On {
  public:
    explicit On(const optional<c10::Device> &device)
        : before(exchange_device(device ? device->index() : -1)) {}
    ~On() {
        exchange_device(before);
    }
    On(const On &) = delete;
    On &operator=(const On &) = delete;

  private:
    c10::DeviceIndex before;
};

void check_options(optional<c10::Layout> layout, optional<bool> pinned) {
    TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::kStrided,
                                "Tenon has strided tensors alone");
    TORCH_CHECK(!pinned || !*pinned, "memory of the CPU alone is pinned");
}

c10::ScalarType checked(optional<c10::ScalarType> type) {
    c10::ScalarType t = c10::dtype_or_default(type);
    dtype_of(t); /* throws where there is none such */
    return t;
}

/* Contiguous, of a tensor of Tenon's that has the same sizes, so that operators are given that; undefined where there
 * is none such, but for want of memory: PyTorch says why. */
Tensor made(IntArrayRef size, c10::ScalarType type, const optional<c10::Device> &device) {
    c10::DeviceIndex index = device && device->has_index() ? device->index() : current_device();
    TN_SCOPE;
    tn_tensor *t = tn_empty(ints_of(size), dtype_of(type), device_at(index));
    if (t != nullptr)
        return adopt_owned(tn_keep(t), index);
    if (tn_error_status() == TN_ERR_OUT_OF_MEMORY)
        throw_error();
    tn_error_clear();
    return {};
}

Tensor empty(IntArrayRef size, optional<c10::ScalarType> type, optional<c10::Layout> layout,
             optional<c10::Device> device, optional<bool> pinned,
             optional<c10::MemoryFormat> format) {
    check_options(layout, pinned);
    if (!format || *format == c10::MemoryFormat::Contiguous)
        if (Tensor t = made(size, checked(type), device); t.defined())
            return t;
    On on(device);
    return at::detail::empty_generic(size, allocator(), c10::DispatchKeySet(backend_key),
                                     checked(type), format);
}

bool is_contiguous(IntArrayRef size, IntArrayRef stride) {
    int64_t expected = 1;
    bool contiguous = size.size() == stride.size();
    for (size_t i = size.size(); contiguous && i-- > 0; expected *= std::max<int64_t>(size[i], 1))
        contiguous = stride[i] == expected;
    return contiguous;
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, optional<c10::ScalarType> type,
                     optional<c10::Layout> layout, optional<c10::Device> device,
                     optional<bool> pinned) {
    check_options(layout, pinned);
    if (is_contiguous(size, stride))
        if (Tensor t = made(size, checked(type), device); t.defined())
            return t;
    On on(device);
    return at::detail::empty_strided_generic(size, stride, allocator(),
                                             c10::DispatchKeySet(backend_key), checked(type));
}

/* Sizes and strides of `self` are set; its storage must reach as far. */
void reach(const Tensor &self) {
    c10::TensorImpl *impl = self.unsafeGetTensorImpl();
    if (impl->numel() == 0)
        return;
    size_t bytes =
        at::detail::computeStorageNbytes(impl->sizes(), impl->strides(), impl->dtype().itemsize(),
                                         static_cast<size_t>(impl->storage_offset()));
    c10::StorageImpl *storage = impl->unsafe_storage().unsafeGetStorageImpl();
    if (bytes <= storage->nbytes())
        return;
    TORCH_CHECK(storage->resizable(), "a storage that is not resizable has ", storage->nbytes(),
                " bytes, ", bytes, " are needed");
    resize_storage(*storage, bytes);
}

const Tensor &resize_(const Tensor &self, IntArrayRef size, optional<c10::MemoryFormat> format) {
    c10::TensorImpl *impl = self.unsafeGetTensorImpl();
    if (impl->sizes() != size) {
        impl->set_sizes_contiguous(size);
        reach(self);
    }
    if (format) {
        TORCH_CHECK(*format != c10::MemoryFormat::Preserve,
                    "resize_ takes no memory format preserve");
        impl->empty_tensor_restride(*format);
        reach(self);
    }
    return self;
}

Tensor as_strided(const Tensor &self, IntArrayRef size, IntArrayRef stride,
                  optional<int64_t> offset) {
    return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

Tensor &set_to(Tensor &self, c10::Storage source, int64_t offset, IntArrayRef size,
               IntArrayRef stride) {
    TORCH_CHECK(source.device() == self.device(), "set_ of a tensor on ", self.device(),
                " to a storage on ", source.device());
    TORCH_CHECK(offset >= 0, "an offset of ", offset);
    c10::TensorImpl *impl = self.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(std::move(source));
    if (stride.data() != nullptr && stride.size() == size.size()) {
        impl->set_sizes_and_strides(size, stride, offset);
    } else {
        impl->set_storage_offset(offset);
        impl->set_sizes_contiguous(size);
    }
    reach(self);
    return self;
}

Tensor &set_to_storage(Tensor &self, c10::Storage source) {
    int64_t n = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
    return set_to(self, std::move(source), 0, n, {});
}

Tensor &set_to_tensor(Tensor &self, const Tensor &source) {
    return self.is_same(source) ? self
                                : set_to(self, source.storage(), source.storage_offset(),
                                         source.sizes(), source.strides());
}

Tensor &set_to_nothing(Tensor &self) {
    On on(self.device());
    c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, allocator()->allocate(0), allocator(),
                         true);
    return set_to(self, std::move(nothing), 0, {0}, {});
}

/* ---- factories whose out form alone is asked for ----------------------------------------- */

Tensor &copy_out(Tensor &out, const Tensor &result) {
    at::native::resize_output(out, result.sizes());
    return out.copy_(result);
}

/* What the factory makes with out's dtype on out's device; a scope is open. */
Tensor &make_out(Tensor &out, Call &factory) {
    return copy_out(out, factory.dtype(out.scalar_type()).device(out.device().index()).one());
}

Tensor &arange_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step,
                   Tensor &out) {
    TN_SCOPE;
    return make_out(out, Call("arange.start").scalar(start).scalar(end).scalar(step));
}

Tensor &linspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps, Tensor &out) {
    TN_SCOPE;
    return make_out(out, Call("linspace").scalar(start).scalar(end).integer(steps));
}

Tensor &eye_m_out(int64_t n, int64_t m, Tensor &out) {
    TN_SCOPE;
    return make_out(out, Call("eye.m").integer(n).integer(m));
}

Tensor &eye_out(int64_t n, Tensor &out) {
    return eye_m_out(n, n, out);
}

Tensor triangle(const char *name, int64_t row, int64_t col, int64_t offset,
                optional<c10::ScalarType> type, optional<c10::Device> device) {
    TN_SCOPE;
    c10::DeviceIndex index = device && device->has_index() ? device->index() : current_device();
    return Call(name)
        .integer(row)
        .integer(col)
        .integer(offset)
        .dtype(type.value_or(at::kLong))
        .device(index)
        .one();
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, optional<c10::ScalarType> type,
                    optional<c10::Layout> layout, optional<c10::Device> device,
                    optional<bool> pinned) {
    check_options(layout, pinned);
    return triangle("tril_indices", row, col, offset, type, device);
}

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, optional<c10::ScalarType> type,
                    optional<c10::Layout> layout, optional<c10::Device> device,
                    optional<bool> pinned) {
    check_options(layout, pinned);
    return triangle("triu_indices", row, col, offset, type, device);
}

/* ---- numbers where Tenon has tensors ----------------------------------------------------- */

Tensor number_pow(const at::Scalar &self, const Tensor &exponent) {
    TN_SCOPE;
    auto type = at::result_type(self, exponent);
    Tensor base =
        Call("full").ints({}).scalar(self).dtype(type).device(exponent.device().index()).one();
    return Call("pow.Tensor").tensor(base).tensor(exponent).one();
}

Tensor &number_pow_out(const at::Scalar &self, const Tensor &exponent, Tensor &out) {
    return copy_out(out, number_pow(self, exponent));
}

/* PyTorch says with a word what Tenon says with a flag. */
Tensor searchsorted(const Tensor &sorted, const Tensor &self, bool in_i32, bool right,
                    optional<std::string_view> side, const optional<Tensor> &order) {
    TORCH_CHECK(!side || *side == "left" || *side == "right",
                "torch.searchsorted(): side can only be 'left' or 'right' but got ",
                side ? std::string(*side) : "");
    TORCH_CHECK(!right || !side || *side == "right",
                "torch.searchsorted(): side and right can't be set to opposites, got side of ",
                side ? std::string(*side) : "", " while right was True");
    TN_SCOPE;
    return Call("searchsorted.Tensor")
        .tensor(sorted)
        .tensor(self)
        .flag(in_i32)
        .flag(right || (side && *side == "right"))
        .tensor(order.value_or(Tensor()))
        .one();
}

} // namespace

void add_factories(Hand &hand) {
    hand.add("empty.memory_format", TORCH_FN(empty));
    hand.add("empty_strided", TORCH_FN(empty_strided));
    hand.add("resize_", TORCH_FN(resize_));
    hand.add("as_strided", TORCH_FN(as_strided));
    hand.add("view",
             TORCH_FN(static_cast<Tensor (*)(const Tensor &, IntArrayRef)>(at::native::view)));
    hand.add("_reshape_alias",
             TORCH_FN(static_cast<Tensor (*)(const Tensor &, IntArrayRef, IntArrayRef)>(
                 at::native::_reshape_alias)));
    hand.add("unfold", TORCH_FN(static_cast<Tensor (*)(const Tensor &, int64_t, int64_t, int64_t)>(
                           at::native::unfold)));
    hand.add("view_as_real", TORCH_FN(at::native::view_as_real));
    hand.add("view_as_complex", TORCH_FN(at::native::view_as_complex));
    hand.add("set_.source_Storage_storage_offset", TORCH_FN(set_to));
    hand.add("set_.source_Storage", TORCH_FN(set_to_storage));
    hand.add("set_.source_Tensor", TORCH_FN(set_to_tensor));
    hand.add("set_", TORCH_FN(set_to_nothing));
    hand.add("arange.start_out", TORCH_FN(arange_out));
    hand.add("linspace.out", TORCH_FN(linspace_out));
    hand.add("eye.out", TORCH_FN(eye_out));
    hand.add("eye.m_out", TORCH_FN(eye_m_out));
    hand.add("pow.Scalar", TORCH_FN(number_pow));
    hand.add("pow.Scalar_out", TORCH_FN(number_pow_out));
    hand.add("searchsorted.Tensor", TORCH_FN(searchsorted));
    hand.add("tril_indices", TORCH_FN(tril_indices));
    hand.add("triu_indices", TORCH_FN(triu_indices));
}

} // namespace tenon_torch
