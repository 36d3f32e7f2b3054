/* The OpenCL plugin beside its peers, in one process and in turns: the training step beside the CPU
 * plugin's, matrix products beside CLBlast's, and a call beside the bare calls of OpenCL that it
 * cannot do without. Prints medians, and ratios of the pairs.
 *
 * usage: opencl [ROUNDS [ROW]]      on the device that TENON_DEVICE names, opencl:0 if none; rows
 * whose name contains ROW
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "bench/common.h"
#include "bench/training.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CLBLAST
#include <clblast_c.h>
#endif

enum { MAX_ROUNDS = 101 };

static tn_device device, cpu;
static const char *only = "";

/* ---- pairs ------------------------------------------------------------------------------- */

/* Seconds that one piece of work takes; negative when it failed. */
typedef double (*timed)(void);

/* `ours` and `peer` in turns; who is first changes from round to round. */
static int compare(const char *what, const char *peer_name, timed ours, timed peer, int rounds,
                   const char *target) {
    double a[MAX_ROUNDS], b[MAX_ROUNDS], ratio[MAX_ROUNDS];
    if (!strstr(what, only))
        return 0;
    if (ours() < 0 || peer() < 0) /* builds programs, touches memory */
        return 1;
    for (int i = 0; i < rounds; i++) {
        if (i % 2)
            b[i] = peer();
        a[i] = ours();
        if (i % 2 == 0)
            b[i] = peer();
        if (a[i] < 0 || b[i] < 0)
            return 1;
        ratio[i] = a[i] / b[i];
    }
    printf("%-28s %10.4f ms  %-20s %10.4f ms   ratio %.3f  (%s)\n", what,
           1e3 * bench_median(a, rounds), peer_name, 1e3 * bench_median(b, rounds),
           bench_median(ratio, rounds), target);
    fflush(stdout);
    return 0;
}

/* ---- training ---------------------------------------------------------------------------- */

enum { STEPS = 4 };

static double steps(training *t, tn_status (*init)(model *, tn_device), tn_device on) {
    if (!t->optimizer && training_init(t, init, on) != TN_OK)
        return -1;
    if (tn_synchronize(on) != TN_OK)
        return -1;
    double start = bench_now();
    for (uint64_t i = 0; i < STEPS; i++)
        if (training_step(t, i) != TN_OK)
            return -1;
    return tn_synchronize(on) == TN_OK ? (bench_now() - start) / STEPS : -1;
}

static double mlp_here(void) {
    static training t;
    return steps(&t, model_mlp_init, device);
}

static double mlp_on_cpu(void) {
    static training t;
    return steps(&t, model_mlp_init, cpu);
}

static double cnn_here(void) {
    static training t;
    return steps(&t, model_cnn_init, device);
}

static double cnn_on_cpu(void) {
    static training t;
    return steps(&t, model_cnn_init, cpu);
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
static double calls_with(int n_kept) {
    static tn_tensor *a, *b, *kept[KEPT];
    TN_SCOPE;
    if (!a) {
        a = tn_keep(tn_ones(TN_SHAPE(ELEMENTS), TN_F32, device));
        b = tn_keep(tn_ones(TN_SHAPE(ELEMENTS), TN_F32, device));
    }
    tn_synchronize(device);
    double start = bench_now();
    for (int i = 0; i < CALLS; i++) {
        tn_tensor **place = &kept[n_kept ? i % n_kept : 0], *sum = tn_add(a, b);
        tn_free(n_kept ? *place : sum);
        *place = n_kept ? sum : NULL;
    }
    for (int i = 0; i < n_kept; i++) {
        tn_free(kept[i]);
        kept[i] = NULL;
    }
    return tn_synchronize(device) == TN_OK ? (bench_now() - start) / CALLS : -1;
}

static double calls(void) {
    return calls_with(0);
}

static double calls_elsewhere(void) {
    return calls_with(KEPT);
}

static double bare_calls(void) {
    static cl_kernel kernel;
    static cl_mem memory[3];
    static const char *source =
        "__kernel void add(__global float *c, __global const float *a, __global const float *b,"
        "                  const uint n) {"
        "    const uint i = get_global_id(0);"
        "    if (i < n) c[i] = a[i] + b[i];"
        "}";
    cl_uint n = ELEMENTS;
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
    for (int i = 0; i < CALLS && error == CL_SUCCESS; i++) {
        for (cl_uint k = 0; k < 3; k++)
            clSetKernelArg(kernel, k, sizeof memory[k], &memory[k]);
        clSetKernelArg(kernel, 3, sizeof n, &n);
        error = clEnqueueNDRangeKernel(bare.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    }
    if (error == CL_SUCCESS)
        error = clFinish(bare.queue);
    if (error != CL_SUCCESS)
        fprintf(stderr, "opencl: bare calls: error %d\n", error);
    return error == CL_SUCCESS ? (bench_now() - start) / CALLS : -1;
}

/* ---- products ---------------------------------------------------------------------------- */

static struct {
    int64_t m, n, k;
    bool turned; /* the right factor lies with k innermost, as a linear layer's weight does */
} product;

static double product_here(void) {
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
    tn_free(tn_matmul(a, b));
    return tn_synchronize(device) == TN_OK ? bench_now() - start : -1;
}

#ifdef HAVE_CLBLAST
static double product_of_clblast(void) {
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
    CLBlastStatusCode status = CLBlastSgemm(
        CLBlastLayoutRowMajor, CLBlastTransposeNo,
        product.turned ? CLBlastTransposeYes : CLBlastTransposeNo, m, n, k, 1, memory[0], 0, k,
        memory[1], 0, product.turned ? k : n, 0, memory[2], 0, n, &bare.queue, NULL);
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
        failed |= compare(shapes[i].what, "CLBlast", product_here, product_of_clblast, rounds,
                          "to reach: 0.5 at most");
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
    if (rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: opencl [ROUNDS [ROW]], 1 to %d rounds\n", MAX_ROUNDS);
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
    int failed = compare("a call (add), amortised", "bare OpenCL", calls, bare_calls, rounds,
                         "to reach: 1.15 at most");
    failed |= compare("a call, results elsewhere", "bare OpenCL", calls_elsewhere, bare_calls,
                      rounds, "to reach: 1.15 at most");
    failed |= products(rounds);
    failed |= compare("training step of the MLP", "cpu plugin", mlp_here, mlp_on_cpu, rounds,
                      "to reach: 2.5 at most");
    failed |= compare("training step of the CNN", "cpu plugin", cnn_here, cnn_on_cpu, rounds,
                      "to reach: 2.5 at most");
    return failed ? fail("a measurement failed") : 0;
}
