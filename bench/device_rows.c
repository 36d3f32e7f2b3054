/* See device.h. */
#include "bench/device.h"

#include "bench/tenon.h"
#include "bench/training.h"

/* Kept for the whole run; made when a row first asks. */
static tn_tensor *randn(tn_tensor **slot, tn_ints shape, tn_dtype dtype) {
    TN_SCOPE;
    if (!*slot)
        *slot = tn_keep(tn_to_dtype(tn_randn(shape, TN_F32, bench_device), dtype));
    return *slot;
}

/* ---- the host's part of a call ----------------------------------------------------------- */

/* Calls until they return, each of which queues so many launches; they are waited for while the clock
 * stands. */
static double host_time(uint64_t n, uint64_t launches, void (*call)(void)) {
    double took = 0;
    uint64_t group = BENCH_LAUNCHES / launches;
    for (uint64_t done = 0; done < n; done += group) {
        uint64_t end = n - done < group ? n : done + group;
        if (tn_synchronize(bench_device) != TN_OK)
            return -1;
        double start = bench_now();
        for (uint64_t i = done; i < end; i++)
            call();
        took += bench_now() - start;
    }
    return tn_synchronize(bench_device) == TN_OK && tn_error_status() == TN_OK ? took : -1;
}

/* Of BENCH_ELEMENTS, and of one; the leaves require a gradient. */
static tn_tensor *a, *b, *leaf, *one, *one_leaf;

static void make_operands(void) {
    if (one_leaf)
        return;
    randn(&a, TN_SHAPE(BENCH_ELEMENTS), TN_F32);
    randn(&b, TN_SHAPE(BENCH_ELEMENTS), TN_F32);
    randn(&one, TN_SHAPE(1), TN_F32);
    tn_set_requires_grad(randn(&leaf, TN_SHAPE(BENCH_ELEMENTS), TN_F32), true);
    tn_set_requires_grad(randn(&one_leaf, TN_SHAPE(1), TN_F32), true);
}

static void call_add(void) {
    tn_free(tn_add(a, b));
}

static void call_chain(void) {
    TN_SCOPE;
    tn_tensor *x = a;
    for (int i = 0; i < BENCH_CHAIN; i++)
        x = tn_add(x, b);
}

static void call_copy(void) {
    tn_copy_(a, b);
}

static void call_add_recording(void) {
    tn_free(tn_add(leaf, b));
}

static void call_backward(void) {
    tn_tensor *loss = tn_mul(one_leaf, one);
    tn_backward(loss);
    tn_free(loss);
    tn_set_grad(one_leaf, NULL);
}

static tn_tensor *matrix;
static tn_graph *graph;

static void call_product(void) {
    tn_free(tn_matmul(matrix, matrix));
}

static void call_replay(void) {
    tn_graph_replay(graph);
}

static tn_status chain(void *unused) {
    call_chain();
    return tn_error_status();
}

static double launch_add(uint64_t n) {
    make_operands();
    return host_time(n, 1, call_add);
}

static double launch_chain(uint64_t n) {
    make_operands();
    return host_time(n, BENCH_CHAIN, call_chain);
}

static double launch_copy(uint64_t n) {
    make_operands();
    return host_time(n, 1, call_copy);
}

static double launch_product(uint64_t n) {
    randn(&matrix, TN_SHAPE(BENCH_SMALL, BENCH_SMALL), TN_F32);
    return host_time(n, 1, call_product);
}

/* Of the chain. */
static double launch_replay(uint64_t n) {
    make_operands();
    if (!graph && tn_graph_capture(bench_device, chain, NULL, &graph) != TN_OK)
        return -1;
    return host_time(n, BENCH_CHAIN, call_replay);
}

static double launch_recording(uint64_t n) {
    make_operands();
    return host_time(n, 1, call_add_recording);
}

static double launch_backward(uint64_t n) {
    make_operands();
    return host_time(n, BENCH_BACKWARD, call_backward);
}

/* ---- memory ------------------------------------------------------------------------------ */

/* n times `call`, which is an expression or a tensor that is freed, and its end on the device. */
#define TIMED(n, call) \
    do { \
        if (tn_synchronize(bench_device) != TN_OK) \
            return -1; \
        double start_ = bench_now(); \
        for (uint64_t repeat_ = 0; repeat_ < (n); repeat_++) \
            (void)(call); \
        tn_synchronize(bench_device); \
        return bench_seconds(start_); \
    } while (0)
#define TIMED_RESULTS(n, call) TIMED(n, (tn_free(call), 0))

static tn_tensor *square(void) {
    static tn_tensor *t;
    return randn(&t, TN_SHAPE(bench_side(), bench_side()), TN_F32);
}

static tn_tensor *other_square(void) {
    static tn_tensor *t;
    return randn(&t, TN_SHAPE(bench_side(), bench_side()), TN_F32);
}

static double add(uint64_t n) {
    tn_tensor *x = square(), *y = other_square();
    TIMED_RESULTS(n, tn_add(x, y));
}

static double relu(uint64_t n) {
    tn_tensor *x = square();
    TIMED_RESULTS(n, tn_relu(x));
}

static double copy(uint64_t n) {
    tn_tensor *x = square(), *y = other_square();
    TIMED(n, tn_copy_(y, x));
}

static double transpose(uint64_t n) {
    TN_SCOPE;
    tn_tensor *x = tn_transpose(square(), 0, 1), *y = other_square();
    TIMED(n, tn_copy_(y, x));
}

static double sum(uint64_t n) {
    tn_tensor *x = square();
    TIMED_RESULTS(n, tn_sum(x));
}

static double sum_rows(uint64_t n) {
    tn_tensor *x = square();
    TIMED_RESULTS(n, tn_sum_dim(x, TN_DIMS(1)));
}

static double softmax(uint64_t n) {
    tn_tensor *x = square();
    TIMED_RESULTS(n, tn_softmax(x, 1));
}

static double layer_norm(uint64_t n) {
    static tn_tensor *scale, *shift;
    tn_tensor *x = square();
    randn(&scale, TN_SHAPE(bench_side()), TN_F32);
    randn(&shift, TN_SHAPE(bench_side()), TN_F32);
    TIMED_RESULTS(n, tn_layer_norm(x, TN_SHAPE(bench_side()), scale, shift));
}

static double adamw(uint64_t n) {
    static tn_tensor *weight;
    static tn_optimizer *optimizer;
    if (!optimizer) {
        tn_set_requires_grad(randn(&weight, TN_SHAPE(bench_side(), bench_side()), TN_F32), true);
        tn_set_grad(weight, square());
        optimizer = tn_adamw_create(&weight, 1, NULL);
        if (!optimizer)
            return -1;
    }
    TIMED(n, tn_optimizer_step(optimizer));
}

/* ---- products and convolutions ----------------------------------------------------------- */

#define TN_DTYPE_OF_f32 TN_F32
#define TN_DTYPE_OF_f16 TN_F16
#define TN_DTYPE_OF_bf16 TN_BF16

#define PRODUCT(dtype, name, m_, n_, k_) \
    static double gemm_##dtype##_##name(uint64_t n) { \
        static tn_tensor *x, *y; \
        int64_t k = bench_size(k_); \
        randn(&x, TN_SHAPE(bench_size(m_), k), TN_DTYPE_OF_##dtype); \
        randn(&y, TN_SHAPE(k, bench_size(n_)), TN_DTYPE_OF_##dtype); \
        TIMED_RESULTS(n, tn_matmul(x, y)); \
    }
BENCH_PRODUCTS(PRODUCT)

#define CONVOLUTION(dtype, name, images, in, side, out, padding) \
    static double conv_##dtype##_##name(uint64_t n) { \
        static tn_tensor *x, *w; \
        int64_t c = bench_size(in), s = bench_size(side); \
        randn(&x, TN_SHAPE(bench_size(images), c, s, s), TN_DTYPE_OF_##dtype); \
        randn(&w, TN_SHAPE(bench_size(out), c, 3, 3), TN_DTYPE_OF_##dtype); \
        TIMED_RESULTS(n, \
                      tn_conv2d(x, w, TN_NONE, TN_SHAPE(1, 1), TN_SHAPE((padding), (padding)))); \
    }
BENCH_CONVOLUTIONS(CONVOLUTION)

/* ---- a training step as a graph ---------------------------------------------------------- */

static tn_status step(void *user) {
    return training_step(user, 0);
}

static double mlp_graph(uint64_t n) {
    static training t;
    static tn_graph *replayed;
    if (!replayed && (training_init(&t, model_mlp_init, bench_device) != TN_OK ||
                      tn_graph_capture(bench_device, step, &t, &replayed) != TN_OK))
        return -1;
    TIMED(n, tn_graph_replay(replayed));
}

/* ---- the table --------------------------------------------------------------------------- */

#define STREAMED_ROW(name, tensors) \
    {"memory-" #name, #name " of 8192 x 8192 f32", "ms", .run = name},
#define PRODUCT_ROW(dtype, name, m, n, k) \
    {"gemm-" #dtype "-" #name, #dtype " product, " #m " x " #k " by " #k " x " #n, "ms", \
     .run = gemm_##dtype##_##name},
#define CONVOLUTION_ROW(dtype, name, images, in, side, out, padding) \
    {"conv-" #dtype "-" #name, \
     #dtype " convolution, [" #images ", " #in ", " #side ", " #side "] to " #out " channels", \
     "ms", .run = conv_##dtype##_##name},

const bench_row device_rows[] = {
    {"launch-add", "add of 256 elements, until the call returns", "us", .run = launch_add},
    {"launch-chain", "eight adds, each of the one before", "us", .run = launch_chain},
    {"launch-replay", "the eight from a graph", "us", .run = launch_replay},
    {"launch-copy", "copy of 256 elements", "us", .run = launch_copy},
    {"launch-product", "product of 16 x 16 f32", "us", .run = launch_product},
    {"launch-recording", "add of 256 elements, recording a gradient", "us",
     .run = launch_recording},
    {"launch-backward", "mul of one element and its backward(), until they return", "us",
     .run = launch_backward},
    {"mlp-graph", "training step of the MLP, batch of 64, from a graph", "ms", .run = mlp_graph},
    BENCH_STREAMED(STREAMED_ROW) BENCH_PRODUCTS(PRODUCT_ROW) BENCH_CONVOLUTIONS(CONVOLUTION_ROW)};
const size_t n_device_rows = sizeof device_rows / sizeof device_rows[0];
