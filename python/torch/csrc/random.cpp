/* By hand: what draws numbers. Everything is made of rand, randint and randn of Tenon, whose numbers are the same on every device. */
#include "python/torch/csrc/hand.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/native/Resize.h>

namespace tenon_torch {

namespace {

using at::Generator;
using at::Tensor;
using std::optional;

/* What a factory draws; the device's generator is let go before anything is done with it. */
Tensor drawn(Call &factory, c10::ScalarType type, c10::DeviceIndex index,
             const optional<Generator> &generator) {
    TN_SCOPE;
    DrawFrom draw(generator, index);
    return factory.dtype(type).device(index).one();
}

/* Uniform in [0, 1), in self's shape; f64 for what f32 would round. */
Tensor uniform(const Tensor &self, c10::ScalarType type, const optional<Generator> &generator) {
    return drawn(Call("rand").ints(self.sizes()), type, self.device().index(), generator);
}

c10::ScalarType computed_in(const Tensor &self) {
    return self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

Tensor &bernoulli_float(Tensor &self, double p, optional<Generator> generator) {
    TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
    return self.copy_(uniform(self, at::kFloat, generator).lt(p));
}

Tensor &bernoulli_tensor(Tensor &self, const Tensor &p, optional<Generator> generator) {
    return self.copy_(uniform(self, at::kFloat, generator).lt(p.to(self.device())));
}

Tensor &bernoulli_out(const Tensor &self, optional<Generator> generator, Tensor &out) {
    at::native::resize_output(out, self.sizes());
    return bernoulli_tensor(out, self, std::move(generator));
}

Tensor bernoulli(const Tensor &self, optional<Generator> generator) {
    Tensor result = at::empty_like(self);
    return bernoulli_tensor(result, self, std::move(generator));
}

/* -log(1 - u) / lambd: u is never 1. */
Tensor &exponential(Tensor &self, double lambd, optional<Generator> generator) {
    TORCH_CHECK(lambd > 0, "exponential_ expects lambda > 0, but found lambda=", lambd);
    return self.copy_(uniform(self, computed_in(self), generator).neg_().log1p_().mul_(-1 / lambd));
}

Tensor &cauchy(Tensor &self, double median, double sigma, optional<Generator> generator) {
    TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0, but found sigma=", sigma);
    return self.copy_(uniform(self, computed_in(self), generator)
                          .sub_(0.5)
                          .mul_(M_PI)
                          .tan_()
                          .mul_(sigma)
                          .add_(median));
}

Tensor &geometric(Tensor &self, double p, optional<Generator> generator) {
    TORCH_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
    return self.copy_(uniform(self, computed_in(self), generator)
                          .neg_()
                          .log1p_()
                          .div_(std::log1p(-p))
                          .floor_()
                          .add_(1));
}

Tensor &normal_(Tensor &self, double mean, double deviation, optional<Generator> generator) {
    TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
    TN_SCOPE;
    DrawFrom draw(generator, self.device().index());
    Call("normal_").tensor(self).number(mean).number(deviation).results();
    return self;
}

Tensor &log_normal(Tensor &self, double mean, double deviation, optional<Generator> generator) {
    return normal_(self, mean, deviation, std::move(generator)).exp_();
}

Tensor normal_of(const at::IntArrayRef sizes, const Tensor &like, optional<Generator> generator) {
    Tensor result = at::empty(sizes, like.options());
    return normal_(result, 0, 1, std::move(generator));
}

Tensor normal_tensors(const Tensor &mean, const Tensor &deviation, optional<Generator> generator) {
    TORCH_CHECK(mean.device() == deviation.device(), "normal: mean is on ", mean.device(),
                ", std on ", deviation.device());
    auto sizes = at::infer_size(mean.sizes(), deviation.sizes());
    return normal_of(sizes, mean, std::move(generator)).mul_(deviation).add_(mean);
}

Tensor normal_mean(const Tensor &mean, double deviation, optional<Generator> generator) {
    return normal_of(mean.sizes(), mean, std::move(generator)).mul_(deviation).add_(mean);
}

Tensor normal_deviation(double mean, const Tensor &deviation, optional<Generator> generator) {
    return normal_of(deviation.sizes(), deviation, std::move(generator)).mul_(deviation).add_(mean);
}

/* Integers in [from, to). */
Tensor &integers(Tensor &self, int64_t from, int64_t to, const optional<Generator> &generator) {
    TORCH_CHECK(from < to, "random_ expects 'from' to be less than 'to', but got from=", from,
                " >= to=", to);
    return self.copy_(drawn(Call("randint").integer(from).integer(to).ints(self.sizes()), at::kLong,
                            self.device().index(), generator));
}

/* The end of what self can hold: for floats up to where integers are exact. */
int64_t end_of(const Tensor &self) {
    switch (self.scalar_type()) {
    case at::kBool:
        return 2;
    case at::kByte:
        return 256;
    case at::kChar:
        return 128;
    case at::kShort:
        return 32768;
    case at::kInt:
        return int64_t{1} << 31;
    case at::kHalf:
        return (1 << 11) + 1;
    case at::kBFloat16:
        return (1 << 8) + 1;
    case at::kFloat:
        return (1 << 24) + 1;
    case at::kDouble:
        return (int64_t{1} << 53) + 1;
    default:
        return INT64_MAX;
    }
}

Tensor &random_(Tensor &self, optional<Generator> generator) {
    return integers(self, 0, end_of(self), generator);
}

Tensor &random_to(Tensor &self, int64_t to, optional<Generator> generator) {
    return integers(self, 0, to, generator);
}

Tensor &random_from(Tensor &self, int64_t from, optional<int64_t> to,
                    optional<Generator> generator) {
    return integers(self, from, to.value_or(end_of(self)), generator);
}

Tensor &randperm_out(int64_t n, optional<Generator> generator, Tensor &out) {
    Tensor result =
        drawn(Call("randperm").integer(n), out.scalar_type(), out.device().index(), generator);
    at::native::resize_output(out, result.sizes());
    return out.copy_(result);
}

} // namespace

void add_random(Hand &hand) {
    hand.add("bernoulli", TORCH_FN(bernoulli));
    hand.add("bernoulli.out", TORCH_FN(bernoulli_out));
    hand.add("bernoulli_.float", TORCH_FN(bernoulli_float));
    hand.add("bernoulli_.Tensor", TORCH_FN(bernoulli_tensor));
    hand.add("exponential_", TORCH_FN(exponential));
    hand.add("cauchy_", TORCH_FN(cauchy));
    hand.add("geometric_", TORCH_FN(geometric));
    hand.add("log_normal_", TORCH_FN(log_normal));
    hand.add("normal_", TORCH_FN(normal_));
    hand.add("normal.Tensor_Tensor", TORCH_FN(normal_tensors));
    hand.add("normal.Tensor_float", TORCH_FN(normal_mean));
    hand.add("normal.float_Tensor", TORCH_FN(normal_deviation));
    hand.add("random_", TORCH_FN(random_));
    hand.add("random_.to", TORCH_FN(random_to));
    hand.add("random_.from", TORCH_FN(random_from));
    hand.add("randperm.generator_out", TORCH_FN(randperm_out));
}

} // namespace tenon_torch
