/* See operand.h. */
#include "plugin-sdk/conformance/worker/data/operand.h"

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

bool tc_operand_image(tc_arena *arena, uint64_t seed, tc_operand *o) {
    o->bytes = (uint64_t)o->shape.extent * tc_dtype_bytes(o->dtype) + TC_GUARD;
    o->image = tc_arena_bytes(arena, o->bytes);
    if (!o->image)
        return false;
    tc_random r = {seed};
    for (uint64_t at = 0; at < o->bytes; at += 8) {
        uint64_t pattern = tc_next(&r);
        memcpy(o->image + at, &pattern, o->bytes - at < 8 ? o->bytes - at : 8);
    }
    return true;
}

bool tc_operand_create(tc_arena *arena, tn_dtype dtype, const tc_shape *shape, uint64_t seed,
                       tc_operand *out) {
    *out = (tc_operand){.dtype = dtype, .shape = *shape};
    out->values = tc_arena_array(arena, (uint64_t)shape->numel, sizeof *out->values);
    return out->values && tc_operand_image(arena, seed, out);
}

void tc_operand_settle(tc_operand *o) {
    const tc_shape *s = &o->shape;
    for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        for (int64_t k = 0; k < r.n; k++)
            tc_store(o->dtype, o->image, r.place + k * r.stride, o->values[r.first + k]);
    for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        for (int64_t k = 0; k < r.n; k++)
            tc_put(&o->values[r.first + k], tc_load(o->dtype, o->image, r.place + k * r.stride));
}

static void gather(void *out, const void *in, int64_t n, int64_t stride, uint64_t size) {
#define GATHER(size) \
    for (int64_t k = 0; k < n; k++) \
    memcpy((char *)out + k * (size), (const char *)in + k * stride * (size), size)
    if (size == 1)
        GATHER(1);
    else if (size == 2)
        GATHER(2);
    else if (size == 4)
        GATHER(4);
    else
        GATHER(8);
#undef GATHER
}

void tc_gather_elements(const tc_operand *o, const unsigned char *image, void *out) {
    const tc_shape *s = &o->shape;
    uint64_t size = tc_dtype_bytes(o->dtype);
    for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        gather((char *)out + (uint64_t)r.first * size, image + (uint64_t)r.place * size, r.n,
               r.stride, size);
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
