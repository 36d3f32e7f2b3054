/* See double.h: what tests say to the double, and what it tells them. */
#include "tests/cuda/double/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const function_names[] = {
#define FUNCTION_TEXT(function) #function,
    DOUBLE_FUNCTIONS(FUNCTION_TEXT)
#undef FUNCTION_TEXT
};

static const char *const kind_names[] = {
    [DOUBLE_CONTEXT] = "context",
    [DOUBLE_STREAM] = "stream",
    [DOUBLE_EVENT] = "event",
    [DOUBLE_MODULE] = "module",
    [DOUBLE_GRAPH] = "graph",
    [DOUBLE_GRAPH_EXEC] = "graph_exec",
    [DOUBLE_DEVICE_MEMORY] = "device_memory",
    [DOUBLE_PINNED_MEMORY] = "pinned_memory",
};

/* ---- words ------------------------------------------------------------------------------- */

/* The number at the begin, and what stands behind it: "256M". */
static bool hear_number(const char *value, const char *const units[], const uint64_t factors[],
                        uint64_t *out) {
    char *end;
    if (*value < '0' || *value > '9')
        return false;
    uint64_t number = strtoull(value, &end, 10);
    for (int i = 0; units[i]; i++)
        if (strcmp(end, units[i]) == 0) {
            *out = number * factors[i];
            return true;
        }
    return false;
}

static bool hear_plain(const char *value, uint64_t most, uint64_t *out) {
    return hear_number(value, (const char *const[]){"", NULL}, (const uint64_t[]){1}, out) &&
           *out <= most;
}

static bool hear_int(const char *value, int least, int most, int *out) {
    uint64_t number;
    if (!hear_plain(value, (uint64_t)most, &number) || (int)number < least)
        return false;
    *out = (int)number;
    return true;
}

/* "FUNCTION:N:ERROR", "FUNCTION:N+:ERROR"; nothing takes all of them back. */
static bool hear_fail(settings *s, const char *value) {
    char name[64], many = 0;
    unsigned long long at;
    int error, read = 0;
    if (!*value) {
        s->n_rules = 0;
        return true;
    }
    if (s->n_rules == MAX_RULES)
        return false;
    if (sscanf(value, "%63[^:]:%llu:%d%n", name, &at, &error, &read) != 3 || value[read]) {
        read = 0;
        if (sscanf(value, "%63[^:]:%llu%c:%d%n", name, &at, &many, &error, &read) != 4 ||
            value[read] || many != '+')
            return false;
    }
    for (int f = 0; f < N_FUNCTIONS; f++)
        if (strcmp(function_names[f], name) == 0) {
            s->rules[s->n_rules++] = (rule){.function = (function_name)f,
                                            .at = at,
                                            .always = many == '+',
                                            .error = (CUresult)error};
            return true;
        }
    return false;
}

static bool hear_fault(settings *s, const char *value) {
    unsigned long long at = 0;
    int error = 0;
    if (*value && sscanf(value, "%llu:%d", &at, &error) != 2)
        return false;
    s->fault = (rule){.at = at, .error = (CUresult)error};
    driver.n_launches = 0;
    return true;
}

static bool hear_loss(settings *s, const char *value) {
    unsigned long long at = 0;
    int device = 0, error = 0;
    if (*value && (sscanf(value, "%d:%llu:%d", &device, &at, &error) != 3 || device < 0 ||
                   device >= MAX_DEVICES))
        return false;
    s->lose.device = device;
    s->lose.at = at;
    s->lose.error = (CUresult)error;
    return true;
}

static bool hear_switch(const char *value, const char *on, const char *off, bool *out) {
    *out = strcmp(value, on) == 0;
    return *out || strcmp(value, off) == 0;
}

static bool hear_races(const char *value, settings *s) {
    s->races_fail = strcmp(value, "fail") == 0;
    s->races = s->races_fail || strcmp(value, "report") == 0;
    return s->races || strcmp(value, "off") == 0;
}

static bool hear(settings *s, const char *word, const char *value) {
    static const char *const of_bytes[] = {"", "K", "M", "G", NULL};
    static const uint64_t bytes[] = {1, 1 << 10, 1 << 20, 1 << 30};
    static const char *const of_time[] = {"ns", "us", "ms", NULL};
    static const uint64_t ns[] = {1, 1000, 1000000};
    bool fixed = driver.initialised;
    if (strcmp(word, "seed") == 0)
        return hear_plain(value, UINT64_MAX, &s->seed);
    if (strcmp(word, "delay") == 0)
        return hear_number(value, of_time, ns, &s->delay);
    if (strcmp(word, "fail") == 0)
        return hear_fail(s, value);
    if (strcmp(word, "fault") == 0)
        return hear_fault(s, value);
    if (strcmp(word, "lose") == 0)
        return hear_loss(s, value);
    if (strcmp(word, "kernels") == 0)
        return hear_switch(value, "off", "on", &s->no_kernels);
    if (strcmp(word, "opaque") == 0)
        return hear_switch(value, "on", "off", &s->is_opaque);
    if (strcmp(word, "talk") == 0)
        return hear_switch(value, "on", "off", &s->talks);
    if (strcmp(word, "races") == 0)
        return hear_races(value, s);
    if (strcmp(word, "report") == 0)
        return (size_t)snprintf(s->report, sizeof(s->report), "%s", value) < sizeof(s->report);
    if (strcmp(word, "devices") == 0)
        return !fixed && hear_int(value, 0, MAX_DEVICES, &s->n_devices);
    if (strcmp(word, "memory") == 0)
        return !fixed && hear_number(value, of_bytes, bytes, &s->memory);
    if (strcmp(word, "sms") == 0)
        return !fixed && hear_int(value, 1, 1024, &s->n_sms);
    if (strcmp(word, "version") == 0)
        return !fixed && hear_int(value, 1000, 99990, &s->version);
    if (strcmp(word, "peers") == 0)
        return !fixed && hear_switch(value, "0", "1", &s->no_peers);
    if (strcmp(word, "capability") == 0) {
        int read = 0;
        return !fixed && sscanf(value, "%d.%1d%n", &s->major, &s->minor, &read) == 2 &&
               !value[read] && s->major > 0 && s->minor >= 0;
    }
    return false;
}

static bool hear_words(const char *words) {
    settings heard = driver.settings;
    for (const char *at = words + strspn(words, " ;"); *at; at += strspn(at, " ;")) {
        char word[MAX_TEXT];
        size_t n = strcspn(at, " ;");
        char *value = n < sizeof(word) ? memcpy(word, at, n) : NULL;
        if (value) {
            word[n] = '\0';
            value = strchr(word, '=');
        }
        if (value)
            *value++ = '\0';
        if (!value || !hear(&heard, word, value)) {
            fprintf(stderr, "driver double: not understood: %.*s\n", (int)n, at);
            return false;
        }
        at += n;
    }
    driver.settings = heard;
    return true;
}

void settings_read(void) {
    static bool read;
    if (read)
        return;
    read = true;
    driver.settings.n_devices = 1;
    driver.settings.major = 9;
    driver.settings.memory = 256 << 20;
    driver.settings.n_sms = 4;
    driver.settings.version = CUDA_VERSION > 13000 ? CUDA_VERSION : 13000;
    const char *words = getenv("TENON_TEST_CUDA");
    driver.bad_words = words && !hear_words(words);
}

bool double_configure(const char *words) {
    pthread_mutex_lock(&driver.lock);
    settings_read();
    bool good = hear_words(words);
    pthread_mutex_unlock(&driver.lock);
    return good;
}

void talk(const char *format, ...) {
    if (!driver.settings.talks)
        return;
    va_list list;
    va_start(list, format);
    fputs("driver double: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
}

/* ---- counts ------------------------------------------------------------------------------ */

static uint64_t read_count(const uint64_t *count) {
    pthread_mutex_lock(&driver.lock);
    uint64_t value = *count;
    pthread_mutex_unlock(&driver.lock);
    return value;
}

uint64_t double_alive(double_kind kind) {
    return read_count(&driver.alive[kind]);
}

uint64_t double_abandoned(double_kind kind) {
    return read_count(&driver.abandoned[kind]);
}

uint64_t double_device_bytes(CUdevice device) {
    return read_count(&driver.devices[device].used);
}

uint64_t double_calls(const char *function) {
    for (int f = 0; f < N_FUNCTIONS; f++)
        if (strcmp(function_names[f], function) == 0)
            return read_count(&driver.calls[f]);
    fprintf(stderr, "driver double: there is no %s\n", function);
    abort();
}

uint64_t double_all_calls(void) {
    return read_count(&driver.all_calls);
}

uint64_t double_results(CUresult result) {
    return read_count(&driver.results[result]);
}

uint64_t double_waits(void) {
    return read_count(&driver.n_waits);
}

uint64_t double_kernels(void) {
    return read_count(&driver.n_kernels);
}

uint64_t double_races(void) {
    return read_count(&driver.n_races);
}

const char *double_last_fault(void) {
    static _Thread_local char copy[MAX_TEXT];
    pthread_mutex_lock(&driver.lock);
    memcpy(copy, driver.last_fault, sizeof(copy));
    pthread_mutex_unlock(&driver.lock);
    return copy;
}

void write_report(void) {
    FILE *file = fopen(driver.settings.report, "w");
    if (!file) {
        fprintf(stderr, "driver double: cannot write %s\n", driver.settings.report);
        return;
    }
    for (int f = 0; f < N_FUNCTIONS; f++)
        if (driver.calls[f])
            fprintf(file, "calls %s %llu\n", function_names[f],
                    (unsigned long long)driver.calls[f]);
    for (int r = 0; r < MAX_RESULTS; r++)
        if (driver.results[r])
            fprintf(file, "results %d %llu\n", r, (unsigned long long)driver.results[r]);
    for (int k = 0; k < DOUBLE_KINDS; k++) {
        fprintf(file, "alive %s %llu\n", kind_names[k], (unsigned long long)driver.alive[k]);
        fprintf(file, "abandoned %s %llu\n", kind_names[k],
                (unsigned long long)driver.abandoned[k]);
    }
    fprintf(file, "waits %llu\nkernels %llu\nraces %llu\n", (unsigned long long)driver.n_waits,
            (unsigned long long)driver.n_kernels, (unsigned long long)driver.n_races);
    fclose(file);
}

/* ---- what is done to devices ------------------------------------------------------------- */

void double_lose(CUdevice ordinal, CUresult error) {
    pthread_mutex_lock(&driver.lock);
    driver.devices[ordinal].lost = error;
    for (context *c = driver.contexts; c; c = c->next)
        if (c->device->ordinal == ordinal)
            context_break(c, error);
    tell_change();
    pthread_mutex_unlock(&driver.lock);
}

static void hold(bool held) {
    pthread_mutex_lock(&driver.lock);
    driver.held = held;
    tell_change();
    pthread_mutex_unlock(&driver.lock);
}

void double_hold(void) {
    hold(true);
}

void double_let_go(void) {
    hold(false);
}
