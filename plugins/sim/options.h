/* What the user can set, TENON_SIM_<NAME> each. Read once, by init. */
#ifndef TNI_PLUGINS_SIM_OPTIONS_H
#define TNI_PLUGINS_SIM_OPTIONS_H

#include <tenon/plugin.h>

#include <stdbool.h>

/* Functions that can be made to fail, and with what. `kernel` is the work itself: its failure
 * surfaces at the next query or synchronize. */
#define SIM_FAULTS(X) \
    X(alloc, TN_ERR_OUT_OF_MEMORY) \
    X(stream, TN_ERR_OUT_OF_MEMORY) \
    X(event, TN_ERR_OUT_OF_MEMORY) \
    X(write, TN_ERR_INTERNAL) \
    X(read, TN_ERR_INTERNAL) \
    X(copy, TN_ERR_INTERNAL) \
    X(copy_peer, TN_ERR_INTERNAL) \
    X(fill, TN_ERR_INTERNAL) \
    X(run, TN_ERR_INTERNAL) \
    X(record, TN_ERR_INTERNAL) \
    X(wait, TN_ERR_INTERNAL) \
    X(sync, TN_ERR_INTERNAL) \
    X(kernel, TN_ERR_INTERNAL) \
    X(begin, TN_ERR_INTERNAL) \
    X(end, TN_ERR_INTERNAL) \
    X(launch, TN_ERR_INTERNAL)

enum sim_fault {
#define SIM_FAULT_ENUM(name, status) SIM_FAULT_##name,
    SIM_FAULTS(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
        SIM_N_FAULTS
};

enum { SIM_MAX_DEVICES = 8 };

/* The value of a rule or of `lose_device` that means all. */
#define SIM_EVERY UINT64_MAX

typedef struct sim_options {
    uint64_t devices;
    uint64_t memory; /* bytes of each device */
    bool poison;
    bool pinned;        /* there is pinned memory */
    bool host_pointers; /* device memory has them, too */
    uint64_t seed;
    uint64_t delay_us;           /* 0: commands run as soon as they can */
    uint64_t fail[SIM_N_FAULTS]; /* the call that fails, from 1; 0 none; SIM_EVERY */
    uint64_t lose;               /* the command at which a device is lost, from 1; 0 never */
    uint64_t lose_device;        /* which one, or SIM_EVERY */
} sim_options;

/* Fills `out`. A value that cannot be obeyed fails with the option, the value and what is allowed.
 * For init, where host->option takes no self yet. */
tn_status sim_options_read(const tn_host *host, sim_options *out);

#endif
