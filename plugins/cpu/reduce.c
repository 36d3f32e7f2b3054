/* Reductions: sum, prod, amax, amin, var, argmax, argmin.
 *
 * The input's dimensions fall into kept and reduced ones; a plan of each walks them. Outputs are
 * made in groups: one at a time, reading along the reduced dimension ("rows"), or up to GROUP
 * neighbours at once, adding row after row ("columns"), whichever follows memory. Where there are
 * few outputs the reduced range is cut into chunks, whose states are merged in order. Groups and
 * chunks depend on the shape alone, so results do not depend on the number of threads.
 */
#include "plugins/cpu/iterate.h"

#include <math.h>

/* What is known of a group after some of its elements. */
typedef struct state {
    int64_t n; /* elements seen by each output */
    void *a;   /* [width] of 8 bytes: the sum, product, largest or mean so far */
    void *b;   /* [width] of 8 bytes: argmax's index, var's sum of squared distances */
} state;

/* An operator on one computing type. */
typedef struct reducer {
    /* n more elements, dense, of the one output; the first is element `first` of the range */
    void (*rows)(state *s, const void *x, int64_t n, int64_t first);
    /* one more element, number `first`, of each of `width` outputs */
    void (*columns)(state *s, const void *x, int64_t width, int64_t first);
    /* the elements of `from` come after those of `into` */
    void (*merge)(state *into, const state *from, int64_t width);
    /* results, dense, of the computing type (i64 for argmax and argmin) */
    void (*finish)(const state *s, void *out, int64_t width, const tn_cell *attrs);
} reducer;

enum {
    GROUP = 256,
    LANES = 32,    /* partial sums of a row: two to eight vectors, to hide latency */
    PAIR = 16,     /* elements that a lane adds before lanes are combined */
    CHUNK = 16384, /* elements */
    MAX_CHUNKS = 128,
    ENOUGH_GROUPS = 32, /* to keep threads busy without chunks */
    SHORT_COLUMNS = 16  /* kept runs shorter than this are read as rows */
};

/* ---- sum and prod: T as given, L in the lanes, A accumulated in -------------------------- */

/* Runs of LANES * PAIR elements are combined in L, each lane adding PAIR of them and the lanes in a
 * tree, and carried in A. */
#define FOLD(op, sfx, T, L, A, symbol, identity) \
    static void op##_rows_##sfx(state *s, const void *data, int64_t n, int64_t first) { \
        const T *x = data; \
        A total = s->n ? *(A *)s->a : identity; \
        int64_t i = 0; \
        for (; i + LANES * PAIR <= n; i += LANES * PAIR) { \
            L lanes[LANES]; \
            for (int j = 0; j < LANES; j++) \
                lanes[j] = (L)x[i + j]; \
            for (int k = 1; k < PAIR; k++) \
                for (int j = 0; j < LANES; j++) \
                    lanes[j] = lanes[j] symbol(L) x[i + k * LANES + j]; \
            for (int width = LANES / 2; width > 0; width /= 2) \
                for (int j = 0; j < width; j++) \
                    lanes[j] = lanes[j] symbol lanes[j + width]; \
            total = total symbol(A) lanes[0]; \
        } \
        for (; i < n; i++) \
            total = total symbol(A) x[i]; \
        *(A *)s->a = total; \
        s->n += n; \
    } \
    static void op##_columns_##sfx(state *s, const void *data, int64_t width, int64_t first) { \
        const T *x = data; \
        A *a = s->a; \
        if (s->n++ == 0) \
            for (int64_t j = 0; j < width; j++) \
                a[j] = identity; \
        TNC_INDEPENDENT \
        for (int64_t j = 0; j < width; j++) \
            a[j] = a[j] symbol(A) x[j]; \
    } \
    static void op##_merge_##sfx(state *into, const state *from, int64_t width) { \
        A *a = into->a; \
        const A *b = from->a; \
        for (int64_t j = 0; j < width; j++) \
            a[j] = a[j] symbol b[j]; \
        into->n += from->n; \
    } \
    static void op##_finish_##sfx(const state *s, void *out, int64_t width, \
                                  const tn_cell *attrs) { \
        const A *a = s->a; \
        for (int64_t j = 0; j < width; j++) \
            ((T *)out)[j] = (T)a[j]; \
    } \
    static const reducer op##_##sfx = {op##_rows_##sfx, op##_columns_##sfx, op##_merge_##sfx, \
                                       op##_finish_##sfx};

/* -0 is the identity of IEEE addition: the sum of negative zeros stays one. */
#define FOLD_INT(sfx, T, U, DT) \
    FOLD(sum, sfx, T, U, uint64_t, +, 0) \
    FOLD(prod, sfx, T, U, uint64_t, *, 1)
FOLD(sum, f32, float, float, double, +, -0.0)
FOLD(sum, f64, double, double, double, +, -0.0)
FOLD(prod, f32, float, double, double, *, 1)
FOLD(prod, f64, double, double, double, *, 1)
TNC_INT_TYPES(FOLD_INT)

/* ---- amax and amin, argmax and argmin ---------------------------------------------------- */

/* Does x replace `best`? NaN replaces all but NaN; for integers the second half folds away. */
#define BEATS(x, symbol, best) ((x)symbol(best) || ((x) != (x) && (best) == (best)))

#define EXTREME(op, sfx, T, symbol) \
    static T op##_run_##sfx(const T *x, int64_t n) { \
        T lanes[LANES], best = x[0]; \
        int64_t i = 0; \
        if (n >= LANES) { \
            for (int j = 0; j < LANES; j++) \
                lanes[j] = x[j]; \
            for (i = LANES; i + LANES <= n; i += LANES) \
                for (int j = 0; j < LANES; j++) { \
                    T y = x[i + j], z = lanes[j]; \
                    lanes[j] = ((y symbol z) | (y != y)) ? y : z; \
                } \
            best = lanes[0]; \
            for (int j = 1; j < LANES; j++) \
                best = BEATS(lanes[j], symbol, best) ? lanes[j] : best; \
        } \
        for (; i < n; i++) \
            best = BEATS(x[i], symbol, best) ? x[i] : best; \
        return best; \
    } \
    static void op##_rows_##sfx(state *s, const void *data, int64_t n, int64_t first) { \
        T best = op##_run_##sfx(data, n), *a = s->a; \
        if (s->n == 0 || BEATS(best, symbol, *a)) \
            *a = best; \
        s->n += n; \
    } \
    static void op##_columns_##sfx(state *s, const void *data, int64_t width, int64_t first) { \
        const T *x = data; \
        T *a = s->a; \
        if (s->n++ == 0) \
            memcpy(a, x, sizeof(T) * (size_t)width); \
        TNC_INDEPENDENT \
        for (int64_t j = 0; j < width; j++) { \
            T y = x[j], z = a[j]; \
            a[j] = ((y symbol z) | (y != y)) ? y : z; \
        } \
    } \
    static void op##_merge_##sfx(state *into, const state *from, int64_t width) { \
        op##_columns_##sfx(into, from->a, width, 0); \
    } \
    static void op##_finish_##sfx(const state *s, void *out, int64_t width, \
                                  const tn_cell *attrs) { \
        memcpy(out, s->a, sizeof(T) * (size_t)width); \
    } \
    static const reducer op##_##sfx = {op##_rows_##sfx, op##_columns_##sfx, op##_merge_##sfx, \
                                       op##_finish_##sfx}; \
    static void arg##op##_rows_##sfx(state *s, const void *data, int64_t n, int64_t first) { \
        const T *x = data; \
        T best = op##_run_##sfx(x, n), *a = s->a; \
        if (s->n == 0 || BEATS(best, symbol, *a)) { \
            int64_t i = 0; \
            while (!(x[i] == best || x[i] != x[i])) \
                i++; \
            *a = best; \
            *(int64_t *)s->b = first + i; \
        } \
        s->n += n; \
    } \
    static void arg##op##_columns_##sfx(state *s, const void *data, int64_t width, \
                                        int64_t first) { \
        const T *x = data; \
        T *a = s->a; \
        int64_t *b = s->b; \
        if (s->n++ == 0) \
            for (int64_t j = 0; j < width; j++) { \
                a[j] = x[j]; \
                b[j] = first; \
            } \
        TNC_INDEPENDENT \
        for (int64_t j = 0; j < width; j++) { \
            T y = x[j], z = a[j]; \
            bool beats = (y symbol z) | ((y != y) & (z == z)); \
            a[j] = beats ? y : z; \
            b[j] = beats ? first : b[j]; \
        } \
    } \
    static void arg##op##_merge_##sfx(state *into, const state *from, int64_t width) { \
        T *a = into->a; \
        const T *c = from->a; \
        int64_t *b = into->b; \
        const int64_t *d = from->b; \
        for (int64_t j = 0; j < width; j++) \
            if (BEATS(c[j], symbol, a[j])) { \
                a[j] = c[j]; \
                b[j] = d[j]; \
            } \
    } \
    static const reducer arg##op##_##sfx = {arg##op##_rows_##sfx, arg##op##_columns_##sfx, \
                                            arg##op##_merge_##sfx, index_finish};

static void index_finish(const state *s, void *out, int64_t width, const tn_cell *attrs) {
    memcpy(out, s->b, sizeof(int64_t) * (size_t)width);
}

#define EXTREMES(sfx, T, U, DT) \
    EXTREME(max, sfx, T, >) \
    EXTREME(min, sfx, T, <)
EXTREMES(f32, float, float, F32)
EXTREMES(f64, double, double, F64)
TNC_INT_TYPES(EXTREMES)

/* ---- var --------------------------------------------------------------------------------- */

/* T. Chan et al., "Updating formulae and a pairwise algorithm for computing sample variances",
 * 1979: means in a, sums of squared distances in b, both f64. A row's block is taken in two passes.
 */
static void var_add(state *s, int64_t j, double n, double mean, double m2) {
    double *means = s->a, *m2s = s->b, before = (double)s->n;
    double distance = mean - means[j];
    means[j] += distance * n / (before + n);
    m2s[j] += m2 + distance * distance * before * n / (before + n);
}

#define VAR(sfx, T) \
    static void var_rows_##sfx(state *s, const void *data, int64_t n, int64_t first) { \
        const T *x = data; \
        double sum = 0, m2 = 0; \
        for (int64_t i = 0; i < n; i++) \
            sum += x[i]; \
        double mean = sum / (double)n; \
        for (int64_t i = 0; i < n; i++) \
            m2 += (x[i] - mean) * (x[i] - mean); \
        if (s->n == 0) \
            *(double *)s->a = mean, *(double *)s->b = m2; \
        else \
            var_add(s, 0, (double)n, mean, m2); \
        s->n += n; \
    } \
    static void var_columns_##sfx(state *s, const void *data, int64_t width, int64_t first) { \
        const T *x = data; \
        double *mean = s->a, *m2 = s->b; \
        if (s->n == 0) \
            for (int64_t j = 0; j < width; j++) \
                mean[j] = m2[j] = 0; \
        double share = 1 / (double)++s->n; \
        TNC_INDEPENDENT \
        for (int64_t j = 0; j < width; j++) { \
            double distance = x[j] - mean[j]; \
            double moved = mean[j] + distance * share; \
            m2[j] += distance * (x[j] - moved); \
            mean[j] = moved; \
        } \
    } \
    static void var_finish_##sfx(const state *s, void *out, int64_t width, const tn_cell *attrs) { \
        const double *m2 = s->b; \
        double divisor = (double)s->n - attrs[2].v.f64; \
        for (int64_t j = 0; j < width; j++) \
            ((T *)out)[j] = (T)(m2[j] / (divisor > 0 ? divisor : 0)); \
    } \
    static const reducer var_##sfx = {var_rows_##sfx, var_columns_##sfx, var_merge, \
                                      var_finish_##sfx};

static void var_merge(state *into, const state *from, int64_t width) {
    for (int64_t j = 0; j < width; j++)
        var_add(into, j, (double)from->n, ((double *)from->a)[j], ((double *)from->b)[j]);
    into->n += from->n;
}
VAR(f32, float)
VAR(f64, double)

/* ---- one call ---------------------------------------------------------------------------- */

typedef struct reduction {
    const reducer *op;
    const tn_cell *attrs;
    tnc_plan kept;    /* input, output */
    tnc_plan reduced; /* input, from the address of an output's first element */
    bool by_columns;
    int64_t width; /* outputs of a group: GROUP by columns, 1 by rows */
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
    tnc_plan_add_view(&r->kept, in);
    tnc_plan_add_view(&r->kept, out);
    tnc_plan_add_view(&r->reduced, in);
    for (int d = 0; d < in->rank; d++)
        (is_reduced(call, d) ? r->kept.sizes : r->reduced.sizes)[d] = 1;
    r->reduced.numel = in->numel / out->numel;
    bool needs_order = in->rank > 0 && call->args[1].tag == TN_CELL_I64; /* the index is a result */
    tnc_plan_finish(&r->kept, true);
    tnc_plan_finish(&r->reduced, !needs_order);

    const tnc_plan *k = &r->kept, *d = &r->reduced;
    int64_t run = k->sizes[k->rank - 1];
    r->by_columns = run >= SHORT_COLUMNS && d->numel > 1 &&
                    k->operands[0].strides[k->rank - 1] < d->operands[0].strides[d->rank - 1];
    r->width = r->by_columns ? tnc_min(GROUP, run) : 1;
    r->n_groups = k->numel / run * tnc_ceil_div(run, r->width);
    r->chunk = tnc_max(tnc_max(CHUNK / r->width, 1), tnc_ceil_div(d->numel, MAX_CHUNKS));
    if (r->n_groups >= ENOUGH_GROUPS)
        r->chunk = d->numel;
    r->n_chunks = tnc_ceil_div(d->numel, r->chunk);
    r->state_bytes = (int64_t)sizeof(state) + 16 * r->width;
}

/* The state that lives at p. */
static state *state_at(char *p, int64_t width) {
    state *s = (state *)p;
    *s = (state){.n = 0, .a = s + 1, .b = (double *)(s + 1) + width};
    return s;
}

/* Adds elements [begin, end) of the reduced range. `at` is where the group stands in the kept plan,
 * `width` how many outputs it has. */
static void reduce_chunk(const reduction *r, const int64_t *at, int64_t width, int64_t begin,
                         int64_t end, state *s) {
    const tnc_plan *k = &r->kept, *d = &r->reduced;
    const tnc_operand *in = &d->operands[0];
    const tnc_operand *kept = &k->operands[0];
    _Alignas(64) char block[TNC_BLOCK * 8];
    int64_t where[TN_MAX_RANK], n;
    int inner = d->rank - 1;
    const char *group = tnc_plan_address(k, kept, at);
    if (r->by_columns) {
        int64_t stride = kept->strides[k->rank - 1];
        bool direct = stride == kept->item && kept->cell == kept->item;
        for (int64_t i = begin; i < end; i++) {
            const char *x = group;
            int64_t rest = i;
            for (int e = inner; e > 0; e--) {
                x += rest % d->sizes[e] * in->strides[e];
                rest /= d->sizes[e];
            }
            x += rest * in->strides[0];
            if (!direct)
                tnc_gather_run(block, x, stride, width, kept->dtype);
            r->op->columns(s, direct ? x : block, width, i);
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
            n = tnc_min(TNC_BLOCK, end - i);
            tnc_plan_move(d, &moved, where, block, n, false);
            r->op->rows(s, block, n, i);
        }
    }
}

/* Where group g stands, and how many outputs it has. */
static int64_t locate(const reduction *r, int64_t g, int64_t *at) {
    const tnc_plan *k = &r->kept;
    int64_t run = k->sizes[k->rank - 1], per_run = tnc_ceil_div(run, r->width);
    int64_t first = g % per_run * r->width;
    tnc_plan_seek(k, g / per_run * run + first, at);
    return tnc_min(r->width, run - first);
}

static void finish(const reduction *r, const int64_t *at, int64_t width, const state *s) {
    _Alignas(64) char block[GROUP * 8];
    r->op->finish(s, block, width, r->attrs);
    tnc_plan_move(&r->kept, &r->kept.operands[1], at, block, width, true);
}

static void reduce_tasks(void *context, int64_t begin, int64_t end, int slot) {
    const reduction *r = context;
    (void)slot;
    _Alignas(64) char own[sizeof(state) + 16 * GROUP];
    int64_t at[TN_MAX_RANK];
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % r->n_chunks * r->chunk;
        int64_t width = locate(r, t / r->n_chunks, at);
        state *s = state_at(r->n_chunks > 1 ? r->states + t * r->state_bytes : own, r->width);
        reduce_chunk(r, at, width, first, tnc_min(first + r->chunk, r->reduced.numel), s);
        if (r->n_chunks == 1)
            finish(r, at, width, s);
    }
}

static tn_status run(const tn_call *call) {
    reduction r = {.op = call->user, .attrs = call->args};
    plan(call, &r);
    r.states = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    int64_t task = r.width * tnc_min(r.chunk, r.reduced.numel);
    tnc_parallel(r.n_groups * r.n_chunks, tnc_max(1, TNC_GRAIN / task), TNC_MAX_SLOTS, reduce_tasks,
                 &r);
    if (r.n_chunks > 1)
        for (int64_t g = 0; g < r.n_groups; g++) {
            int64_t at[TN_MAX_RANK], width = locate(&r, g, at);
            char *states = r.states + g * r.n_chunks * r.state_bytes;
            for (int64_t c = 1; c < r.n_chunks; c++)
                r.op->merge((state *)states, (const state *)(states + c * r.state_bytes), width);
            finish(&r, at, width, (const state *)states);
        }
    return TN_OK;
}

static tn_status workspace(const tn_call *call, uint64_t *out_bytes) {
    reduction r;
    plan(call, &r);
    *out_bytes = r.n_chunks > 1 ? (uint64_t)(r.n_groups * r.n_chunks * r.state_bytes) : 0;
    return TN_OK;
}

#define REDUCTION(op, DT, reducer_, ...) \
    TNC_KERNEL(op, TN_DTYPE_BIT(TN_##DT), TNC_FLAGS_STRIDED, run, .workspace = workspace, \
               .user = (void *)&reducer_)

/* The kernel operator and the name its reducers go by here. */
#define FLOATS(op, name) \
    REDUCTION(op, F32, name##_f32), REDUCTION(op, F64, name##_f64), \
        REDUCTION(op, F16, name##_f32), REDUCTION(op, BF16, name##_f32)
#define NUMBERS(op, name) \
    FLOATS(op, name), REDUCTION(op, I8, name##_i8), REDUCTION(op, I16, name##_i16), \
        REDUCTION(op, I32, name##_i32), REDUCTION(op, I64, name##_i64), \
        REDUCTION(op, U8, name##_u8)

static const tn_kernel records[] = {
    NUMBERS(sum, sum),
    NUMBERS(prod, prod),
    NUMBERS(amax, max),
    NUMBERS(amin, min),
    NUMBERS(argmax, argmax),
    NUMBERS(argmin, argmin),
    FLOATS(var, var),
    REDUCTION(amax, BOOL, max_u8),
    REDUCTION(amin, BOOL, min_u8),
    REDUCTION(argmax, BOOL, argmax_u8),
    REDUCTION(argmin, BOOL, argmin_u8),
};
TNC_PUBLISH(reduce, records);
