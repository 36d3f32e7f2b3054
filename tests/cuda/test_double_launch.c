/* Modules and launches of the driver double: what is refused at once, and what breaks a context
 * later. */
#include "tests/cuda/double_kernel.h"

enum { N = 64 };

static void modules_are_for_a_device(void **state) {
    static const struct {
        const char *image;
        CUresult answer; /* of a driver 12.4, on a device 8.6 */
    } table[] = {
        {ADD_PTX("6.4", "sm_52"), CUDA_SUCCESS},
        {ADD_PTX("8.4", "sm_86"), CUDA_SUCCESS},
        {ADD_PTX("8.0", "sm_80, debug"), CUDA_SUCCESS},
        {ADD_PTX("8.5", "sm_86"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
        {ADD_PTX("9.0", "sm_86"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
        {ADD_PTX("8.0", "sm_89"), CUDA_ERROR_NO_BINARY_FOR_GPU},
        {ADD_PTX("8.0", "sm_90"), CUDA_ERROR_NO_BINARY_FOR_GPU},
        {ADD_PTX("8.0", "sm_86") "}", CUDA_ERROR_INVALID_PTX},
        {".version 8.0\n.target sm_80\nnonsense", CUDA_ERROR_INVALID_PTX},
        {"\177ELF", CUDA_ERROR_INVALID_IMAGE},
        {"", CUDA_ERROR_INVALID_IMAGE},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        CUmodule module;
        CUresult seen = cuModuleLoadData(&module, table[i].image);
        if (seen != table[i].answer)
            fail_msg("image %zu: %s", i, error_name(seen));
        if (!seen)
            assert_good(cuModuleUnload(module));
    }
}

static void the_log_says_what_is_wrong(void **state) {
    char text[200] = "";
    CUmodule module;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {text, (void *)(uintptr_t)sizeof(text)};
    assert_answer(cuModuleLoadDataEx(&module, ADD_PTX("8.0", "sm_90"), 2, options, values),
                  CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_non_null(strstr(text, "sm_90"));
    assert_int_equal((uintptr_t)values[1], strlen(text));
}

static void functions_are_found_by_name(void **state) {
    add_kernel k = load_add();
    CUfunction again;
    assert_good(cuModuleGetFunction(&again, k.module, "add"));
    assert_ptr_equal(again, k.function);
    assert_answer(cuModuleGetFunction(&again, k.module, "sub"), CUDA_ERROR_NOT_FOUND);
    assert_good(cuModuleUnload(k.module));
    assert_answer(cuModuleUnload(k.module), CUDA_ERROR_INVALID_HANDLE);
    assert_answer(launch_add(k, 0, 0, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void functions_have_attributes(void **state) {
    add_kernel k = load_add();
    int value;
    assert_good(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k.function));
    assert_int_equal(value, 1024);
    assert_good(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k.function));
    assert_int_equal(value, 0);
    assert_good(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k.function));
    assert_in_range(value, 1, 255);
    CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_good(cuFuncGetAttribute(&value, dynamic, k.function));
    assert_int_equal(value, 48 << 10);
    assert_answer(cuFuncSetAttribute(k.function, dynamic, (99 << 10) + 1),
                  CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1),
                  CUDA_ERROR_INVALID_VALUE);

    CUdeviceptr out = alloc_words(1, 1);
    uint64_t one = 1;
    void *parameters[] = {&out, &one};
    unsigned bytes = 99 << 10;
    assert_answer(cuLaunchKernel(k.function, 1, 1, 1, 1, 1, 1, bytes, NULL, parameters, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    assert_good(cuFuncSetAttribute(k.function, dynamic, (int)bytes));
    assert_good(cuLaunchKernel(k.function, 1, 1, 1, 1, 1, 1, bytes, NULL, parameters, NULL));
    assert_words(out, 1, 2);
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(k.module));
}

static void occupancy_is_counted(void **state) {
    add_kernel k = load_add();
    int n;
    assert_good(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, k.function, 256, 0));
    assert_int_equal(n, 6); /* 1536 threads */
    assert_good(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, k.function, 33, 0));
    assert_int_equal(n, 16);
    assert_good(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, k.function, 256, 40 << 10));
    assert_int_equal(n, 2); /* 100 KiB, 1 of which each block loses */
    assert_good(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, k.function, 2048, 0));
    assert_int_equal(n, 0);
    assert_answer(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, k.function, 0, 0),
                  CUDA_ERROR_INVALID_VALUE);
    assert_good(cuModuleUnload(k.module));
}

/* ---- launches ---------------------------------------------------------------------------- */

static void kernels_run(void **state) {
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(N * 4, 5);
    uint64_t value = 37, before = double_kernels();
    void *parameters[] = {&out, &value};
    assert_good(cuLaunchKernel(k.function, 4, 1, 1, N, 1, 1, 0, NULL, parameters, NULL));
    value = 0; /* was taken at once */
    assert_words(out, N * 4, 42);
    assert_int_equal(double_kernels(), before + 1);
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(k.module));
}

static void parameters_come_in_two_forms(void **state) {
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(N, 5);
    struct {
        CUdeviceptr out;
        uint64_t n;
    } block = {out, 37};
    size_t bytes = sizeof(block), wrong = 8;
    void *good[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                    CU_LAUNCH_PARAM_END};
    void *bad[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &wrong,
                   CU_LAUNCH_PARAM_END};
    void *one_by_one[] = {&block.out, &block.n};
    void *hole[] = {&block.out, NULL};
    assert_good(cuLaunchKernel(k.function, 1, 1, 1, N, 1, 1, 0, NULL, NULL, good));
    assert_words(out, N, 42);
    assert_answer(cuLaunchKernel(k.function, 1, 1, 1, N, 1, 1, 0, NULL, NULL, bad),
                  CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuLaunchKernel(k.function, 1, 1, 1, N, 1, 1, 0, NULL, NULL, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuLaunchKernel(k.function, 1, 1, 1, N, 1, 1, 0, NULL, one_by_one, good),
                  CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuLaunchKernel(k.function, 1, 1, 1, N, 1, 1, 0, NULL, hole, NULL),
                  CUDA_ERROR_INVALID_VALUE);
    assert_words(out, N, 42);
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(k.module));
}

static void launches_have_limits(void **state) {
    static const struct {
        unsigned grid[3], block[3];
        CUresult answer;
    } table[] = {
        {{1, 1, 1}, {1024, 1, 1}, CUDA_SUCCESS},
        {{2, 2, 2}, {4, 4, 64}, CUDA_SUCCESS},
        {{0, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1, 0, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 65536, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 65536}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {{0x80000000, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1025, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {513, 2, 1}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1, 1, 65}, CUDA_ERROR_INVALID_VALUE},
        {{1, 1, 1}, {1 << 16, 1 << 16, 1}, CUDA_ERROR_INVALID_VALUE},
    };
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(1024 * 8, 0);
    uint64_t one = 1;
    void *parameters[] = {&out, &one};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const unsigned *g = table[i].grid, *b = table[i].block;
        assert_answer(cuLaunchKernel(k.function, g[0], g[1], g[2], b[0], b[1], b[2], 0, NULL,
                                     parameters, NULL),
                      table[i].answer);
    }
    assert_good(cuCtxSynchronize()); /* none of it sticks */
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(k.module));
}

static void kernels_stay_in_their_context(void **state) {
    CUcontext other, popped;
    CUstream there;
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(N, 0);
    assert_good(cuDevicePrimaryCtxRetain(&other, 1));
    assert_good(cuCtxPushCurrent(other));
    assert_good(cuStreamCreate(&there, 0));
    assert_answer(launch_add(k, out, 1, N, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_answer(launch_add(k, out, 1, N, there), CUDA_ERROR_INVALID_HANDLE);
    assert_good(cuCtxPopCurrent(&popped));
    assert_answer(launch_add(k, out, 1, N, there), CUDA_ERROR_INVALID_HANDLE);
    assert_good(cuStreamDestroy(there));
    assert_good(cuDevicePrimaryCtxRelease(1));
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(k.module));
}

static void kernels_use_pinned_memory_in_place(void **state) {
    add_kernel k = load_add();
    uint32_t *pinned;
    CUdeviceptr seen;
    assert_good(cuMemHostAlloc((void **)&pinned, N * 4, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(pinned, 0, N * 4);
    assert_good(cuMemHostGetDevicePointer(&seen, pinned, 0));
    assert_good(launch_add(k, seen, 7, N, NULL));
    assert_good(cuStreamSynchronize(NULL));
    assert_int_equal(pinned[N - 1], 7);
    assert_good(cuMemFreeHost(pinned));
    assert_good(cuModuleUnload(k.module));
}

/* ---- what sticks ------------------------------------------------------------------------- */

/* Every call in the context has the same answer, and what is destroyed goes all the same. */
static void assert_broken(CUresult error, CUdeviceptr memory, CUmodule module) {
    CUdeviceptr at;
    CUstream stream;
    CUevent event;
    CUcontext current;
    char host[4];
    uint64_t before = double_results(error);
    assert_answer(cuCtxSynchronize(), error);
    assert_answer(cuStreamSynchronize(NULL), error);
    assert_answer(cuMemAlloc(&at, 1), error);
    assert_answer(cuMemcpyDtoHAsync(host, memory, 4, NULL), error);
    assert_answer(cuStreamCreate(&stream, 0), error);
    assert_answer(cuEventCreate(&event, 0), error);
    assert_answer(cuMemFree(memory), error);
    assert_answer(cuModuleUnload(module), error);
    assert_int_equal(double_results(error), before + 8);
    assert_good(cuCtxGetCurrent(&current));
    assert_int_equal(double_alive(DOUBLE_DEVICE_MEMORY), 0);
    assert_int_equal(double_alive(DOUBLE_MODULE), 0);
}

static void an_illegal_address_sticks(void **state) {
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(N, 0);
    CUstream stream;
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    double_hold();
    assert_good(launch_add(k, out, 1, N + 1, stream)); /* one past its end */
    assert_good(cuMemsetD8Async(out, 0, 1, stream));   /* nobody knows yet */
    double_let_go();
    assert_answer(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_string_not_equal(double_last_fault(), "");
    assert_answer(cuStreamDestroy(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(double_alive(DOUBLE_STREAM), 0);
    assert_broken(CUDA_ERROR_ILLEGAL_ADDRESS, out, k.module);
}

static void a_misaligned_address_sticks(void **state) {
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(N, 0);
    assert_good(launch_add(k, out + 2, 1, 1, NULL));
    assert_answer(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
    assert_broken(CUDA_ERROR_MISALIGNED_ADDRESS, out, k.module);
}

/* stray(uint32_t *out, uint32_t at, uint32_t which): each of 64 threads reads at `at` of its own 64
 * bytes of shared (1) or local memory (2), or 16 bytes of `out` (3); or it writes to shared memory and
 * reads what thread ^ 32 wrote, without a barrier (4). */
static const char stray_ptx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry stray(.param .u64 out, .param .u32 at, .param .u32 which)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;\n"
    ".local .align 16 .b8 own[64];\n.shared .align 16 .b8 all[256];\n"
    "ld.param.u64 %d0, [out];\nld.param.u32 %r0, [at];\n"
    "ld.param.u32 %r1, [which];\ncvt.u64.u32 %d1, %r0;\n"
    "setp.eq.u32 %p0, %r1, 1;\nsetp.eq.u32 %p1, %r1, 2;\n"
    "setp.eq.u32 %p2, %r1, 3;\nsetp.eq.u32 %p3, %r1, 4;\n"
    "@%p0 ld.shared.u32 %r2, [%r0];\n"
    "mov.u64 %d2, own;\nadd.u64 %d2, %d2, %d1;\n"
    "@%p1 ld.local.u32 %r2, [%d2];\n"
    "add.u64 %d3, %d0, %d1;\n"
    "@%p2 ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d3];\n"
    "mov.u32 %r6, %tid.x;\nshl.b32 %r7, %r6, 2;\nxor.b32 %r8, %r7, 128;\n"
    "@%p3 st.shared.u32 [%r7], %r6;\n"
    "@%p3 ld.shared.u32 %r2, [%r8];\n"
    "ret;\n}\n";

typedef struct stray_kernel {
    CUmodule module;
    CUdeviceptr out;
} stray_kernel;

static stray_kernel run_stray(uint32_t at, uint32_t which, CUresult expected) {
    stray_kernel k;
    CUfunction function;
    assert_good(cuModuleLoadData(&k.module, stray_ptx));
    assert_good(cuModuleGetFunction(&function, k.module, "stray"));
    k.out = alloc_words(16, 0);
    void *parameters[] = {&k.out, &at, &which};
    assert_good(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    assert_answer(cuCtxSynchronize(), expected);
    return k;
}

static void forget_stray(stray_kernel k) {
    assert_good(cuMemFree(k.out));
    assert_good(cuModuleUnload(k.module));
}

static void memory_of_all_kinds_has_an_end(void **state) {
    forget_stray(run_stray(252, 1, CUDA_SUCCESS));
    forget_stray(run_stray(60, 2, CUDA_SUCCESS));
    forget_stray(run_stray(48, 3, CUDA_SUCCESS));
}

static void shared_memory_behind_its_end_sticks(void **state) {
    stray_kernel k = run_stray(256, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_broken(CUDA_ERROR_ILLEGAL_ADDRESS, k.out, k.module);
}

static void local_memory_behind_its_end_sticks(void **state) {
    stray_kernel k = run_stray(64, 2, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_broken(CUDA_ERROR_ILLEGAL_ADDRESS, k.out, k.module);
}

static void a_vector_that_ends_behind_memory_sticks(void **state) {
    stray_kernel k = run_stray(64, 3, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_broken(CUDA_ERROR_ILLEGAL_ADDRESS, k.out, k.module);
}

static void a_misaligned_vector_sticks(void **state) {
    stray_kernel k = run_stray(8, 3, CUDA_ERROR_MISALIGNED_ADDRESS);
    assert_broken(CUDA_ERROR_MISALIGNED_ADDRESS, k.out, k.module);
}

static void races_are_told_on_request(void **state) {
    uint64_t before = double_races();
    forget_stray(run_stray(0, 4, CUDA_SUCCESS));
    assert_int_equal(double_races(), before);
    assert_true(double_configure("races=report"));
    forget_stray(run_stray(0, 4, CUDA_SUCCESS));
    assert_int_equal(double_races(), before + 2);
    assert_true(double_configure("races=fail"));
    stray_kernel k = run_stray(0, 4, CUDA_ERROR_LAUNCH_FAILED);
    assert_true(double_configure("races=off"));
    assert_non_null(strstr(double_last_fault(), "with no barrier in between"));
    assert_broken(CUDA_ERROR_LAUNCH_FAILED, k.out, k.module);
}

static void a_new_context_is_whole_again(void **state) {
    add_kernel k = load_add();
    CUdeviceptr out = alloc_words(N, 0);
    assert_good(launch_add(k, out, 1, N, NULL));
    assert_words(out, N, 1);
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(k.module));
}

static void another_devices_memory_is_reached_by_permission(void **state) {
    CUcontext other, popped;
    CUdeviceptr there;
    add_kernel k = load_add();
    assert_good(cuDevicePrimaryCtxRetain(&other, 1));
    assert_good(cuCtxPushCurrent(other));
    there = alloc_words(N, 3);
    assert_good(cuCtxPopCurrent(&popped));
    assert_good(cuCtxEnablePeerAccess(other, 0));
    assert_good(launch_add(k, there, 1, N, NULL));
    assert_good(cuCtxSynchronize());
    assert_good(cuCtxDisablePeerAccess(other));
    assert_good(launch_add(k, there, 1, N, NULL));
    assert_answer(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    /* The other device is as it was. */
    assert_good(cuCtxPushCurrent(other));
    assert_words(there, N, 4);
    assert_good(cuMemFree(there));
    assert_good(cuCtxPopCurrent(&popped));
    assert_good(cuDevicePrimaryCtxRelease(1));
}

/* ---- doubles of libraries ---------------------------------------------------------------- */

typedef struct fill {
    CUdeviceptr at;
    size_t bytes;
    unsigned char value;
} fill;

static CUresult run_fill(void *argument) {
    const fill *f = argument;
    void *host = double_host_address(f->at, f->bytes, 4);
    if (!host)
        return f->at % 4 ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS;
    memset(host, f->value, f->bytes);
    return CUDA_SUCCESS;
}

static void libraries_queue_work_on_streams(void **state) {
    CUstream stream;
    CUdeviceptr out = alloc_words(N, 0);
    fill f = {out, (size_t)N * 4, 3};
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    double_hold();
    assert_good(double_stream_enqueue(stream, run_fill, &f, sizeof(f)));
    f.value = 9; /* was taken at once */
    double_let_go();
    assert_good(cuStreamSynchronize(stream));
    assert_words(out, N, 0x03030303);
    assert_null(double_host_address(out, 4, 4)); /* not outside */
    CUdevice device;
    assert_good(double_stream_device(stream, &device));
    assert_int_equal(device, 0);
    assert_good(cuStreamDestroy(stream));
    assert_good(cuMemFree(out));
}

static void libraries_stay_inside_allocations(void **state) {
    CUdeviceptr out = alloc_words(N, 0);
    fill f = {out, (size_t)N * 4 + 1, 3};
    assert_good(double_stream_enqueue(NULL, run_fill, &f, sizeof(f)));
    assert_answer(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void) {
    setenv("TENON_TEST_CUDA", "devices=2 memory=64M capability=8.6 version=12040", 1);
    assert_good(cuInit(0));
    const struct CMUnitTest tests[] = {
        DOUBLE_TEST(modules_are_for_a_device),
        DOUBLE_TEST(the_log_says_what_is_wrong),
        DOUBLE_TEST(functions_are_found_by_name),
        DOUBLE_TEST(functions_have_attributes),
        DOUBLE_TEST(occupancy_is_counted),
        DOUBLE_TEST(kernels_run),
        DOUBLE_TEST(parameters_come_in_two_forms),
        DOUBLE_TEST(launches_have_limits),
        DOUBLE_TEST(kernels_stay_in_their_context),
        DOUBLE_TEST(kernels_use_pinned_memory_in_place),
        BROKEN_TEST(an_illegal_address_sticks),
        BROKEN_TEST(a_misaligned_address_sticks),
        DOUBLE_TEST(memory_of_all_kinds_has_an_end),
        BROKEN_TEST(shared_memory_behind_its_end_sticks),
        BROKEN_TEST(local_memory_behind_its_end_sticks),
        BROKEN_TEST(a_vector_that_ends_behind_memory_sticks),
        BROKEN_TEST(a_misaligned_vector_sticks),
        BROKEN_TEST(races_are_told_on_request),
        DOUBLE_TEST(a_new_context_is_whole_again),
        BROKEN_TEST(another_devices_memory_is_reached_by_permission),
        DOUBLE_TEST(libraries_queue_work_on_streams),
        BROKEN_TEST(libraries_stay_inside_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
