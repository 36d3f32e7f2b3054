/* The getter behind env.def. */
#include "base/env.h"
#include "base/log.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

const tni_env_entry tni_env_table[TNI_ENV_COUNT] = {
#define X(NAME, type, fallback, overrides, allowed, help) \
    [TNI_ENV_##NAME] = {"TENON_" #NAME, type, fallback, overrides, allowed, help},
#include "base/env.def"
#undef X
};

bool tni_env_is_secure(void) {
    return getauxval(AT_SECURE) != 0;
}

/* ---- values ------------------------------------------------------------------------------ */

static bool parse_number(const char *value, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(value, &end, 0);
    return errno == 0 && end != value && *end == '\0';
}

/* Is it one of "0, 1 or 2"? */
static bool is_choice(const char *allowed, const char *value) {
    size_t n = strlen(value);
    for (const char *p = allowed; *p;) {
        size_t word = strcspn(p, ", ");
        bool between = word == 2 && memcmp(p, "or", 2) == 0;
        if (word == n && !between && memcmp(p, value, n) == 0)
            return true;
        p += word;
        p += strspn(p, ", ");
    }
    return false;
}

static bool is_allowed(const tni_env_entry *e, const char *value) {
    int64_t n;
    if (strcmp(e->type, "choice") == 0)
        return is_choice(e->allowed, value);
    if (strcmp(e->type, "count") == 0)
        return parse_number(value, &n) && n >= 0 && n <= INT32_MAX;
    return strcmp(e->type, "number") != 0 || parse_number(value, &n);
}

/* What the environment says, or NULL when that is nothing or is not to be used. */
static const char *lookup(tni_env_id id) {
    const tni_env_entry *e = &tni_env_table[id];
    const char *value = getenv(e->name);
    if (!value || !*value)
        return NULL;
    if (e->overrides && tni_env_is_secure()) {
        tni_log_once(TN_LOG_WARN, "env", "%s is ignored: the program runs with raised privileges",
                     e->name);
        return NULL;
    }
    if (is_allowed(e, value))
        return value;
    tni_log_once(TN_LOG_WARN, "env", "%s=%s is ignored, and %s used: it must be %s", e->name, value,
                 e->fallback, e->allowed);
    return NULL;
}

const char *tni_env(tni_env_id id) {
    const char *value = lookup(id);
    return value ? value : tni_env_table[id].fallback;
}

bool tni_env_is_set(tni_env_id id) {
    return lookup(id) != NULL;
}

bool tni_env_is_wrong(tni_env_id id) {
    const char *value = getenv(tni_env_table[id].name);
    return value && *value && !is_allowed(&tni_env_table[id], value);
}

int64_t tni_env_i64(tni_env_id id) {
    int64_t n = 0;
    parse_number(tni_env(id), &n);
    return n;
}

const char *tni_env_raw(const char *name) {
    return tni_env_is_secure() ? NULL : getenv(name);
}

bool tni_env_lists(tni_env_id id, const char *name) {
    const char *p = tni_env(id);
    while (*p) {
        size_t n = strcspn(p, ",");
        char glob[256];
        if (n > 0 && n < sizeof glob) {
            memcpy(glob, p, n);
            glob[n] = '\0';
            if (fnmatch(glob, name, 0) == 0)
                return true;
        }
        p += n;
        p += *p == ',';
    }
    return false;
}
