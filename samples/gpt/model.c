/* The network. Read gpt_forward first. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters -------------------------------------------------------------------------- */

/* In the order in which gpt.parameters has them: two, those of each layer, two. */
enum { WTE, WPE, FIRST_LAYER };
enum {
    LN_1_W,
    LN_1_B,
    ATTN_W,
    ATTN_B,
    ATTN_OUT_W,
    ATTN_OUT_B,
    LN_2_W,
    LN_2_B,
    MLP_W,
    MLP_B,
    MLP_OUT_W,
    MLP_OUT_B
};

/* Shapes in widths; 0 rows for what has one dimension. */
static const struct {
    const char *name;
    int rows, columns;
} in_layer[GPT_PER_LAYER] = {
    [LN_1_W] = {"ln_1.weight", 0, 1},
    [LN_1_B] = {"ln_1.bias", 0, 1},
    [ATTN_W] = {"attn.c_attn.weight", 1, 3},
    [ATTN_B] = {"attn.c_attn.bias", 0, 3},
    [ATTN_OUT_W] = {"attn.c_proj.weight", 1, 1},
    [ATTN_OUT_B] = {"attn.c_proj.bias", 0, 1},
    [LN_2_W] = {"ln_2.weight", 0, 1},
    [LN_2_B] = {"ln_2.bias", 0, 1},
    [MLP_W] = {"mlp.c_fc.weight", 1, 4},
    [MLP_B] = {"mlp.c_fc.bias", 0, 4},
    [MLP_OUT_W] = {"mlp.c_proj.weight", 4, 1},
    [MLP_OUT_B] = {"mlp.c_proj.bias", 0, 1},
};

static int64_t last_norm(const gpt_config *c) {
    return FIRST_LAYER + c->n_layers * GPT_PER_LAYER;
}

const char *gpt_parameter_name(const gpt_config *c, int64_t i, char out[GPT_NAME]) {
    if (i < FIRST_LAYER)
        snprintf(out, GPT_NAME, i == WTE ? "wte.weight" : "wpe.weight");
    else if (i >= last_norm(c))
        snprintf(out, GPT_NAME, i == last_norm(c) ? "ln_f.weight" : "ln_f.bias");
    else
        snprintf(out, GPT_NAME, "h.%d.%s", (int)((i - FIRST_LAYER) / GPT_PER_LAYER),
                 in_layer[(i - FIRST_LAYER) % GPT_PER_LAYER].name);
    return out;
}

int gpt_parameter_shape(const gpt_config *c, int64_t i, int64_t out[2]) {
    if (i < FIRST_LAYER) {
        out[0] = i == WTE ? c->vocabulary : c->context;
        out[1] = c->width;
        return 2;
    }
    int k = (int)((i - FIRST_LAYER) % GPT_PER_LAYER);
    int rows = i >= last_norm(c) ? 0 : in_layer[k].rows;
    int columns = i >= last_norm(c) ? 1 : in_layer[k].columns;
    out[0] = (rows ? rows : columns) * c->width;
    out[1] = columns * c->width;
    return rows ? 2 : 1;
}

/* Norms start as ones and zeros, biases as zeros. */
static tn_tensor *initial(const gpt_config *c, int64_t i, tn_device device) {
    char name[GPT_NAME];
    int64_t sizes[2];
    tn_ints shape = {sizes, (uint64_t)gpt_parameter_shape(c, i, sizes)};
    if (shape.n == 1) {
        bool ones = strstr(gpt_parameter_name(c, i, name), "ln_") && strstr(name, "weight");
        return ones ? tn_ones(shape, TN_F32, device) : tn_zeros(shape, TN_F32, device);
    }
    bool adds = strstr(gpt_parameter_name(c, i, name), "c_proj");
    double deviation = adds ? 0.02 / sqrt(2 * (double)c->n_layers) : 0.02;
    return tn_normal_(tn_empty(shape, TN_F32, device), 0, deviation);
}

tn_status gpt_init(gpt *m, const gpt_config *config, tn_device device) {
    *m = (gpt){.config = *config};
    int64_t n = last_norm(config) + 2;
    for (int64_t i = 0; i < n; i++) {
        TN_SCOPE;
        tn_tensor *p = initial(config, i, device);
        if (!tn_set_requires_grad(p, true))
            return tn_error_status();
        m->parameters[m->n_parameters++] = tn_keep(p);
    }
    return TN_OK;
}

void gpt_finish(gpt *m) {
    for (int64_t i = 0; i < m->n_parameters; i++)
        tn_drop(m->parameters[i]);
    m->n_parameters = 0;
}

int64_t gpt_n_weights(const gpt *m) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->n_parameters; i++)
        n += tn_numel(m->parameters[i]);
    return n;
}

/* ---- the cache --------------------------------------------------------------------------- */

tn_status gpt_cache_init(gpt_cache *cache, const gpt *m) {
    const gpt_config *c = &m->config;
    *cache = (gpt_cache){.length = 0};
    tn_ints shape = TN_SHAPE(1, c->n_heads, c->context, c->width / c->n_heads);
    for (int64_t i = 0; i < c->n_layers; i++) {
        TN_SCOPE;
        cache->keys[i] = tn_keep(tn_empty(shape, TN_F32, tn_device_of(m->parameters[0])));
        cache->values[i] = tn_keep(tn_empty_like(cache->keys[i]));
        if (!cache->values[i])
            return tn_error_status();
    }
    return TN_OK;
}

void gpt_cache_finish(gpt_cache *cache) {
    for (int i = 0; i < GPT_MAX_LAYERS; i++) {
        tn_drop(cache->keys[i]);
        tn_drop(cache->values[i]);
    }
    *cache = (gpt_cache){.length = 0};
}

/* Puts what is new [1, heads, t, size] behind what the cache has; returns all of it. */
static tn_tensor *remembered(tn_tensor *cached, tn_tensor *new, int64_t length) {
    int64_t t = tn_size(new, 2);
    tn_copy_(tn_narrow(cached, 2, length, t), new);
    return tn_narrow(cached, 2, 0, length + t);
}

/* ---- layers ------------------------------------------------------------------------------ */

static tn_tensor *projected(tn_tensor *x, tn_tensor *weight, tn_tensor *bias) {
    return tn_linear(x, tn_transpose(weight, 0, 1), bias);
}

static tn_tensor *normed(tn_tensor *x, tn_tensor *weight, tn_tensor *bias) {
    return tn_layer_norm(x, tn_sizes(weight), weight, bias);
}

/* Every token gathers from those before it, with several heads. x: [n, t, width]. */
static tn_tensor *attention(const gpt *m, int64_t layer, tn_tensor *x, gpt_cache *cache) {
    tn_tensor *const *p = &m->parameters[FIRST_LAYER + layer * GPT_PER_LAYER];
    int64_t n = tn_size(x, 0), t = tn_size(x, 1), heads = m->config.n_heads;
    tn_tensor *qkv = projected(x, p[ATTN_W], p[ATTN_B]); /* [n, t, 3 width] */
    qkv = tn_reshape(qkv, TN_SHAPE(n, t, 3, heads, m->config.width / heads));
    qkv = tn_permute(qkv, TN_DIMS(2, 0, 3, 1, 4)); /* [3, n, heads, t, size] */
    tn_tensor *query = tn_select(qkv, 0, 0), *key = tn_select(qkv, 0, 1);
    tn_tensor *value = tn_select(qkv, 0, 2);
    if (cache) {
        key = remembered(cache->keys[layer], key, cache->length);
        value = remembered(cache->values[layer], value, cache->length);
    }
    /* One token alone may look at all there are. */
    tn_tensor *y = tn_scaled_dot_product_attention(query, key, value, TN_NONE, 0, t > 1);
    y = tn_reshape(tn_transpose(y, 1, 2), TN_SHAPE(n, t, m->config.width));
    return projected(y, p[ATTN_OUT_W], p[ATTN_OUT_B]);
}

static tn_tensor *perceptron(const gpt *m, int64_t layer, tn_tensor *x) {
    tn_tensor *const *p = &m->parameters[FIRST_LAYER + layer * GPT_PER_LAYER];
    x = tn_gelu(projected(x, p[MLP_W], p[MLP_B]), "tanh");
    return projected(x, p[MLP_OUT_W], p[MLP_OUT_B]);
}

static tn_tensor *block(const gpt *m, int64_t layer, tn_tensor *x, gpt_cache *cache) {
    tn_tensor *const *p = &m->parameters[FIRST_LAYER + layer * GPT_PER_LAYER];
    x = tn_add(x, attention(m, layer, normed(x, p[LN_1_W], p[LN_1_B]), cache));
    return tn_add(x, perceptron(m, layer, normed(x, p[LN_2_W], p[LN_2_B])));
}

/* A block as a checkpoint's function. */
typedef struct part {
    const gpt *model;
    int64_t layer;
} part;

static tn_status run_part(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                          uint64_t n_outputs, void *user) {
    const part *p = user;
    outputs[0] = block(p->model, p->layer, inputs[0], NULL);
    return outputs[0] ? TN_OK : tn_error_status();
}

/* Nothing is kept of what is inside: backward computes it again. */
static tn_tensor *computed_again(const gpt *m, int64_t layer, tn_tensor *x) {
    part *p = x ? malloc(sizeof *p) : NULL;
    if (x && !p)
        tn_fail(TN_ERR_OUT_OF_MEMORY, "no memory for a block of the model");
    if (!p)
        return NULL;
    *p = (part){m, layer};
    tn_tensor *y = NULL;
    return tn_checkpoint(run_part, p, free, &x, 1, &y, 1) == TN_OK ? y : NULL;
}

tn_tensor *gpt_forward(const gpt *m, tn_tensor *tokens, gpt_cache *cache) {
    int64_t t = tn_size(tokens, 1), start = cache ? cache->length : 0;
    tn_tensor *x = tn_embedding(m->parameters[WTE], tokens);
    x = tn_add(x, tn_narrow(m->parameters[WPE], 0, start, t));
    for (int64_t i = 0; i < m->config.n_layers; i++)
        x = m->recomputes && !cache ? computed_again(m, i, x) : block(m, i, x, cache);
    if (cache)
        cache->length += t;
    tn_tensor *const *last = &m->parameters[last_norm(&m->config)];
    return tn_linear(normed(x, last[0], last[1]), m->parameters[WTE]);
}
