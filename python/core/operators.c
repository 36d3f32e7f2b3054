/* Operators as Python functions and methods: made from the library's own table when the package is
 * imported, so that nothing here knows an operator. Those that are defined later are looked up by name. */
#include "python/core/core.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 32, MAX_RETS = 8 };

typedef struct overload {
    const tn_op *op;
    tn_op_info info; /* its strings live as long as the operator; args and rets are ours */
    uint32_t n_positional;
    PyObject **names;      /* [n_args], interned */
    PyTypeObject *results; /* a named tuple, where there are several results */
} overload;

struct tnp_packet {
    const char *name;
    overload *overloads;
    uint32_t n;
    PyMethodDef function; /* of the module */
};

static tnp_packet *table;
static uint32_t n_table;
const tnp_packet *tnp_packets[TNP_N_PACKETS];

/* ---- reading the table ------------------------------------------------------------------- */

static char *copy_text(const char *text, size_t n) {
    char *copy = PyMem_Malloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

static tn_arg_info *copy_args(const tn_arg_info *args, uint32_t n) {
    tn_arg_info *copy = PyMem_Calloc(n + 1, sizeof *copy);
    for (uint32_t i = 0; copy && i < n; i++)
        copy[i] = args[i];
    return copy;
}

/* -1 where there is no memory, or more arguments than anybody has. */
static int add_overload(tnp_packet *packet, const tn_op_info *info) {
    const tn_op *op = tn_op_find(info->name);
    if (!op)
        return tn_error_clear(), 0; /* another thread has just unregistered it */
    overload *grown = PyMem_Realloc(packet->overloads, (packet->n + 1) * sizeof *grown);
    if (!grown)
        return -1;
    packet->overloads = grown;
    overload *o = &grown[packet->n++];
    *o = (overload){.op = op, .info = *info};
    o->names = PyMem_Calloc(info->n_args + 1, sizeof *o->names);
    o->info.args = copy_args(info->args, info->n_args);
    o->info.rets = copy_args(info->rets, info->n_rets);
    if (!o->names || !o->info.args || !o->info.rets || info->n_args > MAX_ARGS ||
        info->n_rets > MAX_RETS)
        return -1;
    for (uint32_t i = 0; i < info->n_args; i++) {
        o->n_positional += !info->args[i].keyword_only;
        if (!(o->names[i] = PyUnicode_InternFromString(info->args[i].name)))
            return -1;
    }
    return 0;
}

static size_t length_of_base(const tn_op_info *info) {
    return strcspn(info->name, ".");
}
static bool is_of(const tnp_packet *packet, const tn_op_info *info) {
    size_t n = length_of_base(info);
    return strlen(packet->name) == n && memcmp(packet->name, info->name, n) == 0;
}

/* Sets the int that user points to where there is no memory. */
static void add(const tn_op_info *info, void *user) {
    if (*(int *)user)
        return;
    tnp_packet *packet = NULL;
    for (uint32_t i = n_table; i-- > 0 && !packet;)
        if (is_of(&table[i], info))
            packet = &table[i];
    *(int *)user = -1;
    if (!packet) {
        tnp_packet *grown = PyMem_Realloc(table, (n_table + 1) * sizeof *table);
        if (!grown)
            return;
        table = grown;
        packet = &table[n_table];
        *packet = (tnp_packet){.name = copy_text(info->name, length_of_base(info))};
        if (!packet->name)
            return;
        n_table++;
    }
    *(int *)user = add_overload(packet, info);
}

const tnp_packet *tnp_packet_find(const char *name) {
    for (uint32_t i = 0; i < n_table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    PyErr_Format(PyExc_AttributeError, "tenon has no operator '%s'", name);
    return NULL;
}

/* ---- arguments --------------------------------------------------------------------------- */

/* May several integers stand for this list, as in x.view(2, 3)? They are the rest of the positional
 * arguments then. */
static bool takes_the_rest(const overload *o, uint32_t i, PyObject *const *args, Py_ssize_t n,
                           Py_ssize_t at) {
    if (i + 1 < o->n_positional || strcmp(o->info.args[i].type, "int[]") != 0)
        return false;
    for (Py_ssize_t k = at; k < n; k++)
        if (!PyIndex_Check(args[k]) || PyBool_Check(args[k]) || tnp_is_tensor(args[k]))
            return false;
    return true;
}

static int the_rest(PyObject *const *args, Py_ssize_t n, Py_ssize_t at, tn_cell *cell,
                    tnp_arena *arena) {
    int64_t *ints = tnp_arena_take(arena, (size_t)(n - at) * sizeof(int64_t));
    if (!ints)
        return -1;
    for (Py_ssize_t k = at; k < n; k++) {
        PyObject *whole = PyNumber_Index(args[k]);
        ints[k - at] = whole ? PyLong_AsLongLong(whole) : -1;
        Py_XDECREF(whole);
        if (ints[k - at] == -1 && PyErr_Occurred())
            return -1;
    }
    *cell = (tn_cell){.tag = TN_CELL_INTS, .n = (uint32_t)(n - at), .v.ints = ints};
    return 1;
}

/* What was given by name for argument i, or NULL. */
static PyObject *named(const overload *o, uint32_t i, PyObject *const *values, PyObject *names) {
    for (Py_ssize_t k = 0; names && k < PyTuple_Size(names); k++)
        if (PyUnicode_Compare(PyTuple_GetItem(names, k), o->names[i]) == 0)
            return values[k];
    return NULL;
}

/* Are numbers of this call elements of u64? The first tensor that is no mask says so, and no dtype is asked for. */
static bool are_of_u64(const overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    tn_dtype dtype = TN_BOOL;
    for (uint32_t i = 0; i < o->info.n_args; i++) {
        PyObject *object = i < n ? args[i] : named(o, i, args + n, names);
        if (object && object != Py_None && strcmp(o->info.args[i].type, "ScalarType") == 0)
            return false;
        if (object && tnp_is_tensor(object) && dtype == TN_BOOL)
            dtype = tn_dtype_of(tnp_handle(object));
    }
    return dtype == TN_U64;
}

/* The cell of argument i. Of u64 a number has room in a cell by its bits, as an element of a tensor of u64 alone. */
static int argument(const overload *o, uint32_t i, PyObject *object, PyObject *const *args,
                    Py_ssize_t n, PyObject *names, tn_cell *cell, tnp_arena *arena) {
    int fits = tnp_cell_from(&o->info.args[i], object, cell, arena);
    if (fits != -1 || strcmp(o->info.args[i].type, "Scalar") != 0 || !PyLong_Check(object) ||
        !PyErr_ExceptionMatches(PyExc_OverflowError) || !are_of_u64(o, args, n, names))
        return fits;
    PyErr_Clear();
    *cell = tn_int((int64_t)PyLong_AsUnsignedLongLong(object));
    if (!PyErr_Occurred())
        return 1;
    PyErr_SetString(PyExc_OverflowError,
                    "an integer is beyond uint64, whose elements are 0 to 2**64 - 1");
    return -1;
}

/* Why an overload does not fit; text is made only when none does. */
typedef struct misfit {
    enum { TOO_MANY, OF_TYPE, UNKNOWN_NAME, TWICE, MISSING } what;
    uint32_t arg;
    PyObject *object; /* borrowed */
} misfit;

/* Fills cells: 1; 0 where the arguments do not fit; -1 with an exception. given[i] is argument i, or NULL. */
static int fit(const overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names,
               tn_cell *cells, PyObject **given, tnp_arena *arena, misfit *why) {
    uint32_t n_args = o->info.n_args;
    Py_ssize_t at = 0;
    for (uint32_t i = 0; i < n_args; i++) {
        cells[i] = (tn_cell){.tag = TN_CELL_NONE};
        given[i] = NULL;
    }
    for (uint32_t i = 0; i < o->n_positional && at < n; i++) {
        int fits;
        given[i] = args[at];
        if (takes_the_rest(o, i, args, n, at)) {
            fits = the_rest(args, n, at, &cells[i], arena);
            at = n;
        } else {
            fits = argument(o, i, args[at++], args, n, names, &cells[i], arena);
        }
        if (fits != 1)
            return *why = (misfit){OF_TYPE, i, given[i]}, fits;
    }
    if (at < n)
        return *why = (misfit){TOO_MANY, o->n_positional, NULL}, 0;
    Py_ssize_t n_named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t k = 0; k < n_named; k++) {
        PyObject *name = PyTuple_GetItem(names, k);
        uint32_t i = 0;
        while (i < n_args && o->names[i] != name)
            i++;
        for (uint32_t j = 0; i == n_args && j < n_args; j++) /* a name that was not interned */
            if (PyUnicode_Compare(o->names[j], name) == 0)
                i = j;
        if (i == n_args)
            return *why = (misfit){UNKNOWN_NAME, 0, name}, 0;
        if (given[i])
            return *why = (misfit){TWICE, i, NULL}, 0;
        given[i] = args[n + k];
        int fits = argument(o, i, given[i], args, n, names, &cells[i], arena);
        if (fits != 1)
            return *why = (misfit){OF_TYPE, i, given[i]}, fits;
    }
    for (uint32_t i = 0; i < n_args; i++)
        if (!given[i] && !o->info.args[i].has_default)
            return *why = (misfit){MISSING, i, NULL}, 0;
    return 1;
}

static PyObject *explain(const overload *o, const misfit *why) {
    const char *schema = o->info.schema;
    const tn_arg_info *arg = why->arg < o->info.n_args ? &o->info.args[why->arg] : NULL;
    switch (why->what) {
    case TOO_MANY:
        return PyUnicode_FromFormat("\n  %s: takes %u positional arguments at most", schema,
                                    why->arg);
    case UNKNOWN_NAME:
        return PyUnicode_FromFormat("\n  %s: has no argument %R", schema, why->object);
    case TWICE:
        return PyUnicode_FromFormat("\n  %s: '%s' was given twice", schema, arg->name);
    case MISSING:
        return PyUnicode_FromFormat("\n  %s: '%s' is missing", schema, arg->name);
    default: {
        if (strcmp(arg->type, "Scalar") == 0 && tnp_is_complex_number(why->object))
            return PyUnicode_FromFormat(
                "\n  %s: '%s' is a real number; a complex one is an element "
                "of a tensor, as of tenon.tensor(%R)",
                schema, arg->name, why->object);
        PyObject *type = PyType_GetName(Py_TYPE(why->object));
        PyObject *text =
            type ? PyUnicode_FromFormat("\n  %s: '%s' is %s%s, not %U", schema, arg->name,
                                        arg->type, arg->optional ? " or None" : "", type)
                 : NULL;
        Py_XDECREF(type);
        return text;
    }
    }
}

static PyObject *refuse(const tnp_packet *packet, const misfit *why) {
    PyObject *text = PyUnicode_FromFormat("tenon.%s: no form takes these arguments:", packet->name);
    for (uint32_t i = 0; text && i < packet->n; i++) {
        PyObject *line = explain(&packet->overloads[i], &why[i]);
        PyObject *longer = line ? PyUnicode_Concat(text, line) : NULL;
        Py_XDECREF(line);
        Py_DECREF(text);
        text = longer;
    }
    if (text)
        PyErr_SetObject(PyExc_TypeError, text);
    Py_XDECREF(text);
    return NULL;
}

/* ---- results ----------------------------------------------------------------------------- */

static PyObject *list_of(tn_cell *ret) {
    tn_tensor **items = ret->v.pointer;
    PyObject *list = PyTuple_New((Py_ssize_t)ret->n);
    for (uint32_t i = 0; i < ret->n; i++) {
        PyObject *one = list ? tnp_wrap(items[i]) : NULL;
        if (!list)
            tn_drop(items[i]);
        else if (!one)
            Py_CLEAR(list);
        else
            PyTuple_SetItem(list, (Py_ssize_t)i, one);
    }
    tn_free_list(ret);
    return list;
}

static PyObject *result(const tn_arg_info *info, tn_cell *ret, PyObject *const *given) {
    if (ret->tag == TN_CELL_TENSORS)
        return list_of(ret);
    if (ret->tag != TN_CELL_TENSOR)
        return Py_NewRef(Py_None);
    if (info->is_written && info->alias >= 0 && tnp_is_tensor(given[info->alias])) {
        tn_drop(ret->v.pointer); /* it is the argument: the same object */
        return Py_NewRef(given[info->alias]);
    }
    return tnp_wrap(ret->v.pointer);
}

/* A type of named tuples, made when it is first needed. */
static PyTypeObject *results_type(overload *o) {
    if (o->results)
        return o->results;
    PyStructSequence_Field fields[MAX_RETS + 1] = {{NULL, NULL}};
    for (uint32_t i = 0; i < o->info.n_rets; i++)
        fields[i] = (PyStructSequence_Field){o->info.rets[i].name, NULL};
    char *name = PyMem_Malloc(strlen(o->info.name) + sizeof "tenon."); /* the type keeps it */
    if (!name)
        return (PyTypeObject *)PyErr_NoMemory();
    strcat(strcpy(name, "tenon."), o->info.name);
    PyStructSequence_Desc desc = {name, "Results of the operator.", fields, (int)o->info.n_rets};
    return o->results = PyStructSequence_NewType(&desc);
}

static PyObject *results(overload *o, tn_cell *rets, PyObject *const *given) {
    if (o->info.n_rets == 1)
        return result(&o->info.rets[0], &rets[0], given);
    if (o->info.n_rets == 0)
        Py_RETURN_NONE;
    bool named = true;
    for (uint32_t i = 0; i < o->info.n_rets; i++)
        named = named && o->info.rets[i].name[0];
    PyTypeObject *type = named ? results_type(o) : NULL;
    PyObject *all = type ? PyStructSequence_New(type) : named ? NULL : PyTuple_New(o->info.n_rets);
    bool failed = !all;
    for (uint32_t i = 0; i < o->info.n_rets; i++) { /* each, so that none is left */
        PyObject *one = result(&o->info.rets[i], &rets[i], given);
        failed = failed || !one;
        if (!all)
            Py_XDECREF(one);
        else if (type)
            PyStructSequence_SetItem(all, (Py_ssize_t)i, one);
        else
            PyTuple_SetItem(all, (Py_ssize_t)i, one);
    }
    if (failed)
        Py_CLEAR(all);
    return all;
}

/* ---- calls ------------------------------------------------------------------------------- */

PyObject *tnp_call(const tnp_packet *packet, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    misfit why[16];
    tnp_arena arena;
    tnp_arena_init(&arena);
    tn_cell cells[MAX_ARGS], rets[MAX_RETS];
    PyObject *given[MAX_ARGS];
    for (uint32_t i = 0; i < packet->n; i++) {
        overload *o = &packet->overloads[i];
        int fits = fit(o, args, n, names, cells, given, &arena, &why[i < 16 ? i : 15]);
        if (fits == 0) {
            tnp_arena_free(&arena);
            continue;
        }
        tn_status status = TN_OK;
        if (fits == 1)
            TNP_WITHOUT_GIL(status = tn_op_call(o->op, cells, o->info.n_args, rets));
        tnp_arena_free(&arena);
        if (fits == -1)
            return NULL;
        return status == TN_OK ? results(o, rets, given) : tnp_raise();
    }
    return refuse(packet, why);
}

PyObject *tnp_call_method(const tnp_packet *packet, PyObject *self, PyObject *const *args,
                          Py_ssize_t n, PyObject *names) {
    Py_ssize_t n_all = n + (names ? PyTuple_Size(names) : 0);
    PyObject *few[16],
        **all = n_all + 1 <= 16 ? few : PyMem_Malloc((size_t)(n_all + 1) * sizeof *all);
    if (!all)
        return PyErr_NoMemory();
    all[0] = self;
    for (Py_ssize_t i = 0; i < n_all; i++)
        all[i + 1] = args[i];
    PyObject *made = tnp_call(packet, all, n + 1, names);
    if (all != few)
        PyMem_Free(all);
    return made;
}

/* ---- functions of the module ------------------------------------------------------------- */

/* What a function of an operator has as `self`: its packet. */
static PyObject *call_function(PyObject *self, PyObject *const *args, Py_ssize_t n,
                               PyObject *names) {
    return tnp_call(PyCapsule_GetPointer(self, "tenon.packet"), args, n, names);
}

static char *doc_of(const tnp_packet *packet) {
    size_t n = 1;
    for (uint32_t i = 0; i < packet->n; i++)
        n += strlen(packet->overloads[i].info.schema) + 1;
    char *doc = PyMem_Malloc(n);
    if (!doc)
        return NULL;
    *doc = 0;
    for (uint32_t i = 0; i < packet->n; i++) {
        strcat(doc, packet->overloads[i].info.schema);
        strcat(doc, i + 1 < packet->n ? "\n" : "");
    }
    return doc;
}

/* The capsule is the function's `self`, and stays as long as that. */
static PyObject *function_of(tnp_packet *packet, PyObject *capsule) {
    char *doc = capsule ? doc_of(packet) : NULL;
    if (!doc)
        return capsule ? PyErr_NoMemory() : NULL;
    packet->function = (PyMethodDef){packet->name, (PyCFunction)(void (*)(void))call_function,
                                     METH_FASTCALL | METH_KEYWORDS, doc};
    return PyCFunction_NewEx(&packet->function, capsule, NULL);
}

static int add_function(PyObject *module, tnp_packet *packet) {
    PyObject *capsule = PyCapsule_New(packet, "tenon.packet", NULL);
    PyObject *function = function_of(packet, capsule);
    int added = function ? PyModule_AddObjectRef(module, packet->name, function) : -1;
    Py_XDECREF(capsule);
    Py_XDECREF(function);
    return added;
}

/* ---- operators that were defined after the import ---------------------------------------- */

static void packet_free(tnp_packet *packet) {
    for (uint32_t i = 0; i < packet->n; i++) {
        overload *o = &packet->overloads[i];
        for (uint32_t k = 0; o->names && k < o->info.n_args; k++)
            Py_XDECREF(o->names[k]);
        PyMem_Free(o->names);
        PyMem_Free((void *)(uintptr_t)o->info.args);
        PyMem_Free((void *)(uintptr_t)o->info.rets);
        Py_XDECREF((PyObject *)o->results);
    }
    PyMem_Free(packet->overloads);
    PyMem_Free((void *)(uintptr_t)packet->name);
    PyMem_Free((void *)(uintptr_t)packet->function.ml_doc);
    PyMem_Free(packet);
}
static void packet_gone(PyObject *capsule) {
    packet_free(PyCapsule_GetPointer(capsule, "tenon.packet"));
}

typedef struct finder {
    tnp_packet *packet;
    bool is_short; /* of memory */
} finder;

static void find(const tn_op_info *info, void *user) {
    finder *f = user;
    if (!f->is_short && is_of(f->packet, info))
        f->is_short = add_overload(f->packet, info) < 0;
}

/* _find_op(name) -> a function of all overloads of that name, or None. A new one for each call: what the library
 * defines may have changed. */
static PyObject *find_op(PyObject *module, PyObject *text) {
    const char *name = tnp_text(text);
    if (!name)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a name is a str");
    finder f = {PyMem_Calloc(1, sizeof *f.packet), false};
    if (f.packet)
        f.packet->name = copy_text(name, strlen(name));
    if (!f.packet || !f.packet->name) {
        PyMem_Free(f.packet);
        return PyErr_NoMemory();
    }
    tn_status status = tn_op_list(find, &f);
    if (status != TN_OK || f.is_short || f.packet->n == 0) {
        packet_free(f.packet);
        if (status != TN_OK)
            return tnp_raise();
        return f.is_short ? PyErr_NoMemory() : Py_NewRef(Py_None);
    }
    PyObject *capsule = PyCapsule_New(f.packet, "tenon.packet", packet_gone);
    if (!capsule)
        packet_free(f.packet);
    PyObject *function = function_of(f.packet, capsule);
    Py_XDECREF(capsule);
    return function;
}

static void add_name(const tn_op_info *info, void *user) {
    PyObject **list = user, *name = *list ? PyUnicode_FromString(info->name) : NULL;
    if (!name || PyList_Append(*list, name) < 0)
        Py_CLEAR(*list);
    Py_XDECREF(name);
}

/* _op_names() -> the full name of every operator that is there now */
static PyObject *op_names(PyObject *module, PyObject *ignored) {
    PyObject *list = PyList_New(0);
    if (list && tn_op_list(add_name, &list) != TN_OK) {
        Py_CLEAR(list);
        tnp_raise();
    }
    return list;
}

static PyObject *op_schemas(PyObject *module, PyObject *ignored) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < n_table; i++)
        for (uint32_t k = 0; list && k < table[i].n; k++) {
            PyObject *schema = PyUnicode_FromString(table[i].overloads[k].info.schema);
            if (!schema || PyList_Append(list, schema) < 0)
                Py_CLEAR(list);
            Py_XDECREF(schema);
        }
    return list;
}

static PyMethodDef functions[] = {
    {"op_schemas", op_schemas, METH_NOARGS, "The schema of every operator of Tenon."},
    {"_find_op", find_op, METH_O, NULL},
    {"_op_names", op_names, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnp_operators_init(PyObject *module) {
    static const char *const names[] = {
#define NAME(name) #name,
        TNP_PACKETS(NAME)
#undef NAME
    };
    int failed = 0;
    if (tn_op_list(add, &failed) != TN_OK)
        return tnp_raise(), -1;
    if (failed) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ImportError, "the table of operators could not be read");
        return -1;
    }
    for (int i = 0; i < TNP_N_PACKETS; i++)
        if (!(tnp_packets[i] = tnp_packet_find(names[i])))
            return -1;
    for (uint32_t i = 0; i < n_table; i++)
        if (add_function(module, &table[i]) < 0)
            return -1;
    return PyModule_AddFunctions(module, functions);
}
