/* Operators defined in Python, and handlers of operators that are Python's callables (tenon/dispatch.h). */
#include "python/core/core.h"

#include <string.h>

/* ---- a handler --------------------------------------------------------------------------- */

/* Is never freed, as operators are not: a call of another thread that is under way may still come to it. */
typedef struct handler {
    PyObject *function; /* NULL once it was unregistered */
    tn_op_info info;    /* of its operator; args and rets are ours */
    tn_registration *registration;
} handler;

/* What a callable gets for a cell. */
static PyObject *object_of(const tn_arg_info *arg, const tn_cell *cell) {
    switch (cell->tag) {
    case TN_CELL_TENSOR:
        return cell->v.pointer ? tnp_wrap_borrowed(cell->v.pointer) : Py_NewRef(Py_None);
    case TN_CELL_TENSORS: {
        tn_tensor *const *items = cell->v.pointer;
        PyObject *list = PyList_New((Py_ssize_t)cell->n);
        for (uint32_t i = 0; list && i < cell->n; i++) {
            PyObject *one = items[i] ? tnp_wrap_borrowed(items[i]) : Py_NewRef(Py_None);
            if (!one)
                Py_CLEAR(list);
            else
                PyList_SetItem(list, (Py_ssize_t)i, one);
        }
        return list;
    }
    case TN_CELL_INTS: {
        PyObject *list = PyList_New((Py_ssize_t)cell->n);
        for (uint32_t i = 0; list && i < cell->n; i++)
            PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(cell->v.ints[i]));
        return list;
    }
    case TN_CELL_F64:
        return PyFloat_FromDouble(cell->v.f64);
    case TN_CELL_BOOL:
        return PyBool_FromLong(cell->v.i64 != 0);
    case TN_CELL_STRING:
        return PyUnicode_FromString(cell->v.string);
    case TN_CELL_I64:
        if (arg->type[0] == 'D')
            return tnp_device_object(tn_device_unpack(cell->v.i64));
        if (strcmp(arg->type, "ScalarType") == 0)
            return tnp_dtype_object((tn_dtype)cell->v.i64);
        return PyLong_FromLongLong(cell->v.i64);
    default:
        return Py_NewRef(Py_None);
    }
}

/* Keyword-only arguments go by their names, as they do to the operator. */
static PyObject *call_with(PyObject *function, const tn_op_info *info, const tn_cell *args) {
    uint32_t n = 0;
    while (n < info->n_args && !info->args[n].keyword_only)
        n++;
    PyObject *positional = PyTuple_New((Py_ssize_t)n), *named = PyDict_New();
    bool ready = positional && named;
    for (uint32_t i = 0; ready && i < info->n_args; i++) {
        PyObject *one = object_of(&info->args[i], &args[i]);
        ready = one != NULL;
        if (ready && i < n) {
            PyTuple_SetItem(positional, (Py_ssize_t)i, one);
        } else if (ready) {
            ready = PyDict_SetItemString(named, info->args[i].name, one) == 0;
            Py_DECREF(one);
        }
    }
    PyObject *made = ready ? PyObject_Call(function, positional, named) : NULL;
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return made;
}

static int refuse_result(const tn_op_info *info, PyObject *made) {
    PyErr_Format(PyExc_TypeError, "%s: its implementation returned %R, of which the schema says %s",
                 info->name, made, info->schema);
    return -1;
}

/* Fills rets with references of their own. */
static int take_results(const tn_op_info *info, PyObject *made, tn_cell *rets) {
    if (info->n_rets == 0)
        return made == Py_None ? 0 : refuse_result(info, made);
    if (info->n_rets > 1 && (!PyTuple_Check(made) || (uint64_t)PyTuple_Size(made) != info->n_rets))
        return refuse_result(info, made);
    for (uint32_t i = 0; i < info->n_rets; i++)
        if (!tnp_is_tensor(info->n_rets == 1 ? made : PyTuple_GetItem(made, (Py_ssize_t)i)))
            return refuse_result(info, made);
    for (uint32_t i = 0; i < info->n_rets; i++) {
        PyObject *one = info->n_rets == 1 ? made : PyTuple_GetItem(made, (Py_ssize_t)i);
        rets[i] = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = tn_keep(tnp_handle(one))};
    }
    return 0;
}

/* Called by the dispatcher, in any thread, which does not hold the GIL. */
static tn_status run_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                             void *user) {
    handler *h = user;
    for (uint32_t i = 0; i < h->info.n_rets; i++)
        rets[i] = (tn_cell){.tag = TN_CELL_NONE};
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *function = Py_XNewRef(h->function); /* it may unregister itself */
    PyObject *made = function ? call_with(function, &h->info, args) : NULL;
    tn_status status = TN_OK;
    if (!function)
        status = tn_fail(TN_ERR_STATE, "%s: its implementation was unregistered", h->info.name);
    else if (!made || take_results(&h->info, made, rets) < 0)
        status = tnp_fail_with_exception(h->info.name);
    Py_XDECREF(function);
    Py_XDECREF(made);
    PyGILState_Release(state);
    return status;
}

/* ---- registering ------------------------------------------------------------------------- */

static void copy_info(const tn_op_info *info, void *user) {
    handler *h = user;
    tn_arg_info *args = PyMem_Calloc(info->n_args + 1, sizeof *args),
                *rets = PyMem_Calloc(info->n_rets + 1, sizeof *rets);
    for (uint32_t i = 0; args && i < info->n_args; i++)
        args[i] = info->args[i];
    for (uint32_t i = 0; rets && i < info->n_rets; i++)
        rets[i] = info->rets[i];
    h->info = *info;
    h->info.args = args;
    h->info.rets = rets;
}

static void handler_free(handler *h) {
    Py_XDECREF(h->function);
    PyMem_Free((void *)(uintptr_t)h->info.args);
    PyMem_Free((void *)(uintptr_t)h->info.rets);
    PyMem_Free(h);
}

static int returns_lists(const tn_op_info *info) {
    for (uint32_t i = 0; i < info->n_rets; i++)
        if (strcmp(info->rets[i].type, "Tensor") != 0)
            return PyErr_Format(PyExc_NotImplementedError,
                                "%s: an implementation in Python returns tensors, no lists of them",
                                info->name),
                   1;
    return 0;
}

/* _register_handler(operator, key, device type or None, callable) -> a handle for _drop_handler. None in place of the
 * callable: calls pass the key by. */
static PyObject *register_handler(PyObject *module, PyObject *args) {
    const char *name, *key_name, *device_type;
    PyObject *function;
    if (!PyArg_ParseTuple(args, "sszO:register", &name, &key_name, &device_type, &function))
        return NULL;
    bool passes = function == Py_None;
    if (!passes && !PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "an implementation can be called, %R cannot",
                            function);
    tn_key key = 0;
    while (key < TN_KEY_COUNT && strcmp(tn_key_name(key), key_name) != 0)
        key++;
    const tn_op *op = tn_op_find(name);
    handler *h = op ? PyMem_Calloc(1, sizeof *h) : NULL;
    if (!h)
        return op ? PyErr_NoMemory() : tnp_raise();
    bool known = tn_op_describe(name, copy_info, h) == TN_OK;
    h->function = Py_NewRef(function);
    if (!known)
        tnp_raise();
    else if (!h->info.args || !h->info.rets)
        PyErr_NoMemory();
    else if (!returns_lists(&h->info))
        TNP_WITHOUT_GIL(h->registration = tn_handler_register(
                            op, key, device_type, passes ? NULL : run_handler, h, "Python"));
    if (h->registration)
        return PyCapsule_New(h, "tenon.handler", NULL);
    if (!PyErr_Occurred())
        tnp_raise();
    handler_free(h);
    return NULL;
}

static PyObject *drop_handler(PyObject *module, PyObject *capsule) {
    handler *h = PyCapsule_GetPointer(capsule, "tenon.handler");
    if (!h)
        return NULL;
    tnp_drop_registration(&h->registration);
    Py_CLEAR(h->function);
    Py_RETURN_NONE;
}

/* _define_op(schema) -> a handle for _drop_op */
static PyObject *define_op(PyObject *module, PyObject *text) {
    const char *schema = tnp_text(text);
    tn_registration *definition = NULL;
    if (!schema)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a schema is a str");
    if (!tn_op_define(schema, "Python", &definition))
        return tnp_raise();
    return PyCapsule_New(definition, "tenon.definition", NULL);
}

static PyObject *drop_op(PyObject *module, PyObject *capsule) {
    tn_registration *definition = PyCapsule_GetPointer(capsule, "tenon.definition");
    if (!definition || PyCapsule_SetName(capsule, "tenon.dropped") < 0)
        return NULL;
    TNP_WITHOUT_GIL(tn_registration_drop(definition));
    Py_RETURN_NONE;
}

/* What op_arguments tells of each. */
static void add_arguments(const tn_op_info *info, void *user) {
    PyObject **made = user;
    *made = PyList_New(0);
    for (uint32_t i = 0; *made && i < info->n_args; i++) {
        const tn_arg_info *arg = &info->args[i];
        PyObject *one =
            Py_BuildValue("ssOO", arg->name, arg->type, arg->keyword_only ? Py_True : Py_False,
                          arg->is_written ? Py_True : Py_False);
        if (!one || PyList_Append(*made, one) < 0)
            Py_CLEAR(*made);
        Py_XDECREF(one);
    }
    if (*made)
        *made = Py_BuildValue("NI", *made, info->n_rets);
}

/* _op_arguments(operator) -> ([(name, type, is keyword-only, is written)], number of results) */
static PyObject *op_arguments(PyObject *module, PyObject *text) {
    const char *name = tnp_text(text);
    PyObject *made = NULL;
    if (!name)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a name is a str");
    return tn_op_describe(name, add_arguments, &made) == TN_OK ? made : tnp_raise();
}

PyMethodDef tnp_custom_functions[] = {
    {"_define_op", define_op, METH_O, NULL},
    {"_drop_op", drop_op, METH_O, NULL},
    {"_register_handler", register_handler, METH_VARARGS, NULL},
    {"_drop_handler", drop_handler, METH_O, NULL},
    {"_op_arguments", op_arguments, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
