/* What a call costs when there is nothing to compute: the operators, recording, backward, and the
 * start of a process. The rows inside the library are in internals.c. */
#include "bench/tenon.h"

/* ---- calls ------------------------------------------------------------------------------- */

static tn_tensor *one_element(void) {
    static const float value = 1.0f;
    return tn_keep(tn_from_data(&value, TN_SHAPE(1), TN_F32, bench_device));
}

/* A row's tensors, made when it first runs. `a` requires a gradient in the rows that record. */
typedef struct operands {
    tn_tensor *a, *b;
} operands;

static operands plain, recorded;

static void make(operands *o, bool requires_grad) {
    TN_SCOPE;
    if (o->a)
        return;
    o->a = one_element();
    o->b = one_element();
    if (requires_grad)
        tn_set_requires_grad(o->a, true);
}

static double add(uint64_t n) {
    make(&plain, false);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_free(tn_add(plain.a, plain.b));
    return bench_seconds(start);
}

static double add_in_place(uint64_t n) {
    TN_SCOPE;
    make(&plain, false);
    tn_tensor *sum = tn_clone(plain.a);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_add_(sum, plain.b);
    return bench_seconds(start);
}

static double add_recording(uint64_t n) {
    make(&recorded, true);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_free(tn_add(recorded.a, recorded.b));
    return bench_seconds(start);
}

/* Nodes of a chain, timed in backward alone: each multiplies its gradient by a constant. */
static double backward_node(uint64_t n) {
    enum { LENGTH = 256 };
    make(&recorded, true);
    double took = 0;
    for (uint64_t done = 0; done < n; done += LENGTH) {
        TN_SCOPE;
        tn_tensor *x = recorded.a;
        for (int i = 0; i < LENGTH; i++)
            x = tn_mul(x, recorded.b);
        double start = bench_now();
        if (tn_backward(x) != TN_OK)
            return -1;
        took += bench_now() - start;
        tn_set_grad(recorded.a, NULL);
    }
    return took / (double)((n + LENGTH - 1) / LENGTH * LENGTH) * (double)n;
}

static double smallest_backward(uint64_t n) {
    make(&recorded, true);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor *loss = tn_mul(recorded.a, recorded.b);
        tn_backward(loss);
        tn_free(loss);
        tn_set_grad(recorded.a, NULL);
    }
    return bench_seconds(start);
}

static double view(uint64_t n) {
    TN_SCOPE;
    tn_tensor *x = tn_empty(TN_SHAPE(2, 3), TN_F32, bench_device);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_free(tn_view(x, TN_SHAPE(6)));
    return bench_seconds(start);
}

static double empty(uint64_t n) {
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_free(tn_empty(TN_SHAPE(1), TN_F32, bench_device));
    return bench_seconds(start);
}

/* ---- a fresh process --------------------------------------------------------------------- */

/* The first result: plugin found and loaded, device opened, an operator run, its value read. */
static double first_result(uint32_t n_threads) {
    TN_SCOPE;
    float two = 2;
    tn_tensor *x = tn_from_data(&two, TN_SHAPE(1), TN_F32, tn_default_device());
    double value = 0;
    return tn_item(tn_add(x, x), &value) == TN_OK && value == 4 ? value : -1;
}

static double first_result_resident(uint32_t n_threads) {
    return first_result(n_threads) < 0 ? -1 : bench_resident("VmRSS");
}

static const bench_row rows[] = {
    {"add", "add of two one-element f32 tensors, result made and freed", "ns", .run = add},
    {"add-in-place", "the same into the first", "ns", .run = add_in_place},
    {"add-recording", "add, recording a gradient", "ns", .run = add_recording},
    {"backward-node", "one node of a backward pass (mul by a constant)", "ns",
     .run = backward_node},
    {"backward-smallest", "forward mul and the smallest whole backward()", "ns",
     .run = smallest_backward},
    {"view", "view of another shape, made and freed", "ns", .run = view},
    {"empty", "uninitialised one-element tensor, made and freed", "ns", .run = empty},
    {"start", "process start to first result, plugin loaded", "ms", .child = first_result,
     .times_child = true},
    {"start-resident", "resident memory at that point", "MiB", .child = first_result_resident},
};

int main(int argc, char **argv) {
    return bench_tenon_main("overhead", rows, sizeof rows / sizeof rows[0], argc, argv);
}
