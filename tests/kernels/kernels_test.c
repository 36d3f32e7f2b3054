/* Operands, calls and their account; and main: test_kernels PLUGIN.so ISA [FAMILY | PATTERN], where
 * a pattern of names of tests has a star in it. */
#include "kernels_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ext/threads.h>

mini cpu;

/* ---- a case --------------------------------------------------------------------------------- */

typedef struct block {
    struct block *next;
    _Alignas(max_align_t) char data[];
} block;

static block *blocks;
static char text[256];

void *scratch(size_t bytes) {
    block *b = calloc(1, sizeof *b + bytes);
    assert_non_null(b);
    b->next = blocks;
    blocks = b;
    return b->data;
}

int case_end(void **state) {
    mini_tensors_free(&cpu);
    while (blocks) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    text[0] = 0;
    return 0;
}

void describe(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
}

const char *description(void) {
    return text;
}

void use_threads(uint32_t n) {
    const tn_ext_threads *threads = cpu.plugin->extension(cpu.self, TN_EXT_THREADS);
    assert_ok(threads->set_num_threads(cpu.self, n));
}

/* ---- operands ------------------------------------------------------------------------------- */

enum { GUARD = 64 }; /* elements before and after; keeps the alignment of every dtype */

static unsigned char pattern(uint64_t i) {
    return (unsigned char)(i * 37 + (i >> 8) * 11 + 91);
}

/* Where each logical element lies in the storage, in elements: an odometer over the strides. */
static void find_places(operand *o, const int64_t *strides, int64_t first) {
    int64_t at[MINI_MAX_RANK] = {0}, place = first;
    o->places = scratch((size_t)o->numel * sizeof *o->places);
    for (int64_t i = 0; i < o->numel; i++) {
        o->places[i] = place;
        for (int32_t d = o->rank - 1; d >= 0; d--) {
            place += strides[d];
            if (++at[d] < o->sizes[d])
                break;
            place -= at[d] * strides[d];
            at[d] = 0;
        }
    }
}

static operand *make(tn_dtype dtype, int32_t rank, const int64_t *sizes, const int64_t *strides,
                     int64_t shift) {
    operand *o = scratch(sizeof *o);
    o->dtype = dtype;
    o->rank = rank;
    o->numel = 1;
    int64_t last = 0;
    for (int32_t d = 0; d < rank; d++) {
        o->sizes[d] = sizes[d];
        o->numel *= sizes[d];
        last += (sizes[d] - 1) * strides[d];
    }
    const int64_t n = last + 1 + shift + 2 * GUARD;
    o->storage = mini_tensor_create(&cpu, dtype, 1, &n, NULL, 0);
    assert_non_null(o->storage);
    o->tensor = mini_tensor_alias(&cpu, o->storage, rank, sizes, strides, GUARD + shift);
    assert_non_null(o->tensor);
    o->bytes = scratch(o->storage->bytes);
    for (uint64_t i = 0; i < o->storage->bytes; i++)
        o->bytes[i] = pattern(i);
    o->values = scratch((size_t)o->numel * sizeof *o->values);
    find_places(o, strides, GUARD + shift);
    return o;
}

operand *operand_create(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l) {
    int64_t strides[MINI_MAX_RANK] = {0}, next = l == STEPPED ? 2 : 1;
    for (int32_t i = 0; i < rank; i++) {
        const int32_t d = l == PERMUTED ? i : rank - 1 - i;
        strides[d] = next;
        next = next * sizes[d] + (l == STEPPED ? 3 : 0);
    }
    if (rank > 0 && l == BROADCAST_FIRST)
        strides[0] = 0;
    if (rank > 0 && l == BROADCAST_LAST)
        strides[rank - 1] = 0;
    return make(dtype, rank, sizes, strides, l == SHIFTED ? 3 : 0);
}

operand *operand_strided(tn_dtype dtype, int32_t rank, const int64_t *sizes,
                         const int64_t *strides) {
    return make(dtype, rank, sizes, strides, 0);
}

void operand_set(operand *o, int64_t i, number x) {
    set(o->dtype, o->bytes, o->places[i], x);
}

void operand_upload(operand *o) {
    for (int64_t i = 0; i < o->numel; i++)
        o->values[i] = get(o->dtype, o->bytes, o->places[i]);
    assert_ok(mini_tensor_write(&cpu, o->storage, o->bytes));
}

operand *operand_out(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l) {
    operand *o = operand_create(dtype, rank, sizes, l);
    const uint64_t item = mini_dtype_bytes(dtype);
    for (int64_t i = 0; i < o->numel; i++)
        memset(o->bytes + (uint64_t)o->places[i] * item, 0xff, item);
    operand_upload(o);
    return o;
}

operand *operand_random(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l, double low,
                        double high) {
    operand *o = operand_create(dtype, rank, sizes, l);
    for (int64_t i = 0; i < o->numel; i++)
        set_random(dtype, o->bytes, o->places[i], low, high);
    operand_upload(o);
    return o;
}

operand *operand_whole(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l, int64_t low,
                       int64_t high) {
    operand *o = operand_create(dtype, rank, sizes, l);
    for (int64_t i = 0; i < o->numel; i++) {
        const int64_t x = low + (int64_t)(random_u64() % (uint64_t)(high - low + 1));
        operand_set(o, i, (number){(double)x, x});
    }
    operand_upload(o);
    return o;
}

tn_cell cell_of(const operand *o) {
    return mini_view(o ? o->tensor : NULL);
}

static unsigned char *download(const operand *o) {
    unsigned char *now = scratch(o->storage->bytes);
    assert_ok(mini_tensor_read(&cpu, o->storage, now));
    return now;
}

void check_untouched(const operand *o) {
    if (memcmp(download(o), o->bytes, o->storage->bytes) != 0)
        fail_msg("%s: memory changed that is no output", text);
}

void *elements_of(const operand *o) {
    const unsigned char *now = download(o);
    const uint64_t item = mini_dtype_bytes(o->dtype);
    char *elements = scratch((size_t)o->numel * item);
    for (int64_t i = 0; i < o->numel; i++)
        memcpy(elements + (uint64_t)i * item, now + (uint64_t)o->places[i] * item, item);
    return elements;
}

static bool close_enough(tn_dtype dtype, number have, number expected, double scale, double ulps) {
    int64_t rounded[1] = {0};
    set(dtype, rounded, 0, expected);
    const number want = get(dtype, rounded, 0);
    if (!is_float(dtype))
        return have.i == want.i;
    if (isnan(want.f) || isnan(have.f))
        return isnan(want.f) && isnan(have.f);
    if (have.f == want.f)
        return ulps > 0 || signbit(have.f) == signbit(want.f);
    if (isinf(want.f) || isinf(have.f))
        return false;
    return fabs(have.f - want.f) <= ulps * epsilon(dtype) * fmax(scale, smallest_normal(dtype));
}

void check_elements(const operand *o, const number *expected, const double *scales, double ulps) {
    const uint64_t item = mini_dtype_bytes(o->dtype);
    unsigned char *now = download(o);
    for (int64_t i = 0; i < o->numel; i++) {
        const int64_t at = o->places[i];
        const number have = get(o->dtype, now, at);
        if (!close_enough(o->dtype, have, expected[i], scales ? scales[i] : fabs(expected[i].f),
                          ulps))
            fail_msg("%s: element %lld of %lld: %.17g / %lld instead of %.17g / %lld", text,
                     (long long)i, (long long)o->numel, have.f, (long long)have.i, expected[i].f,
                     (long long)expected[i].i);
        memcpy(now + (uint64_t)at * item, o->bytes + (uint64_t)at * item, item);
    }
    if (memcmp(now, o->bytes, o->storage->bytes) != 0)
        fail_msg("%s: memory round the output changed", text);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static uint64_t called[1024]; /* by record: mask of first dtypes */

static uint64_t index_of(const tn_kernel *kernel) {
    uint64_t i = 0;
    while (cpu.plugin->kernels[i] != kernel)
        i++;
    return i;
}

tn_status call_kernel(const char *op, tn_dtype t0, tn_dtype t1, uint32_t n_args,
                      const tn_cell *args, uint32_t n_outs, operand *const *outs) {
    const tn_kernel *kernel = mini_find(&cpu, op, t0, t1);
    if (!kernel)
        fail_msg("%s: no kernel for dtypes %d, %d", op, t0, t1);
    mini_tensor *tensors[MAX_OUTS];
    for (uint32_t i = 0; i < n_outs; i++)
        tensors[i] = outs[i]->tensor;
    called[index_of(kernel)] |= t0 == TN_DTYPE_NONE ? kernel->dtypes[0] : TN_DTYPE_BIT(t0);
    return mini_run(&cpu, kernel, n_args, args, n_outs, tensors);
}

void check_threads(const char *op, tn_dtype dtype, uint32_t n_args, const tn_cell *args,
                   uint32_t n_outs, operand *const *outs) {
    void *alone[MAX_OUTS];
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        use_threads(threads);
        for (uint32_t k = 0; k < n_outs; k++)
            operand_upload(outs[k]);
        assert_ok(call_kernel(op, dtype, TN_DTYPE_NONE, n_args, args, n_outs, outs));
        for (uint32_t k = 0; k < n_outs; k++) {
            void *now = elements_of(outs[k]);
            const size_t bytes = (size_t)outs[k]->numel * mini_dtype_bytes(outs[k]->dtype);
            if (threads > 1 && memcmp(now, alone[k], bytes) != 0)
                fail_msg("%s, dtype %d: other bits than on one thread", op, dtype);
            alone[k] = now;
        }
    }
    use_threads(THREADS);
}

uint64_t dtypes_of(const char *op) {
    uint64_t mask = 0;
    for (uint64_t i = 0; i < cpu.plugin->n_kernels; i++)
        if (strcmp(cpu.plugin->kernels[i]->op, op) == 0)
            mask |= cpu.plugin->kernels[i]->dtypes[0];
    if (!mask)
        fail_msg("%s: the plugin has no kernel", op);
    return mask;
}

uint32_t flags_of(const char *op, tn_dtype dtype) {
    const tn_kernel *kernel = mini_find(&cpu, op, dtype, TN_DTYPE_NONE);
    assert_non_null(kernel);
    return kernel->flags;
}

void for_dtypes(const char *op, void (*each)(tn_dtype dtype)) {
    const uint64_t mask = dtypes_of(op);
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT; dtype++)
        if (mask & TN_DTYPE_BIT(dtype)) {
            describe("%s, dtype %d", op, dtype);
            each(dtype);
            case_end(NULL);
        }
}

static void every_record_was_called_with_every_dtype(void **state) {
    int missing = 0;
    assert_true(cpu.plugin->n_kernels <= LENGTH(called));
    for (uint64_t i = 0; i < cpu.plugin->n_kernels; i++) {
        const tn_kernel *k = cpu.plugin->kernels[i];
        if ((called[i] & k->dtypes[0]) == k->dtypes[0])
            continue;
        print_error("%s: dtypes %#llx have no case\n", k->op,
                    (unsigned long long)(k->dtypes[0] & ~called[i]));
        missing++;
    }
    assert_int_equal(missing, 0);
}

int test_coverage(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_record_was_called_with_every_dtype)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- main ----------------------------------------------------------------------------------- */

static const struct family {
    const char *name;
    int (*run)(void);
} families[] = {
    {"pointwise", test_pointwise},
    {"math", test_math},
    {"copy", test_copy},
    {"factory", test_factory},
    {"reductions", test_reductions},
    {"lines", test_lines},
    {"layer_norm", test_layer_norm},
    {"indexing", test_indexing},
    {"matmul", test_matmul},
    {"convolution", test_convolution},
    {"pooling", test_pooling},
    {"plugin", test_plugin},
    {"coverage", test_coverage},
};

enum { SKIPPED = 77 };

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        print_error("usage: %s PLUGIN.so ISA [FAMILY | PATTERN]\n", argv[0]);
        return 2;
    }
    mini_option("isa", argv[2]);
    mini_option("threads", "3");
    if (!mini_open(&cpu, argv[1], 0)) {
        print_error("%s\n", mini_error());
        const bool lacks_isa = strstr(mini_error(), "TENON_CPU_ISA") != NULL;
        return lacks_isa && strcmp(argv[2], "base") != 0 ? SKIPPED : 1;
    }
    const bool is_pattern = argc == 4 && strchr(argv[3], '*');
    if (is_pattern)
        cmocka_set_test_filter(argv[3]);
    int failed = 0;
    for (int i = 0; i < LENGTH(families); i++)
        if (argc == 3 || is_pattern || strcmp(argv[3], families[i].name) == 0)
            failed += families[i].run();
    case_end(NULL);
    if (!mini_close(&cpu)) {
        print_error("%lld blocks of host memory were not given back\n",
                    (long long)mini_outstanding());
        failed++;
    }
    return failed != 0;
}
