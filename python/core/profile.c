/* The profiler, and graphs of a device's work: what tenon.profile and tenon.Graph are made of. */
#include "python/core/core.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <tenon/profile.h>
#include <time.h>

/* ---- the profiler ------------------------------------------------------------------------ */

/* _profile_start() -> when it began, as time.monotonic_ns has it: ranges are on the scale of the events. That begins
 * where tn_profile_start has forgotten earlier events, which takes long where there are many, and is not told. So they
 * are forgotten before. */
static PyObject *profile_start(PyObject *module, PyObject *ignored) {
    struct timespec now;
    tn_status status = tn_profile_start();
    if (status == TN_OK)
        status = tn_profile_stop();
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (status == TN_OK)
        status = tn_profile_start();
    if (status != TN_OK)
        return tnp_raise();
    return PyLong_FromLongLong(now.tv_sec * 1000000000LL + now.tv_nsec);
}

static PyObject *profile_stop(PyObject *module, PyObject *ignored) {
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_profile_stop());
    return tnp_none_or_raise(status);
}

static const char *how_name(tn_profile_how how) {
    static const char *const names[] = {
        [TN_PROFILE_KERNEL] = "kernel",     [TN_PROFILE_DECOMPOSITION] = "decomposition",
        [TN_PROFILE_FALLBACK] = "fallback", [TN_PROFILE_COMPOSITE] = "composite",
        [TN_PROFILE_VIEW] = "view",         [TN_PROFILE_NOTHING] = "nothing",
    };
    return (size_t)how < sizeof names / sizeof names[0] ? names[how] : "";
}

/* Events are copied without the GIL: what tells them waits for devices, and for threads that wait for it. */
typedef struct event_copy {
    tn_profile_event event;
    char *texts; /* op, args, device, kernel, each with its end; event's point into it */
} event_copy;

typedef struct copies {
    event_copy *list;
    uint64_t n, room;
    bool is_short; /* of memory */
} copies;

static bool copy_texts(event_copy *copy) {
    const char **texts[] = {&copy->event.op, &copy->event.args, &copy->event.device,
                            &copy->event.kernel};
    size_t n = 0;
    for (int i = 0; i < 4; i++)
        n += strlen(*texts[i]) + 1;
    char *to = copy->texts = malloc(n);
    for (int i = 0; to && i < 4; i++) {
        *texts[i] = strcpy(to, *texts[i]);
        to += strlen(to) + 1;
    }
    return to != NULL;
}

static void copy_event(const tn_profile_event *e, void *user) {
    copies *all = user;
    if (all->n == all->room) {
        uint64_t room = all->room ? 2 * all->room : 1024;
        event_copy *more = realloc(all->list, room * sizeof *more);
        all->is_short = all->is_short || !more;
        if (!more)
            return;
        all->list = more;
        all->room = room;
    }
    all->list[all->n].event = *e;
    if (copy_texts(&all->list[all->n]))
        all->n++;
    else
        all->is_short = true;
}

static PyObject *event_object(const tn_profile_event *e) {
    return Py_BuildValue("ssssLLLLLIIIss", e->op, e->args, e->device, e->kernel,
                         (long long)e->start_ns, (long long)e->host_ns, (long long)e->device_ns,
                         (long long)e->device_start_ns, (long long)e->bytes, (unsigned)e->stream,
                         (unsigned)e->thread, (unsigned)e->depth, tn_status_name(e->status),
                         how_name(e->how));
}

/* _profile_events() -> the events */
static PyObject *profile_events(PyObject *module, PyObject *ignored) {
    copies all = {.list = NULL};
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_profile_events(copy_event, &all, NULL));
    PyObject *list = status != TN_OK ? tnp_raise()
                     : all.is_short  ? PyErr_NoMemory()
                                     : PyList_New((Py_ssize_t)all.n);
    for (uint64_t i = 0; i < all.n; i++) {
        PyObject *event = list ? event_object(&all.list[i].event) : NULL;
        if (list && event)
            PyList_SetItem(list, (Py_ssize_t)i, event);
        else
            Py_CLEAR(list);
        free(all.list[i].texts);
    }
    free(all.list);
    return list;
}

static PyObject *profile_table(PyObject *module, PyObject *ignored) {
    char *table;
    TNP_WITHOUT_GIL(table = tn_profile_table());
    if (!table)
        return tnp_raise();
    PyObject *text = PyUnicode_FromString(table);
    tn_string_free(table);
    return text;
}

static PyObject *profile_write_trace(PyObject *module, PyObject *path) {
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_profile_write_trace(PyBytes_AsString(bytes)));
    Py_DECREF(bytes);
    return tnp_none_or_raise(status);
}

PyMethodDef tnp_profile_functions[] = {
    {"_profile_start", profile_start, METH_NOARGS, NULL},
    {"_profile_stop", profile_stop, METH_NOARGS, NULL},
    {"_profile_events", profile_events, METH_NOARGS, NULL},
    {"_profile_table", profile_table, METH_NOARGS, NULL},
    {"_profile_write_trace", profile_write_trace, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- graphs ------------------------------------------------------------------------------ */

typedef struct captured {
    PyObject *function, *result;
} captured;

static tn_status run_captured(void *user) {
    PyGILState_STATE state = PyGILState_Ensure();
    captured *c = user;
    c->result = PyObject_CallFunctionObjArgs(c->function, NULL);
    tn_status status = c->result ? TN_OK : tnp_fail_with_exception("the captured function");
    PyGILState_Release(state);
    return status;
}

static void end_graph(PyObject *capsule) {
    tn_graph *graph = PyCapsule_GetPointer(capsule, "tenon.graph");
    TNP_WITHOUT_GIL(tn_graph_destroy(graph));
}

/* _graph_capture(device or None, callable) -> (graph, what it returned) */
static PyObject *graph_capture(PyObject *module, PyObject *args) {
    PyObject *where;
    captured c = {NULL, NULL};
    tn_device device = tn_no_device();
    if (!PyArg_ParseTuple(args, "OO:capture", &where, &c.function))
        return NULL;
    int found = where == Py_None ? 1 : tnp_device_from(where, &device);
    if (found != 1)
        return found == 0 ? PyErr_Format(PyExc_TypeError,
                                         "device is a tenon.device or its name, not %R", where)
                          : NULL;
    tn_graph *graph = NULL;
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_graph_capture(device, run_captured, &c, &graph));
    if (status != TN_OK)
        tnp_raise();
    PyObject *capsule = graph ? PyCapsule_New(graph, "tenon.graph", end_graph) : NULL;
    if (graph && !capsule)
        tn_graph_destroy(graph);
    if (capsule)
        return Py_BuildValue("NN", capsule, c.result);
    Py_XDECREF(c.result);
    return NULL;
}

static PyObject *graph_replay(PyObject *module, PyObject *capsule) {
    tn_graph *graph = PyCapsule_GetPointer(capsule, "tenon.graph");
    if (!graph)
        return NULL;
    tn_status status;
    TNP_WITHOUT_GIL(status = tn_graph_replay(graph));
    return tnp_none_or_raise(status);
}

static PyObject *graph_device(PyObject *module, PyObject *capsule) {
    tn_graph *graph = PyCapsule_GetPointer(capsule, "tenon.graph");
    return graph ? tnp_device_object(tn_graph_device(graph)) : NULL;
}

static PyObject *is_capturing(PyObject *module, PyObject *ignored) {
    return PyBool_FromLong(tn_is_capturing());
}

PyMethodDef tnp_graph_functions[] = {
    {"_graph_capture", graph_capture, METH_VARARGS, NULL},
    {"_graph_replay", graph_replay, METH_O, NULL},
    {"_graph_device", graph_device, METH_O, NULL},
    {"is_capturing", is_capturing, METH_NOARGS, "Does the calling thread capture a graph?"},
    {NULL, NULL, 0, NULL},
};
