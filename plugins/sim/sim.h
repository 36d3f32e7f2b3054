/* The objects of the simulated chip and what its files ask of each other.
 *
 * The chip is a device made of software that keeps every habit of a real one which a careless host
 * could come to rely on the absence of: its memory cannot be reached through its handles, its work
 * runs later on a queue of its own, its errors surface at synchronization. plugin.c says who
 * we are, device.c, memory.c, stream.c and event.c fill the tables of tenon/plugin.h, launch.c turns a
 * kernel call into queued work, and kernels/ has the arithmetic. Who starts a plugin begins with
 * plugin-sdk/template/; here is how a whole asynchronous one goes on.
 *
 * There are no globals: everything hangs on tn_instance, so that the plugin can be started, shut down
 * and started again. All memory comes from the host, and every object finds the host through its
 * `self`. */
#ifndef TNI_PLUGINS_SIM_SIM_H
#define TNI_PLUGINS_SIM_SIM_H

#include "plugins/shared/try.h"
#include "plugins/sim/options.h"

#include <tenon/plugin.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SIM_VERSION "0.9.0"

enum {
    SIM_ALIGNMENT = 256, /* of every allocation; also the gap that is left between two handles */
    SIM_MAX_RANK = 64,
    SIM_MAX_USES = 9, /* allocations that a command works on */
    SIM_MESSAGE = 320 /* bytes of an error message */
};

/* ---- memory ------------------------------------------------------------------------------ */

/* The bytes of an allocation. The device's table and every queued command that works on them hold
 * a reference, so that a free that comes too early is an error of the stream and not a crash. */
typedef struct sim_block {
    tn_instance *self;
    atomic_uint references;
    atomic_bool freed;
    int32_t space;   /* tn_memory_space */
    uint64_t handle; /* an address inside the device's reservation */
    uint64_t bytes;
    char *data; /* where the bytes really are */
} sim_block;

/* An entry of a table: the addresses [start, start + span) are taken. */
typedef struct sim_allocation {
    uint64_t start, span;
    sim_block *block;
} sim_allocation;

/* The blocks of a call or of a command. */
typedef struct sim_uses {
    uint32_t n;
    sim_block *blocks[SIM_MAX_USES];
} sim_uses;

/* Allocations sorted by `start`. The owner locks. */
typedef struct sim_table {
    sim_allocation *entries;
    uint64_t n, capacity;
} sim_table;

/* Commands that are held back (schedule.c). */
typedef struct sim_hold sim_hold;

typedef struct sim_schedule {
    pthread_mutex_t lock; /* guards holds */
    sim_hold *holds;
    atomic_ullong tickets; /* commands queued so far, in all streams */
    atomic_ullong streams; /* streams made so far */
} sim_schedule;

/* ---- the handles of plugin.h, completed -------------------------------------------------- */

struct tn_instance {
    const tn_host *host;
    sim_options options;
    sim_schedule schedule;
};

struct tn_device_impl {
    tn_instance *self;
    uint32_t index;
    void *reservation; /* address space nobody may touch; handles point into it */
    uint64_t reserved_bytes;
    uint64_t limit_bytes; /* how much device memory there is */

    pthread_mutex_t lock; /* guards what follows */
    sim_table allocations;
    uint64_t cursor; /* where the search for an unused handle goes on */
    uint64_t used_bytes;

    atomic_bool lost;
    atomic_ullong n_commands;          /* run so far; counted when the device is to be lost */
    atomic_ullong calls[SIM_N_FAULTS]; /* counted where there is a rule */

    atomic_uint n_streams, n_events, n_graphs; /* still alive, to tell the host of leaks at close */
};

/* Work in a queue, or recorded. `run` is called on a stream's thread: once, then the stream frees
 * the command, or for each launch of the graph that has it. A status other than TN_OK, with its
 * text in `message`, becomes the stream's error. A command whose memory was freed, or whose
 * device is lost, is not run, but for marks: others wait for those. */
typedef struct sim_command {
    struct sim_command *next;
    tn_status (*run)(struct sim_command *command, char message[SIM_MESSAGE]);
    sim_uses uses;
    uint64_t ticket;     /* its place among the commands of all streams */
    bool never_recorded; /* as marks are: a capture that begins meanwhile comes after it */
    bool is_mark;
} sim_command;

typedef struct sim_recording sim_recording;

struct tn_stream_impl {
    tn_device_impl *device;
    uint64_t number; /* among the streams of the plugin */
    pthread_t thread;
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t work;     /* a command was queued, or stop was set */
    pthread_cond_t progress; /* done has grown */
    sim_command *head, **tail;
    uint64_t queued, done;    /* commands so far: queued == done is an idle stream */
    uint32_t n_waiters;       /* threads waiting for progress */
    bool idle, stop;          /* the thread sleeps; the thread is to end when nothing is queued */
    sim_recording *recording; /* while it captures */
    tn_status error;          /* the first since errors were last reported */
    char message[SIM_MESSAGE];
};

typedef struct sim_mark sim_mark;

struct tn_event_impl {
    tn_device_impl *device;
    uint32_t flags;
    pthread_mutex_t lock; /* guards mark */
    sim_mark *mark;       /* the latest; NULL before the first record */
};

/* ---- errors (error.c) -------------------------------------------------------------------- */

/* Hands the formatted message to the host and returns `status`. */
tn_status sim_fail(const tn_instance *self, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* TN_ERR_DEVICE_LOST, with a message, once the device is lost. */
tn_status sim_check_lost(tn_device_impl *device);

/* ---- devices (device.c) ------------------------------------------------------------------ */

extern const tn_device_ops sim_device_ops;

/* ---- memory (memory.c) ------------------------------------------------------------------- */

extern const tn_memory_ops sim_memory_ops;

/* Host memory for an object of the plugin. On failure tells the host and returns NULL; the caller
 * returns TN_ERR_OUT_OF_MEMORY. */
void *sim_host_alloc(const tn_instance *self, uint64_t bytes, const char *what);

/* Frees what is still allocated on a device that is closed. */
void sim_memory_finish(tn_device_impl *device);

/* Does the device have memory of this space? */
bool sim_has_space(const tn_instance *self, int32_t space);

/* The bytes behind [offset, offset + bytes) of an allocation of device memory, which is added to
 * `uses`. A handle that names none or a range outside it fails with a message that starts with
 * `what`. */
tn_status sim_resolve(tn_device_impl *device, const char *what, tn_memory memory, uint64_t offset,
                      uint64_t bytes, sim_uses *uses, char **out_data);

/* Gives the blocks back. */
void sim_uses_drop(sim_uses *uses);

/* A block that was freed, or NULL. */
const sim_block *sim_uses_freed(const sim_uses *uses);

/* The same for [host, host + bytes), which must lie in the pinned allocation `pinned`. */
tn_status sim_resolve_pinned(tn_device_impl *device, const char *what, tn_memory pinned,
                             const void *host, uint64_t bytes, sim_uses *uses);

/* ---- transfers (transfer.c); the slots of tn_memory_ops ---------------------------------- */

tn_status sim_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, const void *src, tn_memory src_pinned,
                             uint64_t bytes);
tn_status sim_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                           tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                           uint64_t bytes);
tn_status sim_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes);
tn_status sim_copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                        uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                        uint64_t src_offset, uint64_t bytes);
tn_status sim_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, uint8_t value, uint64_t bytes);

/* ---- failures on demand (fault.c) -------------------------------------------------------- */

/* To be called first by a function of SIM_FAULTS: fails on a lost device, or when it is to. */
tn_status sim_enter(tn_device_impl *device, enum sim_fault fault);

/* The same for the work of a kernel, when it runs. */
tn_status sim_kernel_fault(tn_device_impl *device, const char *op, char message[SIM_MESSAGE]);

/* Counts a command that is about to run; false when the device is lost. */
bool sim_count_command(tn_device_impl *device);

/* ---- the order of streams (schedule.c) --------------------------------------------------- */

void sim_schedule_init(sim_schedule *schedule);
void sim_schedule_finish(sim_schedule *schedule);

/* Holds the head of a stream back, where TENON_SIM_DELAY asks for it. On the stream's thread. */
void sim_schedule_hold(tn_stream_impl *stream, const sim_command *command);

/* ---- streams (stream.c) ------------------------------------------------------------------ */

extern const tn_stream_ops sim_stream_ops;

/* A stream that belongs to `device`, or a failure. */
tn_status sim_stream_check(tn_device_impl *device, const tn_stream_impl *stream, const char *what);

/* Appends a command, which now belongs to the stream, and returns its place in the queue; while the
 * stream captures, to what is recorded, unless it never is. */
uint64_t sim_stream_push(tn_stream_impl *stream, sim_command *command);

/* Runs a command, unless its device is lost or its memory was freed. */
tn_status sim_command_run(tn_device_impl *device, sim_command *command, char message[SIM_MESSAGE]);
void sim_command_free(const tn_instance *self, sim_command *command);

/* Waits until the command at `place` has run. */
void sim_stream_wait(tn_stream_impl *stream, uint64_t place);

/* ---- events (event.c) -------------------------------------------------------------------- */

extern const tn_event_ops sim_event_ops;

/* ---- captures (capture.c) ---------------------------------------------------------------- */

extern const struct tn_ext_capture sim_ext_capture;

/* TN_ERR_STATE, with a message, while the stream captures: for what cannot be recorded. */
tn_status sim_check_capture(tn_stream_impl *stream, const char *what);

void sim_recording_add(sim_recording *recording, sim_command *command);

#endif
