/* Attention without the matrix of all scores (Dao et al., arXiv:2205.14135), and its gradients.
 *
 * Vectors run along queries: LANES of them are a panel, whose scores with KEYS keys are there at a time,
 * as [keys][LANES]. So the largest score, the exponentials and their sum are taken lane by lane, and
 * all products are C += A B with rows of B that lie in a row, and elements of A that are spread over
 * vectors (convolution.h has it). Keys and values are widened once for some panels.
 *
 * Backward, a task is a head of key and value, all queries of which come by: what they give to the
 * gradients of keys and values is added up in a fixed order. Where there are few such heads, keys are
 * shared out, too, and what each part gives to a query's gradient is added up at the end. How many
 * parts there are follows from the shapes alone.
 */
#include "plugins/cpu/convolution.h"
#include "plugins/cpu/iterate.h"
#include "plugins/cpu/vmath.h"

enum {
    LANES = 64,
    KEYS = 64,
    PANELS = 4,
    ENOUGH_TASKS = 16, /* of backward, so that threads have their share */
    MOST_PARTS = 64    /* times heads: what they give has the size of query */
};

/* A tensor [B, H, L, width], or [B, H, L]. Strides in bytes. */
typedef struct side {
    char *data;
    int64_t strides[4], width;
    tn_dtype dtype;
} side;

typedef struct attention {
    int64_t batch, heads, groups,
        share;              /* heads of query for each of the groups of key and value */
    int64_t l, s, e, v;     /* queries, keys, their features, those of values */
    int64_t e_room, v_room; /* whole vectors */
    side query, key, value, mask, output, logsumexp;
    side grad, grad_query, grad_key, grad_value;
    bool causal;
    double scale;
    tn_dtype type;         /* computed in */
    int64_t part, n_parts; /* keys of a task, backward */
    void *parts;           /* [n_parts][B, H, L][e_room], where there are several */
    int64_t scratch_bytes; /* of one slot */
    char *scratch;
} attention;

/* Scores of `n` queries from `first` on (of a panel; width: whole vectors) and n_keys keys. */
typedef struct tile {
    int64_t b, h, first, n, width, key, n_keys;
} tile;

/* i, i * LANES, i * e_room, i * v_room */
typedef struct tables {
    const int64_t *unit, *lanes, *key, *value;
} tables;

static char *place(const side *x, int64_t b, int64_t h, int64_t i) {
    return x->data + b * x->strides[0] + h * x->strides[1] + i * x->strides[2];
}

static int64_t up_to(int64_t n, int64_t multiple) {
    return tnc_ceil_div(n, multiple) * multiple;
}

static int64_t unit_length(const attention *a) {
    return tnc_max(LANES, tnc_max(a->e, a->v));
}

static int64_t table_bytes(const attention *a) {
    return up_to((unit_length(a) + 3 * KEYS) * (int64_t)sizeof(int64_t), 64);
}

/* Fills the tables, which stand first in the scratch; returns what is behind them. */
static void *tables_of(const attention *a, void *scratch, tables *out) {
    int64_t *unit = scratch, *lanes = unit + unit_length(a), *key = lanes + KEYS;
    int64_t *value = key + KEYS;
    for (int64_t i = 0; i < unit_length(a); i++)
        unit[i] = i;
    for (int64_t i = 0; i < KEYS; i++) {
        lanes[i] = i * LANES;
        key[i] = i * a->e_room;
        value[i] = i * a->v_room;
    }
    *out = (tables){unit, lanes, key, value};
    return (char *)scratch + table_bytes(a);
}

static tile tile_of(const attention *a, int64_t b, int64_t h, int64_t first, int64_t n,
                    int64_t panel) {
    tile t = {.b = b, .h = h, .first = first + panel * LANES};
    t.n = tnc_min(LANES, n - panel * LANES);
    t.width = up_to(t.n, tnc_indirect_lanes(a->type));
    return t;
}

#define T float
#define TYPE TN_F32
#define EXP em_exp
#define LOG em_log
#define NAME(x) x##_f32
#include "plugins/cpu/attention.inc"
#undef T
#undef TYPE
#undef EXP
#undef LOG
#undef NAME

#define T double
#define TYPE TN_F64
#define EXP exp
#define LOG log
#define NAME(x) x##_f64
#include "plugins/cpu/attention.inc"

/* ---- one call ---------------------------------------------------------------------------- */

static side side_of(const tn_tensor_view *v) {
    side s = {0};
    if (!v)
        return s;
    int64_t item = tnc_dtype_bytes(v->dtype);
    s = (side){.data = tnc_data(v), .width = v->rank == 4 ? v->sizes[3] : 1, .dtype = v->dtype};
    for (int d = 0; d < v->rank; d++)
        s.strides[d] = v->sizes[d] == 1 ? 0 : v->strides[d] * item;
    return s;
}

static void start(attention *a, const tn_call *call, const tn_tensor_view *query,
                  const tn_tensor_view *key, const tn_tensor_view *value) {
    int64_t lanes = tnc_indirect_lanes(query->dtype == TN_F64 ? TN_F64 : TN_F32);
    *a = (attention){
        .batch = query->sizes[0],
        .heads = query->sizes[1],
        .groups = key->sizes[1],
        .share = query->sizes[1] / key->sizes[1],
        .l = query->sizes[2],
        .s = key->sizes[2],
        .e = query->sizes[3],
        .v = value->sizes[3],
        .e_room = up_to(query->sizes[3], lanes),
        .v_room = up_to(value->sizes[3], lanes),
        .query = side_of(query),
        .key = side_of(key),
        .value = side_of(value),
        .type = query->dtype == TN_F64 ? TN_F64 : TN_F32,
        .scratch = (char *)(uintptr_t)(call->workspace + call->workspace_offset),
    };
}

static int64_t slots_of(const tn_call *call, const attention *a) {
    int64_t slots =
        ((int64_t)call->workspace_bytes - (a->n_parts > 1 ? a->scratch - (char *)a->parts : 0)) /
        a->scratch_bytes;
    return tnc_min(slots, TNC_MAX_SLOTS);
}

/* ---- forward ----------------------------------------------------------------------------- */

static void forward_call(const tn_call *call, attention *a) {
    start(a, call, tnc_view(call, TN_ARG_flash_attention_query),
          tnc_view(call, TN_ARG_flash_attention_key), tnc_view(call, TN_ARG_flash_attention_value));
    a->mask = side_of(tnc_view(call, TN_ARG_flash_attention_attn_mask));
    a->output = side_of(call->outs[0]);
    a->logsumexp = side_of(call->outs[1]);
    a->causal = call->args[TN_ARG_flash_attention_is_causal].v.boolean;
    a->scale = call->args[TN_ARG_flash_attention_scale].v.f64;
    int64_t cells = PANELS * LANES * (a->e_room + a->v_room + 2) +
                    (KEYS + tnc_max(KEYS, a->e_room)) * LANES + KEYS * (a->e_room + a->v_room);
    a->scratch_bytes = table_bytes(a) + up_to(cells * tnc_dtype_bytes(a->type), 64);
}

static void forward_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const attention *a = context;
    int64_t blocks = tnc_ceil_div(a->l, PANELS * LANES);
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % blocks * PANELS * LANES, h = t / blocks % a->heads;
        (a->type == TN_F32 ? forward_f32 : forward_f64)(a, t / blocks / a->heads, h, first,
                                                        tnc_min(PANELS * LANES, a->l - first),
                                                        a->scratch + slot * a->scratch_bytes);
    }
}

static tn_status forward(const tn_call *call) {
    attention a;
    forward_call(call, &a);
    int64_t n = a.batch * a.heads * tnc_ceil_div(a.l, PANELS * LANES);
    int64_t work = tnc_min(PANELS * LANES, a.l) * a.s * (a.e + a.v);
    tnc_parallel(call, n, tnc_max(1, TNC_GRAIN_MULTIPLICATIONS / work), (int)slots_of(call, &a),
                 forward_tasks, &a);
    return TN_OK;
}

static tn_status forward_prepare(const tn_call *call, tn_plan *out) {
    attention a;
    forward_call(call, &a);
    out->workspace_bytes = (uint64_t)(a.scratch_bytes * tnc_get_threads(call));
    return TN_OK;
}

/* ---- backward ---------------------------------------------------------------------------- */

static int64_t parts_bytes(const attention *a) {
    return a->n_parts == 1 ? 0
                           : up_to(a->n_parts * a->batch * a->heads * a->l * a->e_room *
                                       tnc_dtype_bytes(a->type),
                                   64);
}

static void backward_call(const tn_call *call, attention *a) {
    start(a, call, tnc_view(call, TN_ARG_flash_attention_backward_query),
          tnc_view(call, TN_ARG_flash_attention_backward_key),
          tnc_view(call, TN_ARG_flash_attention_backward_value));
    a->mask = side_of(tnc_view(call, TN_ARG_flash_attention_backward_attn_mask));
    a->output = side_of(tnc_view(call, TN_ARG_flash_attention_backward_output));
    a->logsumexp = side_of(tnc_view(call, TN_ARG_flash_attention_backward_logsumexp));
    a->grad = side_of(tnc_view(call, TN_ARG_flash_attention_backward_grad_output));
    a->grad_query = side_of(call->outs[0]);
    a->grad_key = side_of(call->outs[1]);
    a->grad_value = side_of(call->outs[2]);
    a->causal = call->args[TN_ARG_flash_attention_backward_is_causal].v.boolean;
    a->scale = call->args[TN_ARG_flash_attention_backward_scale].v.f64;

    int64_t wanted = tnc_min(tnc_ceil_div(ENOUGH_TASKS, a->batch * a->groups),
                             tnc_ceil_div(MOST_PARTS, a->batch * a->heads));
    a->part = up_to(tnc_ceil_div(a->s, wanted), KEYS);
    a->n_parts = tnc_ceil_div(a->s, a->part);
    int64_t rooms = a->e_room + a->v_room, longest = tnc_max(KEYS, a->v_room);
    int64_t cells = LANES * (2 * rooms + a->e_room) + (2 * KEYS + longest) * LANES +
                    2 * tnc_min(a->part, up_to(a->s, KEYS)) * rooms;
    a->scratch_bytes = table_bytes(a) + up_to(cells * tnc_dtype_bytes(a->type), 64);
    a->parts = a->scratch;
    if (a->scratch) /* not while a call is prepared */
        a->scratch += parts_bytes(a);
}

static void backward_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const attention *a = context;
    for (int64_t t = begin; t < end; t++)
        (a->type == TN_F32 ? backward_f32 : backward_f64)(
            a, t / a->n_parts / a->groups, t / a->n_parts % a->groups, t % a->n_parts,
            a->scratch + slot * a->scratch_bytes);
}

static void join_rows(void *context, int64_t begin, int64_t end, int slot) {
    const attention *a = context;
    (void)slot;
    for (int64_t row = begin; row < end; row++)
        (a->type == TN_F32 ? join_f32 : join_f64)(a, row);
}

static tn_status backward(const tn_call *call) {
    attention a;
    backward_call(call, &a);
    int64_t work = a.share * a.l * tnc_min(a.part, a.s) * (3 * a.e + 2 * a.v);
    tnc_parallel(call, a.batch * a.groups * a.n_parts, tnc_max(1, TNC_GRAIN_MULTIPLICATIONS / work),
                 (int)slots_of(call, &a), backward_tasks, &a);
    if (a.n_parts > 1)
        tnc_parallel(call, a.batch * a.heads * a.l, tnc_max(1, TNC_GRAIN / a.e), TNC_MAX_SLOTS,
                     join_rows, &a);
    return TN_OK;
}

static tn_status backward_prepare(const tn_call *call, tn_plan *out) {
    attention a;
    backward_call(call, &a);
    out->workspace_bytes = (uint64_t)(parts_bytes(&a) + a.scratch_bytes * tnc_get_threads(call));
    return TN_OK;
}

/* T and what goes with it are computed in DT. */
#define RECORD(op_, types, DT, name) \
    { \
        .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##op_, \
        .schema_hash = TN_KERNEL_HASH_##op_, .dtypes = {types, TN_DTYPE_BIT(DT)}, \
        .flags = TNC_FLAGS_STRIDED, .prepare = name##_prepare, .run = name \
    }
#define FLOATS (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16))

static const tn_kernel records[] = {
    RECORD(flash_attention, FLOATS, TN_F32, forward),
    RECORD(flash_attention, TN_DTYPE_BIT(TN_F64), TN_F64, forward),
    RECORD(flash_attention_backward, FLOATS, TN_F32, backward),
    RECORD(flash_attention_backward, TN_DTYPE_BIT(TN_F64), TN_F64, backward),
};
TNC_PUBLISH(attention, records);
