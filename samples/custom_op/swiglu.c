/* mylib::swiglu in four parts: a composition for every device, a kernel for one, the derivative,
 * and its place in the dispatcher. */
#include "swiglu.h"

#include <math.h>

static const char *const schema = "mylib::swiglu(Tensor x, Tensor gate) -> Tensor";
static const char *const origin = "mylib 1.0";

static tn_op *op;
static tn_registration *registrations[4];

/* Handlers get the arguments in cells and return owned references. */
static tn_status return_owned(tn_cell *rets, tn_tensor *result) {
    rets[0].tag = result ? TN_CELL_TENSOR : TN_CELL_NONE;
    rets[0].v.pointer = tn_keep(result);
    return result ? TN_OK : tn_error_status();
}

/* ---- for every device: operators that are there ------------------------------------------ */

static tn_status compose(const tn_op *self, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                         void *user) {
    TN_SCOPE;
    tn_tensor *x = args[0].v.pointer, *gate = args[1].v.pointer;
    return return_owned(rets, tn_mul(x, tn_silu(gate)));
}

/* ---- for the CPU, in f32: one pass over memory ------------------------------------------- */

/* x, gate, out: the same shape, contiguous; the core has seen to it. */
static tn_status run_f32(const tn_call *call) {
    const float *x = tn_view_address(call->args[0].v.view);
    const float *gate = tn_view_address(call->args[1].v.view);
    float *out = tn_view_address(call->outs[0]);
    for (int64_t i = 0; i < call->outs[0]->numel; i++)
        out[i] = x[i] * gate[i] / (1 + expf(-gate[i]));
    return TN_OK;
}

static const tn_kernel kernel_f32 = {
    .struct_size = sizeof(kernel_f32),
    .op = "mylib::swiglu",
    .dtypes = {TN_DTYPE_BIT(TN_F32)},
    .run = run_f32,
};

/* ---- its derivative ---------------------------------------------------------------------- */

/* Nothing is recorded in here, so the call goes to the kernel, or to the composition. */
static tn_status forward(tn_function_context *context, tn_tensor *const *inputs, uint64_t n_inputs,
                         tn_tensor **outputs, uint64_t n_outputs, void *user) {
    outputs[0] = swiglu(inputs[0], inputs[1]);
    return outputs[0] ? tn_function_save(context, inputs, n_inputs) : tn_error_status();
}

/* By x: silu(gate). By gate: x * s * (1 + gate * (1 - s)), where s = sigmoid(gate). */
static tn_status backward(tn_function_context *context, tn_tensor *const *output_grads,
                          uint64_t n_outputs, tn_tensor **grads, uint64_t n_inputs, void *user) {
    tn_tensor *x = tn_function_saved(context, 0), *gate = tn_function_saved(context, 1);
    tn_tensor *grad = output_grads[0];
    if (!grad)
        return TN_OK; /* nothing depends on the output */
    tn_tensor *s = tn_sigmoid(gate);
    tn_tensor *slope =
        tn_mul(s, tn_add_scalar(tn_mul(gate, tn_rsub_scalar(s, tn_int(1))), tn_int(1)));
    grads[0] = tn_mul(grad, tn_mul(gate, s));
    grads[1] = tn_mul(grad, tn_mul(x, slope));
    return grads[0] && grads[1] ? TN_OK : tn_error_status();
}

static const tn_function differentiable = {
    .name = "SwigluBackward",
    .forward = forward,
    .backward = backward,
};

/* Runs forward and remembers what backward needs. */
static tn_status record(const tn_op *self, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                        void *user) {
    TN_SCOPE;
    tn_tensor *inputs[] = {args[0].v.pointer, args[1].v.pointer}, *output = NULL;
    (void)tn_function_apply(&differentiable, NULL, inputs, 2, &output, 1);
    return return_owned(rets, output);
}

/* ---- its place in the dispatcher --------------------------------------------------------- */

/* The newest is asked first, so the kernel comes after the composition. */
tn_status swiglu_register(void) {
    op = tn_op_define(schema, origin, &registrations[0]);
    if (!op)
        return tn_error_status();
    registrations[1] = tn_handler_register(op, TN_KEY_BACKEND, NULL, compose, NULL, origin);
    registrations[2] = tn_kernel_register("cpu", &kernel_f32, NULL, origin);
    registrations[3] = tn_handler_register(op, TN_KEY_AUTOGRAD, NULL, record, NULL, origin);
    return registrations[1] && registrations[2] && registrations[3] ? TN_OK : tn_error_status();
}

void swiglu_unregister(void) {
    for (int i = 3; i >= 0; i--)
        tn_registration_drop(registrations[i]);
}

tn_tensor *swiglu(tn_tensor *x, tn_tensor *gate) {
    if (!x || !gate)
        return NULL; /* a failed tensor passes through */
    tn_cell args[2] = {{.tag = TN_CELL_TENSOR, .v.pointer = x},
                       {.tag = TN_CELL_TENSOR, .v.pointer = gate}};
    tn_cell result;
    return tn_op_call(op, args, 2, &result) == TN_OK ? tn_give(result.v.pointer) : NULL;
}
