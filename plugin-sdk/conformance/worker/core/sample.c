/* Samples: values and memory layouts. */
#include "plugin-sdk/conformance/worker/core/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the generated functions tell --------------------------------------------------- */

void tc_make_tensor(tc_sample *s, tn_cell *cell, tc_fill fill, int64_t limit, int rank,
                    const int64_t *sizes) {
    if (s->n_inputs == TC_MAX_TENSORS || rank > TC_SAMPLE_RANK) {
        s->failed = true;
        return;
    }
    tc_input *in = &s->inputs[s->n_inputs++];
    *in = (tc_input){.fill = fill, .limit = limit, .rank = rank, .numel = 1, .cell = cell};
    bool is_element = cell >= s->elements[0] && cell < s->elements[TC_MAX_ARGS];
    in->arg = (uint32_t)(is_element ? (cell - s->elements[0]) / TC_MAX_LIST : cell - s->args);
    for (int d = 0; d < rank; d++) {
        in->sizes[d] = sizes[d] > 1 ? sizes[d] * s->scale : sizes[d];
        in->numel *= in->sizes[d];
    }
    in->dtype = fill == FILL_MASK ? TN_BOOL : fill == FILL_INDEX ? TN_I64 : s->dtype;
}

void tc_make_list(tc_sample *s, tn_cell *cell, unsigned n) {
    *cell = (tn_cell){.tag = TN_CELL_TENSORS, .n = n, .v.pointer = s->lists[cell - s->args]};
}

tn_cell *tc_list_element(tc_sample *s, tn_cell *list, unsigned i) {
    return &s->elements[list - s->args][i];
}

void tc_make_ints(tc_sample *s, tn_cell *cell, unsigned n, const int64_t *values) {
    memcpy(&s->ints[s->n_ints], values, n * sizeof *values);
    *cell = (tn_cell){.tag = TN_CELL_INTS, .n = n, .v.ints = &s->ints[s->n_ints]};
    s->n_ints += n;
}

void tc_make_string(tn_cell *cell, const char *text) {
    *cell = (tn_cell){.tag = TN_CELL_STRING, .v.string = text};
}

/* ---- layouts ----------------------------------------------------------------------------- */

static const char *const layout_names[TC_N_LAYOUTS] = {
    [TC_DENSE] = "dense",   [TC_STRIDED] = "strided",   [TC_TRANSPOSED] = "transposed",
    [TC_OFFSET] = "offset", [TC_EXPANDED] = "expanded",
};

const char *tc_layout_name(tc_layout layout) {
    return layout_names[layout];
}

bool tc_layout_find(const char *name, tc_layout *out) {
    for (int i = 0; i < TC_N_LAYOUTS; i++) {
        if (strcmp(name, layout_names[i]) == 0) {
            *out = (tc_layout)i;
            return true;
        }
    }
    return false;
}

int64_t tc_layout_strides(tc_layout layout, int32_t rank, const int64_t *sizes, int64_t *strides,
                          int64_t *out_offset) {
    int64_t next = layout == TC_STRIDED ? 2 : 1, extent = 1;
    *out_offset = layout == TC_OFFSET ? 3 : layout == TC_STRIDED ? 1 : 0;
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = layout == TC_TRANSPOSED ? i : rank - 1 - i;
        strides[d] = next;
        next = next * sizes[d] + (layout == TC_STRIDED ? 1 : 0);
    }
    if (layout == TC_EXPANDED && rank > 0)
        strides[0] = 0;
    for (int32_t d = 0; d < rank; d++)
        extent += (sizes[d] - 1) * strides[d];
    return extent + *out_offset;
}

/* ---- values ------------------------------------------------------------------------------ */

static double uniform(tc_sample *s) {
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(s->state >> 11) * 0x1p-53;
}

static bool is_floating(tn_dtype dtype) {
    return (TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype)) != 0;
}

static double real_value(tc_sample *s, const tc_input *in, int64_t i) {
    double u = uniform(s);
    int64_t middle = in->numel / 2;
    switch (in->fill) {
    case FILL_POSITIVE:
        return 0.5 + 1.5 * u;
    case FILL_AWAY:
        return (uniform(s) < 0.5 ? -1 : 1) * (0.3 + 1.7 * u);
    case FILL_APART: /* a permutation of steps of 0.1, moved off every multiple of a tenth */
        return 0.1 * (double)((i * 7 + 3) % (in->numel + (in->numel % 7 == 0)) - middle) + 0.03;
    case FILL_UNIT:
        return 0.1 + 0.8 * u;
    case FILL_ABOVE:
        return 1.5 + 1.5 * u;
    default:
        return 4 * u - 2;
    }
}

/* Integers of the same character. */
static double whole_value(tc_sample *s, const tc_input *in, int64_t i) {
    double real = real_value(s, in, i);
    if (in->fill == FILL_APART)
        return round((real - 0.03) * 10);
    double whole = in->fill == FILL_ANY ? round(2 * real) : copysign(ceil(2 * fabs(real)), real);
    return in->dtype == TN_U8 ? fabs(whole) : whole;
}

static double value(tc_sample *s, const tc_input *in, int64_t i) {
    if (in->fill == FILL_MASK)
        return uniform(s) < 0.5;
    if (in->fill == FILL_INDEX)
        return floor(uniform(s) * (double)in->limit);
    if (in->dtype == TN_BOOL)
        return real_value(s, in, i) > 0;
    return is_floating(in->dtype) && !s->whole ? real_value(s, in, i) : whole_value(s, in, i);
}

/* The nearest number that the subject does not take for zero. */
static double spared(const tc_sample *s, tn_dtype dtype, double x) {
    double least = ldexp(1, tc_least_exponent(dtype));
    bool is_flushed = s->flushes & TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype);
    return is_flushed && x != 0 && fabs(x) < least ? copysign(least, x) : x;
}

/* Rounds the values to the dtype on the CPU, and keeps them both ways. */
static bool make_values(tc_sample *s, tc_input *in, tn_device cpu) {
    TN_SCOPE;
    size_t n = (size_t)in->numel;
    in->reals = calloc(n + 1, sizeof *in->reals);
    in->bytes = calloc(n + 1, (size_t)tn_dtype_size(in->dtype));
    if (!in->reals || !in->bytes) {
        s->failed = true;
        return false;
    }
    bool repeats = s->layout == TC_EXPANDED && in->rank > 0;
    int64_t slice = repeats ? in->numel / in->sizes[0] : in->numel;
    for (int64_t i = 0; i < in->numel; i++)
        in->reals[i] = i < slice ? spared(s, in->dtype, value(s, in, i)) : in->reals[i - slice];
    tn_tensor *wide = tn_from_data(in->reals, tn_ints_of(in->sizes, in->rank), TN_F64, cpu);
    tn_tensor *narrow = tn_to_dtype(wide, in->dtype);
    return tn_to_host(narrow, in->bytes, n * (uint64_t)tn_dtype_size(in->dtype)) == TN_OK &&
           tn_to_host(tn_to_dtype(narrow, TN_F64), in->reals, n * sizeof *in->reals) == TN_OK;
}

bool tc_sample_init(tc_sample *s, const tc_operator *op, tn_device cpu) {
    op->make(s);
    for (uint32_t i = 0; i < s->n_inputs && !s->failed; i++) {
        if (!make_values(s, &s->inputs[i], cpu))
            return false;
    }
    return !s->failed;
}

void tc_sample_finish(tc_sample *s) {
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        free(s->inputs[i].reals);
        free(s->inputs[i].bytes);
        free(s->inputs[i].image);
    }
    s->n_inputs = 0;
}

/* ---- placing ----------------------------------------------------------------------------- */

/* Lays the elements into an image of the allocation; the gaps hold what no sample has. */
static bool draw_image(tc_input *in, const int64_t *strides, int64_t offset, int64_t extent) {
    size_t size = (size_t)tn_dtype_size(in->dtype);
    free(in->image);
    in->image_bytes = extent * (int64_t)size;
    in->image = malloc((size_t)in->image_bytes);
    if (!in->image)
        return false;
    memset(in->image, in->dtype == TN_BOOL ? 1 : 0x5a, (size_t)in->image_bytes);
    for (int64_t i = 0; i < in->numel; i++) {
        int64_t at = offset, rest = i;
        for (int32_t d = in->rank - 1; d >= 0; d--) {
            at += rest % in->sizes[d] * strides[d];
            rest /= in->sizes[d];
        }
        memcpy(in->image + (size_t)at * size, in->bytes + (size_t)i * size, size);
    }
    return true;
}

static tn_tensor *place_laid_out(tc_sample *s, tc_input *in, tn_device device, tc_layout layout) {
    int64_t strides[TC_SAMPLE_RANK], offset;
    int64_t extent = tc_layout_strides(layout, in->rank, in->sizes, strides, &offset);
    if (!draw_image(in, strides, offset, extent)) {
        s->failed = true;
        return NULL;
    }
    in->flat = tn_from_data(in->image, TN_SHAPE(extent), in->dtype, device);
    return tn_as_strided(in->flat, tn_ints_of(in->sizes, in->rank), tn_ints_of(strides, in->rank),
                         offset);
}

static tn_tensor *place_disturbed(tc_sample *s, const tc_input *in, tn_device device) {
    double *moved = malloc(((size_t)in->numel + 1) * sizeof *moved);
    if (!moved) {
        s->failed = true;
        return NULL;
    }
    for (int64_t i = 0; i < in->numel; i++)
        moved[i] = in->reals[i] * (1 + (uniform(s) < 0.5 ? -1 : 1) * TC_DISTURBANCE);
    tn_tensor *t = tn_from_data(moved, tn_ints_of(in->sizes, in->rank), TN_F64, device);
    free(moved);
    return t;
}

/* f64 or i64 in place of the case's dtype; masks and indices stay what they are. */
static tn_tensor *place_wide(tc_sample *s, tc_input *in, tn_device device, tc_place place) {
    tn_ints shape = tn_ints_of(in->sizes, in->rank);
    if (in->fill == FILL_MASK || in->fill == FILL_INDEX)
        return tn_from_data(in->bytes, shape, in->dtype, device);
    if (place == TC_PLACE_DISTURBED)
        return place_disturbed(s, in, device);
    tn_tensor *t = tn_from_data(in->reals, shape, TN_F64, device);
    if (place == TC_PLACE_ABSOLUTE)
        return tn_abs(t);
    return place == TC_PLACE_WHOLE ? tn_to_dtype(t, TN_I64) : t;
}

void tc_sample_gather(tc_sample *s) {
    for (uint32_t a = 0; a < TC_MAX_ARGS; a++) {
        for (uint32_t i = 0; s->args[a].tag == TN_CELL_TENSORS && i < s->args[a].n; i++)
            s->lists[a][i] = s->elements[a][i].v.pointer;
    }
}

bool tc_sample_place(tc_sample *s, const tc_operator *op, tn_device device, tc_place place) {
    bool has_tensor = false;
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        tc_input *in = &s->inputs[i];
        in->flat = NULL;
        in->placed = place == TC_PLACE_CASE    ? place_laid_out(s, in, device, s->layout)
                     : place == TC_PLACE_DENSE ? place_laid_out(s, in, device, TC_DENSE)
                                               : place_wide(s, in, device, place);
        if (!in->placed)
            return false;
        *in->cell = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = in->placed};
        has_tensor = true;
    }
    tc_sample_gather(s);
    if (has_tensor)
        return true;
    if (op->device_arg >= 0)
        s->args[op->device_arg] = (tn_cell){.tag = TN_CELL_I64, .v.i64 = tn_device_pack(device)};
    if (op->dtype_arg >= 0)
        s->args[op->dtype_arg] = (tn_cell){.tag = TN_CELL_I64,
                                           .v.i64 = place <= TC_PLACE_DENSE   ? s->dtype
                                                    : place == TC_PLACE_WHOLE ? TN_I64
                                                                              : TN_F64};
    return true;
}
