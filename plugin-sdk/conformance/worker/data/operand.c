/* See operand.h. */
#include "plugin-sdk/conformance/worker/data/operand.h"

#include <stdlib.h>
#include <string.h>

int64_t tc_place(const tc_shape *s, int64_t i) {
    int64_t at = s->offset;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        at += i % s->sizes[d] * s->strides[d];
        i /= s->sizes[d];
    }
    return at;
}

tc_runs tc_runs_start(const tc_shape *s) {
    tc_runs r = {.shape = s, .rank = s->rank, .place = s->offset, .n = 1, .stride = 1};
    for (; r.rank > 0; r.rank--) {
        int64_t size = s->sizes[r.rank - 1], stride = s->strides[r.rank - 1];
        if (size == 1)
            continue;
        if (r.n == 1)
            r.stride = stride;
        else if (stride != r.n * r.stride)
            break;
        r.n *= size;
    }
    return r;
}

void tc_runs_on(tc_runs *r) {
    const tc_shape *s = r->shape;
    r->first += r->n;
    for (int32_t d = r->rank - 1; d >= 0; d--) {
        if (s->sizes[d] == 1) /* its stride may be any number */
            continue;
        r->place += s->strides[d];
        if (++r->index[d] < s->sizes[d])
            return;
        r->place -= s->sizes[d] * s->strides[d];
        r->index[d] = 0;
    }
}

/* ---- pieces ------------------------------------------------------------------------------ */

enum { PAGE = 4096 };
static const uint64_t SPARSE = UINT64_C(1) << 30; /* bytes, from which on an image has pieces */

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The pages of all elements, and those of the ends, in order; each as often as it is named. */
static uint64_t *sorted_pages(tc_arena *arena, const tc_operand *o, uint64_t *out_n) {
    uint64_t n = 0, size = tc_dtype_bytes(o->dtype);
    uint64_t *pages = tc_arena_array(arena, (uint64_t)o->shape.numel + 2, sizeof *pages);
    if (!pages)
        return NULL;
    for (tc_runs r = tc_runs_start(&o->shape); r.first < o->shape.numel; tc_runs_on(&r))
        for (int64_t k = 0; k < r.n; k++)
            pages[n++] = (uint64_t)(r.place + k * r.stride) * size / PAGE;
    pages[n++] = 0;
    pages[n++] = (o->bytes - 1) / PAGE;
    qsort(pages, n, sizeof *pages, by_number);
    *out_n = n;
    return pages;
}

static bool find_pieces(tc_arena *arena, tc_operand *o) {
    uint64_t n;
    uint64_t *pages = sorted_pages(arena, o, &n);
    tc_piece *pieces = pages ? tc_arena_array(arena, n, sizeof *pieces) : NULL;
    if (!pieces)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = pages[i] * PAGE, end = at + PAGE < o->bytes ? at + PAGE : o->bytes;
        tc_piece *last = o->n_pieces ? &pieces[o->n_pieces - 1] : NULL;
        if (last && at <= last->at + last->bytes)
            last->bytes = end - last->at;
        else
            pieces[o->n_pieces++] = (tc_piece){at, end - at};
    }
    o->pieces = pieces;
    return true;
}

bool tc_operand_piece(const tc_operand *o, uint64_t i, uint64_t bytes, tc_piece *out) {
    if (i >= (o->n_pieces ? o->n_pieces : 1))
        return false;
    *out = o->n_pieces ? o->pieces[i] : (tc_piece){0, o->bytes};
    if (out->at >= bytes)
        return false;
    if (out->bytes > bytes - out->at)
        out->bytes = bytes - out->at;
    return true;
}

/* ---- images and values ------------------------------------------------------------------- */

bool tc_operand_image(tc_arena *arena, uint64_t seed, tc_operand *o) {
    o->bytes = (uint64_t)o->shape.extent * tc_dtype_bytes(o->dtype) + TC_GUARD;
    o->image = tc_arena_bytes(arena, o->bytes);
    o->n_pieces = 0;
    if (!o->image || (o->bytes >= SPARSE && !find_pieces(arena, o)))
        return false;
    tc_random r = {seed};
    tc_piece p;
    for (uint64_t i = 0; tc_operand_piece(o, i, o->bytes, &p); i++)
        for (uint64_t at = p.at; at < p.at + p.bytes; at += 8) {
            uint64_t pattern = tc_next(&r), left = p.at + p.bytes - at;
            memcpy(o->image + at, &pattern, left < 8 ? left : 8);
        }
    return true;
}

bool tc_operand_create(tc_arena *arena, tn_dtype dtype, const tc_shape *shape, uint64_t seed,
                       bool zero, tc_operand *out) {
    uint64_t n = (uint64_t)shape->numel;
    *out = (tc_operand){.dtype = dtype, .shape = *shape};
    out->values = zero ? tc_arena_array(arena, n, sizeof *out->values)
                       : tc_arena_unset(arena, n, sizeof *out->values);
    return out->values && tc_operand_image(arena, seed, out);
}

/* With a dtype that the compiler knows: this runs for each element of each case. */
static inline __attribute__((always_inline)) void settle(tn_dtype dtype, const tc_operand *o) {
    const tc_shape *s = &o->shape;
    tc_runs r = tc_runs_start(s);
    tc_number *values = o->values;
    unsigned char *image = o->image;
    if (r.n == s->numel && r.stride > 0) { /* none shares a place: each is done at once */
        for (int64_t k = 0, place = r.place; k < r.n; k++, place += r.stride) {
            tc_store(dtype, image, place, values[k]);
            tc_put(&values[k], tc_load(dtype, image, place));
        }
        return;
    }
    for (; r.first < s->numel; tc_runs_on(&r))
        for (int64_t k = 0; k < r.n; k++)
            tc_store(dtype, image, r.place + k * r.stride, values[r.first + k]);
    for (r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        for (int64_t k = 0; k < r.n; k++)
            tc_put(&values[r.first + k], tc_load(dtype, image, r.place + k * r.stride));
}

void tc_operand_settle(tc_operand *o) {
    switch (o->dtype) {
#define SETTLE(NAME, value, name, bytes, category) \
    case value: \
        settle(value, o); \
        break;
        TN_DTYPE_MAP(SETTLE)
#undef SETTLE
    }
}

/* n elements of a size, as far apart as each of the strides says. */
static void copy_run(char *out, int64_t to, const char *in, int64_t from, int64_t n,
                     uint64_t size) {
#define COPY(size) \
    for (int64_t k = 0; k < n; k++) \
    memcpy(out + k * to * (size), in + k * from * (size), size)
    if (to == 1 && from == 1)
        memcpy(out, in, (uint64_t)n * size);
    else if (size == 1)
        COPY(1);
    else if (size == 2)
        COPY(2);
    else if (size == 4)
        COPY(4);
    else
        COPY(8);
#undef COPY
}

void tc_gather_elements(const tc_operand *o, const unsigned char *image, void *out) {
    const tc_shape *s = &o->shape;
    uint64_t size = tc_dtype_bytes(o->dtype);
    for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        copy_run((char *)out + (uint64_t)r.first * size, 1,
                 (const char *)image + (uint64_t)r.place * size, r.stride, r.n, size);
}

bool tc_copy_elements(tc_arena *arena, const tc_operand *from, tc_operand *to) {
    const tc_shape *s = &to->shape;
    uint64_t size = tc_dtype_bytes(to->dtype);
    char *dense = tc_arena_unset(arena, (uint64_t)s->numel, size);
    if (!dense)
        return false;
    tc_gather_elements(from, from->image, dense);
    for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        copy_run((char *)to->image + (uint64_t)r.place * size, r.stride,
                 dense + (uint64_t)r.first * size, 1, r.n, size);
    return true;
}

tc_shape tc_dense(int32_t rank, const int64_t *sizes) {
    tc_shape s = {.rank = rank, .numel = 1};
    for (int32_t d = rank - 1; d >= 0; d--) {
        s.sizes[d] = sizes[d];
        s.strides[d] = s.numel;
        s.numel *= sizes[d];
    }
    s.extent = s.numel;
    return s;
}

bool tc_same_sizes(const tc_shape *a, const tc_shape *b) {
    return a->rank == b->rank && !memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes);
}

bool tc_is_dense(const tc_shape *s) {
    int64_t stride = 1;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        if (s->sizes[d] != 1 && s->strides[d] != stride)
            return false;
        stride *= s->sizes[d];
    }
    return true;
}

bool tc_has_zero_stride(const tc_shape *s) {
    for (int32_t d = 0; d < s->rank; d++)
        if (s->sizes[d] > 1 && s->strides[d] == 0)
            return true;
    return false;
}
