/* tenon/ext/threads.h: extension "tenon.threads/1", offered by plugins that compute on host
 * threads.
 *
 * The core asks for it when tn_set_num_threads is called and when a device is opened. */
#ifndef TENON_EXT_THREADS_H
#define TENON_EXT_THREADS_H

#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_EXT_THREADS "tenon.threads/1"

typedef struct tn_ext_threads {
    uint64_t struct_size;

    /* Each call of `run` of this instance from now on, by whichever thread, uses at most `n` (at
     * least 1; more than the plugin can: as many as it can) host threads, those that were prepared
     * before included. The thread that calls counts where it computes; threads that sleep do not.
     * [any-thread] [plugin init] [required] */
    tn_status (*set_num_threads)(tn_instance *self, uint32_t n);

    /* How many they use at most now, which may be fewer than were asked for. [any-thread] [plugin
     * init] [required] */
    uint32_t (*get_num_threads)(tn_instance *self);
} tn_ext_threads;

TN_LAST_MEMBER(tn_ext_threads, get_num_threads);

#ifdef __cplusplus
}
#endif

#endif /* TENON_EXT_THREADS_H */
