/* A NVRTC that gives PTX out as what the driver double takes for a cubin: the real one's, for the same
 * architecture, but optimised little and never seen by ptxas, which the suite `lint` lets compile all of it.
 *
 * Words of the environment variable TENON_TEST_NVRTC, between spaces or semicolons:
 *
 *   real=PATH               the real one; else the first of libnvrtc.so.13, .12, that the linker, and
 *                           then the folder of the headers' toolkit, has
 *   fail=FUNCTION:N[:ERROR] its Nth call fails (11, NVRTC_ERROR_INTERNAL_ERROR); N+: and all after it
 *   report=PATH             at exit: calls, a line for each function */
#ifndef TNI_TESTS_CUDA_DOUBLE_NVRTC_DOUBLE_H
#define TNI_TESTS_CUDA_DOUBLE_NVRTC_DOUBLE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* Words as above, which hold from here on; "fail=" alone takes back what was said before. */
bool double_nvrtc_configure(const char *words);
uint64_t double_nvrtc_calls(const char *function);

#pragma GCC visibility pop

#endif
