/* To and from files. */
#include "checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 3 * GPT_MAX_PARAMETERS, LONG_NAME = GPT_NAME + 48 };

/* ---- writing ----------------------------------------------------------------------------- */

typedef struct list {
    tn_named_tensor at[MAX_TENSORS];
    char names[MAX_TENSORS][LONG_NAME];
    uint64_t n;
} list;

static void add(list *l, const char *prefix, const gpt *m, int64_t i, tn_tensor *tensor) {
    char name[GPT_NAME];
    snprintf(l->names[l->n], LONG_NAME, "%s%s", prefix, gpt_parameter_name(&m->config, i, name));
    l->at[l->n] = (tn_named_tensor){l->names[l->n], tensor};
    l->n++;
}

/* "optimizer.exp_avg.": before the name of a parameter. */
static const char *prefix_of(const tn_optimizer *o, uint64_t k, char out[LONG_NAME]) {
    snprintf(out, LONG_NAME, "optimizer.%s.", tn_optimizer_state_name(o, k));
    return out;
}

static void add_states(list *l, const gpt *m, const group *g) {
    for (uint64_t k = 0; k < tn_optimizer_n_states(g->optimizer); k++)
        for (int64_t i = 0; i < g->n; i++) {
            char prefix[LONG_NAME];
            const char *name = tn_optimizer_state_name(g->optimizer, k);
            tn_tensor *state = tn_optimizer_state(g->optimizer, (uint64_t)i, name);
            if (state)
                add(l, prefix_of(g->optimizer, k, prefix), m, g->which[i], state);
        }
}

tn_status checkpoint_save(const char *path, const gpt *m, const group *groups, int64_t steps) {
    list *l = calloc(1, sizeof *l);
    if (!l)
        return TN_ERR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < m->n_parameters; i++)
        add(l, "", m, i, m->parameters[i]);
    for (int k = 0; groups && k < CHECKPOINT_OPTIMIZERS; k++)
        add_states(l, m, &groups[k]);
    char heads[24], text[24];
    snprintf(heads, sizeof heads, "%lld", (long long)m->config.n_heads);
    snprintf(text, sizeof text, "%lld", (long long)steps);
    tn_key_value metadata[] = {{"n_heads", heads}, {"steps", text}};
    tn_status status = tn_safetensors_write(path, l->at, l->n, metadata, groups ? 2 : 1);
    free(l);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Hugging Face's files of a model with a head of its own have the body under this name. */
static const char *body_prefix(const tn_safetensors *file) {
    return tn_safetensors_find(file, "transformer.wte.weight") >= 0 ? "transformer." : "";
}

static bool has_shape(const tn_safetensors *file, const char *name, int64_t out[2]) {
    int64_t i = tn_safetensors_find(file, name);
    tn_safetensors_info info = {.struct_size = sizeof info};
    if (i < 0 || tn_safetensors_get_info(file, (uint64_t)i, &info) != TN_OK || info.shape.n != 2)
        return false;
    memcpy(out, info.shape.data, 2 * sizeof *out);
    return true;
}

static int64_t number_of(const tn_safetensors *file, const char *key) {
    const char *text = tn_safetensors_metadata(file, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

/* False, after a message, where the file is no model of this kind. */
static bool read_config(const tn_safetensors *file, int64_t n_heads, gpt_config *c) {
    char name[LONG_NAME];
    const char *prefix = body_prefix(file);
    int64_t tokens[2], places[2], layer[2];
    snprintf(name, sizeof name, "%swte.weight", prefix);
    bool good = has_shape(file, name, tokens);
    snprintf(name, sizeof name, "%swpe.weight", prefix);
    if (!good || !has_shape(file, name, places)) {
        fprintf(stderr, "gpt: the file has no wte.weight and wpe.weight, as GPT-2's have\n");
        return false;
    }
    *c = (gpt_config){.vocabulary = tokens[0], .context = places[0], .width = tokens[1]};
    for (;; c->n_layers++) {
        snprintf(name, sizeof name, "%sh.%d.attn.c_attn.weight", prefix, (int)c->n_layers);
        if (c->n_layers > GPT_MAX_LAYERS || !has_shape(file, name, layer))
            break;
    }
    c->n_heads = number_of(file, "n_heads") ? number_of(file, "n_heads") : n_heads;
    if (c->n_heads == 0)
        c->n_heads = c->width / 64;
    good = c->n_layers >= 1 && c->n_layers <= GPT_MAX_LAYERS && c->n_heads >= 1 &&
           c->width % c->n_heads == 0 && c->context >= 1 && c->vocabulary >= 1;
    if (!good)
        fprintf(stderr,
                "gpt: %lld layers (1 to %d), %lld heads of a width of %lld: not a model that can be"
                " run; --heads says how many heads\n",
                (long long)c->n_layers, GPT_MAX_LAYERS, (long long)c->n_heads, (long long)c->width);
    return good;
}

/* One tensor of the file into one that is there, of the same shape. */
static tn_status read_into(const tn_safetensors *file, const char *name, tn_tensor *to) {
    TN_SCOPE;
    TN_NO_GRAD;
    tn_tensor *from = tn_safetensors_read(file, name, tn_device_of(to));
    tn_ints a = tn_sizes(from), b = tn_sizes(to);
    if (from && (a.n != b.n || memcmp(a.data, b.data, a.n * sizeof *a.data) != 0)) {
        fprintf(stderr, "gpt: %s has another shape than the model's\n", name);
        return TN_ERR_INVALID_ARGUMENT;
    }
    return tn_copy_(to, from) ? TN_OK : tn_error_status();
}

tn_status checkpoint_load(const tn_safetensors *file, gpt *m, int64_t n_heads, tn_device device) {
    gpt_config c;
    *m = (gpt){.n_parameters = 0};
    if (!read_config(file, n_heads, &c))
        return TN_ERR_INVALID_ARGUMENT;
    tn_status status = gpt_init(m, &c, device);
    for (int64_t i = 0; i < m->n_parameters && status == TN_OK; i++) {
        char name[LONG_NAME], own[GPT_NAME];
        snprintf(name, sizeof name, "%s%s", body_prefix(file), gpt_parameter_name(&c, i, own));
        status = read_into(file, name, m->parameters[i]);
    }
    return status;
}

static tn_status load_state(const tn_safetensors *file, const gpt *m, group *g, int64_t i,
                            uint64_t k) {
    TN_SCOPE;
    char prefix[LONG_NAME], name[2 * LONG_NAME], own[GPT_NAME];
    snprintf(name, sizeof name, "%s%s", prefix_of(g->optimizer, k, prefix),
             gpt_parameter_name(&m->config, g->which[i], own));
    tn_tensor *state = tn_empty_like(m->parameters[g->which[i]]);
    tn_status status = state ? read_into(file, name, state) : tn_error_status();
    if (status == TN_OK)
        status = tn_optimizer_set_state(g->optimizer, (uint64_t)i,
                                        tn_optimizer_state_name(g->optimizer, k), state);
    return status;
}

tn_status checkpoint_load_optimizers(const tn_safetensors *file, const gpt *m, group *groups,
                                     int64_t *out_steps) {
    *out_steps = number_of(file, "steps");
    tn_status status = TN_OK;
    for (int k = 0; *out_steps > 0 && k < CHECKPOINT_OPTIMIZERS; k++)
        for (int64_t i = 0; i < groups[k].n && status == TN_OK; i++) {
            group *g = &groups[k];
            for (uint64_t s = 0; s < tn_optimizer_n_states(g->optimizer) && status == TN_OK; s++)
                status = load_state(file, m, g, i, s);
            if (status == TN_OK)
                status = tn_optimizer_set_steps(g->optimizer, (uint64_t)i, *out_steps);
        }
    return status;
}
