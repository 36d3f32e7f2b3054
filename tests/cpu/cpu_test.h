/* What the tests of the CPU plugin share. What its kernels compute is the conformance
 * suite's matter; here is what this plugin alone promises. */
#ifndef TNI_TESTS_CPU_CPU_TEST_H
#define TNI_TESTS_CPU_CPU_TEST_H

#include <mini_test.h>
#include <tenon/kernels.h>

/* The loaded plugin, with its device open. */
extern mini cpu;

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* The families; each runs its group of tests and returns the number of failures. */
int test_math(void);
int test_plugin(void);
int test_products(void);

/* Fixture of every test: frees its tensors and its memory. */
int test_end(void **state);

/* `TEST(f)`: an entry of a group. */
#define TEST(f) cmocka_unit_test_teardown(f, test_end)

/* Zeroed memory until test_end. */
void *scratch(size_t bytes);

/* How many threads a kernel may use to start with, also where there are fewer cores, so that splits
 * fall unevenly. */
enum { THREADS = 3 };

/* A dense tensor until test_end; `elements_of` is its memory, which the host may touch. */
mini_tensor *tensor_create(tn_dtype dtype, int32_t rank, const int64_t *sizes);
void *elements_of(const mini_tensor *t);

#endif /* TNI_TESTS_CPU_CPU_TEST_H */
