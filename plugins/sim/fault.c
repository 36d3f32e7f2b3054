/* Failures and the loss of a device, on demand. */
#include "plugins/sim/sim.h"

#include <stdio.h>

static const struct {
    const char *name;
    tn_status status;
} faults[] = {
#define FAULT(name, status) {#name, status},
    SIM_FAULTS(FAULT)
#undef FAULT
};

static bool is_due(tn_device_impl *device, enum sim_fault fault, uint64_t *out_call) {
    uint64_t rule = device->self->options.fail[fault];
    if (!rule)
        return false;
    *out_call = atomic_fetch_add(&device->calls[fault], 1) + 1;
    return rule == SIM_EVERY || rule == *out_call;
}

tn_status sim_enter(tn_device_impl *device, enum sim_fault fault) {
    uint64_t call;
    tn_status status = sim_check_lost(device);
    if (status == TN_OK && is_due(device, fault, &call))
        status = sim_fail(device->self, faults[fault].status,
                          "sim:%u: call %llu of %s fails, as TENON_SIM_FAIL asks", device->index,
                          (unsigned long long)call, faults[fault].name);
    return status;
}

tn_status sim_kernel_fault(tn_device_impl *device, const char *op, char message[SIM_MESSAGE]) {
    uint64_t call;
    if (!is_due(device, SIM_FAULT_kernel, &call))
        return TN_OK;
    snprintf(message, SIM_MESSAGE, "%s: kernel %llu of sim:%u fails, as TENON_SIM_FAIL asks", op,
             (unsigned long long)call, device->index);
    return faults[SIM_FAULT_kernel].status;
}

bool sim_count_command(tn_device_impl *device) {
    const sim_options *options = &device->self->options;
    if (options->lose &&
        (options->lose_device == SIM_EVERY || options->lose_device == device->index) &&
        atomic_fetch_add(&device->n_commands, 1) + 1 == options->lose)
        atomic_store_explicit(&device->lost, true, memory_order_release);
    return !atomic_load_explicit(&device->lost, memory_order_acquire);
}
