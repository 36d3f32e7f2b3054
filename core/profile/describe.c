/* Calls as text: what the trace, the table and the log of calls say of one. */
#include "core/profile/profile.h"
#include "core/tensor/tensor.h"

#include <stdio.h>
#include <string.h>

typedef struct text {
    char *at;
    size_t room;
    bool full;
} text;

static void add(text *t, const char *words) {
    size_t n = strlen(words);
    if (t->full || n + 4 > t->room) { /* keeps room for "..." */
        if (!t->full && t->room >= 4)
            memcpy(t->at, "...", 4);
        t->full = true;
        return;
    }
    memcpy(t->at, words, n + 1);
    t->at += n;
    t->room -= n;
}

static void add_tensor(text *t, const tn_tensor *tensor, bool first) {
    add(t, first ? "" : ", ");
    add(t, tn_dtype_name(tensor->view.dtype));
    add(t, TNI_SHAPE_OF(tensor));
}

char *tni_describe_args(const tn_op *op, const tn_cell *args, char *out, size_t room) {
    text t = {out, room, false};
    bool first = true;
    out[0] = '\0';
    for (uint32_t i = 0; i < op->schema->n_args && !t.full; i++) {
        const tn_cell *a = &args[i];
        if (a->tag == TN_CELL_TENSOR) {
            add_tensor(&t, a->v.pointer, first);
            first = false;
        } else if (a->tag == TN_CELL_TENSORS) {
            tn_tensor *const *list = a->v.pointer;
            for (uint32_t j = 0; j < a->n && !t.full; j++) {
                if (!list[j])
                    continue;
                add_tensor(&t, list[j], first);
                first = false;
            }
        }
    }
    return out;
}

tni_device *tni_call_place(const tn_op *op, const tn_cell *args) {
    tni_device *scalar = NULL;
    for (uint32_t i = 0; i < op->schema->n_args; i++) {
        const tn_cell *a = &args[i];
        const tn_tensor *t = NULL;
        if (a->tag == TN_CELL_TENSOR)
            t = a->v.pointer;
        for (uint32_t j = 0; a->tag == TN_CELL_TENSORS && !t && j < a->n; j++)
            t = ((tn_tensor *const *)a->v.pointer)[j];
        if (!t)
            continue;
        if (!(t->device->is_cpu && t->view.rank == 0))
            return t->device;
        scalar = t->device;
    }
    if (scalar || op->device_arg < 0 || args[op->device_arg].tag != TN_CELL_I64)
        return scalar;
    for (uint32_t i = 0; i < TNI_MAX_DEVICES; i++) {
        tni_device *d = tni_device_at(i);
        if (!d)
            break;
        if (d->backends == tni_device_cell_backends(&args[op->device_arg]))
            return d;
    }
    return NULL;
}

const char *tni_how_name(tn_profile_how how) {
    static const char *const names[] = {"kernel",    "decomposition", "fallback",
                                        "composite", "view",          "nothing"};
    return names[how];
}
