/* The CUDA plugin beside bare CUDA, in one process and in turns: a call beside cuLaunchKernel, kernels
 * beside the rate at which the device copies, products beside cuBLASLt, convolutions beside cuDNN; and
 * from the start of a process to its first result. compare.py puts PyTorch beside. On the tests' driver
 * double everything runs too, and is measured against no target: nothing of it is a GPU's.
 *
 * usage: cuda [--tiny] [--rounds N] [ROW...]    on the device that TENON_DEVICE names, cuda:0 if
 * none; rows whose name contains one of the words. --tiny is for trying the program.
 *        cuda [--image FILE] --bare ROW N    the bare side N times, for profilers (cuda_host.py)
 * FILE keeps its device code. */
#define _GNU_SOURCE /* nftw */
#include "bench/cuda_bare.h"
#include "bench/pairs.h"
#include "bench/training.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int rounds;
    char **words;
    int n_words;
} options = {.rounds = 7};

static tn_device device;
tn_device bench_device; /* of device_rows.c */
static bool is_double;

static bool is_wanted(const char *name) {
    for (int i = 0; i < options.n_words; i++)
        if (strstr(name, options.words[i]))
            return true;
    return options.n_words == 0;
}

static const char *why(void) {
    static char text[512];
    snprintf(text, sizeof text, "%s", tn_error_status() ? tn_error_message() : bare_why());
    tn_error_clear();
    return text;
}

/* ---- the rows of device.c ---------------------------------------------------------------- */

static pair_side ours(const char *name) {
    for (size_t i = 0; i < n_device_rows; i++)
        if (!strcmp(device_rows[i].name, name))
            return device_rows[i].run;
    return NULL;
}

static int run(pair p) {
    p.ours = p.ours ? p.ours : ours(p.what);
    if (is_double)
        p.limit = p.ratio = 0;
    return is_wanted(p.what) ? pair_run(&p, options.rounds, why) : 0;
}

/* The host's part: what a queue takes without waiting. The bare side of recording and of backward is
 * what they launch. */
static const pair calls[] = {
    {.what = "launch-add", .peer_name = "cuLaunchKernel", .peer = bare_launch_add, .limit = 2.5},
    {.what = "launch-chain", .peer_name = "as many", .peer = bare_launch_chain},
    {.what = "launch-replay", .peer_name = "cuGraphLaunch", .peer = bare_launch_replay},
    {.what = "launch-copy", .peer_name = "cuMemcpyDtoD", .peer = bare_launch_copy},
    {.what = "launch-product", .peer_name = "cuBLASLt", .peer = bare_launch_product},
    {.what = "launch-recording", .peer_name = "cuLaunchKernel", .peer = bare_launch_add},
    {.what = "launch-backward", .peer_name = "as many", .peer = bare_launch_backward},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static int launches(void) {
    int failed = 0;
    for (int i = 0; i < CALLS; i++) {
        pair p = calls[i];
        p.unit = "us";
        p.n = 4 * BENCH_LAUNCHES;
        if (p.peer == bare_launch_product && bare_no_blas())
            p.peer = NULL; /* which is said with the products */
        failed |= run(p);
    }
    return failed;
}

/* The bare side of a row, so many times; false with why(). */
static bool run_bare(const char *row, uint64_t n) {
    for (int i = 0; i < CALLS; i++)
        if (!strcmp(calls[i].what, row) && calls[i].peer)
            return bare_open(0) && calls[i].peer(n) >= 0;
    return bare_fail(row, "there is no such row with a bare side");
}

static int streamed(void) {
    double bytes = (double)(bench_side() * bench_side()) * 4;
    int failed = 0;
#define STREAMED(name, tensors) \
    failed |= run((pair){.what = "memory-" #name, \
                         .peer_name = "DtoD copy", \
                         .peer = bare_copy, \
                         .unit = "GB/s", \
                         .amount = (tensors)*bytes, \
                         .peer_amount = 2 * bytes, \
                         .ratio = 0.9});
    BENCH_STREAMED(STREAMED)
    return failed;
}

static int products(void) {
    const char *missing = bare_no_blas();
    int failed = 0;
    if (missing)
        printf("products by themselves: %s\n", missing);
#define PRODUCT(dtype, name, m, n, k) \
    failed |= run((pair){.what = "gemm-" #dtype "-" #name, \
                         .peer_name = "cuBLASLt", \
                         .peer = missing ? NULL : BARE_PRODUCT(dtype, name), \
                         .unit = "TFLOP/s", \
                         .amount = 2.0 * (m) * (n) * (k), \
                         .peer_amount = 2.0 * (m) * (n) * (k), \
                         .ratio = missing ? 0 : 0.97});
    BENCH_PRODUCTS(PRODUCT)
    return failed;
}

static int convolutions(void) {
    const char *missing = bare_no_dnn();
    int failed = 0;
    if (missing)
        printf("convolutions by themselves: %s\n", missing);
#define FLOP(images, in, side, out, padding) \
    (18.0 * (images) * (in) * (out) * ((side) + 2 * (padding)-2) * ((side) + 2 * (padding)-2))
#define CONVOLUTION(dtype, name, images, in, side, out, padding) \
    failed |= run((pair){.what = "conv-" #dtype "-" #name, \
                         .peer_name = "cuDNN", \
                         .peer = missing ? NULL : BARE_CONVOLUTION(dtype, name), \
                         .unit = "TFLOP/s", \
                         .amount = FLOP(images, in, side, out, padding), \
                         .peer_amount = FLOP(images, in, side, out, padding), \
                         .ratio = missing ? 0 : 0.97});
    BENCH_CONVOLUTIONS(CONVOLUTION)
    return failed;
}

/* ---- training ---------------------------------------------------------------------------- */

static double mlp(uint64_t n) {
    static training t;
    return training_time(&t, model_mlp_init, device, n);
}

static double cnn(uint64_t n) {
    static training t;
    return training_time(&t, model_cnn_init, device, n);
}

static int trainings(void) {
    return run((pair){.what = "mlp, a training step", .ours = mlp, .unit = "ms"}) |
           run((pair){.what = "mlp-graph", .unit = "ms"}) |
           run((pair){.what = "cnn, a training step", .ours = cnn, .unit = "ms"});
}

/* ---- from the start of a process --------------------------------------------------------- */

static bool first_result(void) {
    TN_SCOPE;
    double value = 0;
    float two = 2;
    tn_tensor *x = tn_from_data(&two, TN_SHAPE(1), TN_F32, tn_default_device());
    return tn_item(tn_add(x, x), &value) == TN_OK &&
           (value == 4 || bare_fail("the first result", "2 + 2 is not 4"));
}

/* The median of so many processes, with what `prepare` does before each. */
static int start(const char *what, const char *option, void (*prepare)(void), double limit) {
    enum { TIMES = 5 };
    double took[TIMES], value;
    char *const given[] = {(char *)option, NULL};
    if (!is_wanted(what))
        return 0;
    for (int i = 0; i < TIMES; i++) {
        if (prepare)
            prepare();
        if (!bench_spawn(given, &value, &took[i])) {
            printf("%-34s failed; its process said why\n", what);
            return 1;
        }
    }
    double median = bench_median(took, TIMES);
    printf("%-34s %10.4g s", what, median);
    if (limit > 0 && !is_double)
        printf("       to reach: %g s at most: %s", limit, median <= limit ? "met" : "missed");
    putchar('\n');
    return 0;
}

static char cache[] = "/tmp/tenon-bench-cache-XXXXXX";

static int drop(const char *path, const struct stat *info, int kind, struct FTW *place) {
    return remove(path);
}

static void drop_cache(void) {
    nftw(cache, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static int starts(void) {
    if (!mkdtemp(cache) || setenv("TENON_CUDA_CACHE", cache, 1)) {
        perror("cuda: a folder for a cache");
        return 1;
    }
    int failed = start("start, bare driver and NVRTC", "--first-bare", NULL, 0) |
                 start("start, cache empty", "--first-result", drop_cache, 0) |
                 start("start, cache warm", "--first-result", NULL, 0.5);
    drop_cache();
    return failed;
}

/* ---- the program ------------------------------------------------------------------------- */

/* Of a child: what its parent waits for, or a negative number. */
static int tell(bool ok) {
    puts(ok ? "1" : "-1");
    fflush(stdout);
    if (!ok)
        fprintf(stderr, "cuda: %s\n", why());
    return !ok;
}

static int usage(void) {
    fprintf(stderr, "usage: cuda [--tiny] [--rounds N] [ROW...], 1 to %d rounds\n",
            PAIRS_MAX_ROUNDS);
    return 2;
}

static bool open_device(void) {
    device = bench_device = tn_default_device();
    if (!device.type)
        return false;
    tn_tensor *first = tn_zeros(TN_SHAPE(1), TN_F32, device);
    tn_free(first);
    return first && bare_open(device.index);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what children say */
    setenv("TENON_DEVICE", "cuda:0", 0);
    options.words = argv;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--tiny"))
            bench_tiny = true;
        else if (!strcmp(argv[i], "--first-result"))
            return tell(first_result());
        else if (!strcmp(argv[i], "--first-bare"))
            return tell(bare_first_result());
        else if (!strcmp(argv[i], "--bare") && i + 2 < argc)
            return tell(run_bare(argv[i + 1], strtoull(argv[i + 2], NULL, 10)));
        else if (!strcmp(argv[i], "--image") && i + 1 < argc)
            bare_image = argv[++i];
        else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            options.rounds = atoi(argv[++i]);
        else if (argv[i][0] != '-')
            options.words[options.n_words++] = argv[i];
        else
            return usage();
    }
    if (options.rounds < 1 || options.rounds > PAIRS_MAX_ROUNDS)
        return usage();
    if (!open_device()) {
        fprintf(stderr, "cuda: nothing to measure: %s\n", why());
        return 1;
    }
    const char *driver = getenv("TENON_CUDA_DRIVER");
    is_double = strstr(tn_device_product(device), BARE_DOUBLE);
    printf("%s, driver for CUDA %d.%d%s%s, %d rounds in turns, medians%s\n",
           tn_device_product(device), bare.version / 1000, bare.version % 1000 / 10,
           driver ? " of " : "", driver ? driver : "", options.rounds,
           bench_tiny ? "; tiny: its figures mean nothing" : "");
    if (is_double)
        puts("THE DRIVER IS THE TESTS' DOUBLE: no GPU was there, and none of this is a GPU's.");
    return launches() | trainings() | streamed() | products() | convolutions() | starts();
}
