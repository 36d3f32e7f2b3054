/* Which of several records a call reaches: in order, first as it is, then adapted; what a record that
 * declines leaves behind. The records stand before the plugin's own, which takes what they decline. */
#include "core/call/call.h"
#include "tests/core/ops_test.h"

#include <tenon/custom.h>
#include <tenon/fallback.h>
#include <tenon/kernels.h>

enum { N_RECORDS = 3 };

/* What a record does and what it saw. */
typedef struct mine {
    tn_kernel record;
    bool looks_only, supports_contiguous_only, supports_nothing, prepare_declines, run_declines,
        run_fails;
    uint64_t workspace_bytes, cookie;
    int n_asked, n_asked_without_memory, n_prepared, n_abandoned, n_run;
    uint64_t cookie_at_run, cookie_at_abandon;
    bool strided, broadcast, scalar, in_place, far;
} mine;
static mine records[N_RECORDS];
static const char *device_type;
static int order[16], n_order; /* which were run */

static int dense(const tn_tensor_view *v) {
    return tni_is_contiguous(v);
}

static tn_status supports(const tn_call *call) {
    mine *m = call->user;
    m->n_asked++;
    bool plain = true;
    for (uint32_t i = 0; i < call->n_args; i++)
        if (call->args[i].tag == TN_CELL_TENSOR) {
            plain = plain && dense(call->args[i].v.view);
            m->n_asked_without_memory += call->args[i].v.view->memory == 0;
        }
    return m->supports_nothing || (m->supports_contiguous_only && !plain) ? TN_ERR_UNSUPPORTED
                                                                          : TN_OK;
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    mine *m = call->user;
    m->n_prepared++;
    assert_true(TN_HAS(out, tn_plan, cookie));
    assert_int_equal(out->cookie, 0);
    if (m->prepare_declines)
        return TN_ERR_UNSUPPORTED;
    out->workspace_bytes = m->workspace_bytes;
    out->cookie = m->cookie;
    return TN_OK;
}

static void abandon(const tn_call *call) {
    mine *m = call->user;
    m->n_abandoned++;
    m->cookie_at_abandon = call->cookie;
}

/* Computes nothing: which record ran shows in what it writes, 100 and its number. */
static tn_status run(const tn_call *call) {
    mine *m = call->user;
    m->n_run++;
    order[n_order++ % 16] = (int)(m - records);
    m->cookie_at_run = call->cookie;
    assert_int_equal(call->workspace_bytes, m->workspace_bytes);
    m->scalar = false;
    for (uint32_t i = 0; i < call->n_args; i++) {
        const tn_cell *c = &call->args[i];
        m->scalar = m->scalar || c->tag != TN_CELL_TENSOR;
        if (c->tag != TN_CELL_TENSOR)
            continue;
        m->strided = !dense(c->v.view);
        m->far = tni_is_far(c->v.view);
        for (int32_t d = 0; d < c->v.view->rank; d++)
            m->broadcast = m->broadcast || c->v.view->strides[d] == 0;
        m->in_place = c->v.view->memory == call->outs[0]->memory &&
                      c->v.view->offset == call->outs[0]->offset;
    }
    if (m->run_declines)
        return tn_fail(TN_ERR_UNSUPPORTED, "not this one");
    if (m->run_fails)
        return tn_fail(TN_ERR_IO, "the record has failed");
    if (m->looks_only)
        return TN_OK;
    float *out = tn_view_address(call->outs[0]);
    const tn_tensor_view *v = call->outs[0];
    for (int64_t i = 0; i < (v->rank > 1 ? v->sizes[0] : v->numel); i++)
        for (int64_t j = 0; j < (v->rank > 1 ? v->sizes[1] : 1); j++)
            out[i * v->strides[0] + (v->rank > 1 ? j * v->strides[1] : 0)] =
                (float)(100 + (m - records));
    return TN_OK;
}

/* The first n records for `op`, in this order; flags and the rest as set before. */
static void offer_for(tn_dtype dtype, const char *op, uint64_t hash, int n) {
    n_order = 0;
    for (int i = n - 1; i >= 0; i--) { /* the newest goes first */
        records[i].record.struct_size = sizeof records[i].record;
        records[i].record.op = op;
        records[i].record.schema_hash = hash;
        records[i].record.dtypes[0] = TN_DTYPE_BIT(dtype);
        records[i].record.user = &records[i];
        records[i].record.run = run;
        if (!tn_kernel_register(device_type, &records[i].record, NULL, "choice"))
            fail_msg("%s", tn_error_message());
    }
}

static void offer(const char *op, uint64_t hash, int n) {
    offer_for(TN_F32, op, hash, n);
}
static void offer_neg(int n) {
    offer(TN_KERNEL_neg, TN_KERNEL_HASH_neg, n);
}

static int new_records(void **state) {
    memset(records, 0, sizeof records);
    device_type = strcmp(*state, "sim:0") == 0 ? "sim" : "cpu";
    return on_device(state);
}

/* 2 x 3, dense or turned. */
static tn_tensor *matrix(bool turned) {
    tn_tensor *t = of(TN_F32, TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    return turned ? tn_transpose(of(TN_F32, TN_SHAPE(3, 2), 1, 4, 2, 5, 3, 6), 0, 1) : t;
}
/* Every second column of a 2 x 6: no walk over it is dense. */
static tn_tensor *gaps(void) {
    return tn_slice(of(TN_F32, TN_SHAPE(2, 6), 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0), 1, 0, 6, 2);
}

#define assert_ran(i) \
    do { \
        assert_int_equal(n_order, 1); \
        assert_int_equal(order[0], i); \
        n_order = 0; \
    } while (0)
#define assert_by(t, i) \
    assert_tensor(t, TN_F32, TN_SHAPE(2, 3), 0, 100 + i, 100 + i, 100 + i, 100 + i, 100 + i, \
                  100 + i)
/* By the plugin's own record. */
#define assert_negated(t) assert_tensor(t, TN_F32, TN_SHAPE(2, 3), 0, -1, -2, -3, -4, -5, -6)

static void a_plain_record_does_not_hide_a_strided_one(void **state) {
    records[1].record.flags = TN_KERNEL_STRIDED;
    offer_neg(2);
    assert_by(tn_neg(matrix(false)), 0);
    assert_ran(0);
    assert_by(tn_neg(gaps()), 1);
    assert_ran(1);
    assert_true(records[1].strided);
}

static void what_takes_the_call_as_it_is_goes_before_what_needs_it_adapted(void **state) {
    offer_neg(2);
    /* the plugin's own takes strides, and so the call as it is */
    assert_negated(tn_neg(gaps()));
    assert_int_equal(n_order, 0);
}

static void a_record_that_supports_not_is_passed_over(void **state) {
    records[0].supports_nothing = true;
    records[0].record.supports = supports;
    records[0].record.flags = records[1].record.flags = TN_KERNEL_STRIDED;
    offer_neg(2);
    assert_by(tn_neg(matrix(false)), 1);
    assert_ran(1);
    assert_true(records[0].n_asked > 0);
    assert_int_equal(tn_error_status(), TN_OK);
}

/* On a device that has no record of its own. Its memory is out of the host's reach: the record only
 * looks. */
static void what_declines_strides_is_offered_the_call_made_contiguous(void **state) {
    records[0].record.flags = records[1].record.flags = TN_KERNEL_STRIDED;
    for (int i = 0; i < 2; i++) {
        records[i].record.supports = supports;
        records[i].supports_contiguous_only = records[i].looks_only = true;
    }
    records[0].supports_nothing = true;
    offer(TN_KERNEL_relu, TN_KERNEL_HASH_relu, 2);
    assert_non_null(tn_relu(gaps()));
    assert_ran(1);
    assert_false(records[1].strided);
    /* the adapted call was asked about before anything was copied for it */
    assert_true(records[0].n_asked >= 2 && records[1].n_asked >= 2);
    records[1].record.supports = NULL;
}

static void no_record_is_run_twice_on_one_call(void **state) {
    records[0].record.flags = TN_KERNEL_STRIDED;
    records[1].record.flags = TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST;
    for (int i = 0; i < 2; i++)
        records[i].run_declines = records[i].looks_only = true;
    offer(TN_KERNEL_relu, TN_KERNEL_HASH_relu, 2);
    assert_non_null(tn_relu(matrix(false))); /* by the decomposition */
    assert_int_equal(n_order, 2);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    n_order = 0;
    assert_non_null(tn_relu(gaps()));
    assert_int_equal(n_order, 4); /* both as it is, then both made contiguous */
    assert_int_equal(tn_error_status(), TN_OK);
}

static void prepare_may_decline(void **state) {
    records[0].prepare_declines = true;
    records[0].record.prepare = prepare;
    records[0].record.abandon = abandon;
    offer_neg(2);
    assert_by(tn_neg(matrix(false)), 1);
    assert_ran(1);
    assert_int_equal(records[0].n_prepared, 1);
    assert_int_equal(records[0].n_abandoned, 0);
}

static void the_cookie_reaches_run(void **state) {
    records[0].cookie = 0x123456789abcdef;
    records[0].workspace_bytes = 1000;
    records[0].record.prepare = prepare;
    records[0].record.abandon = abandon;
    offer_neg(1);
    assert_by(tn_neg(matrix(false)), 0);
    assert_int_equal(records[0].cookie_at_run, records[0].cookie);
    assert_int_equal(records[0].n_prepared, 1);
    assert_int_equal(records[0].n_abandoned, 0);
}

static void without_memory_for_the_workspace_the_plan_is_abandoned(void **state) {
    records[0].cookie = 77;
    records[0].workspace_bytes = UINT64_C(1) << 45;
    records[0].record.prepare = prepare;
    records[0].record.abandon = abandon;
    offer_neg(1);
    assert_null(tn_neg(matrix(false)));
    assert_error(TN_ERR_OUT_OF_MEMORY, "no memory for 32.00 TiB", NULL);
    assert_int_equal(records[0].n_abandoned, 1);
    assert_int_equal(records[0].cookie_at_abandon, 77);
    assert_int_equal(records[0].n_run, 0);
    records[0].record.abandon = NULL; /* is optional */
    offer_neg(1);
    assert_null(tn_neg(matrix(false)));
    assert_error(TN_ERR_OUT_OF_MEMORY, NULL);
}

static void run_may_decline(void **state) {
    records[0].run_declines = true;
    offer_neg(2);
    tn_tensor *t = tn_neg(matrix(false));
    assert_by(t, 1);
    assert_int_equal(tn_error_status(), TN_OK);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[n_order - 1], 1);
    records[1].run_declines = true;
    assert_negated(tn_neg(matrix(false)));
    assert_int_equal(tn_error_status(), TN_OK);
    tn_tensor *self = matrix(false);
    assert_ptr_equal(tn_neg_(self), self);
    assert_negated(self);
}

/* As in an operator made of others, the first of which has failed. */
static void what_declines_leaves_an_earlier_error_standing(void **state) {
    records[0].run_declines = true;
    offer_neg(1);
    tn_fail(TN_ERR_UNSUPPORTED, "the one before has failed");
    assert_negated(tn_neg(matrix(false)));
    assert_int_equal(tn_error_status(), TN_ERR_UNSUPPORTED);
    assert_string_equal(tn_error_message(), "the one before has failed");
    tn_error_clear();
}

static void a_failure_is_no_declining(void **state) {
    records[0].run_fails = true;
    offer_neg(2);
    assert_null(tn_neg(matrix(false)));
    assert_error(TN_ERR_IO, "the record has failed", NULL);
    assert_int_equal(records[1].n_run, 0);
}

static void in_place_goes_to_the_record_that_takes_it(void **state) {
    records[1].record.flags = TN_KERNEL_IN_PLACE;
    offer_neg(2);
    tn_tensor *self = matrix(false);
    assert_ptr_equal(tn_neg_(self), self);
    assert_by(self, 1);
    assert_ran(1);
    assert_true(records[1].in_place);
}

/* Nothing can bring a copy into shape but another copy. */
static void a_broadcast_copy_goes_to_the_record_that_takes_it(void **state) {
    records[0].record.flags = TN_KERNEL_STRIDED;
    records[1].record.flags = TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST;
    for (int i = 0; i < 2; i++) {
        records[i].record.dtypes[1] = TN_DTYPE_BIT(TN_F32);
        records[i].run_declines = true;
    }
    offer(TN_KERNEL_copy, TN_KERNEL_HASH_copy, 2);
    tn_tensor *row = of(TN_F32, TN_SHAPE(1, 3), 1, 2, 3);
    tn_tensor *whole = tn_clone(tn_expand(row, TN_SHAPE(2, 3)));
    assert_true(records[0].n_run == 0 && records[1].n_run > 0 && records[1].broadcast);
    assert_tensor(tn_contiguous(whole), TN_F32, TN_SHAPE(2, 3), 0, 1, 2, 3, 1, 2, 3);
}

static void a_number_goes_to_the_record_that_takes_it(void **state) {
    records[1].record.flags = TN_KERNEL_SCALARS;
    offer(TN_KERNEL_mul, TN_KERNEL_HASH_mul, 2);
    assert_by(tn_mul_scalar(matrix(false), tn_float(2)), 1);
    assert_ran(1);
    assert_true(records[1].scalar);
    assert_by(tn_mul(matrix(false), matrix(false)), 0);
    assert_ran(0);
    assert_false(records[0].scalar);
}

/* Two elements, 2^31 - 1 apart: an extent of 2^31. */
static tn_tensor *far_apart(void) {
    tn_tensor *room = tn_empty(TN_SHAPE(INT64_C(1) << 31), TN_I8, tn_device_parse("cpu:0"));
    if (!room) /* a machine or a sanitizer without 2 GiB to promise */
        skip();
    tn_tensor *t = tn_as_strided(room, TN_SHAPE(2), TN_SHAPE(INT32_MAX), 0);
    assert_non_null(tn_fill_(t, tn_int(3)));
    return t;
}

static void a_far_tensor_goes_to_the_record_that_counts_so_far(void **state) {
    tn_tensor *t = far_apart();
    records[0].record.flags = TN_KERNEL_STRIDED;
    records[1].record.flags = TN_KERNEL_STRIDED | TN_KERNEL_INDEX64;
    for (int i = 0; i < 2; i++)
        records[i].run_declines = true; /* what they write is f32's */
    offer_for(TN_I8, TN_KERNEL_neg, TN_KERNEL_HASH_neg, 2);
    assert_tensor(tn_neg(t), TN_I8, TN_SHAPE(2), 0, -3, -3); /* by the plugin's own */
    assert_ran(1);
    assert_true(records[1].far);
}

#define CHOICE_ON(device, name) \
    cmocka_unit_test_prestate_setup_teardown(name, new_records, leave_device, device)
#define CHOICE(name) CHOICE_ON("cpu:0", name)

int main(void) {
    const struct CMUnitTest tests[] = {
        CHOICE(a_plain_record_does_not_hide_a_strided_one),
        CHOICE(what_takes_the_call_as_it_is_goes_before_what_needs_it_adapted),
        CHOICE(a_record_that_supports_not_is_passed_over),
        CHOICE_ON("sim:0", what_declines_strides_is_offered_the_call_made_contiguous),
        CHOICE_ON("sim:0", no_record_is_run_twice_on_one_call),
        CHOICE(prepare_may_decline),
        CHOICE(the_cookie_reaches_run),
        CHOICE(without_memory_for_the_workspace_the_plan_is_abandoned),
        CHOICE(run_may_decline),
        CHOICE(what_declines_leaves_an_earlier_error_standing),
        CHOICE(a_failure_is_no_declining),
        CHOICE(in_place_goes_to_the_record_that_takes_it),
        CHOICE(a_broadcast_copy_goes_to_the_record_that_takes_it),
        CHOICE(a_number_goes_to_the_record_that_takes_it),
        CHOICE(a_far_tensor_goes_to_the_record_that_counts_so_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
