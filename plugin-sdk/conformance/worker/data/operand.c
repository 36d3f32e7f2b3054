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

tc_walk tc_walk_start(const tc_shape *s) {
    return (tc_walk){.shape = s, .place = s->offset};
}

void tc_walk_on(tc_walk *w) {
    const tc_shape *s = w->shape;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        w->place += s->strides[d];
        if (++w->index[d] < s->sizes[d])
            return;
        w->place -= s->sizes[d] * s->strides[d];
        w->index[d] = 0;
    }
}

bool tc_operand_image(tc_arena *arena, uint64_t seed, tc_operand *o) {
    o->bytes = (uint64_t)o->shape.extent * tc_dtype_bytes(o->dtype) + TC_GUARD;
    o->image = tc_arena_array(arena, o->bytes, 1);
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
    tc_walk w = tc_walk_start(&o->shape);
    for (int64_t i = 0; i < o->shape.numel; i++, tc_walk_on(&w))
        tc_store(o->dtype, o->image, w.place, o->values[i]);
    w = tc_walk_start(&o->shape);
    for (int64_t i = 0; i < o->shape.numel; i++, tc_walk_on(&w))
        o->values[i] = tc_load(o->dtype, o->image, w.place);
}

void tc_gather_elements(const tc_operand *o, const unsigned char *image, void *out) {
    uint64_t size = tc_dtype_bytes(o->dtype);
    tc_walk w = tc_walk_start(&o->shape);
    for (int64_t i = 0; i < o->shape.numel; i++, tc_walk_on(&w))
        memcpy((char *)out + (uint64_t)i * size, image + (uint64_t)w.place * size, size);
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
