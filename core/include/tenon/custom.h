/* tenon/custom.h: kernels that a program brings, for an operator of its own or in place of a
 * plugin's.
 *
 * A kernel is a tn_kernel record of tenon/plugin.h, written with the same convention: it gets ready
 * views in call->args and ready outputs in call->outs, and puts its work on call->stream. The core
 * adapts each call to it. samples/custom_op has the whole of an operator: schema, composition,
 * kernel, derivative.
 *
 * For an operator that the program defined (tn_op_define)
 *   record->op is the operator's name, record->schema_hash may be 0. It needs a tensor argument,
 *   returns tensors (not lists), and writes none of its arguments. The kernel's arguments are the
 *   operator's. dtypes[i] says what its i-th tensor argument may be; where that is 0 it must have
 *   the dtype of the first one given, which dtypes[0] is about. A Scalar arrives as F64 or I64, by
 *   that dtype. The outputs are allocated before the call, as the outputs function says; without
 *   one the call is pointwise: tensor arguments are broadcast to one shape, and each output has
 *   that shape and the dtype of the first tensor. By record->flags inputs are made contiguous and
 *   broadcasts materialised, as for a plugin's kernel. What the kernel cannot take (other dtypes,
 *   an argument without elements, `supports` says no) goes to the operator's Backend handler for
 *   every device type: its composition. Without one the fallback policy decides
 *   (tenon/fallback.h).
 *
 * For a kernel operator of tenon/kernels.h
 *   record->op and record->schema_hash are TN_KERNEL_name and TN_KERNEL_HASH_name, and there is no
 *   outputs function: the record goes before those of the plugin.
 *
 * Ownership: the record is copied; what its `user` points to, and its functions, must be there
 * until it was unregistered and calls under way have returned. Threads: registering and
 * unregistering are safe while others call; a call sees the kernels from before or from after.
 */
#ifndef TENON_CUSTOM_H
#define TENON_CUSTOM_H

#include <tenon/dispatch.h>
#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an output of a call is to be. */
typedef struct tn_output {
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
} tn_output;

/* Says what outputs[], one for each return of the schema, are to be. Each comes in with dtype and
 * shape of the first tensor given. `args` are the operator's: TENSOR cells hold tn_tensor *. Looks
 * at shapes and attributes, not at elements; refuses with tn_fail. `user` is the record's. */
typedef tn_status (*tn_outputs_fn)(const tn_cell *args, tn_output *outputs, void *user);

/* Gives a kernel to all devices of a type ("cpu", "npu@com.acme"), open or yet to be opened; the
 * newest goes before older ones, and before handlers registered earlier. tn_registration_drop takes
 * it back and restores what was there. NULL with an error. `origin` is shown by `tenon ops`. */
TN_API tn_registration *tn_kernel_register(const char *device_type, const tn_kernel *record,
                                           tn_outputs_fn outputs, const char *origin);

/* Address of a view's first element, in kernels for a device type whose memory handles are
 * addresses, such as "cpu". */
static inline void *tn_view_address(const tn_tensor_view *view) {
    return TN_ADDRESS(void, view->memory + view->offset);
}

#ifdef __cplusplus
}
#endif

#endif /* TENON_CUSTOM_H */
