/* By hand: layers of networks whose operators differ by more than names. */
#include "python/torch/csrc/hand.h"

#include <algorithm>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace tenon_torch {

namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

/* ---- convolutions ------------------------------------------------------------------------ */

struct Geometry {
    IntArrayRef stride, padding, dilation;
    int64_t groups;
};

Tensor forward(const Tensor &input, const Tensor &weight, const Tensor &bias, const Geometry &g) {
    static const char *const operators[] = {"conv1d", "convolution", "conv3d"};
    int64_t dims = input.dim() - 2;
    TORCH_CHECK_NOT_IMPLEMENTED(dims >= 1 && dims <= 3, "convolutions over ", dims, " dimensions");
    TN_SCOPE;
    return Call(operators[dims - 1])
        .tensor(input)
        .tensor(weight)
        .tensor(bias)
        .ints(g.stride)
        .ints(g.padding)
        .ints(g.dilation)
        .integer(g.groups)
        .one();
}

/* Of the two operators whose arguments are a gradient, what it is combined with, and the size of what is wanted. */
Tensor backward(const char *op, const Tensor &grad, const Tensor &with, IntArrayRef size,
                const Geometry &g) {
    TN_SCOPE;
    return Call(op)
        .tensor(grad)
        .tensor(with)
        .ints(size)
        .ints(g.stride)
        .ints(g.padding)
        .ints(g.dilation)
        .integer(g.groups)
        .one();
}

Tensor to_input(const Tensor &grad, const Tensor &weight, IntArrayRef size, const Geometry &g) {
    return backward("convolution_backward_input", grad, weight, size, g);
}

Tensor to_weight(const Tensor &grad, const Tensor &input, IntArrayRef size, const Geometry &g) {
    return backward("convolution_backward_weight", grad, input, size, g);
}

/* One for each dimension of space, as PyTorch's own kernels take one for all. */
std::vector<int64_t> for_each(IntArrayRef list, int64_t n) {
    if (static_cast<int64_t>(list.size()) == n || list.empty())
        return list.vec();
    return std::vector<int64_t>(static_cast<size_t>(n), list[0]);
}

Tensor transposed_forward(const Tensor &input, const Tensor &weight, const Tensor &bias,
                          const Geometry &g, IntArrayRef more) {
    static const char *const operators[] = {"conv_transpose1d", "conv_transpose2d",
                                            "conv_transpose3d"};
    int64_t dims = input.dim() - 2;
    TORCH_CHECK_NOT_IMPLEMENTED(dims >= 1 && dims <= 3, "convolutions over ", dims, " dimensions");
    TN_SCOPE;
    return Call(operators[dims - 1])
        .tensor(input)
        .tensor(weight)
        .tensor(bias)
        .ints(g.stride)
        .ints(g.padding)
        .ints(more)
        .integer(g.groups)
        .ints(g.dilation)
        .one();
}

Tensor convolution(const Tensor &input, const Tensor &weight, const optional<Tensor> &bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
    int64_t dims = input.dim() - 2;
    auto s = for_each(stride, dims), p = for_each(padding, dims), d = for_each(dilation, dims),
         o = for_each(output_padding, dims);
    Geometry g{s, p, d, groups};
    Tensor b = bias.value_or(Tensor());
    return transposed ? transposed_forward(input, weight, b, g, o) : forward(input, weight, b, g);
}

/* Over three dimensions, over one, and where the transposed one has rows that no window reaches, by Tenon's own gradients: it has operators for two alone, of which the others are made. */
std::array<Tensor, 2> by_gradients(const Tensor &grad, const Tensor &input, const Tensor &weight,
                                   const Geometry &g, bool transposed, IntArrayRef more) {
    static const char *const plain[] = {"conv1d", "conv2d", "conv3d"}, *const across[] = {
                                                                           "conv_transpose1d",
                                                                           "conv_transpose2d",
                                                                           "conv_transpose3d"};
    TN_SCOPE;
    tn_tensor *of[] = {check(tn_set_requires_grad(borrow_another(input), true)),
                       check(tn_set_requires_grad(borrow_another(weight), true))};
    Call call((transposed ? across : plain)[input.dim() - 3]);
    call.tensor(of[0]).tensor(of[1]).none().ints(g.stride).ints(g.padding);
    tn_tensor *result = (transposed ? call.ints(more).integer(g.groups).ints(g.dilation)
                                    : call.ints(g.dilation).integer(g.groups))
                            .results()[0];
    tn_tensor *from = borrow(grad), *gradients[2] = {};
    check(tn_gradients(&result, &from, 1, of, 2, false, false, false, gradients));
    return {adopt(gradients[0]), adopt(gradients[1])};
}

/* The transposed one is the other's gradient: its own gradients are the convolution, and the weight's with input and
 * gradient exchanged. */
std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor &grad, const Tensor &input,
                                                        const Tensor &weight, IntArrayRef stride,
                                                        IntArrayRef padding, IntArrayRef dilation,
                                                        bool transposed, IntArrayRef output_padding,
                                                        int64_t groups, std::array<bool, 3> mask) {
    int64_t dims = input.dim() - 2;
    TORCH_CHECK_NOT_IMPLEMENTED(dims >= 1 && dims <= 3, "convolutions over ", dims, " dimensions");
    auto s = for_each(stride, dims), p = for_each(padding, dims), d = for_each(dilation, dims),
         o = for_each(output_padding, dims);
    Geometry g{s, p, d, groups};
    std::array<Tensor, 2> grads;
    Tensor grad_bias;
    bool uneven = transposed && std::any_of(o.begin(), o.end(), [](int64_t n) { return n != 0; });
    if (dims != 2 || uneven) {
        if (mask[0] || mask[1])
            grads = by_gradients(grad, input, weight, g, transposed, o);
    } else {
        if (mask[0])
            grads[0] = transposed ? forward(grad, weight, {}, g)
                                  : to_input(grad, weight, input.sizes(), g);
        if (mask[1])
            grads[1] = transposed ? to_weight(input, grad, weight.sizes(), g)
                                  : to_weight(grad, input, weight.sizes(), g);
    }
    if (mask[2]) {
        std::vector<int64_t> others;
        for (int64_t i = 0; i < grad.dim(); i++)
            if (i != 1)
                others.push_back(i);
        grad_bias = grad.sum(others);
    }
    return {mask[0] ? grads[0] : Tensor(), mask[1] ? grads[1] : Tensor(), grad_bias};
}

/* ---- batch normalization ----------------------------------------------------------------- */

std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor &input, const optional<Tensor> &weight,
                                              const optional<Tensor> &bias,
                                              const optional<Tensor> &mean,
                                              const optional<Tensor> &var, bool training,
                                              double momentum, double eps) {
    TN_SCOPE;
    auto r = Call("native_batch_norm")
                 .tensor(input)
                 .tensor(weight.value_or(Tensor()))
                 .tensor(bias.value_or(Tensor()))
                 .tensor(mean.value_or(Tensor()))
                 .tensor(var.value_or(Tensor()))
                 .flag(training)
                 .number(momentum)
                 .number(eps)
                 .run();
    if (training)
        return {r[0], r[1], r[2]};
    Tensor nothing = at::empty(
        {0}, r[1].options()); /* as PyTorch's own kernels: backward takes the running ones */
    return {r[0], nothing, nothing};
}

std::tuple<Tensor, Tensor, Tensor>
batch_norm_legit(const Tensor &input, const optional<Tensor> &weight, const optional<Tensor> &bias,
                 Tensor &mean, Tensor &var, bool training, double momentum, double eps) {
    return batch_norm(input, weight, bias, mean, var, training, momentum, eps);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_without(const Tensor &input,
                                                      const optional<Tensor> &weight,
                                                      const optional<Tensor> &bias, bool training,
                                                      double momentum, double eps) {
    return batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}

/* Ioffe and Szegedy, 2015: with x' the normalized input, the gradient of x is weight * invstd * (g - mean(g) - x' mean(g x')), the
 * means over all but the channels; where the statistics are given, weight * invstd * g. */
std::tuple<Tensor, Tensor, Tensor>
batch_norm_backward(const Tensor &grad, const Tensor &input, const optional<Tensor> &weight,
                    const optional<Tensor> &running_mean, const optional<Tensor> &running_var,
                    const optional<Tensor> &save_mean, const optional<Tensor> &save_invstd,
                    bool train, double eps, std::array<bool, 3> mask) {
    auto type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1), others;
    shape[1] = input.size(1);
    for (int64_t i = 0; i < input.dim(); i++)
        if (i != 1)
            others.push_back(i);
    double count = static_cast<double>(input.numel()) /
                   static_cast<double>(std::max<int64_t>(input.size(1), 1));
    Tensor mean = (train ? *save_mean : *running_mean).to(type),
           invstd = train ? save_invstd->to(type) : running_var->to(type).add(eps).rsqrt();
    Tensor g = grad.to(type),
           x = input.to(type).sub(mean.reshape(shape)).mul_(invstd.reshape(shape));
    Tensor sum = g.sum(others), product = (g * x).sum(others);
    Tensor grad_input;
    if (mask[0]) {
        Tensor scale = weight && weight->defined() ? weight->to(type) * invstd : invstd;
        if (train)
            g = g - (sum / count).reshape(shape) - x * (product / count).reshape(shape);
        grad_input = (g * scale.reshape(shape)).to(input.scalar_type());
    }
    auto to = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
    return {grad_input, mask[1] ? product.to(to) : Tensor(), mask[2] ? sum.to(to) : Tensor()};
}

/* ---- losses over classes ----------------------------------------------------------------- */

/* What Tenon's operator has as a flag; weights and sums go by gathers, in PyTorch's words. */
bool is_mean(const optional<Tensor> &weight, int64_t reduction) {
    return reduction == at::Reduction::Mean && (!weight || !weight->defined());
}

/* -weight[target], 0 for what is ignored, and the weights themselves. */
std::pair<Tensor, Tensor> weights_of(const Tensor &target, const optional<Tensor> &weight,
                                     int64_t ignore, const Tensor &like) {
    Tensor counted = target.ne(ignore);
    Tensor safe = at::where(counted, target, at::zeros_like(target));
    Tensor w = weight && weight->defined()
                   ? weight->index_select(0, safe.reshape(-1)).reshape(safe.sizes())
                   : at::ones_like(target, like.options());
    return {safe, w * counted};
}

/* Dimension of the classes: 1 beside a batch, 0 without. */
int64_t class_dim(const Tensor &self) {
    return self.dim() == 1 ? 0 : 1;
}

std::tuple<Tensor, Tensor> nll_forward(const Tensor &self, const Tensor &target,
                                       const optional<Tensor> &weight, int64_t reduction,
                                       int64_t ignore) {
    if (is_mean(weight, reduction) && self.dim() == 2) {
        TN_SCOPE;
        auto results =
            Call("nll_loss_forward").tensor(self).tensor(target).flag(true).integer(ignore).run();
        return {results[0], results[1]};
    }
    auto [safe, w] = weights_of(target, weight, ignore, self);
    Tensor total = w.sum();
    Tensor losses = self.gather(class_dim(self), safe.unsqueeze(class_dim(self)))
                        .squeeze(class_dim(self))
                        .neg() *
                    w;
    if (reduction == at::Reduction::None)
        return {losses, at::zeros({}, self.options())};
    return {reduction == at::Reduction::Sum ? losses.sum() : losses.sum() / total, total};
}

Tensor nll_backward(const Tensor &grad, const Tensor &self, const Tensor &target,
                    const optional<Tensor> &weight, int64_t reduction, int64_t ignore,
                    const Tensor &total) {
    if (is_mean(weight, reduction) && self.dim() == 2) {
        TN_SCOPE;
        return Call("nll_loss_backward")
            .tensor(grad)
            .tensor(target)
            .tensor(total)
            .ints(self.sizes())
            .flag(true)
            .integer(ignore)
            .one();
    }
    auto [safe, w] = weights_of(target, weight, ignore, self);
    Tensor each = -(reduction == at::Reduction::Mean ? grad / total : grad) * w;
    return at::zeros_like(self).scatter(class_dim(self), safe.unsqueeze(class_dim(self)),
                                        each.unsqueeze(class_dim(self)));
}

/* ---- attention --------------------------------------------------------------------------- */

using Attention =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Attention attention(const Tensor &query, const Tensor &key, const Tensor &value,
                    const optional<Tensor> &mask, double, bool causal, bool,
                    optional<double> scale) {
    TN_SCOPE;
    Call call("scaled_dot_product_flash_attention");
    call.tensor(query).tensor(key).tensor(value).tensor(mask.value_or(Tensor())).flag(causal);
    auto results = scale ? call.number(*scale).run() : call.none().run();
    Tensor none = at::empty({0}, query.options().dtype(at::kLong));
    return {results[0],      results[1], none, none, query.sym_size(2),
            key.sym_size(2), none,       none, none};
}

std::tuple<Tensor, Tensor, Tensor, Tensor>
attention_backward(const Tensor &grad, const Tensor &query, const Tensor &key, const Tensor &value,
                   const Tensor &mask, std::array<bool, 4>, const Tensor &out,
                   const Tensor &logsumexp, const Tensor &, const Tensor &, c10::SymInt,
                   c10::SymInt, double, bool causal, const Tensor &, const Tensor &,
                   optional<double> scale) {
    TN_SCOPE;
    Call call("scaled_dot_product_flash_attention_backward");
    call.tensor(grad)
        .tensor(query)
        .tensor(key)
        .tensor(value)
        .tensor(out)
        .tensor(logsumexp)
        .tensor(mask)
        .flag(causal);
    auto results = scale ? call.number(*scale).run() : call.none().run();
    return {results[0], results[1], results[2], Tensor()};
}

/* PyTorch's numbers for who computes attention: 0 composes it, 4 is the one that devices bring. */
int64_t attention_choice(const Tensor &query, const Tensor &key, const Tensor &value,
                         const optional<Tensor> &mask, double dropout, bool causal,
                         optional<double>, bool grouped) {
    bool fits = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && dropout == 0 &&
                at::isFloatingType(query.scalar_type()) && query.size(3) == value.size(3) &&
                query.numel() > 0 && key.numel() > 0 && query.size(0) == key.size(0) &&
                key.size(0) == value.size(0) && key.size(1) == value.size(1) &&
                key.size(2) == value.size(2) && (grouped || query.size(1) == key.size(1));
    bool with_mask = mask && mask->defined();
    return fits && !(with_mask && (causal || mask->requires_grad())) ? 4 : 0;
}

} // namespace

void add_networks(Hand &hand) {
    hand.add("convolution_overrideable", TORCH_FN(convolution));
    hand.add("convolution_backward_overrideable", TORCH_FN(convolution_backward));
    hand.add("native_batch_norm", TORCH_FN(batch_norm));
    hand.add("_native_batch_norm_legit", TORCH_FN(batch_norm_legit));
    hand.add("_native_batch_norm_legit.no_stats", TORCH_FN(batch_norm_without));
    hand.add("native_batch_norm_backward", TORCH_FN(batch_norm_backward));
    hand.add("nll_loss_forward", TORCH_FN(nll_forward));
    hand.add("nll_loss_backward", TORCH_FN(nll_backward));
    hand.add("nll_loss2d_forward", TORCH_FN(nll_forward));
    hand.add("nll_loss2d_backward", TORCH_FN(nll_backward));
    hand.add("_fused_sdp_choice", TORCH_FN(attention_choice));
    hand.add("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attention));
    hand.add("_scaled_dot_product_fused_attention_overrideable_backward",
             TORCH_FN(attention_backward));
}

} // namespace tenon_torch
