/* What the files of tenon._core share: the C part of the Python package.
 *
 * Everything is built with the limited API of CPython 3.11, so that one binary serves every later
 * version. Calls of operators are boxed (tenon/dispatch.h): arguments become cells by the operator's
 * schema, results are references that are ours. The GIL is released while an operator runs.
 *
 * Functions return NULL or -1 with a Python exception set, as CPython's do. */
#ifndef TNI_PYTHON_CORE_CORE_H
#define TNI_PYTHON_CORE_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <tenon/tenon.h>

/* ---- errors (errors.c) ------------------------------------------------------------------- */

/* Raises the standing error as a Python exception, by its status, and forgets it. Returns NULL. */
PyObject *tnp_raise(void);
/* NULL with the standing error raised where status is one, else None. */
PyObject *tnp_none_or_raise(tn_status status);
/* The reverse, in callbacks: makes the Python exception that is set the standing error. */
tn_status tnp_fail_with_exception(const char *where);

/* ---- texts (arguments.c) ----------------------------------------------------------------- */

/* Of a str without NUL, which C would take for the end; NULL, with an exception where it has one. */
const char *tnp_text(PyObject *object);

/* ---- dtypes and devices (dtype.c, device.c) ---------------------------------------------- */

PyObject *tnp_dtype_object(tn_dtype dtype);
/* Of a dtype, its name, or Python's float, int and bool: 1, 0 where it is none (without exception). */
int tnp_dtype_from(PyObject *object, tn_dtype *out);
static inline bool tnp_is_complex(tn_dtype dtype) {
    return dtype == TN_C64 || dtype == TN_C128;
}

PyObject *tnp_device_object(tn_device device);
/* Of a device or its name: 1; 0 where it is neither (without exception); -1 with an exception where there
 * is no such device. */
int tnp_device_from(PyObject *object, tn_device *out);

/* ---- tensors (tensor.c) ------------------------------------------------------------------ */

typedef struct tnp_tensor {
    PyObject_HEAD tn_tensor *handle; /* a reference of ours */
    PyObject *weak;
} tnp_tensor;

extern PyTypeObject *tnp_tensor_type;

static inline int tnp_is_tensor(PyObject *object) {
    return Py_TYPE(object) == tnp_tensor_type || PyObject_TypeCheck(object, tnp_tensor_type);
}
static inline tn_tensor *tnp_handle(PyObject *object) {
    return ((tnp_tensor *)object)->handle;
}
/* Takes the reference over; NULL raises the standing error. */
PyObject *tnp_wrap(tn_tensor *owned);
/* Takes a reference of its own. */
PyObject *tnp_wrap_borrowed(tn_tensor *tensor);

/* ---- arguments (arguments.c) ------------------------------------------------------------- */

/* What cells of a call point to, for as long as the call lasts. */
typedef struct tnp_arena {
    int64_t words[64];
    uint32_t used;
    void *blocks[4]; /* what did not fit */
    uint32_t n_blocks;
    PyObject *kept[16]; /* tuples of tensors: others may change a list while the GIL is not held */
    uint32_t n_kept;
} tnp_arena;

static inline void tnp_arena_init(tnp_arena *arena) {
    arena->used = arena->n_blocks = arena->n_kept = 0;
}
/* Takes the tuple over; NULL, and more of them than anybody has, is -1 with an exception. */
int tnp_arena_keep(tnp_arena *arena, PyObject *tuple);

void *tnp_arena_take(tnp_arena *arena, size_t bytes);
void tnp_arena_free(tnp_arena *arena);

/* Fills a cell from `object` as the argument's type asks: 1; 0 where the object is of another type
 * (without exception); -1 with an exception. */
int tnp_cell_from(const tn_arg_info *arg, PyObject *object, tn_cell *cell, tnp_arena *arena);
/* A list of integers from a sequence of them: 1, 0, -1 as above. */
int tnp_ints_from(PyObject *object, tn_ints *out, tnp_arena *arena);
/* The handles of a tensor or of the tensors that one iterates over, some of them None (NULL) where with_none; the
 * arena keeps them. NULL with an exception, in which they are `what`. */
tn_tensor **tnp_handles(PyObject *object, bool with_none, const char *what, tnp_arena *arena,
                        uint64_t *out_n);
/* A Python number as a Scalar: 1; 0 where it is none; -1 with an exception. */
int tnp_scalar_from(PyObject *object, tn_cell *cell);
/* Python's complex, or NumPy's: a number that has an imaginary part, and no order. */
bool tnp_is_complex_number(PyObject *object);

/* ---- operators (operators.c) ------------------------------------------------------------- */

/* All overloads of one name. */
typedef struct tnp_packet tnp_packet;

/* Reads the table of operators; once. */
int tnp_operators_init(PyObject *module);
/* NULL with an exception where there is no operator of that name. */
const tnp_packet *tnp_packet_find(const char *name);

/* Calls the first overload that the arguments fit: args[n], then as many as `names` (NULL or a tuple) has. */
PyObject *tnp_call(const tnp_packet *packet, PyObject *const *args, Py_ssize_t n, PyObject *names);
/* The same with `self` before the others. */
PyObject *tnp_call_method(const tnp_packet *packet, PyObject *self, PyObject *const *args,
                          Py_ssize_t n, PyObject *names);

/* Python's own operators: positions in a table of packets that is filled at the start. */
#define TNP_PACKETS(X) \
    X(add) \
    X(sub) \
    X(rsub) \
    X(mul) \
    X(div) \
    X(floor_divide) \
    X(remainder) \
    X(pow) \
    X(matmul) \
    X(neg) \
    X(abs) \
    X(bitwise_and) \
    X(bitwise_or) \
    X(bitwise_xor) \
    X(bitwise_not) \
    X(bitwise_left_shift) \
    X(bitwise_right_shift) \
    X(add_) \
    X(sub_) \
    X(mul_) \
    X(div_) \
    X(floor_divide_) \
    X(remainder_) \
    X(pow_) \
    X(bitwise_and_) \
    X(bitwise_or_) \
    X(bitwise_xor_) \
    X(eq) \
    X(ne) \
    X(lt) \
    X(le) \
    X(gt) \
    X(ge) \
    X(select) \
    X(slice) \
    X(unsqueeze) \
    X(index) \
    X(index_put_) \
    X(copy_) \
    X(fill_) \
    X(flip) \
    X(to) \
    X(t) \
    X(permute) \
    X(transpose) \
    X(reciprocal) \
    X(full) \
    X(logical_not) \
    X(clone) \
    X(detach) \
    X(full_like) \
    X(contiguous) \
    X(unbind) \
    X(scalar_tensor) \
    X(zeros)
enum {
#define TNP_PACKET_ENUM(name) TNP_##name,
    TNP_PACKETS(TNP_PACKET_ENUM)
#undef TNP_PACKET_ENUM
        TNP_N_PACKETS
};
extern const tnp_packet *tnp_packets[TNP_N_PACKETS];

/* Calls one of them with the objects that follow. */
#define TNP_CALL_AT(position, ...) \
    tnp_call(tnp_packets[position], (PyObject *const[]){__VA_ARGS__}, \
             sizeof((PyObject *const[]){__VA_ARGS__}) / sizeof(PyObject *), NULL)
#define TNP_CALL(name, ...) TNP_CALL_AT(TNP_##name, __VA_ARGS__)

/* _set_array_promotion(on) -> before: of the calling thread (tensor.c). */
PyObject *tnp_set_array_promotion(PyObject *module, PyObject *on);

/* ---- libtenon-nn (files.c) --------------------------------------------------------------- */

/* The address of a function of it; NULL with an ImportError where the library, or what it needs, is not there. */
void *tnp_nn_function(const char *name);

/* ---- the other parts --------------------------------------------------------------------- */

/* tensor(data, *, dtype, device, requires_grad) and asarray's part of it (data.c). */
PyObject *tnp_tensor_from(PyObject *data, tn_dtype dtype, tn_device device);
PyObject *tnp_to_list(tn_tensor *t);
int tnp_get_buffer(PyObject *self, Py_buffer *view, int flags);
void tnp_release_buffer(PyObject *self, Py_buffer *view);
PyObject *tnp_item(PyObject *self, PyObject *ignored);

/* x[key], x[key] = value (index.c). */
PyObject *tnp_subscript(PyObject *self, PyObject *key);
int tnp_assign_subscript(PyObject *self, PyObject *key, PyObject *value);

/* Methods and properties of Tensor, and functions of the module, that are no operators. */
extern PyMethodDef tnp_autograd_methods[], tnp_autograd_functions[];
extern PyGetSetDef tnp_autograd_properties[];
extern PyMethodDef tnp_dlpack_methods[], tnp_dlpack_functions[];
extern PyMethodDef tnp_data_methods[], tnp_data_functions[];
extern PyMethodDef tnp_dtype_functions[];
extern PyMethodDef tnp_device_functions[];
extern PyMethodDef tnp_optim_functions[];
extern PyMethodDef tnp_file_functions[];
extern PyMethodDef tnp_custom_functions[];
extern PyMethodDef tnp_profile_functions[];
extern PyMethodDef tnp_graph_functions[];
extern PyMethodDef tnp_loader_functions[];

int tnp_errors_init(PyObject *module);
int tnp_dtypes_init(PyObject *module);
int tnp_devices_init(PyObject *module);
int tnp_tensors_init(PyObject *module);
int tnp_exchange_init(void); /* once there is the type of tensors (exchange.c) */
int tnp_optim_init(PyObject *module);
int tnp_autograd_init(PyObject *module);

/* Does `call`, a C call that takes time, without the GIL. */
#define TNP_WITHOUT_GIL(call) \
    do { \
        PyThreadState *tnp_state = PyEval_SaveThread(); \
        call; \
        PyEval_RestoreThread(tnp_state); \
    } while (0)

/* Drops a registration once, and what is around it may be gone then. */
static inline void tnp_drop_registration(tn_registration **registration) {
    tn_registration *mine = *registration;
    *registration = NULL;
    if (mine)
        TNP_WITHOUT_GIL(tn_registration_drop(mine));
}

#endif
