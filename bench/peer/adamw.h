/* AdamW in one fused kernel, as torch.optim.AdamW(fused=True) runs it: the fastest form of PyTorch's.
 * libtorch's own optimizer in C++ launches some ten kernels for each parameter. */
#ifndef TNI_BENCH_PEER_ADAMW_H
#define TNI_BENCH_PEER_ADAMW_H

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <vector>

struct peer_adamw {
    std::vector<at::Tensor> parameters, means, squares, steps;
    double lr;

    explicit peer_adamw(std::vector<at::Tensor> given, double lr = 1e-6)
        : parameters(std::move(given)), lr(lr) {
        for (const at::Tensor &p : parameters) {
            means.push_back(at::zeros_like(p));
            squares.push_back(at::zeros_like(p));
            steps.push_back(at::zeros({}, p.options().requires_grad(false)));
        }
    }
    void step() {
        at::NoGradGuard no_grad;
        std::vector<at::Tensor> gradients;
        for (const at::Tensor &p : parameters)
            gradients.push_back(p.grad());
        at::_foreach_add_(steps, 1);
        at::_fused_adamw_(parameters, gradients, means, squares, {}, steps, lr, 0.9, 0.999, 1e-2,
                          1e-8, false, false);
    }
    void zero_grad() {
        for (at::Tensor &p : parameters)
            p.mutable_grad().reset();
    }
};

#endif
