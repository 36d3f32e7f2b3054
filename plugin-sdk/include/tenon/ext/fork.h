/* tenon/ext/fork.h: extension "tenon.fork/1", offered by plugins that say TN_PLUGIN_FORK_SAFE and
 * have locks, their own or those of a library below them.
 *
 * A forked child has the calling thread alone, and the memory of all: a lock that another thread
 * held is held there for ever. The core asks for the extension when a device is opened. At a fork it
 * calls `before`, then, in the parent and in the child, `after`; other threads may be in any call.
 * Each host of a process calls both for its own instances, on the thread that forks, in no order that
 * the others know: nested or not, and one may do so while another is between the two.
 * Rather than pthread_atfork: functions registered there are called before the library has its own
 * locks, and who waits there for a thread that waits for one of these waits for ever. */
#ifndef TENON_EXT_FORK_H
#define TENON_EXT_FORK_H

#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_EXT_FORK "tenon.fork/1"

typedef struct tn_ext_fork {
    uint64_t struct_size;

    /* The process is about to fork: returns when no thread is where the child must not find it, and
     * until `after` none goes there. Calls nothing of the host, and waits for no thread that may be
     * calling it. Once, however many devices are open. [one-thread] [device open] [required] */
    void (*before)(tn_instance *self);

    /* The process forked, or could not: undoes `before`, called by the same thread. `in_child` is 1
     * in the child and 0 in the parent. Calls nothing of the host. [one-thread] [device open]
     * [required] */
    void (*after)(tn_instance *self, int32_t in_child);
} tn_ext_fork;

TN_LAST_MEMBER(tn_ext_fork, after);

#ifdef __cplusplus
}
#endif

#endif /* TENON_EXT_FORK_H */
