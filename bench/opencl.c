/* The OpenCL plugin beside its peers, in one process and in turns: the training step beside the CPU
 * plugin's, matrix products beside CLBlast's, and a call beside the bare calls of OpenCL that it
 * cannot do without. Prints medians, and ratios of the pairs.
 *
 * usage: opencl [ROUNDS [ROW]]      on the device that TENON_DEVICE names, opencl:0 if none; rows
 * whose name contains ROW
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "bench/pairs.h"
#include "bench/training.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CLBLAST
#include <clblast_c.h>
#endif

static tn_device device, cpu;
static const char *only = "";

static int compare(pair p, int rounds) {
    p.unit = "ms";
    return strstr(p.what, only) ? pair_run(&p, rounds, tn_error_message) : 0;
}

/* ---- training ---------------------------------------------------------------------------- */

enum { STEPS = 4 };

static double mlp_here(uint64_t n) {
    static training t;
    return training_time(&t, model_mlp_init, device, n);
}

static double mlp_on_cpu(uint64_t n) {
    static training t;
    return training_time(&t, model_mlp_init, cpu, n);
}

static double cnn_here(uint64_t n) {
    static training t;
    return training_time(&t, model_cnn_init, device, n);
}

static double cnn_on_cpu(uint64_t n) {
    static training t;
    return training_time(&t, model_cnn_init, cpu, n);
}

/* ---- OpenCL itself ----------------------------------------------------------------------- */

/* A queue and a context of our own on the device that Tenon uses. */
static struct {
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
} bare;

static cl_int open_bare(void) {
    cl_command_queue queue = tn_stream_native(tn_current_stream(device));
    cl_int error = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof bare.id, &bare.id, NULL);
    if (error == CL_SUCCESS)
        bare.context = clCreateContext(NULL, 1, &bare.id, NULL, NULL, &error);
    if (error == CL_SUCCESS)
        bare.queue = clCreateCommandQueue(bare.context, bare.id, 0, &error);
    return error;
}

/* ---- calls ------------------------------------------------------------------------------- */

enum { CALLS = 2000, ELEMENTS = 256, KEPT = 8 };

/* `n_kept` results live on, so that the next lies elsewhere. */
static double calls_with(int n_kept, uint64_t n) {
    static tn_tensor *a, *b, *kept[KEPT];
    TN_SCOPE;
    if (!a) {
        a = tn_keep(tn_ones(TN_SHAPE(ELEMENTS), TN_F32, device));
        b = tn_keep(tn_ones(TN_SHAPE(ELEMENTS), TN_F32, device));
    }
    tn_synchronize(device);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor **place = &kept[n_kept ? i % (uint64_t)n_kept : 0], *sum = tn_add(a, b);
        tn_free(n_kept ? *place : sum);
        *place = n_kept ? sum : NULL;
    }
    for (int i = 0; i < n_kept; i++) {
        tn_free(kept[i]);
        kept[i] = NULL;
    }
    return tn_synchronize(device) == TN_OK ? bench_now() - start : -1;
}

static double calls(uint64_t n) {
    return calls_with(0, n);
}

static double calls_elsewhere(uint64_t n) {
    return calls_with(KEPT, n);
}

static double bare_calls(uint64_t n) {
    static cl_kernel kernel;
    static cl_mem memory[3];
    static const char *source =
        "__kernel void add(__global float *c, __global const float *a, __global const float *b,"
        "                  const uint size) {"
        "    const uint i = get_global_id(0);"
        "    if (i < size) c[i] = a[i] + b[i];"
        "}";
    cl_uint size = ELEMENTS;
    size_t global = ELEMENTS, local = 256;
    cl_int error = CL_SUCCESS;
    if (!kernel) {
        cl_program program = clCreateProgramWithSource(bare.context, 1, &source, NULL, &error);
        if (error == CL_SUCCESS)
            error = clBuildProgram(program, 1, &bare.id, "", NULL, NULL);
        if (error == CL_SUCCESS)
            kernel = clCreateKernel(program, "add", &error);
        for (int i = 0; i < 3 && error == CL_SUCCESS; i++)
            memory[i] = clCreateBuffer(bare.context, CL_MEM_READ_WRITE, ELEMENTS * 4, NULL, &error);
    }
    if (error == CL_SUCCESS)
        error = clFinish(bare.queue);
    double start = bench_now();
    for (uint64_t i = 0; i < n && error == CL_SUCCESS; i++) {
        for (cl_uint k = 0; k < 3; k++)
            clSetKernelArg(kernel, k, sizeof memory[k], &memory[k]);
        clSetKernelArg(kernel, 3, sizeof size, &size);
        error = clEnqueueNDRangeKernel(bare.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    }
    if (error == CL_SUCCESS)
        error = clFinish(bare.queue);
    if (error != CL_SUCCESS)
        fprintf(stderr, "opencl: bare calls: error %d\n", error);
    return error == CL_SUCCESS ? bench_now() - start : -1;
}

/* ---- products ---------------------------------------------------------------------------- */

#ifdef HAVE_CLBLAST
static struct {
    int64_t m, n, k;
    bool turned; /* the right factor lies with k innermost, as a linear layer's weight does */
} product;

static double product_here(uint64_t n) {
    static int64_t made[3];
    static tn_tensor *a, *b;
    TN_SCOPE;
    if (made[0] != product.m || made[1] != product.n || made[2] != product.k) {
        a = tn_keep(tn_randn(TN_SHAPE(product.m, product.k), TN_F32, device));
        b = tn_keep(tn_randn(TN_SHAPE(product.n, product.k), TN_F32, device));
        b = tn_keep(product.turned ? tn_transpose(b, 0, 1) : tn_contiguous(tn_transpose(b, 0, 1)));
        made[0] = product.m;
        made[1] = product.n;
        made[2] = product.k;
    }
    tn_synchronize(device);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_free(tn_matmul(a, b));
    return tn_synchronize(device) == TN_OK ? bench_now() - start : -1;
}

static double product_of_clblast(uint64_t times) {
    static cl_mem memory[3];
    size_t m = (size_t)product.m, n = (size_t)product.n, k = (size_t)product.k;
    const size_t sizes[] = {m * k * 4, k * n * 4, m * n * 4};
    float one = 1;
    cl_int error = CL_SUCCESS;
    for (int i = 0; i < 3 && error == CL_SUCCESS; i++) {
        size_t there = 0;
        if (memory[i])
            clGetMemObjectInfo(memory[i], CL_MEM_SIZE, sizeof there, &there, NULL);
        if (there == sizes[i])
            continue;
        if (memory[i])
            clReleaseMemObject(memory[i]);
        memory[i] = clCreateBuffer(bare.context, CL_MEM_READ_WRITE, sizes[i], NULL, &error);
        if (error == CL_SUCCESS)
            error = clEnqueueFillBuffer(bare.queue, memory[i], &one, 4, 0, sizes[i], 0, NULL, NULL);
    }
    if (error == CL_SUCCESS)
        error = clFinish(bare.queue);
    if (error != CL_SUCCESS)
        return -1;
    double start = bench_now();
    CLBlastStatusCode status = CLBlastSuccess;
    for (uint64_t i = 0; i < times && status == CLBlastSuccess; i++)
        status = CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                              product.turned ? CLBlastTransposeYes : CLBlastTransposeNo, m, n, k, 1,
                              memory[0], 0, k, memory[1], 0, product.turned ? k : n, 0, memory[2],
                              0, n, &bare.queue, NULL);
    if (status != CLBlastSuccess || clFinish(bare.queue) != CL_SUCCESS) {
        fprintf(stderr, "opencl: CLBlast: error %d\n", (int)status);
        return -1;
    }
    return bench_now() - start;
}

static int products(int rounds) {
    static const struct {
        const char *what;
        int64_t m, n, k;
        bool turned;
    } shapes[] = {
        {"matmul 1024 x 1024 x 1024", 1024, 1024, 1024, false},
        {"matmul 512 x 512 x 512", 512, 512, 512, false},
        {"linear [64,784] -> 500", 64, 500, 784, true},
        {"linear [256,1024] -> 1024", 256, 1024, 1024, true},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        product.m = shapes[i].m;
        product.n = shapes[i].n;
        product.k = shapes[i].k;
        product.turned = shapes[i].turned;
        failed |= compare((pair){.what = shapes[i].what,
                                 .peer_name = "CLBlast",
                                 .ours = product_here,
                                 .peer = product_of_clblast,
                                 .n = 1,
                                 .ratio = 0.5},
                          rounds);
    }
    return failed;
}
#else
static int products(int rounds) {
    (void)rounds;
    puts("matrix products: not compared; this build did not find CLBlast (Debian: libclblast-dev)");
    return 0;
}
#endif

/* ---- the program ------------------------------------------------------------------------- */

static int fail(const char *what) {
    fprintf(stderr, "opencl: %s: %s\n", what, tn_error_message());
    return 1;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 11;
    if (argc > 2)
        only = argv[2];
    if (rounds < 1 || rounds > PAIRS_MAX_ROUNDS) {
        fprintf(stderr, "usage: opencl [ROUNDS [ROW]], 1 to %d rounds\n", PAIRS_MAX_ROUNDS);
        return 2;
    }
    setenv("TENON_DEVICE", "opencl:0", 0);
    device = tn_default_device();
    cpu = tn_device_parse("cpu:0");
    if (!device.type || !cpu.type)
        return fail("a device");
    tn_tensor *first = tn_zeros(TN_SHAPE(1), TN_F32, device);
    if (!first || open_bare() != CL_SUCCESS)
        return fail("opening the device");
    tn_free(first);
    printf("%s, in turns with its peers, %d rounds, medians\n", tn_device_product(device), rounds);
    static const pair of_calls[] = {
        {"a call (add), amortised", "bare OpenCL", calls, bare_calls, .n = CALLS, .ratio = 1.15},
        {"a call, results elsewhere", "bare OpenCL", calls_elsewhere, bare_calls, .n = CALLS,
         .ratio = 1.15},
    };
    static const pair of_training[] = {
        {"training step of the MLP", "cpu plugin", mlp_here, mlp_on_cpu, .n = STEPS, .ratio = 2.5},
        {"training step of the CNN", "cpu plugin", cnn_here, cnn_on_cpu, .n = STEPS, .ratio = 2.5},
    };
    int failed = 0;
    for (int i = 0; i < 2; i++)
        failed |= compare(of_calls[i], rounds);
    failed |= products(rounds);
    for (int i = 0; i < 2; i++)
        failed |= compare(of_training[i], rounds);
    return failed ? fail("a measurement failed") : 0;
}
