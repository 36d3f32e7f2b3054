/* tenon/fallback.h: what happens to an operator whose device has neither kernel nor decomposition.
 *
 * TENON_FALLBACK, or tn_fallback_set_policy, decides: `error` (the default) fails with the
 * operator, the dtype and the device; `warn` and `cpu` copy the arguments to the CPU, run there and
 * copy every output and every written argument back, with a line in the log for `warn`. Nothing is
 * silent: each fallback, and each copy that went through the host, is counted.
 */
#ifndef TENON_FALLBACK_H
#define TENON_FALLBACK_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_fallback_policy {
    TN_FALLBACK_ERROR = 0,
    TN_FALLBACK_WARN = 1,
    TN_FALLBACK_CPU = 2
} tn_fallback_policy;

/* For all threads; wins over TENON_FALLBACK. */
TN_API void tn_fallback_set_policy(tn_fallback_policy policy);
TN_API tn_fallback_policy tn_fallback_get_policy(void);

/* Calls fn for every operator and device type that fell back, with how often; any order. The
 * strings are valid during the call; fn may call Tenon. */
TN_API void tn_fallback_report(void (*fn)(const char *operator_name, const char *device_type,
                                          uint64_t count, void *user),
                               void *user);

/* What was missing, and how often. */
typedef struct tn_fallback_info {
    uint32_t struct_size;
    tn_dtype dtype;            /* that the kernel is missing for; of a copy what it reads */
    tn_dtype to;               /* of a copy that went through the host what it writes; else NONE */
    const char *operator_name; /* "bitwise_or.Tensor" */
    const char *kernel;        /* "bitwise_or"; "" for an operator that a program defined */
    const char *device_type;
    uint64_t count;
} tn_fallback_info;

/* The same by kernel and dtype. */
TN_API void tn_fallback_list(void (*fn)(const tn_fallback_info *info, void *user), void *user);
/* All of them together. */
TN_API uint64_t tn_fallback_count(void);
TN_API void tn_fallback_reset(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_FALLBACK_H */
