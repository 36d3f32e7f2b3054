/* Convolution in one to three dimensions. */
#include "nn/modules/module.h"

#include <inttypes.h>

/* How many dimensions, and the defaults; 0 with an error. */
static int32_t read_options(tn_nn_conv_options *o) {
    int32_t n = 0;
    while (n < 3 && o->kernel_size[n] > 0)
        n++;
    if (n == 0) {
        tn_fail(TN_ERR_INVALID_ARGUMENT,
                "tn_nn_conv_init: kernel_size begins with %" PRId64
                "; it has one size, at least 1, for each of one to three dimensions",
                o->kernel_size[0]);
        return 0;
    }
    o->groups = o->groups ? o->groups : 1;
    if (o->in_channels < 1 || o->out_channels < 1 || o->groups < 1 ||
        o->in_channels % o->groups != 0 || o->out_channels % o->groups != 0) {
        tn_fail(TN_ERR_INVALID_ARGUMENT,
                "tn_nn_conv_init: %" PRId64 " in_channels, %" PRId64 " out_channels in %" PRId64
                " groups; each must be at least 1, and groups divide both",
                o->in_channels, o->out_channels, o->groups);
        return 0;
    }
    for (int32_t i = 0; i < n; i++) {
        o->stride[i] = o->stride[i] ? o->stride[i] : 1;
        o->dilation[i] = o->dilation[i] ? o->dilation[i] : 1;
        if (o->stride[i] > 0 && o->dilation[i] > 0 && o->padding[i] >= 0)
            continue;
        tn_fail(TN_ERR_INVALID_ARGUMENT,
                "tn_nn_conv_init: stride %" PRId64 ", padding %" PRId64 ", dilation %" PRId64
                " of dimension %d; none may be negative",
                o->stride[i], o->padding[i], o->dilation[i], i);
        return 0;
    }
    return n;
}

tn_status tn_nn_conv_init(tn_nn_conv *m, const tn_nn_conv_options *options, tn_device device,
                          tn_dtype dtype) {
    if (!m || !options)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_conv_init: m or options is NULL");
    *m = (tn_nn_conv){0};
    tn_nn_conv_options o = *options;
    int32_t n = read_options(&o);
    if (n == 0)
        return tn_error_status();
    m->module.training = true;
    m->n_dims = n;
    m->options = o;

    int64_t shape[5] = {o.out_channels, o.in_channels / o.groups};
    double fan_in = (double)shape[1]; /* a product that may be beyond 63 bits */
    for (int32_t i = 0; i < n; i++) {
        shape[2 + i] = o.kernel_size[i];
        fan_in *= (double)o.kernel_size[i];
    }
    double bound = tnn_fan_in_bound(fan_in);
    m->weight = tnn_uniform(tn_ints_of(shape, 2 + n), bound, device, dtype);
    if (m->weight && !o.no_bias)
        m->bias = tnn_uniform(TN_SHAPE(o.out_channels), bound, device, dtype);
    if (m->weight && (m->bias || o.no_bias))
        return TN_OK;
    tn_nn_conv_finish(m);
    return tn_error_status();
}

tn_tensor *tn_nn_conv_forward(const tn_nn_conv *m, tn_tensor *x) {
    if (!TNN_READY("tn_nn_conv_forward", m, m->weight, x))
        return NULL;
    const tn_nn_conv_options *o = &m->options;
    if (tn_rank(x) != m->n_dims + 2 || tn_size(x, 1) != o->in_channels) {
        tn_fail(TN_ERR_SHAPE,
                "tn_nn_conv_forward: %s: the input is %s; it must be [N, %" PRId64 ", %s], of"
                " in_channels",
                tnn_name(&m->module), tnn_shape(x).text, o->in_channels,
                m->n_dims == 1   ? "L"
                : m->n_dims == 2 ? "H, W"
                                 : "D, H, W");
        return NULL;
    }
    tn_tensor *bias = m->bias ? m->bias : TN_NONE;
    tn_ints stride = tn_ints_of(o->stride, m->n_dims), padding = tn_ints_of(o->padding, m->n_dims);
    tn_ints dilation = tn_ints_of(o->dilation, m->n_dims);
    bool clear = tnn_error_is_clear();
    tn_tensor *y = NULL;
    if (m->n_dims == 1)
        y = tn_conv1d(x, m->weight, bias, stride, padding, dilation, o->groups);
    else if (m->n_dims == 2)
        y = tn_conv2d(x, m->weight, bias, stride, padding, dilation, o->groups);
    else
        y = tn_conv3d(x, m->weight, bias, stride, padding, dilation, o->groups);
    return tnn_named(&m->module, clear, y);
}

void tn_nn_conv_visit(tn_nn_conv *m, const char *name, tn_nn_visitor *v) {
    if (!tnn_enter_module(v, name, m ? &m->module : NULL))
        return;
    tn_nn_visit_parameter(v, "weight", &m->weight);
    tn_nn_visit_parameter(v, "bias", &m->bias);
    tn_nn_leave(v);
}

void tn_nn_conv_finish(tn_nn_conv *m) {
    TNN_FINISH(tn_nn_conv_visit, m);
}
