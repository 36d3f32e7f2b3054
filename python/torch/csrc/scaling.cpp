/* By hand: what torch.amp.GradScaler calls. */
#include "python/torch/csrc/hand.h"

#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace tenon_torch {

namespace {

using at::Tensor;

/* Gradients are multiplied by inv_scale; found_inf becomes 1 where one of them was not finite. */
void unscale(at::TensorList gradients, Tensor &found_inf, const Tensor &inv_scale) {
    for (const Tensor &gradient : gradients) {
        found_inf.copy_(
            found_inf.maximum(gradient.isfinite().logical_not().any().to(found_inf.scalar_type())));
        Tensor(gradient).mul_(inv_scale);
    }
}

/* Back off after a step that overflowed, grow after `interval` steps that did not, unless the scale would not be finite. */
Tensor &update_scale(Tensor &scale, Tensor &tracker, const Tensor &found_inf, double growth,
                     double backoff, int64_t interval) {
    Tensor overflowed = found_inf.gt(0), steps = tracker.add(1), grows = steps.eq(interval);
    Tensor larger = scale.mul(growth);
    Tensor grown = at::where(grows.logical_and(larger.isfinite()), larger, scale);
    scale.copy_(at::where(overflowed, scale.mul(backoff), grown));
    tracker.copy_(at::where(overflowed.logical_or(grows), at::zeros_like(tracker), steps));
    return scale;
}

} // namespace

void add_scaling(Hand &hand) {
    hand.add("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(unscale));
    hand.add("_amp_update_scale_", TORCH_FN(update_scale));
}

} // namespace tenon_torch
