/* Operators that programs define, and the kernels they give them: how a call is adapted, what goes
 * to the composition, and what is left after unregistering. */
#include "tests/core/ops_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/fallback.h>
#include <tenon/introspect.h>
#include <tenon/kernels.h>

static _Atomic int n_kernel_calls, n_compositions;
static tn_op *op;
static tn_registration *definition;

static void define(const char *schema) {
    op = tn_op_define(schema, "mylib 1.0", &definition);
    if (!op)
        fail_msg("%s", tn_error_message());
    n_kernel_calls = n_compositions = 0;
}

/* ---- mylib::mix(x, y, a) = x + a * y, as kernel for f32 and as composition --------------- */

static tn_status run_mix(const tn_call *call) {
    const tn_tensor_view *x = call->args[0].v.view, *y = call->args[1].v.view;
    const float *px = tn_view_address(x), *py = tn_view_address(y);
    float *out = tn_view_address(call->outs[0]), a = (float)call->args[2].v.f64;
    assert_int_equal(call->args[2].tag, TN_CELL_F64);
    assert_int_equal(x->numel, y->numel);
    for (int64_t i = 0; i < x->numel; i++)
        out[i] = px[i] + a * py[i];
    n_kernel_calls++;
    return TN_OK;
}

static tn_status compose_mix(const tn_op *self, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                             void *user) {
    TN_SCOPE;
    n_compositions++;
    tn_tensor *sum = tn_add(args[0].v.pointer, args[1].v.pointer, args[2]);
    rets[0].tag = sum ? TN_CELL_TENSOR : TN_CELL_NONE;
    rets[0].v.pointer = tn_keep(sum);
    return sum ? TN_OK : tn_error_status();
}

static const tn_kernel mix_kernel = {.struct_size = sizeof mix_kernel,
                                     .op = "mylib::mix",
                                     .dtypes = {TN_DTYPE_BIT(TN_F32)},
                                     .run = run_mix};

static void define_mix(void) {
    define("mylib::mix(Tensor x, Tensor y, Scalar a=1) -> Tensor");
}
static tn_registration *composed(void) {
    return tn_handler_register(op, TN_KEY_BACKEND, NULL, compose_mix, NULL, "mylib composition");
}

static tn_tensor *mix(tn_tensor *x, tn_tensor *y, double a) {
    tn_cell args[] = {{.tag = TN_CELL_TENSOR, .v.pointer = x},
                      {.tag = TN_CELL_TENSOR, .v.pointer = y},
                      {.tag = TN_CELL_F64, .v.f64 = a}};
    tn_cell ret;
    return tn_op_call(op, args, 3, &ret) == TN_OK ? tn_give(ret.v.pointer) : NULL;
}

static void a_kernel_gets_contiguous_tensors_of_one_shape(void **state) {
    define_mix();
    assert_non_null(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    tn_tensor *y = of(TN_F32, TN_SHAPE(3, 1), 10, 20, 30);
    assert_tensor(mix(x, x, 2), TN_F32, TN_SHAPE(2, 3), 0, 3, 6, 9, 12, 15, 18);
    /* transposed by broadcast */
    assert_tensor(mix(tn_transpose(x, 0, 1), y, 1), TN_F32, TN_SHAPE(3, 2), 0, 11, 14, 22, 25, 33,
                  36);
    assert_tensor(mix(of(TN_F32, TN_SCALAR_SHAPE, 1), y, 1), TN_F32, TN_SHAPE(3, 1), 0, 11, 21, 31);
    assert_int_equal(n_kernel_calls, 3);
    /* nothing to do for the kernel */
    assert_shape(mix(tn_zeros(TN_SHAPE(0, 3), TN_F32), of(TN_F32, TN_SHAPE(3), 1, 2, 3), 1), 0, 3);
    assert_int_equal(n_kernel_calls, 3);
    assert_fails(mix(x, y, 1), TN_ERR_SHAPE,
                 "mylib::mix: shapes do not broadcast: [2, 3] and [3, 1]", "'y'");
}

static void what_no_kernel_takes_is_composed(void **state) {
    define_mix();
    composed();
    assert_non_null(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
    tn_tensor *f = of(TN_F32, TN_SHAPE(2), 1, 2), *d = of(TN_F64, TN_SHAPE(2), 1, 2);
    bool is_cpu = tn_device_equal(dev, tn_device_parse("cpu:0"));
    assert_tensor(mix(f, f, 2), TN_F32, TN_SHAPE(2), 0, 3, 6);
    assert_int_equal(n_kernel_calls, is_cpu);
    assert_int_equal(n_compositions, !is_cpu);
    assert_tensor(mix(d, d, 2), TN_F64, TN_SHAPE(2), 0, 3, 6);
    assert_tensor(mix(f, d, 2), TN_F64, TN_SHAPE(2), 0, 3, 6); /* promoted by add */
}

static void without_a_composition_a_wrong_dtype_is_refused(void **state) {
    define_mix();
    assert_non_null(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
    tn_tensor *f = of(TN_F32, TN_SHAPE(2), 1, 2), *i = of(TN_I32, TN_SHAPE(2), 1, 2);
    assert_fails(mix(i, i, 1), TN_ERR_UNSUPPORTED, "mylib::mix", "cpu:0 has no kernel for i32");
    assert_fails(mix(f, i, 1), TN_ERR_UNSUPPORTED, "mylib::mix", "cpu:0 has no kernel for f32");
    assert_int_equal(n_kernel_calls, 0);
}

static void a_device_without_the_kernel_falls_back_when_asked(void **state) {
    define_mix();
    assert_non_null(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
    tn_tensor *f = of(TN_F32, TN_SHAPE(2), 1, 2);
    assert_fails(mix(f, f, 1), TN_ERR_UNSUPPORTED, "mylib::mix: sim:0 has no kernel for f32",
                 "TENON_FALLBACK=cpu");
    tn_fallback_set_policy(TN_FALLBACK_CPU);
    assert_tensor(mix(f, f, 1), TN_F32, TN_SHAPE(2), 0, 2, 4);
    tn_fallback_set_policy(TN_FALLBACK_ERROR);
    assert_int_equal(n_kernel_calls, 1);
    assert_int_equal(tn_fallback_count(), 1);
}

static void an_operator_without_anything_says_so(void **state) {
    define_mix();
    tn_tensor *f = of(TN_F32, TN_SHAPE(2), 1, 2);
    assert_fails(mix(f, f, 1), TN_ERR_UNSUPPORTED, "mylib::mix: cpu:0 has no kernel for f32");
    tn_tensor *m = tn_empty(TN_SHAPE(2), TN_F32, tn_device_parse("meta"));
    assert_fails(mix(m, m, 1), TN_ERR_UNSUPPORTED, "mylib::mix", "meta:0", "Backend handler");
    assert_fails(mix(f, m, 1), TN_ERR_DEVICE, "mylib::mix", "cpu:0", "meta:0");
}

/* ---- the outputs function ---------------------------------------------------------------- */

/* mylib::pick(x, index, k) -> (values, counts): rows of x by index; counts holds k, of i64 */
static tn_status pick_outputs(const tn_cell *args, tn_output *outputs, void *user) {
    const tn_tensor *x = args[0].v.pointer, *index = args[1].v.pointer;
    assert_int_equal(outputs[0].dtype, tn_dtype_of(x));
    assert_int_equal(outputs[1].rank, tn_rank(x));
    if (tn_rank(index) != 1)
        return tn_fail(TN_ERR_SHAPE, "mylib::pick: index must have one dimension");
    outputs[0].sizes[0] = tn_size(index, 0);
    outputs[1] = (tn_output){.dtype = TN_I64, .rank = args[2].v.i64 < 0 ? -1 : 0};
    return args[2].v.i64 == 13 ? TN_ERR_UNSUPPORTED : TN_OK;
}

static tn_status run_pick(const tn_call *call) {
    const tn_tensor_view *x = call->args[0].v.view, *index = call->args[1].v.view;
    const float *px = tn_view_address(x);
    const int64_t *at = tn_view_address(index);
    float *out = tn_view_address(call->outs[0]);
    int64_t n = x->sizes[1];
    for (int64_t i = 0; i < index->numel; i++) {
        if (at[i] < 0 || at[i] >= x->sizes[0])
            return tn_fail(TN_ERR_INDEX_OUT_OF_RANGE, "row %lld is not there", (long long)at[i]);
        memcpy(out + i * n, px + at[i] * n, (size_t)n * sizeof *out);
    }
    *(int64_t *)tn_view_address(call->outs[1]) =
        call->args[2].v.i64 + (int64_t)call->workspace_bytes;
    return TN_OK;
}
static tn_status pick_prepare(const tn_call *call, tn_plan *out) {
    out->workspace_bytes = 100;
    return TN_OK;
}
static tn_status pick_supports(const tn_call *call) {
    return call->args[2].v.i64 == 7 ? TN_ERR_UNSUPPORTED : TN_OK;
}

static const tn_kernel pick_kernel = {
    .struct_size = sizeof pick_kernel,
    .op = "mylib::pick",
    .dtypes = {TN_DTYPE_BIT(TN_F32), TN_DTYPE_BIT(TN_I64)},
    .run = run_pick,
    .supports = pick_supports,
    .prepare = pick_prepare,
};

static tn_tensor *pick(tn_tensor *x, tn_tensor *index, int64_t k, tn_tensor **out_counts) {
    tn_cell args[] = {{.tag = TN_CELL_TENSOR, .v.pointer = x},
                      {.tag = TN_CELL_TENSOR, .v.pointer = index},
                      {.tag = TN_CELL_I64, .v.i64 = k}};
    tn_cell rets[2];
    *out_counts = NULL;
    if (tn_op_call(op, args, 3, rets) != TN_OK)
        return NULL;
    *out_counts = tn_give(rets[1].v.pointer);
    return tn_give(rets[0].v.pointer);
}

static void the_outputs_function_says_shapes_and_dtypes(void **state) {
    define("mylib::pick(Tensor x, Tensor index, int k) -> (Tensor values, Tensor counts)");
    assert_non_null(tn_kernel_register("cpu", &pick_kernel, pick_outputs, "mylib 1.0"));
    tn_tensor *x = counting(TN_F32, TN_SHAPE(3, 2)), *counts;
    tn_tensor *index = of(TN_I64, TN_SHAPE(2), 2, 0);
    assert_tensor(pick(x, index, 5, &counts), TN_F32, TN_SHAPE(2, 2), 0, 4, 5, 0, 1);
    assert_tensor(counts, TN_I64, TN_SCALAR_SHAPE, 0, 105);

    assert_fails(pick(x, x, 5, &counts), TN_ERR_UNSUPPORTED,
                 "no kernel for f32"); /* index is no i64 */
    assert_fails(pick(x, index, 7, &counts), TN_ERR_UNSUPPORTED,
                 "no kernel");                                     /* supports says no */
    assert_fails(pick(x, index, -1, &counts), TN_ERR_SHAPE, "-1"); /* a rank of -1 */
    assert_fails(pick(x, index, 13, &counts), TN_ERR_UNSUPPORTED, "mylib::pick",
                 "without a message");
    assert_fails(pick(x, of(TN_I64, TN_SHAPE(1, 1), 0), 5, &counts), TN_ERR_SHAPE,
                 "index must have one dimension");
    assert_fails(pick(x, of(TN_I64, TN_SHAPE(1), 9), 5, &counts), TN_ERR_INDEX_OUT_OF_RANGE,
                 "row 9 is not there");
}

/* mylib::total(xs, start=None) -> the sum of all elements of a list */
static tn_status total_outputs(const tn_cell *args, tn_output *outputs, void *user) {
    outputs[0].rank = 0;
    return TN_OK;
}
static tn_status run_total(const tn_call *call) {
    double sum = call->args[1].tag == TN_CELL_TENSOR
                     ? *(const float *)tn_view_address(call->args[1].v.view)
                     : 0;
    for (uint32_t i = 0; i < call->args[0].n; i++) {
        const tn_tensor_view *x = call->args[0].v.views[i];
        for (int64_t j = 0; j < x->numel; j++)
            sum += ((const float *)tn_view_address(x))[j];
    }
    *(float *)tn_view_address(call->outs[0]) = (float)sum;
    return TN_OK;
}
static const tn_kernel total_kernel = {.struct_size = sizeof total_kernel,
                                       .op = "mylib::total",
                                       .dtypes = {TN_DTYPE_BIT(TN_F32)},
                                       .run = run_total};

static tn_tensor *total(tn_tensor **xs, uint32_t n, tn_tensor *start) {
    tn_cell args[] = {{.tag = TN_CELL_TENSORS, .n = n, .v.pointer = xs},
                      {.tag = start ? TN_CELL_TENSOR : TN_CELL_NONE, .v.pointer = start}};
    tn_cell ret;
    return tn_op_call(op, args, 2, &ret) == TN_OK ? tn_give(ret.v.pointer) : NULL;
}

static void lists_of_tensors_arrive_as_views(void **state) {
    define("mylib::total(Tensor[] xs, Tensor? start=None) -> Tensor");
    assert_non_null(tn_kernel_register("cpu", &total_kernel, total_outputs, "mylib 1.0"));
    tn_tensor *xs[] = {of(TN_F32, TN_SHAPE(2), 1, 2),
                       tn_expand(of(TN_F32, TN_SHAPE(1), 3), TN_SHAPE(4))};
    assert_tensor(total(xs, 2, NULL), TN_F32, TN_SCALAR_SHAPE, 0, 15);
    assert_tensor(total(xs, 1, of(TN_F32, TN_SCALAR_SHAPE, 100)), TN_F32, TN_SCALAR_SHAPE, 0, 103);
    assert_fails(total(xs, 0, NULL), TN_ERR_UNSUPPORTED, "mylib::total");
}

/* ---- registering ------------------------------------------------------------------------- */

static tn_status run_thousand(const tn_call *call) {
    for (int64_t i = 0; i < call->outs[0]->numel; i++)
        ((float *)tn_view_address(call->outs[0]))[i] = 1000;
    return TN_OK;
}

static void unregistering_restores_what_was_there(void **state) {
    define_mix();
    tn_registration *composition = composed();
    tn_tensor *f = of(TN_F32, TN_SHAPE(1), 1);
    tn_registration *first = tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0");
    tn_kernel newer = mix_kernel;
    newer.run = run_thousand;
    tn_registration *second = tn_kernel_register("cpu", &newer, NULL, "mylib 2.0");
    assert_tensor(mix(f, f, 1), TN_F32, TN_SHAPE(1), 0, 1000);
    tn_registration_drop(second);
    assert_tensor(mix(f, f, 1), TN_F32, TN_SHAPE(1), 0, 2);
    assert_int_equal(n_kernel_calls, 1);
    tn_registration_drop(first);
    assert_tensor(mix(f, f, 1), TN_F32, TN_SHAPE(1), 0, 2);
    assert_int_equal(n_compositions, 1);

    /* in the other order */
    first = tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0");
    second = tn_kernel_register("cpu", &newer, NULL, "mylib 2.0");
    tn_registration_drop(first);
    assert_tensor(mix(f, f, 1), TN_F32, TN_SHAPE(1), 0, 1000);
    tn_registration_drop(second);
    tn_registration_drop(composition);
    assert_fails(mix(f, f, 1), TN_ERR_UNSUPPORTED, "mylib::mix: cpu:0 has no kernel for f32");
    tn_registration_drop(definition);
    assert_fails(mix(f, f, 1), TN_ERR_STATE, "mylib::mix: the operator was unregistered");

    /* and with another schema */
    define("mylib::mix(Tensor x) -> Tensor");
    assert_non_null(tn_kernel_register("cpu", &newer, NULL, "mylib 3.0"));
    tn_cell arg = {.tag = TN_CELL_TENSOR, .v.pointer = f}, ret;
    assert_ok(tn_op_call(op, &arg, 1, &ret));
    assert_tensor(tn_give(ret.v.pointer), TN_F32, TN_SHAPE(1), 0, 1000);
}

static void a_device_opened_later_has_the_kernel(void **state) {
    define_mix();
    assert_non_null(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
    dev = tn_device_parse("cpu:0"); /* only now */
    tn_tensor *f = of(TN_F32, TN_SHAPE(1), 1);
    assert_tensor(mix(f, f, 1), TN_F32, TN_SHAPE(1), 0, 2);
    assert_int_equal(n_kernel_calls, 1);
}

static void wrong_registrations_say_what_is_wrong(void **state) {
    define_mix();
#define REFUSED(change, status, ...) \
    do { \
        tn_kernel k = mix_kernel; \
        change; \
        assert_fails(tn_kernel_register("cpu", &k, NULL, "t"), status, __VA_ARGS__); \
    } while (0)
    REFUSED(k.op = "mylib::nothing", TN_ERR_NOT_FOUND, "there is no operator 'mylib::nothing'");
    REFUSED(k.op = NULL, TN_ERR_INVALID_ARGUMENT, "tn_kernel_register", "op");
    REFUSED(k.struct_size = 8, TN_ERR_INVALID_ARGUMENT, "struct_size");
    REFUSED(k.run = NULL, TN_ERR_INVALID_ARGUMENT, "mylib::mix: run is NULL");
    REFUSED(k.dtypes[0] = 0, TN_ERR_INVALID_ARGUMENT, "dtypes[0] names no dtype");
    REFUSED(k.schema_hash = 5, TN_ERR_ABI, "mylib::mix", "schema_hash is 0x5");
    REFUSED(k.op = "add.Tensor", TN_ERR_INVALID_ARGUMENT, "kernel operator 'add'");
    REFUSED(k.op = "expand", TN_ERR_INVALID_ARGUMENT, "expand", "has no kernels");
    REFUSED(k.op = TN_KERNEL_add, TN_ERR_ABI, "kernel add: schema_hash");
    tn_kernel add = mix_kernel;
    add.op = TN_KERNEL_add;
    assert_fails(tn_kernel_register("cpu", &add, total_outputs, "t"), TN_ERR_INVALID_ARGUMENT,
                 "leave the outputs function out");
    assert_fails(tn_kernel_register(NULL, &mix_kernel, NULL, "t"), TN_ERR_INVALID_ARGUMENT,
                 "device type");
    assert_fails(tn_kernel_register("cpu", NULL, NULL, "t"), TN_ERR_INVALID_ARGUMENT, "record");

    static const struct {
        const char *schema, *why;
    } unfit[] = {
        {"mylib::a(int n) -> Tensor", "no tensor argument"},
        {"mylib::b(Tensor[] xs) -> Tensor", "outputs function"},
        {"mylib::c(Tensor(a!) x) -> Tensor(a!)", "writes an argument"},
        {"mylib::d(Tensor x) -> Tensor[]", "returns something else than new tensors"},
        {"mylib::e(Tensor(a) x) -> Tensor(a)", "returns something else than new tensors"},
        {"mylib::f(Tensor x) -> ()", "returns nothing"},
    };
    for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++) {
        assert_non_null(tn_op_define(unfit[i].schema, "t", NULL));
        char name[] = "mylib::a";
        name[7] = (char)('a' + i);
        REFUSED(k.op = name, TN_ERR_UNSUPPORTED, name, unfit[i].why);
    }
}

static tn_status run_thousands(const tn_call *call) {
    n_kernel_calls++;
    return run_thousand(call);
}

static void a_program_s_kernel_goes_before_the_plugin_s(void **state) {
    tn_tensor *f = of(TN_F32, TN_SHAPE(2), 1, 2), *d = of(TN_F64, TN_SHAPE(2), 1, 2);
    tn_kernel mine = {.struct_size = sizeof mine,
                      .op = TN_KERNEL_mul,
                      .schema_hash = TN_KERNEL_HASH_mul,
                      .dtypes = {TN_DTYPE_BIT(TN_F32)},
                      .run = run_thousands};
    n_kernel_calls = 0;
    tn_registration *r = tn_kernel_register("cpu", &mine, NULL, "mylib 1.0");
    assert_non_null(r);
    assert_elements(tn_mul(f, f), TN_SHAPE(2), 1000, 1000);
    assert_elements(tn_mul(d, d), TN_SHAPE(2), 1, 4);
    assert_int_equal(n_kernel_calls, 1);
    tn_registration_drop(r);
    assert_elements(tn_mul(f, f), TN_SHAPE(2), 1, 4);
}

/* ---- what is told of it ------------------------------------------------------------------ */

typedef struct told {
    char kernels[256], gradient[32];
    bool has_decomposition, is_handled;
} told;

static void tell_kernel(const tn_kernel_info *info, void *user) {
    told *t = user;
    size_t n = strlen(t->kernels);
    snprintf(t->kernels + n, sizeof t->kernels - n, "%s %s %s; ", info->device, info->kernel,
             info->origin);
}
static void tell_handler(const tn_op_handler_info *info, void *user) {
    told *t = user;
    t->is_handled |= strcmp(info->key, "Backend") == 0 && strcmp(info->device_type, "cpu") == 0 &&
                     strcmp(info->origin, "mylib 1.0") == 0 && info->active;
}
static void tell(const tn_op_info *info, void *user) {
    told *t = user;
    snprintf(t->gradient, sizeof t->gradient, "%s", info->gradient);
    t->has_decomposition = info->has_decomposition;
    assert_string_equal(info->kind, "custom");
}
static told tell_all(void) {
    told t = {.kernels = ""};
    assert_ok(tn_op_describe("mylib::mix", tell, &t));
    assert_ok(tn_op_kernels("mylib::mix", tell_kernel, &t));
    assert_ok(tn_op_handlers("mylib::mix", tell_handler, &t));
    return t;
}

static void kernels_are_shown_with_their_origin(void **state) {
    define_mix();
    told t = tell_all();
    assert_string_equal(t.kernels, "");
    tn_registration *r = tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0");
    t = tell_all();
    assert_string_equal(t.kernels, "cpu:0 mylib::mix mylib 1.0; ");
    assert_string_equal(t.gradient, "missing");
    assert_true(t.is_handled && !t.has_decomposition);
    tn_registration_drop(r);
    composed();
    assert_non_null(tn_handler_register(op, TN_KEY_AUTOGRAD, NULL, compose_mix, NULL, "t"));
    t = tell_all();
    assert_string_equal(t.kernels, "");
    assert_string_equal(t.gradient, "formula");
    assert_true(!t.is_handled && t.has_decomposition);
}

/* ---- memory and threads ------------------------------------------------------------------ */

static void without_memory_nothing_is_half_registered(void **state) {
    define_mix();
    composed();
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 1), 1, 2), *y = of(TN_F32, TN_SHAPE(2), 10, 20);
    mix(x, y, 1);
    tn_registration_drop(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
    tn_registration *r = NULL;
    for (uint64_t n = 1; !r; n++) {
        tn_error_clear();
        tni_alloc_fail_at(n);
        r = tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0");
        tni_alloc_fail_at(0);
        n_kernel_calls = 0;
        if (!r)
            assert_error(TN_ERR_OUT_OF_MEMORY, NULL);
        assert_tensor(mix(x, y, 1), TN_F32, TN_SHAPE(2, 2), 0, 11, 21, 12, 22);
        assert_int_equal(n_kernel_calls, r != NULL);
    }
    tn_tensor *sum = NULL;
    for (uint64_t n = 1; !sum; n++) {
        TN_SCOPE;
        tn_error_clear();
        tni_alloc_fail_at(n);
        sum = mix(x, y, 1);
        tni_alloc_fail_at(0);
        if (!sum)
            assert_error(TN_ERR_OUT_OF_MEMORY, NULL);
    }
    tni_alloc_fail_at(1); /* taking back needs no memory */
    tn_registration_drop(r);
    tni_alloc_fail_at(0);
    n_kernel_calls = 0;
    assert_tensor(mix(x, y, 1), TN_F32, TN_SHAPE(2, 2), 0, 11, 21, 12, 22);
    assert_int_equal(n_kernel_calls, 0);
}

static void registering_in_a_loop_does_not_grow(void **state) {
    define_mix();
    int64_t before = 0;
    for (int i = 0; i < 1000; i++) {
        tn_registration_drop(tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0"));
        if (i == 3)
            before = tni_alloc_outstanding();
    }
    assert_int_equal(tni_alloc_outstanding(), before);
}

static _Atomic bool done;

static void *call_until_done(void *user) {
    int n_wrong = 0;
    while (!done) {
        TN_SCOPE;
        double value = 0;
        tn_tensor *x = tn_ones(TN_SHAPE(4), TN_F32);
        if (tn_item(tn_sum(mix(x, x, 2)), &value) != TN_OK || value != 12)
            n_wrong++;
    }
    return (void *)(intptr_t)n_wrong;
}

static void threads_call_while_kernels_come_and_go(void **state) {
    define_mix();
    composed();
    pthread_t threads[3];
    done = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_until_done, NULL), 0);
    for (int i = 0; i < 300; i++) {
        tn_registration *a = tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 1.0");
        tn_registration *b = tn_kernel_register("cpu", &mix_kernel, NULL, "mylib 2.0");
        tn_registration_drop(i % 2 ? a : b);
        tn_registration_drop(i % 2 ? b : a);
    }
    done = true;
    for (int i = 0; i < 3; i++) {
        void *n_wrong;
        pthread_join(threads[i], &n_wrong);
        assert_null(n_wrong);
    }
}

#define ON(device, name) \
    cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, device)
#define ON_CPU(name) ON("cpu:0", name)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_CPU(a_kernel_gets_contiguous_tensors_of_one_shape),
        OPS_TEST(what_no_kernel_takes_is_composed),
        ON_CPU(without_a_composition_a_wrong_dtype_is_refused),
        ON("sim:0", a_device_without_the_kernel_falls_back_when_asked),
        ON_CPU(an_operator_without_anything_says_so),
        ON_CPU(the_outputs_function_says_shapes_and_dtypes),
        ON_CPU(lists_of_tensors_arrive_as_views),
        ON_CPU(unregistering_restores_what_was_there),
        cmocka_unit_test_setup_teardown(a_device_opened_later_has_the_kernel, fresh, leave_device),
        ON_CPU(wrong_registrations_say_what_is_wrong),
        ON_CPU(a_program_s_kernel_goes_before_the_plugin_s),
        ON_CPU(kernels_are_shown_with_their_origin),
        ON_CPU(without_memory_nothing_is_half_registered),
        ON_CPU(registering_in_a_loop_does_not_grow),
        ON_CPU(threads_call_while_kernels_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
