/* The last step of reading a module: the functions' code in one piece, and everything at its place. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_LINK_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_LINK_H

#include "tests/cuda/double/ptx_reader.h"

void ptx_link(ptx_reader *reader);

#endif
