/* DLPack 1.3's exchange table: what other libraries call in place of __dlpack__, from C and without capsules.
 *
 * None of it waits for queued work, nor orders it: the consumer works on the stream that it asks for. */
#include "python/core/core.h"

#include <stdio.h>
#include <string.h>
#include <tenon/dlpack.h>

/* ---- DLPack's declarations, by its names ------------------------------------------------- */

typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader *prev_api; /* an older table, or NULL */
} DLPackExchangeAPIHeader;

typedef void (*DLPackSetError)(void *error_ctx, const char *kind, const char *message);

typedef struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    /* Called without the GIL or with it. 0; -1 after SetError. */
    int (*managed_tensor_allocator)(DLTensor *prototype, DLManagedTensorVersioned **out,
                                    void *error_ctx, DLPackSetError set_error);
    /* These with the GIL. 0; -1 with an exception. */
    int (*managed_tensor_from_py_object_no_sync)(void *py_object, DLManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *tensor,
                                               void **out_py_object);       /* takes it over */
    int (*dltensor_from_py_object_no_sync)(void *py_object, DLTensor *out); /* borrows */
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void **out_current_stream);
} DLPackExchangeAPI;

/* ---- which device, which dtype ----------------------------------------------------------- */

/* Types of plugins that are loaded, at most as many as there is room for: names are copied, because the loader's lock is
 * held. */
typedef struct types {
    char names[32][48];
    uint32_t n;
} types;

static void add_type(const tn_plugin_info *info, void *user) {
    types *list = user;
    if (list->n < 32 && strcmp(info->state, "ready") == 0)
        snprintf(list->names[list->n++], sizeof list->names[0], "%s", info->device_type);
}

/* {0, 0} with an error where no device has those numbers, or those of several types do (kDLExtDev). */
static tn_device device_of(int32_t type, int32_t id) {
    if (type == kDLCPU)
        return tn_device_parse("cpu:0");
    types list = {.n = 0};
    tn_device found = tn_no_device();
    tn_plugin_list(false, add_type, &list);
    for (uint32_t i = 0; i < list.n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s:%d", list.names[i], id);
        tn_device device = tn_device_parse(name);
        DLDevice number = device.type ? tn_dlpack_device(device) : (DLDevice){0, 0};
        tn_error_clear();
        if (number.device_type != type || number.device_id != id)
            continue;
        if (found.type) {
            tn_fail(TN_ERR_DEVICE, "DLPack's device (%d, %d) may be one of several types", type,
                    id);
            return tn_no_device();
        }
        found = device;
    }
    if (!found.type)
        tn_fail(TN_ERR_DEVICE, "no device is DLPack's (%d, %d)", type, id);
    return found;
}

static uint8_t code_of(tn_dtype dtype) {
    switch (tn_dtype_name(dtype)[0]) {
    case 'f':
        return kDLFloat;
    case 'i':
        return kDLInt;
    case 'u':
        return kDLUInt;
    case 'c':
        return kDLComplex;
    default:
        return dtype == TN_BF16 ? kDLBfloat : kDLBool;
    }
}

static tn_dtype dtype_of(DLDataType type) {
    for (tn_dtype d = 0; d < TN_DTYPE_END; d++)
        if (tn_dtype_size(d) && code_of(d) == type.code && 8 * tn_dtype_size(d) == type.bits &&
            type.lanes == 1)
            return d;
    tn_fail(TN_ERR_DTYPE, "no dtype is DLPack's of code %d and %d bits", type.code, type.bits);
    return TN_DTYPE_NONE;
}

/* ---- the table --------------------------------------------------------------------------- */

static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                    DLPackSetError set_error) {
    tn_scope scope = tn_scope_open();
    tn_device device = device_of(prototype->device.device_type, prototype->device.device_id);
    tn_dtype dtype = device.type ? dtype_of(prototype->dtype) : TN_DTYPE_NONE;
    tn_ints shape = tn_ints_of(prototype->shape, prototype->ndim);
    tn_tensor *t = dtype == TN_DTYPE_NONE ? NULL : tn_empty(shape, dtype, device);
    *out = NULL;
    int done = t && tn_to_dlpack(t, 0, out) == TN_OK ? 0 : -1;
    tn_scope_close(scope);
    if (done < 0) {
        bool no_memory = tn_error_status() == TN_ERR_OUT_OF_MEMORY;
        set_error(error_ctx, no_memory ? "MemoryError" : "BufferError", tn_error_message());
        tn_error_clear();
    }
    return done;
}

static int refuse(void) {
    PyErr_SetString(PyExc_BufferError, tn_error_message());
    tn_error_clear();
    return -1;
}

static int from_object(void *object, DLManagedTensorVersioned **out) {
    *out = NULL;
    if (!tnp_is_tensor(object))
        return PyErr_Format(PyExc_TypeError, "a tenon.Tensor is taken, not %R",
                            (PyObject *)Py_TYPE((PyObject *)object)),
               -1;
    return tn_to_dlpack(tnp_handle(object), 0, out) == TN_OK ? 0 : refuse();
}

static int to_object(DLManagedTensorVersioned *managed, void **out_object) {
    tn_scope scope = tn_scope_open();
    tn_tensor *t = tn_from_dlpack(managed, TN_DLPACK_COPY_IF_NEEDED);
    *out_object = t ? tnp_wrap_borrowed(t) : NULL;
    tn_scope_close(scope);
    if (t)
        return *out_object ? 0 : -1;
    refuse();
    PyObject *type, *value, *trace; /* a deleter of Python's is called without one standing */
    PyErr_Fetch(&type, &value, &trace);
    if (managed->deleter) /* it was given to us */
        managed->deleter(managed);
    PyErr_Restore(type, value, trace);
    return -1;
}

/* Sizes and strides are the tensor's own, and so stay as long as it does. */
static int view_of_object(void *object, DLTensor *out) {
    DLManagedTensorVersioned *managed;
    if (from_object(object, &managed) < 0)
        return -1;
    *out = managed->dl_tensor;
    out->shape = (int64_t *)(uintptr_t)tn_sizes(tnp_handle(object)).data;
    out->strides = (int64_t *)(uintptr_t)tn_strides(tnp_handle(object)).data;
    managed->deleter(managed);
    return 0;
}

static int current_stream(int32_t type, int32_t id, void **out) {
    *out = NULL;
    if (type == kDLCPU)
        return 0;
    tn_device device = device_of(type, id);
    if (!device.type)
        return refuse();
    *out = tn_stream_native(tn_current_stream(device));
    return 0;
}

static DLPackExchangeAPI table = {
    .header = {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = from_object,
    .managed_tensor_to_py_object_no_sync = to_object,
    .dltensor_from_py_object_no_sync = view_of_object,
    .current_work_stream = current_stream,
};

int tnp_exchange_init(void) {
    PyObject *capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
    int done = capsule ? PyObject_SetAttrString((PyObject *)tnp_tensor_type,
                                                "__dlpack_c_exchange_api__", capsule)
                       : -1;
    Py_XDECREF(capsule);
    return done;
}
