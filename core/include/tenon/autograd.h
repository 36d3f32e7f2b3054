/* tenon/autograd.h: gradients.
 *
 * Reverse mode over operators: a call with an input that requires a gradient records a node;
 * backward walks the nodes in reverse and accumulates into the leaves' gradients. Backward formulas
 * are operators themselves, so derivatives of derivatives come for free (create_graph).
 */
#ifndef TENON_AUTOGRAD_H
#define TENON_AUTOGRAD_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- leaves ------------------------------------------------------------------------------ */

/* Marks a leaf (floating dtype). Returns t. A tensor made by a recorded operator refuses to be
 * unmarked. */
TN_API tn_tensor *tn_set_requires_grad(tn_tensor *t, bool requires_grad);
TN_API bool tn_requires_grad(const tn_tensor *t);
TN_API bool tn_is_leaf(const tn_tensor *t);
/* The accumulated gradient, borrowed from t, or NULL (no error) while there is none. */
TN_API tn_tensor *tn_grad(const tn_tensor *t);
/* Replaces it (keeps `grad`; NULL removes it). Shape, dtype and device must be t's. */
TN_API tn_status tn_set_grad(tn_tensor *t, tn_tensor *grad);
/* Keeps the gradient of a tensor that is not a leaf. */
TN_API tn_status tn_retain_grad(tn_tensor *t);
/* Name of the node that made t ("MulBackward"), "" for a leaf. */
TN_API const char *tn_grad_fn_name(const tn_tensor *t);

/* ---- backward ---------------------------------------------------------------------------- */

/* Gradients of `loss`, which must have one element, into the leaves; frees what the graph saved. */
TN_API tn_status tn_backward(tn_tensor *loss);

/* Gradients of several roots. grads[i] NULL: ones, for roots of one element. retain_graph keeps
 * what was saved for another pass; create_graph records the backward pass itself (and retains). */
TN_API tn_status tn_backward_full(tn_tensor *const *roots, tn_tensor *const *grads, uint64_t n,
                                  bool retain_graph, bool create_graph);

/* Gradients of roots by `inputs` into out_grads[n_inputs], owned by the scope; leaves' gradients
 * are not touched. Where an input was not used: an error, or NULL with allow_unused. */
TN_API tn_status tn_gradients(tn_tensor *const *roots, tn_tensor *const *grads, uint64_t n,
                              tn_tensor *const *inputs, uint64_t n_inputs, bool retain_graph,
                              bool create_graph, bool allow_unused, tn_tensor **out_grads);

/* ---- modes, of the calling thread -------------------------------------------------------- */

/* Recording on or off; returns what it was. */
TN_API bool tn_set_grad_enabled(bool enabled);
TN_API bool tn_grad_enabled(void);
/* In inference mode nothing is recorded and results take no part in autograd ever, which saves
 * version counting and view tracking. */
TN_API bool tn_set_inference_mode(bool enabled);
TN_API bool tn_inference_mode(void);

/* Anomaly mode, of all threads: backward stops with TN_ERR_STATE at the first NaN among the
 * gradients and says which operator made it and from where that was called, if it was recorded in
 * this mode, or at which one it arrives that no operator made. What lies in leaves from earlier
 * passes is not looked at. Much slower: call stacks are kept, and each gradient is looked through.
 * Returns what it was. */
TN_API bool tn_set_anomaly_mode(bool enabled);
TN_API bool tn_anomaly_mode(void);

/* TN_NO_GRAD; at the head of a block: nothing is recorded until its end, however it is left. */
#ifdef __cplusplus
} /* extern "C" */
class tn_no_grad_guard {
  public:
    tn_no_grad_guard() : before(tn_set_grad_enabled(false)) {}
    ~tn_no_grad_guard() {
        tn_set_grad_enabled(before);
    }
    tn_no_grad_guard(const tn_no_grad_guard &) = delete;
    tn_no_grad_guard &operator=(const tn_no_grad_guard &) = delete;

  private:
    bool before;
};
extern "C" {
#define TN_NO_GRAD tn_no_grad_guard tn_no_grad_of_block
#else
static inline void tn_grad_mode_cleanup(bool *before) {
    tn_set_grad_enabled(*before);
}
#define TN_NO_GRAD \
    __attribute__((cleanup(tn_grad_mode_cleanup), unused)) bool tn_no_grad_of_block = \
        tn_set_grad_enabled(false)
#endif

/* ---- hooks ------------------------------------------------------------------------------- */

/* Called with the gradient of a tensor when it is complete, inside a scope of the engine. Returns
 * the gradient to go on with: `grad`, another tensor, or NULL with an error to stop backward. It does not
 * write to `grad`, which may be another's gradient, too, or the caller's. */
typedef tn_tensor *(*tn_grad_hook)(tn_tensor *grad, void *user);

/* Hangs a hook on t (leaf or not); tn_registration_drop takes it off, and is due in the end even
 * when the tensor went before. `destroy` (may be NULL) is called with `user` when the hook goes,
 * with its registration or with the tensor's node, and no pass of another thread runs it. A leaf's hook runs before the gradient is added.
 */
TN_API tn_registration *tn_register_hook(tn_tensor *t, tn_grad_hook hook, void *user,
                                         void (*destroy)(void *user));

/* The same for the node that made t: called after the node's backward with the gradients of its
 * inputs; entries may be replaced (by tensors of the engine's scope). */
typedef tn_status (*tn_node_hook)(tn_tensor **input_grads, uint64_t n, void *user);
TN_API tn_registration *tn_register_node_hook(tn_tensor *t, tn_node_hook hook, void *user,
                                              void (*destroy)(void *user));

/* ---- functions of your own --------------------------------------------------------------- */

typedef struct tn_function_context tn_function_context;

/* A differentiable function written in C. forward runs without recording, inside a scope; it fills
 * outputs[n_outputs] with fresh tensors or inputs. backward gets one gradient for each output
 * (NULL: zero) and fills grads[n_inputs] (NULL: no gradient); what it does is recorded under
 * create_graph. */
typedef struct tn_function {
    const char *name; /* "SwigluBackward"; lives as long as the graph */
    tn_status (*forward)(tn_function_context *context, tn_tensor *const *inputs, uint64_t n_inputs,
                         tn_tensor **outputs, uint64_t n_outputs, void *user);
    tn_status (*backward)(tn_function_context *context, tn_tensor *const *output_grads,
                          uint64_t n_outputs, tn_tensor **grads, uint64_t n_inputs, void *user);
    /* Called with `user` once for each tn_function_apply: when its graph goes, or at once when
     * there is none. May be NULL. */
    void (*destroy)(void *user);
} tn_function;

/* Saves inputs or outputs for backward (they are checked for in-place changes), and finds them
 * again. */
TN_API tn_status tn_function_save(tn_function_context *context, tn_tensor *const *tensors,
                                  uint64_t n);
TN_API tn_tensor *tn_function_saved(tn_function_context *context, uint64_t i);
/* Does input i need a gradient? */
TN_API bool tn_function_needs_grad(const tn_function_context *context, uint64_t i);

/* Calls it. Outputs belong to the scope. */
TN_API tn_status tn_function_apply(const tn_function *function, void *user,
                                   tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                                   uint64_t n_outputs);

/* ---- derivatives of whole functions ------------------------------------------------------ */

/* A function of tensors: fills outputs[n_outputs] from inputs. What it makes belongs to a scope of
 * its caller. */
typedef tn_status (*tn_tensors_fn)(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                                   uint64_t n_outputs, void *user);

/* All take n inputs of floating dtypes, which are differentiated by, whether or not they require
 * gradients; fn gets tensors of their memory. Results belong to the scope. With create_graph they
 * are recorded, and lead to the inputs; without it they have no history. Where an output does not
 * depend on an input the derivative is 0. */

/* Forward mode: out_tangents = J v, the derivatives of the outputs along the tangents, each like
 * its input; and the outputs. It is made of two backward passes (the derivative of u J by u), so
 * what the function is made of must be differentiable twice: an input's gradient of which nothing
 * was recorded is TN_ERR_UNSUPPORTED, unless it is 0. */
TN_API tn_status tn_jvp(tn_tensors_fn fn, void *user, tn_tensor *const *inputs,
                        tn_tensor *const *tangents, uint64_t n_inputs, bool create_graph,
                        tn_tensor **outputs, tn_tensor **out_tangents, uint64_t n_outputs);

/* The Jacobian of a function with one output: out[n_inputs], each of the output's sizes, then the
 * input's. One backward pass for each element of the output. */
TN_API tn_status tn_jacobian(tn_tensors_fn fn, void *user, tn_tensor *const *inputs,
                             uint64_t n_inputs, bool create_graph, tn_tensor **out);

/* The Hessian of a function with one output of one element: out[i * n_inputs + j] has the second
 * derivatives by inputs i and j, of i's sizes, then j's. One backward pass for each element of each
 * input. */
TN_API tn_status tn_hessian(tn_tensors_fn fn, void *user, tn_tensor *const *inputs,
                            uint64_t n_inputs, bool create_graph, tn_tensor **out);

/* ---- checkpoints ------------------------------------------------------------------------- */

/* Calls fn, in a scope of its own, recording as ever, but keeps nothing of what it makes except the
 * outputs: backward calls it again for what the gradients need. Memory for time: of a chain of such
 * parts only the inputs are kept, and one part at a time is whole (Chen et al., arXiv:1604.06174;
 * torch.utils.checkpoint, without reentrance). Gradients are the same to the last bit;
 * derivatives of them are, but for the order in which they are summed.
 *
 * fn must do the same each time: it finds autocast as it was and draws the same random numbers (a
 * mask of dropout is the same), and what it reads besides, such as weights, must not have changed;
 * where it saves tensors of other shapes, or an input was written, backward fails with
 * TN_ERR_STATE. It does not write its inputs, nor ask for gradients of what it records; it may use
 * tensors of the program that are no inputs. It runs in the threads of backward, in several at once
 * where several pass back through one graph. Inputs may be TN_NONE. Inside of another checkpoint,
 * and where nothing is recorded, it is a plain call. Derivatives of derivatives keep what the
 * second run recorded, while the graph lives.
 *
 * Outputs belong to the scope. `destroy` (may be NULL) is called with `user` once, when the graph
 * is gone, or at once where there is none. */
TN_API tn_status tn_checkpoint(tn_tensors_fn fn, void *user, void (*destroy)(void *user),
                               tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                               uint64_t n_outputs);

/* ---- checking ---------------------------------------------------------------------------- */

/* A function under test: makes outputs[*n_outputs] (room for 8) from inputs. */
typedef tn_status (*tn_check_fn)(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                                 uint64_t *n_outputs, void *user);

typedef struct tn_gradcheck_options {
    uint64_t struct_size;
    double eps;  /* [1e-6] central differences */
    double atol; /* [1e-5] */
    double rtol; /* [1e-3] */
} tn_gradcheck_options;

/* Compares analytic with numerical Jacobians, for every f64 input that requires a gradient, as
 * PyTorch's gradcheck does; the error names input, output and element. options may be NULL. */
TN_API tn_status tn_gradcheck(tn_check_fn fn, void *user, tn_tensor *const *inputs,
                              uint64_t n_inputs, const tn_gradcheck_options *options);
/* The same for the derivative of the derivative, with random gradients of the outputs. */
TN_API tn_status tn_gradgradcheck(tn_check_fn fn, void *user, tn_tensor *const *inputs,
                                  uint64_t n_inputs, const tn_gradcheck_options *options);

#ifdef __cplusplus
}
#endif

#endif /* TENON_AUTOGRAD_H */
