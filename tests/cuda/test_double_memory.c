/* Memory of the driver double: what the host may touch, what a pointer is, what there is of it. */
#include "tests/cuda/double_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };

static void memory_is_aligned_to_512_bytes_and_no_more(void **state) {
    CUdeviceptr at[8];
    for (int i = 0; i < 8; i++) {
        assert_good(cuMemAlloc(&at[i], 1 + (size_t)i * 700));
        assert_int_equal(at[i] % 512, 0);
        assert_int_not_equal(at[i] % 1024, 0);
    }
    for (int i = 0; i < 8; i++)
        assert_good(cuMemFree(at[i]));
}

static void new_memory_holds_poison(void **state) {
    CUdeviceptr at;
    unsigned char *pinned, seen[N];
    assert_good(cuMemAlloc(&at, N));
    assert_good(cuMemcpyDtoH(seen, at, N));
    assert_good(cuMemHostAlloc((void **)&pinned, N, 0));
    for (int i = 0; i < N; i++) {
        assert_int_equal(seen[i], 0xff);
        assert_int_equal(pinned[i], 0xff);
    }
    assert_good(cuMemFreeHost(pinned));
    assert_good(cuMemFree(at));
}

static int signal_of_access(uintptr_t address) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)address = 1; // NOLINT(performance-no-int-to-ptr)
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void the_host_cannot_touch_device_memory(void **state) {
    CUdeviceptr at;
    void *pinned;
    assert_good(cuMemAlloc(&at, N));
    assert_good(cuMemHostAlloc(&pinned, N, CU_MEMHOSTALLOC_PORTABLE));
    assert_int_equal(signal_of_access((uintptr_t)at), SIGSEGV);
    assert_int_equal(signal_of_access((uintptr_t)pinned), 0);
    assert_good(cuMemFreeHost(pinned));
    assert_good(cuMemFree(at));
}

static void there_is_so_much_of_it(void **state) {
    size_t before, total, left;
    CUdeviceptr half, other;
    assert_good(cuMemGetInfo(&before, &total));
    assert_int_equal(total, 64 << 20);
    assert_int_equal(before, total);
    assert_good(cuMemAlloc(&half, total / 2));
    assert_good(cuMemGetInfo(&left, &total));
    assert_int_equal(left, total / 2);
    assert_answer(cuMemAlloc(&other, total / 2 + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_answer(cuMemAlloc(&other, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_good(cuMemAlloc(&other, total / 2));
    assert_int_equal(double_device_bytes(0), total);
    assert_good(cuMemFree(half));
    assert_good(cuMemFree(other));
    assert_answer(cuMemAlloc(&other, 0), CUDA_ERROR_INVALID_VALUE);
}

static void addresses_run_round(void **state) {
    CUdeviceptr first = 0, at;
    for (int i = 0; i < 100; i++) {
        assert_good(cuMemAlloc(&at, 60 << 20));
        if (i == 0)
            first = at;
        else if (i == 1)
            assert_int_not_equal(at, first); /* not soon */
        assert_good(cuMemFree(at));
    }
}

static void what_is_not_memory_is_not_freed(void **state) {
    CUdeviceptr at;
    void *pinned;
    assert_good(cuMemAlloc(&at, N));
    assert_good(cuMemHostAlloc(&pinned, N, 0));
    assert_answer(cuMemFree(at + 8), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemFree((CUdeviceptr)(uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemFree((CUdeviceptr)(uintptr_t)&at), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemFreeHost(&at), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemFree(at));
    assert_answer(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemFreeHost(pinned));
    assert_answer(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

static void copies_stay_inside_allocations(void **state) {
    CUdeviceptr at, other;
    char host[N + 1] = "";
    assert_good(cuMemAlloc(&at, N));
    assert_good(cuMemAlloc(&other, 2 * N));
    assert_good(cuMemcpyHtoD(at, host, N));
    assert_answer(cuMemcpyHtoD(at, host, N + 1), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemcpyHtoD(at + 1, host, N), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemcpyDtoH(host, at, N + 1), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemcpyDtoHAsync(host, at, N + 1, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemcpyDtoDAsync(at, other, 2 * N, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemcpyHtoDAsync(at, NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 1), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemsetD8Async(at, 0, N + 1, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemsetD32Async(at + 2, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuMemsetD32Async(at, 0, SIZE_MAX / 2, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemcpyHtoD(at, NULL, 0));
    assert_good(cuMemFree(other));
    assert_answer(cuMemcpyHtoD(other, host, 1), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemFree(at));
}

static void copies_and_fills_arrive(void **state) {
    CUdeviceptr at, other;
    uint32_t sent[N], seen[N];
    assert_good(cuMemAlloc(&at, sizeof(sent)));
    assert_good(cuMemAlloc(&other, sizeof(sent)));
    for (uint32_t i = 0; i < N; i++)
        sent[i] = i * i;
    assert_good(cuMemcpyHtoDAsync(at, sent, sizeof(sent), NULL));
    assert_good(cuMemcpyDtoDAsync(other, at, sizeof(sent), NULL));
    assert_good(cuMemsetD32Async(other, 77, 10, NULL));
    assert_good(cuMemsetD8Async(other + 40, 1, 4, NULL));
    assert_good(cuMemcpyDtoHAsync(seen, other, sizeof(seen), NULL));
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(seen[i], i < 10 ? 77 : i == 10 ? 0x01010101 : i * i);
    assert_good(cuMemFree(at));
    assert_good(cuMemFree(other));
}

static void memory_can_be_registered(void **state) {
    char *host = malloc(N);
    CUdeviceptr seen;
    unsigned type;
    assert_answer(cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_answer(cuMemHostGetDevicePointer(&seen, host, 0), CUDA_ERROR_INVALID_VALUE);
    assert_answer(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        (CUdeviceptr)(uintptr_t)host),
                  CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemHostRegister(host, N, CU_MEMHOSTREGISTER_PORTABLE));
    assert_answer(cuMemHostRegister(host + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_good(cuMemHostGetDevicePointer(&seen, host, 0));
    assert_int_equal(seen, (uintptr_t)host);
    assert_good(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, seen));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    assert_int_equal(double_alive(DOUBLE_PINNED_MEMORY), 1);
    /* Half of what is copied. */
    CUdeviceptr at;
    assert_good(cuMemAlloc(&at, 2 * N));
    assert_answer(cuMemcpyHtoD(at, host + 10, N), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemFree(at));
    assert_answer(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemHostUnregister(host));
    free(host);
}

static void pointers_say_what_they_are(void **state) {
    CUdeviceptr at, begin;
    CUcontext owner;
    unsigned type;
    size_t bytes;
    int ordinal;
    assert_good(cuMemAlloc(&at, N));
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *out[] = {&owner, &type, &begin, &bytes, &ordinal};
    assert_good(cuPointerGetAttributes(5, asked, out, at + 9));
    assert_ptr_equal(owner, *state);
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(begin, at);
    assert_int_equal(bytes, N);
    assert_int_equal(ordinal, 0);
    assert_good(cuPointerGetAttributes(5, asked, out, (CUdeviceptr)(uintptr_t)&at));
    assert_null(owner);
    assert_int_equal(type, 0);
    assert_good(cuMemFree(at));
}

static void a_free_waits_for_the_work_before_it(void **state) {
    CUdeviceptr at;
    void *pinned;
    CUstream stream;
    assert_true(double_configure("delay=2ms"));
    assert_good(cuMemAlloc(&at, N));
    assert_good(cuMemHostAlloc(&pinned, N, 0));
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 5; i++)
        assert_good(cuMemcpyDtoHAsync(pinned, at, N, stream));
    assert_good(cuMemFree(at));
    assert_good(cuStreamQuery(stream));
    assert_good(cuMemFreeHost(pinned));
    assert_good(cuStreamDestroy(stream));
}

int main(void) {
    setenv("TENON_TEST_CUDA", "memory=64M", 1);
    const struct CMUnitTest tests[] = {
        DOUBLE_TEST(memory_is_aligned_to_512_bytes_and_no_more),
        DOUBLE_TEST(new_memory_holds_poison),
        DOUBLE_TEST(the_host_cannot_touch_device_memory),
        DOUBLE_TEST(there_is_so_much_of_it),
        DOUBLE_TEST(addresses_run_round),
        DOUBLE_TEST(what_is_not_memory_is_not_freed),
        DOUBLE_TEST(copies_stay_inside_allocations),
        DOUBLE_TEST(copies_and_fills_arrive),
        DOUBLE_TEST(memory_can_be_registered),
        DOUBLE_TEST(pointers_say_what_they_are),
        DOUBLE_TEST(a_free_waits_for_the_work_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
