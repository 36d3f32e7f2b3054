/* An OpenCL driver that fails, lies and loses its device when it is told to.
 *
 * It lies between the OpenCL loader and the drivers that are installed: OPENCL_LAYERS names the
 * file. What it does is said in words, by the environment variable TENON_TEST_CL or by layer_say:
 *
 *     fail=clCreateBuffer:-4@3    the third call from now fails with -4; without @3 every one does.
 *                                 `*` stands for every function.
 *     lose=-36@5                  the fifth call from now that has to do with a queue fails with
 *                                 -36, and so does every later one
 *     log=x.cl:1: error: no       the build log of every program
 *     lie=alignment:24            the bits that memory is said to be aligned to
 *     lie=type:4                  what the device is said to be, CL_DEVICE_TYPE_GPU
 *     hide=fp64                   or `devices`, `platforms`
 *     small=memory:1048576        bytes of memory, or of a `piece` of it, the largest allocation
 *
 * with semicolons between. Everything else goes to the driver below. Releasing never fails.
 *
 * What a driver does with memory cannot be seen or changed from here: a cl_mem has no address. */
#ifndef TNI_TESTS_OPENCL_LAYER_H
#define TNI_TESTS_OPENCL_LAYER_H

#include <stdbool.h>
#include <stdint.h>

/* Has the OpenCL loader taken the layer? It does at the first call of any function. */
bool layer_in_use(void);

/* Forgets what was said before, and counts calls anew. Not while another thread calls OpenCL. Ends
 * the program over words that it does not know. */
void layer_say(const char *words);

/* Calls that could have failed since then. */
uint64_t layer_calls(void);

/* Objects that are alive, of all kinds; 0 where every reference was given back. `*out_which` (or
 * NULL) is one of their kinds. */
int64_t layer_alive(const char **out_which);

/* What a test that failed has left is not the next one's. */
void layer_forget_alive(void);

/* The options of the last build. */
const char *layer_build_options(void);

#endif /* TNI_TESTS_OPENCL_LAYER_H */
