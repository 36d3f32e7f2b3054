/* Reads the options; a value that is wrong is never guessed at. docs/sim.md lists them.
 */
#include "plugins/shared/text.h"
#include "plugins/sim/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MAX_MEMORY = UINT64_C(1) << 40;

static tn_status refuse(const tn_host *host, const char *name, const char *variable,
                        const char *value, const char *allowed) {
    char message[320];
    snprintf(message, sizeof message, "option %s (TENON_SIM_%s) is '%.60s'; it must be %s", name,
             variable, value, allowed);
    plugin_mend_text(message);
    return host->fail(host, TN_ERR_INVALID_ARGUMENT, message);
}

/* Digits from `*text` on, which is moved behind them. */
static bool read_digits(const char **text, uint64_t *out) {
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static bool read_number(const char *text, uint64_t max, uint64_t *out) {
    return read_digits(&text, out) && !*text && *out <= max;
}

static bool read_devices(const char *text, sim_options *out) {
    return read_number(text, SIM_MAX_DEVICES, &out->devices);
}

static bool read_memory(const char *text, sim_options *out) {
    static const char suffixes[] = "kKmMgG";
    uint64_t n;
    unsigned shift = 0;
    if (!read_digits(&text, &n))
        return false;
    const char *suffix = *text ? strchr(suffixes, *text) : NULL;
    if (suffix) {
        shift = 10 * (1 + (unsigned)(suffix - suffixes) / 2);
        text++;
    }
    out->memory = n << shift;
    return !*text && n > 0 && n <= MAX_MEMORY >> shift;
}

static bool read_switch(const char *text, bool *out) {
    uint64_t n = 0;
    bool good = read_number(text, 1, &n);
    *out = n;
    return good;
}

static bool read_poison(const char *text, sim_options *out) {
    return read_switch(text, &out->poison);
}

static bool read_pinned(const char *text, sim_options *out) {
    return read_switch(text, &out->pinned);
}

static bool read_host_pointers(const char *text, sim_options *out) {
    return read_switch(text, &out->host_pointers);
}

static bool read_seed(const char *text, sim_options *out) {
    return read_number(text, UINT64_MAX, &out->seed);
}

static bool read_delay(const char *text, sim_options *out) {
    return read_number(text, 1000000, &out->delay_us);
}

/* `function:n` or `function:*`, separated by commas; each function once. */
static bool read_fail(const char *text, sim_options *out) {
    static const char *const names[] = {
#define NAME(name, status) #name,
        SIM_FAULTS(NAME)
#undef NAME
    };
    for (;;) {
        size_t n = strcspn(text, ":");
        size_t i = 0;
        while (i < SIM_N_FAULTS && (strlen(names[i]) != n || strncmp(names[i], text, n) != 0))
            i++;
        if (i == SIM_N_FAULTS || text[n] != ':' || out->fail[i])
            return false;
        text += n + 1;
        if (*text == '*') {
            out->fail[i] = SIM_EVERY;
            text++;
        } else if (!read_digits(&text, &out->fail[i]) || out->fail[i] == 0) {
            return false;
        }
        if (!*text)
            return true;
        if (*text++ != ',')
            return false;
    }
}

/* `n` for every device, `device:n` for one. */
static bool read_lose(const char *text, sim_options *out) {
    if (!read_digits(&text, &out->lose))
        return false;
    if (*text == ':') {
        text++;
        out->lose_device = out->lose;
        if (out->lose_device >= SIM_MAX_DEVICES || !read_digits(&text, &out->lose))
            return false;
    }
    return !*text;
}

static const struct {
    const char *name, *variable;
    bool (*read)(const char *text, sim_options *out);
    const char *allowed;
} table[] = {
    {"devices", "DEVICES", read_devices, "0 to 8"},
    {"memory", "MEMORY", read_memory,
     "a number of bytes from 1 up to 1024g, with an optional k, m or g"},
    {"poison", "POISON", read_poison, "0 or 1"},
    {"pinned", "PINNED", read_pinned, "0 or 1"},
    {"host_pointers", "HOST_POINTERS", read_host_pointers, "0 or 1"},
    {"seed", "SEED", read_seed, "a number from 0 to 18446744073709551615"},
    {"delay", "DELAY", read_delay, "microseconds from 0 to 1000000"},
    {"fail", "FAIL", read_fail,
     "a list such as alloc:7,write:* of alloc, stream, event, write, read, copy, copy_peer, fill, "
     "run, record, wait, sync, kernel, begin, end, launch, each once, with a call from 1 or *"},
    {"lose", "LOSE", read_lose, "the number of a command (0: never), or device:number"},
};

tn_status sim_options_read(const tn_host *host, sim_options *out) {
    *out = (sim_options){.devices = 2,
                         .memory = UINT64_C(2) << 30,
                         .poison = true,
                         .pinned = true,
                         .lose_device = SIM_EVERY};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *value = host->option(host, table[i].name);
        if (value && *value && !table[i].read(value, out))
            return refuse(host, table[i].name, table[i].variable, value, table[i].allowed);
    }
    return TN_OK;
}
