/* Writes what NVRTC makes of a file: nvrtc FILE.cu ARCH [OPTION] */
#include "tests/cuda/ptx/ptx_rig.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: nvrtc FILE.cu ARCH [OPTION]\n");
        return 2;
    }
    setenv("PTX_TEST_FILES", ".", 0);
    char *ptx = rig_compile(argv[1], argv[2], argc > 3 ? argv[3] : NULL);
    if (!ptx) {
        fprintf(stderr, "%s\n", rig_no_nvrtc());
        return 77;
    }
    fputs(ptx, stdout);
    free(ptx);
    return 0;
}
