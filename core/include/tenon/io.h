/* tenon/io.h: tensors from files. */
#ifndef TENON_IO_H
#define TENON_IO_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an IDX file, the format of MNIST and its like, plain or compressed with gzip, into a tensor
 * on `device` ({0, 0}: the default device) that belongs to the scope. u8, i8, i16, i32, f32, f64;
 * at most 2 GiB of elements. What is not exactly one whole IDX array is refused. */
TN_API tn_status tn_idx_read(const char *path, tn_device device, tn_tensor **out);

#ifdef __cplusplus
}
#endif

#endif /* TENON_IO_H */
