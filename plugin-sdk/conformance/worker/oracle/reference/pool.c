/* Pooling in two dimensions. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* What a window of output place (oy, ox) covers, cut to the input and, in `padded`, to the padding.
 */
typedef struct window {
    int64_t y0, x0, y1, x1; /* of the padded input, before cutting at 0 */
    int64_t padded;         /* elements, those of the padding counted */
} window;

static window window_at(const int64_t *in, const int64_t *kernel, const int64_t *stride,
                        const int64_t *padding, int64_t oy, int64_t ox) {
    window w = {.y0 = oy * stride[0] - padding[0], .x0 = ox * stride[1] - padding[1]};
    w.y1 = w.y0 + kernel[0] < in[2] + padding[0] ? w.y0 + kernel[0] : in[2] + padding[0];
    w.x1 = w.x0 + kernel[1] < in[3] + padding[1] ? w.x0 + kernel[1] : in[3] + padding[1];
    w.padded = (w.y1 - w.y0) * (w.x1 - w.x0);
    w.y0 = w.y0 > 0 ? w.y0 : 0;
    w.x0 = w.x0 > 0 ? w.x0 : 0;
    w.y1 = w.y1 < in[2] ? w.y1 : in[2];
    w.x1 = w.x1 < in[3] ? w.x1 : in[3];
    return w;
}

void tc_reference_max_pool2d(tc_invocation *call) {
    const tc_value *a = call->args;
    const int64_t *in = a[0].tensor.shape.sizes, *out = call->outs[0].tensor.shape.sizes;
    const int64_t *kernel = a[TN_ARG_max_pool2d_kernel_size].ints,
                  *stride = a[TN_ARG_max_pool2d_stride].ints;
    const int64_t *padding = a[TN_ARG_max_pool2d_padding].ints,
                  *dilation = a[TN_ARG_max_pool2d_dilation].ints;
    for (int64_t at = 0; at < call->outs[0].tensor.shape.numel; at++) {
        int64_t ox = at % out[3], oy = at / out[3] % out[2], plane = at / (out[2] * out[3]);
        const tc_number *x = tc_in(call, 0) + plane * in[2] * in[3];
        int64_t best = -1;
        for (int64_t k = 0; k < kernel[0] * kernel[1]; k++) {
            int64_t h = oy * stride[0] - padding[0] + k / kernel[1] * dilation[0];
            int64_t w = ox * stride[1] - padding[1] + k % kernel[1] * dilation[1];
            if (h < 0 || h >= in[2] || w < 0 || w >= in[3])
                continue;
            int64_t i = h * in[3] + w;
            if (best < 0 || (isnan(x[i].f) && !isnan(x[best].f)) || x[i].f > x[best].f ||
                x[i].i > x[best].i)
                best = i;
        }
        tc_out(call, 0)[at] =
            best < 0 ? (tc_number){-INFINITY, tc_int_min(call->types[0])} : x[best];
        tc_out(call, 1)[at].i = best;
        if (best < 0)
            call->outs[0].error[at] = call->outs[1].error[at] =
                INFINITY; /* a window of padding alone */
    }
}

void tc_reference_max_pool2d_backward(tc_invocation *call) {
    tc_expected *e = &call->outs[0];
    const tc_operand *grad = &call->args[TN_ARG_max_pool2d_backward_grad_output].tensor;
    const tc_number *indices = tc_in(call, TN_ARG_max_pool2d_backward_indices);
    int64_t plane_out = grad->shape.sizes[2] * grad->shape.sizes[3];
    int64_t plane_in = e->tensor.shape.sizes[2] * e->tensor.shape.sizes[3];
    for (int64_t i = 0; i < grad->shape.numel; i++) {
        int64_t at = i / plane_out * plane_in + indices[i].i;
        e->tensor.values[at].f += grad->values[i].f;
        e->rounding[at] += (tc_real)plane_out * tc_u(call) * fabsl(grad->values[i].f);
    }
}

void tc_reference_avg_pool2d(tc_invocation *call) {
    const tc_value *a = call->args;
    const int64_t *in = a[0].tensor.shape.sizes, *out = call->outs[0].tensor.shape.sizes;
    bool all = a[TN_ARG_avg_pool2d_count_include_pad].boolean;
    for (int64_t at = 0; at < call->outs[0].tensor.shape.numel; at++) {
        window w =
            window_at(in, a[TN_ARG_avg_pool2d_kernel_size].ints, a[TN_ARG_avg_pool2d_stride].ints,
                      a[TN_ARG_avg_pool2d_padding].ints, at / out[3] % out[2], at % out[3]);
        const tc_number *x = tc_in(call, 0) + at / (out[2] * out[3]) * in[2] * in[3];
        int64_t inside = (w.y1 - w.y0) * (w.x1 - w.x0), count = all ? w.padded : inside;
        tc_real sum = 0, magnitude = 0;
        for (int64_t y = w.y0; y < w.y1; y++)
            for (int64_t column = w.x0; column < w.x1; column++) {
                sum += x[y * in[3] + column].f;
                magnitude += fabsl(x[y * in[3] + column].f);
            }
        tc_out(call, 0)[at].f = sum / (tc_real)count;
        tc_real steps = fminl((tc_real)inside, tc_sum_steps(call, inside));
        call->outs[0].rounding[at] = steps * tc_u(call) * magnitude / (tc_real)count;
        call->outs[0].error[at] =
            tc_ulps(call, 1, sum / (tc_real)count); /* the division, or 1 / count */
        if (count <= 0)
            call->outs[0].error[at] = INFINITY;
    }
}

void tc_reference_avg_pool2d_backward(tc_invocation *call) {
    const tc_value *a = call->args;
    tc_expected *e = &call->outs[0];
    const int64_t *in = e->tensor.shape.sizes, *out = a[0].tensor.shape.sizes;
    bool all = a[TN_ARG_avg_pool2d_backward_count_include_pad].boolean;
    const int64_t *kernel = a[TN_ARG_avg_pool2d_backward_kernel_size].ints,
                  *stride = a[TN_ARG_avg_pool2d_backward_stride].ints;
    int64_t meet = ((kernel[0] - 1) / stride[0] + 1) * ((kernel[1] - 1) / stride[1] + 1);
    tc_real steps = fmaxl(16, fminl((tc_real)meet, tc_sum_steps(call, meet)) + 2);
    for (int64_t i = 0; i < a[0].tensor.shape.numel; i++) {
        window w =
            window_at(in, a[TN_ARG_avg_pool2d_backward_kernel_size].ints,
                      a[TN_ARG_avg_pool2d_backward_stride].ints,
                      a[TN_ARG_avg_pool2d_backward_padding].ints, i / out[3] % out[2], i % out[3]);
        int64_t count = all ? w.padded : (w.y1 - w.y0) * (w.x1 - w.x0);
        int64_t plane = i / (out[2] * out[3]) * in[2] * in[3];
        for (int64_t y = w.y0; y < w.y1; y++)
            for (int64_t x = w.x0; x < w.x1; x++) {
                tc_real share = tc_in(call, 0)[i].f / (tc_real)count;
                e->tensor.values[plane + y * in[3] + x].f += share;
                /* Each share is rounded, and so are sums of them; whole numbers do not help. */
                e->error[plane + y * in[3] + x] += steps * tc_u(call) * fabsl(share);
            }
    }
}
