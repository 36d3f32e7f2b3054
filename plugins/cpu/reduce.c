/* The walk of reductions: see reduce.h. */
#include "plugins/cpu/reduce.h"
#include "plugins/cpu/iterate.h"

enum {
    ROWS = 16, /* of a group, that are gathered at once */
    RUN =
        ROWS *
        TNC_GROUP, /* elements of a row that are: whole groups of sum.c's, which then are those of dense rows */
    CHUNK = 16384, /* elements */
    MAX_CHUNKS = 128,
    ENOUGH_GROUPS = 32, /* to keep threads busy without chunks */
    SHORT_COLUMNS = 16  /* kept runs shorter than this are read as rows */
};

typedef struct reduction {
    const tnc_reducer *op;
    const tn_cell *attrs;
    tnc_plan kept;    /* input, output */
    tnc_plan reduced; /* input, from the address of an output's first element */
    bool by_columns;
    int64_t width; /* outputs of a group: TNC_GROUP by columns, 1 by rows */
    int64_t n_groups, n_chunks;
    int64_t chunk; /* elements of the reduced range */
    int64_t state_bytes;
    char *states; /* [n_groups][n_chunks] of state_bytes, where n_chunks > 1 */
} reduction;

static bool is_reduced(const tn_call *call, int d) {
    const tn_cell *dim = &call->args[1];
    if (dim->tag == TN_CELL_I64)
        return dim->v.i64 == d;
    for (uint32_t i = 0; i < dim->n; i++)
        if (dim->v.ints[i] == d)
            return true;
    return false;
}

static void plan(const tn_call *call, reduction *r) {
    const tn_tensor_view *in = tnc_view(call, 0), *out = call->outs[0];
    tnc_plan_init(&r->kept, out);
    tnc_plan_init(&r->reduced, in);
    void (*add_view)(tnc_plan *, const tn_tensor_view *) =
        r->op->stored ? tnc_plan_add_stored : tnc_plan_add_view;
    add_view(&r->kept, in);
    add_view(&r->kept, out);
    add_view(&r->reduced, in);
    for (int d = 0; d < in->rank; d++)
        (is_reduced(call, d) ? r->kept.sizes : r->reduced.sizes)[d] = 1;
    r->reduced.numel = in->numel / out->numel;
    bool needs_order = in->rank > 0 && call->args[1].tag == TN_CELL_I64; /* the index is a result */
    tnc_plan_finish(&r->kept, true);
    tnc_plan_finish(&r->reduced, !needs_order);

    const tnc_plan *k = &r->kept, *d = &r->reduced;
    int64_t run = k->sizes[k->rank - 1];
    bool across =
        d->numel == 1 || k->operands[0].strides[k->rank - 1] < d->operands[0].strides[d->rank - 1];
    r->by_columns = run >= SHORT_COLUMNS && across;
    r->width = r->by_columns ? tnc_min(TNC_GROUP, run) : 1;
    r->n_groups = k->numel / run * tnc_ceil_div(run, r->width);
    r->chunk = tnc_max(tnc_max(CHUNK / r->width, 1), tnc_ceil_div(d->numel, MAX_CHUNKS));
    if (r->n_groups >= ENOUGH_GROUPS)
        r->chunk = d->numel;
    r->n_chunks = tnc_ceil_div(d->numel, r->chunk);
    r->state_bytes = (int64_t)sizeof(tnc_state) + 16 * r->width;
}

/* The state that lives at p. */
static tnc_state *state_at(char *p, int64_t width) {
    tnc_state *s = (tnc_state *)p;
    *s = (tnc_state){.n = 0, .a = s + 1, .b = (double *)(s + 1) + width};
    return s;
}

/* Adds elements [begin, end) of the reduced range. `at` is where the group stands in the kept plan,
 * `width` how many outputs it has. */
static void reduce_chunk(const reduction *r, const int64_t *at, int64_t width, int64_t begin,
                         int64_t end, tnc_state *s) {
    const tnc_plan *k = &r->kept, *d = &r->reduced;
    const tnc_operand *in = &d->operands[0];
    const tnc_operand *kept = &k->operands[0];
    _Alignas(64) char block[RUN * 8];
    int64_t where[TN_MAX_RANK], n;
    int inner = d->rank - 1;
    const char *group = tnc_plan_address(k, kept, at);
    if (r->by_columns) {
        int64_t stride = kept->strides[k->rank - 1], step = in->strides[inner];
        bool direct = stride == kept->item && kept->cell == kept->item;
        for (int64_t i = begin; i < end; i += n) {
            tnc_plan_seek(d, i, where);
            const char *x = tnc_plan_address(d, in, where) + (group - in->base);
            n = tnc_min(end - i, d->sizes[inner] - where[inner]);
            if (direct) {
                r->op->columns(s, x, step, n, width, i);
                continue;
            }
            n = tnc_min(n, ROWS);
            for (int64_t row = 0; row < n; row++)
                tnc_gather_run(block + row * width * kept->cell, x + row * step, stride, width,
                               kept->dtype);
            r->op->columns(s, block, width * kept->cell, n, width, i);
        }
        return;
    }
    bool direct = in->strides[inner] == in->item && in->cell == in->item &&
                  (d->rank == 1 || d->sizes[inner] >= 64);
    int64_t shift = group - in->base;
    for (int64_t i = begin; i < end; i += n) {
        tnc_plan_seek(d, i, where);
        if (direct) {
            n = tnc_min(end - i, d->sizes[inner] - where[inner]);
            r->op->rows(s, tnc_plan_address(d, in, where) + shift, n, i);
        } else {
            tnc_operand moved = *in;
            moved.base += shift;
            n = tnc_min(RUN, end - i);
            tnc_plan_move(d, &moved, where, block, n, false);
            r->op->rows(s, block, n, i);
        }
    }
}

/* Where group g stands, and how many outputs it has. */
static int64_t locate(const reduction *r, int64_t g, int64_t *at) {
    const tnc_plan *k = &r->kept;
    if (r->width == 1) {
        tnc_plan_seek(k, g, at);
        return 1;
    }
    int64_t run = k->sizes[k->rank - 1], per_run = tnc_ceil_div(run, r->width);
    int64_t first = g % per_run * r->width;
    tnc_plan_seek(k, g / per_run * run + first, at);
    return tnc_min(r->width, run - first);
}

static void finish(const reduction *r, const int64_t *at, int64_t width, const tnc_state *s) {
    const tnc_plan *k = &r->kept;
    const tnc_operand *out = &k->operands[1];
    _Alignas(64) char block[TNC_GROUP * 8];
    bool direct = out->cell == out->item && (width == 1 || out->strides[k->rank - 1] == out->item);
    void *results = direct ? tnc_plan_address(k, out, at) : block;
    r->op->finish(s, results, width, r->attrs);
    if (!direct)
        tnc_plan_move(k, out, at, block, width, true);
}

static void reduce_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const reduction *r = context;
    (void)slot;
    _Alignas(64) char own[sizeof(tnc_state) + 16 * TNC_GROUP];
    int64_t at[TN_MAX_RANK];
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % r->n_chunks * r->chunk;
        int64_t width = locate(r, t / r->n_chunks, at);
        tnc_state *s = state_at(r->n_chunks > 1 ? r->states + t * r->state_bytes : own, r->width);
        reduce_chunk(r, at, width, first, tnc_min(first + r->chunk, r->reduced.numel), s);
        if (r->n_chunks == 1)
            finish(r, at, width, s);
    }
}

tn_status tnc_reduce(const tn_call *call) {
    reduction r = {.op = call->user, .attrs = call->args};
    plan(call, &r);
    r.states = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    int64_t task = r.width * tnc_min(r.chunk, r.reduced.numel);
    tnc_parallel(call, r.n_groups * r.n_chunks, tnc_max(1, TNC_GRAIN / task), TNC_MAX_SLOTS,
                 reduce_tasks, &r);
    if (r.n_chunks > 1)
        for (int64_t g = 0; g < r.n_groups; g++) {
            int64_t at[TN_MAX_RANK], width = locate(&r, g, at);
            char *states = r.states + g * r.n_chunks * r.state_bytes;
            for (int64_t c = 1; c < r.n_chunks; c++)
                r.op->merge((tnc_state *)states, (const tnc_state *)(states + c * r.state_bytes),
                            width);
            finish(&r, at, width, (const tnc_state *)states);
        }
    return TN_OK;
}

tn_status tnc_reduce_prepare(const tn_call *call, tn_plan *out) {
    reduction r = {.op = call->user};
    plan(call, &r);
    out->workspace_bytes = r.n_chunks > 1 ? (uint64_t)(r.n_groups * r.n_chunks * r.state_bytes) : 0;
    return TN_OK;
}
