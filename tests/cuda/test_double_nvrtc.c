/* The double of NVRTC: real compilations, whose cubins the driver double takes. */
#include "tests/cuda/double_test.h"
#include "tests/cuda/double/nvrtc_double.h"

#include <nvrtc.h>
#include <stdio.h>

static const char source[] =
    "extern \"C\" __global__ void add(unsigned *out, unsigned long long n) {\n"
    "    out[blockIdx.x * blockDim.x + threadIdx.x] += n;\n"
    "}\n";

/* What is compiled for `option`: the caller frees it. NULL where there is none. */
static char *compile(const char *option, size_t *out_bytes) {
    nvrtcProgram program;
    assert_int_equal(nvrtcCreateProgram(&program, source, "add.cu", 0, NULL, NULL), NVRTC_SUCCESS);
    assert_int_equal(nvrtcCompileProgram(program, 1, &option), NVRTC_SUCCESS);
    assert_int_equal(nvrtcGetCUBINSize(program, out_bytes), NVRTC_SUCCESS);
    char *image = *out_bytes ? malloc(*out_bytes) : NULL;
    if (image)
        assert_int_equal(nvrtcGetCUBIN(program, image), NVRTC_SUCCESS);
    assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
    return image;
}

static CUresult load(const void *image) {
    CUmodule module;
    CUresult error = cuModuleLoadData(&module, image);
    if (!error)
        assert_good(cuModuleUnload(module));
    return error;
}

static void cubins_fit_their_architecture(void **state) {
    static const struct {
        const char *option;
        CUresult answer; /* on 8.6 */
    } table[] = {
        {"-arch=sm_80", CUDA_SUCCESS},
        {"--gpu-architecture=sm_86", CUDA_SUCCESS},
        {"-arch=sm_75", CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"-arch=sm_89", CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"-arch=sm_90", CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        size_t bytes;
        char *image = compile(table[i].option, &bytes);
        assert_non_null(image);
        assert_answer(load(image), table[i].answer);
        free(image);
    }
}

static void a_virtual_architecture_has_no_cubin(void **state) {
    size_t bytes;
    assert_null(compile("-arch=compute_80", &bytes));
    assert_int_equal(bytes, 0);
}

static void damaged_cubins_are_refused(void **state) {
    size_t bytes;
    char *image = compile("-arch=sm_80", &bytes);
    for (size_t i = 8; i < bytes; i += 1 + i / 16) {
        image[i] ^= 4;
        assert_answer(load(image), CUDA_ERROR_INVALID_IMAGE);
        image[i] ^= 4;
    }
    for (size_t n = 64; n < bytes; n += 64) {
        char *cut = calloc(n + 64, 1); /* zeros where the rest was */
        memcpy(cut, image, n - 32);
        assert_answer(load(cut), CUDA_ERROR_INVALID_IMAGE);
        free(cut);
    }
    image[0] ^= 4; /* nothing that the double knows */
    assert_answer(load(image), CUDA_ERROR_INVALID_IMAGE);
    free(image);
}

static void what_is_said_to_fail_fails(void **state) {
    nvrtcProgram program;
    const char *option = "-arch=sm_80";
    uint64_t before = double_nvrtc_calls("nvrtcCompileProgram");
    char words[64];
    snprintf(words, sizeof(words), "fail=nvrtcCompileProgram:%d", (int)before + 2);
    assert_true(double_nvrtc_configure(words));
    assert_int_equal(nvrtcCreateProgram(&program, source, "add.cu", 0, NULL, NULL), NVRTC_SUCCESS);
    assert_int_equal(nvrtcCompileProgram(program, 1, &option), NVRTC_SUCCESS);
    assert_int_equal(nvrtcCompileProgram(program, 1, &option), NVRTC_ERROR_INTERNAL_ERROR);
    assert_int_equal(nvrtcCompileProgram(program, 1, &option), NVRTC_SUCCESS);
    assert_true(double_nvrtc_configure("fail= fail=nvrtcGetPTXSize:1+:1"));
    size_t bytes;
    assert_int_equal(nvrtcGetPTXSize(program, &bytes), NVRTC_ERROR_OUT_OF_MEMORY);
    assert_int_equal(nvrtcGetPTXSize(program, &bytes), NVRTC_ERROR_OUT_OF_MEMORY);
    assert_true(double_nvrtc_configure("fail="));
    assert_int_equal(nvrtcGetPTXSize(program, &bytes), NVRTC_SUCCESS);
    assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
    assert_int_equal(double_nvrtc_calls("nvrtcCompileProgram"), before + 3);
    assert_false(double_nvrtc_configure("fail=nvrtcCompileProgramm:1"));
}

int main(void) {
    setenv("TENON_TEST_CUDA", "capability=8.6", 1);
    int major, minor;
    if (nvrtcVersion(&major, &minor)) {
        printf("skipped: there is no NVRTC\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        DOUBLE_TEST(cubins_fit_their_architecture),
        DOUBLE_TEST(a_virtual_architecture_has_no_cubin),
        DOUBLE_TEST(damaged_cubins_are_refused),
        DOUBLE_TEST(what_is_said_to_fail_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
