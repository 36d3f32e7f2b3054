/* What is asked of a device, for tensors that no memory could hold: no more work groups than there may
 * be, indices that reach as far as the tensors do, and a work item for each element. */
#include "tests/cuda/launches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const gpu_traits small_gpu = {.has_f64 = true,
                                     .compute_units = 14,
                                     .unit_items = 1024,
                                     .max_group = 1024,
                                     .warp = 32,
                                     .local_bytes = GPU_LOCAL,
                                     .vector_bytes = 16};
/* As OpenCL describes one. */
static const gpu_traits other_gpu = {
    .compute_units = 20, .max_group = 256, .local_bytes = GPU_LOCAL, .vector_bytes = 16};
static const gpu_traits *const gpus[] = {&large_gpu, &small_gpu, &other_gpu};

static uint64_t at_least_one(uint64_t n) {
    return n ? n : 1;
}

static void check_limits(const described *d, const gpu_traits *traits, const seen *s) {
    const gpu_launch *l = &s->launch;
    uint64_t items = 1;
    for (int k = 0; k < 3; k++) {
        uint64_t most = k ? 65535 : INT32_MAX;
        if (l->groups[k] > most)
            fail_msg("%s: %s has %llu groups along dimension %d", d->name, s->entry,
                     (unsigned long long)l->groups[k], k);
        items *= at_least_one(l->local[k]);
    }
    if (items > traits->max_group || l->local[2] > 64)
        fail_msg("%s: %s has groups of %llu", d->name, s->entry, (unsigned long long)items);
    if (8 * l->n_memory + l->parameter_bytes > GPU_ARGUMENTS)
        fail_msg("%s: %s has %llu bytes of parameters", d->name, s->entry,
                 (unsigned long long)l->parameter_bytes);
}

/* ---- limits ------------------------------------------------------------------------------ */

static void hot_calls_keep_within_limits(void **state) {
    for (size_t g = 0; g < N(gpus); g++)
        for (const described *d = hot_calls; d->name; d++) {
            seen all[MAX_LAUNCHES];
            tn_status status;
            if (!gpus[g]->has_f64 && strstr(d->name, "f64"))
                continue;
            int n = launches_of(d, gpus[g], all, &status);
            assert_int_equal(status, TN_OK);
            assert_int_not_equal(n, 0);
            for (int i = 0; i < n; i++)
                check_limits(d, gpus[g], &all[i]);
        }
}

/* 2^33 elements and more, of every family; `index` is what counts them. */
static const described huge_calls[] = {
    {"in a row", "add", "f32[8589934592]", "f32[8589934592] f32[8589934592] 1.0"},
    {"by rows", "add", "f32[8388608,1024]", "f32[8388608,1024] f32[8388608,1024]/0,1 1.0"},
    {"by rows, most of them short", "add", "f32[134217728,64]",
     "f32[134217728,64]/128,1 f32[134217728,64] 1.0"},
    {"by rows, too many", "add", "f32[4294967296,64]",
     "f32[4294967296,64]/128,1 f32[4294967296,64] 1.0"},
    {"by strides", "add", "f32[2147483648,4]", "f32[2147483648,4]/8,1 f32[2147483648,4] 1.0"},
    {"one long row", "add", "f32[2,4294967296]", "f32[2,4294967296] f32[2,4294967296]/0,1 1.0"},
    {"bytes", "logical_not", "bool[68719476736]", "bool[68719476736]"},
    {"copy in a row", "copy", "f16[8589934592]", "f32[8589934592]"},
    {"copy by strides", "copy", "f32[2147483648,4]", "f32[2147483648,4]/8,1"},
    {"copy turned", "copy", "f32[65536,131072]", "f32[65536,131072]/1,65536"},
    {"copy turned, narrow", "copy", "f32[1073741824,8]", "f32[1073741824,8]/1,1073741824"},
    {"fill", "fill", "u8[8589934593]", "1"},
    {"fill by strides", "fill", "f32[2147483648,4]/8,1", "1.0"},
    {"arange", "arange", "i64[8589934592]", "0 1"},
    {"random_bits", "random_bits", "i64[8589934592]", "1 0"},
    {"sum of all", "sum", "f32[1]", "f32[8589934592] (0)"},
    {"sum of long rows", "sum", "f32[2,1]", "f32[2,4294967296] (1)"},
    {"sum of short rows", "sum", "f32[4294967296,1]", "f32[4294967296,2] (1)"},
    {"sum of columns", "sum", "f32[1,4294967296]", "f32[2,4294967296] (0)"},
    {"sum of long columns", "sum", "f32[1,2]", "f32[4294967296,2] (0)"},
    {"sum of nothing", "sum", "f32[8589934592,1]", "f32[8589934592,1] (1)"},
    {"var", "var", "f32[1,65536]", "f32[131072,65536] (0) 1.0"},
    {"argmax", "argmax", "i64[1]", "f32[8589934592] 0"},
    {"softmax of long lines", "softmax", "f32[2,4294967296]", "f32[2,4294967296] 1"},
    {"softmax of short lines", "softmax", "f32[4294967296,2]", "f32[4294967296,2] 1"},
    {"softmax of lines of one", "softmax", "f32[8589934592,1]", "f32[8589934592,1] 1"},
    {"softmax of columns", "softmax", "f32[2,4294967296]", "f32[2,4294967296] 0"},
    {"layer_norm of long lines", "layer_norm", "f32[2,4294967296] f32[2,1] f32[2,1]",
     "f32[2,4294967296] - - 1 0.1"},
    {"layer_norm of short lines", "layer_norm",
     "f32[4294967296,2] f32[4294967296,1] f32[4294967296,1]",
     "f32[4294967296,2] f32[2] f32[2] 1 0.1"},
    {"cumsum of a line", "cumsum", "f32[8589934592]", "f32[8589934592] 0"},
    {"cumsum of short lines", "cumsum", "f32[4294967296,2]", "f32[4294967296,2] 1"},
    {"cumsum of columns", "cumsum", "f32[2,4294967296]", "f32[2,4294967296] 0"},
    {"sort of a line", "sort", "f32[8589934592] i64[8589934592]", "f32[8589934592] 0 false"},
    {"sort of short lines", "sort", "f32[4294967296,2] i64[4294967296,2]",
     "f32[4294967296,2] 1 false"},
    {"gather", "gather", "i8[4294967296,2]", "i8[4294967296,2] 0 i64[4294967296,2]"},
    {"index_select of rows", "index_select", "i8[8388608,1024]", "i8[64,1024] 0 i64[8388608]"},
    {"index_add", "index_add", "f32[64,1024]", "f32[64,1024] 0 i64[8388608] f32[8388608,1024] 1.0"},
    {"scatter_add", "scatter_add", "f32[2,4294967296]",
     "f32[2,4294967296] 0 i64[2,4294967296] f32[2,4294967296]"},
    {"max_pool2d", "max_pool2d", "f32[8192,1024,32,32] i64[8192,1024,32,32]",
     "f32[8192,1024,64,64] (2,2) (2,2) (0,0) (1,1) false"},
    {"max_pool2d_backward", "max_pool2d_backward", "f32[8192,1024,64,64]",
     "f32[8192,1024,32,32] i64[8192,1024,32,32] (8192,1024,64,64)"},
    {"avg_pool2d", "avg_pool2d", "f32[8192,1024,32,32]",
     "f32[8192,1024,64,64] (2,2) (2,2) (0,0) false true"},
    {"bmm of many", "bmm", "f32[134217728,8,8]", "f32[134217728,8,8] f32[134217728,8,8]"},
    {"bmm of bf16", "bmm", "bf16[1,131072,65536]", "bf16[1,131072,64] bf16[1,64,65536]"},
    {"bmm, deep", "bmm", "f32[1,1,1]", "f32[1,1,8589934592] f32[1,8589934592,1]"},
    {"addmm", "addmm", "f32[4294967296,2]", "f32[2] f32[4294967296,2] f32[2,2] 1.0 1.0"},
    {"convolution", "convolution", "f32[8192,64,128,128]",
     "f32[8192,64,128,128] f32[64,64,3,3] - (1,1) (1,1) (1,1) 1"},
    {"convolution_backward_input", "convolution_backward_input", "f32[8192,64,128,128]",
     "f32[8192,64,64,64] f32[64,64,3,3] (8192,64,128,128) (2,2) (1,1) (1,1) 1"},
    {"convolution_backward_weight", "convolution_backward_weight", "f32[64,64,3,3]",
     "f32[8192,64,128,128] f32[8192,64,128,128] (64,64,3,3) (1,1) (1,1) (1,1) 1"},
};

/* More than the groups of its launches can be is refused, in words. */
static void huge_calls_keep_within_limits(void **state) {
    for (size_t g = 0; g < N(gpus); g++)
        for (size_t i = 0; i < N(huge_calls); i++) {
            seen all[MAX_LAUNCHES];
            tn_status status;
            int n = launches_of(&huge_calls[i], gpus[g], all, &status);
            if (status != TN_OK)
                fail_msg("%s: status %d", huge_calls[i].name, (int)status);
            for (int k = 0; k < n; k++) {
                check_limits(&huge_calls[i], gpus[g], &all[k]);
                if (strstr(all[k].options, "-DINDEX=i32") &&
                    all[k].launch.groups[0] * at_least_one(all[k].launch.groups[1]) *
                            at_least_one(all[k].launch.local[0]) >
                        INT32_MAX)
                    fail_msg("%s: %s counts in 32 bits", huge_calls[i].name, all[k].entry);
            }
        }
}

static void too_many_groups_are_refused(void **state) {
    static const described call = {"add", "add", "f32[1099511627776,4]",
                                   "f32[1099511627776,4]/8,1 f32[1099511627776,4] 1.0"};
    seen all[MAX_LAUNCHES];
    tn_status status;
    assert_int_equal(launches_of(&call, &large_gpu, all, &status), 0);
    assert_int_equal(status, TN_ERR_UNSUPPORTED);
}

/* ---- geometry ---------------------------------------------------------------------------- */

/* Of the large GPU, worked out by hand: a launch's options and its work groups of so many work items,
 * with "and on" where there may be fewer. */
static const struct {
    described call;
    int which; /* of the launches */
    const char *has, *groups;
} expected[] = {
    /* 2^33 / 4 packs */
    {{"a row", "add", "f32[8589934592]", "f32[8589934592] f32[8589934592] 1.0"},
     0,
     "-DINDEX=i64",
     "op_add: 8388608,1,1 of 256,1,1 and on"},
    /* the longest that 32 bits count, and one more */
    {{"2^30 - 2", "neg", "f32[1073741822]", "f32[1073741822]"},
     0,
     "-DINDEX=i32",
     "op_neg: 1048576,1,1 of 256,1,1 and on"},
    {{"2^30 - 1", "neg", "f32[1073741823]", "f32[1073741823]"},
     0,
     "-DINDEX=i64",
     "op_neg: 1048576,1,1 of 256,1,1 and on"},
    {{"one", "neg", "f32[1]", "f32[1]"}, 0, "", "op_neg: 1,1,1 of 256,1,1 and on"},
    {{"bytes", "neg", "i8[2049]", "i8[2049]"}, 0, "", "op_neg: 2,1,1 of 256,1,1 and on"},
    /* a row of 1024 is a group's, and there are 2^23 of them */
    {{"rows", "add", "f32[8388608,1024]", "f32[8388608,1024] f32[8388608,1024]/0,1 1.0"},
     0,
     "-DSTRIDED=2 -DINDEX=i64",
     "op_add: 1,32768,256 of 256,1,1"},
    /* 2048 x 4097 tiles of 32 x 32 */
    {{"turned", "copy", "f32[65536,131073]", "f32[65536,131073]/1,65536"},
     0,
     "-DINDEX=i64",
     "copy_i32: 8390656,1,1 of 32,4,1"},
    {{"fill", "fill", "u8[4096]", "1"}, 0, "-DT=i64", "fill: 1,1,1 of 256,1,1 and on"},
    {{"random_bits", "random_bits", "i32[1025]", "1 0"}, 0, "", "random_bits: 2,1,1 of 256,1,1"},
    /* 256 work items with four packs each to a line */
    {{"softmax", "softmax", "f32[1000000,4096]", "f32[1000000,4096] 1"},
     0,
     "-DSTEPS=4 -DINDEX=i64 -DROWS=1 -DL=256 -DM=1 -DP=1",
     "softmax: 1000000,1,1 of 256,1,1"},
    /* a work item to a line of two */
    {{"short lines", "softmax", "f32[4294967296,2]", "f32[4294967296,2] 1"},
     0,
     "-DINDEX=i64",
     "softmax: 16777216,1,1 of 256,1,1"},
    /* as many chunks as there may be */
    {{"sum", "sum", "f32[1]", "f32[67108864] (0)"}, 0, "-DCHUNKS=1", "reduce: 1,1024,1 of 256,1,1"},
    {{"sum", "sum", "f32[1]", "f32[67108864] (0)"}, 1, "-DL=64", "merge: 1,1,1 of 64,1,1"},
    /* four elements of i32 to a work item: 2^16 rows of 256 */
    {{"rows by index", "index_select", "i32[65536,1023]", "i32[64,1023] 0 i64[65536]"},
     0,
     "",
     "gather_i32_same_unit: 65536,1,1 of 256,1,1"},
    {{"elements by index", "gather", "f16[1000,3]", "f16[1000,3] 0 i64[1000,3]"},
     0,
     "",
     "gather_i16_unit: 12,1,1 of 256,1,1"},
    /* tiles of 64 x 64, 2^22 of them for each of the batch */
    {{"product", "bmm", "f32[2,131072,131072]", "f32[2,131072,64] f32[2,64,131072]"},
     1,
     "-DPANEL=64",
     "gemm: 8388608,1,1 of 16,16,1"},
};

static void describe(const seen *s, char *out, size_t room) {
    unsigned long long n[6];
    for (int k = 0; k < 3; k++) {
        n[k] = at_least_one(s->launch.groups[k]);
        n[3 + k] = at_least_one(s->launch.local[k]);
    }
    snprintf(out, room, "%s: %llu,%llu,%llu of %llu,%llu,%llu%s", s->entry, n[0], n[1], n[2], n[3],
             n[4], n[5], s->launch.goes_on ? " and on" : "");
}

static void groups_are_as_many_as_there_is_work(void **state) {
    for (size_t i = 0; i < N(expected); i++) {
        seen all[MAX_LAUNCHES];
        tn_status status;
        char groups[160];
        int n = launches_of(&expected[i].call, &large_gpu, all, &status);
        assert_int_equal(status, TN_OK);
        assert_true(n > expected[i].which);
        const seen *s = &all[expected[i].which];
        describe(s, groups, sizeof groups);
        if (strcmp(groups, expected[i].groups) != 0 || !strstr(s->options, expected[i].has))
            fail_msg("%s: %s with %s; not %s", expected[i].call.name, groups, s->options,
                     expected[i].groups);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hot_calls_keep_within_limits),
        cmocka_unit_test(huge_calls_keep_within_limits),
        cmocka_unit_test(too_many_groups_are_refused),
        cmocka_unit_test(groups_are_as_many_as_there_is_work),
    };
    return cmocka_run_group_tests_name("gpu launches", tests, NULL, NULL);
}
