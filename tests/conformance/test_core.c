/* The cases that run through libtenon: what is wrong is noticed. Faults are kernels that the
 * program registers in place of the device's.
 *
 *   test_conformance_core PLUGIN */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tenon/kernels.h>
#include <tenon/tenon.h>

#include "plugin-sdk/conformance/worker/core/classes.h"
#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"

static tc_options options;
static const tc_class *const classes[] = {&tc_operator_class, &tc_gradient_class, &tc_train_class};
static const tc_suite suite = {.classes = classes, .n_classes = 3};

static tc_verdict run(const char *line) {
    tc_verdict v = {0};
    tc_run_line(&suite, line, &options, &v);
    return v;
}

static void assert_status(const char *line, tc_status status) {
    tc_verdict v = run(line);
    if (v.status != status)
        fail_msg("%s: %s: %s", line, tc_status_name(v.status), v.message);
}

static void what_is_right_passes(void **state) {
    assert_status("operator/neg sample=0 T=f32", TC_PASS);
    assert_status("operator/mm sample=0 T=f16 scale=13", TC_PASS);
    assert_status("operator/rsub.Scalar sample=0 T=u8", TC_PASS);
    assert_status("gradient/mul.Tensor sample=0 order=2", TC_PASS);
    assert_status("operator/softmax_forward sample=0 T=f32 how=decomposed", TC_PASS);
    assert_status("operator/neg sample=0 T=f32", TC_PASS);
}

static void what_is_no_case_is_an_error(void **state) {
    assert_status("operator/neg sample=99", TC_ERROR);
    assert_status("operator/nosuch", TC_ERROR);
    assert_status("operator/neg sample=0 layout=odd", TC_ERROR);
    assert_status("operator/maximum sample=0 form=inplace", TC_ERROR);
    assert_status("gradient/neg sample=0 order=3", TC_ERROR);
    assert_status("train/nothing", TC_ERROR);
}

static void count_kernel(const tn_kernel_info *info, void *user) {
    ++*(int *)user;
}

static int n_kernels(tc_mode mode, const char *op) {
    tc_verdict v = {0};
    int n = 0;
    assert_non_null(tc_device_pair_open(&options, mode, &v));
    assert_int_equal(tn_op_kernels(op, count_kernel, &n), TN_OK);
    return n;
}

/* TENON_KERNELS_DISABLE, by which the pair changes its mode. */
static void kernels_are_left_out_where_operators_can_do_without(void **state) {
    assert_true(n_kernels(TC_MODE_NATIVE, "softmax_forward") > 0);
    assert_int_equal(n_kernels(TC_MODE_DECOMPOSED, "softmax_forward"), 0);
    assert_true(n_kernels(TC_MODE_DECOMPOSED, "add.Tensor") > 0);
    assert_true(n_kernels(TC_MODE_NATIVE, "softmax_forward") > 0);
}

/* ---- faulty kernels ---------------------------------------------------------------------- */

static float *element(const tn_tensor_view *v, int64_t i) { /* the i-th, row-major */
    int64_t at = 0;
    for (int32_t d = v->rank - 1; d >= 0; d--) {
        at += i % v->sizes[d] * v->strides[d];
        i /= v->sizes[d];
    }
    return (float *)tn_view_address(v) + at;
}

enum fault { OFF_BY_ULPS, NO_TAIL, WRITES_INPUT, LAYOUT_CHANGES_BITS };

static tn_status faulty_neg(const tn_call *call) {
    enum fault fault = (enum fault)(uintptr_t)call->user;
    const tn_tensor_view *x = call->args[0].v.pointer, *y = call->outs[0];
    for (int64_t i = 0; i < y->numel; i++) {
        *element(y, i) = -*element(x, i);
        if (fault == OFF_BY_ULPS && i == y->numel - 1)
            *element(y, i) *= 1 + 0x1p-22f;
        if (fault == NO_TAIL && i == y->numel - 1)
            *element(y, i) = 0;
        if (fault == LAYOUT_CHANGES_BITS && x->rank > 1 && x->strides[x->rank - 1] != 1)
            *element(y, i) *= 1 + 0x1p-23f;
    }
    if (fault == WRITES_INPUT)
        *element(x, 0) += 1;
    return TN_OK;
}

/* The device is open after a first case; the kernel goes before its own. */
static void assert_caught(enum fault fault, const char *line) {
    assert_status("operator/neg sample=0 T=f32", TC_PASS);
    tn_kernel record = {.struct_size = sizeof record,
                        .op = TN_KERNEL_neg,
                        .schema_hash = TN_KERNEL_HASH_neg,
                        .dtypes = {TN_DTYPE_BIT(TN_F32)},
                        .flags = TN_KERNEL_STRIDED,
                        .user = (void *)(uintptr_t)fault,
                        .run = faulty_neg};
    tn_registration *registration = tn_kernel_register("cpu", &record, NULL, "a faulty kernel");
    assert_non_null(registration);
    tc_verdict v = run(line);
    tn_registration_drop(registration);
    if (v.status != TC_FAIL)
        fail_msg("fault %d: %s: %s", (int)fault, tc_status_name(v.status), v.message);
    assert_status(line, TC_PASS);
}

static void faulty_kernels_are_caught(void **state) {
    assert_caught(WRITES_INPUT, "operator/neg sample=0 T=f32 layout=strided");
    assert_caught(LAYOUT_CHANGES_BITS, "operator/neg sample=0 T=f32 layout=strided");
    assert_caught(OFF_BY_ULPS, "operator/neg sample=0 T=f32 scale=13");
    assert_caught(NO_TAIL, "operator/neg sample=0 T=f32 form=out");
}

/* ---- bounds ------------------------------------------------------------------------------ */

static double verdict_of(tc_tolerance tolerance, tn_dtype dtype, double got, double expected,
                         double magnitude) {
    tc_operator op = {.name = "probe", .text = "", .tolerance = tolerance, .flags = TC_GENERAL};
    tc_sample s = {.dtype = dtype, .n_inputs = 0};
    tc_outcome g = {.n = 1}, r = {.n = 1}, m = {.n = 1};
    g.results[0] = (tc_result){.dtype = dtype, .numel = 1, .reals = &got};
    r.results[0] = (tc_result){.dtype = TN_F64, .numel = 1, .reals = &expected};
    m.results[0] = (tc_result){.dtype = TN_F64, .numel = 1, .reals = &magnitude};
    tc_verdict v = {0};
    tc_compare(&op, &s, &g, NULL, &r, &m, &v);
    assert_int_equal(v.status == TC_PASS, v.share <= 1);
    return v.share;
}

static void bounds_are_tight(void **state) {
    double u16 = 0x1p-11, u32 = 0x1p-24;
    assert_true(verdict_of(TC_TOLERANCE_EXACT, TN_F32, 1, 1 + u32 / 2, 1) <= 1);
    assert_true(verdict_of(TC_TOLERANCE_EXACT, TN_F32, 1, 1 + 2 * u32, 1) > 1);
    assert_true(verdict_of(TC_TOLERANCE_ULP4, TN_F32, 1 + 8 * u32, 1, 1) <= 1);
    assert_true(verdict_of(TC_TOLERANCE_ULP4, TN_F32, 1 + 10 * u32, 1, 1) > 1);
    /* One rounding of f16 passes, a sum that was rounded twice does not. */
    assert_true(verdict_of(TC_TOLERANCE_DOT, TN_F16, 1 + u16, 1, 4) <= 1);
    assert_true(verdict_of(TC_TOLERANCE_DOT, TN_F16, 1 + 2 * u16, 1, 4) > 1);
    assert_true(verdict_of(TC_TOLERANCE_SUM, TN_F32, NAN, 1, 1) > 1);
    assert_true(verdict_of(TC_TOLERANCE_SUM, TN_F32, NAN, NAN, 1) <= 1);
}

static void a_flushed_subnormal_passes_where_the_subject_says_so(void **state) {
    double zero = 0, subnormal = 0x1p-20, normal = 0x1.8p-14;
    tc_operator op = {.name = "probe", .text = "", .tolerance = TC_TOLERANCE_EXACT};
    tc_outcome g = {.n = 1}, r = {.n = 1};
    g.results[0] = (tc_result){.dtype = TN_F16, .numel = 1, .reals = &zero};
    r.results[0] = (tc_result){.dtype = TN_F64, .numel = 1, .reals = &subnormal};
    for (int flushes = 0; flushes < 2; flushes++) {
        tc_sample s = {.dtype = TN_F16,
                       .flushes = flushes ? TN_DTYPE_BIT(TN_F16) : TN_DTYPE_BIT(TN_F32)};
        tc_verdict v = {0};
        tc_compare(&op, &s, &g, NULL, &r, NULL, &v);
        assert_int_equal(v.status, flushes ? TC_PASS : TC_FAIL);
    }
    tc_sample s = {.dtype = TN_F16, .flushes = TN_DTYPE_BIT(TN_F16)};
    tc_verdict v = {0};
    r.results[0].reals = &normal;
    tc_compare(&op, &s, &g, NULL, &r, NULL, &v);
    assert_int_equal(v.status, TC_FAIL);
}

static int close_pair(void **state) {
    tc_device_pair_close();
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    options.plugin = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_passes),
        cmocka_unit_test(what_is_no_case_is_an_error),
        cmocka_unit_test(kernels_are_left_out_where_operators_can_do_without),
        cmocka_unit_test(faulty_kernels_are_caught),
        cmocka_unit_test(bounds_are_tight),
        cmocka_unit_test(a_flushed_subnormal_passes_where_the_subject_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, close_pair);
}
