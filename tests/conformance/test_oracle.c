/* The oracle itself: right outputs pass, and outputs that are wrong by a little do not. */
#include "plugin-sdk/conformance/worker/data/operand.h"
#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/worker/kernel/record.h"
#include "plugin-sdk/conformance/worker/oracle/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- elements ---------------------------------------------------------------------------- */

static void floats_of_16_bits_survive_a_round_trip(void **state) {
    const tn_dtype dtypes[] = {TN_F16, TN_BF16};
    for (int d = 0; d < 2; d++)
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint64_t in = bits, out = 0;
            tc_number x = tc_load(dtypes[d], &in, 0);
            tc_store(dtypes[d], &out, 0, x);
            if (isnan(x.f))
                assert_true(isnan(tc_load(dtypes[d], &out, 0).f));
            else
                assert_int_equal(in, out);
        }
}

static void ties_round_to_even(void **state) {
    /* 1 + 2^-11 lies between 1 and 1 + 2^-10; 1 + 3 * 2^-11 between 1 + 2^-10 and 1 + 2^-9. */
    assert_true(tc_round(TN_F16, (tc_number){1 + 0x1p-11L, 0}).f == 1);
    assert_true(tc_round(TN_F16, (tc_number){1 + 3 * 0x1p-11L, 0}).f == 1 + 0x1p-9L);
    assert_true(tc_round(TN_F16, (tc_number){65520, 0}).f == (tc_real)INFINITY);
    assert_true(tc_round(TN_F16, (tc_number){65519.9L, 0}).f == 65504);
    assert_true(tc_round(TN_F16, (tc_number){0x1p-25L, 0}).f == 0);
    assert_true(tc_round(TN_F16, (tc_number){0x1.8p-25L, 0}).f == 0x1p-24L);
    assert_true(tc_round(TN_BF16, (tc_number){1 + 0x1p-8L, 0}).f == 1);
    assert_true(signbit(tc_round(TN_BF16, (tc_number){-0.0L, 0}).f));
    assert_int_equal(tc_round(TN_I8, (tc_number){0, 200}).i, -56);
    assert_int_equal(tc_round(TN_BOOL, (tc_number){0, 200}).i, 1);
}

static void spacings_are_those_of_the_dtype(void **state) {
    assert_true(tc_spacing(TN_F32, 1) == 0x1p-23L);
    assert_true(tc_spacing(TN_F32, 0.75L) == 0x1p-24L);
    assert_true(tc_spacing(TN_F32, 0) == 0x1p-149L);
    assert_true(tc_spacing(TN_F16, 0x1p-14L) == 0x1p-24L);
    assert_true(tc_spacing(TN_F64, -4) == 0x1p-50L);
    assert_true(tc_largest(TN_F16) == 65504 && tc_smallest_normal(TN_BF16) == 0x1p-126L);
}

/* ---- comparison -------------------------------------------------------------------------- */

/* A filled call, and an image of each output that holds just what is expected. */
typedef struct fixture {
    tc_arena arena;
    tc_case c;
    tc_invocation call;
} fixture;

static bool prepare(fixture *f, const char *line) {
    char why[TC_MESSAGE];
    memset(f, 0, sizeof *f);
    if (!tc_case_parse(line, &f->c, why) || !tc_invocation_parse(&f->c, &f->arena, &f->call, why) ||
        !tc_invocation_fill(&f->call, 1, why)) {
        print_error("%s: %s\n", line, why);
        return false;
    }
    for (uint32_t k = 0; k < f->call.record->n_outs; k++) {
        tc_operand *o = &f->call.outs[k].tensor;
        for (int64_t i = 0; i < o->shape.numel; i++)
            tc_store(o->dtype, o->image, tc_place(&o->shape, i), o->values[i]);
    }
    return true;
}

static tc_status compared(fixture *f, uint32_t k, tc_verdict *v) {
    *v = (tc_verdict){.status = TC_PASS};
    tc_compare(&f->call, k, f->call.outs[k].tensor.image, 0, v);
    return v->status;
}

/* Element i of output k becomes wrong by twice what it may be off, and a spacing. */
static bool spoil(fixture *f, uint32_t k, int64_t i) {
    const tc_expected *e = &f->call.outs[k];
    tn_dtype dtype = e->tensor.dtype;
    tc_number x = tc_round(dtype, e->tensor.values[i]);
    tc_real slack = e->error[i] + e->rounding[i];
    if (isinf(slack) || (tc_is_float(dtype) && slack > tc_largest(dtype)))
        return false; /* unspecified, or every number of the dtype is as good */
    if (!tc_is_float(dtype))
        x.i = dtype == TN_BOOL ? !x.i : x.i ^ 1;
    else if (isnan(x.f))
        x.f = 1;
    else if (isinf(x.f))
        x.f = -x.f;
    else
        x.f += (x.f > 0 ? -1 : 1) * (2 * slack + 2 * tc_spacing(dtype, x.f));
    tc_store(dtype, e->tensor.image, tc_place(&e->tensor.shape, i), x);
    return true;
}

typedef struct survey {
    tc_sink sink;
    uint64_t n, compared, spoiled;
} survey;

static void look_at(tc_sink *sink, const char *line) {
    survey *s = (survey *)sink;
    fixture f;
    tc_verdict v;
    if (s->n++ % 37 != 0)
        return;
    assert_true(prepare(&f, line));
    for (uint32_t k = 0; k < f.call.record->n_outs; k++) {
        int64_t i = (int64_t)(s->n * 7919 % (uint64_t)f.call.outs[k].tensor.shape.numel);
        if (compared(&f, k, &v) != TC_PASS)
            fail_msg("%s\nwhat is expected does not pass: %s", line, v.message);
        s->compared++;
        if (!spoil(&f, k, i))
            continue;
        if (compared(&f, k, &v) != TC_FAIL || !strstr(v.message, "1 of"))
            fail_msg("%s\noutput %u passes though element %lld is wrong", line, k, (long long)i);
        s->spoiled++;
    }
    tc_arena_finish(&f.arena);
}

static void one_wrong_element_of_any_operator_fails(void **state) {
    survey s = {.sink = {look_at}};
    tc_class_kernel.list(TC_STANDARD, &s.sink);
    assert_true(s.compared > 500 && s.spoiled > 9 * s.compared / 10);
}

static void the_sign_of_a_zero_counts_where_the_record_says_so(void **state) {
    fixture f;
    tc_verdict v;
    assert_true(prepare(&f, "kernel/neg T=f32 self=[16] data=special"));
    for (int64_t i = 0; i < 16; i++)
        if (f.call.outs[0].tensor.values[i].f == 0)
            ((float *)f.call.outs[0].tensor.image)[i] *= -1;
    assert_int_equal(compared(&f, 0, &v), TC_FAIL);
    tc_arena_finish(&f.arena);
}

static void a_flushed_subnormal_passes_where_the_device_says_so(void **state) {
    fixture f;
    tc_verdict v = {.status = TC_PASS};
    assert_true(prepare(&f, "kernel/abs T=f32 self=[64] data=special"));
    float *image = (float *)f.call.outs[0].tensor.image;
    for (int64_t i = 0; i < 64; i++)
        if (image[i] < 0x1p-126f)
            image[i] = 0;
    assert_int_equal(compared(&f, 0, &v), TC_FAIL);
    v = (tc_verdict){.status = TC_PASS};
    tc_compare(&f.call, 0, f.call.outs[0].tensor.image, TN_DTYPE_BIT(TN_F32), &v);
    assert_int_equal(v.status, TC_PASS);
    tc_arena_finish(&f.arena);
}

/* Of those dtypes alone; where it is of no dtype of the call, the bytes are those of any device. */
static void who_flushes_subnormal_numbers_is_asked_none(void **state) {
    static const char line[] = "kernel/mul T=f32 self=[700] other=[700] data=special";
    static const uint64_t flushes[] = {0, TN_DTYPE_BIT(TN_F64), TN_DTYPE_BIT(TN_F32)};
    unsigned char *images[3];
    fixture f[3];
    int n_subnormal[3] = {0};
    char why[TC_MESSAGE];
    for (int k = 0; k < 3; k++) {
        memset(&f[k], 0, sizeof f[k]);
        assert_true(tc_case_parse(line, &f[k].c, why));
        assert_true(tc_invocation_parse(&f[k].c, &f[k].arena, &f[k].call, why));
        f[k].call.flushes = flushes[k];
        assert_true(tc_invocation_fill(&f[k].call, 1, why));
        images[k] = f[k].call.args[0].tensor.image;
        for (int a = 0; a < 2; a++)
            for (int64_t i = 0; i < f[k].call.args[a].tensor.shape.numel; i++)
                n_subnormal[k] +=
                    fpclassify((float)f[k].call.args[a].tensor.values[i].f) == FP_SUBNORMAL;
    }
    assert_true(n_subnormal[0] > 100);
    assert_int_equal(n_subnormal[2], 0);
    assert_memory_equal(images[0], images[1], 700 * sizeof(float));
    for (int k = 0; k < 3; k++)
        tc_arena_finish(&f[k].arena);
}

static void a_boolean_is_0_or_1(void **state) {
    fixture f;
    tc_verdict v;
    assert_true(prepare(&f, "kernel/eq T=i32 self=[16] other=[16]"));
    unsigned char *image = f.call.outs[0].tensor.image;
    for (int i = 0; i < 16; i++)
        image[i] = image[i] ? 255 : 0;
    assert_int_equal(compared(&f, 0, &v), TC_FAIL);
    tc_arena_finish(&f.arena);
}

/* Whatever the signs of the arguments, which fuzzing chooses. */
static void no_bound_is_negative(void **state) {
    fixture f;
    char why[TC_MESSAGE] = "";
    assert_true(prepare(
        &f, "kernel/fused_adamw T=f32 data=special self=[64] grad=[64] exp_avg=[64] "
            "exp_avg_sq=[64] lr=0.1 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0.01 step=1 "
            "maximize=false"));
    tc_arena_finish(&f.arena);
    assert_true(prepare(&f, "kernel/layer_norm_backward T=f32 grad_output=[4,3] input=[4,3] "
                            "mean=[4,1] n_dims=1 rstd=[4,1] weight=none"));
    for (int64_t i = 0; i < 4; i++)
        f.call.args[TN_ARG_layer_norm_backward_rstd].tensor.values[i].f *= -1000;
    f.call.record->reference(&f.call);
    if (!tc_has_bounds(&f.call, why))
        fail_msg("%s", why);
    tc_arena_finish(&f.arena);
    assert_true(prepare(&f, "kernel/fused_adamw_from T=f32 F=f32 self=[64] grad=[64] exp_avg=[64] "
                            "exp_avg_sq=[64] factors=[3] beta1=0.9 beta2=0.999 eps=1e-8 "
                            "maximize=false"));
    f.call.args[TN_ARG_fused_adamw_from_factors].tensor.values[1].f = -1000;
    f.call.record->reference(&f.call);
    if (!tc_has_bounds(&f.call, why))
        fail_msg("%s", why);
    tc_arena_finish(&f.arena);
}

static void a_bound_that_is_none_is_a_mistake_of_the_suite(void **state) {
    fixture f;
    char why[TC_MESSAGE] = "";
    assert_true(prepare(&f, "kernel/exp T=f32 self=[2,3]"));
    tc_expected *e = &f.call.outs[0];
    e->rounding[4] = -1e-9L;
    assert_false(tc_has_bounds(&f.call, why));
    assert_non_null(strstr(why, "exp: a mistake of the suite: output 0 (f32)"));
    assert_non_null(strstr(why, "at [1, 1]"));
    e->rounding[4] = NAN;
    assert_false(tc_has_bounds(&f.call, why));
    e->tensor.values[4].f = INFINITY;
    assert_true(tc_has_bounds(&f.call, why));
    e->rounding[4] = INFINITY;
    assert_true(tc_has_bounds(&f.call, why));
    tc_arena_finish(&f.arena);
}

/* Where the range is the record's own: elsewhere what is far is far. */
static void outliers_lie_in_the_range_of_their_argument(void **state) {
    fixture f;
    assert_true(prepare(&f, "kernel/layer_norm_backward T=f32 data=outlier grad_output=[40,3] "
                            "input=[40,3] mean=[40,1] n_dims=1 rstd=[40,1] weight=none"));
    const tc_operand *input = &f.call.args[TN_ARG_layer_norm_backward_input].tensor,
                     *rstd = &f.call.args[TN_ARG_layer_norm_backward_rstd].tensor;
    for (int64_t i = 0; i < 40; i++)
        assert_true(rstd->values[i].f >= 0.5L && rstd->values[i].f <= 2);
    assert_true(rstd->values[0].f != rstd->values[1].f);
    assert_true(input->values[0].f == 100);
    tc_arena_finish(&f.arena);
}

static tc_status trusted(const char *line) {
    fixture f;
    tc_verdict v = {.status = TC_PASS};
    assert_true(prepare(&f, line));
    tc_check_conclusive(&f.call, 0, &v);
    tc_arena_finish(&f.arena);
    return v.status;
}

static void cases_that_cannot_fail_are_inconclusive(void **state) {
    assert_int_equal(trusted("kernel/mul T=f32 self=[64] other=[64]"), TC_PASS);
    assert_int_equal(trusted("kernel/clamp T=f32 self=[64] min=3 max=3"), TC_INCONCLUSIVE);
    assert_int_equal(trusted("kernel/bitwise_xor T=i8 self=[9]/[0] other=[9]/[0] seed=1"), TC_PASS);
    assert_int_equal(
        trusted("kernel/threshold_backward T=f32 grad_output=[64] self=[64] threshold=1e30"),
        TC_INCONCLUSIVE);
}

/* ---- lines ------------------------------------------------------------------------------- */

static void lines_that_are_no_calls_are_refused_with_a_reason(void **state) {
    static const char *const wrong[][2] = {
        {"kernel/nothing T=f32", "no kernel operator"},
        {"kernel/exp self=[3]", "needs T="},
        {"kernel/exp T=i32 self=[3]", "no dtype of exp"},
        {"kernel/exp T=f32", "needs self="},
        {"kernel/exp T=f32 self=[0]", "with elements only"},
        {"kernel/exp T=f32 self=[3] other=[3]", "no parameter of exp"},
        {"kernel/add T=f32 self=[3] other=[4] alpha=1", "same sizes"},
        {"kernel/add T=i32 self=[3] other=[3] alpha=0.5", "no whole number"},
        {"kernel/sum T=f32 self=[3] dim=[1]", "dimensions of the input"},
        {"kernel/bmm T=f32 self=[1,2,3] mat2=[1,4,2]", "[M, K] and [K, N]"},
        {"kernel/exp T=f32 self=[3] out=[4]", "the output is [3]"},
        {"kernel/exp T=f32 self=[3] out=[3]/[0]", "places of their own"},
        {"kernel/fill T=f32 value=1", "out=SHAPE"},
        {"kernel/exp T=f32 self=[3] in-place=other", "no such tensor"},
        {"kernel/exp T=f32 self=[3] shared=self", "no other argument has its dtype and sizes"},
        {"kernel/bmm T=f32 self=[1,2,3] mat2=[1,3,2] shared=self", "no other argument has"},
        {"kernel/sub T=f32 self=[3] other=[3] alpha=1 shared=none", "no such tensor"},
        {"kernel/exp T=f32 self=[3] data=good", "exact, random"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char why[TC_MESSAGE] = "";
        tc_arena arena = {NULL};
        tc_case c;
        tc_invocation call;
        assert_true(tc_case_parse(wrong[i][0], &c, why));
        assert_false(tc_invocation_parse(&c, &arena, &call, why));
        if (!strstr(why, wrong[i][1]))
            fail_msg("%s: '%s' does not say '%s'", wrong[i][0], why, wrong[i][1]);
        tc_arena_finish(&arena);
    }
}

static void the_same_line_is_the_same_case(void **state) {
    fixture a, b;
    assert_true(prepare(&a, "kernel/add T=f32 self=[30] other=[30] alpha=1"));
    assert_true(prepare(&b, "kernel/add  alpha=1 other=[30] T=f32 self=[30]"));
    assert_memory_equal(a.call.args[0].tensor.image, b.call.args[0].tensor.image, 30 * 4);
    tc_arena_finish(&b.arena);
    assert_true(prepare(&b, "kernel/add T=f32 self=[30] other=[30] alpha=2"));
    assert_memory_not_equal(a.call.args[0].tensor.image, b.call.args[0].tensor.image, 30 * 4);
    tc_arena_finish(&a.arena);
    tc_arena_finish(&b.arena);
}

/* Also where blocks come back that other cases have written to. */
static void what_lies_within_another_follows_from_the_line(void **state) {
    enum { MOST = 20, BYTES = 331 * sizeof(tc_number) };
    fixture a[2];
    for (int i = 0; i < 2; i++) {
        tc_arena dirty = {NULL};
        for (int k = 0; k < MOST; k++)
            memset(tc_arena_bytes(&dirty, BYTES), 0x3f + i, BYTES);
        tc_arena_finish(&dirty);
        assert_true(prepare(&a[i], "kernel/eq T=f32 self=[331]/[1]+7 other=[331] within=other"));
    }
    assert_memory_equal(a[0].call.args[0].tensor.image, a[1].call.args[0].tensor.image, 331 * 4);
    for (int i = 0; i < 2; i++)
        tc_arena_finish(&a[i].arena);
}

/* Of ones each addition that is lost is seen; of what is rounded on the way none has to be. */
static void additions_of_ones_are_exact(void **state) {
    static const struct {
        const char *line;
        bool exact;
    } lines[] = {
        {"kernel/scatter_add T=f32 data=ones dim=0 index=[100003] self=[4] src=[100003]", true},
        {"kernel/index_add T=f32 alpha=3 data=ones dim=0 index=[9003] self=[4] source=[9003]",
         true},
        {"kernel/index_add T=f32 alpha=0.3 data=ones dim=0 index=[9003] self=[4] source=[9003]",
         false},
        {"kernel/scatter_add T=f32 dim=0 index=[9003] self=[4] src=[9003]", false},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fixture f;
        assert_true(prepare(&f, lines[i].line));
        for (int k = 0; k < 4; k++)
            assert_true((f.call.outs[0].rounding[k] == 0) == lines[i].exact);
        tc_arena_finish(&f.arena);
    }
}

/* A device that writes more than it was asked for is found out; in the hard build by AddressSanitizer. */
static void what_is_written_behind_an_array_ends_the_process(void **state) {
    enum { BYTES = 5200 };
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        tc_arena arena = {NULL};
        prctl(PR_SET_DUMPABLE, 0);
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        volatile char *p = tc_arena_bytes(&arena, BYTES);
        p[BYTES] = 0;
        tc_arena_finish(&arena);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_not_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_of_16_bits_survive_a_round_trip),
        cmocka_unit_test(ties_round_to_even),
        cmocka_unit_test(spacings_are_those_of_the_dtype),
        cmocka_unit_test(one_wrong_element_of_any_operator_fails),
        cmocka_unit_test(the_sign_of_a_zero_counts_where_the_record_says_so),
        cmocka_unit_test(a_flushed_subnormal_passes_where_the_device_says_so),
        cmocka_unit_test(who_flushes_subnormal_numbers_is_asked_none),
        cmocka_unit_test(a_boolean_is_0_or_1),
        cmocka_unit_test(no_bound_is_negative),
        cmocka_unit_test(a_bound_that_is_none_is_a_mistake_of_the_suite),
        cmocka_unit_test(outliers_lie_in_the_range_of_their_argument),
        cmocka_unit_test(cases_that_cannot_fail_are_inconclusive),
        cmocka_unit_test(lines_that_are_no_calls_are_refused_with_a_reason),
        cmocka_unit_test(the_same_line_is_the_same_case),
        cmocka_unit_test(what_lies_within_another_follows_from_the_line),
        cmocka_unit_test(additions_of_ones_are_exact),
        cmocka_unit_test(what_is_written_behind_an_array_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
