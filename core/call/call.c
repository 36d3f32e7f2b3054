/* See call.h. */
#include "core/call/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tn_status tni_build_list(tni_build *b, uint32_t arg, tn_ints list) {
    if (b->n_ints + list.n > TNI_BUILD_INTS)
        return tni_build_fail(b, TN_ERR_INTERNAL, "more than %d integers in lists", TNI_BUILD_INTS);
    int64_t *room = &b->ints[b->n_ints];
    b->n_ints += list.n;
    memcpy(room, list.data, (size_t)list.n * sizeof *room);
    b->kargs[arg] = tni_cell_ints(tn_ints_of(room, list.n));
    return TN_OK;
}

static void set_spec(tni_spec *spec, int32_t rank, const int64_t *sizes) {
    spec->rank = rank;
    for (int32_t d = 0; d < rank; d++)
        spec->sizes[d] = sizes[d];
}

void tni_build_out(tni_build *b, uint32_t i, int32_t rank, const int64_t *sizes) {
    set_spec(&b->outs[i], rank, sizes);
}

void tni_build_kernel_out(tni_build *b, uint32_t i, int32_t rank, const int64_t *sizes) {
    b->kernel_shaped = true;
    set_spec(&b->kernel_outs[i], rank, sizes);
}

tn_tensor *tni_build_view(tni_build *b, tn_tensor *t, int32_t rank, const int64_t *sizes,
                          const int64_t *strides) {
    return tni_own(&b->temps, tni_tensor_view(t, rank, sizes, strides, tni_offset_elements(t)));
}

tn_tensor *tni_build_lift(tni_build *b, tn_tensor *t) {
    static const int64_t one = 1;
    return t->view.rank > 0 ? t : tni_build_view(b, t, 1, &one, &one);
}

tn_status tni_build_fail(const tni_build *b, tn_status status, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tni_fail(status, "%s: %s", b->info->call, text);
}
