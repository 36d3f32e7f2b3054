/* tenon.device, streams and events, and what is asked of devices. */
#include "python/core/core.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- tenon.device ------------------------------------------------------------------------ */

typedef struct device_object {
    PyObject_HEAD tn_device device;
} device_object;

static PyTypeObject *device_type;

static tn_device of(PyObject *self) {
    return ((device_object *)self)->device;
}

static void end(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject *tnp_device_object(tn_device device) {
    device_object *object =
        (device_object *)((allocfunc)PyType_GetSlot(device_type, Py_tp_alloc))(device_type, 0);
    if (object)
        object->device = device;
    return (PyObject *)object;
}

int tnp_device_from(PyObject *object, tn_device *out) {
    if (Py_TYPE(object) == device_type) {
        *out = of(object);
        return 1;
    }
    const char *name = tnp_text(object);
    if (!name)
        return PyErr_Occurred() ? -1 : 0;
    TNP_WITHOUT_GIL(*out = tn_device_parse(name)); /* may load a plugin */
    if (out->type)
        return 1;
    tnp_raise();
    return -1;
}

/* Of None or NULL the default device. -1 with an exception. */
static int get_device(PyObject *object, tn_device *out) {
    if (!object || object == Py_None) {
        *out = tn_default_device();
        return out->type ? 0 : (tnp_raise(), -1);
    }
    int found = tnp_device_from(object, out);
    if (found == 0)
        PyErr_Format(PyExc_TypeError,
                     "a device is tenon.device or its name, such as \"cpu:0\", not %R", object);
    return found == 1 ? 0 : -1;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *name = NULL;
    tn_device device;
    static char *keywords[] = {"name", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O:device", keywords, &name) ||
        get_device(name, &device) < 0)
        return NULL;
    return tnp_device_object(device);
}

static PyObject *name_of(PyObject *self) {
    char name[64];
    return PyUnicode_FromString(tn_device_name(of(self), name, sizeof name));
}
static PyObject *repr(PyObject *self) {
    char name[64];
    return PyUnicode_FromFormat("device('%s')", tn_device_name(of(self), name, sizeof name));
}
static PyObject *compare(PyObject *a, PyObject *b, int how) {
    if ((how != Py_EQ && how != Py_NE) || Py_TYPE(a) != device_type || Py_TYPE(b) != device_type)
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(tn_device_equal(of(a), of(b)) == (how == Py_EQ));
}
static Py_hash_t hash(PyObject *self) {
    return (Py_hash_t)of(self).type * 4096 + of(self).index;
}
static PyObject *get_type(PyObject *self, void *closure) {
    PyObject *name = name_of(self),
             *parts = name ? PyObject_CallMethod(name, "partition", "s", ":") : NULL;
    PyObject *type = parts ? Py_NewRef(PyTuple_GetItem(parts, 0)) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(parts);
    return type;
}
static PyObject *get_index(PyObject *self, void *closure) {
    return PyLong_FromLong(of(self).index);
}
static PyObject *get_product(PyObject *self, void *closure) {
    return PyUnicode_FromString(tn_device_product(of(self)));
}
static PyObject *reduce(PyObject *self, PyObject *ignored) {
    return Py_BuildValue("O(N)", device_type, name_of(self));
}

static PyGetSetDef properties[] = {
    {"type", get_type, NULL, "The type's name (\"cpu\").", NULL},
    {"index", get_index, NULL, "Which of its type.", NULL},
    {"product", get_product, NULL, "The product's name, or \"\".", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyObject *has_dtype(PyObject *self, PyObject *object) {
    tn_dtype dtype;
    if (tnp_dtype_from(object, &dtype) != 1)
        return PyErr_Format(PyExc_TypeError, "dtype is a tenon.dtype or its name, not %R", object);
    return PyBool_FromLong(tn_device_has_dtype(of(self), dtype));
}
static PyMethodDef methods[] = {
    {"has_dtype", has_dtype, METH_O, "has_dtype(dtype): can it store elements of this dtype?"},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, end},
    {Py_tp_repr, repr},
    {Py_tp_str, name_of},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, hash},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     "device(name=None): a device by its name, \"npu:0\"; without one the default device, which "
     "TENON_DEVICE names. Its plugin is loaded."},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "tenon.device",
    .basicsize = sizeof(device_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* ---- streams and events ------------------------------------------------------------------ */

typedef struct stream_object {
    PyObject_HEAD tn_stream *stream;
} stream_object;
typedef struct event_object {
    PyObject_HEAD tn_event *event;
} event_object;

static PyTypeObject *stream_type, *event_type;

static tn_stream *stream_of(PyObject *self) {
    return ((stream_object *)self)->stream;
}
static tn_event *event_of(PyObject *self) {
    return ((event_object *)self)->event;
}

static PyObject *wrap_stream(tn_stream *owned) {
    if (!owned)
        return tnp_raise();
    stream_object *object =
        (stream_object *)((allocfunc)PyType_GetSlot(stream_type, Py_tp_alloc))(stream_type, 0);
    if (!object)
        return tn_stream_drop(owned), NULL;
    object->stream = owned;
    return (PyObject *)object;
}

static PyObject *make_stream(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *name = NULL;
    int priority = 0;
    tn_device device;
    static char *keywords[] = {"device", "priority", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|Oi:Stream", keywords, &name, &priority) ||
        get_device(name, &device) < 0)
        return NULL;
    return wrap_stream(tn_stream_create(device, priority));
}
static void end_stream(PyObject *self) {
    tn_stream *stream = stream_of(self);
    TNP_WITHOUT_GIL(tn_stream_drop(stream));
    end(self);
}
static PyObject *stream_id(PyObject *self, void *closure) {
    return PyLong_FromLongLong(tn_stream_id(stream_of(self)));
}
static PyObject *stream_device(PyObject *self, void *closure) {
    return tnp_device_object(tn_stream_device(stream_of(self)));
}
static PyObject *answer(tn_status status) {
    if (status != TN_OK && status != TN_NOT_READY)
        return tnp_raise();
    return PyBool_FromLong(status == TN_OK);
}
static PyObject *stream_query(PyObject *self, PyObject *ignored) {
    return answer(tn_stream_query(stream_of(self)));
}
static PyObject *stream_synchronize(PyObject *self, PyObject *ignored) {
    tn_status status;
    tn_stream *stream = stream_of(self);
    TNP_WITHOUT_GIL(status = tn_stream_synchronize(stream));
    return tnp_none_or_raise(status);
}
static PyObject *stream_wait(PyObject *self, PyObject *event) {
    if (Py_TYPE(event) != event_type)
        return PyErr_Format(PyExc_TypeError, "wait takes a tenon.Event, not %R", event);
    return tnp_none_or_raise(tn_event_wait(event_of(event), stream_of(self)));
}
static PyObject *stream_record(PyObject *self, PyObject *event) {
    if (Py_TYPE(event) != event_type)
        return PyErr_Format(PyExc_TypeError, "record takes a tenon.Event, not %R", event);
    return tnp_none_or_raise(tn_event_record(event_of(event), stream_of(self)));
}
static PyObject *stream_equal(PyObject *a, PyObject *b, int how) {
    if ((how != Py_EQ && how != Py_NE) || Py_TYPE(a) != stream_type || Py_TYPE(b) != stream_type)
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((stream_of(a) == stream_of(b)) == (how == Py_EQ));
}
static Py_hash_t stream_hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)stream_of(self) >> 4);
}

static PyGetSetDef stream_properties[] = {
    {"id", stream_id, NULL, "Its number on its device; the default stream's is 0.", NULL},
    {"device", stream_device, NULL, "Its device.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef stream_methods[] = {
    {"query", stream_query, METH_NOARGS, "Is all work done?"},
    {"synchronize", stream_synchronize, METH_NOARGS, "Waits for all work, and raises its errors."},
    {"wait", stream_wait, METH_O, "wait(event): work queued from now on waits for it."},
    {"record", stream_record, METH_O,
     "record(event): it is passed when the work queued so far is done."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot stream_slots[] = {
    {Py_tp_new, make_stream},
    {Py_tp_dealloc, end_stream},
    {Py_tp_getset, stream_properties},
    {Py_tp_methods, stream_methods},
    {Py_tp_richcompare, stream_equal},
    {Py_tp_hash, stream_hash},
    {Py_tp_doc, "Stream(device=None, priority=0): a queue of a device."},
    {0, NULL},
};
static PyType_Spec stream_spec = {
    .name = "tenon.Stream",
    .basicsize = sizeof(stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = stream_slots,
};

static PyObject *make_event(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *name = NULL;
    int timing = 0;
    tn_device device;
    static char *keywords[] = {"device", "enable_timing", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|Op:Event", keywords, &name, &timing) ||
        get_device(name, &device) < 0)
        return NULL;
    tn_event *event = tn_event_create(device, timing);
    if (!event)
        return tnp_raise();
    event_object *object =
        (event_object *)((allocfunc)PyType_GetSlot(event_type, Py_tp_alloc))(event_type, 0);
    if (!object)
        return tn_event_destroy(event), NULL;
    object->event = event;
    return (PyObject *)object;
}
static void end_event(PyObject *self) {
    tn_event_destroy(event_of(self));
    end(self);
}
static PyObject *event_query(PyObject *self, PyObject *ignored) {
    return answer(tn_event_query(event_of(self)));
}
static PyObject *event_synchronize(PyObject *self, PyObject *ignored) {
    tn_status status;
    tn_event *event = event_of(self);
    TNP_WITHOUT_GIL(status = tn_event_synchronize(event));
    return tnp_none_or_raise(status);
}
static PyObject *event_elapsed(PyObject *self, PyObject *last) {
    double ns;
    if (Py_TYPE(last) != event_type)
        return PyErr_Format(PyExc_TypeError, "elapsed_time takes a tenon.Event, not %R", last);
    if (tn_event_elapsed(event_of(self), event_of(last), &ns) != TN_OK)
        return tnp_raise();
    return PyFloat_FromDouble(ns * 1e-6);
}

static PyMethodDef event_methods[] = {
    {"query", event_query, METH_NOARGS, "Was it passed?"},
    {"synchronize", event_synchronize, METH_NOARGS, "Waits until it is passed."},
    {"elapsed_time", event_elapsed, METH_O,
     "elapsed_time(end): milliseconds from this event to another."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot event_slots[] = {
    {Py_tp_new, make_event},
    {Py_tp_dealloc, end_event},
    {Py_tp_methods, event_methods},
    {Py_tp_doc, "Event(device=None, enable_timing=False): a mark in the work of a stream."},
    {0, NULL},
};
static PyType_Spec event_spec = {
    .name = "tenon.Event",
    .basicsize = sizeof(event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = event_slots,
};

/* ---- functions --------------------------------------------------------------------------- */

static PyObject *default_device(PyObject *module, PyObject *ignored) {
    tn_device device;
    return get_device(NULL, &device) < 0 ? NULL : tnp_device_object(device);
}
static PyObject *set_default_device(PyObject *module, PyObject *name) {
    tn_device device;
    return get_device(name, &device) < 0 ? NULL : tnp_none_or_raise(tn_set_default_device(device));
}
static PyObject *device_count(PyObject *module, PyObject *args) {
    const char *type;
    uint32_t n;
    if (!PyArg_ParseTuple(args, "s:device_count", &type))
        return NULL;
    TNP_WITHOUT_GIL(n = tn_device_count(type));
    if (n == 0 && tn_error_status() != TN_OK)
        return tnp_raise();
    return PyLong_FromUnsignedLong(n);
}
/* Names are collected without Python: the loader's lock is held. */
typedef struct type_list {
    char *names; /* each with its end, one behind the other */
    size_t size;
    bool is_short; /* of memory */
} type_list;

static void add_type_name(const tn_plugin_info *info, void *user) {
    type_list *list = user;
    if (strcmp(info->state, "ready") != 0)
        return;
    size_t n = strlen(info->device_type) + 1;
    char *more = realloc(list->names, list->size + n);
    if (!more) {
        list->is_short = true;
        return;
    }
    memcpy(more + list->size, info->device_type, n);
    list->names = more;
    list->size += n;
}
static PyObject *device_types(PyObject *module, PyObject *ignored) {
    type_list list = {.names = NULL};
    TNP_WITHOUT_GIL(tn_plugin_list(true, add_type_name, &list));
    PyObject *types = list.is_short ? PyErr_NoMemory() : PyList_New(0);
    for (size_t at = 0; types && at < list.size; at += strlen(list.names + at) + 1) {
        PyObject *name = PyUnicode_FromString(list.names + at);
        if (!name || PyList_Append(types, name) < 0)
            Py_CLEAR(types);
        Py_XDECREF(name);
    }
    free(list.names);
    return types;
}
static PyObject *synchronize(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    tn_device device;
    tn_status status;
    if (!PyArg_ParseTuple(args, "|O:synchronize", &name) || get_device(name, &device) < 0)
        return NULL;
    TNP_WITHOUT_GIL(status = tn_synchronize(device));
    return tnp_none_or_raise(status);
}
static PyObject *current_stream(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    tn_device device;
    if (!PyArg_ParseTuple(args, "|O:current_stream", &name) || get_device(name, &device) < 0)
        return NULL;
    return wrap_stream(tn_stream_keep(tn_current_stream(device)));
}
static PyObject *set_current_stream(PyObject *module, PyObject *stream) {
    if (Py_TYPE(stream) != stream_type)
        return PyErr_Format(PyExc_TypeError, "set_current_stream takes a tenon.Stream, not %R",
                            stream);
    return tnp_none_or_raise(tn_set_current_stream(stream_of(stream)));
}
/* _record_stream(tensor, stream) */
static PyObject *record_stream(PyObject *module, PyObject *args) {
    PyObject *tensor, *stream;
    if (!PyArg_ParseTuple(args, "O!O!:record_stream", tnp_tensor_type, &tensor, stream_type,
                          &stream))
        return NULL;
    return tnp_none_or_raise(tn_record_stream(tnp_handle(tensor), stream_of(stream)));
}
static PyObject *memory_stats(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    tn_device device;
    tn_memory_stats s = {.struct_size = sizeof s};
    if (!PyArg_ParseTuple(args, "|O:memory_stats", &name) || get_device(name, &device) < 0)
        return NULL;
    if (tn_memory_stats_get(device, &s) != TN_OK)
        return tnp_raise();
#define FIGURE(figure) #figure, (unsigned long long)s.figure
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsKsKsKsKsK}", FIGURE(allocated_bytes), FIGURE(allocated_peak),
        FIGURE(reserved_bytes), FIGURE(reserved_peak), FIGURE(active_bytes), FIGURE(active_peak),
        FIGURE(requested_bytes), FIGURE(n_allocations), FIGURE(n_frees), FIGURE(n_device_allocs),
        FIGURE(n_device_frees), FIGURE(n_retries), FIGURE(n_out_of_memory), FIGURE(limit_bytes));
#undef FIGURE
}
static PyObject *empty_cache(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    tn_device device;
    tn_status status;
    if (!PyArg_ParseTuple(args, "|O:empty_cache", &name) || get_device(name, &device) < 0)
        return NULL;
    TNP_WITHOUT_GIL(status = tn_empty_cache(device));
    return tnp_none_or_raise(status);
}
static PyObject *set_memory_limit(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    unsigned long long bytes;
    tn_device device;
    if (!PyArg_ParseTuple(args, "K|O:set_memory_limit", &bytes, &name) ||
        get_device(name, &device) < 0)
        return NULL;
    return tnp_none_or_raise(tn_memory_set_limit(device, bytes));
}
static PyObject *manual_seed(PyObject *module, PyObject *args) {
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "K:manual_seed", &seed))
        return NULL;
    tn_manual_seed(seed);
    Py_RETURN_NONE;
}
static PyObject *get_rng_state(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    tn_device device;
    uint64_t seed, offset;
    if (!PyArg_ParseTuple(args, "|O:get_rng_state", &name) || get_device(name, &device) < 0)
        return NULL;
    if (tn_generator_get(device, &seed, &offset) != TN_OK)
        return tnp_raise();
    return Py_BuildValue("KK", (unsigned long long)seed, (unsigned long long)offset);
}
static PyObject *set_rng_state(PyObject *module, PyObject *args) {
    PyObject *name = NULL;
    tn_device device;
    unsigned long long seed, offset;
    if (!PyArg_ParseTuple(args, "(KK)|O:set_rng_state", &seed, &offset, &name) ||
        get_device(name, &device) < 0)
        return NULL;
    return tnp_none_or_raise(tn_generator_set(device, seed, offset));
}
static PyObject *set_num_threads(PyObject *module, PyObject *args) {
    unsigned int n;
    if (!PyArg_ParseTuple(args, "I:set_num_threads", &n))
        return NULL;
    return tnp_none_or_raise(tn_set_num_threads(n));
}
static PyObject *get_num_threads(PyObject *module, PyObject *ignored) {
    return PyLong_FromUnsignedLong(tn_get_num_threads());
}
static PyObject *load_plugin(PyObject *module, PyObject *args) {
    const char *path;
    tn_status status;
    if (!PyArg_ParseTuple(args, "s:load_plugin", &path))
        return NULL;
    TNP_WITHOUT_GIL(status = tn_plugin_load(path));
    return tnp_none_or_raise(status);
}
/* libtenon is one for the process, and what calls back into Python takes the main interpreter's lock. */
static PyObject *in_main_interpreter(PyObject *module, PyObject *ignored) {
    return PyBool_FromLong(PyInterpreterState_GetID(PyInterpreterState_Get()) == 0);
}
static PyObject *version(PyObject *module, PyObject *ignored) {
    return PyUnicode_FromString(tn_version());
}

PyMethodDef tnp_device_functions[] = {
    {"default_device", default_device, METH_NOARGS,
     "The device where tensors are made that are not told."},
    {"set_default_device", set_default_device, METH_O,
     "set_default_device(device): for all threads."},
    {"device_count", device_count, METH_VARARGS,
     "device_count(type): how many there are (\"npu\")."},
    {"device_types", device_types, METH_NOARGS,
     "The types of the plugins that work (\"npu\"); each that can be found is loaded."},
    {"synchronize", synchronize, METH_VARARGS,
     "synchronize(device=None): waits for its work, and raises the errors of it."},
    {"current_stream", current_stream, METH_VARARGS, "current_stream(device=None): this thread's."},
    {"set_current_stream", set_current_stream, METH_O,
     "set_current_stream(stream): of this thread."},
    {"_record_stream", record_stream, METH_VARARGS, NULL},
    {"memory_stats", memory_stats, METH_VARARGS,
     "memory_stats(device=None): figures of its allocator."},
    {"empty_cache", empty_cache, METH_VARARGS,
     "empty_cache(device=None): gives unused memory back to it."},
    {"set_memory_limit", set_memory_limit, METH_VARARGS,
     "set_memory_limit(bytes, device=None): at most that much is held; 0: no limit."},
    {"manual_seed", manual_seed, METH_VARARGS,
     "manual_seed(seed): of the generators of all devices."},
    {"get_rng_state", get_rng_state, METH_VARARGS, "get_rng_state(device=None): (seed, offset)."},
    {"set_rng_state", set_rng_state, METH_VARARGS, "set_rng_state((seed, offset), device=None)."},
    {"set_num_threads", set_num_threads, METH_VARARGS,
     "set_num_threads(n): that kernels on the host may use."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "Threads that kernels on the host may use."},
    {"load_plugin", load_plugin, METH_VARARGS, "load_plugin(path): a vendor's shared object."},
    {"_in_main_interpreter", in_main_interpreter, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, "The version of libtenon."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *of_type, const char *name, PyTypeObject **out) {
    *out = (PyTypeObject *)PyType_FromSpec(of_type);
    return *out && PyModule_AddObjectRef(module, name, (PyObject *)*out) == 0 ? 0 : -1;
}

int tnp_devices_init(PyObject *module) {
    return add_type(module, &spec, "device", &device_type) < 0 ||
                   add_type(module, &stream_spec, "Stream", &stream_type) < 0 ||
                   add_type(module, &event_spec, "Event", &event_type) < 0
               ? -1
               : 0;
}
