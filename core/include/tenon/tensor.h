/* tenon/tensor.h: tensors, scopes, devices as values, data in and out.
 *
 * Ownership, exactly
 *   - A functional operator's result belongs to the innermost open scope of the thread, which
 *     drops it when it closes. In-place and out forms return their argument and add nothing.
 *   - tn_keep takes a reference of your own, tn_drop gives it back; tn_free gives the scope's
 *     reference back early; tn_escape moves it to the parent scope. A tensor that is used after
 *     that is another's: TENON_SCOPE_DEBUG=1 finds such uses, and references given back twice, among
 *     the last 65,536 tensors that ended.
 *   - NULL is a failed tensor: operators pass it on and leave the standing error alone
 *     (tenon/base.h). TN_NONE stands for an optional tensor that is left out.
 *
 * Threads: reading and calling from several threads is safe. Keep a tensor before handing it to
 * another thread. Changing one tensor from two threads is the caller's race.
 */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/base.h>
#include <tenon/dispatch.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

/* ---- small values ------------------------------------------------------------------------ */

/* A device: make one with tn_device_of or tn_device_parse. All zero: "not given". */
typedef struct tn_device {
    int32_t type;  /* an id of this process, 1..64 */
    int32_t index; /* of its type */
} tn_device;

/* A borrowed list of integers: a shape, dimensions, strides. n < 0: "not given". */
typedef struct tn_ints {
    const int64_t *data;
    int64_t n;
} tn_ints;

/* A number that keeps its kind: integer, floating or bool; tag NONE: "not given". */
typedef tn_cell tn_scalar;

/* What stands for an optional argument that is left out: by its type in C, and always a cell of tag
 * TN_CELL_NONE in a boxed call (tn_op_call), which is why bindings are better off there.
 *   Tensor? TN_NONE    int? TN_NO_INT    int[]? tn_no_ints()    Scalar? tn_no_scalar()
 *   ScalarType? TN_DTYPE_NONE    Device? tn_no_device()    str? NULL
 * Foreign function interfaces that pass no union by value (ctypes, cffi) cannot declare tn_scalar:
 * they box the call, or pass it as a struct of two 64-bit integers, tag | n << 32 and the value. */
#define TN_NONE TN_ADDRESS(tn_tensor, 1)
#define TN_NO_INT INT64_MIN

static inline tn_scalar tn_int(int64_t value) {
    tn_scalar s;
    s.tag = TN_CELL_I64;
    s.n = 0;
    s.v.i64 = value;
    return s;
}
static inline tn_scalar tn_float(double value) {
    tn_scalar s;
    s.tag = TN_CELL_F64;
    s.n = 0;
    s.v.f64 = value;
    return s;
}
static inline tn_scalar tn_bool(bool value) {
    tn_scalar s;
    s.tag = TN_CELL_BOOL;
    s.n = 0;
    s.v.boolean = value;
    return s;
}
static inline tn_scalar tn_no_scalar(void) {
    tn_scalar s;
    s.tag = TN_CELL_NONE;
    s.n = 0;
    s.v.i64 = 0;
    return s;
}
static inline tn_ints tn_ints_of(const int64_t *data, int64_t n) {
    tn_ints v;
    v.data = data;
    v.n = n;
    return v;
}
static inline tn_ints tn_no_ints(void) {
    return tn_ints_of(0, -1);
}
static inline tn_device tn_no_device(void) {
    tn_device d = {0, 0};
    return d;
}

/* TN_SHAPE(2, 3): a shape or a list of dimensions, valid in the enclosing block (C) or expression
 * (C++). TN_SCALAR_SHAPE: rank 0. */
#ifdef __cplusplus
} /* extern "C" */
static inline tn_ints tn_ints_from(std::initializer_list<int64_t> list) {
    return tn_ints_of(list.begin(), static_cast<int64_t>(list.size()));
}
extern "C" {
#define TN_SHAPE(...) (tn_ints_from({__VA_ARGS__}))
#define TN_SCALAR_SHAPE (tn_ints_of(0, 0))
#else
#define TN_SHAPE(...) \
    ((tn_ints){(const int64_t[]){__VA_ARGS__}, \
               (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))})
#define TN_SCALAR_SHAPE ((tn_ints){0, 0})
#endif
#define TN_DIMS(...) TN_SHAPE(__VA_ARGS__)

/* ---- references and scopes --------------------------------------------------------------- */

/* Takes one more reference and returns t. NULL and TN_NONE pass through. */
TN_API tn_tensor *tn_keep(tn_tensor *t);
/* Gives one back; the tensor dies with the last. */
TN_API void tn_drop(tn_tensor *t);
/* Gives back the reference that a scope of this thread holds; t may be used no more unless kept. A
 * tensor that no scope of the thread holds is left alone. */
TN_API void tn_free(tn_tensor *t);
/* Hands an owned reference (a result of tn_op_call) to the innermost scope and returns it. */
TN_API tn_tensor *tn_give(tn_tensor *owned);
/* Frees the array of a TENSORS result of tn_op_call, after its references were taken or dropped. */
TN_API void tn_free_list(tn_cell *result);
/* Moves the innermost scope's reference to its parent scope and returns t. */
TN_API tn_tensor *tn_escape(tn_tensor *t);

/* A scope is a watermark on the thread's stack of temporaries; closing one closes all above it. A
 * thread has a root scope, closed when the thread ends or by tn_scope_close(0). Opening never
 * fails: without memory for the mark, the parent scope takes what the new one would have held. In a
 * hook or a custom function a scope that was open before stays open: closing it is TN_ERR_STATE. */
typedef uint64_t tn_scope;
TN_API tn_scope tn_scope_open(void);
TN_API void tn_scope_close(tn_scope scope);
/* How many tensors the thread's scopes hold. */
TN_API uint64_t tn_scope_held(void);

/* For language bindings, whose objects know when they end. `on`: what the calling thread's root
 * scope would get from now on belongs to the caller, who gives the reference back with tn_drop;
 * scopes that are opened hold as ever, and tn_escape from the outermost hands to the caller.
 * In-place and out forms still return their argument and add nothing. Callbacks that run in the
 * thread (handlers, hooks, release functions) must open a scope for what they make. Until it is
 * switched off, the thread ends or calls tn_shutdown. TN_ERR_STATE, and nothing changes, while a scope
 * is open or the root scope holds tensors. */
TN_API tn_status tn_set_results_owned(bool on);
TN_API bool tn_results_owned(void);

/* TN_SCOPE; at the head of a block: what operators make in the rest of the block dies at its end,
 * however it is left. One per block. */
#ifdef __cplusplus
} /* extern "C" */
class tn_scope_guard {
  public:
    tn_scope_guard() : scope(tn_scope_open()) {}
    ~tn_scope_guard() {
        tn_scope_close(scope);
    }
    tn_scope_guard(const tn_scope_guard &) = delete;
    tn_scope_guard &operator=(const tn_scope_guard &) = delete;

  private:
    tn_scope scope;
};
extern "C" {
#define TN_SCOPE tn_scope_guard tn_scope_of_block
#else
static inline void tn_scope_cleanup(tn_scope *scope) {
    tn_scope_close(*scope);
}
#define TN_SCOPE \
    __attribute__((cleanup(tn_scope_cleanup), unused)) tn_scope tn_scope_of_block = tn_scope_open()
#endif

/* ---- what a tensor is -------------------------------------------------------------------- */

TN_API int64_t tn_rank(const tn_tensor *t); /* -1 for NULL */
/* Size of a dimension; negative counts from the end. -1, with an error, when there is none such. */
TN_API int64_t tn_size(const tn_tensor *t, int64_t dim);
TN_API int64_t tn_stride(const tn_tensor *t, int64_t dim); /* in elements */
TN_API tn_ints tn_sizes(const tn_tensor *t);               /* borrowed from t */
TN_API tn_ints tn_strides(const tn_tensor *t);
TN_API int64_t tn_numel(const tn_tensor *t);
TN_API tn_dtype tn_dtype_of(const tn_tensor *t);
TN_API tn_device tn_device_of(const tn_tensor *t);
TN_API bool tn_is_contiguous(const tn_tensor *t);
/* Position of the first element in its storage, in elements. */
TN_API int64_t tn_storage_offset(const tn_tensor *t);
/* Do the two use one storage? */
TN_API bool tn_shares_storage(const tn_tensor *a, const tn_tensor *b);
/* How often the storage was written by in-place operators. */
TN_API uint64_t tn_version_of(const tn_tensor *t);

/* "f32" and so on; "?" for no dtype. The numbers lie below TN_DTYPE_END, with gaps: tn_dtype_list
 * (tenon/introspect.h) has those that there are. */
TN_API const char *tn_dtype_name(tn_dtype dtype);
TN_API int64_t tn_dtype_size(tn_dtype dtype);
/* The dtype that values of both kinds promote to, as PyTorch's promote_types. TN_DTYPE_NONE where there
 * is none, as for u16 and i32: convert one. */
TN_API tn_dtype tn_promote(tn_dtype a, tn_dtype b);

/* ---- data in and out --------------------------------------------------------------------- */

/* A tensor with a copy of `data`: row-major elements of `dtype`. Belongs to the scope. Data in
 * pinned memory (tn_pinned_alloc) must stay as it is until the current stream has passed this
 * point; other data may be changed at once. device {0, 0}: the default device. */
TN_API tn_tensor *tn_from_data(const void *data, tn_ints shape, tn_dtype dtype, tn_device device);

/* Copies t's elements, row-major, to `out` of `bytes`, which must be exactly numel * size. Waits
 * for the device. */
TN_API tn_status tn_to_host(tn_tensor *t, void *out, uint64_t bytes);

/* The value of a tensor of one element, as double or as integer. Waits for the device. What the type
 * does not hold is refused, a complex number with an imaginary part among it: tn_to_host has all. */
TN_API tn_status tn_item(tn_tensor *t, double *out);
TN_API tn_status tn_item_i64(tn_tensor *t, int64_t *out);

/* Are both of one shape, with equal elements (of dtypes that are promoted)? NaN equals nothing. Waits
 * for the device, on which both must be. */
TN_API tn_status tn_equal(tn_tensor *self, tn_tensor *other, bool *out);
/* Is every element of self within atol + rtol * |other| of other's (tn_isclose), shapes broadcast? With
 * equal_nan NaNs are near each other. Waits for the device. */
TN_API tn_status tn_allclose(tn_tensor *self, tn_tensor *other, double rtol, double atol,
                             bool equal_nan, bool *out);

/* Address of the first element where the device's memory is host memory, else NULL with an error.
 * Wait for the device before reading. */
TN_API void *tn_data(tn_tensor *t);

/* The tensor as text, like PyTorch prints it; free with tn_string_free. NULL on failure. */
TN_API char *tn_to_string(tn_tensor *t);
TN_API void tn_string_free(char *s);
/* tn_to_string to standard output. */
TN_API tn_status tn_print(tn_tensor *t);

#ifdef __cplusplus
}
#endif

#endif /* TENON_TENSOR_H */
