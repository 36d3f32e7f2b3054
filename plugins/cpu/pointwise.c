/* Runs a pointwise operator's loop over whatever the call brings. Three ways, cheapest first: dense
 * tensors and few elements go straight to the loop; otherwise a plan is made, and threads walk it
 * in runs as long as the layouts allow. */
#include "plugins/cpu/pointwise.h"

/* ---- the planned way --------------------------------------------------------------------- */

typedef struct walk {
    tnc_plan plan; /* outputs first, then inputs */
    const tnc_pointwise *op;
    tnc_loop loop;
    const tn_cell *attrs;
} walk;

/* Rows at least this long are worth a call of the loop each, on the operands' own memory. */
enum { LONG_ROW = 128 };

static void walk_range(void *context, int64_t begin, int64_t end, int slot) {
    const walk *w = context;
    const tnc_plan *p = &w->plan;
    (void)slot;
    int n_out = w->op->n_out, inner = p->rank - 1;
    _Alignas(64) char blocks[TNC_MAX_OPERANDS][TNC_BLOCK * 8];
    int64_t at[TN_MAX_RANK];
    bool by_rows = p->rank == 1 || p->sizes[inner] >= LONG_ROW;

    /* Operands that the loop may touch in place, within a run. */
    bool direct[TNC_MAX_OPERANDS], any_block = false;
    for (int k = 0; k < p->n_operands; k++) {
        const tnc_operand *o = &p->operands[k];
        direct[k] = o->dense || (by_rows && o->strides[inner] == o->item && o->cell == o->item);
        any_block = any_block || !direct[k];
    }
    int64_t n;
    for (int64_t i = begin; i < end; i += n) {
        tnc_plan_seek(p, i, at);
        n = by_rows ? tnc_min(end - i, p->sizes[inner] - at[inner]) : end - i;
        if (any_block)
            n = tnc_min(n, TNC_BLOCK);
        void *data[TNC_MAX_OPERANDS];
        for (int k = 0; k < p->n_operands; k++) {
            data[k] = direct[k] ? tnc_plan_address(p, &p->operands[k], at) : blocks[k];
            if (!direct[k] && k >= n_out)
                tnc_plan_move(p, &p->operands[k], at, blocks[k], n, false);
        }
        w->loop(n, data, (const void *const *)data + n_out, w->attrs);
        for (int k = 0; k < n_out; k++)
            if (!direct[k])
                tnc_plan_move(p, &p->operands[k], at, blocks[k], n, true);
    }
}

/* Stores a cell as one element of `dtype`, which is no half: the loops of those compute in f32, and
 * their scalar is no less exact. */
static void store_scalar(void *element, tn_dtype dtype, const tn_cell *cell) {
    bool is_float = cell->tag == TN_CELL_F64;
    double f = is_float ? cell->v.f64 : (double)cell->v.i64;
    int64_t i = is_float && dtype >= TN_I8 ? (int64_t)cell->v.f64 : cell->v.i64;
    switch (dtype) {
    case TN_F32:
        memcpy(element, &(float){(float)f}, 4);
        break;
    case TN_F64:
        memcpy(element, &f, 8);
        break;
    case TN_BOOL:
        memcpy(element, &(uint8_t){is_float ? f != 0 : i != 0}, 1);
        break;
    default:
        switch (tnc_dtype_bytes(dtype)) {
        case 1:
            memcpy(element, &(int8_t){(int8_t)i}, 1);
            break;
        case 2:
            memcpy(element, &(int16_t){(int16_t)i}, 2);
            break;
        case 4:
            memcpy(element, &(int32_t){(int32_t)i}, 4);
            break;
        default:
            memcpy(element, &i, 8);
        }
    }
}

static bool has_scalar(const tn_call *call, int n_in) {
    for (int k = 0; k < n_in; k++)
        if (!tnc_view(call, k))
            return true;
    return false;
}

static __attribute__((noinline)) tn_status run_planned(const tn_call *call,
                                                       const tnc_pointwise *op) {
    walk w;
    w.op = op;
    bool stored = op->stored && !has_scalar(call, op->n_in);
    w.loop = stored ? op->stored : op->loop;
    w.attrs = call->args + op->n_in;
    void (*add_view)(tnc_plan *, const tn_tensor_view *) =
        stored ? tnc_plan_add_stored : tnc_plan_add_view;
    tnc_plan_init(&w.plan, call->outs[0]);
    for (int k = 0; k < op->n_out; k++)
        add_view(&w.plan, call->outs[k]);
    int64_t scalars[TNC_MAX_OPERANDS];
    for (int k = 0; k < op->n_in; k++) {
        const tn_tensor_view *v = tnc_view(call, k);
        if (v) {
            add_view(&w.plan, v);
        } else {
            tn_dtype wide = tnc_is_half(op->dtype) ? TN_F32 : op->dtype;
            tn_dtype dtype = k < op->bool_in ? TN_BOOL : wide;
            store_scalar(&scalars[k], dtype, &call->args[k]);
            tnc_plan_add_scalar(&w.plan, &scalars[k], dtype);
        }
    }
    tnc_plan_finish(&w.plan, true);
    tnc_parallel(call, w.plan.numel, op->expensive ? TNC_GRAIN / 8 : TNC_GRAIN, TNC_MAX_SLOTS,
                 walk_range, &w);
    return TN_OK;
}

/* ---- the short way ----------------------------------------------------------------------- */

static inline bool is_dense(const tn_tensor_view *v) {
    return v->numel == 1 || (v->rank == 1 && v->strides[0] == 1);
}

/* Inlined with constant n_in: for one element everything below is a few nanoseconds. */
static inline __attribute__((always_inline)) tn_status
run(const tn_call *call, const tnc_pointwise *op, int n_in, int n_out) {
    const void *in[TNC_MAX_OPERANDS];
    void *out[TNC_MAX_OPERANDS];
    int64_t numel = call->outs[0]->numel;
    tnc_loop loop = tnc_is_half(op->dtype) ? op->stored : op->loop;
    if (numel > TNC_GRAIN / 8 || !loop)
        return run_planned(call, op);
    for (int k = 0; k < n_in; k++) {
        const tn_cell *arg = &call->args[k];
        if (arg->tag != TN_CELL_TENSOR || !is_dense(arg->v.view))
            return run_planned(call, op);
        in[k] = tnc_data(arg->v.view);
    }
    for (int k = 0; k < n_out; k++) {
        if (!is_dense(call->outs[k]))
            return run_planned(call, op);
        out[k] = tnc_data(call->outs[k]);
    }
    loop(numel, out, in, call->args + n_in);
    return TN_OK;
}

tn_status tnc_pointwise_run_1(const tn_call *call) {
    return run(call, call->user, 1, 1);
}

tn_status tnc_pointwise_run_2(const tn_call *call) {
    return run(call, call->user, 2, 1);
}

tn_status tnc_pointwise_run_any(const tn_call *call) {
    const tnc_pointwise *op = call->user;
    return run(call, op, op->n_in, op->n_out);
}
