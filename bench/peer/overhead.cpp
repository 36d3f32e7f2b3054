/* What a call of libtorch costs when there is nothing to compute: ../overhead.c and ../internals.c,
 * row by row. */
#include "bench/peer/peer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>
#include <torch/torch.h>

/* ---- calls ------------------------------------------------------------------------------- */

struct operands {
    at::Tensor a, b;
    explicit operands(bool requires_grad)
        : a(at::ones({1}).set_requires_grad(requires_grad)), b(at::ones({1})) {}
};

static double add(uint64_t n) {
    static operands o(false);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        at::add(o.a, o.b);
    return bench_now() - start;
}

static double add_in_place(uint64_t n) {
    static operands o(false);
    at::Tensor sum = o.a.clone();
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        sum.add_(o.b);
    return bench_now() - start;
}

static double add_recording(uint64_t n) {
    static operands o(true);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        at::add(o.a, o.b);
    return bench_now() - start;
}

static double backward_node(uint64_t n) {
    enum { LENGTH = 256 };
    static operands o(true);
    double took = 0;
    for (uint64_t done = 0; done < n; done += LENGTH) {
        at::Tensor x = o.a;
        for (int i = 0; i < LENGTH; i++)
            x = at::mul(x, o.b);
        double start = bench_now();
        x.backward();
        took += bench_now() - start;
        o.a.mutable_grad().reset();
    }
    return took / double((n + LENGTH - 1) / LENGTH * LENGTH) * double(n);
}

static double smallest_backward(uint64_t n) {
    static operands o(true);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        at::mul(o.a, o.b).backward();
        o.a.mutable_grad().reset();
    }
    return bench_now() - start;
}

static double view(uint64_t n) {
    at::Tensor x = at::empty({2, 3});
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        x.view({6});
    return bench_now() - start;
}

static double empty(uint64_t n) {
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        at::empty({1});
    return bench_now() - start;
}

/* ---- the parts of a call ----------------------------------------------------------------- */

static void hop_kernel(const at::Tensor &) {}

static void boxed_kernel(const c10::OperatorHandle &, torch::jit::Stack *stack) {
    stack->pop_back();
    stack->pop_back();
}

TORCH_LIBRARY(bench, m) {
    m.def("hop(Tensor x) -> ()");
    m.def("boxed(Tensor x, Tensor y) -> ()");
    m.impl("hop", c10::DispatchKey::CPU, hop_kernel);
    m.impl("boxed", c10::DispatchKey::CPU,
           torch::CppFunction::makeFromBoxedFunction<boxed_kernel>());
}

/* Below Autograd, whose fallback for operators without a derivative would be measured else. */
static double hop(uint64_t n) {
    at::AutoDispatchBelowAutograd below;
    auto op = c10::Dispatcher::singleton()
                  .findSchemaOrThrow("bench::hop", "")
                  .typed<void(const at::Tensor &)>();
    at::Tensor x = at::ones({1});
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        op.call(x);
    return bench_now() - start;
}

static double boxed(uint64_t n) {
    at::AutoDispatchBelowAutograd below;
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow("bench::boxed", "");
    at::Tensor x = at::ones({1});
    torch::jit::Stack stack;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        stack.emplace_back(x);
        stack.emplace_back(x);
        op.callBoxed(&stack);
    }
    return bench_now() - start;
}

static double allocate(uint64_t n) {
    c10::Allocator *allocator = c10::GetCPUAllocator();
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        c10::DataPtr block = allocator->allocate(4);
        void *p = block.get();
        BENCH_OPAQUE(p);
    }
    return bench_now() - start;
}

/* ---- a fresh process: a C++ program; start.py is the Python one -------------------------- */

static double first_result(uint32_t) {
    at::Tensor x = at::full({1}, 2.0f);
    return at::add(x, x).item<float>();
}

static double first_result_resident(uint32_t n_threads) {
    first_result(n_threads);
    return bench_resident("VmRSS");
}

const bench_row overhead_rows[] = {
    {"add", "at::add", "ns", add, nullptr, nullptr, false},
    {"add-in-place", "Tensor::add_", "ns", add_in_place, nullptr, nullptr, false},
    {"add-recording", "at::add, requires_grad", "ns", add_recording, nullptr, nullptr, false},
    {"backward-node", "MulBackward0 in a chain", "ns", backward_node, nullptr, nullptr, false},
    {"backward-smallest", "at::mul, backward()", "ns", smallest_backward, nullptr, nullptr, false},
    {"view", "Tensor::view", "ns", view, nullptr, nullptr, false},
    {"empty", "at::empty", "ns", empty, nullptr, nullptr, false},
    {"hop", "typed call of an empty operator", "ns", hop, nullptr, nullptr, false},
    {"boxed", "callBoxed of an empty operator", "ns", boxed, nullptr, nullptr, false},
    {"allocator", "c10 CPU allocator", "ns", allocate, nullptr, nullptr, false},
    {"start-cpp", "a program linked to libtorch", "ms", nullptr, nullptr, first_result, true},
    {"start-cpp-resident", "its memory", "MiB", nullptr, nullptr, first_result_resident, false},
};
const size_t n_overhead_rows = sizeof overhead_rows / sizeof overhead_rows[0];
