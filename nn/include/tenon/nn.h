/* tenon/nn.h: layers, and what a model of them needs: names, modes, an optimizer's list, files.
 *
 * A model is a struct of the program with modules as members, and one function that visits them:
 *
 *     typedef struct net { tn_nn_linear in, out; } net;
 *
 *     static void net_visit(void *model, tn_nn_visitor *v) {
 *         net *m = model;
 *         tn_nn_linear_visit(&m->in, "in", v);
 *         tn_nn_linear_visit(&m->out, "out", v);
 *     }
 *
 * Through that function everything else is done: tn_nn_parameters, tn_nn_train, tn_nn_state_save,
 * tn_nn_state_load, tn_nn_finish. Names, shapes, defaults and first values are those of torch.nn,
 * so that a state of the same modules fits both ways. Options that are left out, zero, are the
 * defaults.
 *
 * Ownership: the struct is the program's and may be moved: nothing points into it. Parameters and
 * buffers are references that the module holds from its init to its finish; they may be replaced by
 * others that were kept. A struct of zeros can be finished, visited and initialised again. Results
 * belong to the scope.
 *
 * Errors: an init returns a status and leaves zeros on failure; finish(NULL) does nothing. A
 * forward returns NULL; a NULL input passes through. Messages name the module, once a visitor has
 * been there.
 *
 * Threads: forward of one module in several threads is safe where it writes nothing, which batch
 * norm in training does. Whatever visits also writes the modules' names: one thread.
 *
 * The layout of the structs may change with the library's soname, 0 until it has settled.
 * In libtenon-nn: cc program.c $(pkg-config --cflags --libs tenon-nn)
 */
#ifndef TENON_NN_H
#define TENON_NN_H

#include <tenon/autograd.h>
#include <tenon/safetensors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what modules have in common --------------------------------------------------------- */

#define TN_NN_NAME_BYTES 64

/* The first member of each module. */
typedef struct tn_nn_module {
    char name[TN_NN_NAME_BYTES]; /* "blocks.0.norm1", the end of a long one; "" before a visit */
    bool training;               /* true after init */
} tn_nn_module;

/* Goes through a model; opaque. */
typedef struct tn_nn_visitor tn_nn_visitor;
typedef void (*tn_nn_visit_fn)(void *model, tn_nn_visitor *v);

/* For modules of a program's own: all between enter and leave is named "name.". The name is
 * formatted, as in tn_nn_enter(v, "blocks.%d", i); it is UTF-8. */
TN_API void tn_nn_enter(tn_nn_visitor *v, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
TN_API void tn_nn_leave(tn_nn_visitor *v);
/* Gives a module its name and mode. */
TN_API void tn_nn_visit_module(tn_nn_visitor *v, tn_nn_module *module);
/* A tensor that is trained, and one that is not but belongs to the state. *slot NULL: none. */
TN_API void tn_nn_visit_parameter(tn_nn_visitor *v, const char *name, tn_tensor **slot);
TN_API void tn_nn_visit_buffer(tn_nn_visitor *v, const char *name, tn_tensor **slot);

/* t, kept for a model and marked as one that requires a gradient; NULL passes through. */
TN_API tn_tensor *tn_nn_parameter(tn_tensor *t);

/* ---- other first values ------------------------------------------------------------------ */

/* What a module's weight is filled with instead, in place, after its init; returns the weight, NULL
 * with an error. He et al., 2015, as torch.nn.init: of N(0, s), and of U(-s sqrt(3), s sqrt(3)), where
 * s = gain / sqrt(fan). The fan of a weight [out, in, sizes ...] is in or out times the sizes; the
 * gain before a ReLU is sqrt(2). */
typedef enum tn_nn_fan { TN_NN_FAN_IN = 0, TN_NN_FAN_OUT = 1 } tn_nn_fan;
TN_API tn_tensor *tn_nn_kaiming_normal_(tn_tensor *weight, tn_nn_fan fan, double gain);
TN_API tn_tensor *tn_nn_kaiming_uniform_(tn_tensor *weight, tn_nn_fan fan, double gain);

/* ---- models ------------------------------------------------------------------------------ */

/* One tensor of a model; valid during the call. */
typedef struct tn_nn_entry {
    const char *name;   /* "blocks.0.norm1.weight" */
    tn_tensor **tensor; /* where the model has it; never NULL in there */
    bool is_parameter;  /* else a buffer */
} tn_nn_entry;

/* Calls fn for each tensor, in the order of the visit function, until one fails. */
TN_API tn_status tn_nn_each(void *model, tn_nn_visit_fn visit,
                            tn_status (*fn)(const tn_nn_entry *entry, void *user), void *user);

/* The parameters, each once, borrowed from the model, as tn_sgd_create takes them; how many in
 * *out_n. The list is freed with tn_nn_parameters_free. NULL with an error. */
TN_API tn_tensor **tn_nn_parameters(void *model, tn_nn_visit_fn visit, uint64_t *out_n);
TN_API void tn_nn_parameters_free(tn_tensor **parameters);

/* Training (dropout drops, batch norm takes the batch's statistics) or evaluation. */
TN_API tn_status tn_nn_train(void *model, tn_nn_visit_fn visit, bool training);

/* Writes every parameter and buffer to a safetensors file, with metadata (NULL and 0: none), as
 * tn_safetensors_write does. */
TN_API tn_status tn_nn_state_save(const char *path, void *model, tn_nn_visit_fn visit,
                                  const tn_key_value *metadata, uint64_t n_metadata);

/* Copies the tensors of a file into those of the model, in place, on their devices and cast to
 * their dtypes: an optimizer's list stays good. `strict`: the file has all names of the model and
 * no other; else those that both have are copied. Shapes must be equal. All of this is checked
 * first: after TN_ERR_NOT_FOUND (names), TN_ERR_SHAPE or TN_ERR_UNSUPPORTED (a dtype) the model is
 * as it was. */
TN_API tn_status tn_nn_state_load(const char *path, void *model, tn_nn_visit_fn visit, bool strict);

/* Drops every tensor of the model. Its struct can be initialised again. */
TN_API void tn_nn_finish(void *model, tn_nn_visit_fn visit);

/* ---- linear ------------------------------------------------------------------------------ */

/* x A^T + b, over the last dimension. Values of U(-k, k), k = 1 / sqrt(in_features). */
typedef struct tn_nn_linear {
    tn_nn_module module;
    tn_tensor *weight; /* [out_features, in_features] */
    tn_tensor *bias;   /* [out_features], or NULL */
    int64_t in_features, out_features;
} tn_nn_linear;

typedef struct tn_nn_linear_options {
    int64_t in_features, out_features;
    bool no_bias;
} tn_nn_linear_options;

TN_API tn_status tn_nn_linear_init(tn_nn_linear *m, const tn_nn_linear_options *options,
                                   tn_device device, tn_dtype dtype);
/* [..., in_features] to [..., out_features]. */
TN_API tn_tensor *tn_nn_linear_forward(const tn_nn_linear *m, tn_tensor *x);
TN_API void tn_nn_linear_visit(tn_nn_linear *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_linear_finish(tn_nn_linear *m);

/* ---- convolution ------------------------------------------------------------------------- */

/* In as many dimensions, one to three, as kernel_size has sizes: {5}, {3, 3}. Values of U(-k, k),
 * k = 1 / sqrt(in_channels / groups * kernel sizes). */
typedef struct tn_nn_conv_options {
    int64_t in_channels, out_channels;
    int64_t kernel_size[3];
    int64_t stride[3];   /* [1] */
    int64_t padding[3];  /* [0] with zeros, on both sides */
    int64_t dilation[3]; /* [1] */
    int64_t groups;      /* [1] */
    bool no_bias;
} tn_nn_conv_options;

typedef struct tn_nn_conv {
    tn_nn_module module;
    tn_tensor *weight; /* [out_channels, in_channels / groups, kernel sizes ...] */
    tn_tensor *bias;   /* [out_channels], or NULL */
    int32_t n_dims;
    tn_nn_conv_options options; /* with the defaults filled in */
} tn_nn_conv;

TN_API tn_status tn_nn_conv_init(tn_nn_conv *m, const tn_nn_conv_options *options, tn_device device,
                                 tn_dtype dtype);
/* [N, in_channels, sizes ...] to [N, out_channels, sizes ...]. */
TN_API tn_tensor *tn_nn_conv_forward(const tn_nn_conv *m, tn_tensor *x);
TN_API void tn_nn_conv_visit(tn_nn_conv *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_conv_finish(tn_nn_conv *m);

/* ---- embedding --------------------------------------------------------------------------- */

/* Rows by their number. Values of N(0, 1); the row padding_idx, if there is one, is zero and stays
 * so. */
typedef struct tn_nn_embedding {
    tn_nn_module module;
    tn_tensor *weight;   /* [num_embeddings, embedding_dim] */
    int64_t padding_idx; /* -1: none */
} tn_nn_embedding;

typedef struct tn_nn_embedding_options {
    int64_t num_embeddings, embedding_dim;
    bool has_padding_idx;
    int64_t padding_idx;
} tn_nn_embedding_options;

TN_API tn_status tn_nn_embedding_init(tn_nn_embedding *m, const tn_nn_embedding_options *options,
                                      tn_device device, tn_dtype dtype);
/* Integers of any shape [...] to [..., embedding_dim]. */
TN_API tn_tensor *tn_nn_embedding_forward(const tn_nn_embedding *m, tn_tensor *indices);
TN_API void tn_nn_embedding_visit(tn_nn_embedding *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_embedding_finish(tn_nn_embedding *m);

/* ---- norms over the last dimensions ------------------------------------------------------ */

/* Layer norm (Ba et al., 2016) over the last dimensions, which are normalized_shape. */
typedef struct tn_nn_layer_norm {
    tn_nn_module module;
    tn_tensor *weight, *bias; /* normalized_shape; ones and zeros at first; or NULL */
    int64_t normalized_shape[TN_MAX_RANK];
    int64_t n_dims;
    double eps;
} tn_nn_layer_norm;

typedef struct tn_nn_layer_norm_options {
    tn_ints normalized_shape; /* copied */
    double eps;               /* [1e-5] */
    bool no_affine;           /* neither weight nor bias */
    bool no_bias;
} tn_nn_layer_norm_options;

TN_API tn_status tn_nn_layer_norm_init(tn_nn_layer_norm *m, const tn_nn_layer_norm_options *options,
                                       tn_device device, tn_dtype dtype);
/* Of x's shape. */
TN_API tn_tensor *tn_nn_layer_norm_forward(const tn_nn_layer_norm *m, tn_tensor *x);
TN_API void tn_nn_layer_norm_visit(tn_nn_layer_norm *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_layer_norm_finish(tn_nn_layer_norm *m);

/* Root mean square norm (Zhang and Sennrich, 2019): the same without mean and bias. */
typedef struct tn_nn_rms_norm {
    tn_nn_module module;
    tn_tensor *weight; /* normalized_shape, ones at first; or NULL */
    int64_t normalized_shape[TN_MAX_RANK];
    int64_t n_dims;
    double eps; /* 0: the dtype's */
} tn_nn_rms_norm;

typedef struct tn_nn_rms_norm_options {
    tn_ints normalized_shape; /* copied */
    double eps;               /* [the dtype's, of halves f32's] */
    bool no_affine;
} tn_nn_rms_norm_options;

TN_API tn_status tn_nn_rms_norm_init(tn_nn_rms_norm *m, const tn_nn_rms_norm_options *options,
                                     tn_device device, tn_dtype dtype);
TN_API tn_tensor *tn_nn_rms_norm_forward(const tn_nn_rms_norm *m, tn_tensor *x);
TN_API void tn_nn_rms_norm_visit(tn_nn_rms_norm *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_rms_norm_finish(tn_nn_rms_norm *m);

/* ---- batch norm -------------------------------------------------------------------------- */

/* Ioffe and Szegedy, 2015, of each channel. In training by the batch's mean and variance, which are
 * also averaged into the running ones; in evaluation by those. */
typedef struct tn_nn_batch_norm {
    tn_nn_module module;
    tn_tensor *weight, *bias;              /* [num_features]; ones and zeros at first; or NULL */
    tn_tensor *running_mean, *running_var; /* [num_features]; buffers; zeros and ones; or NULL */
    tn_tensor *num_batches_tracked;        /* rank 0, i64; a buffer; or NULL */
    int64_t num_features;
    double eps, momentum;
} tn_nn_batch_norm;

typedef struct tn_nn_batch_norm_options {
    int64_t num_features;
    double eps;            /* [1e-5] */
    double momentum;       /* [0.1] weight of the new batch in the running average */
    bool no_affine;        /* neither weight nor bias */
    bool no_running_stats; /* the batch's statistics in evaluation, too */
} tn_nn_batch_norm_options;

TN_API tn_status tn_nn_batch_norm_init(tn_nn_batch_norm *m, const tn_nn_batch_norm_options *options,
                                       tn_device device, tn_dtype dtype);
/* [N, num_features, ...], of any rank from 2, to the same. */
TN_API tn_tensor *tn_nn_batch_norm_forward(tn_nn_batch_norm *m, tn_tensor *x);
TN_API void tn_nn_batch_norm_visit(tn_nn_batch_norm *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_batch_norm_finish(tn_nn_batch_norm *m);

/* ---- dropout ----------------------------------------------------------------------------- */

/* In training zeroes elements with probability p and scales the others by 1 / (1 - p). */
typedef struct tn_nn_dropout {
    tn_nn_module module;
    double p;
} tn_nn_dropout;

typedef struct tn_nn_dropout_options {
    double p; /* in [0, 1]; left out it drops nothing, unlike torch.nn's 0.5 */
} tn_nn_dropout_options;

TN_API tn_status tn_nn_dropout_init(tn_nn_dropout *m, const tn_nn_dropout_options *options);
TN_API tn_tensor *tn_nn_dropout_forward(const tn_nn_dropout *m, tn_tensor *x);
TN_API void tn_nn_dropout_visit(tn_nn_dropout *m, const char *name, tn_nn_visitor *v);
TN_API void tn_nn_dropout_finish(tn_nn_dropout *m);

/* ---- attention --------------------------------------------------------------------------- */

/* Multi-head attention (Vaswani et al., 2017). Values of U(-k, k), in the projections into the
 * heads k = sqrt(6 / (4 * embed_dim)) (Glorot and Bengio, 2010), in the one out of them 1 /
 * sqrt(embed_dim); biases 0. */
typedef struct tn_nn_multihead_attention {
    tn_nn_module module;
    tn_tensor *in_proj_weight; /* [3 * embed_dim, embed_dim]: of query, key, value */
    tn_tensor *in_proj_bias;   /* [3 * embed_dim], or NULL */
    tn_nn_linear out_proj;
    int64_t embed_dim, num_heads;
    double dropout;
    bool is_causal;
} tn_nn_multihead_attention;

typedef struct tn_nn_multihead_attention_options {
    int64_t embed_dim, num_heads; /* embed_dim is a multiple of num_heads */
    double dropout;               /* [0] of the weights, in training */
    bool no_bias;
    bool is_causal; /* position i sees keys 0 to i */
} tn_nn_multihead_attention_options;

TN_API tn_status tn_nn_multihead_attention_init(tn_nn_multihead_attention *m,
                                                const tn_nn_multihead_attention_options *options,
                                                tn_device device, tn_dtype dtype);
/* query [N, L, embed_dim], key and value [N, S, embed_dim] to [N, L, embed_dim]. mask, or TN_NONE,
 * is broadcast to [N, num_heads, L, S]: bool, true where a query sees a key, or a number that is
 * added to the scores. A query that sees no key gets NaN. */
TN_API tn_tensor *tn_nn_multihead_attention_forward(const tn_nn_multihead_attention *m,
                                                    tn_tensor *query, tn_tensor *key,
                                                    tn_tensor *value, tn_tensor *mask);
TN_API void tn_nn_multihead_attention_visit(tn_nn_multihead_attention *m, const char *name,
                                            tn_nn_visitor *v);
TN_API void tn_nn_multihead_attention_finish(tn_nn_multihead_attention *m);

/* ---- transformer block ------------------------------------------------------------------- */

typedef enum tn_nn_activation { TN_NN_RELU, TN_NN_GELU } tn_nn_activation;

/* Self-attention and a network of two layers, each added to its input and normalised; names and
 * formulas of torch.nn.TransformerEncoderLayer with batch_first. */
typedef struct tn_nn_transformer_block {
    tn_nn_module module;
    tn_nn_multihead_attention self_attn;
    tn_nn_linear linear1, linear2;
    tn_nn_layer_norm norm1, norm2;
    tn_nn_dropout dropout, dropout1, dropout2;
    tn_nn_activation activation;
    bool norm_first;
} tn_nn_transformer_block;

typedef struct tn_nn_transformer_block_options {
    int64_t d_model, nhead;
    int64_t dim_feedforward;     /* [2048] */
    double dropout;              /* [0] unlike torch.nn's 0.1 */
    double layer_norm_eps;       /* [1e-5] */
    tn_nn_activation activation; /* [TN_NN_RELU] */
    bool norm_first;             /* normalise what goes in, as GPT-2 does, not the sum */
    bool no_bias;
    bool is_causal;
} tn_nn_transformer_block_options;

TN_API tn_status tn_nn_transformer_block_init(tn_nn_transformer_block *m,
                                              const tn_nn_transformer_block_options *options,
                                              tn_device device, tn_dtype dtype);
/* [N, L, d_model] to the same; mask as for attention. */
TN_API tn_tensor *tn_nn_transformer_block_forward(const tn_nn_transformer_block *m, tn_tensor *x,
                                                  tn_tensor *mask);
TN_API void tn_nn_transformer_block_visit(tn_nn_transformer_block *m, const char *name,
                                          tn_nn_visitor *v);
TN_API void tn_nn_transformer_block_finish(tn_nn_transformer_block *m);

#ifdef __cplusplus
}
#endif

#endif /* TENON_NN_H */
