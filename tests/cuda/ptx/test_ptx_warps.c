/* Kernels of kernels.cu: lanes that part and meet, barriers, shuffles, memory of each kind,
 * calls, and what must be refused. From kernels.ptx, or given an architecture from what NVRTC
 * makes of it. */
#include "tests/cuda/ptx/ptx_rig.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static int arch = 80;

static rig *open_kernels(void) {
    return rig_open(text, 1 << 20);
}

/* An array of so many words. */
static uint32_t *take(rig *r, uint64_t *out_address, uint32_t n) {
    *out_address = rig_take(r, n * 4ull);
    return rig_host(r, *out_address);
}

/* ---- lanes that part and meet ------------------------------------------------------------ */

static void loops_of_different_lengths(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *out = take(r, &a, 1000);
    RIG_RUN(r, "collatz", 5, 200, a);
    for (uint32_t k = 0; k < 1000; k++) {
        uint32_t n = k + 1, steps = 0;
        for (; n != 1; steps++)
            n = n % 2 ? 3 * n + 1 : n / 2;
        assert_int_equal(out[k], steps);
    }
    rig_close(r);
}

static void lanes_meet_again(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *out = take(r, &a, 70);
    RIG_RUN(r, "meets_again", 1, 70, a);
    for (uint32_t k = 0; k < 70; k++)
        assert_int_equal(out[k], k < 64 ? 32 : 6);
    rig_close(r);
}

static void switches_go_to_each_case(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    uint32_t *out = take(r, &a, 96), *in = take(r, &b, 96);
    for (uint32_t k = 0; k < 96; k++)
        in[k] = k * 7 % 11;
    RIG_RUN(r, "switches", 1, 96, a, b);
    for (uint32_t k = 0; k < 96; k++) {
        const uint32_t want[11] = {
            100,        10, 30, (uint32_t)__builtin_popcount(0x12345 * 3), 0x51, 5 << 9, 166, ~7u,
            0x10000000, 0,  0};
        assert_int_equal(out[k], want[in[k]]);
    }
    rig_close(r);
}

static void barriers_do_not_wait_for_those_that_left(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *out = take(r, &a, 256);
    RIG_RUN(r, "leaves_early", 2, 128, a, UINT64_C(173));
    for (uint32_t k = 0; k < 173; k++)
        assert_int_equal(out[k], k < 128 ? 128 : 45);
    rig_close(r);
}

static void lanes_that_wait_for_each_other_go_on(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *words = take(r, &a, 2);
    words[0] = words[1] = 0;
    RIG_RUN(r, "takes_turns", 2, 64, a, a + 4);
    assert_int_equal(words[1], 128);
    rig_close(r);
}

static void warps_that_wait_for_each_other_go_on(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *out = take(r, &a, 128);
    RIG_RUN(r, "waits_for_flag", 1, 128, a);
    for (uint32_t k = 0; k < 128; k++)
        assert_int_equal(out[k], 17);
    rig_close(r);
}

/* ---- barriers ---------------------------------------------------------------------------- */

static void barriers_in_loops(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    uint32_t *out = take(r, &a, 256), *in = take(r, &b, 1024);
    uint32_t sum[4] = {0};
    for (uint32_t k = 0; k < 1024; k++)
        sum[k / 256] += in[k] = k * k;
    RIG_RUN(r, "sums", 4, 256, a, b);
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(out[k], sum[k]);
    assert_int_equal(rig_run(r, "sums_dynamic", 1, 256, 1024, 2, a, b), PTX_DONE);
    for (uint32_t k = 0; k < 256; k++)
        assert_int_equal(out[k], sum[0] + k % 4);
    /* A word less than it uses. */
    assert_int_equal(rig_run(r, "sums_dynamic", 1, 256, 1020, 2, a, b), PTX_ILLEGAL_ADDRESS);
    rig_close(r);
}

static void barriers_that_count(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    uint32_t *out = take(r, &a, 200), *in = take(r, &b, 200);
    for (uint32_t k = 0; k < 200; k++)
        in[k] = k < 100 ? k : 2 * k + 900;
    RIG_RUN(r, "counts", 2, 100, a, b);
    for (uint32_t k = 0; k < 200; k++)
        assert_int_equal(out[k], k < 100 ? 50 * 4 + 2 + 1 : 0);
    rig_close(r);
}

static void barriers_of_a_part_of_the_block(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *out = take(r, &a, 128);
    RIG_RUN(r, "halves", 1, 128, a);
    for (uint32_t k = 0; k < 128; k++)
        assert_int_equal(out[k], (k ^ 63) * (k ^ 63));
    RIG_RUN(r, "same_value", 2, 64, a);
    for (uint32_t k = 0; k < 128; k++)
        assert_int_equal(out[k], k / 64 + 5);
    rig_close(r);
}

/* ---- lanes of a warp --------------------------------------------------------------------- */

static void shuffles_of_all_kinds(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    uint32_t *out = take(r, &a, 64 * 8), *in = take(r, &b, 64);
    uint32_t sum[2] = {0};
    for (uint32_t k = 0; k < 64; k++)
        sum[k / 32] += in[k] = k * 37 % 101;
    RIG_RUN(r, "shuffles", 1, 64, a, b);
    for (uint32_t k = 0; k < 64; k++) {
        uint32_t lane = k % 32, warp = k - lane;
        const uint32_t *x = in + warp;
        const uint32_t want[8] = {x[lane ^ 5],
                                  x[lane >= 3 ? lane - 3 : lane],
                                  x[lane % 16 + 7 < 16 ? lane + 7 : lane],
                                  x[lane / 8 * 8 + (lane * 5 + 1) % 8],
                                  x[lane % 4 ? lane - 1 : lane],
                                  x[lane ^ 16],
                                  sum[k / 32],
                                  lane < 16 ? x[lane ^ 1] : x[lane ^ 2] + 1};
        for (uint32_t j = 0; j < 8; j++)
            assert_int_equal(out[8 * k + j], want[j]);
    }
    rig_close(r);
}

static void votes_of_all_kinds(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    uint32_t *out = take(r, &a, 64 * 8), *in = take(r, &b, 64);
    for (uint32_t k = 0; k < 64; k++)
        in[k] = k * 37 % 101 + (k == 40 ? 200000 : 0);
    RIG_RUN(r, "votes", 1, 64, a, b);
    for (uint32_t k = 0; k < 64; k++) {
        const uint32_t *x = in + k / 32 * 32;
        uint32_t ones = 0, five = 0, twos = 0, three = 0, sum = 0, most = 0, bits = 0;
        for (uint32_t l = 0; l < 32; l++) {
            ones |= (x[l] & 1) << l;
            five |= (uint32_t)(x[l] % 5 == in[k] % 5) << l;
            twos |= (uint32_t)(l & 1 && x[l] & 2) << l;
            three |= x[l] == 3;
            sum += x[l];
            most = x[l] > most ? x[l] : most;
            bits ^= x[l];
        }
        uint32_t least = 1000;
        for (uint32_t l = 0; l < 32; l++)
            least = x[l] < least ? x[l] : least;
        assert_int_equal(out[8 * k], ones);
        assert_int_equal(out[8 * k + 1], three + (k < 32 ? 2 : 0));
        assert_int_equal(out[8 * k + 2], five);
        assert_int_equal(out[8 * k + 3], k < 32 ? UINT32_MAX : 0);
        assert_int_equal(out[8 * k + 4], k < 32);
        assert_int_equal(out[8 * k + 5], k & 1 ? twos : 0);
        if (arch >= 80) {
            assert_int_equal(out[8 * k + 6], sum ^ most);
            assert_int_equal(out[8 * k + 7], (least - 50) ^ bits);
        }
    }
    rig_close(r);
}

/* ---- memory ------------------------------------------------------------------------------ */

static void variables_have_their_values(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    float *out = (void *)take(r, &a, 64);
    uint32_t *length = take(r, &b, 64);
    static const float want[8] = {1.5f, -2, 3.25f, 4, 5, 6, 7, 8};
    for (uint32_t launch = 0; launch < 2; launch++) {
        RIG_RUN(r, "variables", 2, 32, a, b);
        for (uint32_t k = 0; k < 64; k++) {
            assert_true(out[k] == want[k % 8]);
            assert_int_equal(length[k], (k % 2 ? 3 : 5) * 100 + 42 + 4 * launch + 2 * (k / 32));
        }
    }
    rig_close(r);
}

static void one_function_reads_every_memory(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    uint32_t *out = take(r, &a, 96), *in = take(r, &b, 96);
    for (uint32_t k = 0; k < 96; k++)
        in[k] = k + 3;
    RIG_RUN(r, "generic", 1, 96, a, b);
    for (uint32_t k = 0; k < 96; k++)
        assert_int_equal(out[k], k % 3 == 0 ? 52 : k % 3 == 1 ? 28 : 28 * (k + 3));
    rig_close(r);
}

static void calls_take_and_give_structs(void **state) {
    rig *r = open_kernels();
    uint64_t a = rig_take(r, 8 * 64), b;
    double *out = rig_host(r, a);
    uint32_t *more = take(r, &b, 64);
    RIG_RUN(r, "calls", 2, 32, a, b);
    for (uint32_t k = 0; k < 64; k++) {
        double x = k;
        uint32_t n = k + 1, t = k % 32, c[5] = {1, 2, 3, 4, 5};
        if (t & 1) {
            x = x * 2 + n;
            n += c[t % 5];
            c[2] += 3;
        } else {
            n = 9;
        }
        x = x * 0.5 + n;
        n += c[t % 5];
        c[2] += 3;
        assert_true(out[k] == x);
        assert_int_equal(more[k], n * 256 + c[2]);
    }
    rig_close(r);
}

static void vectors_of_memory(void **state) {
    rig *r = open_kernels();
    uint64_t a, b, c, d;
    float *out = (void *)take(r, &a, 256), *in = (void *)take(r, &b, 256);
    uint8_t *small = (void *)take(r, &c, 64);
    int16_t *pairs = (void *)take(r, &d, 64);
    for (int k = 0; k < 256; k++) {
        in[k] = (float)k;
        small[k] = (uint8_t)k;
        if (k < 128)
            pairs[k] = (int16_t)(k * 300 - 20000);
    }
    RIG_RUN(r, "vectors", 2, 32, a, b, c, d);
    for (int k = 0; k < 64; k++) {
        for (int j = 0; j < 4; j++) {
            assert_true(out[4 * k + j] == (float)(4 * k + 3 - j + (j == 1)));
            assert_int_equal(small[4 * k + j], 4 * k + (j + 3) % 4);
        }
        assert_int_equal(pairs[2 * k], (int16_t)((2 * k + 1) * 300 - 20000));
        assert_int_equal(pairs[2 * k + 1], (int16_t) - (2 * k * 300 - 20000));
    }
    rig_close(r);
}

static void copies_are_there_when_waited_for(void **state) {
    if (arch < 80)
        return;
    rig *r = open_kernels();
    uint64_t a, b;
    float *out = (void *)take(r, &a, 32), *in = (void *)take(r, &b, 256);
    for (int k = 0; k < 256; k++)
        in[k] = (float)k;
    RIG_RUN(r, "asynchronous", 1, 32, a, b, UINT64_C(200));
    for (int k = 0; k < 32; k++) {
        int j = k * 4 ^ 4;
        assert_true(out[k] == (float)(j + (j + 128 < 200 ? j + 128 : 0)));
    }
    RIG_RUN(r, "impatient", 1, 32, a, b);
    for (int k = 0; k < 32; k++)
        assert_true(isnan(out[k]));
    rig_close(r);
}

/* ---- atomics ----------------------------------------------------------------------------- */

typedef struct counted {
    rig *r;
    uint64_t at;
} counted;

static void *add_everywhere(void *user) {
    counted *c = user;
    for (int k = 0; k < 20; k++) {
        uint64_t parameters[16] = {c->at,      c->at + 8,  c->at + 16, c->at + 24,
                                   c->at + 32, c->at + 64, c->at + 68};
        rig copy = *c->r;
        RIG_RUN(&copy, "atomics", 7, 96, parameters[0], parameters[1], parameters[2], parameters[3],
                parameters[4], parameters[5], parameters[6]);
    }
    return NULL;
}

static void atomics_of_blocks_and_threads(void **state) {
    rig *r = open_kernels();
    enum { N = 7 * 96, LAUNCHES = 3 * 20 };
    counted c = {.r = r};
    uint32_t *words = take(r, &c.at, 64);
    memset(words, 0, 256);
    words[8 + 3] = UINT32_MAX;
    pthread_t threads[3];
    for (int k = 0; k < 3; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, add_everywhere, &c), 0);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    float f;
    double d;
    uint64_t u;
    uint32_t sequence = 0;
    memcpy(&f, words + 2, 4);
    memcpy(&d, words + 4, 8);
    memcpy(&u, words + 6, 8);
    for (int k = 0; k < N * LAUNCHES; k++)
        sequence = sequence * 3 + 1;
    assert_int_equal((int32_t)words[0], LAUNCHES * (N * (N - 1) / 2 - 100 * N));
    assert_true(f == 0.5f * N * LAUNCHES);
    assert_true(d == 0.25 * N * LAUNCHES);
    assert_int_equal(u, (uint64_t)(LAUNCHES * (N * (N - 1) / 2)) << 32);
    assert_int_equal(words[8], N * LAUNCHES % 100);
    assert_int_equal(words[9], 0);
    assert_int_equal(words[10], UINT32_MAX);
    assert_int_equal(words[11], UINT32_C(0x80000000));
    assert_int_equal(words[12], sequence);
    assert_int_equal(words[13], 96 * 95 / 2);
    int least = 0, most = 0;
    for (int k = 0; k < N; k++) {
        int x = (int)((uint32_t)k * 7919 % 1000);
        least = -x < least ? -x : least;
        most = x > most ? x : most;
    }
    assert_int_equal((int32_t)words[16], least);
    assert_int_equal((int32_t)words[17], most);
    rig_close(r);
}

/* ---- what must not be -------------------------------------------------------------------- */

static void refused(rig *r, ptx_result got, ptx_result want, const char *thread, const char *what) {
    if (got != want || !strstr(r->error, thread) || !strstr(r->error, what))
        fail_msg("%d, not %d with '%s' and '%s': %s", got, want, thread, what, r->error);
}

static void addresses_are_checked(void **state) {
    rig *r = open_kernels();
    uint64_t a, b;
    take(r, &a, 64);
    take(r, &b, 64);
    uint64_t behind = (r->bytes - (b - RIG_BASE)) / 4;
    r->used = r->bytes;
    uint64_t one = 1;
    refused(r, rig_run(r, "reads_at", 2, 32, 0, 3, a, b, behind), PTX_ILLEGAL_ADDRESS,
            "thread (5, 0, 0) of block (1, 0, 0)", "reads 4 bytes");
    RIG_RUN(r, "reads_at", 2, 32, a, b, behind - 1);
    refused(r, rig_run(r, "reads_at", 2, 32, 0, 3, a, b, 0 - (b - RIG_BASE) / 4 - 1),
            PTX_ILLEGAL_ADDRESS, "thread (5, 0, 0) of block (1, 0, 0)", "no memory");
    refused(r, rig_run(r, "reads_at", 1, 1, 0, 3, a, UINT64_C(0), one), PTX_ILLEGAL_ADDRESS,
            "thread (0, 0, 0)", "0x0");
    refused(r, rig_run(r, "writes_at", 1, 32, 0, 2, a, r->bytes - (a - RIG_BASE)),
            PTX_ILLEGAL_ADDRESS, "thread (3, 0, 0)", "writes 4 bytes");
    refused(r, rig_run(r, "writes_at", 1, 32, 0, 2, a, UINT64_C(6)), PTX_MISALIGNED_ADDRESS,
            "thread (3, 0, 0)", "no multiple of 4");
    refused(r, rig_run(r, "reads_wide", 1, 4, 0, 3, a, b, UINT64_C(2)), PTX_MISALIGNED_ADDRESS,
            "thread (0, 0, 0)", "no multiple of 16");
    refused(r, rig_run(r, "shared_at", 1, 32, 0, 2, a, UINT64_C(64)), PTX_ILLEGAL_ADDRESS,
            "thread (5, 0, 0)", "shared");
    refused(r, rig_run(r, "local_at", 1, 32, 0, 2, a, UINT64_C(1000000)), PTX_ILLEGAL_ADDRESS,
            "thread (6, 0, 0)", "local");
    refused(r, rig_run(r, "atomic_at", 1, 1, 0, 2, a, r->bytes), PTX_ILLEGAL_ADDRESS,
            "thread (0, 0, 0)", "changes");
    refused(r, rig_run(r, "atomic_at", 1, 1, 0, 2, a, UINT64_C(2)), PTX_MISALIGNED_ADDRESS,
            "thread (0, 0, 0)", "changes");
    rig_close(r);
}

static void traps_end_a_launch(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    uint32_t *out = take(r, &a, 96);
    memset(out, 0, 96 * 4);
    refused(r, rig_run(r, "traps", 3, 32, 0, 2, a, UINT64_C(40)), PTX_ILLEGAL_INSTRUCTION,
            "thread (8, 0, 0) of block (1, 0, 0)", "trap");
    assert_int_equal(out[0], 1);
    assert_int_equal(out[64], 0);
    rig_close(r);
}

static void barriers_that_never_pass_are_found(void **state) {
    rig *r = open_kernels();
    uint64_t a;
    take(r, &a, 256);
    refused(r, rig_run(r, "never_passes", 1, 128, 0, 1, a), PTX_ILLEGAL_INSTRUCTION,
            "thread (0, 0, 0)", "barrier 3 can never be passed: 96 of 128");
    refused(r, rig_run(r, "waits_apart", 1, 32, 0, 1, a), PTX_ILLEGAL_INSTRUCTION,
            "thread (0, 0, 0)", "can never be passed");
    refused(r, rig_run(r, "parts_at_barrier", 1, 32, 0, 1, a), PTX_ILLEGAL_INSTRUCTION,
            "of the same warp", "barrier 0");
    refused(r, rig_run(r, "wrong_mask", 1, 32, 0, 1, a), PTX_ILLEGAL_INSTRUCTION,
            "thread (16, 0, 0)", "own mask");
    rig_close(r);
}

/* ---- facts ------------------------------------------------------------------------------- */

static void kernels_say_what_they_take(void **state) {
    rig *r = open_kernels();
    const ptx_kernel *kernel = ptx_module_kernel(r->module, "writes_at");
    ptx_facts facts = ptx_kernel_facts(kernel);
    uint32_t offset, bytes;
    assert_int_equal(facts.n_parameters, 2);
    assert_int_equal(facts.parameter_bytes, 16);
    assert_true(ptx_kernel_parameter(kernel, 1, &offset, &bytes));
    assert_int_equal(offset, 8);
    assert_int_equal(bytes, 8);
    assert_false(ptx_kernel_parameter(kernel, 2, &offset, &bytes));
    assert_int_equal(ptx_kernel_facts(ptx_module_kernel(r->module, "sums")).shared_bytes, 1024);
    assert_int_equal(ptx_kernel_facts(ptx_module_kernel(r->module, "local_at")).local_bytes, 64);
    assert_null(ptx_module_kernel(r->module, "sum_of"));
    assert_null(ptx_module_kernel(r->module, "none"));
    rig_close(r);
}

int main(int argc, char **argv) {
    if (argc > 1)
        arch = atoi(argv[1]);
    text = argc > 1 ? rig_compile("kernels.cu", argv[1], NULL) : rig_file("kernels.ptx");
    if (!text) {
        puts(rig_no_nvrtc());
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_of_different_lengths),
        cmocka_unit_test(lanes_meet_again),
        cmocka_unit_test(switches_go_to_each_case),
        cmocka_unit_test(barriers_do_not_wait_for_those_that_left),
        cmocka_unit_test(lanes_that_wait_for_each_other_go_on),
        cmocka_unit_test(warps_that_wait_for_each_other_go_on),
        cmocka_unit_test(barriers_in_loops),
        cmocka_unit_test(barriers_that_count),
        cmocka_unit_test(barriers_of_a_part_of_the_block),
        cmocka_unit_test(shuffles_of_all_kinds),
        cmocka_unit_test(votes_of_all_kinds),
        cmocka_unit_test(variables_have_their_values),
        cmocka_unit_test(one_function_reads_every_memory),
        cmocka_unit_test(calls_take_and_give_structs),
        cmocka_unit_test(vectors_of_memory),
        cmocka_unit_test(copies_are_there_when_waited_for),
        cmocka_unit_test(atomics_of_blocks_and_threads),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(traps_end_a_launch),
        cmocka_unit_test(barriers_that_never_pass_are_found),
        cmocka_unit_test(kernels_say_what_they_take),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(text);
    return failed;
}
