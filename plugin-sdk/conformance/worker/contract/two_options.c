/* Two hosts of one process that answer an option differently: what each sees of its instance is what it
 * sees when it is alone. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/properties.h"

#include <stdio.h>
#include <string.h>
#include <tenon/ext/threads.h>

enum { MAX_DEVICES = 4, N_ANSWERS = 3 + 2 * MAX_DEVICES };

/* What init asks for, and what one host answers to one of these. One thread. */
static struct {
    tc_asked asked;
    const tn_host *odd;
    const char *name, *value;
} options;

static const char *own_option(const tn_host *host, const char *name) {
    if (name)
        tc_asked_index(&options.asked, name);
    return name && host == options.odd && strcmp(name, options.name) == 0
               ? options.value
               : tc_host_table()->option(host, name);
}

/* A host, its instance, and what that answers where nothing else is. */
typedef struct tenant {
    tn_host host;
    tc_subject s;
    uint64_t alone[N_ANSWERS];
} tenant;

/* False where init refuses, or nothing can be loaded. */
static bool move_in(tc_contract *k, tenant *t) {
    if (!tc_lifecycle_load(k, &t->s))
        return false;
    t->host = *tc_host_table();
    t->host.option = own_option;
    t->s.host = &t->host;
    tc_host_begin(&t->host);
    if (t->s.plugin->init(&t->host, k->options->plugin, &t->s.self) == TN_OK)
        return true;
    t->s.self = NULL;
    tc_host_end(&t->host);
    return false;
}

static uint64_t total_bytes(tc_subject *s, uint32_t index) {
    tn_memory_info info = {.struct_size = sizeof info};
    tn_device_impl *device = NULL;
    if (s->ops->open(s->self, index, &device) != TN_OK)
        return 0;
    s->memory = s->ops->memory;
    if (!tc_has_info(s) || s->memory->info(device, TN_SPACE_DEVICE, &info) != TN_OK)
        info.total_bytes = 0;
    s->ops->close(device);
    return info.total_bytes;
}

static void look(tenant *t, uint64_t out[N_ANSWERS]) {
    uint32_t n = 0;
    memset(out, 0, N_ANSWERS * sizeof *out);
    out[0] = (uint64_t)t->s.ops->count(t->s.self, &n);
    n = out[0] == TN_OK ? n : 0;
    out[1] = n;
    const tn_ext_threads *threads = tc_subject_extension(&t->s, TN_EXT_THREADS);
    out[2] = threads ? threads->get_num_threads(t->s.self) : 0;
    for (uint32_t i = 0; i < n && i < MAX_DEVICES; i++) {
        out[3 + 2 * i] = tc_properties_sum(&t->s, i);
        out[4 + 2 * i] = total_bytes(&t->s, i);
    }
}

/* A life with nothing beside it. */
static bool look_alone(tc_contract *k, tenant *t) {
    if (!move_in(k, t))
        return false;
    look(t, t->alone);
    tc_subject_close(&t->s);
    return true;
}

/* "the properties of device 1" */
static void name_answer(int i, char out[40]) {
    static const char *const first[] = {"the status of count", "the number of devices",
                                        "get_num_threads"};
    if (i < 3)
        snprintf(out, 40, "%s", first[i]);
    else
        snprintf(out, 40, "the %s of device %d", i % 2 ? "properties" : "memory", (i - 3) / 2);
}

static void compare(tc_contract *k, tenant *t, bool is_odd, const char *when) {
    uint64_t now[N_ANSWERS];
    char what[40];
    look(t, now);
    for (int i = 0; i < N_ANSWERS; i++)
        if (now[i] != t->alone[i]) {
            name_answer(i, what);
            TC_BROKEN(
                k, TNP_INIT_TWICE,
                "one of two hosts answers option %s with '%s'. %s, %s of the %s is not what it"
                " is alone (0x%llx in place of 0x%llx): instances share no options",
                options.name, options.value, when, what, is_odd ? "one" : "other",
                (unsigned long long)now[i], (unsigned long long)t->alone[i]);
            return;
        }
}

/* Both at once, `first` before the other, which outlives it. */
static void beside(tc_contract *k, tenant *first, tenant *second, const tenant *odd) {
    if (!move_in(k, first))
        return;
    if (move_in(k, second)) {
        compare(k, first, first == odd, "With both there");
        compare(k, second, second == odd, "With both there");
        compare(k, first, first == odd, "After the other was looked at");
        tc_subject_close(&first->s);
        compare(k, second, second == odd, "After the other's shutdown");
        tc_subject_close(&second->s);
    } else {
        tc_subject_close(&first->s);
    }
}

/* The first value that can be seen in what the device says. */
static bool find_value(tc_contract *k, const tenant *usual, tenant *odd) {
    static const char *const values[] = {"1", "2", "3", "0", "1000000", "1g", "off"};
    for (size_t v = 0; v < sizeof values / sizeof *values && !tc_failed(k); v++) {
        options.value = values[v];
        if (look_alone(k, odd) && memcmp(odd->alone, usual->alone, sizeof odd->alone) != 0)
            return true;
    }
    return false;
}

static void try_options(tc_contract *k) {
    static tenant usual, odd;
    uint64_t before[N_ANSWERS];
    int seen = 0;
    memset(&options, 0, sizeof options);
    if (!look_alone(k, &usual))
        return;
    memcpy(before, usual.alone, sizeof before);
    if (!look_alone(k, &usual) || memcmp(before, usual.alone, sizeof before) != 0) {
        TC_NOT_OFFERED(k, "what the device says is another thing in each life");
        return;
    }
    options.odd = &odd.host;
    for (int i = 0; i < options.asked.n && !tc_failed(k); i++) {
        options.name = options.asked.names[i];
        if (!find_value(k, &usual, &odd))
            continue;
        seen++;
        beside(k, &usual, &odd, &odd);
        if (!tc_failed(k))
            beside(k, &odd, &usual, &odd);
    }
    if (seen == 0)
        TC_NOT_OFFERED(k, "no option changes what the device says of itself");
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after two hosts with options of their own");
}

static void two_options(tc_contract *k) {
    tc_in_own_folder(k, try_options);
}

const tc_contract_row tc_two_options_rows[] = {
    {"life-two-options", "", TC_STANDARD, two_options},
    {0},
};
