/* convolution and its derivatives, against the sum written out. Inputs are small whole numbers, so
 * that sums are exact in f32 and f64, and f16 and bf16 are rounded once. */
#include "kernels_test.h"

#include <math.h>

static const struct geometry {
    int64_t n, c, h, w, o, kernel[2], stride[2], padding[2], dilation[2], groups;
} geometries[] = {
    {1, 1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {2, 3, 8, 9, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 4, 7, 6, 6, {3, 2}, {2, 1}, {0, 1}, {1, 2}, 2},
    {3, 4, 9, 9, 4, {3, 3}, {3, 2}, {2, 2}, {2, 1}, 4},    /* depthwise, outputs in the padding */
    {2, 5, 6, 7, 3, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},    /* one tap */
    {1, 2, 5, 5, 3, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1},    /* one pixel comes out */
    {1, 2, 3, 4, 2, {3, 4}, {2, 3}, {4, 5}, {1, 1}, 1},    /* taps that see padding alone */
    {1, 1, 1, 40, 1, {1, 7}, {1, 1}, {0, 3}, {1, 1}, 1},   /* one channel: matrix times vector */
    {20, 3, 5, 5, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},   /* more images than partial sums (16) */
    {2, 24, 20, 60, 3, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1}, /* several blocks of pixels */
    {1, 70, 40, 40, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}, /* several blocks of channels */
};

static const struct geometry *g;

static int64_t out_size(int d) {
    const int64_t in = d ? g->w : g->h;
    return (in + 2 * g->padding[d] - g->dilation[d] * (g->kernel[d] - 1) - 1) / g->stride[d] + 1;
}

static void sizes_of(int64_t *x, int64_t *w, int64_t *y) {
    const int64_t x_[] = {g->n, g->c, g->h, g->w};
    const int64_t w_[] = {g->o, g->c / g->groups, g->kernel[0], g->kernel[1]};
    const int64_t y_[] = {g->n, g->o, out_size(0), out_size(1)};
    for (int d = 0; d < 4; d++)
        x[d] = x_[d], w[d] = w_[d], y[d] = y_[d];
}

/* Calls `term` with the indices of every product x * w that counts towards a y. */
static void for_terms(void (*term)(void *context, int64_t x, int64_t w, int64_t y), void *context) {
    const int64_t oh = out_size(0), ow = out_size(1), cg = g->c / g->groups, og = g->o / g->groups;
    const int64_t taps = g->kernel[0] * g->kernel[1];
    for (int64_t at = 0; at < g->n * g->o * oh * ow; at++) {
        const int64_t ox = at % ow, oy = at / ow % oh, o = at / ow / oh % g->o;
        const int64_t image = at / ow / oh / g->o;
        for (int64_t k = 0; k < cg * taps; k++) {
            const int64_t c = k / taps, ky = k % taps / g->kernel[1], kx = k % g->kernel[1];
            const int64_t y = oy * g->stride[0] - g->padding[0] + ky * g->dilation[0];
            const int64_t x = ox * g->stride[1] - g->padding[1] + kx * g->dilation[1];
            if (y < 0 || y >= g->h || x < 0 || x >= g->w)
                continue;
            const int64_t channel = o / og * cg + c;
            term(context, ((image * g->c + channel) * g->h + y) * g->w + x, o * cg * taps + k, at);
        }
    }
}

typedef struct sums {
    const operand *x, *w, *y; /* two of them: the third is the result */
    number *r;
} sums;

static void term(void *context, int64_t x, int64_t w, int64_t y) {
    const sums *s = context;
    if (!s->y)
        s->r[y].f += s->x->values[x].f * s->w->values[w].f;
    else if (!s->x)
        s->r[x].f += s->y->values[y].f * s->w->values[w].f;
    else
        s->r[w].f += s->y->values[y].f * s->x->values[x].f;
}

static operand *whole(tn_dtype dtype, const int64_t *sizes, layout l) {
    return operand_whole(dtype, 4, sizes, l, -3, 3);
}

/* Appends the attributes; returns the number of arguments. */
static uint32_t attributes(tn_cell *args, uint32_t n) {
    args[n++] = mini_ints(g->stride, 2);
    args[n++] = mini_ints(g->padding, 2);
    args[n++] = mini_ints(g->dilation, 2);
    args[n++] = mini_i64(g->groups);
    return n;
}

static void forward(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++)
        for (int has_bias = 0; has_bias < 2; has_bias++) {
            int64_t xs[4], ws[4], ys[4];
            g = &geometries[k];
            sizes_of(xs, ws, ys);
            operand *x = whole(dtype, xs, has_bias ? SHIFTED : DENSE), *w = whole(dtype, ws, DENSE);
            operand *b = has_bias ? operand_whole(dtype, 1, &g->o, DENSE, -9, 9) : NULL;
            operand *y = operand_out(dtype, 4, ys, has_bias ? SHIFTED : DENSE);
            sums s = {x, w, NULL, scratch((size_t)y->numel * sizeof(number))};
            for (int64_t i = 0; b && i < y->numel; i++)
                s.r[i] = b->values[i / (ys[2] * ys[3]) % g->o];
            for_terms(term, &s);
            tn_cell args[MAX_ARGS] = {cell_of(x), cell_of(w), cell_of(b)};
            describe("convolution, dtype %d, geometry %d, bias %d", dtype, k, has_bias);
            assert_ok(
                call_kernel("convolution", dtype, TN_DTYPE_NONE, attributes(args, 3), args, 1, &y));
            check_elements(y, s.r, NULL, SAME);
            check_untouched(x);
            check_untouched(w);
            case_end(NULL);
        }
}

static void convolutions_are_the_sum_written_out(void **state) {
    for_dtypes("convolution", forward);
}

static void backward_input(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++) {
        int64_t xs[4], ws[4], ys[4];
        g = &geometries[k];
        sizes_of(xs, ws, ys);
        operand *y = whole(dtype, ys, SHIFTED), *w = whole(dtype, ws, DENSE);
        operand *x = operand_out(dtype, 4, xs, k % 2 ? SHIFTED : DENSE);
        sums s = {NULL, w, y, scratch((size_t)x->numel * sizeof(number))};
        for_terms(term, &s);
        tn_cell args[MAX_ARGS] = {cell_of(y), cell_of(w), mini_ints(xs, 4)};
        describe("convolution_backward_input, dtype %d, geometry %d", dtype, k);
        assert_ok(call_kernel("convolution_backward_input", dtype, TN_DTYPE_NONE,
                              attributes(args, 3), args, 1, &x));
        check_elements(x, s.r, NULL, SAME);
        check_untouched(y);
        case_end(NULL);
    }
}

static void backward_weight(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++) {
        int64_t xs[4], ws[4], ys[4];
        g = &geometries[k];
        sizes_of(xs, ws, ys);
        operand *y = whole(dtype, ys, SHIFTED), *x = whole(dtype, xs, DENSE);
        operand *w = operand_out(dtype, 4, ws, k % 2 ? SHIFTED : DENSE);
        sums s = {x, NULL, y, scratch((size_t)w->numel * sizeof(number))};
        for_terms(term, &s);
        tn_cell args[MAX_ARGS] = {cell_of(y), cell_of(x), mini_ints(ws, 4)};
        describe("convolution_backward_weight, dtype %d, geometry %d", dtype, k);
        assert_ok(call_kernel("convolution_backward_weight", dtype, TN_DTYPE_NONE,
                              attributes(args, 3), args, 1, &w));
        check_elements(w, s.r, NULL, SAME);
        check_untouched(x);
        case_end(NULL);
    }
}

static void derivatives_are_the_sum_written_out(void **state) {
    for_dtypes("convolution_backward_input", backward_input);
    for_dtypes("convolution_backward_weight", backward_weight);
}

static void a_nan_reaches_the_outputs_that_see_it_only(void **state) {
    const int64_t xs[] = {1, 1, 4, 4}, ws[] = {1, 1, 3, 3}, ys[] = {1, 1, 2, 2};
    const struct geometry inside = {1, 1, 4, 4, 1, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1};
    operand *x = whole(TN_F32, xs, DENSE), *w = whole(TN_F32, ws, DENSE);
    operand_set(x, 0, (number){.f = NAN});
    operand_upload(x);
    operand *y = operand_out(TN_F32, 4, ys, DENSE);
    g = &inside;
    sums s = {x, w, NULL, scratch((size_t)y->numel * sizeof(number))};
    for_terms(term, &s);
    tn_cell args[MAX_ARGS] = {cell_of(x), cell_of(w), mini_none()};
    describe("convolution of NaN");
    assert_ok(call_kernel("convolution", TN_F32, TN_DTYPE_NONE, attributes(args, 3), args, 1, &y));
    check_elements(y, s.r, NULL, SAME);
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    static const char *const ops[] = {"convolution", "convolution_backward_input",
                                      "convolution_backward_weight"};
    int64_t sizes[3][4]; /* x, w, y */
    g = &geometries[9];
    sizes_of(sizes[0], sizes[1], sizes[2]);
    for (int op = 0; op < LENGTH(ops); op++) {
        /* which of x, w, y are the arguments and the result */
        static const int roles[][3] = {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}};
        const int *role = roles[op];
        operand *a = operand_random(TN_F32, 4, sizes[role[0]], DENSE, -1, 1);
        operand *b = operand_random(TN_F32, 4, sizes[role[1]], DENSE, -1, 1);
        operand *z = operand_out(TN_F32, 4, sizes[role[2]], DENSE);
        tn_cell args[MAX_ARGS] = {cell_of(a), cell_of(b),
                                  op ? mini_ints(sizes[role[2]], 4) : mini_none()};
        check_threads(ops[op], TN_F32, attributes(args, 3), args, 1, &z);
        case_end(NULL);
    }
}

int test_convolution(void) {
    const struct CMUnitTest tests[] = {
        TEST(convolutions_are_the_sum_written_out),
        TEST(derivatives_are_the_sum_written_out),
        TEST(a_nan_reaches_the_outputs_that_see_it_only),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
