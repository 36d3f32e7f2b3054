/* Capturing: the thread's state while it does, what each call is asked, and what is refused. */
#include "core/graph/graph.h"
#include "base/alloc.h"
#include "base/error.h"
#include "core/call/cells.h"
#include "core/call/op_info.h"
#include "core/device/open.h"

#include <stdio.h>

TNI_TLS tn_graph *tni_capturing;

bool tn_is_capturing(void) {
    return tni_capturing != NULL;
}

/* ---- failures ---------------------------------------------------------------------------- */

void tni_capture_note_failure(const tni_device *device) {
    tn_graph *g = tni_capturing;
    if (!g || g->failed != TN_OK || g->device != device)
        return;
    g->failed = tn_error_status();
    snprintf(g->message, sizeof g->message, "%s", tn_error_message());
}

tn_status tni_capture_refuse(const char *what, const char *instead) {
    tn_graph *g = tni_capturing;
    tn_status status;
    if (g && g->op)
        status = tni_fail(TN_ERR_STATE, "%s: cannot be captured (%s); %s", g->op, what, instead);
    else
        status = tni_fail(TN_ERR_STATE, "%s: cannot be captured; %s", what, instead);
    if (g)
        tni_capture_note_failure(g->device);
    return status;
}

/* ---- each call --------------------------------------------------------------------------- */

static bool add(tni_graph_storages *s, tn_storage *storage) {
    uint64_t at = ((uintptr_t)storage >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    for (;; at++) {
        tn_storage **slot = &s->slots[at & (s->capacity - 1)];
        if (*slot == storage)
            return false;
        if (!*slot) {
            *slot = storage;
            return true;
        }
    }
}

static bool grow(tni_graph_storages *s) {
    tni_graph_storages more = {.n = s->n, .capacity = s->capacity ? 2 * s->capacity : 64};
    more.slots = tni_calloc(more.capacity, sizeof *more.slots);
    if (!more.slots)
        return false;
    for (uint64_t i = 0; i < s->capacity; i++)
        if (s->slots[i])
            add(&more, s->slots[i]);
    tni_free(s->slots);
    *s = more;
    return true;
}

/* Recorded work will use the tensor: its storage stays. What has memory of the graph's own needs no
 * reference for that. */
static tn_status keep(tn_graph *g, tn_tensor *t) {
    tn_storage *storage = t->storage;
    tni_graph_storages *s = &g->storages;
    if (storage->block && tni_block_stream(storage->block) == g->stream)
        return TN_OK;
    if (2 * s->n >= s->capacity && !grow(s))
        return tni_fail_memory("the tensors that a graph names");
    if (add(s, storage)) {
        tn_storage_keep(storage);
        s->n++;
    }
    return TN_OK;
}

static tn_status check_tensor(tn_graph *g, tn_tensor *t) {
    if (!t || t->device->is_meta || (t->device->is_cpu && t->view.rank == 0))
        return TN_OK;
    if (t->device == g->device)
        return keep(g, t);
    tni_fail(TN_ERR_DEVICE,
             "%s: a tensor on %s cannot be captured, where the work of %s is; move it with "
             "tn_to_device before the capture",
             g->op, t->device->name, g->device->name);
    tni_capture_note_failure(g->device);
    return TN_ERR_DEVICE;
}

static tn_status check_args(tn_graph *g, const tn_op *op, const tn_cell *args) {
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < (uint32_t)op->n_tensor_args + op->n_list_args; i++) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&args[op->tensor_args[i]], &n);
        for (uint32_t j = 0; j < n && status == TN_OK; j++)
            status = check_tensor(g, list[j]);
    }
    return status;
}

tn_status tni_capture_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                              void *user) {
    tn_graph *g = tni_capturing;
    keys = tn_keyset_below(keys, TN_KEY_CAPTURE);
    if (!g)
        return tni_dispatch(op, keys, args, rets);
    const char *outer = g->op;
    if (!outer)
        g->op = tni_info(op) ? tni_info(op)->call : op->name;
    tn_status status = check_args(g, op, args);
    if (status == TN_OK)
        status = tni_dispatch(op, keys, args, rets);
    g->op = outer;
    return status;
}

/* ---- the thread's state ------------------------------------------------------------------ */

static tn_status switch_to(tn_graph *g, tn_stream *stream, tn_graph *capturing,
                           tn_thread_keys keys) {
    tni_capturing = NULL; /* nobody else changes the stream meanwhile */
    tn_status status = tn_set_current_stream(stream);
    if (status == TN_OK) {
        tni_capturing = capturing;
        tni_thread_keys = keys;
    } else {
        tni_capturing = g;
    }
    return status;
}

tn_status tni_capture_leave(tni_capture_pause *pause) {
    tn_graph *g = tni_capturing;
    *pause = (tni_capture_pause){.graph = g, .keys = tni_thread_keys};
    if (!g)
        return TN_OK;
    tn_thread_keys keys = tni_thread_keys;
    keys.included &= ~TN_KEY_BIT(TN_KEY_CAPTURE);
    return switch_to(g, g->last, NULL, keys);
}

/* The table of streams has room for what was there before: it cannot fail. */
void tni_capture_enter(const tni_capture_pause *pause) {
    if (pause->graph)
        switch_to(pause->graph, pause->graph->stream, pause->graph, pause->keys);
}

/* ---- capture ----------------------------------------------------------------------------- */

static const tn_ext_capture *extension_of(tni_device *d) {
    if (!d->streams)
        return tni_fail_null(TN_ERR_UNSUPPORTED,
                             "tn_graph_capture: %s computes at once and has no queue whose work "
                             "could be recorded; call the function itself each time",
                             d->name);
    const tn_ext_capture *ext = tni_device_extension(d, TN_EXT_CAPTURE);
    if (ext && TN_HAS(ext, tn_ext_capture, destroy) && ext->begin && ext->end && ext->abandon &&
        ext->launch && ext->destroy)
        return ext;
    return tni_fail_null(TN_ERR_UNSUPPORTED,
                         "tn_graph_capture: %s cannot capture: its plugin (%s) does not offer "
                         "tenon.capture/1; call the function itself each time",
                         d->name, d->plugin->table->id);
}

/* Between begin and end: the status that fn, or what it called, ended with. */
static tn_status record(tn_graph *g, tn_status (*fn)(void *user), void *user) {
    tn_thread_keys before = tni_thread_keys, keys = before;
    keys.included |= TN_KEY_BIT(TN_KEY_CAPTURE);
    TNI_TRY(switch_to(NULL, g->stream, g, keys));
    tn_error_clear();
    tn_status status = fn(user);
    switch_to(g, g->last, NULL, before);
    if (g->failed != TN_OK)
        return tni_fail(g->failed, "%s", g->message);
    if (status != TN_OK && tn_error_status() == TN_OK)
        tni_fail(status, "tn_graph_capture: the function returned %s, without an error",
                 tn_status_name(status));
    return status;
}

static tn_status capture(tn_graph *g, tn_status (*fn)(void *user), void *user) {
    tni_device *d = g->device;
    tni_error_plugin(TN_OK, NULL);
    tn_status status = g->ext->begin(g->stream->handle);
    if (status != TN_OK)
        return tni_device_fail(d, status, "beginning a capture");
    atomic_store(&g->stream->captures, true);
    status = record(g, fn, user);
    if (status != TN_OK) {
        g->ext->abandon(g->stream->handle);
    } else {
        tni_error_plugin(TN_OK, NULL);
        status = g->ext->end(g->stream->handle, &g->handle);
        if (status == TN_OK && !g->handle)
            status = TN_ERR_INTERNAL;
        if (status != TN_OK)
            tni_device_fail(d, status, "ending a capture");
    }
    atomic_store(&g->stream->captures, false);
    return status;
}

tn_status tn_graph_capture(tn_device device, tn_status (*fn)(void *user), void *user,
                           tn_graph **out) {
    if (!fn || !out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_graph_capture: %s is NULL", fn ? "out" : "fn");
    *out = NULL;
    if (tni_capturing)
        return tni_capture_refuse("tn_graph_capture", "capture one function that calls the others");
    tni_device *d = tni_device_get(device.type ? device : tn_default_device());
    const tn_ext_capture *ext = d && tni_device_check(d) == TN_OK ? extension_of(d) : NULL;
    if (!ext)
        return tn_error_status();
    tn_graph *g = tni_graph_create(d, ext);
    if (!g)
        return tn_error_status();
    tn_status status = capture(g, fn, user);
    if (status == TN_OK)
        *out = g;
    else
        tn_graph_destroy(g);
    return status;
}
