/* Visitors, and what a model is taken through them for; see visitor.h. Saving and loading:
 * state.c. */
#include "nn/visitor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------- */

void tn_nn_enter(tn_nn_visitor *v, const char *format, ...) {
    if (!v)
        return;
    /* What is too deep is counted all the same, for its leave. */
    int depth = v->depth++;
    if (depth >= TNN_DEPTH) {
        if (v->status == TN_OK)
            v->status = tn_fail(TN_ERR_INVALID_ARGUMENT,
                                "tn_nn_enter: %s: modules are at most %d deep; leave each of them",
                                v->path, TNN_DEPTH);
        return;
    }
    v->marks[depth] = v->length;
    va_list args;
    va_start(args, format);
    size_t room = sizeof v->path - v->length;
    int n = vsnprintf(v->path + v->length, room, format, args);
    va_end(args);
    if (n == 0)
        return;
    if (n < 0 || (size_t)n + 1 >= room) {
        v->path[v->length] = 0;
        if (v->status == TN_OK)
            v->status = tn_fail(TN_ERR_INVALID_ARGUMENT,
                                "tn_nn_enter: a name in '%s' is too long: all of it has at most %d"
                                " bytes",
                                v->path, TNN_PATH_BYTES);
        return;
    }
    v->length += (size_t)n;
    v->path[v->length++] = '.';
    v->path[v->length] = 0;
}

void tn_nn_leave(tn_nn_visitor *v) {
    if (v && v->depth > 0 && --v->depth < TNN_DEPTH) {
        v->length = v->marks[v->depth];
        v->path[v->length] = 0;
    }
}

void tn_nn_visit_module(tn_nn_visitor *v, tn_nn_module *module) {
    if (!v || !module || v->status != TN_OK)
        return;
    if (v->training)
        module->training = *v->training;
    size_t n = v->length ? v->length - 1 : 0; /* without the last dot */
    size_t skipped = n < sizeof module->name ? 0 : n + 1 - sizeof module->name;
    while (skipped < n && (v->path[skipped] & 0xc0) == 0x80) /* not inside a character */
        skipped++;
    if (n == 0)
        return;
    memcpy(module->name, v->path + skipped, n - skipped);
    module->name[n - skipped] = 0;
}

bool tnn_enter_module(tn_nn_visitor *v, const char *name, tn_nn_module *module) {
    if (v && v->status == TN_OK && (!name || !module))
        v->status =
            tn_fail(TN_ERR_INVALID_ARGUMENT,
                    "the visit of a module in '%s': the module or its name is NULL", v->path);
    if (!v || !name || !module)
        return false;
    tn_nn_enter(v, "%s", name);
    tn_nn_visit_module(v, module);
    return true;
}

/* ---- tensors ----------------------------------------------------------------------------- */

static void visit_tensor(tn_nn_visitor *v, const char *name, tn_tensor **slot, bool is_parameter) {
    if (!v || !slot || v->status != TN_OK || !v->fn || !*slot)
        return;
    tn_nn_enter(v, "%s", name ? name : "");
    if (v->status == TN_OK) {
        if (v->length)
            v->path[v->length - 1] = 0;
        v->status = v->fn(&(tn_nn_entry){v->path, slot, is_parameter}, v->user);
    }
    tn_nn_leave(v);
}

void tn_nn_visit_parameter(tn_nn_visitor *v, const char *name, tn_tensor **slot) {
    visit_tensor(v, name, slot, true);
}

void tn_nn_visit_buffer(tn_nn_visitor *v, const char *name, tn_tensor **slot) {
    visit_tensor(v, name, slot, false);
}

tn_tensor *tn_nn_parameter(tn_tensor *t) {
    return tn_keep(tn_set_requires_grad(t, true));
}

/* ---- models ------------------------------------------------------------------------------ */

static tn_status run(const char *call, void *model, tn_nn_visit_fn visit, tn_nn_visitor *v) {
    if (!model || !visit)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: model or visit is NULL", call);
    visit(model, v);
    if (v->status == TN_OK && v->depth != 0)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: the visit function leaves %d names open, the last in '%s'; end each"
                       " tn_nn_enter with a tn_nn_leave",
                       call, v->depth, v->path);
    return v->status;
}

tn_status tn_nn_each(void *model, tn_nn_visit_fn visit,
                     tn_status (*fn)(const tn_nn_entry *entry, void *user), void *user) {
    tn_nn_visitor v = {.fn = fn, .user = user};
    return run("tn_nn_each", model, visit, &v);
}

tn_status tn_nn_train(void *model, tn_nn_visit_fn visit, bool training) {
    tn_nn_visitor v = {.training = &training};
    return run("tn_nn_train", model, visit, &v);
}

typedef struct list {
    tn_tensor **tensors;
    uint64_t n, capacity;
} list;

/* A tensor that two modules share is listed once. */
static tn_status add_parameter(const tn_nn_entry *entry, void *user) {
    list *l = user;
    if (!entry->is_parameter)
        return TN_OK;
    for (uint64_t i = 0; i < l->n; i++)
        if (l->tensors[i] == *entry->tensor)
            return TN_OK;
    if (l->n == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 16;
        tn_tensor **grown = realloc(l->tensors, l->capacity * sizeof *grown);
        if (!grown)
            return tn_fail(TN_ERR_OUT_OF_MEMORY, "tn_nn_parameters: no memory for the list");
        l->tensors = grown;
    }
    l->tensors[l->n++] = *entry->tensor;
    return TN_OK;
}

tn_tensor **tn_nn_parameters(void *model, tn_nn_visit_fn visit, uint64_t *out_n) {
    if (!out_n) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_nn_parameters: out_n is NULL");
        return NULL;
    }
    *out_n = 0;
    list l = {0};
    tn_nn_visitor v = {.fn = add_parameter, .user = &l};
    tn_status status = run("tn_nn_parameters", model, visit, &v);
    if (status == TN_OK && l.n == 0)
        tn_fail(TN_ERR_INVALID_ARGUMENT,
                "tn_nn_parameters: the model has none; initialise its modules, and visit each of"
                " them");
    if (status != TN_OK || l.n == 0) {
        free(l.tensors);
        return NULL;
    }
    *out_n = l.n;
    return l.tensors;
}

void tn_nn_parameters_free(tn_tensor **parameters) {
    free(parameters);
}

static tn_status drop(const tn_nn_entry *entry, void *user) {
    tn_drop(*entry->tensor);
    *entry->tensor = NULL;
    return TN_OK;
}

tn_nn_visitor tnn_dropping(void) {
    return (tn_nn_visitor){.fn = drop};
}

void tn_nn_finish(void *model, tn_nn_visit_fn visit) {
    tn_nn_visitor v = tnn_dropping();
    run("tn_nn_finish", model, visit, &v);
}
