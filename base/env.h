/* Environment variables: one table (env.def), one getter. */
#ifndef TNI_BASE_ENV_H
#define TNI_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tni_env_id {
#define X(NAME, type, fallback, overrides, allowed, help) TNI_ENV_##NAME,
#include "base/env.def"
#undef X
    TNI_ENV_COUNT
} tni_env_id;

typedef struct tni_env_entry {
    const char *name; /* "TENON_DEVICE" */
    const char *type;
    const char *fallback;
    bool overrides;
    const char *allowed;
    const char *help;
} tni_env_entry;

extern const tni_env_entry tni_env_table[TNI_ENV_COUNT];

/* The value, or the default when the variable is unset or empty, wrong, or ignored because the program
 * runs with raised privileges (the log says so once). Read anew at each call; valid until setenv.
 */
const char *tni_env(tni_env_id id);

/* The same as a number, for variables whose type is one. */
int64_t tni_env_i64(tni_env_id id);

/* Set in the environment, and not ignored? */
bool tni_env_is_set(tni_env_id id);

/* Set to what is not allowed? */
bool tni_env_is_wrong(tni_env_id id);

/* Does one of the comma-separated globs that it holds match `name`? */
bool tni_env_lists(tni_env_id id, const char *name);

/* An environment variable that is not in the table (a plugin's option): NULL when unset or when
 * privileges are raised. */
const char *tni_env_raw(const char *name);

/* Does the program run with raised privileges (set-uid, set-gid, capabilities)? */
bool tni_env_is_secure(void);

#endif
