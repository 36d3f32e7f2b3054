/* kernels.cpp: the first kernels, in f32 and f64. The core brings every other call into the shape that a
 * record's flags promise to take. */
#include "kernels.h"
#include "internal.h"

#include <algorithm>
#include <vector>

namespace npu {

/* All devices are alike. */
tn_status accepts(tn_device_impl *device, const tn_kernel *kernel) {
    return TN_OK;
}

/* Calls body(T()) for the type T of a dtype. */
template <class Body> void with_type(tn_dtype dtype, Body &&body) {
    switch (dtype) {
    case TN_F32:
        return body(float());
    case TN_F64:
        return body(double());
    default:
        throw tenon::error(TN_ERR_DTYPE, "a kernel was called with dtype %d", dtype);
    }
}

constexpr uint64_t floats = tenon::dtype_set<float, double>;

/* The first element of a view, of a dtype that must be T's. */
template <class T> T *data(const tn_tensor_view &view) {
    return tenon::data<T>(view, address(view.memory, 0));
}

/* ---- add and fill: contiguous, nothing else ---------------------------------------------- */

/* out = self + alpha * other */
static void add(const tn_call *call) {
    const tn_tensor_view &self = tenon::arg(call, TN_ARG_add_self).tensor();
    const tn_tensor_view &other = tenon::arg(call, TN_ARG_add_other).tensor();
    with_type(self.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *a = data<const T>(self), *b = data<const T>(other);
        const T alpha = tenon::arg(call, TN_ARG_add_alpha).scalar<T>();
        T *out = data<T>(*call->outs[0]);
        for (int64_t i = 0; i < self.numel; i++)
            out[i] = a[i] + alpha * b[i];
    });
}

constexpr tn_kernel kernel_add =
    tenon::kernel(TN_KERNEL_add, TN_KERNEL_HASH_add).dtypes(floats).run<add>();

static void fill(const tn_call *call) {
    const tn_tensor_view &out = *call->outs[0];
    with_type(out.dtype, [&](auto zero) {
        using T = decltype(zero);
        std::fill_n(data<T>(out), out.numel, tenon::arg(call, TN_ARG_fill_value).scalar<T>());
    });
}

constexpr tn_kernel kernel_fill =
    tenon::kernel(TN_KERNEL_fill, TN_KERNEL_HASH_fill).dtypes(floats).run<fill>();

/* ---- copy: any strides, so that the core can make anything contiguous -------------------- */

/* Walks over a view in row-major order. */
class walk {
  public:
    explicit walk(const tn_tensor_view &view)
        : sizes_(tenon::sizes(view)), strides_(tenon::strides(view)) {}
    int64_t offset() const {
        return offset_;
    }
    void next() {
        for (size_t d = sizes_.size; d-- > 0;) {
            offset_ += strides_[d];
            if (++index_[d] < sizes_[d])
                return;
            offset_ -= strides_[d] * sizes_[d];
            index_[d] = 0;
        }
    }

  private:
    tenon::span<const int64_t> sizes_, strides_;
    int64_t index_[TN_MAX_RANK] = {}, offset_ = 0;
};

static void copy(const tn_call *call) {
    const tn_tensor_view &self = tenon::arg(call, TN_ARG_copy_self).tensor();
    const tn_tensor_view &out = *call->outs[0];
    with_type(self.dtype, [&](auto from_zero) {
        with_type(out.dtype, [&](auto to_zero) {
            using From = decltype(from_zero);
            using To = decltype(to_zero);
            const From *in = data<const From>(self);
            To *to = data<To>(out);
            walk i(self), o(out);
            for (int64_t n = 0; n < out.numel; n++, i.next(), o.next())
                to[o.offset()] = static_cast<To>(in[i.offset()]);
        });
    });
}

constexpr tn_kernel kernel_copy = tenon::kernel(TN_KERNEL_copy, TN_KERNEL_HASH_copy)
                                      .dtypes(floats, floats) /* from, to */
                                      .flags(TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST)
                                      .run<copy>();

/* ---- sum: a plan that is made before the call and used up by it -------------------------- */

/* Where the elements lie that go into one element of the output, from the first of them; and where
 * those first ones lie, one for each element of the output. */
struct sum_plan {
    using list = std::vector<int64_t, tenon::host_allocator<int64_t>>;
    list within, starts;

    explicit sum_plan(const tn_host *host) : within(host), starts(host) {}
};

static void prepare_sum(const tn_call *call, tn_plan *out, tenon::host_ptr<sum_plan> &plan) {
    const tn_tensor_view &self = tenon::arg(call, TN_ARG_sum_self).tensor();
    const tn_host *host = host_of(call->device);
    plan = tenon::make_host<sum_plan>(host, host);
    plan->within.assign(1, 0);
    plan->starts.assign(1, 0);
    const auto dims = tenon::arg(call, TN_ARG_sum_dim).ints();
    for (int32_t d = 0; d < self.rank; d++) {
        bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
        sum_plan::list &list = reduced ? plan->within : plan->starts, longer(host);
        longer.reserve(list.size() * static_cast<size_t>(self.sizes[d]));
        for (int64_t before : list)
            for (int64_t i = 0; i < self.sizes[d]; i++)
                longer.push_back(before + i * self.strides[d]);
        list.swap(longer);
    }
}

static void sum(const tn_call *call, tenon::host_ptr<sum_plan> plan) {
    const float *self = data<const float>(tenon::arg(call, TN_ARG_sum_self).tensor());
    float *out = data<float>(*call->outs[0]);
    for (int64_t start : plan->starts) {
        double total = 0; /* wider than the elements, as the table of kernels asks */
        for (int64_t offset : plan->within)
            total += self[start + offset];
        *out++ = static_cast<float>(total);
    }
}

constexpr tn_kernel kernel_sum = tenon::kernel(TN_KERNEL_sum, TN_KERNEL_HASH_sum)
                                     .dtypes(tenon::dtype_set<float>)
                                     .planned<prepare_sum, sum>();

} // namespace npu
