/* tenon.Tensor. */
#include "python/core/core.h"

#include <structmember.h> /* before 3.12 the only place of PyMemberDef */

PyTypeObject *tnp_tensor_type;

/* ---- life -------------------------------------------------------------------------------- */

PyObject *tnp_wrap(tn_tensor *owned) {
    if (!owned)
        return tnp_raise();
    static allocfunc alloc;
    if (!alloc)
        alloc = (allocfunc)PyType_GetSlot(tnp_tensor_type, Py_tp_alloc);
    tnp_tensor *self = (tnp_tensor *)alloc(tnp_tensor_type, 0);
    if (!self) {
        tn_drop(owned);
        return NULL;
    }
    self->handle = owned;
    return (PyObject *)self;
}

PyObject *tnp_wrap_borrowed(tn_tensor *tensor) {
    return tnp_wrap(tn_keep(tensor));
}

static void end(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (((tnp_tensor *)self)->weak)
        PyObject_ClearWeakRefs(self);
    tn_drop(tnp_handle(self));
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Tensor(other): another object for the same tensor, of the subclass that is made (nn.Parameter). */
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *other;
    static char *keywords[] = {"other", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O:Tensor", keywords, &other))
        return NULL;
    if (!tnp_is_tensor(other))
        return PyErr_Format(PyExc_TypeError,
                            "Tensor takes a tensor; tenon.tensor makes one of numbers");
    tnp_tensor *self = (tnp_tensor *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self)
        self->handle = tn_keep(tnp_handle(other));
    return (PyObject *)self;
}

/* ---- what it is -------------------------------------------------------------------------- */

static PyObject *ints(tn_ints list) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)list.n);
    for (int64_t i = 0; tuple && i < list.n; i++)
        PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromLongLong(list.data[i]));
    return tuple;
}
static PyObject *get_shape(PyObject *self, void *closure) {
    return ints(tn_sizes(tnp_handle(self)));
}
static PyObject *get_ndim(PyObject *self, void *closure) {
    return PyLong_FromLongLong(tn_rank(tnp_handle(self)));
}
static PyObject *get_numel(PyObject *self, void *closure) {
    return PyLong_FromLongLong(tn_numel(tnp_handle(self)));
}
static PyObject *get_dtype(PyObject *self, void *closure) {
    return tnp_dtype_object(tn_dtype_of(tnp_handle(self)));
}
static PyObject *get_device(PyObject *self, void *closure) {
    return tnp_device_object(tn_device_of(tnp_handle(self)));
}
static PyObject *get_itemsize(PyObject *self, void *closure) {
    return PyLong_FromLongLong(tn_dtype_size(tn_dtype_of(tnp_handle(self))));
}
static PyObject *get_nbytes(PyObject *self, void *closure) {
    tn_tensor *t = tnp_handle(self);
    return PyLong_FromLongLong(tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
}
static PyObject *get_t(PyObject *self, void *closure) {
    int64_t rank = tn_rank(tnp_handle(self));
    if (rank != 2)
        return PyErr_Format(PyExc_ValueError,
                            "T is of 2 dimensions, this tensor has %lld: permute or mT",
                            (long long)rank);
    return TNP_CALL(t, self);
}
static PyObject *get_mt(PyObject *self, void *closure) {
    PyObject *last = PyLong_FromLong(-1), *before = PyLong_FromLong(-2);
    PyObject *made = last && before ? TNP_CALL(transpose, self, before, last) : NULL;
    Py_XDECREF(last);
    Py_XDECREF(before);
    return made;
}
static PyObject *get_version(PyObject *self, void *closure) {
    return PyLong_FromUnsignedLongLong(tn_version_of(tnp_handle(self)));
}

static PyObject *stride(PyObject *self, PyObject *ignored) {
    return ints(tn_strides(tnp_handle(self)));
}
static PyObject *storage_offset(PyObject *self, PyObject *ignored) {
    return PyLong_FromLongLong(tn_storage_offset(tnp_handle(self)));
}
static PyObject *is_contiguous(PyObject *self, PyObject *ignored) {
    return PyBool_FromLong(tn_is_contiguous(tnp_handle(self)));
}
static PyObject *numel(PyObject *self, PyObject *ignored) {
    return get_numel(self, NULL);
}
static PyObject *dim(PyObject *self, PyObject *ignored) {
    return get_ndim(self, NULL);
}
static PyObject *data_ptr(PyObject *self, PyObject *ignored) {
    void *address = tn_data(tnp_handle(self));
    if (!address && tn_error_status() != TN_OK)
        return tnp_raise();
    return PyLong_FromVoidPtr(address);
}

static PyObject *repr(PyObject *self) {
    char *text;
    tn_tensor *t = tnp_handle(self);
    TNP_WITHOUT_GIL(text = tn_to_string(t)); /* waits for the device */
    if (!text)
        return tnp_raise();
    PyObject *made = PyUnicode_FromString(text);
    tn_string_free(text);
    return made;
}

static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "Its sizes.", NULL},
    {"ndim", get_ndim, NULL, "How many dimensions it has.", NULL},
    {"dtype", get_dtype, NULL, "The type of its elements.", NULL},
    {"device", get_device, NULL, "Where it is.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"T", get_t, NULL, "A view with its two dimensions exchanged.", NULL},
    {"mT", get_mt, NULL, "A view with its last two dimensions exchanged.", NULL},
    {"_version", get_version, NULL, "How often its storage was written in place.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"stride", stride, METH_NOARGS, "Its strides, in elements."},
    {"storage_offset", storage_offset, METH_NOARGS, "Where it begins in its storage, in elements."},
    {"is_contiguous", is_contiguous, METH_NOARGS, "Are its elements row-major, without gaps?"},
    {"numel", numel, METH_NOARGS, "How many elements it has."},
    {"dim", dim, METH_NOARGS, "How many dimensions it has."},
    {"data_ptr", data_ptr, METH_NOARGS,
     "The address of its first element, where memory has addresses."},
    {NULL, NULL, 0, NULL},
};

/* ---- Python's operators ------------------------------------------------------------------ */

/* A new reference to a tensor or number, or a tensor made of an array, like `tensor`'s place; NULL without an
 * exception: arithmetic with it is left to the other side. */
static PyObject *operand(PyObject *object, PyObject *tensor) {
    if (tnp_is_tensor(object) || PyLong_Check(object) || PyFloat_Check(object))
        return Py_NewRef(object);
    if (PyObject_CheckBuffer(object) && PyObject_HasAttrString(object, "__array__"))
        return tnp_tensor_from(object, TN_DTYPE_NONE, tn_device_of(tnp_handle(tensor)));
    if (tnp_is_complex_number(object))
        return PyErr_Format(
            PyExc_TypeError,
            "complex numbers, as %R, are stored, moved and converted, and not computed with",
            object);
    tn_cell ignored;
    return tnp_scalar_from(object, &ignored) == 1 ? Py_NewRef(object) : NULL;
}

/* A number as a tensor of its own kind, for operators that take tensors alone on the left. */
static PyObject *like_number(PyObject *number, PyObject *tensor) {
    tn_cell cell;
    if (tnp_scalar_from(number, &cell) != 1) /* beyond 64 bits */
        return NULL;
    tn_dtype own = tn_dtype_of(tnp_handle(tensor));
    tn_dtype dtype = own;
    if (cell.tag == TN_CELL_F64 && own > TN_BF16)
        dtype = TN_F32;
    else if (cell.tag == TN_CELL_I64 && own == TN_BOOL)
        dtype = TN_I64;
    PyObject *names = Py_BuildValue("(ss)", "dtype", "device"), *made = NULL;
    PyObject *given[] = {number, tnp_dtype_object(dtype), get_device(tensor, NULL)};
    if (names && given[1] && given[2])
        made = tnp_call(tnp_packets[TNP_scalar_tensor], given, 1, names);
    Py_XDECREF(names);
    Py_XDECREF(given[1]);
    Py_XDECREF(given[2]);
    return made;
}

static PyObject *not_implemented(void) {
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
}

/* Does a tensor without dimensions count in the promotion of Python's operators as any other does, as the array API
 * standard has it? Else its dtype gives way, as in PyTorch and in Tenon's own operators. */
static _Thread_local bool counts_every_tensor;

PyObject *tnp_set_array_promotion(PyObject *module, PyObject *on) {
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0)
        return NULL;
    bool before = counts_every_tensor;
    counts_every_tensor = wanted;
    return PyBool_FromLong(before);
}

/* Casts both, where one alone has dimensions and that mode is on. */
static int promote(PyObject **left, PyObject **right) {
    if (!counts_every_tensor || !tnp_is_tensor(*left) || !tnp_is_tensor(*right))
        return 0;
    tn_tensor *a = tnp_handle(*left), *b = tnp_handle(*right);
    if ((tn_rank(a) == 0) == (tn_rank(b) == 0) || tn_dtype_of(a) == tn_dtype_of(b))
        return 0;
    PyObject *want = tnp_dtype_object(tn_promote(tn_dtype_of(a), tn_dtype_of(b)));
    for (int i = 0; want && i < 2; i++) {
        PyObject **one = i ? right : left, *cast = TNP_CALL(to, *one, want);
        if (!cast) {
            Py_DECREF(want);
            return -1;
        }
        Py_DECREF(*one);
        *one = cast;
    }
    Py_XDECREF(want);
    return want ? 0 : -1;
}

/* op(a, b), of which one is a tensor. */
static PyObject *binary(int op, PyObject *a, PyObject *b) {
    PyObject *tensor = tnp_is_tensor(a) ? a : b, *left = operand(a, tensor);
    PyObject *right = left ? operand(b, tensor) : NULL, *made = NULL;
    if (right && !tnp_is_tensor(left)) {
        PyObject *number = left;
        left = like_number(number, tensor);
        Py_DECREF(number);
    }
    if (!right)
        made = not_implemented();
    else if (left && promote(&left, &right) == 0)
        made = TNP_CALL_AT(op, left, right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return made;
}

/* For those that commute a number may as well stand on the right. */
static PyObject *commuting(int op, PyObject *a, PyObject *b) {
    return tnp_is_tensor(a) ? binary(op, a, b) : binary(op, b, a);
}

#define BINARY(name, how) \
    static PyObject *nb_##name(PyObject *a, PyObject *b) { \
        return how(TNP_##name, a, b); \
    }
BINARY(add, commuting)
BINARY(mul, commuting)
BINARY(bitwise_and, commuting)
BINARY(bitwise_or, commuting)
BINARY(bitwise_xor, commuting)
BINARY(div, binary)
BINARY(floor_divide, binary)
BINARY(remainder, binary)
BINARY(bitwise_left_shift, binary)
BINARY(bitwise_right_shift, binary)

static PyObject *nb_sub(PyObject *a, PyObject *b) {
    return tnp_is_tensor(a) ? binary(TNP_sub, a, b) : binary(TNP_rsub, b, a);
}
static PyObject *nb_power(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return binary(TNP_pow, a, b);
}
static PyObject *nb_matmul(PyObject *a, PyObject *b) {
    if (!tnp_is_tensor(a) || !tnp_is_tensor(b))
        Py_RETURN_NOTIMPLEMENTED;
    return TNP_CALL(matmul, a, b);
}

/* op(a, b) of a tensor a, which op may write. */
static PyObject *of_tensor(int op, PyObject *a, PyObject *b) {
    PyObject *right = operand(b, a), *made = right ? TNP_CALL_AT(op, a, right) : not_implemented();
    Py_XDECREF(right);
    return made;
}

#define IN_PLACE(name) \
    static PyObject *nb_inplace_##name(PyObject *a, PyObject *b) { \
        return of_tensor(TNP_##name##_, a, b); \
    }
IN_PLACE(add)
IN_PLACE(sub)
IN_PLACE(mul)
IN_PLACE(div)
IN_PLACE(floor_divide)
IN_PLACE(remainder)
IN_PLACE(bitwise_and)
IN_PLACE(bitwise_or)
IN_PLACE(bitwise_xor)
static PyObject *nb_inplace_power(PyObject *a, PyObject *b, PyObject *modulus) {
    return modulus == Py_None ? of_tensor(TNP_pow_, a, b) : not_implemented();
}

/* Shifts have no form that writes. */
static PyObject *shift_in_place(int op, PyObject *a, PyObject *b) {
    PyObject *shifted = of_tensor(op, a, b), *made = shifted;
    if (shifted && shifted != Py_NotImplemented) {
        made = TNP_CALL(copy_, a, shifted);
        Py_DECREF(shifted);
    }
    return made;
}
static PyObject *nb_inplace_lshift(PyObject *a, PyObject *b) {
    return shift_in_place(TNP_bitwise_left_shift, a, b);
}
static PyObject *nb_inplace_rshift(PyObject *a, PyObject *b) {
    return shift_in_place(TNP_bitwise_right_shift, a, b);
}

static PyObject *nb_negative(PyObject *a) {
    return TNP_CALL(neg, a);
}
static PyObject *nb_positive(PyObject *a) {
    return Py_NewRef(a);
}
static PyObject *nb_absolute(PyObject *a) {
    return TNP_CALL(abs, a);
}
static PyObject *nb_invert(PyObject *a) {
    return TNP_CALL(bitwise_not, a);
}

static PyObject *compare(PyObject *a, PyObject *b, int how) {
    static const int ops[] = {[Py_LT] = TNP_lt, [Py_LE] = TNP_le, [Py_EQ] = TNP_eq,
                              [Py_NE] = TNP_ne, [Py_GT] = TNP_gt, [Py_GE] = TNP_ge};
    PyObject *left = Py_NewRef(a), *right = operand(b, a), *made = NULL;
    if (!right)
        made = not_implemented();
    else if (promote(&left, &right) == 0)
        made = TNP_CALL_AT(ops[how], left, right);
    Py_DECREF(left);
    Py_XDECREF(right);
    return made;
}

/* By identity: equal tensors are not one key of a dict. */
static Py_hash_t hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)self >> 4);
}

/* ---- one element ------------------------------------------------------------------------- */

static int nb_bool(PyObject *self) {
    PyObject *value = tnp_item(self, NULL);
    int holds = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return holds;
}
static PyObject *nb_float(PyObject *self) {
    PyObject *value = tnp_item(self, NULL), *made = value ? PyNumber_Float(value) : NULL;
    Py_XDECREF(value);
    return made;
}
static PyObject *nb_int(PyObject *self) {
    PyObject *value = tnp_item(self, NULL), *made = value ? PyNumber_Long(value) : NULL;
    Py_XDECREF(value);
    return made;
}
static PyObject *nb_index(PyObject *self) {
    tn_dtype dtype = tn_dtype_of(tnp_handle(self));
    if (dtype <= TN_BF16 || tn_numel(tnp_handle(self)) != 1)
        return PyErr_Format(
            PyExc_TypeError,
            "only a tensor of one integer is an index, not one of %lld elements of %s",
            (long long)tn_numel(tnp_handle(self)), tn_dtype_name(dtype));
    return nb_int(self);
}

/* ---- a sequence of its first dimension --------------------------------------------------- */

static Py_ssize_t length(PyObject *self) {
    if (tn_rank(tnp_handle(self)) == 0) {
        PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
        return -1;
    }
    return (Py_ssize_t)tn_size(tnp_handle(self), 0);
}
static PyObject *iterate(PyObject *self) {
    if (length(self) < 0)
        return NULL;
    PyObject *parts = TNP_CALL(unbind, self), *iterator = parts ? PyObject_GetIter(parts) : NULL;
    Py_XDECREF(parts);
    return iterator;
}

/* ---- the type ---------------------------------------------------------------------------- */

/* Methods of operators: generated, one function for each, since a method must know its operator. */
#define TNP_METHOD(name, text) \
    static PyObject *method_##name(PyObject *self, PyObject *const *args, Py_ssize_t n, \
                                   PyObject *names) { \
        static const tnp_packet *packet; \
        if (!packet && !(packet = tnp_packet_find(#name))) \
            return NULL; \
        return tnp_call_method(packet, self, args, n, names); \
    }
#include "python/methods.inc"
#undef TNP_METHOD

static PyMethodDef operator_methods[] = {
#define TNP_METHOD(name, text) \
    {#name, (PyCFunction)(void (*)(void))method_##name, METH_FASTCALL | METH_KEYWORDS, text},
#include "python/methods.inc"
#undef TNP_METHOD
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tnp_tensor, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, end},
    {Py_tp_repr, repr},
    {Py_tp_hash, hash},
    {Py_tp_richcompare, compare},
    {Py_tp_iter, iterate},
    {Py_tp_getset, properties},
    {Py_tp_methods, operator_methods},
    {Py_tp_members, members},
    {Py_mp_length, length},
    {Py_mp_subscript, tnp_subscript},
    {Py_mp_ass_subscript, tnp_assign_subscript},
    {Py_bf_getbuffer, tnp_get_buffer},
    {Py_bf_releasebuffer, tnp_release_buffer},
    {Py_nb_add, nb_add},
    {Py_nb_subtract, nb_sub},
    {Py_nb_multiply, nb_mul},
    {Py_nb_true_divide, nb_div},
    {Py_nb_floor_divide, nb_floor_divide},
    {Py_nb_remainder, nb_remainder},
    {Py_nb_power, nb_power},
    {Py_nb_matrix_multiply, nb_matmul},
    {Py_nb_and, nb_bitwise_and},
    {Py_nb_or, nb_bitwise_or},
    {Py_nb_xor, nb_bitwise_xor},
    {Py_nb_lshift, nb_bitwise_left_shift},
    {Py_nb_rshift, nb_bitwise_right_shift},
    {Py_nb_inplace_add, nb_inplace_add},
    {Py_nb_inplace_subtract, nb_inplace_sub},
    {Py_nb_inplace_multiply, nb_inplace_mul},
    {Py_nb_inplace_true_divide, nb_inplace_div},
    {Py_nb_inplace_floor_divide, nb_inplace_floor_divide},
    {Py_nb_inplace_remainder, nb_inplace_remainder},
    {Py_nb_inplace_power, nb_inplace_power},
    {Py_nb_inplace_and, nb_inplace_bitwise_and},
    {Py_nb_inplace_or, nb_inplace_bitwise_or},
    {Py_nb_inplace_lshift, nb_inplace_lshift},
    {Py_nb_inplace_rshift, nb_inplace_rshift},
    {Py_nb_inplace_xor, nb_inplace_bitwise_xor},
    {Py_nb_negative, nb_negative},
    {Py_nb_positive, nb_positive},
    {Py_nb_absolute, nb_absolute},
    {Py_nb_invert, nb_invert},
    {Py_nb_bool, nb_bool},
    {Py_nb_float, nb_float},
    {Py_nb_int, nb_int},
    {Py_nb_index, nb_index},
    {Py_tp_doc, "An array of elements of one dtype on a device, with gradients. tenon.tensor, "
                "tenon.zeros and the "
                "like make them."},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "tenon.Tensor",
    .basicsize = sizeof(tnp_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* Methods that are no operators hide operators of their name. */
static int add_methods(PyMethodDef *list) {
    for (; list->ml_name; list++) {
        PyObject *method = PyDescr_NewMethod(tnp_tensor_type, list);
        if (!method ||
            PyObject_SetAttrString((PyObject *)tnp_tensor_type, list->ml_name, method) < 0)
            return -1;
        Py_DECREF(method);
    }
    return 0;
}

static int add_properties(PyGetSetDef *list) {
    for (; list->name; list++) {
        PyObject *property = PyDescr_NewGetSet(tnp_tensor_type, list);
        if (!property ||
            PyObject_SetAttrString((PyObject *)tnp_tensor_type, list->name, property) < 0)
            return -1;
        Py_DECREF(property);
    }
    return 0;
}

int tnp_tensors_init(PyObject *module) {
    tnp_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!tnp_tensor_type || add_methods(methods) < 0 || add_methods(tnp_autograd_methods) < 0 ||
        add_methods(tnp_data_methods) < 0 || add_methods(tnp_dlpack_methods) < 0 ||
        add_properties(tnp_autograd_properties) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)tnp_tensor_type);
}
