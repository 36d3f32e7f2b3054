/* The getter behind env.def. */
#include "base/env.h"
#include "base/log.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

const tni_env_entry tni_env_table[TNI_ENV_COUNT] = {
#define X(NAME, type, fallback, overrides, help) \
    [TNI_ENV_##NAME] = {"TENON_" #NAME, type, fallback, overrides, help},
#include "base/env.def"
#undef X
};

bool tni_env_is_secure(void) {
    return getauxval(AT_SECURE) != 0;
}

static const char *lookup(tni_env_id id) {
    const tni_env_entry *e = &tni_env_table[id];
    const char *value = getenv(e->name);
    if (!value || !*value)
        return NULL;
    if (e->overrides && tni_env_is_secure()) {
        static _Atomic uint64_t told;
        uint64_t bit = (uint64_t)1 << id;
        if (!(atomic_fetch_or(&told, bit) & bit))
            tni_log_line(TN_LOG_WARN, "env",
                         "%s is ignored: the program runs with raised privileges", e->name);
        return NULL;
    }
    return value;
}

const char *tni_env(tni_env_id id) {
    const char *value = lookup(id);
    return value ? value : tni_env_table[id].fallback;
}

bool tni_env_is_set(tni_env_id id) {
    return lookup(id) != NULL;
}

int64_t tni_env_i64(tni_env_id id) {
    const tni_env_entry *e = &tni_env_table[id];
    const char *value = tni_env(id);
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 0);
    if (errno == 0 && end != value && *end == '\0')
        return n;
    tni_log_line(TN_LOG_WARN, "env", "%s=%s is not a number; %s is used", e->name, value,
                 e->fallback);
    return strtoll(e->fallback, NULL, 0);
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
