/* The mean of each window of [N, C, H, W], and what the input's gradient is made of
 * then. A work item makes one element, or a row of them. Windows are added row by row.
 *
 *   T, TILES, ROWS, UNIT, INDEX   as in max_pool2d.cl */
#include "plugins/shared/gpu/device/avg_pool2d.params.h"

typedef computed(T) C;

#if UNIT
#define ALONG(k) 1
#else
#define ALONG(k) p.strides[k][3]
#endif

#if !TILES
/* The part of window `o` that lies on the input, along dimension d, and what it counts for. */
typedef struct span {
    INDEX begin, end, count;
} span;

DEVICE span span_of(INDEX o, INDEX size, INDEX window, INDEX stride, INDEX padding, bool all) {
    span s;
    s.begin = o * stride - padding;
    s.end = s.begin + window;
    s.end = s.end < size + padding ? s.end : size + padding;
    s.count = s.end - s.begin;
    s.begin = s.begin > 0 ? s.begin : 0;
    s.end = s.end < size ? s.end : size;
    if (!all)
        s.count = s.end - s.begin;
    return s;
}

#define SPAN(d, o) \
    span_of((o), (INDEX)p.large[d], (INDEX)p.window[d], (INDEX)p.stride[d], (INDEX)p.padding[d], \
            p.count_include_pad != 0)
#endif

/* Where this work item begins and ends in its row, which row it is, and the planes' first elements;
 * `side` is that of what it makes. */
#define PLACE(side) \
    INDEX rest = (INDEX)GLOBAL_ID(0), begin = 0, end = (INDEX)p.side[1]; \
    if (rest >= p.items) \
        return; \
    if (!ROWS) { \
        begin = rest % end; \
        rest /= end; \
        end = begin + 1; \
    } \
    INDEX row = rest % (INDEX)p.side[0]; \
    rest /= (INDEX)p.side[0]; \
    INDEX c = rest % (INDEX)p.channels, n = rest / (INDEX)p.channels; \
    out += p.offsets[0] + n * p.strides[0][0] + c * p.strides[0][1] + row * p.strides[0][2]; \
    in += p.offsets[1] + n * p.strides[1][0] + c * p.strides[1][1]

KERNEL(avg_pool2d)
(GLOBAL stored(T) * RESTRICT out, GLOBAL const stored(T) * RESTRICT in, const avg_pool2d_params p) {
    PLACE(small);
    i64 below = p.strides[1][2];
#if TILES
    in += 2 * row * below;
    for (INDEX ox = begin; ox < end; ox++) {
        i64 at = 2 * ox * ALONG(1);
        C upper = load(T)(in, at) + load(T)(in, at + ALONG(1));
        C lower = load(T)(in, at + below) + load(T)(in, at + below + ALONG(1));
        store(T)(out, ox * ALONG(0), (upper + lower) * (C)0.25);
    }
#else
    span v = SPAN(0, row);
    for (INDEX ox = begin; ox < end; ox++) {
        span u = SPAN(1, ox);
        C sum = 0;
        for (INDEX y = v.begin; y < v.end; y++) {
            C part = 0;
            for (INDEX x = u.begin; x < u.end; x++)
                part += load(T)(in, y * below + x * ALONG(1));
            sum += part;
        }
        store(T)(out, ox * ALONG(0), DIVIDE(sum, (C)(v.count * u.count)));
    }
#endif
}

/* The windows around `at` along one dimension are [first, last]. */
#define FIRST(d, at) \
    ((at) + p.padding[d] < p.window[d] \
         ? 0 \
         : ((at) + (INDEX)p.padding[d] - (INDEX)p.window[d]) / (INDEX)p.stride[d] + 1)
#define LAST(d, at) \
    (((at) + (INDEX)p.padding[d]) / (INDEX)p.stride[d] < (INDEX)p.small[d] \
         ? ((at) + (INDEX)p.padding[d]) / (INDEX)p.stride[d] \
         : (INDEX)p.small[d] - 1)

KERNEL(avg_pool2d_backward)
(GLOBAL stored(T) * RESTRICT out, GLOBAL const stored(T) * RESTRICT in, const avg_pool2d_params p) {
    PLACE(large);
    i64 below = p.strides[1][2];
#if TILES
    INDEX h = (INDEX)p.small[0], w = (INDEX)p.small[1];
    in += row / 2 * below;
    for (INDEX x = begin; x < end; x++)
        store(T)(out, x * ALONG(0),
                 row / 2 < h && x / 2 < w ? load(T)(in, x / 2 * ALONG(1)) * (C)0.25 : (C)0);
#else
    INDEX y0 = FIRST(0, row), y1 = LAST(0, row);
    for (INDEX x = begin; x < end; x++) {
        INDEX x0 = FIRST(1, x), x1 = LAST(1, x);
        C sum = 0;
        for (INDEX oy = y0; oy <= y1; oy++) {
            span v = SPAN(0, oy);
            C part = 0;
            for (INDEX ox = x0; ox <= x1; ox++) {
                span u = SPAN(1, ox);
                part += DIVIDE(load(T)(in, oy * below + ox * ALONG(1)), (C)(v.count * u.count));
            }
            sum += part;
        }
        store(T)(out, x * ALONG(0), sum);
    }
#endif
}
