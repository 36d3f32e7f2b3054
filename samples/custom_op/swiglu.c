/* mylib::swiglu in three parts: what it computes, its derivative, and its place in the dispatcher.
 *
 * It is written with operators of Tenon, so it runs on every device. */
#include "swiglu.h"

static const char *const schema = "mylib::swiglu(Tensor x, Tensor gate) -> Tensor";
static const char *const origin = "mylib 1.0";

static tn_op *op;
static tn_registration *registrations[3];

/* ---- what it computes ----------------------------------------------------------------------- */

static tn_tensor *compute(tn_tensor *x, tn_tensor *gate) {
    return tn_mul(x, tn_silu(gate));
}

/* ---- its derivative ------------------------------------------------------------------------- */

static tn_status forward(tn_function_context *context, tn_tensor *const *inputs, uint64_t n_inputs,
                         tn_tensor **outputs, uint64_t n_outputs, void *user) {
    outputs[0] = compute(inputs[0], inputs[1]);
    if (!outputs[0])
        return tn_error_status();
    return tn_function_save(context, inputs, n_inputs);
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

/* ---- its place in the dispatcher ------------------------------------------------------------ */

/* Handlers get the arguments in cells and return owned references. */
static tn_status return_owned(tn_cell *rets, tn_tensor *result) {
    rets[0].tag = result ? TN_CELL_TENSOR : TN_CELL_NONE;
    rets[0].v.pointer = tn_keep(result);
    return result ? TN_OK : tn_error_status();
}

static tn_status handle_backend(const tn_op *self, tn_keyset keys, const tn_cell *args,
                                tn_cell *rets, void *user) {
    TN_SCOPE;
    return return_owned(rets, compute(args[0].v.pointer, args[1].v.pointer));
}

/* Runs forward and remembers what backward needs. */
static tn_status handle_autograd(const tn_op *self, tn_keyset keys, const tn_cell *args,
                                 tn_cell *rets, void *user) {
    TN_SCOPE;
    tn_tensor *inputs[] = {args[0].v.pointer, args[1].v.pointer}, *output = NULL;
    (void)tn_function_apply(&differentiable, NULL, inputs, 2, &output, 1);
    return return_owned(rets, output);
}

tn_status swiglu_register(void) {
    op = tn_op_define(schema, origin, &registrations[0]);
    if (!op)
        return tn_error_status();
    registrations[1] = tn_handler_register(op, TN_KEY_BACKEND, NULL, handle_backend, NULL, origin);
    registrations[2] =
        tn_handler_register(op, TN_KEY_AUTOGRAD, NULL, handle_autograd, NULL, origin);
    return registrations[1] && registrations[2] ? TN_OK : tn_error_status();
}

void swiglu_unregister(void) {
    for (int i = 2; i >= 0; i--)
        tn_registration_drop(registrations[i]);
}

tn_tensor *swiglu(tn_tensor *x, tn_tensor *gate) {
    if (!x || !gate)
        return NULL; /* a failed tensor passes through */
    tn_cell args[2] = {{.tag = TN_CELL_TENSOR, .v.pointer = x},
                       {.tag = TN_CELL_TENSOR, .v.pointer = gate}};
    tn_cell result;
    return tn_op_call(op, args, 2, &result) == TN_OK ? result.v.pointer : NULL;
}
