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

/* ---- lists of tensors -------------------------------------------------------------------- */

/* The handles of a tensor or of a list of them; with_none: elements may be None. PyMem_Free. */
static tn_tensor **handles(PyObject *object, bool with_none, uint64_t *n, const char *what) {
    bool is_one = tnp_is_tensor(object) || object == Py_None;
    Py_ssize_t size = is_one ? 1 : PySequence_Check(object) ? PySequence_Size(object) : -1;
    if (size < 0) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "%s is a tensor or a list of tensors, not %R", what,
                            object),
               NULL;
    }
    tn_tensor **list = PyMem_Calloc((size_t)size + 1, sizeof *list);
    if (!list)
        return PyErr_NoMemory(), NULL;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *one = is_one ? Py_NewRef(object) : PySequence_GetItem(object, i);
        bool fits = one && (tnp_is_tensor(one) || (with_none && one == Py_None));
        if (fits && one != Py_None)
            list[i] = tnp_handle(one); /* the list keeps it */
        Py_XDECREF(one);
        if (!fits) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "%s is a tensor or a list of tensors", what);
            PyMem_Free(list);
            return NULL;
        }
    }
    *n = (uint64_t)size;
    return list;
}

/* ---- backward ---------------------------------------------------------------------------- */

/* backward(tensors, gradients=None, retain_graph=None, create_graph=False) */
static PyObject *backward(PyObject *tensors, PyObject *gradients, int retain, int create) {
    uint64_t n, n_grads = 0;
    tn_tensor **roots = handles(tensors, false, &n, "what backward starts from"), **grads = NULL;
    tn_status status = TN_OK;
    if (roots && gradients != Py_None) {
        grads = handles(gradients, true, &n_grads, "the gradient");
        if (grads && n_grads != n) {
            PyErr_Format(PyExc_ValueError, "%llu gradients for %llu tensors",
                         (unsigned long long)n_grads, (unsigned long long)n);
            PyMem_Free(grads);
            grads = NULL;
        }
    }
    bool ready = roots && (gradients == Py_None || grads);
    if (ready) {
        tn_tensor **none = grads ? grads : PyMem_Calloc(n + 1, sizeof *none);
        if (none)
            TNP_WITHOUT_GIL(status = tn_backward_full(roots, none, n, retain, create));
        else
            PyErr_NoMemory();
        ready = none != NULL;
        PyMem_Free(none);
    }
    PyMem_Free(roots);
    return ready ? tnp_none_or_raise(status) : NULL;
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
    uint64_t n = 0, n_inputs = 0, n_grads = 0;
    tn_tensor **roots = keep < 0 ? NULL : handles(outputs, false, &n, "outputs");
    tn_tensor **by = roots ? handles(inputs, false, &n_inputs, "inputs") : NULL;
    tn_tensor **grads = !by                ? NULL
                        : given != Py_None ? handles(given, true, &n_grads, "grad_outputs")
                                           : PyMem_Calloc(n + 1, sizeof *grads);
    tn_tensor **out = grads ? PyMem_Calloc(n_inputs + 1, sizeof *out) : NULL;
    PyObject *made = NULL;
    if (out && given != Py_None && n_grads != n) {
        PyErr_Format(PyExc_ValueError, "%llu gradients for %llu outputs",
                     (unsigned long long)n_grads, (unsigned long long)n);
    } else if (out) {
        tn_scope scope = tn_scope_open();
        tn_status status;
        TNP_WITHOUT_GIL(status =
                            tn_gradients(roots, grads, n, by, n_inputs, keep, create, unused, out));
        made = status == TN_OK ? PyTuple_New((Py_ssize_t)n_inputs) : tnp_raise();
        for (uint64_t i = 0; made && i < n_inputs; i++) {
            PyObject *one = out[i] ? tnp_wrap_borrowed(out[i]) : Py_NewRef(Py_None);
            if (!one)
                Py_CLEAR(made);
            else
                PyTuple_SetItem(made, (Py_ssize_t)i, one);
        }
        tn_scope_close(scope);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    PyMem_Free(roots);
    PyMem_Free(by);
    PyMem_Free(grads);
    PyMem_Free(out);
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

/* Called by the engine, which does not hold the GIL. */
static tn_tensor *run_hook(tn_tensor *grad, void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    tn_tensor *next = NULL;
    PyObject *given = tnp_wrap_borrowed(grad);
    PyObject *made = given ? PyObject_CallFunctionObjArgs(user, given, NULL) : NULL;
    if (made == Py_None)
        next = grad;
    else if (made && tnp_is_tensor(made))
        next = tn_give(tn_keep(tnp_handle(made)));
    else if (made)
        PyErr_Format(PyExc_TypeError, "a hook returns a tensor or None, not %R", made);
    if (!next)
        tnp_fail_with_exception("a hook of a gradient");
    Py_XDECREF(given);
    Py_XDECREF(made);
    PyGILState_Release(state);
    return next;
}
static void drop_object(void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)user);
    PyGILState_Release(state);
}
/* A handle that takes the hook off: remove(). It stays on where the handle is forgotten, so the handle is kept
 * by the object that the method returns and by a list of the module until then. */
static PyObject *register_hook(PyObject *self, PyObject *hook) {
    if (!PyCallable_Check(hook))
        return PyErr_Format(PyExc_TypeError, "a hook can be called, %R cannot", hook);
    tn_registration *registration =
        tn_register_hook(tnp_handle(self), run_hook, Py_NewRef(hook), drop_object);
    if (!registration) {
        Py_DECREF(hook);
        return tnp_raise();
    }
    PyObject *capsule = PyCapsule_New(registration, "tenon.registration", NULL);
    if (!capsule)
        tn_registration_drop(registration);
    return capsule;
}
static PyObject *remove_hook(PyObject *module, PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "tenon.registration"))
        return PyErr_Format(PyExc_TypeError, "%R is no handle of a hook that is still on", capsule);
    tn_registration *registration = PyCapsule_GetPointer(capsule, "tenon.registration");
    PyCapsule_SetName(capsule, "tenon.registration, dropped");
    TNP_WITHOUT_GIL(tn_registration_drop(registration));
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
    uint64_t n;
    tn_tensor **list = handles(inputs, false, &n, "an input"), *outputs[64] = {NULL};
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
    PyMem_Free(list);
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
    {"_function_apply", function_apply, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
