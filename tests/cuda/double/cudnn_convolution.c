/* See cudnn_convolution.h. All three directions are one walk over the same products. */
#include "tests/cuda/double/cudnn_convolution.h"

#include "tests/cuda/double/double.h"

#include <stdlib.h>
#include <string.h>

int64_t conv_numel(const conv_tensor *t) {
    return t->sizes[0] * t->sizes[1] * t->sizes[2] * t->sizes[3];
}

int conv_result(const conv_job *j) {
    return j->direction == CONV_FORWARD ? CONV_Y : j->direction == CONV_TO_INPUT ? CONV_X : CONV_W;
}

static void *on_host(const conv_job *j, int i) {
    const conv_tensor *t = &j->tensors[i];
    int64_t last = 0, bytes = number_bytes(t->type);
    for (int d = 0; d < 4; d++)
        last += (t->sizes[d] - 1) * t->strides[d];
    return double_host_address(j->at[i], (size_t)((last + 1) * bytes), (size_t)bytes);
}

/* Between a tensor in memory and a dense one of f64. */
static void move(const conv_tensor *t, void *memory, double *dense, bool stores) {
    for (int64_t n = 0; n < t->sizes[0]; n++)
        for (int64_t c = 0; c < t->sizes[1]; c++)
            for (int64_t h = 0; h < t->sizes[2]; h++, dense += t->sizes[3]) {
                int64_t at = n * t->strides[0] + c * t->strides[1] + h * t->strides[2];
                if (stores)
                    numbers_store(t->type, memory, at, t->strides[3], t->sizes[3], dense);
                else
                    numbers_load(t->type, memory, at, t->strides[3], t->sizes[3], dense);
            }
}

/* One tap: rows of x that row `y` of an output channel sees. Columns first..end lie inside. */
static void walk_row(conv_direction direction, int64_t n, int64_t step, double *x, double *w,
                     double *y) {
    if (direction == CONV_FORWARD)
        for (int64_t i = 0; i < n; i++)
            y[i] += *w * x[i * step];
    else if (direction == CONV_TO_INPUT)
        for (int64_t i = 0; i < n; i++)
            x[i * step] += *w * y[i];
    else
        for (int64_t i = 0; i < n; i++)
            *w += x[i * step] * y[i];
}

static void walk_plane(const conv_job *j, int64_t kh, int64_t kw, double *x, double *w, double *y) {
    const int64_t *in = j->tensors[CONV_X].sizes + 2, *out = j->tensors[CONV_Y].sizes + 2;
    int64_t column = kw * j->dilation[1] - j->padding[1], step = j->stride[1];
    int64_t first = column < 0 ? (-column + step - 1) / step : 0,
            end = in[1] - 1 - column < 0 ? 0 : (in[1] - 1 - column) / step + 1;
    if (end > out[1])
        end = out[1];
    for (int64_t oh = 0; oh < out[0]; oh++) {
        int64_t row = oh * j->stride[0] + kh * j->dilation[0] - j->padding[0];
        if (row >= 0 && row < in[0] && first < end)
            walk_row(j->direction, end - first, step, x + row * in[1] + column + first * step, w,
                     y + oh * out[1] + first);
    }
}

static void walk(const conv_job *j, double *x, double *w, double *y) {
    const int64_t *xs = j->tensors[CONV_X].sizes, *ws = j->tensors[CONV_W].sizes,
                  *ys = j->tensors[CONV_Y].sizes;
    int64_t depth = ws[1], groups = xs[1] / depth, width = ws[0] / groups;
    for (int64_t n = 0; n < xs[0]; n++)
        for (int64_t o = 0; o < ws[0]; o++)
            for (int64_t c = 0; c < depth; c++)
                for (int64_t tap = 0; tap < ws[2] * ws[3]; tap++)
                    walk_plane(j, tap / ws[3], tap % ws[3],
                               x + (n * xs[1] + o / width * depth + c) * xs[2] * xs[3],
                               w + (o * depth + c) * ws[2] * ws[3] + tap,
                               y + (n * ys[1] + o) * ys[2] * ys[3]);
}

static void alter(conv_manner manner, double *values, int64_t n) {
    static int turn;
    turn++;
    for (int64_t i = 0; i < n; i++)
        values[i] *= manner == CONV_ROUGH ? 1 + 1e-2 : 1 + 1e-5 * (turn % 2);
}

static CUresult compute(const conv_job *j, double *dense[CONV_TENSORS],
                        void *memory[CONV_TENSORS]) {
    int result = conv_result(j);
    const conv_tensor *y = &j->tensors[CONV_Y], *to = &j->tensors[result];
    for (int i = 0; i < CONV_B + j->has_bias; i++) {
        int64_t n = conv_numel(&j->tensors[i]);
        if (i == result)
            memset(dense[i], 0, (size_t)n * sizeof *dense[i]);
        else
            move(&j->tensors[i], memory[i], dense[i], false);
        for (int64_t at = 0; at < n && i < CONV_B && j->manner == CONV_TF32; at++)
            dense[i][at] = number_tf32(dense[i][at]);
    }
    walk(j, dense[CONV_X], dense[CONV_W], dense[CONV_Y]);
    for (int64_t at = 0; j->has_bias && at < conv_numel(y); at++)
        dense[CONV_Y][at] += dense[CONV_B][at / (y->sizes[2] * y->sizes[3]) % y->sizes[1]];
    if (j->manner == CONV_OTHER_EACH_TIME || j->manner == CONV_ROUGH)
        alter(j->manner, dense[result], conv_numel(to));
    move(to, memory[result], dense[result], true);
    return CUDA_SUCCESS;
}

CUresult conv_compute(void *arg) {
    const conv_job *j = arg;
    double *dense[CONV_TENSORS] = {NULL}, *owned[CONV_TENSORS] = {NULL};
    void *memory[CONV_TENSORS] = {NULL};
    CUresult error = CUDA_SUCCESS;
    for (int i = 0; i < CONV_B + j->has_bias && error == CUDA_SUCCESS; i++) {
        size_t bytes = (size_t)conv_numel(&j->tensors[i]) * sizeof(double);
        memory[i] = on_host(j, i);
        dense[i] = j->by_workspace && i == conv_result(j)
                       ? double_host_address(j->workspace, bytes, sizeof(double))
                       : (owned[i] = malloc(bytes));
        if (!memory[i] || !dense[i])
            error = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (error == CUDA_SUCCESS)
        error = compute(j, dense, memory);
    for (int i = 0; i < CONV_TENSORS; i++)
        free(owned[i]);
    return error;
}
