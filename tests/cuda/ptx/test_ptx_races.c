/* Races over shared memory are found, and nothing else is taken for one. */
#include "tests/cuda/ptx/ptx_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, BLOCKS = 2 };

typedef struct found {
    int n;
    char first[512];
} found;

typedef struct board {
    found found;
    rig *rig;
} board;

static bool find(void *user, uint64_t address, ptx_range *out) {
    rig *r = ((board *)user)->rig;
    *out = (ptx_range){RIG_BASE, RIG_BASE + r->used, r->memory};
    return address >= out->begin && address < out->end;
}

static void race(void *user, const char *what) {
    found *f = &((board *)user)->found;
    if (!f->n++)
        snprintf(f->first, sizeof f->first, "%s", what);
}

static found run(rig *r, uint64_t out, uint64_t which) {
    board b = {.rig = r};
    uint64_t parameters[2] = {out, which};
    ptx_launch launch = {.kernel = ptx_module_kernel(r->module, "races"),
                         .parameters = parameters,
                         .grid = {BLOCKS, 1, 1},
                         .block = {THREADS, 1, 1},
                         .find = find,
                         .race = race,
                         .user = &b};
    assert_non_null(launch.kernel);
    assert_int_equal(ptx_run(&launch, r->error, sizeof r->error), PTX_DONE);
    return b.found;
}

static void races_are_found(void **state) {
    /* Warps run one after the other, and from the barrier on the one that came last. */
    static const struct {
        int n;
        const char *first;
    } expected[] = {
        {1, "thread 0 of block (0, 0, 0) reads byte 4 of shared memory"},     {0, ""},
        {2, "thread 32 of block (0, 0, 0) writes byte 128 of shared memory"}, {0, ""},
        {2, "thread 0 of block (0, 0, 0) reads byte 128 of shared memory"},    {0, ""},
        {1, "thread 1 of block (0, 0, 0) writes byte 0 of shared memory"},    {0, ""},
        {2, "thread 0 of block (0, 0, 0) reads byte 256 of shared memory"},
    };
    char *text = rig_file("kernels.ptx");
    rig *r = rig_open(text, 4096);
    uint64_t out = rig_take(r, 4 * THREADS * BLOCKS);
    for (uint64_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        found f = run(r, out, k);
        if (f.n != expected[k].n || !strstr(f.first, expected[k].first))
            fail_msg("case %u: %d races, '%s'", (unsigned)k, f.n, f.first);
    }
    /* The results are what they are without it. */
    uint32_t *words = rig_host(r, out);
    run(r, out, 3);
    for (uint32_t k = 0; k < THREADS * BLOCKS; k++)
        assert_int_equal(words[k], (k % THREADS) ^ 32);
    rig_close(r);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(races_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
