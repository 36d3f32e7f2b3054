/* The standing error of a thread, for the library's own code; tenon/base.h has the public half. */
#ifndef TNI_BASE_ERROR_H
#define TNI_BASE_ERROR_H

#include <tenon/base.h>

/* tn_fail, as the library writes it. Messages: "tn_matmul: inner sizes differ: [64, 784] x [512,
 * 10]; self.size(-1) must equal mat2.size(-2)". */
#define tni_fail tn_fail

/* Host memory is exhausted; `what` was being made. */
tn_status tni_fail_memory(const char *what);

/* The same for functions that make something, and have NULL to return. */
#define tni_fail_null(...) (tn_fail(__VA_ARGS__), NULL)
#define tni_fail_memory_null(what) (tni_fail_memory(what), NULL)

/* The status of the standing error, TN_ERR_INTERNAL if there is none: for code that got a NULL. */
tn_status tni_failed(void);

/* Returns from the calling function with the status of `call`, unless that is TN_OK. */
#define TNI_TRY(call) \
    do { \
        tn_status status_ = (call); \
        if (status_ != TN_OK) \
            return status_; \
    } while (0)

/* Is there a standing error that nobody has read, behind which others are only counted? */
bool tni_error_stands(void);

/* Names the operator of the standing error, unless it has one or was read already. */
void tni_error_operator(const char *operator_name);

/* host->fail: keeps a plugin's message for the thread; tni_error_take_plugin turns it into the
 * standing error, with `context` ("cpu:0, kernel add") in front. Returns status, or TN_ERR_INTERNAL for
 * a number that is no status. */
tn_status tni_error_plugin(tn_status status, const char *message);
tn_status tni_error_take_plugin(tn_status status, const char *context);
/* The message of host->fail that is kept, or NULL. */
const char *tni_error_plugin_message(void);

/* Saves the standing error and clears it / puts a saved one back, for code that must try something
 * and not disturb it. `saved` is 64 bytes of the caller's. */
typedef struct tni_saved_error {
    uint64_t words[8];
} tni_saved_error;
void tni_error_save(tni_saved_error *saved);
void tni_error_restore(tni_saved_error *saved);

#endif
