/* A transformer of GPT-2's kind (Radford and others, "Language models are unsupervised multitask
 * learners", 2019): its parameters have the names and shapes of GPT-2's files, and its layers compute
 * what those expect. Weights of a projection are [in, out], as there.
 */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <tenon/tenon.h>

enum {
    GPT_MAX_LAYERS = 48,
    GPT_PER_LAYER = 12,
    GPT_OUTSIDE = 4, /* wte, wpe, ln_f.weight, ln_f.bias */
    GPT_MAX_PARAMETERS = GPT_OUTSIDE + GPT_MAX_LAYERS * GPT_PER_LAYER,
    GPT_NAME = 48
};

typedef struct gpt_config {
    int64_t vocabulary; /* tokens there are */
    int64_t context;    /* tokens it looks back, itself included */
    int64_t width;      /* numbers that a token is */
    int64_t n_layers, n_heads;
} gpt_config;

typedef struct gpt {
    gpt_config config;
    tn_tensor *parameters[GPT_MAX_PARAMETERS]; /* leaves, references of the model's */
    int64_t n_parameters;
    bool recomputes; /* what blocks compute is not kept for backward, but computed again */
} gpt;

/* What a model said of the tokens before, so that the next one costs no more than itself. */
typedef struct gpt_cache {
    tn_tensor *keys[GPT_MAX_LAYERS],
        *values[GPT_MAX_LAYERS]; /* [1, heads, context, width / heads] */
    int64_t length;              /* tokens seen */
} gpt_cache;

/* The parameters, with random weights as GPT-2's are drawn: normal, of deviation 0.02, and less by
 * sqrt(2 layers) where a block adds to what goes past it. After an error gpt_finish, too. */
tn_status gpt_init(gpt *m, const gpt_config *config, tn_device device);
void gpt_finish(gpt *m);

/* The name and shape of parameter i: "h.0.attn.c_attn.weight". Rank 1 or 2. */
const char *gpt_parameter_name(const gpt_config *c, int64_t i, char out[GPT_NAME]);
int gpt_parameter_shape(const gpt_config *c, int64_t i, int64_t out[2]);
int64_t gpt_n_weights(const gpt *m);

/* Of tokens [n, t], i64, how likely each token is next: [n, t, vocabulary], logits. t is at most the
 * context. With a cache (n = 1) the tokens follow those that it has seen, and are added to it: one at
 * a time, or several into an empty one. */
tn_tensor *gpt_forward(const gpt *m, tn_tensor *tokens, gpt_cache *cache);

tn_status gpt_cache_init(gpt_cache *cache, const gpt *m);
void gpt_cache_finish(gpt_cache *cache);

#endif
