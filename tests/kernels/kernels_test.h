/* kernels_test.h: what the tests of the CPU plugin's kernels share.
 *
 * The program is the host: it loads the plugin, places operands of every layout in storage that is
 * guarded all round, calls kernels, and compares every element with a slow reference in f64 or
 * 64-bit integers. It keeps account of the records and dtypes that were called, so that a kernel
 * without a case fails the suite.
 *
 * An operand lives until case_end. Failures are cmocka's.
 */
#ifndef TENON_TESTS_KERNELS_TEST_H
#define TENON_TESTS_KERNELS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elements.h>
#include <mini_host.h>
#include <tenon/kernels.h>

/* The loaded plugin, with its device open. */
extern mini cpu;

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

#define assert_ok(call) \
    do { \
        tn_status status_ = (call); \
        if (status_ != TN_OK) \
            fail_msg("%s: status %d, %s", #call, status_, mini_error()); \
    } while (0)

/* The families; each runs its group of tests and returns the number of failures. */
int test_pointwise(void);
int test_math(void);
int test_copy(void);
int test_factory(void);
int test_reductions(void);
int test_lines(void);
int test_layer_norm(void);
int test_indexing(void);
int test_matmul(void);
int test_convolution(void);
int test_pooling(void);
int test_plugin(void);

/* Fixture of every test: frees what a case left. */
int case_end(void **state);

/* `TEST(f)`: an entry of a group. */
#define TEST(f) cmocka_unit_test_teardown(f, case_end)

/* Zeroed memory until case_end. */
void *scratch(size_t bytes);

/* How many threads a kernel may use, from now on; THREADS to start with, also where there are fewer
 * cores, so that splits fall unevenly. */
enum { THREADS = 3 };
void use_threads(uint32_t n);

/* ---- operands ------------------------------------------------------------------------------- */

/* How an operand lies in its storage. Inputs may be any of these, outputs the first four. */
typedef enum layout {
    DENSE,           /* row-major, aligned as the device aligns */
    SHIFTED,         /* row-major, three elements later */
    STEPPED,         /* every other element, with gaps between rows */
    PERMUTED,        /* column-major */
    BROADCAST_FIRST, /* a stride of zero in the first dimension, */
    BROADCAST_LAST,  /* or in the last */
    N_LAYOUTS,
    N_OUT_LAYOUTS = BROADCAST_FIRST
} layout;

typedef struct operand {
    mini_tensor *tensor;
    mini_tensor *storage; /* all of the allocation, guards included */
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[MINI_MAX_RANK];
    int64_t numel;
    int64_t *places;      /* [numel]: where an element lies in the storage, in elements */
    unsigned char *bytes; /* what the storage held when it was uploaded */
    number *values;       /* [numel] in row-major order, as the dtype has them */
} operand;

/* Every byte of the storage has a value of its own, so that what a kernel leaves alone shows. */
operand *operand_create(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l);

/* The same with strides of the caller's, in elements. */
operand *operand_strided(tn_dtype dtype, int32_t rank, const int64_t *sizes,
                         const int64_t *strides);

/* An output: its elements are full of ones, NaN in every floating dtype. */
operand *operand_out(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l);

/* Random elements of [low, high]. */
operand *operand_random(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l, double low,
                        double high);

/* Random whole numbers of [low, high], exact in every dtype while they are small. */
operand *operand_whole(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l, int64_t low,
                       int64_t high);

/* Elements are set on the host, then uploaded; where a stride is zero the last one stays. */
void operand_set(operand *o, int64_t i, number x);
void operand_upload(operand *o);

/* The tensor's cell, or NONE where there is no operand. */
tn_cell cell_of(const operand *o);

/* Nothing in the storage changed. */
void check_untouched(const operand *o);

/* Elements are `expected`, rounded to the dtype, or at most ulps * scales[i] spacings from it, a
 * spacing being epsilon (scales NULL: those of the values themselves); everything round them is
 * as it was. `ulps` 0 also tells the signs of zeros apart, SAME does not. */
#define SAME 1e-9
void check_elements(const operand *o, const number *expected, const double *scales, double ulps);

/* The elements' bytes, row-major, as the device has them now; until case_end. */
void *elements_of(const operand *o);

/* ---- calls ---------------------------------------------------------------------------------- */

enum { MAX_ARGS = 12, MAX_OUTS = 3 };

/* Names the case in the messages of failures that follow: as printf. */
void describe(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *description(void);

/* Runs the kernel of `op` for the dtypes of the first type variables, TN_DTYPE_NONE for what is
 * left open, and takes note that it was called. */
tn_status call_kernel(const char *op, tn_dtype t0, tn_dtype t1, uint32_t n_args,
                      const tn_cell *args, uint32_t n_outs, operand *const *outs);

/* Runs a kernel on one thread and on four: `outs` must get the same bits. */
void check_threads(const char *op, tn_dtype dtype, uint32_t n_args, const tn_cell *args,
                   uint32_t n_outs, operand *const *outs);

/* The dtypes for which the plugin has `op`, and the flags of its record for one. */
uint64_t dtypes_of(const char *op);
uint32_t flags_of(const char *op, tn_dtype dtype);

/* Calls `each` for the dtypes of `op`, ending a case after each. */
void for_dtypes(const char *op, void (*each)(tn_dtype dtype));

/* Records and dtypes that no test called, printed; run last. */
int test_coverage(void);

#endif /* TENON_TESTS_KERNELS_TEST_H */
