/* What the double of NVRTC gives for a cubin, and the driver double takes for one: PTX, with the
 * architecture it was compiled for. A piece that is missing or was changed is noticed, and nothing
 * is read far behind where it ends. */
#ifndef TNI_TESTS_CUDA_DOUBLE_CUBIN_H
#define TNI_TESTS_CUDA_DOUBLE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

/* An architecture as PTX and compilers name it: 90 and 'a' for sm_90a; 0 for no letter. */
typedef struct architecture {
    int number;
    char letter;
} architecture;

/* The one that PTX was made for; false where it does not say. */
bool architecture_of(const char *ptx, architecture *out);

bool cubin_is(const void *image);
/* The bytes of the image of a text; `out` has room for them. */
size_t cubin_bytes(const char *ptx);
void cubin_write(const char *ptx, void *out);
/* The text, which the caller frees; NULL: damaged. */
char *cubin_read(const void *image, architecture *out);

#endif
