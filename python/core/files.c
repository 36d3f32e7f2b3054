/* Files: safetensors by libtenon-nn, IDX by libtenon.
 *
 * libtenon-nn is opened when something of it is first asked for: it needs a library for JSON, without which
 * everything else is to work. */
#include "python/core/core.h"

#include <dlfcn.h>
#include <tenon/safetensors.h>

/* What is called of it. */
#define NN(X) \
    X(open) \
    X(close) \
    X(count) \
    X(get_info) \
    X(read) \
    X(write)

static struct {
#define MEMBER(name) __typeof__(&tn_safetensors_##name) name;
    NN(MEMBER)
#undef MEMBER
} nn;

void *tnp_nn_function(const char *name) {
    static void *library; /* open for good */
    if (!library)
        library = dlopen("libtenon-nn.so.0", RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function)
        PyErr_Format(PyExc_ImportError, "%s is of libtenon-nn: %s", name, dlerror());
    return function;
}

static int find_library(void) {
#define FIND(name) \
    if (!nn.name && !(*(void **)&nn.name = tnp_nn_function("tn_safetensors_" #name))) \
        return -1;
    NN(FIND)
#undef FIND
    return 0;
}

/* ---- safetensors ------------------------------------------------------------------------- */

/* {name: tensor} of an open file. */
static PyObject *read_all(const tn_safetensors *file, tn_device device) {
    PyObject *made = PyDict_New();
    for (uint64_t i = 0; made && i < nn.count(file); i++) {
        tn_safetensors_info info = {.struct_size = sizeof info};
        tn_scope scope = tn_scope_open();
        tn_tensor *t = NULL;
        if (nn.get_info(file, i, &info) == TN_OK)
            TNP_WITHOUT_GIL(t = nn.read(file, info.name, device));
        PyObject *one = tnp_wrap(tn_keep(t));
        tn_scope_close(scope);
        if (!one || PyDict_SetItemString(made, info.name, one) < 0)
            Py_CLEAR(made);
        Py_XDECREF(one);
    }
    return made;
}

static PyObject *load(PyObject *module, PyObject *args, PyObject *named) {
    PyObject *path, *where = Py_None;
    tn_device device = tn_no_device();
    static char *keywords[] = {"path", "device", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&|O:load", keywords, PyUnicode_FSConverter,
                                     &path, &where))
        return NULL;
    int found = where == Py_None ? 1 : tnp_device_from(where, &device);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "device is a tenon.device or its name, not %R", where);
    PyObject *made = NULL;
    if (found == 1 && find_library() == 0) {
        tn_safetensors *file;
        TNP_WITHOUT_GIL(file = nn.open(PyBytes_AsString(path)));
        made = file ? read_all(file, device) : tnp_raise();
        nn.close(file);
    }
    Py_DECREF(path);
    return made;
}

static PyObject *save(PyObject *module, PyObject *args, PyObject *keywords) {
    PyObject *tensors, *path, *name, *tensor;
    static char *words[] = {"tensors", "path", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O&:save", words, &PyDict_Type, &tensors,
                                     PyUnicode_FSConverter, &path))
        return NULL;
    PyObject *all = PyDict_Copy(tensors); /* others may change the dict meanwhile */
    Py_ssize_t n = all ? PyDict_Size(all) : 0, at = 0, i = 0;
    tn_named_tensor *list = all ? PyMem_Calloc((size_t)n + 1, sizeof *list) : NULL;
    bool ready = list && find_library() == 0;
    while (ready && PyDict_Next(all, &at, &name, &tensor)) {
        ready = PyUnicode_Check(name) && tnp_is_tensor(tensor);
        if (!ready)
            PyErr_Format(PyExc_TypeError,
                         "save takes a dict of tensors by name, not one with %R: %R", name,
                         (PyObject *)Py_TYPE(tensor));
        else
            list[i++] = (tn_named_tensor){tnp_text(name), tnp_handle(tensor)};
        ready = ready && list[i - 1].name;
    }
    tn_status status = TN_OK;
    if (ready)
        TNP_WITHOUT_GIL(status = nn.write(PyBytes_AsString(path), list, (uint64_t)n, NULL, 0));
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(list);
    Py_XDECREF(all);
    Py_DECREF(path);
    return ready ? tnp_none_or_raise(status) : NULL;
}

/* ---- IDX --------------------------------------------------------------------------------- */

static PyObject *read_idx(PyObject *module, PyObject *args, PyObject *named) {
    PyObject *path, *where = Py_None, *made = NULL;
    tn_device device = tn_no_device();
    static char *keywords[] = {"path", "device", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O&|O:read_idx", keywords, PyUnicode_FSConverter,
                                     &path, &where))
        return NULL;
    int found = where == Py_None ? 1 : tnp_device_from(where, &device);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "device is a tenon.device or its name, not %R", where);
    if (found == 1) {
        tn_tensor *t = NULL;
        tn_status status;
        tn_scope scope = tn_scope_open();
        TNP_WITHOUT_GIL(status = tn_idx_read(PyBytes_AsString(path), device, &t));
        made = status == TN_OK ? tnp_wrap_borrowed(t) : tnp_raise();
        tn_scope_close(scope);
    }
    Py_DECREF(path);
    return made;
}

PyMethodDef tnp_file_functions[] = {
    {"load", (PyCFunction)(void (*)(void))load, METH_VARARGS | METH_KEYWORDS,
     "load(path, device=None): {name: tensor} of a safetensors file."},
    {"save", (PyCFunction)(void (*)(void))save, METH_VARARGS | METH_KEYWORDS,
     "save(tensors, path): a dict of tensors as a safetensors file, which other libraries read; "
     "whole or not at all."},
    {"read_idx", (PyCFunction)(void (*)(void))read_idx, METH_VARARGS | METH_KEYWORDS,
     "read_idx(path, device=None): the array of an IDX file (MNIST's format), gzip'd or not."},
    {NULL, NULL, 0, NULL},
};
