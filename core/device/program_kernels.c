/* Kernels that programs give to the devices of a type.
 *
 * A kernel is in the set of every open device of its type, and a device that is opened gets all of
 * its type. One lock guards opening and the list, so that no device misses a kernel. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/device/open.h"

#include <string.h>

static tni_program_kernel *first;

static bool is_for(const tni_program_kernel *k, const tni_device *d) {
    return !d->is_meta && strcmp(k->device_type, tni_backend_name(d->backend)) == 0;
}

static tn_status give(tni_program_kernel *k, tni_device *d) {
    if (!is_for(k, d))
        return TN_OK;
    return tni_kernel_set_add(&d->kernels, k->op, &k->record, k->outputs, k->origin,
                              &k->ids[d->ordinal]);
}

static void take_back(tni_program_kernel *k) {
    tni_device *d;
    for (uint32_t i = 0; (d = tni_device_at(i)); i++) {
        if (is_for(k, d))
            tni_kernel_set_remove(&d->kernels, k->ids[i]);
    }
}

static tni_program_kernel *make(const char *device_type, const char *origin) {
    size_t n_type = strlen(device_type) + 1, n_origin = strlen(origin) + 1;
    tni_program_kernel *k = tni_calloc(1, sizeof *k + n_type + n_origin);
    if (!k)
        return tni_fail_memory_null("a kernel's registration");
    memcpy(k->device_type, device_type, n_type);
    k->origin = memcpy(k->device_type + n_type, origin, n_origin);
    return k;
}

tni_program_kernel *tni_program_kernel_add(const char *device_type, const tni_kernel_op *op,
                                           const tn_kernel *record, tni_outputs_fn outputs,
                                           const char *origin) {
    tni_program_kernel *k = make(device_type, origin);
    if (!k)
        return NULL;
    k->op = op;
    k->record = *record;
    k->outputs = outputs;
    tn_status status = tni_devices_enter();
    if (status != TN_OK) {
        tni_free(k);
        return NULL;
    }
    tni_device *d;
    for (uint32_t i = 0; status == TN_OK && (d = tni_device_at(i)); i++)
        status = give(k, d);
    if (status == TN_OK) {
        tni_program_kernel **end = &first;
        while (*end)
            end = &(*end)->next;
        *end = k;
    } else {
        take_back(k);
        tni_free(k);
        k = NULL;
    }
    tni_lock_give(&tni_devices_lock);
    return k;
}

void tni_program_kernel_remove(tni_program_kernel *k) {
    bool inside = tni_lock_is_mine(&tni_devices_lock); /* in a log function: the list is whole */
    if (!inside)
        tni_lock_take(&tni_devices_lock);
    tni_program_kernel **link = &first;
    while (*link != k)
        link = &(*link)->next;
    *link = k->next;
    take_back(k);
    if (!inside)
        tni_lock_give(&tni_devices_lock);
    tni_free(k);
}

tn_status tni_program_kernels_attach(tni_device *d) {
    tn_status status = TN_OK;
    for (tni_program_kernel *k = first; k && status == TN_OK; k = k->next)
        status = give(k, d);
    return status;
}

void tni_program_kernels_finish(void) {
    for (tni_program_kernel *next; first; first = next) {
        next = first->next;
        tni_free(first);
    }
}
