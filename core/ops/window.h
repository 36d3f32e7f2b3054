/* Windows that slide over planes: what convolution and pooling share.
 *
 * An input [N, C, H, W] is copied into padded planes [N, C, PH, PW]; every window is then a strided
 * view of them, and no element is copied again to be seen in several windows:
 *
 *     view [N, C, KH, KW, OH, OW], element (n, c, i, j, y, x) =
 *         padded[n, c, y * stride[0] + i * dilation[0], x * stride[1] + j * dilation[1]]
 *
 * These functions work on data, below autograd.
 */
#ifndef TNI_CORE_OPS_WINDOW_H
#define TNI_CORE_OPS_WINDOW_H

#include "core/call/call.h"

typedef struct tni_window {
    int64_t n, c, in[2]; /* input */
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t out[2];    /* windows down and across */
    int64_t padded[2]; /* planes that hold every window whole */
} tni_window;

/* n values (3 at most), or one for all of them. False as the next one. */
bool tni_window_values(tn_ints given, int n, int64_t least, const char *name, const char *call,
                       int64_t *out);
/* One or two values as two. False when there are others, or one is below `least`; `name` and `call`
 * are for the message. */
bool tni_window_pair(tn_ints given, int64_t least, const char *name, const char *call,
                     int64_t out[2]);
/* Works out `out` and `padded` from the rest. False with an error when no window fits. */
bool tni_window_finish(tni_window *w, bool ceil_mode, const char *call);

/* Kernel arguments from `first` on are these pairs. */
tn_status tni_window_args(tni_build *b, uint32_t first, const int64_t *const *pairs, uint32_t n);

/* The images [first, first + n) of input, with `value` around; [n, C, PH, PW]. The input itself,
 * kept, where nothing is around. */
tn_tensor *tni_window_pad(const tni_window *w, tn_tensor *input, int64_t first, int64_t n,
                          tn_scalar value);
/* The view above of padded planes, n images of them. */
tn_tensor *tni_window_view(const tni_window *w, tn_tensor *padded);
/* The inverse of both: adds parts [n, C, KH, KW, OH, OW], of any strides, onto zeros where they
 * came from, and writes what is not padding to images [first, first + n) of `into`. */
tn_status tni_window_add(const tni_window *w, tn_tensor *parts, tn_tensor *into, int64_t first,
                         int64_t n);

/* A view of the data of t by another geometry; `offset` in elements from t's first. NULL passes
 * through. */
tn_tensor *tni_data_view(tn_tensor *t, tn_ints sizes, tn_ints strides, int64_t offset);
/* Contiguous data in another shape. */
tn_tensor *tni_data_reshape(tn_tensor *contiguous, tn_ints sizes);
/* `length` slices of t along dim from `start`. */
tn_tensor *tni_data_narrow(tn_tensor *t, int32_t dim, int64_t start, int64_t length);

#endif
