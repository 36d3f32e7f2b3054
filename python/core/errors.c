/* Tenon's errors as Python's exceptions. */
#include "python/core/core.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static PyObject *error_type;
static PyObject *by_status[TN_ERR_INTERNAL + 1];

/* Each is a tenon.Error, and what Python calls its like. */
static PyObject *make(PyObject *module, const char *name, const char *doc, PyObject *like) {
    char full[64];
    snprintf(full, sizeof full, "tenon.%s", name);
    PyObject *bases =
        like ? PyTuple_Pack(2, error_type, like) : PyTuple_Pack(1, PyExc_RuntimeError);
    PyObject *type = bases ? PyErr_NewExceptionWithDoc(full, doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (type && PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    return type;
}

int tnp_errors_init(PyObject *module) {
    error_type = make(module, "Error",
                      "A failure of Tenon: `status` is its kind (\"SHAPE\"), `operator` the "
                      "operator that failed or \"\".",
                      NULL);
    if (!error_type)
        return -1;
    struct {
        const char *name, *doc;
        PyObject *like;
        tn_status of[3];
    } kinds[] = {
        {"ArgumentError",
         "An argument has a value that it must not have.",
         PyExc_ValueError,
         {TN_ERR_INVALID_ARGUMENT, TN_ERR_SHAPE, TN_ERR_DTYPE}},
        {"DeviceError",
         "No such device, or tensors on devices that cannot be mixed.",
         PyExc_ValueError,
         {TN_ERR_DEVICE, TN_OK, TN_OK}},
        {"NotFoundError",
         "A plugin, a device type, an operator or a file does not exist.",
         PyExc_LookupError,
         {TN_ERR_NOT_FOUND, TN_OK, TN_OK}},
        {"OutOfMemoryError",
         "The device, or the host, has no memory left.",
         PyExc_MemoryError,
         {TN_ERR_OUT_OF_MEMORY, TN_OK, TN_OK}},
        {"UnsupportedError",
         "Valid, but this device, kernel or build cannot do it.",
         PyExc_NotImplementedError,
         {TN_ERR_UNSUPPORTED, TN_OK, TN_OK}},
        {"OutOfRangeError",
         "An index lies outside.",
         PyExc_IndexError,
         {TN_ERR_INDEX_OUT_OF_RANGE, TN_OK, TN_OK}},
        {"FileError", "Reading or writing failed.", PyExc_OSError, {TN_ERR_IO, TN_OK, TN_OK}},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        PyObject *type = make(module, kinds[i].name, kinds[i].doc, kinds[i].like);
        if (!type)
            return -1;
        for (int k = 0; k < 3; k++)
            if (kinds[i].of[k] != TN_OK)
                by_status[kinds[i].of[k]] = type;
    }
    return 0;
}

/* An exception of a callback on its way through Tenon, to be raised again where the call comes back, if the error that
 * stands there is the callback's: what was called between may have let it pass and failed otherwise. */
static const char of_callback[] = "raised an exception";
static _Thread_local PyObject *passing[3];

static bool raise_passing(void) {
    PyObject *type = passing[0], *value = passing[1], *trace = passing[2];
    passing[0] = passing[1] = passing[2] = NULL;
    if (type && tn_error_status() == TN_ERR_STATE && strstr(tn_error_message(), of_callback)) {
        PyErr_Restore(type, value, trace);
        return true;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

PyObject *tnp_raise(void) {
    if (raise_passing()) {
        tn_error_clear();
        return NULL;
    }
    tn_status status = tn_error_status();
    PyObject *type = status > 0 && status <= TN_ERR_INTERNAL ? by_status[status] : NULL;
    const char *operator= tn_error_operator(), *message = tn_error_message();
    PyObject *text = *operator? PyUnicode_FromFormat("%s: %s", operator, message)
                              : PyUnicode_FromString(message);
    PyObject *error =
        text ? PyObject_CallFunctionObjArgs(type ? type : error_type, text, NULL) : NULL;
    PyObject *kind = PyUnicode_FromString(tn_status_name(status));
    PyObject *of = PyUnicode_FromString(operator);
    tn_error_clear();
    if (error && kind && of && PyObject_SetAttrString(error, "status", kind) == 0 &&
        PyObject_SetAttrString(error, "operator", of) == 0)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(text);
    Py_XDECREF(error);
    Py_XDECREF(kind);
    Py_XDECREF(of);
    return NULL;
}

PyObject *tnp_none_or_raise(tn_status status) {
    if (status != TN_OK)
        return tnp_raise();
    Py_RETURN_NONE;
}

tn_status tnp_fail_with_exception(const char *where) {
    for (int i = 0; i < 3; i++)
        Py_CLEAR(passing[i]);
    PyErr_Fetch(&passing[0], &passing[1], &passing[2]);
    return tn_fail(TN_ERR_STATE, "%s %s", where, of_callback);
}
