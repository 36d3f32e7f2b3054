/* Images with zeros round them, as gemm.c reads them where convolutions are padded.
 *
 *   T, C        the dtype that is stored; the dtype that is computed in
 *   ONE         1: a work item writes an element; 0: a row */
#include "plugins/shared/gpu/device/pad.params.h"

/* out [n, c, h, w], dense: the input with `before` zeros round it, and as many behind as fit. */
KERNEL(pad)(GLOBAL computed(C) * out, GLOBAL const stored(T) * in, const pad_params p) {
    i64 i = GLOBAL_ID(0);
    i64 width = p.sizes[3];
#if ONE
    i64 x_first = i % width, x_end = x_first + 1;
    i /= width;
#else
    i64 x_first = 0, x_end = width;
#endif
    i64 line = i, y = i % p.sizes[2] - p.before[0];
    i /= p.sizes[2];
    i64 c = i % p.sizes[1], n = i / p.sizes[1];
    if (n >= p.sizes[0])
        return;
    bool is_inside = y >= 0 && y < p.inside[0];
    i64 begin = is_inside ? p.before[1] : width, end = begin + p.inside[1];
    if (begin < x_first)
        begin = x_first;
    if (begin > x_end)
        begin = x_end;
    if (end > x_end)
        end = x_end;
    if (end < begin)
        end = begin;
    i64 from = p.from + n * p.strides[0] + c * p.strides[1] + y * p.strides[2] -
               p.before[1] * p.strides[3];
    out += p.to + line * width;
    i64 x = x_first;
    for (; x < begin; x++)
        out[x] = 0;
    for (; x < end; x++)
        out[x] = load(T)(in, from + x * p.strides[3]);
    for (; x < x_end; x++)
        out[x] = 0;
}
