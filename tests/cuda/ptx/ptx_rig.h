/* What tests of the interpreter of PTX share: device memory, launches, and NVRTC where it is. */
#ifndef TNI_TESTS_CUDA_PTX_PTX_RIG_H
#define TNI_TESTS_CUDA_PTX_PTX_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cuda/double/ptx.h"

/* Device memory of one allocation, which is all that a launch may touch. */
#define RIG_BASE UINT64_C(0x7f2000000000)
typedef struct rig {
    ptx_module *module;
    unsigned char *memory;
    uint64_t bytes, used;
    char error[512];
    uint64_t executed;
} rig;

/* Reads `text`, which must be understood. */
rig *rig_open(const char *text, uint64_t bytes);
void rig_close(rig *r);

/* Device memory, at multiples of 256 bytes; where it lies on the host. */
uint64_t rig_take(rig *r, uint64_t bytes);
void *rig_host(rig *r, uint64_t address);

/* Parameters are 8 bytes each. */
ptx_result rig_run(rig *r, const char *kernel, uint32_t blocks, uint32_t threads,
                   uint32_t dynamic_shared, int n, ...);
#define RIG_RUN(r, kernel, blocks, threads, ...) \
    assert_int_equal(rig_run(r, kernel, blocks, threads, 0, RIG_COUNT(__VA_ARGS__), __VA_ARGS__), \
                     PTX_DONE)
#define RIG_COUNT(...) (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* A file beside the tests; to be freed. */
char *rig_file(const char *name);
/* What NVRTC makes of a file beside the tests, for compute_NN; to be freed. NULL: there is no NVRTC. */
char *rig_compile(const char *name, const char *arch, const char *option);
/* Why rig_compile gave NULL. */
const char *rig_no_nvrtc(void);

/* A kernel k of one instruction, with arrays of its operands, 8 bytes an element. Operands are as
 * in the interpreter's forms: digits are bytes, p a predicate (bit 0 of a value), results before
 * the slash. With an `odd` of 1 only threads of an even number have their turn. */
#define RIG_OPERANDS 6
void rig_kernel(char *out, size_t room, const char *name, const char *operands);

/* Random bits, among them those that are edges of something. */
uint64_t rig_bits(uint64_t *state);

#endif
