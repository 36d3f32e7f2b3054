/* See log_header.h. */
#include "plugin-sdk/conformance/runner/run/log_header.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "plugin-sdk/conformance/json.h"

static void put(FILE *out, const char *name, const char *value) {
    fprintf(out, ",\"%s\":", name);
    tc_json_put(out, value);
}

/* The first model name of /proc/cpuinfo; the machine's kind where that has none. */
static void put_cpu(FILE *out, const char *machine) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512], name[256] = "";
    while (file && !*name && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0)
            sscanf(line, "model name%*[ \t]:%*[ \t]%255[^\n]", name);
    if (file)
        fclose(file);
    put(out, "cpu", *name ? name : machine);
    fprintf(out, ",\"cores\":%ld", sysconf(_SC_NPROCESSORS_ONLN));
}

/* The members the worker gave, without the braces and ours. */
static void put_described(FILE *out, const char *described) {
    static const char *const members[] = {"id",     "version",   "type",    "name",
                                          "device", "n_devices", "records", "error"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *value = tc_json_member(described, members[i]);
        if (value)
            fprintf(out, ",\"%s\":%.*s", members[i], (int)(tc_json_skip(value) - value), value);
    }
}

char *tc_log_header_write(const tc_log_header *h) {
    char *text = NULL, date[32], sets[TC_SETS_NAME];
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    fputs("{\"record\":\"head\",\"log\":1", out);
    put(out, "suite", TENON_VERSION);
    put(out, "time", date);
    fputs(",\"plugin\":{\"path\":", out);
    tc_json_put(out, h->plugin);
    put(out, "sha256", h->sha256);
    if (h->described && tc_json_is_object(h->described))
        put_described(out, h->described);
    else if (h->silence)
        put(out, "error", h->silence);
    fprintf(out, "},\"device\":%u,\"set\":\"%s\",\"host\":{\"system\":", h->device,
            tc_sets_name(h->sets, sets));
    struct utsname host = {0};
    uname(&host);
    tc_json_put(out, host.sysname);
    put(out, "kernel", host.release);
    put(out, "machine", host.machine);
    put_cpu(out, host.machine);
    fputs("},\"options\":[", out);
    for (int i = 0; i < h->n_options; i++) {
        fputs(i ? "," : "", out);
        tc_json_put(out, h->options[i]);
    }
    fputs("],\"lists\":[", out);
    for (size_t i = 0; i < h->n_lists; i++) {
        char sum[TC_SHA256_HEX] = "";
        tc_sha256_file(h->lists[i], sum);
        fprintf(out, "%s{\"path\":", i ? "," : "");
        tc_json_put(out, h->lists[i]);
        put(out, "sha256", sum);
        fputc('}', out);
    }
    fprintf(out, "],\"planned\":%zu}", h->n_planned);
    bool whole = !ferror(out);
    if (fclose(out) != 0 || !whole) {
        free(text);
        return NULL;
    }
    return text;
}
