/* Zeros [N, C, H, W], and each gradient where its maximum stood. The places
 * are all that is known of the windows, so that first it is found out which of them an element need
 * look at:
 *
 *   spans      of each row of windows, the rows of the input between which its maxima stand; of
 *              each column the columns
 *   boxes      of each row of the input, the first and the last row of windows whose span holds
 *              it; of each column the columns
 *   gradient   each element adds the gradients in its box that belong to it, row by row
 *
 * and every order is given by the places. Where whole planes are many enough for the device,
 *
 *   planes     each work item takes a plane, and its gradients one after the other
 *
 *   T         the dtype
 *   ROWS      1: a work item makes a row of the gradient
 *   UNIT      1: the elements of rows lie side by side
 *   INDEX     i32 or i64, what counts elements */
#include "plugins/shared/gpu/device/max_pool2d_backward.params.h"

typedef computed(T) C;

#if UNIT
#define ALONG(k) 1
#else
#define ALONG(k) p.strides[k][3]
#endif

/* Where a plane begins. */
#define PLANE(k, plane) \
    (p.offsets[k] + (plane) / (INDEX)p.channels * p.strides[k][0] + \
     (plane) % (INDEX)p.channels * p.strides[k][1])

/* Pairs of i32 in the workspace: spans [planes][rows and columns of windows], boxes [planes][rows
 * and columns]. */
#define SPANS(plane) (p.offsets[3] + 2 * (plane) * (p.small[0] + p.small[1]))
#define BOXES(plane) \
    (p.offsets[3] + 2 * n_planes * (p.small[0] + p.small[1]) + \
     2 * (plane) * (p.large[0] + p.large[1]))

KERNEL(spans)
(GLOBAL i32 *RESTRICT work, GLOBAL const i64 *RESTRICT places, GLOBAL i32 *error,
 const max_pool2d_backward_params p) {
    INDEX sides = (INDEX)(p.small[0] + p.small[1]), item = (INDEX)GLOBAL_ID(0);
    if (item >= p.items)
        return;
    INDEX plane = item / sides, k = item % sides;
    bool is_row = k < p.small[0];
    i64 step = is_row ? ALONG(1) : p.strides[1][2], size = p.large[0] * p.large[1];
    INDEX n = (INDEX)(is_row ? p.small[1] : p.small[0]), w = (INDEX)p.large[1];
    i32 low = 0x7fffffff, high = -1;
    places += PLANE(1, plane) + (is_row ? k * p.strides[1][2] : (k - p.small[0]) * ALONG(1));
    for (INDEX i = 0; i < n; i++) {
        i64 place = places[i * step];
        if (place < 0 || place >= size) {
            if (is_row)
                report_index(error, place, size);
            continue;
        }
        i32 at = (i32)(is_row ? (INDEX)place / w : (INDEX)place % w);
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    work += SPANS(plane) + 2 * k;
    work[0] = low;
    work[1] = high;
}

KERNEL(boxes)(GLOBAL i32 *work, const max_pool2d_backward_params p) {
    INDEX sides = (INDEX)(p.large[0] + p.large[1]), item = (INDEX)GLOBAL_ID(0);
    if (item >= p.items)
        return;
    INDEX plane = item / sides, k = item % sides, n_planes = (INDEX)p.items / sides;
    bool is_row = k < p.large[0];
    i32 at = (i32)(is_row ? k : k - (INDEX)p.large[0]);
    i32 n = (i32)(is_row ? p.small[0] : p.small[1]);
    GLOBAL const i32 *spans = work + SPANS(plane) + (is_row ? 0 : 2 * p.small[0]);
    i32 low = n, high = -1;
    for (i32 i = 0; i < n; i++) {
        bool holds = (spans[2 * i] <= at) & (spans[2 * i + 1] >= at);
        low = (holds & (i < low)) ? i : low;
        high = holds ? i : high;
    }
    work += BOXES(plane) + 2 * k;
    work[0] = low;
    work[1] = high;
}

KERNEL(gradient)
(GLOBAL stored(T) * RESTRICT out, GLOBAL const i64 *RESTRICT places,
 GLOBAL const stored(T) * RESTRICT in, GLOBAL const i32 *RESTRICT work,
 const max_pool2d_backward_params p) {
    INDEX h = (INDEX)p.large[0], w = (INDEX)p.large[1];
    INDEX rest = (INDEX)GLOBAL_ID(0), begin = 0, end = w;
    if (rest >= p.items)
        return;
#if ROWS
    INDEX n_planes = (INDEX)p.items / h;
#else
    INDEX n_planes = (INDEX)p.items / w / h;
    begin = rest % w;
    rest /= w;
    end = begin + 1;
#endif
    INDEX y = rest % h, plane = rest / h;
    GLOBAL const i32 *rows = work + BOXES(plane) + 2 * y, *columns = work + BOXES(plane) + 2 * h;
    i32 y0 = rows[0], y1 = rows[1];
    out += PLANE(0, plane) + y * p.strides[0][2];
    places += PLANE(1, plane);
    in += PLANE(2, plane);
    for (INDEX x = begin; x < end; x++) {
        i32 x0 = columns[2 * x], x1 = columns[2 * x + 1];
        i64 here = y * w + x;
        C sum = 0;
        for (i32 oy = y0; oy <= y1; oy++)
            for (i32 ox = x0; ox <= x1; ox++)
                if (places[oy * p.strides[1][2] + ox * ALONG(1)] == here)
                    sum += load(T)(in, oy * p.strides[2][2] + ox * ALONG(2));
        store(T)(out, x * ALONG(0), sum);
    }
}

KERNEL(planes)
(GLOBAL stored(T) * RESTRICT out, GLOBAL const i64 *RESTRICT places,
 GLOBAL const stored(T) * RESTRICT in, GLOBAL i32 *error, const max_pool2d_backward_params p) {
    INDEX plane = (INDEX)GLOBAL_ID(0), w = (INDEX)p.large[1];
    i64 size = p.large[0] * p.large[1];
    if (plane >= p.items)
        return;
    out += PLANE(0, plane);
    places += PLANE(1, plane);
    in += PLANE(2, plane);
    for (INDEX y = 0; y < p.large[0]; y++)
        for (INDEX x = 0; x < w; x++)
            store(T)(out, y * p.strides[0][2] + x * ALONG(0), 0);
    for (INDEX oy = 0; oy < p.small[0]; oy++)
        for (INDEX ox = 0; ox < p.small[1]; ox++) {
            i64 place = places[oy * p.strides[1][2] + ox * ALONG(1)];
            if (place < 0 || place >= size) {
                report_index(error, place, size);
                continue;
            }
            i64 at = UNIT && p.strides[0][2] == w
                         ? place
                         : (INDEX)place / w * p.strides[0][2] + (INDEX)place % w * ALONG(0);
            store(T)(out, at, load(T)(out, at) + load(T)(in, oy * p.strides[2][2] + ox * ALONG(2)));
        }
}
