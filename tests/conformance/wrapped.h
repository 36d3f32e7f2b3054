/* A plugin made of another one, for devices that do something their own way: the one that a variable of the environment
 * names is opened, and the kernels of a copy of its table pass on what is asked of them.
 */
#ifndef TNI_TESTS_CONFORMANCE_WRAPPED_H
#define TNI_TESTS_CONFORMANCE_WRAPPED_H

#include <dlfcn.h>
#include <stdlib.h>

#include <tenon/plugin.h>

/* Called before anybody asks, by a constructor: a query allocates nothing. NULL: no such plugin. */
static tn_plugin_query_fn wrapped_open(const char *variable) {
    tn_plugin_query_fn query = NULL;
    const char *path = getenv(variable);
    void *object = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (object)
        *(void **)&query = dlsym(object, TN_PLUGIN_QUERY_NAME);
    return query;
}

/* The record of a call's kernel, and the call as that is to get it: with its own `user`. */
static const tn_kernel *wrapped_call(const tn_call *call, tn_call *out_own) {
    const tn_kernel *record = call->user;
    *out_own = *call;
    out_own->user = record->user;
    return record;
}

static tn_status wrapped_run(const tn_call *call) {
    tn_call own;
    return wrapped_call(call, &own)->run(&own);
}

static tn_status wrapped_supports(const tn_call *call) {
    tn_call own;
    return wrapped_call(call, &own)->supports(&own);
}

static tn_status wrapped_prepare(const tn_call *call, tn_plan *out) {
    tn_call own;
    return wrapped_call(call, &own)->prepare(&own, out);
}

static void wrapped_abandon(const tn_call *call) {
    tn_call own;
    wrapped_call(call, &own)->abandon(&own);
}

/* Makes `kernel`, a copy of `record`, one that passes on; run and prepare may be replaced then. */
static inline void wrapped_kernel(tn_kernel *kernel, const tn_kernel *record) {
    kernel->user = (void *)(uintptr_t)record;
    kernel->run = wrapped_run;
    kernel->supports = record->supports ? wrapped_supports : NULL;
    kernel->prepare = record->prepare ? wrapped_prepare : NULL;
    kernel->abandon = record->abandon ? wrapped_abandon : NULL;
}

#endif
