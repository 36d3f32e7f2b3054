/* The state of a model: its parameters and buffers by name, to and from safetensors files. */
#include "nn/visitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/device.h>
#include <tenon/ops.h>

/* ---- saving ------------------------------------------------------------------------------ */

typedef struct saving {
    tn_named_tensor *tensors; /* names are owned */
    uint64_t n, capacity;
} saving;

static tn_status add_tensor(const tn_nn_entry *entry, void *user) {
    saving *s = user;
    if (s->n == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 16;
        tn_named_tensor *grown = realloc(s->tensors, s->capacity * sizeof *grown);
        if (!grown)
            return tn_fail(TN_ERR_OUT_OF_MEMORY, "tn_nn_state_save: no memory for the list");
        s->tensors = grown;
    }
    tn_named_tensor *next = &s->tensors[s->n];
    next->tensor = *entry->tensor;
    next->name = strdup(entry->name);
    if (!next->name)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, "tn_nn_state_save: no memory for a name");
    s->n++;
    return TN_OK;
}

tn_status tn_nn_state_save(const char *path, void *model, tn_nn_visit_fn visit,
                           const tn_key_value *metadata, uint64_t n_metadata) {
    saving s = {0};
    tn_status status = tn_nn_each(model, visit, add_tensor, &s);
    if (status == TN_OK)
        status = tn_safetensors_write(path, s.tensors, s.n, metadata, n_metadata);
    for (uint64_t i = 0; i < s.n; i++)
        free((char *)s.tensors[i].name);
    free(s.tensors);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------- */

/* Names for a message: the first ones, and how many there are. */
typedef struct names {
    uint64_t n;
    char text[256];
} names;

typedef struct loading {
    const char *path;
    tn_safetensors *file;
    bool *is_taken; /* of each tensor of the file */
    names missing;
} loading;

static void add_name(names *list, const char *name) {
    size_t length = strlen(list->text);
    if (list->n++ < 3)
        snprintf(list->text + length, sizeof list->text - length, "%s'%.60s'", length ? ", " : "",
                 name);
}

static char *shape_text(tn_ints shape, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (int64_t i = 0; i < shape.n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", shape.data[i]);
    if (at < size)
        snprintf(out + at, size - at, "]");
    return out;
}

/* Does the tensor of the file fit that of the model? */
static tn_status check(const tn_nn_entry *entry, void *user) {
    loading *l = user;
    int64_t i = tn_safetensors_find(l->file, entry->name);
    if (i < 0) {
        add_name(&l->missing, entry->name);
        return TN_OK;
    }
    l->is_taken[i] = true;
    tn_safetensors_info info = {.struct_size = sizeof info};
    tn_status status = tn_safetensors_get_info(l->file, (uint64_t)i, &info);
    if (status != TN_OK)
        return status;
    if (info.dtype == TN_DTYPE_NONE)
        return tn_fail(TN_ERR_UNSUPPORTED,
                       "tn_nn_state_load: %s: '%s' is %s, which Tenon does not have; save it in"
                       " another dtype",
                       l->path, entry->name, info.dtype_name);
    tn_ints have = tn_sizes(*entry->tensor);
    if (have.n == info.shape.n && (have.n == 0 || memcmp(have.data, info.shape.data,
                                                         (size_t)have.n * sizeof *have.data) == 0))
        return TN_OK;
    char in_model[200], in_file[200];
    return tn_fail(TN_ERR_SHAPE,
                   "tn_nn_state_load: %s: '%s' is %s there and %s in the model; make the model with"
                   " the sizes it was saved with",
                   l->path, entry->name, shape_text(info.shape, in_file, sizeof in_file),
                   shape_text(have, in_model, sizeof in_model));
}

static tn_status check_names(const loading *l) {
    names unexpected = {0};
    for (uint64_t i = 0; i < tn_safetensors_count(l->file); i++) {
        tn_safetensors_info info = {.struct_size = sizeof info};
        if (!l->is_taken[i] && tn_safetensors_get_info(l->file, i, &info) == TN_OK)
            add_name(&unexpected, info.name);
    }
    if (l->missing.n == 0 && unexpected.n == 0)
        return TN_OK;
    return tn_fail(TN_ERR_NOT_FOUND,
                   "tn_nn_state_load: %s: the file lacks %" PRIu64 " of the model's tensors%s%s and"
                   " has %" PRIu64 " others%s%s; without strict those that both have are loaded",
                   l->path, l->missing.n, l->missing.n ? ", such as " : "", l->missing.text,
                   unexpected.n, unexpected.n ? ", such as " : "", unexpected.text);
}

static tn_status copy(const tn_nn_entry *entry, void *user) {
    loading *l = user;
    int64_t i = tn_safetensors_find(l->file, entry->name);
    if (i < 0)
        return TN_OK;
    TN_SCOPE;
    TN_NO_GRAD;
    tn_safetensors_info info = {.struct_size = sizeof info};
    tn_status status = tn_safetensors_get_info(l->file, (uint64_t)i, &info);
    if (status != TN_OK)
        return status;
    tn_device device = tn_device_of(*entry->tensor);
    if (!tn_device_has_dtype(device, info.dtype))
        device = tn_device_parse("cpu:0");
    if (device.type == 0)
        return tn_error_status();
    tn_tensor *saved = tn_safetensors_read(l->file, entry->name, device);
    return tn_copy_(*entry->tensor, saved) ? TN_OK : tn_error_status();
}

tn_status tn_nn_state_load(const char *path, void *model, tn_nn_visit_fn visit, bool strict) {
    loading l = {.path = path, .file = tn_safetensors_open(path)};
    if (!l.file)
        return tn_error_status();
    tn_status status = TN_OK;
    l.is_taken = calloc(tn_safetensors_count(l.file) + 1, sizeof *l.is_taken);
    if (!l.is_taken)
        status = tn_fail(TN_ERR_OUT_OF_MEMORY, "tn_nn_state_load: %s: no memory for a list", path);
    if (status == TN_OK)
        status = tn_nn_each(model, visit, check, &l);
    if (status == TN_OK && strict)
        status = check_names(&l);
    if (status == TN_OK)
        status = tn_nn_each(model, visit, copy, &l);
    free(l.is_taken);
    tn_safetensors_close(l.file);
    return status;
}
