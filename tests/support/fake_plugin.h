/* A device plugin for tests of the core, linked into the test.
 *
 * It counts what it is asked for, fails on demand, loses its device on demand, and its queues stand
 * still while they are held, so that a test decides when a stream passes a point:
 *
 *     fake_reset();
 *     fake.async = true;
 *     tn_plugin_register(fake_query);
 *     tn_device d = tn_device_parse("fake:0");
 *     fake_hold(true);
 *     ... record events, free blocks ...
 *     fake_advance(stream->handle);
 *
 * Memory is host memory, with the address as handle. It has no kernels. Its functions may be called
 * from any thread; `fake` is set before the device is opened, except where it says otherwise.
 */
#ifndef TNI_TESTS_SUPPORT_FAKE_PLUGIN_H
#define TNI_TESTS_SUPPORT_FAKE_PLUGIN_H

#include <stdbool.h>
#include <tenon/plugin.h>

typedef struct fake_settings {
    uint32_t n_devices; /* 1 */
    bool async;         /* with streams and events */
    bool fork_safe;     /* before the plugin is registered */
    uint64_t alignment; /* 64 */
    uint64_t max_allocation;
    const char *product;   /* NULL: "Fake device" */
    uint64_t memory_bytes; /* of each device; 0: no limit. At any time. */
    tn_status open_fails;  /* a status other than TN_OK: open fails with it */
    int32_t threads;       /* what tenon.threads/1 was told; 0: nothing yet */
} fake_settings;
extern fake_settings fake;

typedef struct fake_counts {
    uint64_t n_allocs, n_frees; /* of both spaces, all devices */
    uint64_t live_bytes, live_pinned_bytes;
    int64_t n_streams, n_events, n_devices; /* alive */
    uint64_t n_waits;                       /* of streams for events */
    uint64_t n_bad_frees;                   /* of what was not allocated */
    int n_before_fork, n_after_fork[2];     /* what tenon.fork/1 was told; [in_child] */
} fake_counts;

const tn_plugin *fake_query(const tn_host *host);

/* Puts settings, counts, failures and holds back to those of a fresh process. */
void fake_reset(void);
fake_counts fake_count(void);

/* The n-th call from now (1 = the next) that can fail does, once; 0 = none. Returns how many such
 * calls there were since the last time. Calls that can fail: alloc, write, read, copy, fill, create
 * and record of streams and events. */
uint64_t fake_fail_at(uint64_t n);
/* From now on everything but frees fails with TN_ERR_DEVICE_LOST. */
void fake_lose(void);

/* While held, streams pass nothing by themselves; synchronising one passes all it has. */
void fake_hold(bool hold);
/* The stream passes all that is queued. */
void fake_advance(tn_stream_impl *stream);
/* The stream's next query or synchronize that finds all work done reports this, once. */
void fake_stream_error(tn_stream_impl *stream, tn_status status, const char *message);

#endif
