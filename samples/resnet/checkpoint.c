/* To and from files. */
#include "checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/safetensors.h>

enum { MAX_TENSORS = 256, NAME = 128, MAX_METADATA = 8 };
static const char momentum[] = "momentum_buffer";

/* ---- writing ----------------------------------------------------------------------------- */

typedef struct list {
    tn_named_tensor at[MAX_TENSORS];
    char names[MAX_TENSORS][NAME];
    uint64_t n, n_parameters;
    const training_state *state; /* or NULL */
} list;

static void add(list *l, const char *prefix, const char *name, tn_tensor *tensor) {
    snprintf(l->names[l->n], NAME, "%s%s", prefix, name);
    l->at[l->n] = (tn_named_tensor){l->names[l->n], tensor};
    l->n++;
}

static tn_status add_entry(const tn_nn_entry *entry, void *user) {
    list *l = user;
    if (l->n + 2 > MAX_TENSORS)
        return tn_fail(TN_ERR_INTERNAL, "more tensors than a checkpoint has room for");
    add(l, "", entry->name, *entry->tensor);
    if (!l->state || !entry->is_parameter)
        return TN_OK;
    tn_tensor *buffer = tn_optimizer_state(l->state->optimizer, l->n_parameters++, momentum);
    if (buffer)
        add(l, "optimizer.momentum_buffer.", entry->name, buffer);
    return TN_OK;
}

typedef struct numbers {
    tn_key_value at[MAX_METADATA];
    char texts[MAX_METADATA][24];
    uint64_t n;
} numbers;

static void put(numbers *m, const char *key, uint64_t value) {
    snprintf(m->texts[m->n], sizeof m->texts[0], "%" PRIu64, value);
    m->at[m->n] = (tn_key_value){key, m->texts[m->n]};
    m->n++;
}

/* Steps, place in the data, random numbers of the device. */
static tn_status put_state(numbers *m, const training_state *state, tn_device device) {
    tn_data_loader_state at;
    uint64_t seed, offset;
    tn_status status = tn_data_loader_get_state(state->loader, &at);
    if (status == TN_OK)
        status = tn_generator_get(device, &seed, &offset);
    if (status != TN_OK)
        return status;
    put(m, "steps", (uint64_t)state->step);
    put(m, "loader.seed", at.seed);
    put(m, "loader.epoch", (uint64_t)at.epoch);
    put(m, "loader.position", (uint64_t)at.position);
    put(m, "generator.seed", seed);
    put(m, "generator.offset", offset);
    return TN_OK;
}

tn_status checkpoint_save(const char *path, resnet *m, const training_state *state) {
    list *l = calloc(1, sizeof *l);
    if (!l)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, "no memory for a checkpoint");
    l->state = state;
    numbers metadata = {.n = 0};
    tn_status status = tn_nn_each(m, resnet_visit, add_entry, l);
    if (status == TN_OK && state)
        status = put_state(&metadata, state, tn_device_of(m->fc.weight));
    if (status == TN_OK)
        status = tn_safetensors_write(path, l->at, l->n, metadata.at, metadata.n);
    free(l);
    return status;
}

/* ---- the model --------------------------------------------------------------------------- */

static bool shape_of(const tn_safetensors *file, const char *name, int64_t rank, int64_t *out) {
    int64_t i = tn_safetensors_find(file, name);
    tn_safetensors_info info = {.struct_size = sizeof info};
    if (i < 0 || tn_safetensors_get_info(file, (uint64_t)i, &info) != TN_OK || info.shape.n != rank)
        return false;
    memcpy(out, info.shape.data, (size_t)rank * sizeof *out);
    return true;
}

static tn_status read_config(const tn_safetensors *file, const char *path, resnet_config *c) {
    int64_t conv1[4], fc[2];
    if (!shape_of(file, "conv1.weight", 4, conv1) || !shape_of(file, "fc.weight", 2, fc) ||
        conv1[0] < 1 || fc[0] < 1 || fc[1] != 8 * conv1[0] || (conv1[2] != 3 && conv1[2] != 7))
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: conv1.weight [width, 3, 3, 3] or [width, 3, 7, 7] and fc.weight"
                       " [classes, 8 width] of a ResNet-18 are not there",
                       path);
    *c = (resnet_config){conv1[0], fc[0], conv1[2] == 7 ? STEM_IMAGENET : STEM_CIFAR};
    return TN_OK;
}

static tn_status is_there(const tn_nn_entry *entry, void *user) {
    if (tn_safetensors_find(user, entry->name) >= 0 || strstr(entry->name, "num_batches_tracked"))
        return TN_OK;
    return tn_fail(TN_ERR_NOT_FOUND, "the file has no '%s' of a ResNet-18", entry->name);
}

tn_status checkpoint_load(const char *path, resnet *m, tn_device device) {
    *m = (resnet){.config = {0}};
    tn_safetensors *file = tn_safetensors_open(path);
    if (!file)
        return tn_error_status();
    resnet_config c;
    tn_status status = read_config(file, path, &c);
    if (status == TN_OK)
        status = resnet_init(m, &c, device);
    if (status == TN_OK)
        status = tn_nn_each(m, resnet_visit, is_there, file);
    tn_safetensors_close(file);
    return status == TN_OK ? tn_nn_state_load(path, m, resnet_visit, false) : status;
}

/* ---- the training ------------------------------------------------------------------------ */

typedef struct loading {
    const tn_safetensors *file;
    const training_state *state;
    uint64_t n_parameters;
} loading;

static tn_status load_momentum(const tn_nn_entry *entry, void *user) {
    loading *l = user;
    if (!entry->is_parameter)
        return TN_OK;
    TN_SCOPE;
    char name[NAME];
    snprintf(name, NAME, "optimizer.momentum_buffer.%s", entry->name);
    uint64_t i = l->n_parameters++;
    tn_tensor *buffer = NULL;
    if (tn_safetensors_find(l->file, name) >= 0) {
        buffer = tn_safetensors_read(l->file, name, tn_device_of(*entry->tensor));
        if (!buffer)
            return tn_error_status();
    }
    tn_status status = tn_optimizer_set_state(l->state->optimizer, i, momentum, buffer);
    if (status == TN_OK)
        status = tn_optimizer_set_steps(l->state->optimizer, i, l->state->step);
    return status;
}

static uint64_t number_of(const tn_safetensors *file, const char *key) {
    const char *text = tn_safetensors_metadata(file, key);
    return text ? strtoull(text, NULL, 10) : 0;
}

tn_status checkpoint_load_training(const char *path, resnet *m, training_state *state,
                                   bool *out_found) {
    tn_safetensors *file = tn_safetensors_open(path);
    if (!file)
        return tn_error_status();
    tn_status status = TN_OK;
    *out_found = tn_safetensors_metadata(file, "steps") != NULL;
    if (*out_found) {
        state->step = (int64_t)number_of(file, "steps");
        loading l = {.file = file, .state = state};
        tn_data_loader_state at = {number_of(file, "loader.seed"),
                                   (int64_t)number_of(file, "loader.epoch"),
                                   (int64_t)number_of(file, "loader.position")};
        status = tn_nn_each(m, resnet_visit, load_momentum, &l);
        if (status == TN_OK)
            status = tn_data_loader_set_state(state->loader, &at);
        if (status == TN_OK)
            status = tn_generator_set(tn_device_of(m->fc.weight), number_of(file, "generator.seed"),
                                      number_of(file, "generator.offset"));
    }
    tn_safetensors_close(file);
    return status;
}
