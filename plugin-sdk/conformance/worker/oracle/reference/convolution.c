/* Convolution in two dimensions and its derivatives: the same products, added up elsewhere. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* Calls `term` for every product of x [N, C, H, W] and w [O, C / groups, KH, KW] that counts
 * towards y [N, O, OH, OW]; indices are row-major. */
typedef struct geometry {
    const int64_t *x, *w, *y; /* sizes */
    const int64_t *stride, *padding, *dilation;
    int64_t groups;
} geometry;

/* `stride` is the argument with which these begin: strides, padding, dilation, groups. */
static geometry geometry_of(const tc_value *a, const tc_operand *x, const tc_operand *w,
                            const tc_operand *y, int stride) {
    return (geometry){x->shape.sizes,     w->shape.sizes,     y->shape.sizes, a[stride].ints,
                      a[stride + 1].ints, a[stride + 2].ints, a[stride + 3].i};
}

typedef void term_function(tc_invocation *call, int64_t x, int64_t w, int64_t y);

static void each_term(tc_invocation *call, const geometry *g, term_function *term) {
    int64_t cg = g->x[1] / g->groups, og = g->y[1] / g->groups, taps = g->w[2] * g->w[3];
    for (int64_t at = 0; at < g->y[0] * g->y[1] * g->y[2] * g->y[3]; at++) {
        int64_t ox = at % g->y[3], oy = at / g->y[3] % g->y[2],
                o = at / (g->y[2] * g->y[3]) % g->y[1];
        int64_t image = at / (g->y[1] * g->y[2] * g->y[3]);
        for (int64_t k = 0; k < cg * taps; k++) {
            int64_t c = k / taps, ky = k % taps / g->w[3], kx = k % g->w[3];
            int64_t y = oy * g->stride[0] - g->padding[0] + ky * g->dilation[0];
            int64_t x = ox * g->stride[1] - g->padding[1] + kx * g->dilation[1];
            if (y >= 0 && y < g->x[2] && x >= 0 && x < g->x[3])
                term(call, ((image * g->x[1] + o / og * cg + c) * g->x[2] + y) * g->x[3] + x,
                     o * cg * taps + k, at);
        }
    }
}

/* Adds a product to an output element; what was added up is in `rounding` until finish. */
static void add(tc_invocation *call, int64_t at, tc_real product) {
    call->outs[0].tensor.values[at].f += product;
    if (isfinite(product))
        call->outs[0].rounding[at] += fabsl(product);
    call->outs[0].error[at] += 1;
}

static void finish(tc_invocation *call) {
    tc_expected *e = &call->outs[0];
    for (int64_t i = 0; i < e->tensor.shape.numel; i++) {
        e->rounding[i] *= (e->error[i] + 2) * tc_u(call);
        e->error[i] = 0;
    }
}

static void forward(tc_invocation *call, int64_t x, int64_t w, int64_t y) {
    add(call, y,
        tc_in(call, TN_ARG_convolution_input)[x].f * tc_in(call, TN_ARG_convolution_weight)[w].f);
}

void tc_reference_convolution(tc_invocation *call) {
    const tc_value *a = call->args, *bias = &a[TN_ARG_convolution_bias];
    const tc_shape *out = &call->outs[0].tensor.shape;
    geometry g =
        geometry_of(a, &a[TN_ARG_convolution_input].tensor, &a[TN_ARG_convolution_weight].tensor,
                    &call->outs[0].tensor, TN_ARG_convolution_stride);
    for (int64_t i = 0; !bias->none && i < out->numel; i++)
        add(call, i, bias->tensor.values[i / (out->sizes[2] * out->sizes[3]) % out->sizes[1]].f);
    each_term(call, &g, forward);
    finish(call);
}

static void backward_input(tc_invocation *call, int64_t x, int64_t w, int64_t y) {
    add(call, x,
        tc_in(call, TN_ARG_convolution_backward_input_grad_output)[y].f *
            tc_in(call, TN_ARG_convolution_backward_input_weight)[w].f);
}

void tc_reference_convolution_backward_input(tc_invocation *call) {
    const tc_value *a = call->args;
    geometry g =
        geometry_of(a, &call->outs[0].tensor, &a[TN_ARG_convolution_backward_input_weight].tensor,
                    &a[TN_ARG_convolution_backward_input_grad_output].tensor,
                    TN_ARG_convolution_backward_input_stride);
    each_term(call, &g, backward_input);
    finish(call);
}

static void backward_weight(tc_invocation *call, int64_t x, int64_t w, int64_t y) {
    add(call, w,
        tc_in(call, TN_ARG_convolution_backward_weight_grad_output)[y].f *
            tc_in(call, TN_ARG_convolution_backward_weight_input)[x].f);
}

void tc_reference_convolution_backward_weight(tc_invocation *call) {
    const tc_value *a = call->args;
    geometry g =
        geometry_of(a, &a[TN_ARG_convolution_backward_weight_input].tensor, &call->outs[0].tensor,
                    &a[TN_ARG_convolution_backward_weight_grad_output].tensor,
                    TN_ARG_convolution_backward_weight_stride);
    each_term(call, &g, backward_weight);
    finish(call);
}
