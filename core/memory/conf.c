/* TENON_ALLOC_CONF: settings of the caching allocator, as key:value,... in one table. */
#include "base/log.h"
#include "core/memory/pool.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

/* In the hard build segments are tiny, so that tests reach every path with little memory. */
static const tni_alloc_conf defaults = {
#if defined(TNI_HARD)
    .small_max = 4 * KIB,
    .small_segment = 16 * KIB,
    .large_min = 32 * KIB,
    .large_segment = 64 * KIB,
    .large_round = 4 * KIB,
    .magazines = false,
#else
    .small_max = MIB,
    .small_segment = 2 * MIB,
    .large_min = 10 * MIB,
    .large_segment = 20 * MIB,
    .large_round = 2 * MIB,
    .magazines = true,
#endif
    .max_split = UINT64_MAX,
    .limit = 0,
    .power2_divisions = 0,
    .gc_threshold = 0,
};

typedef enum kind { MEBIBYTES, KIBIBYTES, POWER_OF_2, FRACTION, ON_OFF } kind;

static const struct setting {
    const char *key;
    kind kind;
    size_t member;
    uint64_t min, max;
    const char *expected;
} settings[] = {
    {"max_split_size_mb", MEBIBYTES, offsetof(tni_alloc_conf, max_split), 1, 1 << 24,
     "a number of MiB"},
    {"garbage_collection_threshold", FRACTION, offsetof(tni_alloc_conf, gc_threshold), 0, 1,
     "a number between 0 and 1"},
    {"roundup_power2_divisions", POWER_OF_2, offsetof(tni_alloc_conf, power2_divisions), 1, 64,
     "1, 2, 4, 8, 16, 32 or 64"},
    {"small_segment_kb", KIBIBYTES, offsetof(tni_alloc_conf, small_segment), 4, 1 << 20,
     "a number of KiB from 4 on"},
    {"large_segment_kb", KIBIBYTES, offsetof(tni_alloc_conf, large_segment), 4, 1 << 24,
     "a number of KiB from 4 on"},
    {"limit_mb", MEBIBYTES, offsetof(tni_alloc_conf, limit), 0, 1 << 24, "a number of MiB"},
    {"magazines", ON_OFF, offsetof(tni_alloc_conf, magazines), 0, 0, "on or off"},
};

enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

static bool parse_number(const char *text, const struct setting *s, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *out >= s->min && *out <= s->max;
}

static bool apply(tni_alloc_conf *conf, const struct setting *s, const char *text) {
    void *member = (char *)conf + s->member;
    uint64_t n;
    char *end;
    switch (s->kind) {
    case MEBIBYTES:
    case KIBIBYTES:
        if (!parse_number(text, s, &n))
            return false;
        *(uint64_t *)member = n * (s->kind == MEBIBYTES ? MIB : KIB);
        return true;
    case POWER_OF_2:
        if (!parse_number(text, s, &n) || (n & (n - 1)))
            return false;
        *(uint32_t *)member = (uint32_t)n;
        return true;
    case FRACTION: {
        double value = strtod(text, &end);
        if (end == text || *end || !(value >= 0 && value <= 1))
            return false;
        *(double *)member = value;
        return true;
    }
    case ON_OFF:
        if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
            return false;
#if !defined(TNI_HARD)
        *(bool *)member = strcmp(text, "on") == 0;
#endif
        return true;
    }
    return false;
}

static void name_unknown(const char *key, char problem[TNI_ALLOC_CONF_PROBLEM]) {
    char known[256] = "";
    for (int i = 0; i < N_SETTINGS; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, settings[i].key);
    }
    snprintf(problem, TNI_ALLOC_CONF_PROBLEM, "'%.64s' is no setting; there are: %s", key, known);
}

static void parse_one(char *text, tni_alloc_conf *out, char problem[TNI_ALLOC_CONF_PROBLEM]) {
    char *colon = strchr(text, ':');
    if (colon)
        *colon = '\0';
    const char *value = colon ? colon + 1 : "";
    for (int i = 0; i < N_SETTINGS; i++) {
        if (strcmp(text, settings[i].key) != 0)
            continue;
        if (!apply(out, &settings[i], value))
            snprintf(problem, TNI_ALLOC_CONF_PROBLEM, "%s is '%s'; it must be %s", text, value,
                     settings[i].expected);
        return;
    }
    name_unknown(text, problem);
}

static void parse(const char *text, tni_alloc_conf *out, char first[TNI_ALLOC_CONF_PROBLEM]) {
    *out = defaults;
    *first = '\0';
    while (*text) {
        size_t n = strcspn(text, ",");
        char one[128], next[TNI_ALLOC_CONF_PROBLEM] = "";
        if (n >= sizeof one)
            snprintf(next, sizeof next, "'%.128s...' is too long", text);
        else if (n > 0)
            parse_one(strncpy(memset(one, 0, sizeof one), text, n), out, next);
        if (*next)
            tni_log_once(TN_LOG_WARN, "env", "TENON_ALLOC_CONF: %s", next);
        if (!*first)
            memcpy(first, next, sizeof next);
        text += n + (text[n] == ',');
    }
    if (out->small_segment < out->small_max)
        out->small_max = out->small_segment;
    if (out->large_segment < out->large_min)
        out->large_min = out->large_segment;
}

void tni_alloc_conf_parse(const char *text, tni_alloc_conf *out) {
    char first[TNI_ALLOC_CONF_PROBLEM];
    parse(text, out, first);
}

void tni_alloc_conf_problem(const char *text, char out[TNI_ALLOC_CONF_PROBLEM]) {
    tni_alloc_conf conf;
    parse(text, &conf, out);
}
