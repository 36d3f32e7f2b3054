/* What the files of cases share: the plugin as the rest of Tenon has it, and what a case is. */
#ifndef TNI_TESTS_VALIDATION_FINDINGS_H
#define TNI_TESTS_VALIDATION_FINDINGS_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/validation/brittle.h"
#include "loader/loader.h"

#include <tenon/requirements.h>
#include <tenon/validation.h>

enum { SYNC, ASYNC };

/* What a caller does, with the plugin's fault that makes it a finding: `requirement` at `slot`,
 * with `word` in its text. Without a fault it is the caller that is wrong. */
typedef struct finding_case {
    const char *fault;
    void (*act)(void);
    tn_requirement requirement; /* 0: the caller is wrong */
    const char *slot, *word;
    int async, level;
} finding_case;

extern const finding_case plugin_cases[], kernel_cases[], caller_cases[];
extern const int n_plugin_cases, n_kernel_cases, n_caller_cases;

/* As open_all leaves them; `stream` is NULL where the plugin has none. */
extern const tni_plugin *p;
extern tn_device_impl *device, *second;
extern tn_stream_impl *stream;
extern tn_memory memory;

/* Registers the brittle plugin; `p` is NULL if it was refused. */
void start(void);
void stop(void);

/* One device with one allocation of 256 bytes, and a stream if it has such. */
void open_all(void);
void close_all(void);

/* An allocation to ask for, aligned to 64. */
tn_allocation request(int32_t space, uint64_t bytes);

/* Actions that several files use. */
void open_and_close(void);
void write_twice(void);
void free_after_wait(void);
void transfer_pinned(void);
void run_and_free(void);
void use_plans(void);
void use_graphs(void);

#endif
