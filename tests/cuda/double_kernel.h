/* Kernels for the tests of the driver double, in PTX as NVRTC would write it. */
#ifndef TNI_TESTS_CUDA_DOUBLE_KERNEL_H
#define TNI_TESTS_CUDA_DOUBLE_KERNEL_H

#include "tests/cuda/double_test.h"

/* add(uint32_t *out, uint64_t n): out[i] += n, for each thread i. */
#define ADD_PTX(version, target) \
    ".version " version "\n" \
    ".target " target "\n" \
    ".address_size 64\n" \
    ".visible .entry add(\n" \
    "    .param .u64 add_param_0,\n" \
    "    .param .u64 add_param_1\n" \
    ")\n" \
    "{\n" \
    "    .reg .b32 %r<8>;\n" \
    "    .reg .b64 %rd<8>;\n" \
    "    ld.param.u64 %rd1, [add_param_0];\n" \
    "    ld.param.u64 %rd2, [add_param_1];\n" \
    "    cvta.to.global.u64 %rd3, %rd1;\n" \
    "    mov.u32 %r1, %ctaid.x;\n" \
    "    mov.u32 %r2, %ntid.x;\n" \
    "    mov.u32 %r3, %tid.x;\n" \
    "    mad.lo.s32 %r4, %r1, %r2, %r3;\n" \
    "    mul.wide.u32 %rd4, %r4, 4;\n" \
    "    add.s64 %rd5, %rd3, %rd4;\n" \
    "    ld.global.u32 %r5, [%rd5];\n" \
    "    cvt.u32.u64 %r6, %rd2;\n" \
    "    add.s32 %r7, %r5, %r6;\n" \
    "    st.global.u32 [%rd5], %r7;\n" \
    "    ret;\n" \
    "}\n"

typedef struct add_kernel {
    CUmodule module;
    CUfunction function;
} add_kernel;

static inline add_kernel load_add(void) {
    add_kernel k;
    assert_good(cuModuleLoadData(&k.module, ADD_PTX("8.0", "sm_75")));
    assert_good(cuModuleGetFunction(&k.function, k.module, "add"));
    return k;
}

/* `n` of them, threads and elements. */
static inline CUresult launch_add(add_kernel k, CUdeviceptr out, uint64_t value, unsigned n,
                                  CUstream stream) {
    void *parameters[] = {&out, &value};
    return cuLaunchKernel(k.function, 1, 1, 1, n, 1, 1, 0, stream, parameters, NULL);
}

/* `n` elements, each `value`. */
static inline CUdeviceptr alloc_words(unsigned n, uint32_t value) {
    CUdeviceptr at;
    assert_good(cuMemAlloc(&at, n * sizeof(uint32_t)));
    assert_good(cuMemsetD32Async(at, value, n, NULL));
    assert_good(cuStreamSynchronize(NULL));
    return at;
}

static inline void assert_words(CUdeviceptr at, unsigned n, uint32_t value) {
    uint32_t seen[1024];
    assert_in_range(n, 0, 1024);
    assert_good(cuMemcpyDtoH(seen, at, n * sizeof(uint32_t)));
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(seen[i], value);
}

#endif
