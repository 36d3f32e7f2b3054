/* Tensors to and from other libraries without a copy: DLPack 1.3, and what came before 1.0. */
#include "python/core/core.h"

#include <tenon/dlpack.h>

/* A capsule that nobody took ends what it carries. */
static void end_versioned(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        managed->deleter(managed);
    }
}
static void end_legacy(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
        managed->deleter(managed);
    }
}

/* The producer's part of the order of work: all of it is done, so that no consumer has to wait. */
static int settle(tn_tensor *t) {
    tn_device device = tn_device_of(t);
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_synchronize(device));
    return status == TN_OK ? 0 : (tnp_raise(), -1);
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *named) {
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    static char *keywords[] = {"stream", "max_version", "dl_device", "copy", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|$OOOO:__dlpack__", keywords, &stream, &version,
                                     &device, &copy))
        return NULL;
    int major = 0, minor = 0, wanted_type, wanted_id;
    if ((version != Py_None && !PyTuple_Check(version)) ||
        (device != Py_None && !PyTuple_Check(device)) || (copy != Py_None && !PyBool_Check(copy)))
        return PyErr_SetString(PyExc_TypeError,
                               "max_version and dl_device are pairs of numbers, copy is "
                               "a bool"),
               NULL;
    if (version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor))
        return NULL;
    DLDevice here = tn_dlpack_device(tn_device_of(tnp_handle(self)));
    if (here.device_type == 0)
        return tnp_raise();
    if (device != Py_None) {
        if (!PyArg_ParseTuple(device, "ii", &wanted_type, &wanted_id))
            return NULL;
        if (wanted_type != here.device_type || wanted_id != here.device_id) {
            if (wanted_type != kDLCPU)
                return PyErr_Format(
                    PyExc_BufferError,
                    "the tensor is on device (%d, %d) of DLPack, and can be had there or on "
                    "the host",
                    here.device_type, here.device_id);
            if (copy == Py_False)
                return PyErr_SetString(
                           PyExc_BufferError,
                           "the tensor is not in the host's memory: a copy would be needed"),
                       NULL;
            PyObject *host = PyUnicode_FromString("cpu:0"),
                     *there = host ? TNP_CALL(to, self, host) : NULL;
            PyObject *none = there ? PyObject_GetAttrString(there, "__dlpack__") : NULL;
            PyObject *with = none ? Py_BuildValue("{sO}", "max_version", version) : NULL,
                     *empty = PyTuple_New(0);
            PyObject *made = with && empty ? PyObject_Call(none, empty, with) : NULL;
            Py_XDECREF(host);
            Py_XDECREF(there);
            Py_XDECREF(none);
            Py_XDECREF(with);
            Py_XDECREF(empty);
            return made;
        }
    }
    PyObject *given = copy == Py_True ? TNP_CALL(clone, self) : Py_NewRef(self), *capsule = NULL;
    if (!given || settle(tnp_handle(given)) < 0) {
        Py_XDECREF(given);
        return NULL;
    }
    uint64_t flags = copy == Py_True ? DLPACK_FLAG_BITMASK_IS_COPIED : 0;
    if (major >= 1) {
        DLManagedTensorVersioned *managed;
        if (tn_to_dlpack(tnp_handle(given), flags, &managed) != TN_OK)
            tnp_raise();
        else if (!(capsule = PyCapsule_New(managed, "dltensor_versioned", end_versioned)))
            managed->deleter(managed);
    } else {
        DLManagedTensor *managed;
        if (tn_to_dlpack_legacy(tnp_handle(given), &managed) != TN_OK)
            tnp_raise();
        else if (!(capsule = PyCapsule_New(managed, "dltensor", end_legacy)))
            managed->deleter(managed);
    }
    Py_DECREF(given);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *ignored) {
    DLDevice device = tn_dlpack_device(tn_device_of(tnp_handle(self)));
    return device.device_type ? Py_BuildValue("ii", device.device_type, device.device_id)
                              : tnp_raise();
}

/* Of an object's __dlpack__, which may be of before 1.0 and know no max_version. */
static PyObject *capsule_of(PyObject *object) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *named =
        method ? Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)
               : NULL;
    PyObject *empty = PyTuple_New(0),
             *made = named && empty ? PyObject_Call(method, empty, named) : NULL;
    if (!made && method && empty && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        made = PyObject_Call(method, empty, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(named);
    Py_XDECREF(empty);
    return made;
}

static PyObject *from_dlpack(PyObject *module, PyObject *args, PyObject *named) {
    PyObject *object, *device = Py_None, *copy = Py_None;
    static char *keywords[] = {"x", "device", "copy", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$OO:from_dlpack", keywords, &object, &device,
                                     &copy))
        return NULL;
    PyObject *capsule = PyCapsule_CheckExact(object) ? Py_NewRef(object) : capsule_of(object),
             *made = NULL;
    if (!capsule)
        return NULL;
    tn_dlpack_copy how = copy == Py_None   ? TN_DLPACK_COPY_IF_NEEDED
                         : copy == Py_True ? TN_DLPACK_COPY
                                           : TN_DLPACK_SHARE;
    tn_scope scope = tn_scope_open();
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        tn_tensor *t = tn_from_dlpack(PyCapsule_GetPointer(capsule, "dltensor_versioned"), how);
        if (t)
            PyCapsule_SetName(capsule, "used_dltensor_versioned");
        made = tnp_wrap(tn_keep(t));
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        tn_tensor *t = tn_from_dlpack_legacy(PyCapsule_GetPointer(capsule, "dltensor"), how);
        if (t)
            PyCapsule_SetName(capsule, "used_dltensor");
        made = tnp_wrap(tn_keep(t));
    } else {
        PyErr_Format(PyExc_TypeError, "%R is no DLPack capsule, or one that was taken before",
                     capsule);
    }
    tn_scope_close(scope);
    Py_DECREF(capsule);
    if (made && device != Py_None) {
        PyObject *moved = TNP_CALL(to, made, device);
        if (moved && copy == Py_False &&
            !tn_device_equal(tn_device_of(tnp_handle(moved)), tn_device_of(tnp_handle(made)))) {
            PyErr_SetString(PyExc_BufferError,
                            "the array is on another device: a copy would be needed");
            Py_CLEAR(moved);
        }
        Py_DECREF(made);
        made = moved;
    }
    return made;
}

PyMethodDef tnp_dlpack_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS,
     "The tensor as a DLPack capsule; waits for its device."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS,
     "(type, id) of its device, as DLPack numbers them."},
    {NULL, NULL, 0, NULL},
};

PyMethodDef tnp_dlpack_functions[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))from_dlpack, METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(x, *, device=None, copy=None): a tensor over the memory of an array of another "
     "library."},
    {NULL, NULL, 0, NULL},
};
