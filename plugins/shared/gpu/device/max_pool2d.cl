/* The largest of each window of [N, C, H, W], and where it stands. A work item makes
 * one element, or a row of them.
 *
 *   T         the dtype
 *   TILES     1: windows are 2 x 2, side by side and all inside
 *   ROWS      1: a work item makes a row
 *   UNIT      1: the elements of rows lie side by side
 *   INDEX     i32 or i64, what counts elements */
#include "plugins/shared/gpu/device/max_pool2d.params.h"

typedef computed(T) C;

#if UNIT
#define ALONG(k) 1
#else
#define ALONG(k) p.strides[k][3]
#endif

/* Takes a value that is larger than those before it, or the first NaN. */
#define MEET(value, where) \
    do { \
        C v_ = (value); \
        bool up_ = (v_ > best) | ((v_ != v_) & (best == best)); \
        best = up_ ? v_ : best; \
        place = up_ ? (where) : place; \
    } while (0)

KERNEL(max_pool2d)
(GLOBAL stored(T) * RESTRICT values, GLOBAL i64 *RESTRICT places,
 GLOBAL const stored(T) * RESTRICT in, const max_pool2d_params p) {
    INDEX w = (INDEX)p.large[1];
    INDEX rest = (INDEX)GLOBAL_ID(0), begin = 0, end = (INDEX)p.small[1];
    if (rest >= p.items)
        return;
#if !ROWS
    begin = rest % end;
    rest /= end;
    end = begin + 1;
#endif
    INDEX oy = rest % (INDEX)p.small[0];
    rest /= (INDEX)p.small[0];
    INDEX c = rest % (INDEX)p.channels, n = rest / (INDEX)p.channels;
    values += p.offsets[0] + n * p.strides[0][0] + c * p.strides[0][1] + oy * p.strides[0][2];
    places += p.offsets[1] + n * p.strides[1][0] + c * p.strides[1][1] + oy * p.strides[1][2];
    in += p.offsets[2] + n * p.strides[2][0] + c * p.strides[2][1];
#if TILES
    i64 below = p.strides[2][2];
    in += 2 * oy * below;
    for (INDEX ox = begin; ox < end; ox++) {
        INDEX first = 2 * oy * w + 2 * ox;
        i64 at = 2 * ox * ALONG(2);
        C best = load(T)(in, at);
        INDEX place = first;
        MEET(load(T)(in, at + ALONG(2)), first + 1);
        MEET(load(T)(in, at + below), first + w);
        MEET(load(T)(in, at + below + ALONG(2)), first + w + 1);
        store(T)(values, ox * ALONG(0), best);
        places[ox * ALONG(1)] = place;
    }
#else
    INDEX h = (INDEX)p.large[0];
    INDEX y0 = oy * (INDEX)p.stride[0] - (INDEX)p.padding[0], dy = (INDEX)p.dilation[0];
    INDEX dx = (INDEX)p.dilation[1];
    for (INDEX ox = begin; ox < end; ox++) {
        INDEX x0 = ox * (INDEX)p.stride[1] - (INDEX)p.padding[1];
        C best = number(T)(p.lowest);
        INDEX place = -1;
        for (INDEX ky = 0, y = y0; ky < p.window[0]; ky++, y += dy) {
            if (y < 0 || y >= h)
                continue;
            for (INDEX kx = 0, x = x0; kx < p.window[1]; kx++, x += dx) {
                if (x < 0 || x >= w)
                    continue;
                C value = load(T)(in, y * p.strides[2][2] + x * ALONG(2));
                if (place < 0) { /* also where it is no larger than the lowest */
                    best = value;
                    place = y * w + x;
                }
                MEET(value, y * w + x);
            }
        }
        store(T)(values, ox * ALONG(0), best);
        places[ox * ALONG(1)] = place;
    }
#endif
}
