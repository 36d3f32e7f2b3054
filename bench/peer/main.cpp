/* The same work as the programs one folder up, done by libtorch; built and run by compare.py. */
#include "bench/peer/peer.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

at::Device peer_device() {
    const char *name = std::getenv("TENON_DEVICE");
    return at::Device(name && !std::strncmp(name, "cuda", 4) ? name : "cpu");
}

void peer_wait() {
    if (peer_device().is_cuda())
        torch::cuda::synchronize(peer_device().index());
}

static bool start(uint32_t n_threads) {
    at::set_num_threads(int(n_threads));
    /* Of itself it rounds f32 to TF32 in convolutions. */
    at::globalContext().setAllowTF32CuDNN(false);
    return !peer_device().is_cuda() || torch::cuda::is_available();
}

static const char *error() {
    return peer_device().is_cuda() && !torch::cuda::is_available() ? "libtorch finds no CUDA device"
                                                                   : "libtorch threw an exception";
}

/* "mkl 2024.2, onednn 3.5": what stands behind the kernels, out of longer texts. */
static std::string first_version(const std::string &text) {
    size_t from = text.find_first_of("0123456789");
    if (from == std::string::npos)
        return "none";
    size_t to = text.find_first_not_of("0123456789.", from);
    return text.substr(from, to == std::string::npos ? to : to - from);
}

static const char *version() {
    static std::string text = "libtorch " TORCH_VERSION " (mkl " +
                              first_version(at::get_mkl_version()) + ", onednn " +
                              first_version(at::get_mkldnn_version()) + ", " +
                              at::get_cpu_capability() + ") on " + peer_device().str();
    return text.c_str();
}

int main(int argc, char **argv) {
    std::vector<bench_row> rows(overhead_rows, overhead_rows + n_overhead_rows);
    rows.insert(rows.end(), kernel_rows, kernel_rows + n_kernel_rows);
    rows.insert(rows.end(), train_rows, train_rows + n_train_rows);
    rows.insert(rows.end(), peer_device_rows, peer_device_rows + n_peer_device_rows);
    rows.insert(rows.end(), size_rows, size_rows + n_size_rows);
    bench_program program = {};
    program.name = "peer";
    program.subject = "PyTorch";
    program.rows = rows.data();
    program.n_rows = int(rows.size());
    program.start = start;
    program.error = error;
    program.version = version;
    return bench_main(&program, argc, argv);
}
