/* How tests steer the driver double and look into it, and how the doubles of libraries above the
 * driver run on it. The double is a libcuda.so.1 for tests alone: CUDA's driver API without a GPU.
 *
 * What it is to be comes from the environment variable TENON_TEST_CUDA, or from double_configure():
 * words between spaces or semicolons.
 *
 *   devices=2               how many
 *   capability=9.0          of all devices
 *   memory=256M             of each, in bytes (K, M, G)
 *   sms=4                   streaming multiprocessors
 *   version=13000           of the driver; that of the headers where they are newer
 *   peers=0                 devices reach each other's memory (1, the rule) or do not
 *   seed=7 delay=200us      before each piece of work of a stream, up to so long (ns, us, ms)
 *   kernels=off             launches are checked, kernels and calls of libraries are not run; modules may be
 *                           a GPU's machine code, in which any function is found
 *   fail=FUNCTION:N:ERROR   its Nth call fails with that number; N+: and all after it
 *   fault=N:ERROR           the Nth kernel from here on, or call of a library, breaks its context with it
 *   lose=DEVICE:N:ERROR     the device is lost at the Nth call to the driver
 *   opaque=on               ThreadSanitizer sees nothing of the double, as of a driver: what races above it
 *                           is not hidden by the one lock below
 *   report=PATH             at exit: calls, results and what is alive, a line each
 *   talk=on                 what kernels did wrong, and why modules are refused, on stderr
 *   races=report            shared memory that a block's threads access with no barrier in between:
 *                           told on stderr, and counted; kernels are slower
 *   races=fail              the same, and the launch fails with CUDA_ERROR_LAUNCH_FAILED
 *
 * Kernels are interpreted, from PTX. Where PTX permits an error, as of ex2.approx, results have errors
 * of that size (2 to an integer is exact, which NVRTC's own functions rely on): a kernel that needs
 * better ones fails on the double even if all GPUs are better.
 *
 * A word that is not understood makes cuInit fail with CUDA_ERROR_INVALID_VALUE and is named on
 * stderr. Functions are called as the driver exports them: "cuMemAlloc_v2". */
#ifndef TNI_TESTS_CUDA_DOUBLE_DOUBLE_H
#define TNI_TESTS_CUDA_DOUBLE_DOUBLE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- for tests --------------------------------------------------------------------------- */

/* Words as above, which hold from here on. Devices, memory and version cannot change once cuInit
 * was called: false, and so is a word that is not understood. "fail=", "fault=" and "lose=" alone
 * take back what was said before. */
bool double_configure(const char *words);

typedef enum double_kind {
    DOUBLE_CONTEXT, /* a primary one counts while it is retained */
    DOUBLE_STREAM,
    DOUBLE_EVENT,
    DOUBLE_MODULE,
    DOUBLE_GRAPH,
    DOUBLE_GRAPH_EXEC,
    DOUBLE_DEVICE_MEMORY,
    DOUBLE_PINNED_MEMORY, /* allocated or registered */
    DOUBLE_KINDS
} double_kind;

/* What the program holds now, and what it still held when a context went away. */
uint64_t double_alive(double_kind kind);
uint64_t double_abandoned(double_kind kind);
uint64_t double_device_bytes(CUdevice device); /* allocated now */

uint64_t double_calls(const char *function);
uint64_t double_all_calls(void);
/* How many calls the host was answered with this. */
uint64_t double_results(CUresult result);
/* How often the host waited for a device, whether or not there was something left to do. */
uint64_t double_waits(void);
/* Kernels that ran to their end. */
uint64_t double_kernels(void);
/* Pairs of instructions of one launch that raced for shared memory, since "races=report". */
uint64_t double_races(void);
/* What the last kernel that failed did, where and in which thread; "" before. */
const char *double_last_fault(void);

/* The calling thread's current context, and how many it has pushed; no call is counted. */
CUcontext double_current(int *out_depth);

/* As a device that falls off the bus: work in its streams is dropped, and every call in its contexts
 * returns `error` for ever. */
void double_lose(CUdevice device, CUresult error);

/* Streams start no further work until they are let go: what a test compares then is what it would
 * be on a device that is slow. A call that waits for a device while they are held never returns. */
void double_hold(void);
void double_let_go(void);

/* ---- for doubles of libraries ------------------------------------------------------------ */

/* Runs `fn` on the stream's turn, with a copy of `arg`; in a stream that captures it becomes a node.
 * Returns what the driver would return for a kernel. `fn` returns CUDA_SUCCESS or what breaks the
 * context, and does not call the driver. */
CUresult double_stream_enqueue(CUstream stream, CUresult (*fn)(void *arg), const void *arg,
                               size_t arg_bytes);

/* Inside such an `fn`: where on the host `bytes` of device memory lie. NULL where the stream's device
 * does not reach all of them: `fn` then returns CUDA_ERROR_ILLEGAL_ADDRESS. Memory that is not
 * aligned to `alignment` bytes is NULL too, for CUDA_ERROR_MISALIGNED_ADDRESS. */
void *double_host_address(CUdeviceptr address, size_t bytes, size_t alignment);

/* The stream's device, for a library that needs to know what it runs on. */
CUresult double_stream_device(CUstream stream, CUdevice *out);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
