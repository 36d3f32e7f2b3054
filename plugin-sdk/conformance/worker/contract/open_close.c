/* Opening and closing devices: all at once, without use, and each call from a thread of its own. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/properties.h"

#include <pthread.h>
#include <string.h>

enum { MOST = 16 };

/* The same as before, whatever is open. */
static void check_count(tc_contract *k, tc_subject *s, uint32_t n, const char *when) {
    uint32_t now;
    if (tc_lifecycle_count(k, s, &now) && now != n)
        TC_BROKEN(k, TNP_COUNT_DEVICES, "count said %u, and %u %s", n, now, when);
}

/* Every device at once; each works while the others are open, and after some were closed. */
static void life_devices(tc_contract *k) {
    tc_subject s, all[MOST];
    uint32_t n = 0, opened = 0;
    if (!tc_lifecycle_load(k, &s) || !tc_lifecycle_init(k, &s, k->options->plugin))
        return;
    if (tc_lifecycle_count(k, &s, &n))
        for (; opened < n && opened < MOST && tc_lifecycle_open_device(k, &s, opened, &all[opened]);
             opened++)
            if (s.ops->streams)
                tc_must(k, TNP_STREAM_CREATE,
                        s.ops->streams->create(all[opened].device, 0, &all[opened].stream),
                        "stream create");
    if (!tc_failed(k))
        check_count(k, &s, n, "while devices are open");
    for (uint32_t i = 0; i < opened; i++)
        for (uint32_t j = 0; j < i; j++)
            if (all[i].device == all[j].device)
                TC_BROKEN(k, TNP_OPEN_DEVICE, "devices %u and %u are the same handle", j, i);
    for (uint32_t i = 0; i < opened && !tc_failed(k); i++)
        tc_lifecycle_probe(k, &all[i], TC_WORK_SMALL, TNP_OPEN_DEVICE,
                           "a device beside other open ones", NULL);
    for (uint32_t i = 0; i < opened; i++) {
        if (all[i].stream)
            s.ops->streams->destroy(all[i].stream);
        s.ops->close(all[i].device);
        for (uint32_t j = i + 1; j < opened && !tc_failed(k); j++)
            tc_lifecycle_probe(k, &all[j], TC_WORK_SMALL, TNP_OPEN_DEVICE,
                               "a device after another was closed", NULL);
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after all devices were opened and closed");
}

/* Closed without use, again and again while the plugin goes on. */
static void life_unused(tc_contract *k) {
    tc_subject s, one;
    uint32_t n = 0;
    if (!tc_lifecycle_load(k, &s) || !tc_lifecycle_init(k, &s, k->options->plugin))
        return;
    if (tc_lifecycle_count(k, &s, &n))
        for (uint32_t i = 0; i < n && !tc_failed(k); i++) {
            int64_t blocks = 0;
            tc_census early = {0};
            tc_growth space = {0};
            for (int times = 0; times < 10 && !tc_failed(k); times++) {
                if (!tc_lifecycle_open_device(k, &s, i, &one))
                    break;
                check_count(k, &s, n, "while a device is open");
                s.ops->close(one.device);
                tc_growth_note(&space, times, 3, 2, tc_census_take(0).virtual_bytes);
                if (times == 4) {
                    blocks = tc_host_blocks();
                    early = tc_census_take(0);
                }
            }
            tc_census now = tc_census_take(early.threads);
            if (tc_host_blocks() > blocks)
                TC_BROKEN(k, TNP_CLOSE_RETURNS_ALL,
                          "open and close of device %u leave host memory behind; close frees what "
                          "open took",
                          i);
            if (now.descriptors > early.descriptors || now.threads > early.threads ||
                now.mappings > early.mappings + 2)
                TC_BROKEN(k, TNP_CLOSE_RETURNS_ALL,
                          "open and close of device %u leave a descriptor, a mapping or a "
                          "thread behind",
                          i);
            if (tc_growth_is_loss(&space, 2))
                TC_BROKEN(k, TNP_CLOSE_RETURNS_ALL,
                          "open and close of device %u leave %lld bytes of address space mapped", i,
                          (long long)space.least / 2);
            check_count(k, &s, n, "after a device was opened and closed");
        }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after devices were opened and closed without use");
}

/* Before open, while open and after close; the name stays where it was. */
static void life_properties(tc_contract *k) {
    tc_subject s, one;
    uint32_t n = 0;
    if (!tc_lifecycle_load(k, &s) || !tc_lifecycle_init(k, &s, k->options->plugin))
        return;
    if (tc_lifecycle_count(k, &s, &n))
        for (uint32_t i = 0; i < n && !tc_failed(k); i++) {
            tn_cell name = {0};
            char text[256] = "", open_text[256] = "";
            tc_check_properties(k, &s, i);
            uint64_t before = tc_properties_sum(&s, i);
            bool named = s.ops->property(s.self, i, TN_PROP_NAME, &name) == TN_OK &&
                         name.tag == TN_CELL_STRING && name.v.string;
            if (named)
                snprintf(text, sizeof text, "%s", name.v.string);
            if (!tc_lifecycle_open_device(k, &s, i, &one))
                break;
            tc_check_properties(k, &s, i);
            if (tc_properties_sum(&s, i) != before)
                TC_BROKEN(k, TNP_PROPERTY_STABLE, "device %u has other properties once it is open",
                          i);
            tn_cell open_name = {0};
            if (named && s.ops->property(s.self, i, TN_PROP_NAME, &open_name) == TN_OK &&
                open_name.v.string)
                snprintf(open_text, sizeof open_text, "%s", open_name.v.string);
            s.ops->close(one.device);
            if (tc_properties_sum(&s, i) != before)
                TC_BROKEN(k, TNP_PROPERTY_STABLE,
                          "device %u has other properties once it was closed", i);
            if (open_text[0] && strncmp(open_text, open_name.v.string, sizeof open_text - 1) != 0)
                TC_BROKEN(k, TNP_PROPERTY_RANGE,
                          "the name that device %u told while it was open is not valid any more",
                          i);
            if (named && strncmp(text, name.v.string, sizeof text - 1) != 0)
                TC_BROKEN(k, TNP_PROPERTY_RANGE,
                          "the name of device %u was not valid until shutdown", i);
        }
    tc_subject_close(&s);
}

/* ---- other threads ----------------------------------------------------------------------- */

typedef struct errand {
    tc_contract *k;
    tc_subject s, one; /* the plugin, and its device once that is open */
} errand;

static void *errand_init(void *context) {
    errand *e = context;
    tc_lifecycle_init(e->k, &e->s, e->k->options->plugin);
    return NULL;
}

static void *errand_count(void *context) {
    errand *e = context;
    uint32_t n;
    tc_lifecycle_count(e->k, &e->s, &n);
    return NULL;
}

static void *errand_open(void *context) {
    errand *e = context;
    tc_contract *k = e->k;
    if (tc_lifecycle_open_device(k, &e->s, k->options->device, &e->one) && e->s.ops->streams)
        tc_must(k, TNP_STREAM_CREATE, e->s.ops->streams->create(e->one.device, 0, &e->one.stream),
                "stream create");
    return NULL;
}

static void *errand_work(void *context) {
    errand *e = context;
    if (e->one.device)
        tc_lifecycle_probe(e->k, &e->one, TC_WORK_WIDE, TNP_THREADS_NO_AFFINITY,
                           "from another thread than init and open", NULL);
    return NULL;
}

static void *errand_close(void *context) {
    errand *e = context;
    if (e->one.stream)
        e->s.ops->streams->destroy(e->one.stream);
    if (e->one.device)
        e->s.ops->close(e->one.device);
    return NULL;
}

static void *errand_shutdown(void *context) {
    tc_subject_close(&((errand *)context)->s);
    return NULL;
}

/* Each call comes from a thread of its own, which is gone when the next one comes. */
static void life_threads(tc_contract *k) {
    static void *(*const errands[])(void *) = {errand_init,    errand_count, errand_open,
                                               errand_work,    errand_work,  errand_close,
                                               errand_shutdown};
    for (int times = 0; times < 3 && !tc_failed(k); times++) {
        errand e = {.k = k};
        if (!tc_lifecycle_load(k, &e.s))
            return;
        for (size_t i = 0; i < sizeof errands / sizeof *errands; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, errands[i], &e) == 0)
                pthread_join(thread, NULL);
            else
                TC_CASE_ERROR(k->out, "a thread cannot be started");
            if (!e.s.self)
                break;
        }
        if (k->out->status == TC_FAIL) { /* in one thread other cases do the same */
            tc_verdict broken = *k->out;
            *k->out = (tc_verdict){0};
            TC_BROKEN(k, TNP_THREADS_NO_AFFINITY, "with a thread of its own for each call: %.900s",
                      broken.message);
        }
        tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                              "after a life with a thread for each call");
    }
}

const tc_contract_row tc_open_rows[] = {
    {"life-devices", "", TC_STANDARD, life_devices},
    {"life-unused", "", TC_SMOKE, life_unused},
    {"life-properties", "", TC_STANDARD, life_properties},
    {"life-threads", "", TC_SMOKE, life_threads},
    {0},
};
