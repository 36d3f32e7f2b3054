/* tenon.dtype: one object for each. */
#include "python/core/core.h"

#include <string.h>

typedef struct dtype_object {
    PyObject_HEAD tn_dtype dtype;
} dtype_object;

static PyTypeObject *dtype_type;
static PyObject *objects[TN_DTYPE_END]; /* NULL: no dtype has the number */

/* As Python calls them. */
static const char *const names[TN_DTYPE_END] = {
    [TN_F32] = "float32", [TN_F64] = "float64",   [TN_F16] = "float16",     [TN_BF16] = "bfloat16",
    [TN_I8] = "int8",     [TN_I16] = "int16",     [TN_I32] = "int32",       [TN_I64] = "int64",
    [TN_U8] = "uint8",    [TN_BOOL] = "bool",     [TN_U16] = "uint16",      [TN_U32] = "uint32",
    [TN_U64] = "uint64",  [TN_C64] = "complex64", [TN_C128] = "complex128",
};

static tn_dtype of(PyObject *self) {
    return ((dtype_object *)self)->dtype;
}

PyObject *tnp_dtype_object(tn_dtype dtype) {
    if (dtype < 0 || dtype >= TN_DTYPE_END || !objects[dtype])
        return PyErr_Format(PyExc_TypeError, "dtype %d is newer than this package", (int)dtype);
    return Py_NewRef(objects[dtype]);
}

int tnp_dtype_from(PyObject *object, tn_dtype *out) {
    if (Py_TYPE(object) == dtype_type) {
        *out = of(object);
        return 1;
    }
    if (object == (PyObject *)&PyComplex_Type) {
        *out = TN_C64;
        return 1;
    }
    if (object == (PyObject *)&PyFloat_Type || object == (PyObject *)&PyLong_Type ||
        object == (PyObject *)&PyBool_Type) {
        *out = object == (PyObject *)&PyFloat_Type  ? TN_F32
               : object == (PyObject *)&PyLong_Type ? TN_I64
                                                    : TN_BOOL;
        return 1;
    }
    const char *name = tnp_text(object);
    for (tn_dtype d = 0; name && d < TN_DTYPE_END; d++)
        if (names[d] && (strcmp(name, names[d]) == 0 || strcmp(name, tn_dtype_name(d)) == 0)) {
            *out = d;
            return 1;
        }
    PyErr_Clear();
    return 0;
}

static PyObject *repr(PyObject *self) {
    return PyUnicode_FromFormat("tenon.%s", names[of(self)]);
}

static PyObject *get_name(PyObject *self, void *closure) {
    return PyUnicode_FromString(names[of(self)]);
}
static PyObject *get_itemsize(PyObject *self, void *closure) {
    return PyLong_FromLongLong(tn_dtype_size(of(self)));
}
static PyObject *get_is_floating_point(PyObject *self, void *closure) {
    return PyBool_FromLong(of(self) <= TN_BF16);
}
static PyObject *get_is_complex(PyObject *self, void *closure) {
    return PyBool_FromLong(tnp_is_complex(of(self)));
}
static PyObject *get_is_signed(PyObject *self, void *closure) {
    return PyBool_FromLong(of(self) < TN_U8 || tnp_is_complex(of(self)));
}

/* Pickled as tenon.float32: by name. */
static PyObject *reduce(PyObject *self, PyObject *ignored) {
    return PyUnicode_FromString(names[of(self)]);
}

static PyGetSetDef properties[] = {
    {"name", get_name, NULL, "Its name (\"float32\").", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"is_floating_point", get_is_floating_point, NULL, "Is it one of the floating dtypes?", NULL},
    {"is_complex", get_is_complex, NULL, "Is it one of the complex dtypes?", NULL},
    {"is_signed", get_is_signed, NULL, "Has it negative values?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_repr, repr},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc, "The type of a tensor's elements: tenon.float32, tenon.int64 ..."},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "tenon.dtype",
    .basicsize = sizeof(dtype_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyObject *promote_types(PyObject *module, PyObject *args) {
    PyObject *given[2];
    tn_dtype dtypes[2];
    if (!PyArg_ParseTuple(args, "OO:promote_types", &given[0], &given[1]))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (tnp_dtype_from(given[i], &dtypes[i]) != 1)
            return PyErr_Format(PyExc_TypeError, "dtype is a tenon.dtype or its name, not %R",
                                given[i]);
    tn_dtype both = tn_promote(dtypes[0], dtypes[1]);
    if (both == TN_DTYPE_NONE)
        return PyErr_Format(PyExc_TypeError, "%R and %R promote to no dtype: convert one first",
                            objects[dtypes[0]], objects[dtypes[1]]);
    return tnp_dtype_object(both);
}

PyMethodDef tnp_dtype_functions[] = {
    {"promote_types", promote_types, METH_VARARGS,
     "promote_types(a, b): the dtype that values of both dtypes promote to."},
    {NULL, NULL, 0, NULL},
};

int tnp_dtypes_init(PyObject *module) {
    dtype_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!dtype_type || PyModule_AddObjectRef(module, "dtype", (PyObject *)dtype_type) < 0)
        return -1;
    for (tn_dtype d = 0; d < TN_DTYPE_END; d++) {
        if (!names[d])
            continue;
        allocfunc make = (allocfunc)PyType_GetSlot(dtype_type, Py_tp_alloc);
        dtype_object *object = (dtype_object *)make(dtype_type, 0);
        if (!object)
            return -1;
        object->dtype = d;
        objects[d] = (PyObject *)object;
        if (PyModule_AddObjectRef(module, names[d], objects[d]) < 0)
            return -1;
    }
    return 0;
}
