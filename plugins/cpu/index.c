/* Reading and adding at places named by an index tensor: gather, index_select, scatter_add,
 * index_add. Every index is checked before anything is read or written through it. */
#include "plugins/cpu/indices.h"
#include "plugins/cpu/iterate.h"

static tn_status check_index(const tn_call *call, const char *op, const tn_tensor_view *index,
                             int64_t dim, int64_t size) {
    int64_t bad;
    if (!tnc_find_bad_index(call, index, size, &bad))
        return TN_OK;
    return tnc_fail(call->device->self, TN_ERR_INDEX_OUT_OF_RANGE,
                    "%s: index %lld is out of range for dimension %lld with size %lld", op,
                    (long long)bad, (long long)dim, (long long)size);
}

/* ---- moving or adding one run ------------------------------------------------------------ */

/* dst[j] += alpha * src[j] for n elements at strides in bytes; bool: or. */
typedef void (*add_run)(char *dst, int64_t dst_stride, const char *src, int64_t src_stride,
                        int64_t n, const tn_cell *alpha);

#define ADD_RUN(sfx, T, U, factor, expression) \
    static void add_##sfx(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, \
                          int64_t n, const tn_cell *alpha) { \
        U by = (U)(alpha ? alpha->v.factor : 1); \
        if (dst_stride == sizeof(T) && src_stride == sizeof(T)) { \
            T *d = (T *)dst; \
            const T *s = (const T *)src; \
            TNC_INDEPENDENT \
            for (int64_t j = 0; j < n; j++) { \
                U a = (U)d[j], b = (U)s[j]; \
                d[j] = (T)(expression); \
            } \
            return; \
        } \
        for (int64_t j = 0; j < n; j++) { \
            T *d = (T *)(dst + j * dst_stride); \
            U a = (U)*d, b = (U) * (const T *)(src + j * src_stride); \
            *d = (T)(expression); \
        } \
    }
#define ADD_RUN_INT(sfx, T, U, DT) ADD_RUN(sfx, T, U, i64, a + by * b)
ADD_RUN(f32, float, float, f64, a + by * b)
ADD_RUN(f64, double, double, f64, a + by * b)
ADD_RUN(bool, uint8_t, uint8_t, boolean, (a | (by & b)) != 0)
TNC_INT_TYPES(ADD_RUN_INT)

/* By dtype; halves are added as f32 in the workspace. */
static const add_run add_runs[TN_DTYPE_COUNT] = {
    [TN_F32] = add_f32, [TN_F64] = add_f64,   [TN_F16] = add_f32, [TN_BF16] = add_f32,
    [TN_I8] = add_i8,   [TN_I16] = add_i16,   [TN_I32] = add_i32, [TN_I64] = add_i64,
    [TN_U8] = add_u8,   [TN_BOOL] = add_bool,
};

/* ---- gather and scatter_add: an index for each element ----------------------------------- */

/* Operands of the plan, which has index's shape: index, the tensor of index's shape (gather's
 * output, scatter_add's src), and the indexed tensor with a stride of zero along dim. */
typedef struct elements {
    tnc_plan plan;
    int64_t stride; /* of the indexed tensor along dim, bytes */
    add_run add;    /* NULL: gather */
} elements;

static inline __attribute__((always_inline)) void
gather_row(char *dst, int64_t dst_stride, const char *base, int64_t base_stride, int64_t stride,
           const char *index, int64_t index_stride, int64_t n, size_t item) {
    for (int64_t j = 0; j < n; j++) {
        int64_t i;
        memcpy(&i, index + j * index_stride, sizeof i);
        memcpy(dst + j * dst_stride, base + j * base_stride + i * stride, item);
    }
}

static void element_rows(void *context, int64_t begin, int64_t end, int slot) {
    const elements *e = context;
    const tnc_plan *p = &e->plan;
    (void)slot;
    int inner = p->rank - 1;
    int64_t at[TN_MAX_RANK], n;
    const tnc_operand *index = &p->operands[0], *own = &p->operands[1], *base = &p->operands[2];
    int64_t si = index->strides[inner], so = own->strides[inner], sb = base->strides[inner];
    for (int64_t i = begin; i < end; i += n) {
        tnc_plan_seek(p, i, at);
        n = tnc_min(end - i, p->sizes[inner] - at[inner]);
        const char *where = tnc_plan_address(p, index, at);
        char *mine = tnc_plan_address(p, own, at), *indexed = tnc_plan_address(p, base, at);
        if (e->add) {
            for (int64_t j = 0; j < n; j++) {
                int64_t k;
                memcpy(&k, where + j * si, sizeof k);
                e->add(indexed + j * sb + k * e->stride, 0, mine + j * so, 0, 1, NULL);
            }
            continue;
        }
        switch (own->item) {
        case 1:
            gather_row(mine, so, indexed, sb, e->stride, where, si, n, 1);
            break;
        case 2:
            gather_row(mine, so, indexed, sb, e->stride, where, si, n, 2);
            break;
        case 4:
            gather_row(mine, so, indexed, sb, e->stride, where, si, n, 4);
            break;
        default:
            gather_row(mine, so, indexed, sb, e->stride, where, si, n, 8);
        }
    }
}

/* `own` and `base` may have larger sizes than index: only their strides matter. */
static void elements_init(elements *e, const tn_tensor_view *index, const tn_tensor_view *own,
                          const tn_tensor_view *base, int64_t dim) {
    tnc_plan_init(&e->plan, index);
    tnc_plan_add_view(&e->plan, index);
    tnc_plan_add_view(&e->plan, own);
    tnc_plan_add_view(&e->plan, base);
    e->stride = 0;
    if (index->rank) {
        e->stride = e->plan.operands[2].strides[dim];
        e->plan.operands[2].strides[dim] = 0;
    }
}

static int64_t size_of(const tn_tensor_view *v, int64_t dim) {
    return v->rank ? v->sizes[dim] : 1;
}

static tn_status gather(const tn_call *call) {
    const tn_tensor_view *self = tnc_view(call, TN_ARG_gather_self);
    const tn_tensor_view *index = tnc_view(call, TN_ARG_gather_index);
    int64_t dim = call->args[TN_ARG_gather_dim].v.i64;
    PLUGIN_TRY(check_index(call, "gather", index, dim, size_of(self, dim)));
    elements e = {.add = NULL};
    elements_init(&e, index, call->outs[0], self, dim);
    tnc_plan_finish(&e.plan, true);
    tnc_parallel(call, index->numel, TNC_GRAIN / 4, TNC_MAX_SLOTS, element_rows, &e);
    return TN_OK;
}

/* ---- out = self, and the f32 stand-in for halves ----------------------------------------- */

/* The plan: to, from. */
static void transfer_range(void *context, int64_t begin, int64_t end, int slot) {
    const tnc_plan *p = context;
    (void)slot;
    _Alignas(64) char block[TNC_BLOCK * 8];
    int64_t at[TN_MAX_RANK], n;
    for (int64_t i = begin; i < end; i += n) {
        n = tnc_min(TNC_BLOCK, end - i);
        tnc_plan_seek(p, i, at);
        tnc_plan_move(p, &p->operands[1], at, block, n, false);
        tnc_plan_move(p, &p->operands[0], at, block, n, true);
    }
}

/* Both of one shape and one computing type. */
static void copy_view(const tn_call *call, const tn_tensor_view *to, const tn_tensor_view *from) {
    tnc_plan p;
    tnc_plan_init(&p, to);
    tnc_plan_add_view(&p, to);
    tnc_plan_add_view(&p, from);
    tnc_plan_finish(&p, true);
    tnc_parallel(call, to->numel, TNC_GRAIN, TNC_MAX_SLOTS, transfer_range, &p);
}

/* `v`, or for halves a dense f32 tensor of its shape in the workspace. */
typedef struct stand_in {
    tn_tensor_view view;
    int64_t strides[TN_MAX_RANK];
} stand_in;

static const tn_tensor_view *stand_in_for(const tn_tensor_view *v, char **workspace, stand_in *s) {
    if (!tnc_is_half(v->dtype))
        return v;
    s->view = *v;
    s->view.dtype = TN_F32;
    s->view.memory = (tn_memory)(uintptr_t)*workspace;
    s->view.offset = 0;
    s->view.strides = s->strides;
    int64_t dense = 1;
    for (int d = v->rank - 1; d >= 0; d--) {
        s->strides[d] = dense;
        dense *= v->sizes[d];
    }
    *workspace += (v->numel * 4 + 63) & ~(int64_t)63;
    return &s->view;
}

/* For the two kernels that add: f32 copies of the output and of what is added (argument 3). */
static tn_status add_prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *sum = call->outs[0], *added = tnc_view(call, 3);
    out->workspace_bytes = 0;
    if (tnc_is_half(sum->dtype))
        out->workspace_bytes = (uint64_t)((sum->numel + added->numel) * 4 + 128);
    return TN_OK;
}

/* ---- scatter_add ------------------------------------------------------------------------- */

/* Brings the largest dimension other than dim to the front, if there is one: places that differ
 * there never meet, so threads may share it out. */
static bool move_dim_first(tnc_plan *p, int64_t dim) {
    int best = -1;
    for (int d = 0; d < p->rank; d++)
        if (d != dim && p->sizes[d] > 1 && (best < 0 || p->sizes[d] > p->sizes[best]))
            best = d;
    for (int d = best; d > 0; d--)
        tnc_plan_swap_dims(p, d - 1, d);
    return best >= 0;
}

typedef struct scatter {
    elements e;
    int64_t inner; /* elements below the first dimension */
} scatter;

static void scatter_range(void *context, int64_t begin, int64_t end, int slot) {
    scatter *s = context;
    element_rows(&s->e, begin * s->inner, end * s->inner, slot);
}

static tn_status scatter_add(const tn_call *call) {
    const tn_tensor_view *self = tnc_view(call, TN_ARG_scatter_add_self), *out = call->outs[0];
    const tn_tensor_view *index = tnc_view(call, TN_ARG_scatter_add_index);
    const tn_tensor_view *src = tnc_view(call, TN_ARG_scatter_add_src);
    int64_t dim = call->args[TN_ARG_scatter_add_dim].v.i64;
    char *workspace = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    PLUGIN_TRY(check_index(call, "scatter_add", index, dim, size_of(self, dim)));
    stand_in for_out, for_src;
    const tn_tensor_view *sum = stand_in_for(out, &workspace, &for_out);
    const tn_tensor_view *added = stand_in_for(src, &workspace, &for_src);
    scatter s = {.e.add = add_runs[out->dtype]};
    elements_init(&s.e, index, added, sum, dim);
    copy_view(call, sum, self);
    if (added != src)
        copy_view(call, added, src);
    tnc_plan *p = &s.e.plan;
    bool shared = move_dim_first(p, dim);
    if (p->rank == 0) { /* element_rows walks one dimension at least */
        p->rank = 1;
        p->sizes[0] = 1;
        for (int k = 0; k < p->n_operands; k++)
            p->operands[k].strides[0] = 0;
    }
    s.inner = shared ? index->numel / p->sizes[0] : index->numel;
    tnc_parallel(call, index->numel / s.inner, tnc_max(1, TNC_GRAIN / 4 / s.inner), TNC_MAX_SLOTS,
                 scatter_range, &s);
    if (sum != out)
        copy_view(call, out, sum);
    return TN_OK;
}

/* ---- index_select and index_add: an index for each slice --------------------------------- */

/* Slices are walked by a plan without dim: slice i of `own` and slice index[i] of `base`. */
typedef struct slices {
    tnc_plan plan; /* own, base */
    const char *index;
    int64_t index_stride, n_index; /* bytes, slices */
    int64_t own_stride, base_stride;
    add_run add; /* NULL: index_select */
    const tn_cell *alpha;
} slices;

static int64_t index_at(const slices *s, int64_t i) {
    int64_t k;
    memcpy(&k, s->index + i * s->index_stride, sizeof k);
    return k;
}

/* Elements [begin, end) of slice i. */
static void slice_part(const slices *s, int64_t i, int64_t begin, int64_t end) {
    const tnc_plan *p = &s->plan;
    int inner = p->rank - 1;
    int64_t at[TN_MAX_RANK], n;
    const tnc_operand *own = &p->operands[0], *base = &p->operands[1];
    for (int64_t e = begin; e < end; e += n) {
        tnc_plan_seek(p, e, at);
        n = tnc_min(end - e, p->sizes[inner] - at[inner]);
        char *mine = tnc_plan_address(p, own, at) + i * s->own_stride;
        char *indexed = tnc_plan_address(p, base, at) + index_at(s, i) * s->base_stride;
        if (s->add)
            s->add(indexed, base->strides[inner], mine, own->strides[inner], n, s->alpha);
        else
            tnc_copy_run(mine, own->strides[inner], indexed, base->strides[inner], n, own->item);
    }
}

/* index_select: threads share the slices. */
static void select_slices(void *context, int64_t begin, int64_t end, int slot) {
    const slices *s = context;
    (void)slot;
    for (int64_t i = begin; i < end; i++)
        slice_part(s, i, 0, s->plan.numel);
}

/* index_add: threads share the elements of a slice, and each takes all slices in order. */
static void add_slices(void *context, int64_t begin, int64_t end, int slot) {
    const slices *s = context;
    (void)slot;
    for (int64_t i = 0; i < s->n_index; i++)
        slice_part(s, i, begin, end);
}

static void slices_init(slices *s, const tn_tensor_view *own, const tn_tensor_view *base,
                        const tn_tensor_view *index, int64_t dim) {
    tnc_plan_init(&s->plan, own);
    tnc_plan_add_view(&s->plan, own);
    tnc_plan_add_view(&s->plan, base);
    s->index = tnc_data(index);
    s->n_index = index->numel;
    s->index_stride = index->rank ? tnc_step(index, 0) : 0;
    s->own_stride = own->rank ? s->plan.operands[0].strides[dim] : 0;
    s->base_stride = own->rank ? s->plan.operands[1].strides[dim] : 0;
    s->plan.numel /= index->numel;
    if (own->rank)
        s->plan.sizes[dim] = 1;
    tnc_plan_finish(&s->plan, true);
}

static tn_status index_select(const tn_call *call) {
    const tn_tensor_view *self = tnc_view(call, TN_ARG_index_select_self);
    const tn_tensor_view *index = tnc_view(call, TN_ARG_index_select_index);
    int64_t dim = call->args[TN_ARG_index_select_dim].v.i64;
    PLUGIN_TRY(check_index(call, "index_select", index, dim, size_of(self, dim)));
    slices s = {.add = NULL};
    slices_init(&s, call->outs[0], self, index, dim);
    tnc_parallel(call, s.n_index, tnc_max(1, TNC_GRAIN / s.plan.numel), TNC_MAX_SLOTS,
                 select_slices, &s);
    return TN_OK;
}

static tn_status index_add(const tn_call *call) {
    const tn_tensor_view *self = tnc_view(call, TN_ARG_index_add_self), *out = call->outs[0];
    const tn_tensor_view *index = tnc_view(call, TN_ARG_index_add_index);
    const tn_tensor_view *source = tnc_view(call, TN_ARG_index_add_source);
    int64_t dim = call->args[TN_ARG_index_add_dim].v.i64;
    char *workspace = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    PLUGIN_TRY(check_index(call, "index_add", index, dim, size_of(self, dim)));
    stand_in for_out, for_source;
    const tn_tensor_view *sum = stand_in_for(out, &workspace, &for_out);
    const tn_tensor_view *added = stand_in_for(source, &workspace, &for_source);
    slices s = {.add = add_runs[out->dtype], .alpha = &call->args[TN_ARG_index_add_alpha]};
    slices_init(&s, added, sum, index, dim);
    copy_view(call, sum, self);
    if (added != source)
        copy_view(call, added, source);
    tnc_parallel(call, s.plan.numel, tnc_max(16, TNC_GRAIN / s.n_index), TNC_MAX_SLOTS, add_slices,
                 &s);
    if (sum != out)
        copy_view(call, out, sum);
    return TN_OK;
}

static const tn_kernel records[] = {
    TNC_KERNEL(gather, TN_DTYPES_ALL, TNC_FLAGS_STRIDED, gather),
    TNC_KERNEL(index_select, TN_DTYPES_ALL, TNC_FLAGS_STRIDED, index_select),
    TNC_KERNEL(scatter_add, TN_DTYPES_ALL, TNC_FLAGS_STRIDED, scatter_add, .prepare = add_prepare),
    TNC_KERNEL(index_add, TN_DTYPES_NUMBER, TNC_FLAGS_STRIDED, index_add, .prepare = add_prepare),
};
TNC_PUBLISH(index, records);
