/* The rows of a device with a queue, by themselves; cuda.c has them beside bare CUDA, compare.py
 * beside PyTorch. */
#include "bench/device.h"

#include "bench/tenon.h"

int main(int argc, char **argv) {
    return bench_tenon_main("device", device_rows, n_device_rows, argc, argv);
}
