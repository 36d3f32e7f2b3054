/* Tensors, and main: test_cpu PLUGIN.so ISA [PATTERN of names of tests]. */
#include "tests/cpu/cpu_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mini cpu;

typedef struct block {
    struct block *next;
    _Alignas(max_align_t) char data[];
} block;

static block *blocks;

void *scratch(size_t bytes) {
    block *b = calloc(1, sizeof *b + bytes);
    assert_non_null(b);
    b->next = blocks;
    blocks = b;
    return b->data;
}

int test_end(void **state) {
    mini_tensors_free(&cpu);
    while (blocks) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    return 0;
}

mini_tensor *tensor_create(tn_dtype dtype, int32_t rank, const int64_t *sizes) {
    mini_tensor *t = mini_tensor_create(&cpu, dtype, rank, sizes, NULL, 0);
    assert_non_null(t);
    return t;
}

void *elements_of(const mini_tensor *t) {
    return t->host;
}

enum { SKIPPED = 77 };

/* OpenBLAS takes the kernels that OPENBLAS_CORETYPE names whether or not they can run, so the
 * processor is asked before it is loaded. */
static bool runs(const char *isa) {
#if defined(__x86_64__)
    if (strcmp(isa, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (strcmp(isa, "avx512") == 0)
        return avx512;
    if (strcmp(isa, "avx512_bf16") == 0)
        return avx512 && __builtin_cpu_supports("avx512bf16");
#endif
    return strcmp(isa, "base") == 0;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        print_error("usage: %s PLUGIN.so ISA [PATTERN]\n", argv[0]);
        return 2;
    }
    if (!runs(argv[2])) {
        print_message("skipped: this processor does not run %s\n", argv[2]);
        return SKIPPED;
    }
    setenv("TENON_CPU_ISA", argv[2], 1);
    mini_option("isa", argv[2]);
    mini_option("threads", "3");
    if (!mini_open(&cpu, argv[1], 0)) {
        bool lacks_isa = strstr(mini_error(), "TENON_CPU_ISA") && strcmp(argv[2], "base") != 0;
        print_error("%s%s\n", lacks_isa ? "skipped: " : "", mini_error());
        return lacks_isa ? SKIPPED : 1;
    }
    if (argc == 4)
        cmocka_set_test_filter(argv[3]);
    int failed = test_math() + test_plugin() + test_products();
    if (!mini_close(&cpu)) {
        print_error("%lld blocks of host memory were not given back\n",
                    (long long)mini_outstanding());
        failed++;
    }
    return failed != 0;
}
