/* tenon/validation.h: what the validation layer found.
 *
 * With TENON_VALIDATE=1 (or 2, which looks closer and is slower) Tenon checks every call into and
 * out of a plugin. What breaks a contract of tenon/plugin.h is a finding: it is logged at once, and
 * kept, once for each distinct place, until tn_validation_clear. docs/validation.md has what is
 * checked. All functions may be called from any thread.
 */
#ifndef TENON_VALIDATION_H
#define TENON_VALIDATION_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_validation_finding {
    uint64_t struct_size; /* set by the caller */
    uint32_t requirement; /* 12 for TNP-12, which the plugin broke; 0: Tenon broke the contract */
    uint32_t is_warning;  /* 1: a sign, but no proof */
    uint64_t count;       /* how often */
    const char *plugin;   /* its id; its path before that is known */
    const char *slot;     /* "memory->alloc", "host->dealloc", "kernel->run" ... */
    const char *op;       /* the kernel operator, or "" */
    const char *text;     /* what was wrong the first time */
} tn_validation_finding;

/* The level that TENON_VALIDATE asks for: 0 (off), 1 or 2. Plugins loaded from now on are checked
 * at it. */
TN_API int32_t tn_validation_level(void);

/* How many distinct findings are kept, warnings included. */
TN_API uint64_t tn_validation_count(void);

/* The i-th, oldest first; strings are valid until tn_validation_clear. TN_ERR_INDEX_OUT_OF_RANGE past
 * the last. */
TN_API tn_status tn_validation_get(uint64_t i, tn_validation_finding *out);

/* Forgets all findings. */
TN_API void tn_validation_clear(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_VALIDATION_H */
