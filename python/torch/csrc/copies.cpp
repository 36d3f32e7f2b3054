/* By hand: copies between devices and to the CPU, and values that leave the device. */
#include "python/torch/csrc/hand.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <tenon/storage.h>

namespace tenon_torch {

namespace {

using at::Tensor;

bool is_ours(const Tensor &t) {
    return t.device().type() == device_type;
}

void release_tensor(void *kept) {
    delete static_cast<Tensor *>(kept);
}

/* `from`, contiguous on the CPU, as a tensor of Tenon's: where it lies, kept until the device is done with it; with
 * TENON_VALIDATE, which knows no memory of others, as a copy on the device. */
tn_tensor *from_cpu(const Tensor &from, tn_device to) {
    auto *kept = new Tensor(from);
    tn_tensor *t =
        tn_from_blob(from.mutable_data_ptr(), ints_of(from.sizes()), tn_no_ints(),
                     dtype_of(from.scalar_type()), tn_device_parse("cpu:0"), release_tensor, kept);
    if (t != nullptr)
        return t;
    delete kept;
    if (tn_error_status() != TN_ERR_UNSUPPORTED)
        throw_error();
    tn_error_clear();
    return check(tn_from_data(from.const_data_ptr(), ints_of(from.sizes()),
                              dtype_of(from.scalar_type()), to));
}

void copy_in(const Tensor &from, const Tensor &to, bool non_blocking) {
    /* A copy to another dtype is the CPU's: it may be one that the device does not have. */
    Tensor source = from.expand(to.sizes()).to(to.scalar_type()).contiguous();
    tn_device device = device_at(to.device().index());
    {
        TN_SCOPE;
        check(tn_copy_(borrow(to), from_cpu(source, device), non_blocking));
    }
    if (!non_blocking || tn_pinned_owner(source.const_data_ptr()).type == 0)
        check(tn_stream_synchronize(check(tn_current_stream(device))));
}

void copy_out(const Tensor &from, const Tensor &to) {
    Tensor source = from.expand(to.sizes());
    bool direct = to.scalar_type() == from.scalar_type() && to.is_contiguous();
    Tensor target =
        direct ? to : at::empty(to.sizes(), at::TensorOptions().dtype(from.scalar_type()));
    {
        TN_SCOPE;
        check(tn_to_host(borrow(source), target.mutable_data_ptr(), target.nbytes()));
    }
    if (!direct)
        to.copy_(target);
}

/* The elements as they are in memory, which a tensor with PyTorch's negative bit says the opposite of. */
void copy_elements(const Tensor &self, const Tensor &dst, bool non_blocking) {
    if (is_ours(self) && is_ours(dst)) {
        TN_SCOPE;
        check(tn_copy_(borrow(dst), borrow(self.expand(dst.sizes())), non_blocking));
    } else if (self.is_cpu()) {
        copy_in(self, dst, non_blocking);
    } else {
        TORCH_CHECK_NOT_IMPLEMENTED(dst.is_cpu(), "no copies from ", self.device(), " to ",
                                    dst.device());
        copy_out(self, dst);
    }
}

void negate_elements(const Tensor &t) {
    if (!is_ours(t)) {
        t.neg_();
        return;
    }
    TN_SCOPE;
    tn_tensor *elements = borrow(t);
    check(tn_neg_(t.is_complex() ? check(tn_view_as_real(elements)) : elements));
}

/* The one place where complex numbers are computed with: what PyTorch's lazy conjugates come to. */
void conjugate_elements(const Tensor &t) {
    if (!is_ours(t)) {
        t.conj_physical_();
        return;
    }
    TN_SCOPE;
    check(tn_neg_(check(tn_imag(borrow(t)))));
}

/* The bits that say the opposite, or the conjugate, of what is in memory. Of tensors on the CPU PyTorch resolves them. */
Tensor copy_from(const Tensor &self, const Tensor &dst, bool non_blocking) {
    if (dst.numel() == 0)
        return dst;
    if (dst.is_cpu() && dst.is_neg()) {
        copy_from(self, dst._neg_view(), false).neg_();
        return dst;
    }
    if (dst.is_cpu() && dst.is_conj()) {
        copy_from(self, dst.conj(), false).conj_physical_();
        return dst;
    }
    Tensor source = self.is_cpu() ? self.resolve_conj().resolve_neg() : self;
    copy_elements(source, dst, non_blocking);
    if (source.is_neg() != dst.is_neg())
        negate_elements(dst);
    if (dst.is_complex() && source.is_conj() != dst.is_conj())
        conjugate_elements(dst);
    return dst;
}

Tensor copy_from_and_resize(const Tensor &self, const Tensor &dst) {
    dst.resize_(self.sizes());
    return copy_from(self, dst, false);
}

template <typename T> at::Scalar read_scalar(tn_tensor *t) {
    T value;
    check(tn_to_host(t, &value, sizeof value));
    return value;
}

at::Scalar local_scalar_dense(const Tensor &self) {
    TN_SCOPE;
    tn_tensor *t = borrow(self);
    if (self.scalar_type() == at::kComplexFloat)
        return read_scalar<c10::complex<float>>(t);
    if (self.scalar_type() == at::kComplexDouble)
        return read_scalar<c10::complex<double>>(t);
    if (self.scalar_type() == at::kUInt64)
        return read_scalar<uint64_t>(t);
    if (at::isFloatingType(self.scalar_type())) {
        double value = 0;
        check(tn_item(t, &value));
        return value;
    }
    int64_t value = 0;
    check(tn_item_i64(t, &value));
    if (self.scalar_type() == at::kBool)
        return value != 0;
    return value;
}

Tensor &conj_physical_out(const Tensor &self, Tensor &out) {
    at::native::resize_output(out, self.sizes());
    out.copy_(self);
    conjugate_elements(out);
    return out;
}

/* Of a tensor that says the conjugate, too: what it says is the conjugate of what it said. */
Tensor &conj_physical_(Tensor &self) {
    if (self.is_complex() && self.numel() > 0)
        conjugate_elements(self);
    return self;
}

bool equal(const Tensor &self, const Tensor &other) {
    TORCH_CHECK(self.device() == other.device(), "equal: tensors on ", self.device(), " and ",
                other.device());
    if (self.sizes() != other.sizes())
        return false;
    TN_SCOPE;
    bool answer = false;
    check(tn_equal(borrow(self), borrow(other), &answer));
    return answer;
}

void record_stream(Tensor &self, at::Stream stream) {
    allocator()->recordStream(self.storage().data_ptr(), stream);
}

} // namespace

void add_copies(Hand &hand) {
    hand.add("_copy_from", TORCH_FN(copy_from));
    hand.add("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
    hand.add("_local_scalar_dense", TORCH_FN(local_scalar_dense));
    hand.add("conj_physical.out", TORCH_FN(conj_physical_out));
    hand.add("conj_physical_", TORCH_FN(conj_physical_));
    hand.add("equal", TORCH_FN(equal));
    hand.add("record_stream", TORCH_FN(record_stream));
}

} // namespace tenon_torch

/* Copies look at the bits themselves: resolved in front of one, they would take another copy. */
TORCH_LIBRARY_IMPL(aten, Negative, m) {
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
