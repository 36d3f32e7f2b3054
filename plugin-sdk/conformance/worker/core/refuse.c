/* Invalid calls, made from valid ones. */
#include "plugin-sdk/conformance/worker/core/refuse.h"

#include <string.h>

static const char *const names[TC_N_MUTATIONS] = {"size", "rank", "dtype", "device"};

const char *tc_mutation_name(tc_mutation mutation) {
    return names[mutation];
}

bool tc_mutation_find(const char *name, tc_mutation *out) {
    for (int i = 0; i < TC_N_MUTATIONS; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (tc_mutation)i;
            return true;
        }
    }
    return false;
}

bool tc_mutate(tc_sample *s, tn_device device, tn_device cpu, tc_mutation mutation) {
    if (s->n_inputs < 2)
        return false;
    tc_input *in = &s->inputs[s->n_inputs - 1];
    int64_t sizes[TC_SAMPLE_RANK + 2] = {1, 1};
    int32_t rank = in->rank;
    tn_dtype dtype = in->dtype;
    tn_device where = device;
    memcpy(sizes, in->sizes, sizeof in->sizes);
    switch (mutation) {
    case TC_MUTATE_SIZE:
        if (rank == 0)
            return false;
        sizes[rank > 1 ? rank - 2 : 0]++; /* of a matrix the rows: the inner size of a product */
        break;
    case TC_MUTATE_RANK:
        memmove(sizes + 2, in->sizes, sizeof in->sizes);
        sizes[0] = sizes[1] = 3;
        rank += 2;
        break;
    case TC_MUTATE_DTYPE:
        dtype = in->fill == FILL_INDEX ? TN_F32 : TN_I32;
        break;
    default:
        if (rank == 0) /* operands without dimensions may lie on the CPU */
            return false;
        where = cpu;
        break;
    }
    tn_tensor *t = tn_zeros(tn_ints_of(sizes, rank), dtype, where);
    if (!t)
        return false;
    in->cell->v.pointer = t;
    tc_sample_gather(s);
    return true;
}

bool tc_is_clean_lack(const tc_outcome *o, const char *device_name) {
    if (o->status != TN_ERR_UNSUPPORTED && o->status != TN_ERR_DTYPE)
        return false;
    if (!strstr(o->message, device_name))
        return false;
    for (tn_dtype d = 0; d < TN_DTYPE_COUNT; d++) {
        if (strstr(o->message, tn_dtype_name(d)))
            return true;
    }
    return false;
}
