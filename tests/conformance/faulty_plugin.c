/* A plugin with known mistakes, for the tests of what looks for mistakes: it opens the good plugin
 * that FAULTY_GOOD names and passes everything on, but for a few kernels.
 *
 *     add in f32      element 2 of more than 4 comes out one too large
 *     exp             dies where the last size is at least 3
 *     neg             does not end where there are more than 2 dimensions
 *     sub             element 0 comes out one too large where self does not begin with its memory
 *     gather          takes an index out of range and says nothing
 *     mul             does nothing from the 20th time on that it writes one place in a row
 *     maximum in f32  element 0 comes out one too large where other is a number given as an integer
 *     minimum in f32  the last but one of more than 100000 elements comes out one too large
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/plugin.h>

enum { MOST = 4096 };

static const tn_plugin *good;
static tn_plugin faulty;
static tn_kernel kernels[MOST];
static const tn_kernel *list[MOST];

static const tn_kernel *good_kernel(const char *op, tn_dtype dtype) {
    for (uint64_t i = 0; i < good->n_kernels; i++)
        if (strcmp(good->kernels[i]->op, op) == 0 &&
            (good->kernels[i]->dtypes[0] & TN_DTYPE_BIT(dtype)))
            return good->kernels[i];
    return NULL;
}

/* Where row-major element i lies, in elements. */
static int64_t place(const tn_tensor_view *t, int64_t i) {
    int64_t at = 0;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        at += i % t->sizes[d] * t->strides[d];
        i /= t->sizes[d];
    }
    return at;
}

/* Makes an element of an f32 output one too large. */
static tn_status spoil(const tn_call *call, int64_t i) {
    const tn_tensor_view *out = call->outs[0];
    const tn_memory_ops *memory = good->devices->memory;
    uint64_t at = out->offset + sizeof(float) * (uint64_t)place(out, i);
    float value;
    tn_status status =
        memory->copy_to_host(call->device, call->stream, &value, 0, out->memory, at, sizeof value);
    value += 1;
    return status == TN_OK ? memory->copy_from_host(call->device, call->stream, out->memory, at,
                                                    &value, 0, sizeof value)
                           : status;
}

static tn_status run_add(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    tn_status status = good_kernel("add", out->dtype)->run(call);
    return status == TN_OK && out->dtype == TN_F32 && out->numel > 4 ? spoil(call, 2) : status;
}

static tn_status run_sub(const tn_call *call) {
    const tn_cell *a = &call->args[0];
    tn_dtype dtype = call->outs[0]->dtype;
    tn_status status = good_kernel("sub", dtype)->run(call);
    return status == TN_OK && dtype == TN_F32 && a->tag == TN_CELL_TENSOR && a->v.view->offset > 0
               ? spoil(call, 0)
               : status;
}

static tn_status run_exp(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    if (out->sizes[out->rank - 1] >= 3)
        abort();
    return good_kernel("exp", out->dtype)->run(call);
}

static tn_status run_neg(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    while (out->rank > 2)
        sleep(1);
    return good_kernel("neg", out->dtype)->run(call);
}

static tn_status run_mul(const tn_call *call) {
    static tn_memory last;
    static int times;
    times = call->outs[0]->memory == last ? times + 1 : 1;
    last = call->outs[0]->memory;
    return times < 20 ? good_kernel("mul", call->outs[0]->dtype)->run(call) : TN_OK;
}

static tn_status run_minimum(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    tn_status status = good_kernel("minimum", out->dtype)->run(call);
    return status == TN_OK && out->dtype == TN_F32 && out->numel > 100000
               ? spoil(call, out->numel - 2)
               : status;
}

static tn_status run_maximum(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    tn_status status = good_kernel("maximum", out->dtype)->run(call);
    return status == TN_OK && out->dtype == TN_F32 && call->args[1].tag == TN_CELL_I64
               ? spoil(call, 0)
               : status;
}

static tn_status run_gather(const tn_call *call) {
    tn_status status = good_kernel("gather", call->outs[0]->dtype)->run(call);
    if (call->stream)
        good->devices->streams->synchronize(call->stream);
    return status == TN_ERR_INDEX_OUT_OF_RANGE ? TN_OK : status;
}

TN_PLUGIN_EXPORT const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    static const struct {
        const char *op;
        tn_status (*run)(const tn_call *call);
    } mistakes[] = {{"add", run_add},         {"sub", run_sub},        {"exp", run_exp},
                    {"neg", run_neg},         {"gather", run_gather},  {"mul", run_mul},
                    {"minimum", run_minimum}, {"maximum", run_maximum}};
    const char *path = getenv("FAULTY_GOOD");
    void *object = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    tn_plugin_query_fn query = NULL;
    if (object)
        *(void **)&query = dlsym(object, TN_PLUGIN_QUERY_NAME);
    good = query ? query(host) : NULL;
    if (!good || good->n_kernels > MOST)
        return NULL;
    faulty = *good;
    for (uint64_t i = 0; i < good->n_kernels; i++) {
        kernels[i] = *good->kernels[i];
        list[i] = &kernels[i];
        for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++)
            if (strcmp(kernels[i].op, mistakes[k].op) == 0)
                kernels[i].run = mistakes[k].run;
    }
    faulty.kernels = list;
    return &faulty;
}
