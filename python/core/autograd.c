/* Gradients: of tensors, by backward, modes, hooks, functions written in Python. */
#include "python/core/core.h"

/* ---- properties -------------------------------------------------------------------------- */

static PyObject *get_requires_grad(PyObject *self, void *closure) {
    return PyBool_FromLong(tn_requires_grad(tnp_handle(self)));
}
static int set_requires_grad(PyObject *self, PyObject *value, void *closure) {
    int on = value ? PyObject_IsTrue(value) : -1;
    if (!value)
        PyErr_SetString(PyExc_AttributeError, "requires_grad cannot be deleted");
    if (on < 0)
        return -1;
    return tn_set_requires_grad(tnp_handle(self), on) ? 0 : (tnp_raise(), -1);
}
static PyObject *get_grad(PyObject *self, void *closure) {
    tn_tensor *grad = tn_grad(tnp_handle(self));
    if (!grad)
        Py_RETURN_NONE;
    return tnp_wrap_borrowed(grad);
}
static int set_grad(PyObject *self, PyObject *value, void *closure) {
    if (value && value != Py_None && !tnp_is_tensor(value))
        return PyErr_Format(PyExc_TypeError, "grad is a tensor or None, not %R", value), -1;
    tn_tensor *grad = value && value != Py_None ? tnp_handle(value) : NULL;
    return tn_set_grad(tnp_handle(self), grad) == TN_OK ? 0 : (tnp_raise(), -1);
}
static PyObject *get_is_leaf(PyObject *self, void *closure) {
    return PyBool_FromLong(tn_is_leaf(tnp_handle(self)));
}
static PyObject *get_grad_fn(PyObject *self, void *closure) {
    const char *name = tn_grad_fn_name(tnp_handle(self));
    if (!*name)
        Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

PyGetSetDef tnp_autograd_properties[] = {
    {"requires_grad", get_requires_grad, set_requires_grad, "Does backward go through it?", NULL},
    {"grad", get_grad, set_grad, "The gradient that backward added up in it, or None.", NULL},
    {"is_leaf", get_is_leaf, NULL, "Was it made by no recorded operator?", NULL},
    {"grad_fn", get_grad_fn, NULL, "The name of what made it, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* None for those that are not there. */
static PyObject *tuple_of(tn_tensor *const *tensors, uint64_t n) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (uint64_t i = 0; tuple && i < n; i++) {
        PyObject *one = tensors[i] && tensors[i] != TN_NONE ? tnp_wrap_borrowed(tensors[i])
                                                            : Py_NewRef(Py_None);
        if (!one)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, (Py_ssize_t)i, one);
    }
    return tuple;
}

/* ---- backward ---------------------------------------------------------------------------- */

/* As many gradients as there are `outputs`; None: each is left out. */
static tn_tensor **gradients_for(PyObject *given, uint64_t n, tnp_arena *arena) {
    uint64_t n_given = n;
    tn_tensor **grads = given == Py_None ? tnp_arena_take(arena, (n + 1) * sizeof *grads)
                                         : tnp_handles(given, true, "gradients", arena, &n_given);
    for (uint64_t i = 0; grads && given == Py_None && i < n; i++)
        grads[i] = NULL;
    if (grads && n_given != n)
        return PyErr_Format(PyExc_ValueError, "%llu gradients for %llu tensors",
                            (unsigned long long)n_given, (unsigned long long)n),
               NULL;
    return grads;
}

/* backward(tensors, gradients=None, retain_graph=None, create_graph=False) */
static PyObject *backward(PyObject *tensors, PyObject *gradients, int retain, int create) {
    tnp_arena arena;
    tnp_arena_init(&arena);
    uint64_t n = 0;
    tn_tensor **roots = tnp_handles(tensors, false, "what backward starts from", &arena, &n);
    tn_tensor **grads = roots ? gradients_for(gradients, n, &arena) : NULL;
    tn_status status = TN_OK;
    if (grads)
        TNP_WITHOUT_GIL(status = tn_backward_full(roots, grads, n, retain, create));
    tnp_arena_free(&arena);
    return grads ? tnp_none_or_raise(status) : NULL;
}

static PyObject *tensor_backward(PyObject *self, PyObject *args, PyObject *named) {
    PyObject *gradient = Py_None, *retain = Py_None;
    int create = 0;
    static char *keywords[] = {"gradient", "retain_graph", "create_graph", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OOp:backward", keywords, &gradient, &retain,
                                     &create))
        return NULL;
    int keep = retain == Py_None ? create : PyObject_IsTrue(retain);
    return keep < 0 ? NULL : backward(self, gradient, keep, create);
}

static PyObject *module_backward(PyObject *module, PyObject *args, PyObject *named) {
    PyObject *tensors, *gradients = Py_None, *retain = Py_None;
    int create = 0;
    static char *keywords[] = {"tensors", "grad_tensors", "retain_graph", "create_graph", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|OOp:backward", keywords, &tensors, &gradients,
                                     &retain, &create))
        return NULL;
    int keep = retain == Py_None ? create : PyObject_IsTrue(retain);
    return keep < 0 ? NULL : backward(tensors, gradients, keep, create);
}

static PyObject *grad(PyObject *module, PyObject *args, PyObject *named) {
    PyObject *outputs, *inputs, *given = Py_None, *retain = Py_None;
    int create = 0, unused = 0;
    static char *keywords[] = {
        "outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO|OOpp:grad", keywords, &outputs, &inputs,
                                     &given, &retain, &create, &unused))
        return NULL;
    int keep = retain == Py_None ? create : PyObject_IsTrue(retain);
    if (keep < 0)
        return NULL;
    tnp_arena arena;
    tnp_arena_init(&arena);
    uint64_t n = 0, n_inputs = 0;
    tn_tensor **roots = tnp_handles(outputs, false, "outputs", &arena, &n);
    tn_tensor **by = roots ? tnp_handles(inputs, false, "inputs", &arena, &n_inputs) : NULL;
    tn_tensor **grads = by ? gradients_for(given, n, &arena) : NULL;
    tn_tensor **out = grads ? tnp_arena_take(&arena, (n_inputs + 1) * sizeof *out) : NULL;
    PyObject *made = NULL;
    if (out) {
        tn_scope scope = tn_scope_open();
        tn_status status;
        TNP_WITHOUT_GIL(status =
                            tn_gradients(roots, grads, n, by, n_inputs, keep, create, unused, out));
        made = status == TN_OK ? tuple_of(out, n_inputs) : tnp_raise();
        tn_scope_close(scope);
    }
    tnp_arena_free(&arena);
    return made;
}

static PyObject *requires_grad_(PyObject *self, PyObject *args) {
    int on = 1;
    if (!PyArg_ParseTuple(args, "|p:requires_grad_", &on))
        return NULL;
    return tn_set_requires_grad(tnp_handle(self), on) ? Py_NewRef(self) : tnp_raise();
}
static PyObject *retain_grad(PyObject *self, PyObject *ignored) {
    return tnp_none_or_raise(tn_retain_grad(tnp_handle(self)));
}

/* ---- hooks ------------------------------------------------------------------------------- */

/* A hook has two ends: its tensor's graph, and the handle that the program may keep to take it off. Who goes
 * last frees it; all of it under the GIL. */
typedef struct hook {
    PyObject *function;            /* NULL: the graph, or remove, let it go */
    tn_registration *registration; /* NULL: dropped */
    bool is_forgotten;             /* the handle is gone */
} hook;

static void hook_free(hook *h) {
    if (h->registration)
        tn_registration_drop(h->registration);
    PyMem_Free(h);
}

/* Called by the engine, which does not hold the GIL. */
static tn_tensor *run_hook(tn_tensor *grad, void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    tn_tensor *next = NULL;
    PyObject *function = Py_NewRef(((hook *)user)->function); /* it may take itself off */
    PyObject *given = tnp_wrap_borrowed(grad);
    PyObject *made = given ? PyObject_CallFunctionObjArgs(function, given, NULL) : NULL;
    if (made == Py_None)
        next = grad;
    else if (made && tnp_is_tensor(made))
        next = tn_give(tn_keep(tnp_handle(made)));
    else if (made)
        PyErr_Format(PyExc_TypeError, "a hook returns a tensor or None, not %R", made);
    if (!next)
        tnp_fail_with_exception("a hook of a gradient");
    Py_DECREF(function);
    Py_XDECREF(given);
    Py_XDECREF(made);
    PyGILState_Release(state);
    return next;
}

static void hook_gone(void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    hook *h = user;
    Py_CLEAR(h->function);
    if (h->is_forgotten)
        hook_free(h);
    PyGILState_Release(state);
}

static void forget_hook(PyObject *capsule) {
    hook *h = PyCapsule_GetPointer(capsule, "tenon.hook");
    h->is_forgotten = true;
    if (!h->function)
        hook_free(h);
}

/* A handle for _remove_hook. The hook stays on where the handle is forgotten. */
static PyObject *register_hook(PyObject *self, PyObject *function) {
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "a hook can be called, %R cannot", function);
    hook *h = PyMem_Calloc(1, sizeof *h);
    if (!h)
        return PyErr_NoMemory();
    h->function = Py_NewRef(function);
    h->registration = tn_register_hook(tnp_handle(self), run_hook, h, hook_gone);
    PyObject *capsule = h->registration ? PyCapsule_New(h, "tenon.hook", forget_hook) : NULL;
    if (capsule)
        return capsule;
    tn_registration *registration = h->registration;
    h->registration = NULL;
    h->is_forgotten = true;
    if (registration) {
        tn_registration_drop(registration); /* which lets h go */
        return NULL;
    }
    Py_CLEAR(h->function);
    hook_free(h);
    return tnp_raise();
}
static PyObject *remove_hook(PyObject *module, PyObject *capsule) {
    hook *h = PyCapsule_GetPointer(capsule, "tenon.hook");
    if (!h)
        return NULL;
    tnp_drop_registration(&h->registration);
    Py_RETURN_NONE;
}

PyMethodDef tnp_autograd_methods[] = {
    {"backward", (PyCFunction)(void (*)(void))tensor_backward, METH_VARARGS | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False): adds gradients up in the "
     "leaves."},
    {"requires_grad_", requires_grad_, METH_VARARGS,
     "requires_grad_(requires_grad=True): marks a leaf."},
    {"retain_grad", retain_grad, METH_NOARGS, "Keeps the gradient of a tensor that is no leaf."},
    {"_register_hook", register_hook, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- modes ------------------------------------------------------------------------------- */

#define MODE(name, setter) \
    static PyObject *name(PyObject *module, PyObject *value) { \
        int on = PyObject_IsTrue(value); \
        return on < 0 ? NULL : PyBool_FromLong(setter(on)); \
    }
MODE(set_grad_enabled, tn_set_grad_enabled)
MODE(set_inference_mode, tn_set_inference_mode)
MODE(set_anomaly_mode, tn_set_anomaly_mode)

static PyObject *is_grad_enabled(PyObject *module, PyObject *ignored) {
    return PyBool_FromLong(tn_grad_enabled());
}
static PyObject *is_inference_mode(PyObject *module, PyObject *ignored) {
    return PyBool_FromLong(tn_inference_mode());
}
/* set_autocast(dtype or None) -> what it was */
static PyObject *set_autocast(PyObject *module, PyObject *value) {
    tn_dtype dtype = TN_DTYPE_NONE;
    if (value != Py_None && tnp_dtype_from(value, &dtype) != 1)
        return PyErr_Format(PyExc_TypeError, "autocast takes a dtype, not %R", value);
    tn_dtype before = tn_set_autocast(dtype);
    if (tn_error_status() != TN_OK)
        return tnp_raise();
    if (before == TN_DTYPE_NONE)
        Py_RETURN_NONE;
    return tnp_dtype_object(before);
}

/* ---- functions written in Python --------------------------------------------------------- */

/* What a call of one carries until its graph is gone. */
typedef struct call {
    tn_function function;
    PyObject *name;     /* of the node */
    PyObject *forward;  /* (inputs) -> (outputs, tensors to save) */
    PyObject *backward; /* (gradients, saved) -> gradients */
    PyObject *
        saved; /* a list: tensors that are neither input nor output, None for those that the graph keeps */
} call;

/* A tuple of n tensors, or None where that may be, into `out`, given to the scope. */
static int take(PyObject *made, tn_tensor **out, uint64_t n, bool with_none, const char *where) {
    if (!PyTuple_Check(made) || (uint64_t)PyTuple_Size(made) != n)
        return PyErr_Format(PyExc_ValueError, "%s returned %R where a tuple of %llu was due", where,
                            made, (unsigned long long)n),
               -1;
    for (uint64_t i = 0; i < n; i++) {
        PyObject *one = PyTuple_GetItem(made, (Py_ssize_t)i);
        if (!tnp_is_tensor(one) && !(with_none && one == Py_None))
            return PyErr_Format(PyExc_TypeError, "%s returned %R where a tensor was due", where,
                                one),
                   -1;
        out[i] = one == Py_None ? NULL : tn_give(tn_keep(tnp_handle(one)));
    }
    return 0;
}

static bool is_among(const tn_tensor *t, tn_tensor *const *list, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (list[i] == t)
            return true;
    return false;
}

/* Inputs and outputs are saved by the graph, which looks after their cycles and versions; others are kept. */
static int save(call *c, PyObject *tensors, tn_function_context *context, tn_tensor *const *inputs,
                uint64_t n_inputs, tn_tensor *const *outputs, uint64_t n_outputs) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tensors); i++) {
        PyObject *one = PyTuple_GetItem(tensors, i);
        if (one != Py_None && !tnp_is_tensor(one))
            return PyErr_Format(PyExc_TypeError, "save_for_backward takes tensors, not %R", one),
                   -1;
        tn_tensor *t = one == Py_None ? NULL : tnp_handle(one);
        bool by_graph = t && (is_among(t, inputs, n_inputs) || is_among(t, outputs, n_outputs));
        if (by_graph && tn_function_save(context, &t, 1) != TN_OK)
            return tnp_raise(), -1;
        if (PyList_Append(c->saved, by_graph ? Py_Ellipsis : one) < 0)
            return -1;
    }
    return 0;
}

static PyObject *saved_of(const call *c, tn_function_context *context) {
    Py_ssize_t n = PyList_Size(c->saved);
    PyObject *tuple = PyTuple_New(n);
    uint64_t by_graph = 0;
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        PyObject *one = Py_NewRef(PyList_GetItem(c->saved, i));
        if (one == Py_Ellipsis) {
            Py_DECREF(one);
            tn_tensor *t = tn_function_saved(context, by_graph++);
            one = t ? tnp_wrap_borrowed(t) : tnp_raise();
        }
        if (!one)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, one);
    }
    return tuple;
}

static tn_status forward_of(tn_function_context *context, tn_tensor *const *inputs,
                            uint64_t n_inputs, tn_tensor **outputs, uint64_t n_outputs,
                            void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    call *c = user;
    PyObject *given = tuple_of(inputs, n_inputs);
    PyObject *made = given ? PyObject_CallFunctionObjArgs(c->forward, given, NULL) : NULL, *results,
             *tensors;
    Py_CLEAR(c->forward); /* it holds the arguments, and is called once */
    bool done = made &&
                PyArg_ParseTuple(made, "O!O!", &PyTuple_Type, &results, &PyTuple_Type, &tensors) &&
                take(results, outputs, n_outputs, false, "forward of a function") == 0 &&
                save(c, tensors, context, inputs, n_inputs, outputs, n_outputs) == 0;
    tn_status status = done ? TN_OK : tnp_fail_with_exception("forward of a function");
    Py_XDECREF(given);
    Py_XDECREF(made);
    PyGILState_Release(state);
    return status;
}

static tn_status backward_of(tn_function_context *context, tn_tensor *const *output_grads,
                             uint64_t n_outputs, tn_tensor **grads, uint64_t n_inputs, void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    call *c = user;
    PyObject *given = tuple_of(output_grads, n_outputs),
             *saved = given ? saved_of(c, context) : NULL;
    PyObject *made = saved ? PyObject_CallFunctionObjArgs(c->backward, given, saved, NULL) : NULL;
    bool done = made && take(made, grads, n_inputs, true, "backward of a function") == 0;
    tn_status status = done ? TN_OK : tnp_fail_with_exception("backward of a function");
    Py_XDECREF(given);
    Py_XDECREF(saved);
    Py_XDECREF(made);
    PyGILState_Release(state);
    return status;
}

static void end_call(void *user) {
    call *c = user;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(c->name);
    Py_XDECREF(c->forward);
    Py_XDECREF(c->backward);
    Py_XDECREF(c->saved);
    PyMem_Free(c);
    PyGILState_Release(state);
}

/* function_apply(name, forward, backward, inputs, n_outputs) -> outputs */
static PyObject *function_apply(PyObject *module, PyObject *args) {
    PyObject *name, *forward, *backward_given, *inputs;
    unsigned long long n_outputs;
    if (!PyArg_ParseTuple(args, "UOOO!K:function_apply", &name, &forward, &backward_given,
                          &PyTuple_Type, &inputs, &n_outputs))
        return NULL;
    if (n_outputs == 0 || n_outputs > 64)
        return PyErr_Format(PyExc_ValueError, "a function has 1 to 64 outputs, not %llu",
                            n_outputs);
    tnp_arena arena;
    tnp_arena_init(&arena);
    uint64_t n = 0;
    tn_tensor **list = tnp_handles(inputs, false, "inputs", &arena, &n), *outputs[64] = {NULL};
    call *c = list ? PyMem_Calloc(1, sizeof *c) : NULL;
    PyObject *made = NULL;
    if (c) {
        c->name = Py_NewRef(name);
        c->forward = Py_NewRef(forward);
        c->backward = Py_NewRef(backward_given);
        c->saved = PyList_New(0);
        c->function =
            (tn_function){PyUnicode_AsUTF8AndSize(name, NULL), forward_of, backward_of, end_call};
    } else if (list) {
        PyErr_NoMemory();
    }
    if (c && (!c->saved || !c->function.name)) {
        end_call(c);
    } else if (c) {
        tn_scope scope = tn_scope_open();
        tn_status status;
        TNP_WITHOUT_GIL(status = tn_function_apply(&c->function, c, list, n, outputs, n_outputs));
        made = status == TN_OK ? tuple_of(outputs, n_outputs) : tnp_raise();
        tn_scope_close(scope);
    }
    tnp_arena_free(&arena);
    return made;
}

PyMethodDef tnp_autograd_functions[] = {
    {"backward", (PyCFunction)(void (*)(void))module_backward, METH_VARARGS | METH_KEYWORDS,
     "backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False): of several "
     "tensors at once."},
    {"grad", (PyCFunction)(void (*)(void))grad, METH_VARARGS | METH_KEYWORDS,
     "grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, "
     "allow_unused=False): gradients of "
     "outputs by inputs; leaves are left alone."},
    {"_remove_hook", remove_hook, METH_O, NULL},
    {"_set_grad_enabled", set_grad_enabled, METH_O, NULL},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Are operators recorded?"},
    {"_set_inference_mode", set_inference_mode, METH_O, NULL},
    {"is_inference_mode_enabled", is_inference_mode, METH_NOARGS,
     "Do results take no part in gradients ever?"},
    {"_set_anomaly_mode", set_anomaly_mode, METH_O, NULL},
    {"_set_autocast", set_autocast, METH_O, NULL},
    {"_set_array_promotion", tnp_set_array_promotion, METH_O, NULL},
    {"_function_apply", function_apply, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
