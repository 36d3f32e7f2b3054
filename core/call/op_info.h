/* What the core knows of an operator beyond its schema: generated from operators.toml, or made for
 * an operator that a program defines. tn_op.info points here.
 */
#ifndef TNI_CORE_CALL_OP_INFO_H
#define TNI_CORE_CALL_OP_INFO_H

#include "core/autograd/autograd.h"
#include "dispatcher/kernel_ops.h"

typedef enum tni_op_kind {
    TNI_OP_POINTWISE, /* shapes broadcast; one pass over elements */
    TNI_OP_GENERAL,   /* `infer` works out shapes and kernel arguments */
    TNI_OP_VIEW,      /* `run` returns tensors over the same storage; never reaches a device */
    TNI_OP_COMPOSITE  /* `run` calls other operators; no kernel */
} tni_op_kind;

/* One table entry gives up to three operators that share everything but where the result goes. */
typedef enum tni_op_form {
    TNI_FORM_FUNCTIONAL, /* add: fresh result */
    TNI_FORM_INPLACE,    /* add_: into argument 0 */
    TNI_FORM_OUT         /* add.out: into the last argument(s) */
} tni_op_form;

/* How the type variable T of the kernel follows from the arguments. */
typedef enum tni_type_rule {
    TNI_TYPES_PROMOTE, /* PyTorch's result_type of tensors and scalars */
    TNI_TYPES_FLOAT,   /* the same, integers and bool become f32 */
    TNI_TYPES_SAME,    /* all must have the dtype of the first */
    TNI_TYPES_WHOLE    /* as PROMOTE; the result of integers is a copy of them */
} tni_type_rule;

/* What Autocast does to the arguments (tenon/autocast.h). */
typedef enum tni_autocast {
    TNI_AUTOCAST_NONE,
    TNI_AUTOCAST_LOW,
    TNI_AUTOCAST_F32,
    TNI_AUTOCAST_WIDEST
} tni_autocast;

/* Shape and dtype of an output. */
typedef struct tni_spec {
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
} tni_spec;

/* The words that a string argument may be. */
enum { TNI_MAX_CHOICES = 6 };
typedef struct tni_choices {
    uint8_t arg; /* its position */
    const char *name;
    const char *words[TNI_MAX_CHOICES]; /* up to the first NULL */
} tni_choices;

struct tni_build;
typedef tn_status (*tni_infer_fn)(struct tni_build *build);

/* Runs the operator by calling others; args and rets as in a boxed call (rets owned). */
typedef tn_status (*tni_run_fn)(const tn_cell *args, tn_cell *rets);

typedef struct tni_op_info {
    const char *name; /* "add_.Tensor" */
    const char *schema;
    const char *call;         /* how messages name it: "tn_add_" */
    uint8_t kind;             /* tni_op_kind */
    uint8_t form;             /* tni_op_form */
    uint8_t type_rule;        /* tni_type_rule */
    uint8_t n_outs;           /* tensors it returns */
    int16_t kernel;           /* row of the kernel operator, or -1 */
    uint8_t cross_device;     /* 1: arguments may be on different devices */
    uint8_t multi_view;       /* 1: a view with several outputs */
    uint8_t wide;             /* 1: `run` rounds at several steps: halves pass through it as f32 */
    uint8_t run_for_integers; /* 1: `run` is a decomposition of integers alone */
    uint8_t autocast;         /* tni_autocast */
    uint16_t written;         /* mask of arguments that are written */
    uint16_t moved;           /* of a kernel: mask of arguments whose elements the result's are */
    uint8_t passes_storage; /* 1: a composite that runs for storage dtypes as what it calls does */
    /* For each kernel argument the operator's argument that fills it, or TNI_ARG_CONSTANT + i for
     * constants[i]; set by `infer` where it is TNI_ARG_INFERRED. */
    uint8_t kernel_args[TNI_MAX_ARGS];
    tn_cell constants[2];
    const tni_choices *choices; /* NULL: no string argument */
    tni_infer_fn infer;         /* GENERAL with a kernel */
    tni_run_fn run; /* VIEW, COMPOSITE; else the decomposition, NULL where there is none */
    const tni_derivative *derivative; /* NULL: composite (differentiates through), or none */
    bool not_differentiable;          /* outputs never need a gradient: comparisons, indices */
} tni_op_info;

enum { TNI_ARG_CONSTANT = 32, TNI_ARG_INFERRED = 64 };

/* Has an operator that has a kernel a decomposition for elements of `dtype`? */
static inline bool tni_decomposes(const tni_op_info *info, tn_dtype dtype) {
    return info->run && (!info->run_for_integers || !tni_is_float(dtype));
}

static inline const tni_op_info *tni_info(const tn_op *op) {
    return op->info;
}

/* The Backend handler: dtype, shape, outputs, adaptation, kernel; else decomposition; else
 * fallback. */
tn_status tni_backend_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                              void *user);

#endif
