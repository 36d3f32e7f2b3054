/* Loaders of libtenon-nn (tenon/data.h), and what a loader in Python needs besides: which samples come when, tensors in
 * pinned memory. tenon/data.py makes of it what a program sees. */
#include "python/core/core.h"

#include <string.h>
#include <tenon/data.h>

/* ---- what is called of libtenon-nn ------------------------------------------------------- */

#define NN(X) \
    X(dataset_init_tensors) \
    X(dataset_init_idx) \
    X(dataset_finish) \
    X(data_loader_create) \
    X(data_loader_destroy) \
    X(data_loader_next) \
    X(data_loader_samples) \
    X(data_loader_batches) \
    X(data_loader_get_state) \
    X(data_loader_set_state)

static struct {
#define MEMBER(name) __typeof__(&tn_##name) name;
    NN(MEMBER)
#undef MEMBER
} nn;

static int find_library(void) {
#define FIND(name) \
    if (!nn.name && !(*(void **)&nn.name = tnp_nn_function("tn_" #name))) \
        return -1;
    NN(FIND)
#undef FIND
    return 0;
}

/* ---- a loader ---------------------------------------------------------------------------- */

typedef struct loader {
    tn_dataset dataset;
    tn_data_loader *handle;
} loader;

static loader *of(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, "tenon.loader");
}

static void loader_free(loader *l) {
    TNP_WITHOUT_GIL(nn.data_loader_destroy(l->handle); nn.dataset_finish(&l->dataset));
    PyMem_Free(l);
}
static void end_loader(PyObject *capsule) {
    loader_free(of(capsule));
}

/* A dataset of samples that are their numbers: for the order in which they come. */
static tn_status read_nothing(void *user, int64_t index, void *const *out) {
    *(uint8_t *)out[0] = 0;
    return TN_OK;
}

static int from_paths(tn_dataset *dataset, PyObject *paths) {
    const char *texts[TN_DATA_MAX_FIELDS];
    PyObject *bytes[TN_DATA_MAX_FIELDS];
    Py_ssize_t n = PyList_Size(paths), n_bytes = 0;
    if (n > TN_DATA_MAX_FIELDS)
        return PyErr_Format(PyExc_ValueError, "at most %d files make a sample", TN_DATA_MAX_FIELDS),
               -1;
    while (n_bytes < n && PyUnicode_FSConverter(PyList_GetItem(paths, n_bytes), &bytes[n_bytes])) {
        texts[n_bytes] = PyBytes_AsString(bytes[n_bytes]);
        n_bytes++;
    }
    tn_status status = TN_OK;
    if (n_bytes == n)
        TNP_WITHOUT_GIL(status = nn.dataset_init_idx(dataset, texts, (uint64_t)n));
    for (Py_ssize_t i = 0; i < n_bytes; i++)
        Py_DECREF(bytes[i]);
    if (n_bytes == n && status != TN_OK)
        tnp_raise();
    return n_bytes == n && status == TN_OK ? 0 : -1;
}

static int from_tensors(tn_dataset *dataset, PyObject *tensors) {
    tnp_arena arena;
    tnp_arena_init(&arena);
    uint64_t n;
    tn_tensor **list = tnp_handles(tensors, false, "a dataset", &arena, &n);
    tn_status status = TN_OK;
    if (list)
        TNP_WITHOUT_GIL(status = nn.dataset_init_tensors(dataset, list, n));
    tnp_arena_free(&arena);
    if (list && status != TN_OK)
        tnp_raise();
    return list && status == TN_OK ? 0 : -1;
}

/* Of how many samples, a tuple of tensors, or a list of paths. */
static int fill_dataset(tn_dataset *dataset, PyObject *source) {
    if (PyTuple_Check(source))
        return from_tensors(dataset, source);
    if (PyList_Check(source))
        return from_paths(dataset, source);
    *dataset = (tn_dataset){.length = PyLong_AsLongLong(source),
                            .n_fields = 1,
                            .fields = {{.dtype = TN_U8}},
                            .read = read_nothing};
    return PyErr_Occurred() ? -1 : 0;
}

/* _loader(source, batch_size, shuffle, drop_last, seed, n_workers, prefetch, device or None) */
static PyObject *make(PyObject *module, PyObject *args) {
    PyObject *source, *where;
    int shuffle, drop_last;
    long long batch_size;
    unsigned long long seed;
    tn_data_loader_options options = {0};
    if (!PyArg_ParseTuple(args, "OLppKIIO:loader", &source, &batch_size, &shuffle, &drop_last,
                          &seed, &options.n_workers, &options.prefetch, &where))
        return NULL;
    int found = where == Py_None ? 1 : tnp_device_from(where, &options.device);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "device is a tenon.device or its name, not %R", where);
    options.batch_size = batch_size;
    options.shuffle = shuffle;
    options.drop_last = drop_last;
    options.seed = seed;
    loader *l = found == 1 && find_library() == 0 ? PyMem_Calloc(1, sizeof *l) : NULL;
    if (!l)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    if (fill_dataset(&l->dataset, source) == 0) {
        TNP_WITHOUT_GIL(l->handle = nn.data_loader_create(&l->dataset, &options));
        if (!l->handle)
            tnp_raise();
    }
    PyObject *capsule = l->handle ? PyCapsule_New(l, "tenon.loader", end_loader) : NULL;
    if (!capsule)
        loader_free(l);
    return capsule;
}

static PyObject *indices_of(const tn_data_batch *batch) {
    PyObject *list = PyList_New((Py_ssize_t)batch->n);
    for (int64_t i = 0; list && i < batch->n; i++)
        PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(batch->indices[i]));
    return list;
}

static PyObject *fields_of(const tn_data_batch *batch) {
    PyObject *list = PyList_New((Py_ssize_t)batch->n_fields);
    for (uint32_t k = 0; list && k < batch->n_fields; k++) {
        PyObject *one = tnp_wrap_borrowed(batch->fields[k]);
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)k, one);
    }
    return list;
}

/* _loader_next(loader) -> (indices, tensors), or None where an epoch ends. One thread at a time calls it. */
static PyObject *next(PyObject *module, PyObject *capsule) {
    loader *l = of(capsule);
    if (!l)
        return NULL;
    tn_data_batch batch;
    tn_scope scope = tn_scope_open();
    tn_status status;
    TNP_WITHOUT_GIL(status = nn.data_loader_next(l->handle, &batch));
    PyObject *made = NULL;
    if (status != TN_OK)
        tnp_raise();
    else if (batch.n == 0)
        made = Py_NewRef(Py_None);
    else
        made = Py_BuildValue("NN", indices_of(&batch), fields_of(&batch));
    tn_scope_close(scope);
    return made;
}

/* _loader_size(loader) -> (samples, batches) of an epoch */
static PyObject *size(PyObject *module, PyObject *capsule) {
    loader *l = of(capsule);
    return l ? Py_BuildValue("LL", (long long)nn.data_loader_samples(l->handle),
                             (long long)nn.data_loader_batches(l->handle))
             : NULL;
}

static PyObject *get_state(PyObject *module, PyObject *capsule) {
    loader *l = of(capsule);
    tn_data_loader_state s;
    if (!l)
        return NULL;
    if (nn.data_loader_get_state(l->handle, &s) != TN_OK)
        return tnp_raise();
    return Py_BuildValue("KLL", (unsigned long long)s.seed, (long long)s.epoch,
                         (long long)s.position);
}

/* _loader_set_state(loader, (seed, epoch, position)) */
static PyObject *set_state(PyObject *module, PyObject *args) {
    PyObject *capsule;
    unsigned long long seed;
    long long epoch, position;
    if (!PyArg_ParseTuple(args, "O(KLL):set_state", &capsule, &seed, &epoch, &position))
        return NULL;
    loader *l = of(capsule);
    if (!l)
        return NULL;
    tn_data_loader_state s = {.seed = seed, .epoch = epoch, .position = position};
    tn_status status;
    TNP_WITHOUT_GIL(status = nn.data_loader_set_state(l->handle, &s));
    return tnp_none_or_raise(status);
}

/* ---- pinned memory ----------------------------------------------------------------------- */

static tn_tensor *pinned_copy(tn_tensor *t, tn_device device) {
    uint64_t bytes = (uint64_t)(tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
    void *memory = tn_pinned_alloc(device, bytes ? bytes : 1);
    if (!memory)
        return NULL;
    tn_tensor *made = tn_from_blob(memory, tn_sizes(t), tn_no_ints(), tn_dtype_of(t),
                                   tn_device_parse("cpu:0"), tn_pinned_free, memory);
    if (!made) {
        tn_pinned_free(memory);
        return NULL;
    }
    return tn_copy_(made, t);
}

/* _pin_memory(tensor, device) -> a copy in host memory that the device reads by itself */
static PyObject *pin_memory(PyObject *module, PyObject *args) {
    PyObject *tensor, *where;
    tn_device device;
    if (!PyArg_ParseTuple(args, "O!O:pin_memory", tnp_tensor_type, &tensor, &where))
        return NULL;
    int found = tnp_device_from(where, &device);
    if (found != 1)
        return found == 0 ? PyErr_Format(PyExc_TypeError,
                                         "device is a tenon.device or its name, not %R", where)
                          : NULL;
    tn_scope scope = tn_scope_open();
    tn_tensor *t = tnp_handle(tensor), *made;
    TNP_WITHOUT_GIL(made = pinned_copy(t, device));
    PyObject *wrapped = tnp_wrap(tn_keep(made));
    tn_scope_close(scope);
    return wrapped;
}

PyMethodDef tnp_loader_functions[] = {
    {"_loader", make, METH_VARARGS, NULL},
    {"_loader_next", next, METH_O, NULL},
    {"_loader_size", size, METH_O, NULL},
    {"_loader_get_state", get_state, METH_O, NULL},
    {"_loader_set_state", set_state, METH_VARARGS, NULL},
    {"_pin_memory", pin_memory, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
