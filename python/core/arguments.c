/* From Python's objects to the cells of a call. */
#include "python/core/core.h"

#include <string.h>

/* ---- memory of a call -------------------------------------------------------------------- */

void *tnp_arena_take(tnp_arena *arena, size_t bytes) {
    uint32_t n = (uint32_t)((bytes + 7) / 8),
             room = (uint32_t)(sizeof arena->words / 8) - arena->used;
    if (n <= room) {
        void *taken = arena->words + arena->used;
        arena->used += n;
        return taken;
    }
    if (arena->n_blocks == sizeof arena->blocks / sizeof arena->blocks[0])
        return PyErr_Format(PyExc_ValueError, "too many long lists in one call");
    void *block = PyMem_Malloc(bytes);
    if (!block)
        return PyErr_NoMemory();
    return arena->blocks[arena->n_blocks++] = block;
}

int tnp_arena_keep(tnp_arena *arena, PyObject *tuple) {
    if (!tuple)
        return -1;
    if (arena->n_kept == sizeof arena->kept / sizeof arena->kept[0]) {
        Py_DECREF(tuple);
        return PyErr_Format(PyExc_ValueError, "too many lists in one call"), -1;
    }
    arena->kept[arena->n_kept++] = tuple;
    return 0;
}

void tnp_arena_free(tnp_arena *arena) {
    for (uint32_t i = 0; i < arena->n_blocks; i++)
        PyMem_Free(arena->blocks[i]);
    for (uint32_t i = 0; i < arena->n_kept; i++)
        Py_DECREF(arena->kept[i]);
    tnp_arena_init(arena);
}

/* ---- texts ------------------------------------------------------------------------------- */

const char *tnp_text(PyObject *object) {
    Py_ssize_t n;
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &n) : NULL;
    if (text && strlen(text) != (size_t)n)
        return PyErr_Format(PyExc_ValueError, "a text with a NUL in it: %R", object), NULL;
    return text;
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* An integer, or what says that it is one (numpy's): 1, 0 or, where it is beyond 64 bits, -1. */
static int integer(PyObject *object, int64_t *out) {
    PyObject *number;
    if (PyLong_Check(object))
        number = Py_NewRef(object);
    else if (PyIndex_Check(object) && !tnp_is_tensor(object))
        number = PyNumber_Index(object);
    else
        return 0;
    if (!number)
        return -1;
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow)
        PyErr_SetString(PyExc_OverflowError,
                        "an integer is beyond int64, which has room for -2**63 to 2**63 - 1; "
                        "beyond it are elements of uint64 alone");
    return overflow || (*out == -1 && PyErr_Occurred()) ? -1 : 1;
}

bool tnp_is_complex_number(PyObject *object) {
    if (PyComplex_Check(object) || PyFloat_Check(object) || PyLong_Check(object) ||
        tnp_is_tensor(object) || !PyObject_HasAttrString(object, "__complex__"))
        return PyComplex_Check(object);
    /* NumPy's numbers all have __complex__ and __float__; to module numbers they say what they are */
    PyObject *numbers = PyImport_ImportModule("numbers");
    PyObject *any = numbers ? PyObject_GetAttrString(numbers, "Complex") : NULL;
    PyObject *real = any ? PyObject_GetAttrString(numbers, "Real") : NULL;
    bool is =
        real && PyObject_IsInstance(object, any) == 1 && PyObject_IsInstance(object, real) == 0;
    Py_XDECREF(numbers);
    Py_XDECREF(any);
    Py_XDECREF(real);
    PyErr_Clear();
    return is;
}

int tnp_scalar_from(PyObject *object, tn_cell *cell) {
    if (PyBool_Check(object)) {
        *cell = tn_bool(object == Py_True);
        return 1;
    }
    if (PyFloat_Check(object)) {
        *cell = tn_float(PyFloat_AsDouble(object));
        return 1;
    }
    int64_t value;
    int found = integer(object, &value);
    if (found == 1)
        *cell = tn_int(value);
    if (found != 0)
        return found;
    if (tnp_is_tensor(object) || !PyObject_HasAttrString(object, "__float__") ||
        PyUnicode_Check(object) || tnp_is_complex_number(object))
        return 0;
    PyObject *number = PyNumber_Float(object); /* numpy's float32, say */
    if (!number && PyErr_ExceptionMatches(PyExc_TypeError))
        return PyErr_Clear(), 0;
    if (!number)
        return -1;
    *cell = tn_float(PyFloat_AsDouble(number));
    Py_DECREF(number);
    return 1;
}

/* ---- lists ------------------------------------------------------------------------------- */

static int is_list(PyObject *object) {
    return PyTuple_Check(object) || PyList_Check(object);
}
int tnp_ints_from(PyObject *object, tn_ints *out, tnp_arena *arena) {
    if (!is_list(object))
        return 0;
    PyObject *all = PySequence_Tuple(object); /* an __index__ may change the list */
    if (tnp_arena_keep(arena, all) < 0)
        return -1;
    Py_ssize_t n = PyTuple_Size(all);
    int64_t *data = tnp_arena_take(arena, (size_t)n * sizeof(int64_t));
    if (!data)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int found = integer(PyTuple_GetItem(all, i), &data[i]);
        if (found != 1)
            return found;
    }
    *out = tn_ints_of(data, n);
    return 1;
}

tn_tensor **tnp_handles(PyObject *object, bool with_none, const char *what, tnp_arena *arena,
                        uint64_t *out_n) {
    bool is_one = tnp_is_tensor(object) || object == Py_None;
    PyObject *all = is_one ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    if (tnp_arena_keep(arena, all) < 0)
        return NULL;
    Py_ssize_t n = PyTuple_Size(all);
    tn_tensor **list = tnp_arena_take(arena, (size_t)(n + 1) * sizeof *list);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *one = PyTuple_GetItem(all, i);
        if (!tnp_is_tensor(one) && !(with_none && one == Py_None))
            return PyErr_Format(PyExc_TypeError, "%s: a tensor or several are taken, not %R", what,
                                one),
                   NULL;
        list[i] = one == Py_None ? NULL : tnp_handle(one);
    }
    *out_n = (uint64_t)n;
    return list;
}

static int tensors(PyObject *object, bool with_none, tn_cell *cell, tnp_arena *arena) {
    if (!is_list(object))
        return 0;
    PyObject *all = PySequence_Tuple(object);
    if (tnp_arena_keep(arena, all) < 0)
        return -1;
    Py_ssize_t n = PyTuple_Size(all);
    tn_tensor **data = tnp_arena_take(arena, (size_t)n * sizeof(void *));
    if (!data)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *one = PyTuple_GetItem(all, i);
        if (!tnp_is_tensor(one) && !(with_none && one == Py_None))
            return 0;
        data[i] = one == Py_None ? NULL : tnp_handle(one);
    }
    *cell = (tn_cell){.tag = TN_CELL_TENSORS, .n = (uint32_t)n, .v.pointer = data};
    return 1;
}

/* ---- a cell ------------------------------------------------------------------------------ */

static int one_of(const tn_arg_info *arg, PyObject *object, tn_cell *cell, tnp_arena *arena) {
    const char *type = arg->type;
    int64_t value;
    int found;
    switch (type[0]) {
    case 'T': /* Tensor, Tensor[], Tensor?[] */
        if (type[6])
            return tensors(object, type[6] == '?', cell, arena);
        if (!tnp_is_tensor(object))
            return 0;
        *cell = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = tnp_handle(object)};
        return 1;
    case 'i': /* int, int[] */
        found = integer(object, &value);
        if (found == 1 && (type[3] == 0 || arg->n_ints > 0)) {
            *cell = tn_int(value);
            return 1;
        }
        if (found == 1) { /* a list of one */
            int64_t *one = tnp_arena_take(arena, sizeof *one);
            if (!one)
                return -1;
            *one = value;
            *cell = (tn_cell){.tag = TN_CELL_INTS, .n = 1, .v.ints = one};
            return 1;
        }
        if (found == -1 || type[3] == 0)
            return found;
        tn_ints ints;
        found = tnp_ints_from(object, &ints, arena);
        if (found == 1)
            *cell = (tn_cell){.tag = TN_CELL_INTS, .n = (uint32_t)ints.n, .v.ints = ints.data};
        return found;
    case 'f': /* float */
        found = PyBool_Check(object) ? 0 : tnp_scalar_from(object, cell);
        if (found == 1 && cell->tag == TN_CELL_I64)
            *cell = tn_float((double)cell->v.i64);
        return found;
    case 'b': /* bool */
        if (!PyBool_Check(object))
            return 0;
        *cell = tn_bool(object == Py_True);
        return 1;
    case 'D': { /* Device */
        tn_device device;
        found = tnp_device_from(object, &device);
        if (found == 1)
            *cell = tn_int(tn_device_pack(device));
        return found;
    }
    case 's': /* str */
        if (!PyUnicode_Check(object))
            return 0;
        *cell = (tn_cell){.tag = TN_CELL_STRING, .v.string = tnp_text(object)};
        return cell->v.string ? 1 : -1;
    default: /* Scalar, ScalarType */
        if (type[6] == 0)
            return tnp_scalar_from(object, cell);
        tn_dtype dtype;
        found = tnp_dtype_from(object, &dtype);
        if (found == 1)
            *cell = tn_int(dtype);
        return found;
    }
}

int tnp_cell_from(const tn_arg_info *arg, PyObject *object, tn_cell *cell, tnp_arena *arena) {
    if (object == Py_None) {
        *cell = (tn_cell){.tag = TN_CELL_NONE};
        return arg->optional;
    }
    return one_of(arg, object, cell, arena);
}
