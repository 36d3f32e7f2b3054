/* tenon/autocast.h: mixed precision without casts in the program.
 *
 *     tn_set_autocast(TN_BF16);            products and convolutions in bf16, what needs the range of
 *     loss = model(x);                     f32 (softmax, norms, losses, sums) in f32
 *     tn_set_autocast(TN_DTYPE_NONE);
 *     tn_backward(loss);                   gradients of the parameters are of their dtype
 *
 * What an operator does to its arguments is in the reference (docs/operators.md, "autocast"), as
 * PyTorch's torch.autocast has it:
 *   low      f32 and halves become the dtype that was set
 *   f32      halves become f32; an operator with a `dtype` is told f32 instead
 *   widest   those of f32 and halves become the widest among them
 *
 * f64, integers and bool stay as they are; operators that the reference says nothing of, in-place
 * forms and forms with `out` compute in what they are given. Casts have gradients. Parameters are
 * cast anew in every call, and not kept: what is stored stays one tensor, of the dtype it was made
 * in.
 *
 * For f16, whose smallest numbers many gradients are below, scale the loss: tn_grad_scaler in
 * tenon/optim.h. bf16 needs no scaling.
 */
#ifndef TENON_AUTOCAST_H
#define TENON_AUTOCAST_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the calling thread: on, with TN_F16 or TN_BF16, or off, with TN_DTYPE_NONE. Returns what held
 * before, as to be put back; with another dtype it changes nothing and sets TN_ERR_DTYPE. The
 * backward pass is not under it, forward functions of tn_function are. */
TN_API tn_dtype tn_set_autocast(tn_dtype dtype);
TN_API tn_dtype tn_autocast(void);

/* TN_AUTOCAST(TN_BF16); at the head of a block: on until its end, however it is left. */
#ifdef __cplusplus
} /* extern "C" */
class tn_autocast_guard {
  public:
    explicit tn_autocast_guard(tn_dtype dtype) : before(tn_set_autocast(dtype)) {}
    ~tn_autocast_guard() {
        tn_set_autocast(before);
    }
    tn_autocast_guard(const tn_autocast_guard &) = delete;
    tn_autocast_guard &operator=(const tn_autocast_guard &) = delete;

  private:
    tn_dtype before;
};
extern "C" {
#define TN_AUTOCAST(dtype) tn_autocast_guard tn_autocast_of_block(dtype)
#else
static inline void tn_autocast_cleanup(tn_dtype *before) {
    tn_set_autocast(*before);
}
#define TN_AUTOCAST(dtype) \
    __attribute__((cleanup(tn_autocast_cleanup), unused)) tn_dtype tn_autocast_of_block = \
        tn_set_autocast(dtype)
#endif

#ifdef __cplusplus
}
#endif

#endif /* TENON_AUTOCAST_H */
