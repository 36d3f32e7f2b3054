/* PTX, as NVRTC writes it, run on the host: what the driver double launches kernels with.
 *
 * An interpreter of warps. Thirty-two lanes go through the code together, each with its own place in
 * it; those at the least place run next, so that lanes that parted meet again where the code does. A
 * barrier, a shuffle or a vote waits for the lanes it names, as it does on hardware of today. Every
 * access to memory is checked against the ranges that the caller knows. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* Reads PTX. NULL, with the line and what is wrong with it in `error`, where it is not understood: an
 * instruction that the interpreter does not know is refused here, by name, not when it is reached.
 * Modules do not change afterwards, and several threads may run kernels of one. */
ptx_module *ptx_module_create(const char *text, char *error, size_t room);
void ptx_module_destroy(ptx_module *module);

/* The kernel of that name, which lives as long as the module; NULL if there is none. */
const ptx_kernel *ptx_module_kernel(const ptx_module *module, const char *name);

typedef struct ptx_facts {
    uint32_t parameter_bytes; /* of all parameters, each at its alignment */
    uint32_t n_parameters;
    uint32_t shared_bytes; /* declared by the kernel */
    uint32_t local_bytes;
    uint32_t max_threads; /* of a block: .maxntid, or 1024 */
} ptx_facts;

ptx_facts ptx_kernel_facts(const ptx_kernel *kernel);
/* Where parameter `index` lies in the block of parameters, and its bytes; false if there is none. */
bool ptx_kernel_parameter(const ptx_kernel *kernel, uint32_t index, uint32_t *out_offset,
                          uint32_t *out_bytes);

/* Device memory that may be accessed: [begin, end), and where `begin` lies on the host. */
typedef struct ptx_range {
    uint64_t begin, end;
    unsigned char *host;
} ptx_range;

typedef struct ptx_launch {
    const ptx_kernel *kernel;
    const void *parameters; /* ptx_facts.parameter_bytes of them */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    /* The allocation that `address` is in; false: none. Called seldom: ranges are remembered for
     * the length of a launch. */
    bool (*find)(void *user, uint64_t address, ptx_range *out);
    /* Told once of each pair of lines that race for shared memory; NULL: it is not looked for them. */
    void (*race)(void *user, const char *what);
    void *user;
    uint64_t *out_executed; /* or NULL: steps of the interpreter times lanes */
} ptx_launch;

typedef enum ptx_result {
    PTX_DONE,
    PTX_ILLEGAL_ADDRESS,     /* outside every allocation, or of shared or local memory */
    PTX_MISALIGNED_ADDRESS,  /* not a multiple of the access's bytes */
    PTX_ILLEGAL_INSTRUCTION, /* trap, a barrier that can never be passed */
    PTX_LAUNCH_FAILED        /* no host memory */
} ptx_result;

/* Runs all blocks on the calling thread. What went wrong, where and in which thread is in `error`. */
ptx_result ptx_run(const ptx_launch *launch, char *error, size_t room);

#endif
