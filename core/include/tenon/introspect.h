/* tenon/introspect.h: what the library knows of itself: operators, who answers them, kernels,
 * dtypes, environment variables.
 *
 * The `tenon` command prints what these functions say; programs may ask too. Every function that
 * lists calls `fn` once for each entry, in the calling thread and outside of all locks, so `fn` may
 * call Tenon. The records and their strings are valid during the callback, an operator's strings and
 * those of its arguments for as long as it is defined. Callable from any thread.
 */
#ifndef TENON_INTROSPECT_H
#define TENON_INTROSPECT_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operators --------------------------------------------------------------------------- */

/* An argument of an operator, or a result of one. */
typedef struct tn_arg_info {
    uint64_t struct_size;
    const char *name; /* "self"; "" for a result without a name */
    const char
        *type; /* "Tensor", "Tensor[]", "Tensor?[]", "int", "int[]", "float", "bool", "Scalar",
                         "ScalarType", "Device", "str" */
    tn_cell fallback; /* with has_default: the default, as a boxed call takes it; NONE: None */
    uint32_t n_ints;  /* of int[N], where one int stands for N equal ones; else 0 */
    int32_t alias;    /* of a result: the position of the argument that it may share memory with, or
                         is, where that is_written. -1: none, and for arguments */
    bool optional;    /* may be None */
    bool has_default; /* may be left out */
    bool keyword_only;
    bool is_written;
    uint8_t reserved[4];
} tn_arg_info;

typedef struct tn_op_info {
    uint64_t struct_size;
    const char *name;     /* "add.Tensor" */
    const char *schema;   /* "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
    const char *kind;     /* "pointwise", "general", "view", "composite"; "custom": by a program */
    const char *kernel;   /* the kernel operator a plugin implements for it; "" for none */
    const char *gradient; /* "formula", "composite" (through what it calls), "none" (its results
                             never need one), "missing" (backward fails, by name) */
    bool has_decomposition; /* in each dtype: runs by others where a device has no kernel */
    bool in_small_set;      /* its kernel is one of those every device must have */
    const char *function;   /* of tenon/ops.h: "tn_add"; "" for an operator of a program. What its
                               parameters are follows from `args`, as the first comment there says */
    const char *form;       /* "functional", "inplace" (writes its first argument and returns it, or
                               nothing), "out" (writes others, and returns them) */
    const tn_arg_info *args, *rets;
    uint32_t n_args, n_rets;
} tn_op_info;

/* Every operator, in the order of definition. */
TN_API tn_status tn_op_list(void (*fn)(const tn_op_info *info, void *user), void *user);

/* One operator by its full name ("add.Tensor"). TN_ERR_NOT_FOUND when there is none. */
TN_API tn_status tn_op_describe(const char *name, void (*fn)(const tn_op_info *info, void *user),
                                void *user);

/* One line of an operator's resolved dispatch table. */
typedef struct tn_op_handler_info {
    uint64_t struct_size;
    const char *key;         /* "Autograd" */
    const char *device_type; /* "" for every device */
    const char *origin;      /* who registered it: "tenon core", "mylib 1.2" */
    const char *why;         /* "for this operator", "default of the key", "falls through" */
    bool active;             /* false: hidden behind a newer registration */
} tn_op_handler_info;

/* The handlers of an operator, highest key first. */
TN_API tn_status tn_op_handlers(const char *name,
                                void (*fn)(const tn_op_handler_info *info, void *user), void *user);

/* ---- kernels ----------------------------------------------------------------------------- */

/* A kernel that an open device has for an operator. */
typedef struct tn_kernel_info {
    uint64_t struct_size;
    const char *device; /* "npu:0" */
    const char *kernel; /* "add" */
    const char *origin; /* the plugin's id, or what a program said */
    uint64_t dtypes;    /* mask over the first type variable, TN_DTYPE_BIT */
    uint64_t flags;     /* TN_KERNEL_* */
} tn_kernel_info;

/* The kernels of an operator on every device that is open, in the order of opening. Calls nothing
 * for an operator without a kernel. */
TN_API tn_status tn_op_kernels(const char *name, void (*fn)(const tn_kernel_info *info, void *user),
                               void *user);

/* ---- dtypes ------------------------------------------------------------------------------ */

typedef struct tn_dtype_info {
    uint64_t struct_size;
    const char *name; /* "f32" */
    const char *kind; /* "float", "int", "unsigned", "bool", "complex" */
    tn_dtype dtype;   /* its number */
    uint32_t bytes;   /* of an element */
} tn_dtype_info;

/* Every dtype, by rising number. */
TN_API void tn_dtype_list(void (*fn)(const tn_dtype_info *info, void *user), void *user);

/* ---- environment ------------------------------------------------------------------------- */

typedef struct tn_env_info {
    uint64_t struct_size;
    const char *name;     /* "TENON_DEVICE" */
    const char *type;     /* "device", "paths", "number" ... */
    const char *fallback; /* the default */
    const char *value;    /* what holds now */
    const char *help;     /* one line */
    bool is_set;          /* in the environment, and not ignored */
    bool is_guarded;      /* ignored where the program runs with raised privileges */
    const char *allowed;  /* "0, 1 or 2"; "" where that takes more words */
    const char *problem;  /* "", or why what is set does not hold, or not all of it */
} tn_env_info;

/* Every environment variable that Tenon reads; then those that are set and begin as its do: options of
 * plugins, whose type is "option", and what nothing reads, whose type is "". */
TN_API void tn_env_list(void (*fn)(const tn_env_info *info, void *user), void *user);

#ifdef __cplusplus
}
#endif

#endif /* TENON_INTROSPECT_H */
