/* Optimizers (tenon/optim.h) as one Python type, whose maker and options are given by name. */
#include "python/core/core.h"

#include <string.h>

typedef struct optimizer_object {
    PyObject_HEAD tn_optimizer *handle;
    PyObject *params; /* a tuple */
} optimizer_object;

static PyTypeObject *optimizer_type;

static tn_optimizer *of(PyObject *self) {
    return ((optimizer_object *)self)->handle;
}

/* ---- making one -------------------------------------------------------------------------- */

/* X(optimizer, struct of its options, a field of it, kind: 'd' number, 'b' bool) */
#define OPTIONS(X) \
    X(sgd, tn_sgd_options, lr, 'd') \
    X(sgd, tn_sgd_options, momentum, 'd') \
    X(sgd, tn_sgd_options, dampening, 'd') \
    X(sgd, tn_sgd_options, weight_decay, 'd') \
    X(sgd, tn_sgd_options, nesterov, 'b') \
    X(sgd, tn_sgd_options, maximize, 'b') \
    X(adam, tn_adam_options, lr, 'd') \
    X(adam, tn_adam_options, beta1, 'd') \
    X(adam, tn_adam_options, beta2, 'd') \
    X(adam, tn_adam_options, eps, 'd') \
    X(adam, tn_adam_options, weight_decay, 'd') \
    X(adam, tn_adam_options, maximize, 'b') \
    X(adam, tn_adam_options, amsgrad, 'b') \
    X(rmsprop, tn_rmsprop_options, lr, 'd') \
    X(rmsprop, tn_rmsprop_options, alpha, 'd') \
    X(rmsprop, tn_rmsprop_options, eps, 'd') \
    X(rmsprop, tn_rmsprop_options, weight_decay, 'd') \
    X(rmsprop, tn_rmsprop_options, momentum, 'd') \
    X(rmsprop, tn_rmsprop_options, centered, 'b') \
    X(rmsprop, tn_rmsprop_options, maximize, 'b') \
    X(adagrad, tn_adagrad_options, lr, 'd') \
    X(adagrad, tn_adagrad_options, lr_decay, 'd') \
    X(adagrad, tn_adagrad_options, weight_decay, 'd') \
    X(adagrad, tn_adagrad_options, initial_accumulator_value, 'd') \
    X(adagrad, tn_adagrad_options, eps, 'd') \
    X(adagrad, tn_adagrad_options, maximize, 'b') \
    X(lion, tn_lion_options, lr, 'd') \
    X(lion, tn_lion_options, beta1, 'd') \
    X(lion, tn_lion_options, beta2, 'd') \
    X(lion, tn_lion_options, weight_decay, 'd') \
    X(lion, tn_lion_options, maximize, 'b')

static const struct option {
    const char *optimizer, *name;
    size_t offset;
    char kind;
} options[] = {
#define OPTION(optimizer, type, field, kind) {#optimizer, #field, offsetof(type, field), kind},
    OPTIONS(OPTION)
#undef OPTION
};

/* Options given by name, over the defaults; `kind` is the optimizer whose fields these are. */
static int apply(const char *kind, PyObject *given, void *out) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(given, &at, &name, &value)) {
        const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
        const struct option *found = NULL;
        for (size_t i = 0; text && i < sizeof options / sizeof options[0]; i++)
            if (strcmp(options[i].optimizer, kind) == 0 && strcmp(options[i].name, text) == 0)
                found = &options[i];
        if (!found)
            return text ? (PyErr_Format(PyExc_TypeError, "%s has no option '%s'", kind, text), -1)
                        : -1;
        if (found->kind == 'd') {
            double number = PyFloat_AsDouble(value);
            if (number == -1 && PyErr_Occurred())
                return -1;
            memcpy((char *)out + found->offset, &number, sizeof number);
        } else {
            int on = PyObject_IsTrue(value);
            if (on < 0)
                return -1;
            bool holds = on;
            memcpy((char *)out + found->offset, &holds, sizeof holds);
        }
    }
    return 0;
}

/* Of `kind`, or NULL with an exception. */
static tn_optimizer *create(const char *kind, tn_tensor *const *params, uint64_t n,
                            PyObject *given) {
    tn_optimizer *made = NULL;
#define CREATE(name, options_of, type, defaults) \
    if (strcmp(kind, #name) == 0) { \
        type o = defaults(); \
        if (apply(#options_of, given, &o) < 0) \
            return NULL; \
        made = tn_##name##_create(params, n, &o); \
    } else
    CREATE(sgd, sgd, tn_sgd_options, tn_sgd_defaults)
    CREATE(adam, adam, tn_adam_options, tn_adam_defaults)
    CREATE(adamw, adam, tn_adam_options, tn_adamw_defaults)
    CREATE(rmsprop, rmsprop, tn_rmsprop_options, tn_rmsprop_defaults)
    CREATE(adagrad, adagrad, tn_adagrad_options, tn_adagrad_defaults)
    CREATE(lion, lion, tn_lion_options, tn_lion_defaults) {
        PyErr_Format(PyExc_ValueError, "there is no optimizer '%s'", kind);
        return NULL;
    }
#undef CREATE
    if (!made)
        tnp_raise();
    return made;
}

/* Optimizer(kind, params, options) */
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *named) {
    const char *kind;
    PyObject *given, *wanted;
    if (!PyArg_ParseTuple(args, "sOO!:Optimizer", &kind, &given, &PyDict_Type, &wanted))
        return NULL;
    tnp_arena arena;
    tnp_arena_init(&arena);
    uint64_t n = 0;
    PyObject *params = PySequence_Tuple(given);
    tn_tensor **list = params ? tnp_handles(params, false, "parameters", &arena, &n) : NULL;
    tn_optimizer *handle = list ? create(kind, list, n, wanted) : NULL;
    tnp_arena_free(&arena);
    optimizer_object *self =
        handle ? (optimizer_object *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0) : NULL;
    if (!self) {
        tn_optimizer_destroy(handle);
        Py_XDECREF(params);
        return NULL;
    }
    self->handle = handle;
    self->params = params;
    return (PyObject *)self;
}

static void end(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tn_optimizer_destroy(of(self));
    Py_XDECREF(((optimizer_object *)self)->params);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- using it ---------------------------------------------------------------------------- */

static PyObject *step(PyObject *self, PyObject *ignored) {
    tn_status status;
    tn_optimizer *handle = of(self);
    TNP_WITHOUT_GIL(status = tn_optimizer_step(handle));
    return tnp_none_or_raise(status);
}
static PyObject *zero_grad(PyObject *self, PyObject *ignored) {
    return tnp_none_or_raise(tn_optimizer_zero_grad(of(self)));
}
static PyObject *get_lr(PyObject *self, void *closure) {
    return PyFloat_FromDouble(tn_optimizer_lr(of(self)));
}
static int set_lr(PyObject *self, PyObject *value, void *closure) {
    double lr = value ? PyFloat_AsDouble(value) : -1;
    if (lr == -1 && PyErr_Occurred())
        return -1;
    return tn_optimizer_set_lr(of(self), lr) == TN_OK ? 0 : (tnp_raise(), -1);
}
static PyObject *get_params(PyObject *self, void *closure) {
    return Py_NewRef(((optimizer_object *)self)->params);
}

/* What is saved: for each parameter its steps and tensors, by PyTorch's names. */
static PyObject *state_dict(PyObject *self, PyObject *ignored) {
    Py_ssize_t n = PyTuple_Size(((optimizer_object *)self)->params);
    PyObject *all = PyList_New(0);
    for (Py_ssize_t i = 0; all && i < n; i++) {
        PyObject *one =
            Py_BuildValue("{sL}", "step", (long long)tn_optimizer_steps(of(self), (uint64_t)i));
        for (uint64_t k = 0; one && k < tn_optimizer_n_states(of(self)); k++) {
            const char *name = tn_optimizer_state_name(of(self), k);
            tn_tensor *t = tn_optimizer_state(of(self), (uint64_t)i, name);
            PyObject *state = t ? tnp_wrap_borrowed(t) : Py_NewRef(Py_None);
            if (!state || PyDict_SetItemString(one, name, state) < 0)
                Py_CLEAR(one);
            Py_XDECREF(state);
        }
        if (!one || PyList_Append(all, one) < 0)
            Py_CLEAR(all);
        Py_XDECREF(one);
    }
    PyObject *made =
        all ? Py_BuildValue("{sdsO}", "lr", tn_optimizer_lr(of(self)), "state", all) : NULL;
    Py_XDECREF(all);
    return made;
}

/* The state of parameter i. Nothing here runs Python, which could change what is read. */
static int load_one(PyObject *self, uint64_t i, PyObject *given) {
    PyObject *steps = PyDict_Check(given) ? PyDict_GetItemString(given, "step") : NULL;
    if (!steps || !PyLong_Check(steps))
        return PyErr_Format(PyExc_ValueError, "the state of parameter %llu has no whole 'step'",
                            (unsigned long long)i),
               -1;
    long long count = PyLong_AsLongLong(steps);
    if (count == -1 && PyErr_Occurred())
        return -1;
    for (uint64_t k = 0; k < tn_optimizer_n_states(of(self)); k++) {
        const char *name = tn_optimizer_state_name(of(self), k);
        PyObject *state = PyDict_GetItemString(given, name);
        if (!state || (state != Py_None && !tnp_is_tensor(state)))
            return PyErr_Format(PyExc_ValueError, "the state of parameter %llu has no '%s'",
                                (unsigned long long)i, name),
                   -1;
        Py_INCREF(state);
        PyObject *copy = state == Py_None ? Py_NewRef(state) : TNP_CALL(clone, state);
        Py_DECREF(state);
        if (!copy)
            return -1;
        tn_status status =
            tn_optimizer_set_state(of(self), i, name, copy == Py_None ? NULL : tnp_handle(copy));
        Py_DECREF(copy);
        if (status != TN_OK)
            return tnp_raise(), -1;
    }
    return tn_optimizer_set_steps(of(self), i, count) == TN_OK ? 0 : (tnp_raise(), -1);
}

static PyObject *load_state_dict(PyObject *self, PyObject *given) {
    Py_ssize_t n = PyTuple_Size(((optimizer_object *)self)->params);
    PyObject *list = PyDict_Check(given) ? PyDict_GetItemString(given, "state") : NULL;
    PyObject *lr = PyDict_Check(given) ? PyDict_GetItemString(given, "lr") : NULL;
    bool fits = list && PyList_Check(list) && PyList_Size(list) == n && lr &&
                (PyFloat_Check(lr) || PyLong_Check(lr));
    if (!fits)
        return PyErr_Format(PyExc_ValueError,
                            "this is not the state_dict of an optimizer of %zd parameters", n);
    Py_INCREF(lr);
    PyObject *all = PyList_AsTuple(list);
    bool done = all && set_lr(self, lr, NULL) == 0;
    for (Py_ssize_t i = 0; done && i < n; i++) {
        PyObject *one = PyTuple_GetItem(all, i);
        PyObject *copy = PyDict_Check(one) ? PyDict_Copy(one) : Py_NewRef(one);
        done = copy && load_one(self, (uint64_t)i, copy) == 0;
        Py_XDECREF(copy);
    }
    Py_DECREF(lr);
    Py_XDECREF(all);
    if (!done)
        return NULL;
    Py_RETURN_NONE;
}

static PyGetSetDef properties[] = {
    {"lr", get_lr, set_lr, "The learning rate of the next step.", NULL},
    {"params", get_params, NULL, "Its parameters.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"step", step, METH_NOARGS, "Updates every parameter that has a gradient."},
    {"zero_grad", zero_grad, METH_NOARGS, "Drops the parameters' gradients."},
    {"state_dict", state_dict, METH_NOARGS,
     "Its state, to be saved: goes on from it to the last bit."},
    {"load_state_dict", load_state_dict, METH_O,
     "load_state_dict(state): puts copies of a state back."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, end},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc, "What tenon.optim's classes are made of."},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "tenon._core.Optimizer",
    .basicsize = sizeof(optimizer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* clip_grad_norm_(params, max_norm, norm_type) -> the norm before */
static PyObject *clip_grad_norm(PyObject *module, PyObject *args) {
    PyObject *given;
    double max_norm, norm_type = 2;
    if (!PyArg_ParseTuple(args, "Od|d:clip_grad_norm_", &given, &max_norm, &norm_type))
        return NULL;
    tnp_arena arena;
    tnp_arena_init(&arena);
    uint64_t n = 0;
    tn_tensor **list = tnp_handles(given, false, "parameters", &arena, &n);
    PyObject *made = NULL;
    if (list) {
        tn_tensor *norm = NULL;
        tn_scope scope = tn_scope_open();
        tn_status status = tn_clip_grad_norm_(list, n, max_norm, norm_type, false, &norm);
        made = status == TN_OK ? tnp_wrap_borrowed(norm) : tnp_raise();
        tn_scope_close(scope);
    }
    tnp_arena_free(&arena);
    return made;
}

PyMethodDef tnp_optim_functions[] = {
    {"clip_grad_norm_", clip_grad_norm, METH_VARARGS,
     "clip_grad_norm_(params, max_norm, norm_type=2): scales gradients so that their norm is "
     "max_norm at most; "
     "returns the norm before."},
    {NULL, NULL, 0, NULL},
};

int tnp_optim_init(PyObject *module) {
    optimizer_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return optimizer_type ? PyModule_AddObjectRef(module, "Optimizer", (PyObject *)optimizer_type)
                          : -1;
}
