/* Data in and out: numbers and nested lists, buffers (numpy's arrays), one element. */
#include "python/core/core.h"

#include <string.h>

/* ---- element types ----------------------------------------------------------------------- */

/* The letters of the buffer protocol (module struct), of native size. */
static const char *const formats[TN_DTYPE_END] = {
    [TN_F32] = "f", [TN_F64] = "d", [TN_F16] = "e", [TN_BF16] = NULL, [TN_I8] = "b",
    [TN_I16] = "h", [TN_I32] = "i", [TN_I64] = "q", [TN_U8] = "B",    [TN_BOOL] = "?",
    [TN_U16] = "H", [TN_U32] = "I", [TN_U64] = "Q", [TN_C64] = "Zf",  [TN_C128] = "Zd",
};

static tn_dtype dtype_of_format(const char *format, Py_ssize_t itemsize) {
    if (!format)
        return TN_U8;
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (strcmp(format, "l") == 0)
        return itemsize == 8 ? TN_I64 : TN_I32;
    if (strcmp(format, "L") == 0)
        return itemsize == 8 ? TN_U64 : TN_U32;
    for (tn_dtype d = 0; d < TN_DTYPE_END; d++)
        if (formats[d] && strcmp(formats[d], format) == 0 && tn_dtype_size(d) == itemsize)
            return d;
    return TN_DTYPE_NONE;
}

/* A tensor of its own from row-major elements. */
static tn_tensor *from_elements(const void *data, tn_ints shape, tn_dtype dtype, tn_device device) {
    tn_scope scope = tn_scope_open();
    tn_tensor *made = tn_keep(tn_from_data(data, shape, dtype, device));
    tn_scope_close(scope);
    return made;
}

/* Of that dtype (NONE: as it is), and on that device ({0, 0}: where it is). Both take the object over, and pass NULL
 * on. */
static PyObject *to(PyObject *made, PyObject *want) {
    PyObject *moved = want ? TNP_CALL(to, made, want) : NULL;
    Py_XDECREF(want);
    Py_DECREF(made);
    return moved;
}
static PyObject *as(PyObject *made, tn_dtype dtype) {
    bool is_so = !made || dtype == TN_DTYPE_NONE || tn_dtype_of(tnp_handle(made)) == dtype;
    return is_so ? made : to(made, tnp_dtype_object(dtype));
}
static PyObject *on(PyObject *made, tn_device device) {
    bool is_so = !made || !device.type || tn_device_equal(device, tn_device_of(tnp_handle(made)));
    return is_so ? made : to(made, tnp_device_object(device));
}

/* ---- nested lists ------------------------------------------------------------------------ */

enum { NOTHING, BOOLS, INTS, FLOATS, COMPLEX }; /* kinds, each containing those before */

typedef struct nest {
    int64_t shape[TN_MAX_RANK];
    int rank;
    int kind;
    bool is_u64;    /* the dtype holds integers above 2^63: their bits */
    bool has_large; /* there is one */
    int64_t n;
    union {
        int64_t i64;
        double f64;
    } * values;
    double *imaginary; /* of each; NULL until one is complex */
} nest;

/* What a list or tuple is itself, whatever a subclass says of its length. */
static bool is_list(PyObject *object) {
    return PyList_Check(object) || PyTuple_Check(object);
}
static Py_ssize_t length(PyObject *list) {
    return PyTuple_Check(list) ? PyTuple_Size(list) : PyList_Size(list);
}
static PyObject *element(PyObject *list, Py_ssize_t i) { /* borrowed */
    return PyTuple_Check(list) ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
}

static int measure(PyObject *data, nest *n) {
    n->n = 1;
    for (PyObject *at = data; is_list(at); at = element(at, 0)) {
        if (n->rank == TN_MAX_RANK)
            return PyErr_Format(PyExc_ValueError, "lists are nested more than %d deep",
                                TN_MAX_RANK),
                   -1;
        n->shape[n->rank] = length(at);
        if (__builtin_mul_overflow(n->n, n->shape[n->rank++], &n->n) ||
            n->n > (int64_t)(PY_SSIZE_T_MAX / sizeof *n->values))
            return PyErr_NoMemory(), -1;
        if (n->n == 0)
            break;
    }
    return 0;
}

/* One number as a cell, and its imaginary part: 1, 0 where it is none, -1 with an exception. */
static int number_from(PyObject *data, nest *n, tn_cell *cell, double *imaginary) {
    *imaginary = 0;
    if (PyComplex_Check(data)) {
        *cell = tn_float(PyComplex_RealAsDouble(data));
        *imaginary = PyComplex_ImagAsDouble(data);
        return 1;
    }
    int found = tnp_scalar_from(data, cell);
    if (found >= 0 || !n->is_u64 || !PyLong_Check(data))
        return found;
    PyErr_Clear();
    *cell = tn_int((int64_t)PyLong_AsUnsignedLongLong(data));
    n->has_large = true;
    return PyErr_Occurred() ? -1 : 1;
}

static int set_imaginary(nest *n, int64_t at, double value) {
    if (!n->imaginary)
        n->imaginary = PyMem_Calloc((size_t)n->n, sizeof *n->imaginary);
    if (!n->imaginary)
        return PyErr_NoMemory(), -1;
    n->imaginary[at] = value;
    return 0;
}

/* Writes the numbers of `data`, at depth d, from position *at on. */
static int collect(PyObject *data, nest *n, int d, int64_t *at) {
    if (d < n->rank) {
        bool fits = is_list(data) && length(data) == n->shape[d];
        for (Py_ssize_t i = 0; fits && i < n->shape[d]; i++) {
            PyObject *one = i < length(data) ? Py_NewRef(element(data, i)) : NULL;
            fits = one != NULL; /* a number's __float__ may change the list */
            int done = one ? collect(one, n, d + 1, at) : 0;
            Py_XDECREF(one);
            if (done < 0)
                return -1;
        }
        if (!fits)
            return PyErr_Format(
                       PyExc_ValueError,
                       "lists of different lengths do not make a tensor: %lld were expected "
                       "at depth %d",
                       (long long)n->shape[d], d),
                   -1;
        return 0;
    }
    tn_cell cell;
    double imaginary = 0;
    bool is_tensor = tnp_is_tensor(data);
    PyObject *value = is_tensor ? tnp_item(data, NULL)
                      : tnp_is_complex_number(data)
                          ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, data, NULL)
                          : Py_NewRef(data);
    int found = !value ? -1 : is_list(value) ? 0 : number_from(value, n, &cell, &imaginary);
    bool is_complex = value && PyComplex_Check(value);
    Py_XDECREF(value);
    if (found != 1) {
        if (found == 0)
            PyErr_Format(
                PyExc_TypeError,
                "a tensor is made of numbers and lists of numbers, all equally deep, not of %R",
                (PyObject *)Py_TYPE(data));
        return -1;
    }
    int kind = is_complex                ? COMPLEX
               : cell.tag == TN_CELL_F64 ? FLOATS
               : cell.tag == TN_CELL_I64 ? INTS
                                         : BOOLS;
    if (n->has_large && (kind >= FLOATS || n->kind >= FLOATS))
        return PyErr_SetString(PyExc_OverflowError,
                               "integers of 2^63 and more do not stand beside floating numbers"),
               -1;
    if (is_complex && set_imaginary(n, *at, imaginary) < 0)
        return -1;
    if (kind >= FLOATS && n->kind < FLOATS) /* those before were integers */
        for (int64_t i = 0; i < *at; i++)
            n->values[i].f64 = (double)n->values[i].i64;
    if (kind > n->kind)
        n->kind = kind;
    if (n->kind >= FLOATS)
        n->values[*at].f64 = kind >= FLOATS ? cell.v.f64 : (double)cell.v.i64;
    else
        n->values[*at].i64 = cell.v.i64;
    ++*at;
    return 0;
}

/* The numbers in the widest dtype of their kind, on the CPU. */
static PyObject *widest(const nest *n) {
    tn_ints shape = tn_ints_of(n->shape, n->rank);
    tn_device host = tn_device_parse("cpu:0");
    if (!host.type)
        return tnp_raise();
    if (n->kind != COMPLEX)
        return tnp_wrap(from_elements(n->values, shape,
                                      n->kind == FLOATS || n->kind == NOTHING ? TN_F64
                                      : n->is_u64                             ? TN_U64
                                                                              : TN_I64,
                                      host));
    double *pairs = PyMem_Malloc((size_t)n->n * 2 * sizeof *pairs);
    if (!pairs)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < n->n; i++) {
        pairs[2 * i] = n->values[i].f64;
        pairs[2 * i + 1] = n->imaginary[i];
    }
    PyObject *made = tnp_wrap(from_elements(pairs, shape, TN_C128, host));
    PyMem_Free(pairs);
    return made;
}

static PyObject *from_nest(PyObject *data, tn_dtype dtype, tn_device device) {
    nest n = {.kind = NOTHING, .is_u64 = dtype == TN_U64};
    int64_t at = 0;
    if (measure(data, &n) < 0)
        return NULL;
    n.values = PyMem_Malloc((size_t)(n.n ? n.n : 1) * sizeof *n.values);
    if (!n.values)
        return PyErr_NoMemory();
    PyObject *made = NULL;
    if (collect(data, &n, 0, &at) == 0) {
        if (dtype == TN_DTYPE_NONE)
            dtype = n.kind == COMPLEX                       ? TN_C64
                    : n.kind == FLOATS || n.kind == NOTHING ? TN_F32
                    : n.kind == INTS                        ? TN_I64
                                                            : TN_BOOL;
        if (n.kind == COMPLEX && !tnp_is_complex(dtype))
            PyErr_Format(PyExc_TypeError,
                         "complex numbers do not make a tensor of %s: take their real parts",
                         tn_dtype_name(dtype));
        else
            made = as(widest(&n), dtype);
    }
    PyMem_Free(n.values);
    PyMem_Free(n.imaginary);
    return on(made, device);
}

/* ---- buffers ----------------------------------------------------------------------------- */

static void refuse_format(const char *format, Py_ssize_t itemsize) {
    bool swapped = format[0] == '>' || format[0] == '!';
    if (swapped && dtype_of_format(format + 1, itemsize) != TN_DTYPE_NONE)
        PyErr_Format(PyExc_TypeError,
                     "the buffer's '%s' is in the order of bytes of another machine; NumPy turns "
                     "it round: array.astype(array.dtype.newbyteorder('='))",
                     format);
    else
        PyErr_Format(PyExc_TypeError, "no dtype of Tenon is like the buffer's '%s'", format);
}

static PyObject *from_buffer(PyObject *data, tn_dtype dtype, tn_device device) {
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_FULL_RO) < 0)
        return NULL;
    PyObject *made = NULL;
    tn_dtype own = dtype_of_format(view.format, view.itemsize);
    int64_t shape[TN_MAX_RANK];
    void *elements = NULL;
    if (own == TN_DTYPE_NONE) {
        refuse_format(view.format ? view.format : "B", view.itemsize);
    } else if (view.ndim > TN_MAX_RANK) {
        PyErr_Format(PyExc_TypeError, "the buffer has %d dimensions; tensors have %d at most",
                     view.ndim, TN_MAX_RANK);
    } else if (!(elements = PyMem_Malloc(view.len ? (size_t)view.len : 1))) {
        PyErr_NoMemory();
    } else if (PyBuffer_ToContiguous(elements, &view, view.len, 'C') == 0) {
        for (int i = 0; i < view.ndim; i++)
            shape[i] = view.shape[i];
        made =
            as(tnp_wrap(from_elements(elements, tn_ints_of(shape, view.ndim), own, device)), dtype);
    }
    PyMem_Free(elements);
    PyBuffer_Release(&view);
    return made;
}

PyObject *tnp_tensor_from(PyObject *data, tn_dtype dtype, tn_device device) {
    if (tnp_is_tensor(data)) {
        PyObject *copy = TNP_CALL(detach, data), *made = copy ? TNP_CALL(clone, copy) : NULL;
        Py_XDECREF(copy);
        return on(as(made, dtype), device);
    }
    if (!device.type) {
        device = tn_default_device();
        if (!device.type)
            return tnp_raise();
    }
    if (PyObject_CheckBuffer(data))
        return from_buffer(data, dtype, device);
    PyObject *list = Py_IS_TYPE(data, &PyRange_Type) ? PySequence_List(data) : Py_NewRef(data);
    PyObject *made = list ? from_nest(list, dtype, device) : NULL;
    Py_XDECREF(list);
    return made;
}

static PyObject *tensor(PyObject *module, PyObject *args, PyObject *named) {
    PyObject *data, *dtype_given = Py_None, *device_given = Py_None;
    int requires_grad = 0;
    static char *keywords[] = {"data", "dtype", "device", "requires_grad", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$OOp:tensor", keywords, &data, &dtype_given,
                                     &device_given, &requires_grad))
        return NULL;
    tn_dtype dtype = TN_DTYPE_NONE;
    tn_device device = tn_no_device();
    if (dtype_given != Py_None && tnp_dtype_from(dtype_given, &dtype) != 1)
        return PyErr_Format(PyExc_TypeError, "dtype is a tenon.dtype or its name, not %R",
                            dtype_given);
    int found = device_given == Py_None ? 1 : tnp_device_from(device_given, &device);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "device is a tenon.device or its name, not %R", device_given);
    PyObject *made = found == 1 ? tnp_tensor_from(data, dtype, device) : NULL;
    if (made && requires_grad && !tn_set_requires_grad(tnp_handle(made), true)) {
        Py_DECREF(made);
        return tnp_raise();
    }
    return made;
}

static bool asks(int flags, int for_what) {
    return (flags & for_what) == for_what;
}

/* Column-major without gaps. */
static bool lies_by_columns(const tn_tensor *t) {
    int64_t next = 1;
    for (int64_t d = 0; d < tn_rank(t); next *= tn_size(t, d), d++)
        if (tn_size(t, d) > 1 && tn_stride(t, d) != next)
            return false;
    return true;
}

/* A view of our memory, for numpy and memoryview: where the device's memory is the host's. */
int tnp_get_buffer(PyObject *self, Py_buffer *view, int flags) {
    tn_tensor *t = tnp_handle(self);
    tn_dtype dtype = tn_dtype_of(t);
    view->obj = NULL;
    if (dtype >= TN_DTYPE_END || !formats[dtype])
        return PyErr_Format(PyExc_BufferError,
                            "buffers have no type like %s: convert it to float32",
                            tn_dtype_name(dtype)),
               -1;
    if (tn_requires_grad(t))
        return PyErr_SetString(
                   PyExc_BufferError,
                   "the tensor requires a gradient, whose history would not see what is "
                   "written: use detach()"),
               -1;
    bool strided = asks(flags, PyBUF_STRIDES) && !asks(flags, PyBUF_C_CONTIGUOUS);
    if (asks(flags, PyBUF_F_CONTIGUOUS) ? !lies_by_columns(t) : !strided && !tn_is_contiguous(t))
        return PyErr_SetString(PyExc_BufferError,
                               "the tensor does not lie as this buffer is to lie; "
                               "contiguous() is row-major"),
               -1;
    tn_status status;
    tn_device device = tn_device_of(t);
    TNP_WITHOUT_GIL(status = tn_synchronize(device));
    void *data = status == TN_OK ? tn_data(t) : NULL;
    if (!data && tn_error_status() != TN_OK) {
        PyErr_Format(PyExc_BufferError, "%s", tn_error_message());
        tn_error_clear();
        return -1;
    }
    int rank = (int)tn_rank(t);
    Py_ssize_t *sizes = PyMem_Malloc((size_t)(2 * rank + 1) * sizeof *sizes);
    if (!sizes)
        return PyErr_NoMemory(), -1;
    int64_t item = tn_dtype_size(dtype);
    for (int d = 0; d < rank; d++) {
        sizes[d] = (Py_ssize_t)tn_size(t, d);
        sizes[rank + d] = (Py_ssize_t)(tn_stride(t, d) * item);
    }
    static char nothing;
    *view = (Py_buffer){
        .buf = data ? data : &nothing,
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)(tn_numel(t) * item),
        .itemsize = (Py_ssize_t)item,
        .readonly = 0,
        .ndim = rank,
        .format = asks(flags, PyBUF_FORMAT) ? (char *)formats[dtype] : NULL,
        .shape = asks(flags, PyBUF_ND) ? sizes : NULL,
        .strides = asks(flags, PyBUF_STRIDES) ? sizes + rank : NULL,
        .internal = sizes,
    };
    return 0;
}

void tnp_release_buffer(PyObject *self, Py_buffer *view) {
    PyMem_Free(view->internal);
}

/* ---- elements as Python's numbers -------------------------------------------------------- */

static double widen_half(tn_dtype dtype, uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float value;
    if (dtype == TN_F16) {
        uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 0x3ff;
        if (exponent == 0) {
            double tiny = (double)fraction / 16777216.0;
            return sign ? -tiny : tiny;
        }
        bits = sign | (exponent == 31 ? 0xffu : exponent + 112) << 23 | fraction << 13;
    }
    memcpy(&value, &bits, 4);
    return (double)value;
}

static PyObject *number(tn_dtype dtype, const char *at) {
#define READ(type) (*(const type *)at)
    switch (dtype) {
    case TN_F32:
        return PyFloat_FromDouble((double)READ(float));
    case TN_F64:
        return PyFloat_FromDouble(READ(double));
    case TN_F16:
    case TN_BF16:
        return PyFloat_FromDouble(widen_half(dtype, READ(uint16_t)));
    case TN_I8:
        return PyLong_FromLong(READ(int8_t));
    case TN_I16:
        return PyLong_FromLong(READ(int16_t));
    case TN_I32:
        return PyLong_FromLong(READ(int32_t));
    case TN_I64:
        return PyLong_FromLongLong(READ(int64_t));
    case TN_U8:
        return PyLong_FromLong(READ(uint8_t));
    case TN_U16:
        return PyLong_FromLong(READ(uint16_t));
    case TN_U32:
        return PyLong_FromUnsignedLong(READ(uint32_t));
    case TN_U64:
        return PyLong_FromUnsignedLongLong(READ(uint64_t));
    case TN_C64:
        return PyComplex_FromDoubles((double)READ(float), (double)((const float *)at)[1]);
    case TN_C128:
        return PyComplex_FromDoubles(READ(double), ((const double *)at)[1]);
    default:
        return PyBool_FromLong(READ(uint8_t));
    }
#undef READ
}

static PyObject *nested(tn_tensor *t, int64_t d, const char **at) {
    tn_dtype dtype = tn_dtype_of(t);
    if (d == tn_rank(t)) {
        PyObject *value = number(dtype, *at);
        *at += tn_dtype_size(dtype);
        return value;
    }
    int64_t n = tn_size(t, d);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *one = nested(t, d + 1, at);
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, one);
    }
    return list;
}

/* All elements in the host's memory, row-major; PyMem_Free. */
static void *elements_of(tn_tensor *t) {
    uint64_t bytes = (uint64_t)(tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
    void *data = PyMem_Malloc(bytes ? bytes : 1);
    if (!data)
        return PyErr_NoMemory();
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_to_host(t, data, bytes));
    if (status == TN_OK)
        return data;
    PyMem_Free(data);
    return tnp_raise();
}

static PyObject *to_list(PyObject *self, PyObject *ignored) {
    void *data = elements_of(tnp_handle(self));
    const char *at = data;
    PyObject *list = data ? nested(tnp_handle(self), 0, &at) : NULL;
    PyMem_Free(data);
    return list;
}

PyObject *tnp_item(PyObject *self, PyObject *ignored) {
    tn_tensor *t = tnp_handle(self);
    if (tn_numel(t) != 1)
        return PyErr_Format(PyExc_ValueError, "a tensor of %lld elements is not one number",
                            (long long)tn_numel(t));
    double room[2]; /* of a complex128 */
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_to_host(t, room, (uint64_t)tn_dtype_size(tn_dtype_of(t))));
    return status == TN_OK ? number(tn_dtype_of(t), (const char *)room) : tnp_raise();
}

/* The elements as bytes, of any dtype and device: what is pickled. */
static PyObject *to_bytes(PyObject *self, PyObject *ignored) {
    tn_tensor *t = tnp_handle(self);
    void *data = elements_of(t);
    PyObject *bytes = data ? PyBytes_FromStringAndSize(
                                 data, (Py_ssize_t)(tn_numel(t) * tn_dtype_size(tn_dtype_of(t))))
                           : NULL;
    PyMem_Free(data);
    return bytes;
}

/* from_bytes(bytes, shape, dtype, device): what to_bytes gave. */
static PyObject *from_bytes(PyObject *module, PyObject *args) {
    const char *data;
    Py_ssize_t n;
    PyObject *shape_given, *dtype_given, *device_given = Py_None;
    if (!PyArg_ParseTuple(args, "y#OO|O:from_bytes", &data, &n, &shape_given, &dtype_given,
                          &device_given))
        return NULL;
    tnp_arena arena;
    tnp_arena_init(&arena);
    tn_ints shape;
    tn_dtype dtype;
    tn_device device = tn_no_device();
    PyObject *made = NULL;
    if (tnp_ints_from(shape_given, &shape, &arena) != 1 ||
        tnp_dtype_from(dtype_given, &dtype) != 1 ||
        (device_given != Py_None && tnp_device_from(device_given, &device) != 1)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError,
                            "from_bytes takes bytes, a shape, a dtype and a device");
    } else {
        int64_t bytes = tn_dtype_size(dtype);
        bool fits = true;
        for (int64_t i = 0; i < shape.n && fits; i++)
            fits = shape.data[i] >= 0 && !__builtin_mul_overflow(bytes, shape.data[i], &bytes);
        if (!fits || bytes != n)
            PyErr_Format(PyExc_ValueError, "%zd bytes are not a tensor of this shape and dtype", n);
        else
            made = tnp_wrap(from_elements(data, shape, dtype, device));
    }
    tnp_arena_free(&arena);
    return made;
}

PyMethodDef tnp_data_methods[] = {
    {"tolist", to_list, METH_NOARGS, "Its elements as nested lists; waits for the device."},
    {"item", tnp_item, METH_NOARGS, "The one element as Python's number; waits for the device."},
    {"tobytes", to_bytes, METH_NOARGS, "Its elements, row-major, as bytes; waits for the device."},
    {NULL, NULL, 0, NULL},
};

PyMethodDef tnp_data_functions[] = {
    {"tensor", (PyCFunction)(void (*)(void))tensor, METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False): a copy of a number, of nested "
     "lists, of a "
     "buffer (numpy's array) or of a tensor. Floating numbers become float32, whole ones int64."},
    {"from_bytes", from_bytes, METH_VARARGS,
     "from_bytes(bytes, shape, dtype, device=None): of row-major elements."},
    {NULL, NULL, 0, NULL},
};
