/* tenon/profile.h: what ran, how long it took, and by whom.
 *
 * While profiling is on, every operator call of every thread becomes one event, calls that an
 * operator makes to others (its decomposition) included. Off, it costs nothing. TENON_PROFILE=FILE
 * profiles a whole run: the trace goes to FILE and the table to the standard error, at tn_shutdown
 * or when the program ends. Callable from any thread.
 *
 *     tn_profile_start();
 *     ... a training step ...
 *     tn_profile_stop();
 *     tn_profile_write_trace("step.json");       opens in https://ui.perfetto.dev
 *     char *table = tn_profile_table();          one line for each operator
 */
#ifndef TENON_PROFILE_H
#define TENON_PROFILE_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a call was done. */
typedef enum tn_profile_how {
    TN_PROFILE_KERNEL,        /* a kernel of the device */
    TN_PROFILE_DECOMPOSITION, /* other operators, for want of a kernel */
    TN_PROFILE_FALLBACK,      /* on the CPU, for want of both */
    TN_PROFILE_COMPOSITE,     /* other operators, as the operator is defined */
    TN_PROFILE_VIEW,          /* nothing ran: another view of the same memory */
    TN_PROFILE_NOTHING        /* no element to compute, or the call failed before it ran */
} tn_profile_how;

typedef struct tn_profile_event {
    uint64_t struct_size;
    const char *op; /* "add.Tensor"; valid until the events are cleared */
    const char
        *args; /* "f32[64, 784], f32[784, 128]": the tensors, in order; valid during the call */
    const char *device; /* "npu:0"; "" when no tensor says */
    const char *kernel; /* whose kernel: the plugin's id, or what a program said; "" without */
    int64_t start_ns;   /* host clock, from tn_profile_start */
    int64_t host_ns;    /* until the call returned, what the profiler itself takes included */
    int64_t device_ns;  /* between the stream's events round the call; -1: not measured, as on a
                           device without streams, whose work is done when the call returns, and
                           of calls that only make views */
    int64_t device_start_ns; /* on the scale of start_ns; -1: not measured */
    int64_t bytes;           /* allocated on the device by the call, less what it freed */
    uint32_t stream;         /* 0: the device's default stream */
    uint32_t thread;         /* small numbers, in the order of first events */
    uint32_t depth;          /* calls it is within */
    tn_status status;        /* what the call returned */
    tn_profile_how how;
    uint32_t reserved;
} tn_profile_event;

/* Forgets earlier events and begins. TN_ERR_STATE when it is on already. */
TN_API tn_status tn_profile_start(void);
/* Ends; waits for the devices whose times are still to be read. Does nothing when it is off. */
TN_API tn_status tn_profile_stop(void);
TN_API bool tn_profile_is_on(void);

/* The events so far, in the order in which the calls ended; `fn` may call Tenon. Those that there was
 * no memory for are missing, and counted in *out_lost (may be NULL). */
TN_API tn_status tn_profile_events(void (*fn)(const tn_profile_event *event, void *user),
                                   void *user, uint64_t *out_lost);
/* As a Chrome trace (JSON), with a lane for each thread and each stream. TN_ERR_IO when the file cannot
 * be written. */
TN_API tn_status tn_profile_write_trace(const char *path);
/* One line for each operator and way of running it, the longest first, and one for all: its calls are
 * all calls, its times and bytes those of calls that no other call made. Free with tn_string_free. NULL
 * with an error. */
TN_API char *tn_profile_table(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_PROFILE_H */
