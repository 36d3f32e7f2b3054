/* What the profiler's parts share, and the note by which a call tells how it was done. */
#ifndef TNI_CORE_PROFILE_PROFILE_H
#define TNI_CORE_PROFILE_PROFILE_H

#include "core/device/device.h"

#include <tenon/profile.h>

/* Left by the call under way in this thread; written where it is decided how a call is done, read
 * by the Profile handler. A store or two, so it is always there. */
typedef struct tni_run_note {
    const tni_kernel *kernel; /* that ran, for TN_PROFILE_KERNEL */
    tn_profile_how how;
} tni_run_note;
extern TNI_TLS tni_run_note tni_noted;

static inline void tni_note_kernel(const tni_kernel *kernel) {
    tni_noted = (tni_run_note){kernel, TN_PROFILE_KERNEL};
}
static inline void tni_note(tn_profile_how how) {
    tni_noted = (tni_run_note){NULL, how};
}

/* Hangs in the Profile key's handler when TENON_PROFILE or TENON_LOG=dispatch asks for it; called
 * once the operators are defined. */
tn_status tni_profile_init(void);
/* Writes what TENON_PROFILE asked for and frees everything; in tn_shutdown, before operators go. */
void tni_profile_finish(void);

/* ---- handler.c and events.c, to each other ----------------------------------------------- */

/* The handler in or out of the rows. */
tn_status tni_profile_switch(bool on);
/* Forgets all events and starts the clock. */
void tni_profile_clear(void);

/* ---- events.c: what was recorded --------------------------------------------------------- */

enum { TNI_PROFILE_ARGS = 120 };

typedef struct tni_event {
    tn_profile_event shown; /* strings point to static or registry memory, or to `args` */
    char args[TNI_PROFILE_ARGS];
    tni_device *device;
    tn_event_impl *begin, *end; /* on the device; NULL: none, or read already */
} tni_event;

/* Starts a call's event: clocks, and the device's. */
void tni_event_begin(tni_event *e, tni_device *device);
/* Ends it and keeps a copy. Without `work` the device has no time to tell of. */
void tni_event_end(tni_event *e, bool work);

/* ---- describe.c -------------------------------------------------------------------------- */

/* "f32[2, 3], f32[3]": the tensors among the arguments; cut short with "..." where there is no
 * room. Returns out. */
char *tni_describe_args(const tn_op *op, const tn_cell *args, char *out, size_t room);
/* The device of the first tensor, or of the device argument; NULL when there is none. */
tni_device *tni_call_place(const tn_op *op, const tn_cell *args);
const char *tni_how_name(tn_profile_how how);

#endif
