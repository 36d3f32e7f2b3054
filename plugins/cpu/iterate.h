/* Walking several tensors of one shape, in blocks.
 *
 * A plan holds the shape, with dimensions of size 1 dropped, sorted by the strides of operand 0 and
 * merged where every operand allows it, and each operand's address and strides. Kernels' inner
 * loops only know dense arrays of their computing type: what is strided, broadcast or half
 * precision is gathered into a block that stays in the first-level cache, and scattered back.
 *
 * Plugins walk strides in three ways, none of which would serve another. Here addresses and dtypes go
 * along, for the blocks; plugins/shared/gpu/loop.h is handed to a device, where every work item finds
 * its own place; plugins/sim/view.h steps through two views, and is to be read in a minute. */
#ifndef TNI_PLUGINS_CPU_ITERATE_H
#define TNI_PLUGINS_CPU_ITERATE_H

#include "plugins/cpu/half.h"

enum {
    TNC_MAX_OPERANDS = 8,
    TNC_BLOCK = 512 /* elements; times 8 operands of 4 bytes it is half of a 32 KiB cache */
};

typedef struct tnc_operand {
    char *base;
    tn_dtype dtype;               /* as stored */
    int32_t item;                 /* bytes of one stored element */
    int32_t cell;                 /* bytes of one element in a loop: 4 for f16 and bf16 */
    bool dense;                   /* element i lies at base + i * item, and is not a half */
    int64_t strides[TN_MAX_RANK]; /* bytes */
} tnc_operand;

typedef struct tnc_plan {
    int64_t numel;
    int32_t rank; /* at least 1 */
    int32_t n_operands;
    int64_t sizes[TN_MAX_RANK];
    tnc_operand operands[TNC_MAX_OPERANDS];
} tnc_plan;

static inline int32_t tnc_cell_bytes(tn_dtype dtype) {
    return tnc_is_half(dtype) ? 4 : (int32_t)tnc_dtype_bytes(dtype);
}

/* Starts a plan with the shape of `like`. */
static inline void tnc_plan_init(tnc_plan *p, const tn_tensor_view *like) {
    p->numel = like->numel;
    p->rank = like->rank;
    p->n_operands = 0;
    for (int d = 0; d < like->rank; d++)
        p->sizes[d] = like->sizes[d];
}

static inline tnc_operand *tnc_plan_add(tnc_plan *p, void *base, tn_dtype dtype) {
    tnc_operand *o = &p->operands[p->n_operands++];
    o->base = base;
    o->dtype = dtype;
    o->item = (int32_t)tnc_dtype_bytes(dtype);
    o->cell = tnc_cell_bytes(dtype);
    return o;
}

/* Bytes from one element along `dim` to the next. Of a single one the stride is any number. */
static inline int64_t tnc_step(const tn_tensor_view *v, int64_t dim) {
    return v->sizes[dim] == 1 ? 0 : v->strides[dim] * tnc_dtype_bytes(v->dtype);
}

static inline void tnc_plan_add_view(tnc_plan *p, const tn_tensor_view *v) {
    tnc_operand *o = tnc_plan_add(p, tnc_data(v), v->dtype);
    for (int d = 0; d < p->rank; d++)
        o->strides[d] = tnc_step(v, d);
}

/* Halves that loops take as they are stored: to the walker they are whole numbers of their size. */
static inline void tnc_plan_add_stored(tnc_plan *p, const tn_tensor_view *v) {
    tnc_plan_add_view(p, v);
    tnc_operand *o = &p->operands[p->n_operands - 1];
    if (tnc_is_half(v->dtype)) {
        o->dtype = TN_I16;
        o->cell = o->item;
    }
}

/* An operand that is one value everywhere. */
static inline void tnc_plan_add_scalar(tnc_plan *p, void *value, tn_dtype dtype) {
    tnc_operand *o = tnc_plan_add(p, value, dtype);
    for (int d = 0; d < p->rank; d++)
        o->strides[d] = 0;
}

static inline void tnc_plan_move_dim(tnc_plan *p, int to, int from) {
    p->sizes[to] = p->sizes[from];
    for (int i = 0; i < p->n_operands; i++)
        p->operands[i].strides[to] = p->operands[i].strides[from];
}

static inline void tnc_plan_swap_dims(tnc_plan *p, int a, int b) {
    int64_t size = p->sizes[a];
    p->sizes[a] = p->sizes[b];
    p->sizes[b] = size;
    for (int i = 0; i < p->n_operands; i++) {
        int64_t *s = p->operands[i].strides, t = s[a];
        s[a] = s[b];
        s[b] = t;
    }
}

/* Drops, sorts and merges dimensions. With `sorted` false their order stays, so that blocks follow
 * the logical index. */
static inline void tnc_plan_finish(tnc_plan *p, bool sorted) {
    int rank = 0;
    for (int d = 0; d < p->rank; d++)
        if (p->sizes[d] != 1)
            tnc_plan_move_dim(p, rank++, d);
    const int64_t *lead = p->operands[0].strides;
    if (sorted)
        for (int i = 1; i < rank; i++)
            for (int d = i; d > 0 && lead[d - 1] < lead[d]; d--)
                tnc_plan_swap_dims(p, d - 1, d);
    int last = 0;
    for (int d = 1; d < rank; d++) {
        bool merges = true;
        for (int i = 0; i < p->n_operands; i++) {
            const int64_t *s = p->operands[i].strides;
            merges = merges && s[last] == s[d] * p->sizes[d];
        }
        int64_t size = p->sizes[last];
        tnc_plan_move_dim(p, merges ? last : ++last, d);
        if (merges)
            p->sizes[last] *= size;
    }
    p->rank = last + 1;
    if (rank == 0) {
        p->sizes[0] = 1;
        for (int i = 0; i < p->n_operands; i++)
            p->operands[i].strides[0] = p->operands[i].item;
    }
    for (int i = 0; i < p->n_operands; i++) {
        tnc_operand *o = &p->operands[i];
        int64_t dense = o->item;
        o->dense = o->cell == o->item;
        for (int d = p->rank - 1; d >= 0; d--) {
            o->dense = o->dense && o->strides[d] == dense;
            dense *= p->sizes[d];
        }
    }
}

/* ---- runs of one dimension --------------------------------------------------------------- */

#define TNC_COPY_RUN(T) \
    for (int64_t i = 0; i < n; i++) \
    memcpy((char *)dst + i * dst_stride, (const char *)src + i * src_stride, sizeof(T))

/* n elements of `item` bytes from one stride to another. */
static inline void tnc_copy_run(void *dst, int64_t dst_stride, const void *src, int64_t src_stride,
                                int64_t n, int32_t item) {
    if (dst_stride == item && src_stride == item) {
        memcpy(dst, src, (size_t)(n * item));
        return;
    }
    switch (item) {
    case 1:
        TNC_COPY_RUN(uint8_t);
        break;
    case 2:
        TNC_COPY_RUN(uint16_t);
        break;
    case 4:
        TNC_COPY_RUN(uint32_t);
        break;
    default:
        TNC_COPY_RUN(uint64_t);
        break;
    }
}

/* One value, n times, dense. Of whatever type the block is: hence may_alias. */
static inline void tnc_splat_run(void *dst, const void *value, int64_t n, int32_t item) {
#define TNC_SPLAT(T) \
    { \
        typedef T __attribute__((may_alias)) cell; \
        cell v, *d = dst; \
        memcpy(&v, value, sizeof v); \
        for (int64_t i = 0; i < n; i++) \
            d[i] = v; \
        break; \
    }
    switch (item) {
    case 1:
        TNC_SPLAT(uint8_t)
    case 2:
        TNC_SPLAT(uint16_t)
    case 4:
        TNC_SPLAT(uint32_t)
    default:
        TNC_SPLAT(uint64_t)
    }
#undef TNC_SPLAT
}

/* n elements at a stride into a dense run of the computing type. */
static inline void tnc_gather_run(void *dst, const void *src, int64_t stride, int64_t n,
                                  tn_dtype dtype) {
    int32_t item = (int32_t)tnc_dtype_bytes(dtype);
    if (!tnc_is_half(dtype)) {
        if (stride == 0)
            tnc_splat_run(dst, src, n, item);
        else
            tnc_copy_run(dst, item, src, stride, n, item);
        return;
    }
    if (stride == item) {
        tnc_halves_to_floats(dtype, dst, src, n);
    } else if (stride == 0) {
        float value;
        tnc_halves_to_floats(dtype, &value, src, 1);
        tnc_splat_run(dst, &value, n, 4);
    } else {
        uint16_t part[64];
        for (int64_t i = 0; i < n; i += 64) {
            int64_t m = tnc_min(64, n - i);
            tnc_copy_run(part, item, (const char *)src + i * stride, stride, m, item);
            tnc_halves_to_floats(dtype, (float *)dst + i, part, m);
        }
    }
}

/* A dense run of the computing type back to memory. */
static inline void tnc_scatter_run(void *dst, int64_t stride, const void *src, int64_t n,
                                   tn_dtype dtype) {
    int32_t item = (int32_t)tnc_dtype_bytes(dtype);
    if (!tnc_is_half(dtype)) {
        tnc_copy_run(dst, stride, src, item, n, item);
    } else if (stride == item) {
        tnc_floats_to_halves(dtype, dst, src, n);
    } else {
        uint16_t part[64];
        for (int64_t i = 0; i < n; i += 64) {
            int64_t m = tnc_min(64, n - i);
            tnc_floats_to_halves(dtype, part, (const float *)src + i, m);
            tnc_copy_run((char *)dst + i * stride, stride, part, item, m, item);
        }
    }
}

/* Is a run at this stride already what a loop wants? */
static inline bool tnc_is_direct(int64_t stride, tn_dtype dtype) {
    return stride == tnc_dtype_bytes(dtype) && !tnc_is_half(dtype);
}

/* The run itself where a loop can read it, else a copy of it in `block`. */
static inline const void *tnc_load_run(void *block, const void *src, int64_t stride, int64_t n,
                                       tn_dtype dtype) {
    if (tnc_is_direct(stride, dtype))
        return src;
    tnc_gather_run(block, src, stride, n, dtype);
    return block;
}

/* Puts a dense run where it belongs, unless it was computed there. */
static inline void tnc_store_run(void *dst, int64_t stride, const void *run, int64_t n,
                                 tn_dtype dtype) {
    if (dst != run)
        tnc_scatter_run(dst, stride, run, n, dtype);
}

/* ---- blocks of many dimensions ----------------------------------------------------------- */

/* The coordinates of linear index `i`. */
static inline void tnc_plan_seek(const tnc_plan *p, int64_t i, int64_t *at) {
    for (int d = p->rank - 1; d > 0; d--) {
        at[d] = i % p->sizes[d];
        i /= p->sizes[d];
    }
    at[0] = i;
}

static inline char *tnc_plan_address(const tnc_plan *p, const tnc_operand *o, const int64_t *at) {
    char *address = o->base;
    for (int d = 0; d < p->rank; d++)
        address += at[d] * o->strides[d];
    return address;
}

/* Moves n elements from coordinates `start` on, between operand and block. */
static inline void tnc_plan_move(const tnc_plan *p, const tnc_operand *o, const int64_t *start,
                                 void *block, int64_t n, bool out) {
    int inner = p->rank - 1;
    int64_t at[TN_MAX_RANK];
    memcpy(at, start, sizeof(int64_t) * (size_t)p->rank);
    char *row = tnc_plan_address(p, o, at), *b = block;
    for (;;) {
        int64_t run = tnc_min(n, p->sizes[inner] - at[inner]);
        if (out)
            tnc_scatter_run(row, o->strides[inner], b, run, o->dtype);
        else
            tnc_gather_run(b, row, o->strides[inner], run, o->dtype);
        n -= run;
        if (n == 0)
            return;
        b += run * o->cell;
        row -= at[inner] * o->strides[inner];
        at[inner] = 0;
        for (int d = inner - 1; d >= 0; d--) {
            row += o->strides[d];
            if (++at[d] < p->sizes[d])
                break;
            row -= at[d] * o->strides[d];
            at[d] = 0;
        }
    }
}

#endif
