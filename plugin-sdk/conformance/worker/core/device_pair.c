/* See device_pair.h. */
#define _GNU_SOURCE /* setenv */
#include "plugin-sdk/conformance/worker/core/device_pair.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool open;
    bool set_up;
    tc_mode mode;
    uint32_t device;
    char subject_path[PATH_MAX], cpu_path[PATH_MAX];
    tc_device_pair pair;
} state;

/* ---- who is who -------------------------------------------------------------------------- */

static bool is_type(const char *device_type, const char *type) {
    size_t n = strlen(type);
    return strncmp(device_type, type, n) == 0 && (!device_type[n] || device_type[n] == '@');
}

static void note_cpu(const tn_plugin_info *info, void *user) {
    if (is_type(info->device_type, "cpu") && strcmp(info->state, "ready") == 0 &&
        !state.cpu_path[0])
        snprintf(state.cpu_path, sizeof state.cpu_path, "%s", info->path);
}

/* Where the reference is, by libtenon's own search. */
static bool find_cpu(tc_verdict *out) {
    if (tn_device_count("cpu") > 0)
        tn_plugin_list(false, note_cpu, NULL);
    if (!state.cpu_path[0])
        TC_CASE_ERROR(out,
                      "the reference CPU plugin is not found: %s; TENON_PLUGIN_PATH may name its "
                      "folder",
                      tn_error_message());
    tn_error_clear();
    tn_shutdown();
    return state.cpu_path[0] != '\0';
}

typedef struct subject_facts {
    char type[128], id[128], state[32], reason[512];
} subject_facts;

static void note_subject(const tn_plugin_info *info, void *user) {
    subject_facts *facts = user;
    if (strcmp(info->path, state.subject_path) != 0)
        return;
    snprintf(facts->type, sizeof facts->type, "%s", info->device_type);
    snprintf(facts->id, sizeof facts->id, "%s", info->id);
    snprintf(facts->state, sizeof facts->state, "%s", info->state);
    snprintf(facts->reason, sizeof facts->reason, "%s", info->reason);
}

static void name_plugins(bool alone) {
    static char list[2 * PATH_MAX + 2];
    if (alone || strcmp(state.subject_path, state.cpu_path) == 0)
        snprintf(list, sizeof list, "%s", state.subject_path);
    else
        snprintf(list, sizeof list, "%s:%s", state.subject_path, state.cpu_path);
    setenv("TENON_PLUGINS", list, 1);
}

/* Settles which plugins the process loads. Libtenon is shut down before and after. */
static bool set_up(const tc_options *options, subject_facts *facts, tc_verdict *out) {
    if (!realpath(options->plugin, state.subject_path))
        return TC_CASE_ERROR(out, "%s: no such plugin", options->plugin);
    if (!find_cpu(out))
        return false;
    setenv("TENON_FALLBACK", "error", 1);
    unsetenv("TENON_KERNELS_DISABLE");
    name_plugins(false);
    tn_plugin_list(true, note_subject, facts);
    if (is_type(facts->type, "cpu")) {
        tn_shutdown();
        name_plugins(true);
        tn_plugin_list(true, note_subject, facts);
    }
    tn_error_clear();
    if (strcmp(facts->state, "ready") != 0) {
        tc_verdict_set(out, TC_FAIL, TNP_NONE, TC_CANNOT_OPEN ": the plugin is %s: %s",
                       facts->state[0] ? facts->state : "not found", facts->reason);
        tn_shutdown();
        return false;
    }
    snprintf(state.pair.id, sizeof state.pair.id, "%s", facts->id);
    snprintf(state.pair.name, sizeof state.pair.name, "%.127s:%u", facts->type, options->device);
    tn_shutdown();
    state.set_up = true;
    return true;
}

/* ---- open and close ---------------------------------------------------------------------- */

void tc_device_pair_close(void) {
    if (!state.open)
        return;
    tn_scope_close(0);
    tn_error_clear();
    tn_shutdown();
    state.open = false;
}

const tc_device_pair *tc_device_pair_open(const tc_options *options, tc_mode mode,
                                          tc_verdict *out) {
    if (state.open && state.mode == mode && state.device == options->device)
        return &state.pair;
    tc_device_pair_close();
    subject_facts facts = {.type = ""};
    if (!(state.set_up && state.device == options->device) && !set_up(options, &facts, out))
        return NULL;
    state.device = options->device;
    char globs[160];
    snprintf(globs, sizeof globs, "%s/*", state.pair.id);
    if (mode == TC_MODE_DECOMPOSED)
        setenv("TENON_KERNELS_DISABLE", globs, 1);
    else
        unsetenv("TENON_KERNELS_DISABLE");
    state.mode = mode;
    state.open = true;
    state.pair.subject = tn_device_parse(state.pair.name);
    if (!state.pair.subject.type) {
        tc_verdict_set(out, TC_FAIL, TNP_NONE, TC_CANNOT_OPEN ": %s: %s", state.pair.name,
                       tn_error_message());
        tc_device_pair_close();
        return NULL;
    }
    state.pair.cpu = tn_device_parse("cpu:0");
    if (!state.pair.cpu.type) {
        TC_CASE_ERROR(out, "the reference does not open: %s", tn_error_message());
        tc_device_pair_close();
        return NULL;
    }
    return &state.pair;
}

bool tc_device_pair_is_usable(const tc_device_pair *pair) {
    TN_SCOPE;
    tn_error_clear();
    float a[2] = {1, 2}, b[2] = {3, 5}, sum[2] = {0, 0};
    tn_tensor *x = tn_from_data(a, TN_SHAPE(2), TN_F32, pair->subject);
    tn_tensor *y = tn_from_data(b, TN_SHAPE(2), TN_F32, pair->subject);
    bool right = tn_to_host(tn_add(x, y), sum, sizeof sum) == TN_OK && sum[0] == 4 && sum[1] == 7;
    if (tn_error_status() == TN_ERR_UNSUPPORTED) { /* it never added */
        tn_error_clear();
        right = tn_to_host(y, sum, sizeof sum) == TN_OK && sum[0] == 3 && sum[1] == 5;
    }
    tn_error_clear();
    return right;
}
