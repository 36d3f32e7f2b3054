/* einsum: sums of products, told by subscripts. Operands are contracted two by two, each time as
 * one product of matrices where something is summed, and as a pointwise product where nothing
 * is. All of it is other operators, and autograd looks through them. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <string.h>

/* A label is a letter, or a dimension that an ellipsis stands for, counted from its last. */
enum { N_LETTERS = 52, N_LABELS = N_LETTERS + TN_MAX_RANK, ELLIPSIS = N_LABELS, NO_LABEL = -1 };

/* Subscripts as they are written; a label for each dimension once the ellipsis is spread. */
typedef struct labels {
    int32_t n;
    int8_t at[TN_MAX_RANK + 1];
} labels;

typedef struct operand {
    tn_tensor *t; /* borrowed */
    labels of;
} operand;

typedef struct einsum {
    const char *equation;
    operand *operands; /* of tni_alloc */
    uint32_t n;
    labels out;
    int64_t sizes[N_LABELS]; /* of each label, broadcast; -1 where no operand has it */
    uint32_t uses[N_LABELS]; /* operands that have it, and the result */
} einsum;

/* ---- reading ----------------------------------------------------------------------------- */

static tn_status fail_at(const einsum *e, const char *at, const char *why) {
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_einsum: equation '%s', place %lld: %s",
                    e->equation, (long long)(at - e->equation), why);
}

/* Capitals come first where the order is alphabetical. */
static int label_of(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : NO_LABEL;
}

/* Letters, and at most one ellipsis, up to what ends a term. */
static tn_status read_term(const einsum *e, const char **at, labels *out) {
    bool has_ellipsis = false;
    out->n = 0;
    for (;; ++*at) {
        int label = label_of(**at);
        if (**at == ' ')
            continue;
        if (**at == '.') {
            if (strncmp(*at, "...", 3) != 0)
                return fail_at(e, *at, "a dot that is no part of '...'");
            if (has_ellipsis)
                return fail_at(e, *at, "a second '...' in one term");
            has_ellipsis = true;
            *at += 2;
            label = ELLIPSIS;
        }
        if (label == NO_LABEL)
            return TN_OK;
        if (out->n == TN_MAX_RANK + has_ellipsis)
            return fail_at(e, *at, "more subscripts than a tensor has dimensions");
        out->at[out->n++] = (int8_t)label;
    }
}

static int32_t place_of(const labels *of, int label) {
    for (int32_t i = 0; i < of->n; i++)
        if (of->at[i] == label)
            return i;
    return -1;
}

/* The `n` dimensions of the ellipsis in its place. Room is left by the caller. */
static void spread(labels *of, int32_t n) {
    int32_t place = place_of(of, ELLIPSIS);
    labels wide = {0};
    for (int32_t i = 0; i < of->n; i++) {
        if (i != place)
            wide.at[wide.n++] = of->at[i];
        for (int32_t k = 0; i == place && k < n; k++)
            wide.at[wide.n++] = (int8_t)(N_LETTERS + n - 1 - k);
    }
    *of = wide;
}

static char letter_of(int label) {
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

/* Fits the labels of operand i to its tensor, and notes the sizes. */
static tn_status fit_operand(einsum *e, uint32_t i) {
    operand *o = &e->operands[i];
    bool has_ellipsis = place_of(&o->of, ELLIPSIS) >= 0;
    int32_t rank = o->t->view.rank, hidden = rank - o->of.n + has_ellipsis;
    if (hidden < 0 || (hidden > 0 && !has_ellipsis))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_einsum: equation '%s' has %d subscripts for tensor %u, whose shape is "
                        "%s; '...' stands for dimensions without",
                        e->equation, o->of.n - has_ellipsis, i,
                        TNI_SHAPE_OF_SIZES(rank, o->t->sizes));
    spread(&o->of, hidden);
    for (int32_t d = 0; d < rank; d++) {
        int label = o->of.at[d];
        int32_t first = place_of(&o->of, label);
        int64_t size = o->t->sizes[d], *known = &e->sizes[label];
        e->uses[label] += first == d;
        if ((first < d && o->t->sizes[first] != size) ||
            (*known >= 0 && *known != 1 && size != 1 && *known != size)) {
            char name[] = {letter_of(label), 0};
            return tni_fail(TN_ERR_SHAPE,
                            "tn_einsum: equation '%s': '%s' is %lld in tensor %u of shape %s, but "
                            "%lld elsewhere",
                            e->equation, label < N_LETTERS ? name : "...", (long long)size, i,
                            TNI_SHAPE_OF_SIZES(rank, o->t->sizes),
                            (long long)(first < d ? o->t->sizes[first] : *known));
        }
        if (*known < 0 || *known == 1)
            *known = size;
    }
    return TN_OK;
}

/* The result's subscripts: those after the arrow, each once. */
static tn_status read_result(einsum *e, const char *at, int32_t n_hidden) {
    const char *start = at;
    TNI_TRY(read_term(e, &at, &e->out));
    if (*at)
        return fail_at(e, at, "a result has letters and '...' alone");
    for (int32_t i = 0; i < e->out.n; i++) {
        int label = e->out.at[i];
        if (place_of(&e->out, label) < i)
            return fail_at(e, start, "the result has a subscript twice");
        if (label != ELLIPSIS && e->sizes[label] < 0)
            return fail_at(e, start, "the result has a subscript that no tensor has");
    }
    bool has_ellipsis = place_of(&e->out, ELLIPSIS) >= 0;
    if (e->out.n + (has_ellipsis ? n_hidden - 1 : 0) > TN_MAX_RANK)
        return fail_at(e, start, "the result has more dimensions than a tensor can");
    spread(&e->out, n_hidden);
    return TN_OK;
}

/* Without an arrow: the ellipsis, then what stands once, in alphabetical order. */
static tn_status imply_result(einsum *e, const char *end, const uint32_t *written,
                              int32_t n_hidden) {
    e->out.n = 0;
    for (int32_t k = n_hidden; k-- > 0;)
        e->out.at[e->out.n++] = (int8_t)(N_LETTERS + k);
    for (int label = 0; label < N_LETTERS; label++) {
        if (written[label] != 1)
            continue;
        if (e->out.n == TN_MAX_RANK)
            return fail_at(e, end, "the result has more dimensions than a tensor can");
        e->out.at[e->out.n++] = (int8_t)label;
    }
    return TN_OK;
}

static tn_status read_equation(einsum *e) {
    uint32_t written[N_LABELS + 1] = {0};
    int32_t n_hidden = 0;
    const char *at = e->equation;
    for (uint32_t i = 0; i < e->n; i++) {
        labels *of = &e->operands[i].of;
        tn_status status = read_term(e, &at, of);
        if (status != TN_OK)
            return status;
        bool is_last = i + 1 == e->n;
        if (is_last ? *at && strncmp(at, "->", 2) != 0 : *at != ',')
            return fail_at(e, at,
                           *at == ',' ? "more terms than tensors"
                           : !*at || strncmp(at, "->", 2) == 0
                               ? "fewer terms than tensors"
                               : "expected a letter, '...', ',' or '->'");
        at += !is_last;
        for (int32_t k = 0; k < of->n; k++)
            written[(int)of->at[k]]++;
        if ((status = fit_operand(e, i)) != TN_OK)
            return status;
    }
    while (n_hidden < TN_MAX_RANK && e->sizes[N_LETTERS + n_hidden] >= 0)
        n_hidden++;
    tn_status status =
        *at ? read_result(e, at + 2, n_hidden) : imply_result(e, at, written, n_hidden);
    for (int32_t i = 0; status == TN_OK && i < e->out.n; i++)
        e->uses[(int)e->out.at[i]]++;
    return status;
}

/* ---- one operand ------------------------------------------------------------------------- */

static void forget(labels *of, int32_t place) {
    memmove(of->at + place, of->at + place + 1, (size_t)(of->n - place - 1));
    of->n--;
}

/* Diagonals in place of labels that stand twice. */
static operand without_repeats(tni_temps *tmp, operand o) {
    for (int32_t d = o.of.n - 1; d > 0 && o.t; d--) {
        int32_t first = place_of(&o.of, o.of.at[d]);
        if (first == d)
            continue;
        o.t = tni_own(tmp, tni_diagonal(o.t, 0, first, d)); /* which is the last dimension then */
        int8_t label = o.of.at[d];
        forget(&o.of, d);
        forget(&o.of, first);
        o.of.at[o.of.n++] = label;
        d = o.of.n;
    }
    return o;
}

/* Sums over what nobody uses any more. */
static operand without_unused(tni_temps *tmp, const uint32_t *uses, operand o, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], n = 0;
    labels kept = {0};
    for (int32_t d = 0; d < o.of.n; d++) {
        if (uses[(int)o.of.at[d]] > 0)
            kept.at[kept.n++] = o.of.at[d];
        else
            dims[n++] = d;
    }
    if (n > 0)
        o.t = tni_own(tmp, tni_sum_dim(o.t, tn_ints_of(dims, (uint64_t)n), false, dtype));
    o.of = kept;
    return o;
}

/* The dimensions in the order of `order`, whose labels the operand has. */
static tn_tensor *ordered(tni_temps *tmp, const operand *o, const labels *order) {
    int64_t dims[TN_MAX_RANK];
    for (int32_t i = 0; i < order->n; i++)
        dims[i] = place_of(&o->of, order->at[i]);
    return tni_own(tmp, tni_permute(o->t, tn_ints_of(dims, (uint64_t)order->n)));
}

/* ---- two operands ------------------------------------------------------------------------ */

/* Takes from x the dimensions of size 1 that y has longer: they broadcast. */
static operand without_ones(tni_temps *tmp, operand x, const operand *y, uint32_t *uses) {
    for (int32_t d = x.of.n; d-- > 0 && x.t;) {
        int label = x.of.at[d];
        int32_t there = place_of(&y->of, label);
        if (there < 0 || x.t->sizes[d] == y->t->sizes[there] || x.t->sizes[d] != 1)
            continue;
        x.t = tni_own(tmp, tni_squeeze_dim(x.t, d));
        forget(&x.of, d);
        uses[label]--;
    }
    return x;
}

/* What two operands have in common and apart: [both.., x alone.., y alone..] is what comes of
 * them, and `inner` is summed. */
typedef struct sides {
    labels both, inner, x, y;
} sides;

static sides sides_of(const operand *x, const operand *y, const uint32_t *uses) {
    sides s = {0};
    for (int32_t d = 0; d < x->of.n; d++) {
        int8_t label = x->of.at[d];
        labels *to = place_of(&y->of, label) < 0 ? &s.x : uses[(int)label] > 2 ? &s.both : &s.inner;
        to->at[to->n++] = label;
    }
    for (int32_t d = 0; d < y->of.n; d++)
        if (place_of(&x->of, y->of.at[d]) < 0)
            s.y.at[s.y.n++] = y->of.at[d];
    return s;
}

static void append(labels *to, const labels *more) {
    memcpy(to->at + to->n, more->at, (size_t)more->n);
    to->n += more->n;
}

static int64_t product_of(const operand *o, const labels *of) {
    int64_t n = 1; /* of sizes of one tensor that has elements, else of no matter */
    for (int32_t i = 0; i < of->n; i++)
        if (!tni_mul_i64(n, o->t->sizes[place_of(&o->of, of->at[i])], &n))
            return 0;
    return n;
}

/* x as [first, second, third], each of them some of its dimensions. */
static tn_tensor *as_batch(tni_temps *tmp, const operand *o, const labels *first,
                           const labels *second, const labels *third) {
    labels order = *first;
    append(&order, second);
    append(&order, third);
    return tni_own(tmp, tni_reshape(ordered(tmp, o, &order),
                                    TN_SHAPE(product_of(o, first), product_of(o, second),
                                             product_of(o, third))));
}

/* x with its dimensions `first` and `second`, and `before` or `after` of size 1 round the
 * second. */
static tn_tensor *spaced(tni_temps *tmp, const operand *o, const labels *first,
                         const labels *second, int32_t before, int32_t after) {
    labels order = *first;
    append(&order, second);
    int64_t sizes[TN_MAX_RANK];
    int32_t n = 0;
    for (int32_t i = 0; i < order.n + before + after; i++) {
        int32_t k = i < first->n ? i : i - before;
        bool is_one = (i >= first->n && i < first->n + before) || k >= order.n;
        sizes[n++] = is_one ? 1 : o->t->sizes[place_of(&o->of, order.at[k])];
    }
    return tni_own(tmp, tni_reshape(ordered(tmp, o, &order), tn_ints_of(sizes, (uint64_t)n)));
}

static operand contracted(const einsum *e, tni_temps *tmp, operand x, operand y, uint32_t *uses) {
    operand none = {0}, out = {0};
    x = without_ones(tmp, x, &y, uses);
    y = x.t ? without_ones(tmp, y, &x, uses) : none;
    if (!x.t || !y.t)
        return none;
    /* a label of x or y alone is unused when nothing else counts it */
    uint32_t others[N_LABELS];
    for (int label = 0; label < N_LABELS; label++) {
        uint32_t here = (place_of(&x.of, label) >= 0) + (place_of(&y.of, label) >= 0);
        others[label] = here == 1 ? uses[label] - 1 : uses[label];
    }
    x = without_unused(tmp, others, x, x.t->view.dtype);
    y = without_unused(tmp, others, y, y.t->view.dtype);
    if (!x.t || !y.t)
        return none;
    sides s = sides_of(&x, &y, uses);
    int32_t rank = s.both.n + s.x.n + s.y.n;
    if (rank > TN_MAX_RANK) {
        tni_fail(TN_ERR_SHAPE,
                 "tn_einsum: equation '%s' has a product of two tensors of %d dimensions, more "
                 "than the %d of a tensor; another path may have fewer",
                 e->equation, rank, TN_MAX_RANK);
        return none;
    }
    out.of = s.both;
    append(&out.of, &s.x);
    append(&out.of, &s.y);
    for (int32_t i = 0; i < s.both.n; i++)
        uses[(int)s.both.at[i]]--; /* one operand in place of two */
    for (int32_t i = 0; i < s.inner.n; i++)
        uses[(int)s.inner.at[i]] -= 2;
    if (s.inner.n == 0) {
        tn_tensor *a = spaced(tmp, &x, &s.both, &s.x, 0, s.y.n);
        out.t = tni_own(tmp, tni_mul(a, spaced(tmp, &y, &s.both, &s.y, s.x.n, 0)));
        return out;
    }
    int64_t sizes[TN_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) {
        const operand *o = i < s.both.n + s.x.n ? &x : &y;
        sizes[i] = o->t->sizes[place_of(&o->of, out.of.at[i])];
    }
    tn_tensor *a = as_batch(tmp, &x, &s.both, &s.x, &s.inner);
    tn_tensor *product = tni_own(tmp, tni_bmm(a, as_batch(tmp, &y, &s.both, &s.inner, &s.y)));
    out.t = tni_own(tmp, tni_reshape(product, tn_ints_of(sizes, (uint64_t)rank)));
    return out;
}

/* ---- all of them ------------------------------------------------------------------------- */

static tn_status check_path(const einsum *e, tn_ints path) {
    if (path.n < 0 || (e->n == 1 && path.n <= 1))
        return TN_OK;
    bool fits = path.n == 2 * ((int64_t)e->n - 1);
    for (int64_t i = 0; i + 1 < path.n && fits; i += 2) {
        int64_t n = e->n - i / 2, a = path.data[i], b = path.data[i + 1];
        fits = a >= 0 && b >= 0 && a < n && b < n && a != b;
    }
    return fits ? TN_OK
                : tni_fail(TN_ERR_INVALID_ARGUMENT,
                           "tn_einsum: path must name two tensors for each of the %u products, of "
                           "those that are left, where the last product comes last",
                           e->n - 1);
}

/* Takes operand i out of the list. */
static operand taken(einsum *e, int64_t i) {
    operand o = e->operands[i];
    memmove(e->operands + i, e->operands + i + 1, (e->n - (size_t)i - 1) * sizeof o);
    e->n--;
    return o;
}

static tn_tensor *sum_of_products(einsum *e, tni_temps *tmp, tn_ints path) {
    bool is_long = e->n > 2; /* several steps, which halves would be rounded at */
    for (uint32_t i = 0; i < e->n; i++) {
        if (is_long)
            e->operands[i].t = tni_widened(tmp, e->operands[i].t);
        e->operands[i] = without_repeats(tmp, e->operands[i]);
        if (!e->operands[i].t)
            return NULL;
    }
    for (int64_t step = 0; e->n > 1; step++) {
        int64_t a = path.n < 0 ? 0 : path.data[2 * step];
        int64_t b = path.n < 0 ? 1 : path.data[2 * step + 1];
        operand y = taken(e, a > b ? a : b), x = taken(e, a > b ? b : a);
        operand product = contracted(e, tmp, x, y, e->uses);
        if (!product.t)
            return NULL;
        int64_t place = path.n < 0 ? 0 : e->n; /* without a path from left to right */
        memmove(e->operands + place + 1, e->operands + place, (e->n - (size_t)place) * sizeof x);
        e->operands[place] = product;
        e->n++;
    }
    operand last = e->operands[0];
    uint32_t in_result[N_LABELS] = {0};
    for (int32_t i = 0; i < e->out.n; i++)
        in_result[(int)e->out.at[i]] = 1;
    last = without_unused(tmp, in_result, last, TN_DTYPE_NONE);
    return last.t ? ordered(tmp, &last, &e->out) : NULL;
}

/* einsum(equation, tensors, path) */
tn_status tni_run_einsum(const tn_cell *args, tn_cell *rets) {
    einsum e = {.equation = args[0].v.string};
    tn_tensor *const *tensors = tni_arg_tensors(&args[1], &e.n);
    if (e.n == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_einsum: there is no tensor");
    for (int label = 0; label < N_LABELS; label++)
        e.sizes[label] = -1;
    e.operands = tni_calloc(e.n, sizeof *e.operands);
    if (!e.operands)
        return tni_fail_memory("the operands of tn_einsum");
    for (uint32_t i = 0; i < e.n; i++)
        e.operands[i].t = tensors[i];
    tn_dtype dtype = tensors[0]->view.dtype;
    tni_temps tmp = {0};
    tn_tensor *result = NULL;
    if (read_equation(&e) == TN_OK && check_path(&e, tni_arg_ints(&args[2])) == TN_OK)
        result = sum_of_products(&e, &tmp, tni_arg_ints(&args[2]));
    tni_free(e.operands);
    if (result && tni_is_half(dtype) && result->view.dtype == TN_F32)
        result = tni_as_dtype(&tmp, result, dtype);
    return tni_temps_return(&tmp, result, rets);
}
