/* tn_shutdown: the order in which everything ends. */
#include "base/error.h"
#include "base/slab.h"
#include "core/call/init.h"
#include "core/device/open.h"
#include "core/graph/graph.h"
#include "core/profile/profile.h"
#include "core/random/generator.h"
#include "core/tensor/tensor.h"
#include "dispatcher/registry.h"

tn_status tn_shutdown(void) {
    if (tni_devices_enter())
        return tn_error_status();
    tni_lock_give(&tni_devices_lock);
    int64_t graphs = tni_graphs_alive();
    if (graphs > 0)
        return tni_fail(TN_ERR_STATE, "tn_shutdown: %lld %s alive; give each to tn_graph_destroy",
                        (long long)graphs, graphs == 1 ? "graph is" : "graphs are");
    int64_t alive = tni_tensors_alive() - tni_tensors_left_behind();
    if (alive > 0) {
        uint64_t held = tn_scope_held();
        return tni_fail(TN_ERR_STATE,
                        "tn_shutdown: %lld %s alive (%llu held by this thread's scopes); drop"
                        " what was kept (storages count too), close scopes with tn_scope_close(0), "
                        "and end other"
                        " threads first",
                        (long long)alive, alive == 1 ? "tensor is" : "tensors are",
                        (unsigned long long)held);
    }
    /* The thread's caches go back to their devices while there are any. */
    tni_profile_finish();
    tni_thread_run_exit();
    tni_core_finish();
    tni_devices_finish();
    tni_generators_finish();
    tni_loader_finish();
    tni_registry_finish();
    tni_lifetimes_finish();
    /* What the above registered for the thread's end uses slabs and errors. */
    tni_thread_run_exit();
    tni_slab_release_all();
    return TN_OK;
}
