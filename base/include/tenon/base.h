/* tenon/base.h: errors, log and versions, for programs.
 *
 * Every function of Tenon that fails leaves a standing error in the calling thread: a status, a
 * message that says what went wrong, where, and how to put it right, and the operator if one was
 * called. Functions that make tensors return NULL, the others a status. A failed (NULL) tensor
 * passes through later operators untouched, so one check at the end of a chain is enough: the
 * standing error is the first one. A fresh failure replaces an error that was read, and is only
 * counted behind one that was not.
 */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include <tenon/dtype.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TNI_BUILD)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

/* Conversions that -Wold-style-cast of C++ takes: of numbers, and of a number to an address. */
#ifdef __cplusplus
#define TN_CAST(type, x) (static_cast<type>(x))
#define TN_ADDRESS(type, x) (reinterpret_cast<type *>(static_cast<uintptr_t>(x)))
#else
#define TN_CAST(type, x) ((type)(x))
#define TN_ADDRESS(type, x) ((type *)(uintptr_t)(x))
#endif

#if defined(__GNUC__)
#define TN_MUST_USE __attribute__((warn_unused_result))
#else
#define TN_MUST_USE
#endif

/* ---- errors: all of the calling thread --------------------------------------------------- */

/* Status of the standing error, TN_OK if there is none. Does not count as reading it. */
TN_API tn_status tn_error_status(void);
/* Its message, "" if there is none; valid until the next failure or clear in this thread. Counts as
 * reading. */
TN_API const char *tn_error_message(void);
/* The operator that failed ("add.Tensor"), in backward the node ("ReluBackward"), or "". */
TN_API const char *tn_error_operator(void);
/* How many failures came after the standing error before it was read. */
TN_API uint64_t tn_error_suppressed(void);
/* Forgets the standing error. */
TN_API void tn_error_clear(void);

/* "SHAPE" for TN_ERR_SHAPE and so on, "?" for a number that is none. */
TN_API const char *tn_status_name(tn_status status);
/* When the status is used, in a few words. */
TN_API const char *tn_status_text(tn_status status);

/* For custom operators and handlers: sets the standing error (printf style) and returns `status`.
 */
TN_API tn_status tn_fail(tn_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* ---- log --------------------------------------------------------------------------------- */

/* Where log lines go. `subsystem` is "loader", "memory", "plugin" ...; the line does not end in a
 * newline, and is UTF-8 without control characters. May be called from any thread, may fork
 * (tenon/tenon.h), and may call Tenon; what is under way (a device is opened, memory is
 * allocated) fails with TN_ERR_STATE. Only settings that are wrong and what TENON_VALIDATE finds
 * are printed unless TENON_LOG or this function asks for more. */
typedef void (*tn_log_fn)(void *user, int32_t level, const char *subsystem, const char *line);

/* Sends lines at `level` or more urgent to `fn` (NULL: standard error). */
TN_API void tn_log_set(int32_t level, tn_log_fn fn, void *user);

/* ---- version ----------------------------------------------------------------------------- */

#define TN_VERSION_MAJOR 1
#define TN_VERSION_MINOR 0
#define TN_VERSION_PATCH 0
#define TN_VERSION "1.0.0-rc1"
/* TN_VERSION of the library that runs, which may differ from that of the headers. */
TN_API const char *tn_version(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_BASE_H */
