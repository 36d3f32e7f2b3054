/* See log_header.h. */
#include "plugin-sdk/conformance/runner/run/log_header.h"

#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The first model name of /proc/cpuinfo; the machine's kind where that has none. */
static void find_cpu(char out[256], const char *machine) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    snprintf(out, 256, "%s", machine);
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name%*[ \t]:%*[ \t]%255[^\n]", out) == 1)
            break;
    if (file)
        fclose(file);
}

/* The plugin's file, and what the worker says of it. */
static json_t *make_plugin(const tc_log_header *h) {
    static const char *const members[] = {"id",     "version",  "type",      "name",    "device",
                                          "driver", "firmware", "n_devices", "records", "error"};
    json_t *plugin = json_pack("{s:o, s:s}", "path", tc_json_text(h->plugin), "sha256", h->sha256);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(h->described, members[i]);
        if (value)
            json_object_set(plugin, members[i], value);
    }
    if (!h->described && h->silence)
        json_object_set_new(plugin, "error", tc_json_text(h->silence));
    return plugin;
}

static json_t *make_host(void) {
    struct utsname host = {0};
    char cpu[256];
    uname(&host);
    find_cpu(cpu, host.machine);
    return json_pack("{s:o, s:o, s:o, s:o, s:I}", "system", tc_json_text(host.sysname), "kernel",
                     tc_json_text(host.release), "machine", tc_json_text(host.machine), "cpu",
                     tc_json_text(cpu), "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN));
}

json_t *tc_log_header_make(const tc_log_header *h) {
    char date[32], sets[TC_SETS_NAME];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *options = json_array(), *lists = json_array();
    for (int i = 0; i < h->n_options; i++)
        json_array_append_new(options, tc_json_text(h->options[i]));
    for (size_t i = 0; i < h->n_lists; i++) {
        char sum[TC_SHA256_HEX] = "";
        SHA256File(h->lists[i], sum);
        json_array_append_new(
            lists, json_pack("{s:o, s:s}", "path", tc_json_text(h->lists[i]), "sha256", sum));
    }
    char shard[32] = "";
    if (h->n_shards)
        snprintf(shard, sizeof shard, "%u/%u", h->shard, h->n_shards);
    json_t *head = json_pack("{s:s, s:i, s:s, s:s, s:o, s:I, s:s, s:o, s:o, s:o, s:I, s:b}",
                             "record", "head", "log", 1, "suite", TENON_VERSION, "time", date,
                             "plugin", make_plugin(h), "device", (json_int_t)h->device, "set",
                             tc_sets_name(h->sets, sets), "host", make_host(), "options", options,
                             "lists", lists, "planned", (json_int_t)h->n_planned, "part", h->part);
    if (head && *shard)
        json_object_set_new(head, "shard", json_string(shard));
    if (head && h->devices)
        json_object_set(head, "devices", h->devices);
    return head;
}
