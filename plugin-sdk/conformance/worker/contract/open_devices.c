/* See open_devices.h. */
#include "plugin-sdk/conformance/worker/contract/open_devices.h"

static bool open_another(tc_devices *all, uint32_t index) {
    tc_contract *k = all->k;
    tc_subject *s = &all->at[all->n];
    *s = *k->subject;
    if (index == k->subject->index)
        return ++all->n;
    tc_subject_describe(s, index);
    s->device = NULL;
    s->stream = NULL;
    if (!tc_must(k, TNP_OPEN_DEVICE, s->ops->open(s->self, index, &s->device),
                 "open of another device"))
        return false;
    if (!s->device)
        return TC_BROKEN(k, TNP_OPEN_DEVICE, "open of another device gave NULL");
    all->n++;
    return !s->ops->streams || tc_stream_create(k, s, 0, &s->stream);
}

bool tc_devices_open(tc_contract *k, tc_devices *all) {
    *all = (tc_devices){.k = k};
    bool ok = k->subject->n_devices > 1 || TC_NOT_OFFERED(k, "the plugin has one device");
    for (uint32_t i = 0; ok && i < k->subject->n_devices && i < TC_MOST_DEVICES; i++)
        ok = open_another(all, i);
    return ok;
}

void tc_devices_close(tc_devices *all) {
    for (uint32_t i = 0; i < all->n; i++) {
        tc_subject *s = &all->at[i];
        if (s->device == all->k->subject->device)
            continue;
        tc_release(all->k, s->device);
        s->ops->close(s->device);
    }
    all->n = 0;
}
