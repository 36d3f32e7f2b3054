/* tenon/safetensors.h: tensors by name, to and from files in the safetensors format.
 *
 * The format is Hugging Face's (https://github.com/huggingface/safetensors): a header in JSON that
 * says name, dtype, shape and place of each tensor, then their bytes, little-endian and row-major.
 * Nothing in a file is believed before it was checked: one that is refused leaves an error that
 * says what is wrong where. Files of this library and of Python's have the same bytes where they
 * have the same tensors and at most one entry of metadata (Python's come in no order).
 *
 * Ownership: a file is opened and closed by the caller. Strings and shapes of a file are borrowed
 * from it until it is closed; tensors are copies, belong to the scope, and outlive it. Threads: any
 * number of them may read one open file; one closes it, when the others are done.
 *
 * In libtenon-nn: cc program.c $(pkg-config --cflags --libs tenon-nn)
 */
#ifndef TENON_SAFETENSORS_H
#define TENON_SAFETENSORS_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading ----------------------------------------------------------------------------- */

typedef struct tn_safetensors tn_safetensors;

/* Opens a file for reading: checks all of its header, and maps its tensors without reading them.
 * NULL with an error: TN_ERR_NOT_FOUND; TN_ERR_IO for what cannot be read or is not one whole,
 * exact safetensors file; TN_ERR_UNSUPPORTED for a tensor of more than TN_MAX_RANK dimensions.
 *
 * The file must stay as it is while it is open. One that has become shorter is TN_ERR_IO for the
 * next tensor asked for; one that is cut while a tensor is being read can end the process with
 * SIGBUS, as any mapped file. Replacing it by a rename, as tn_safetensors_write does, is safe: what
 * is open stays the old file. */
TN_API tn_safetensors *tn_safetensors_open(const char *path);
TN_API void tn_safetensors_close(tn_safetensors *file);

/* What a file says of one tensor. */
typedef struct tn_safetensors_info {
    uint64_t struct_size; /* set by the caller */
    const char *name;
    const char *dtype_name; /* the format's: "F32" */
    tn_dtype dtype;         /* TN_DTYPE_NONE where Tenon has no such dtype (U32, F8_E4M3 ...) */
    tn_ints shape;
    uint64_t bytes;
} tn_safetensors_info;

/* How many tensors the file has; 0 for NULL. */
TN_API uint64_t tn_safetensors_count(const tn_safetensors *file);
/* Tensor i, in the order of their bytes in the file, into *out. */
TN_API tn_status tn_safetensors_get_info(const tn_safetensors *file, uint64_t i,
                                         tn_safetensors_info *out);
/* The number of the tensor of that name; -1, without an error, where there is none. */
TN_API int64_t tn_safetensors_find(const tn_safetensors *file, const char *name);

/* A copy on `device` ({0, 0}: the default device) of the tensor of that name; tn_safetensors_find
 * asks whether there is one. NULL with an error; TN_ERR_UNSUPPORTED for a dtype that Tenon does not
 * have. */
TN_API tn_tensor *tn_safetensors_read(const tn_safetensors *file, const char *name,
                                      tn_device device);
/* All of them, in the file's order, into out[n], where n is tn_safetensors_count. After an error
 * out[] is NULL, and the scope holds nothing of it. */
TN_API tn_status tn_safetensors_read_all(const tn_safetensors *file, tn_device device,
                                         tn_tensor **out, uint64_t n);

/* ---- metadata: strings by name ----------------------------------------------------------- */

/* The value of a key; NULL, without an error, where there is none. */
TN_API const char *tn_safetensors_metadata(const tn_safetensors *file, const char *key);
/* How many entries there are; 0 for NULL. */
TN_API uint64_t tn_safetensors_metadata_count(const tn_safetensors *file);
/* Entry i, in the file's order. */
TN_API tn_status tn_safetensors_metadata_at(const tn_safetensors *file, uint64_t i,
                                            const char **out_key, const char **out_value);

/* ---- writing ----------------------------------------------------------------------------- */

typedef struct tn_named_tensor {
    const char *name; /* UTF-8; not "__metadata__" */
    tn_tensor *tensor;
} tn_named_tensor;

typedef struct tn_key_value {
    const char *key, *value; /* UTF-8 */
} tn_key_value;

/* Writes n tensors, of any device and strides, and metadata (NULL and 0 for none). The order given
 * does not matter: tensors stand by the size of their elements, largest first, then by name, and
 * metadata by key, so that the same content makes the same bytes.
 *
 * The file is written beside `path` under another name, flushed to the disk, and renamed: whoever
 * opens `path` finds the old file or the whole new one. After an error `path` is as it was, and the
 * other file is gone. Its permissions are those of a new file. Waits for the tensors' devices;
 * needs host memory for the largest tensor. */
TN_API tn_status tn_safetensors_write(const char *path, const tn_named_tensor *tensors, uint64_t n,
                                      const tn_key_value *metadata, uint64_t n_metadata);

#ifdef __cplusplus
}
#endif

#endif /* TENON_SAFETENSORS_H */
