/* Attention (Vaswani et al., 2017), and its gradients, with all scores. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* Sizes of a call, and what its scores are made of. */
typedef struct scene {
    int64_t b, h, g, l, s, e, v;
    const tc_number *query, *key, *value;
    const tc_value *mask;
    bool causal;
    bool finite; /* all that is summed up with weights */
    tc_real scale, u;
    tc_real narrow; /* of a weight that is rounded to T, relative */
    tc_real tiny;   /* the same of the least numbers */
    tc_real ulps;
} scene;

static bool is_finite(const tc_operand *o) {
    for (int64_t i = 0; i < o->shape.numel; i++)
        if (!isfinite(o->values[i].f))
            return false;
    return true;
}

static scene scene_of(const tc_invocation *call, int query, int mask, int causal, int scale) {
    const tc_shape *q = &call->args[query].tensor.shape, *k = &call->args[query + 1].tensor.shape;
    tn_dtype dtype = call->types[0];
    bool half = dtype == TN_F16 || dtype == TN_BF16;
    return (scene){
        .b = q->sizes[0],
        .h = q->sizes[1],
        .g = k->sizes[1],
        .l = q->sizes[2],
        .s = k->sizes[2],
        .e = q->sizes[3],
        .v = call->args[query + 2].tensor.shape.sizes[3],
        .query = tc_in(call, query),
        .key = tc_in(call, query + 1),
        .value = tc_in(call, query + 2),
        .mask = &call->args[mask],
        .causal = call->args[causal].boolean,
        .finite = is_finite(&call->args[query].tensor) &&
                  is_finite(&call->args[query + 1].tensor) &&
                  is_finite(&call->args[query + 2].tensor),
        .scale = (tc_real)call->args[scale].f,
        .u = tc_u(call),
        .narrow = half ? tc_spacing(dtype, 1) / 2 : 0,
        .tiny = tc_smallest_normal(dtype == TN_F64 ? TN_F64 : TN_F32) +
                (half ? tc_spacing(dtype, 0) / 2 : 0),
        .ulps = (tc_real)call->record->ulps,
    };
}

/* Of query i of head h of batch b: place in [B, H, L], and of key j in [B, G, S]. */
static int64_t query_at(const scene *c, int64_t b, int64_t h, int64_t i) {
    return (b * c->h + h) * c->l + i;
}

static int64_t key_at(const scene *c, int64_t b, int64_t h, int64_t j) {
    return (b * c->g + h / (c->h / c->g)) * c->s + j;
}

/* A product of two rows of n, and how far it may be off. */
static tc_real row_product(const scene *c, const tc_number *x, const tc_number *y, int64_t n,
                           tc_real *out_off) {
    tc_real sum = 0, magnitude = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += x[k].f * y[k].f;
        magnitude += fabsl(x[k].f * y[k].f);
    }
    *out_off = (tc_real)(n + 3) * c->u * magnitude;
    return sum;
}

static tc_real score(const scene *c, int64_t b, int64_t h, int64_t i, int64_t j, tc_real *out_off) {
    int64_t row = query_at(c, b, h, i);
    if (c->causal && j > i) {
        *out_off = 0;
        return -INFINITY;
    }
    tc_real x =
        row_product(c, c->query + row * c->e, c->key + key_at(c, b, h, j) * c->e, c->e, out_off);
    tc_real added = c->mask->none ? 0 : c->mask->tensor.values[row * c->s + j].f;
    if (added == -INFINITY) { /* hides it, whatever it is */
        *out_off = 0;
        return -INFINITY;
    }
    *out_off = fabsl(c->scale) * *out_off + 2 * c->u * (fabsl(c->scale * x) + fabsl(added));
    if (!isfinite(*out_off))
        *out_off = 0;
    return c->scale * x + added;
}

/* ---- forward ----------------------------------------------------------------------------- */

enum { MOST_KEYS = 8192 };

/* One query: weights [s], how far each may be off relatively, and log(sum(exp)). */
typedef struct row {
    tc_real weight[MOST_KEYS], off[MOST_KEYS], logsumexp, logsumexp_off;
} row;

static void soften(const scene *c, int64_t b, int64_t h, int64_t i, row *r) {
    tc_real most = -INFINITY, sum = 0, spread = 0;
    for (int64_t j = 0; j < c->s; j++) {
        r->weight[j] = score(c, b, h, i, j, &r->off[j]);
        most = isnan(most) || r->weight[j] <= most ? most : r->weight[j];
    }
    if (most == -INFINITY) { /* sees none */
        for (int64_t j = 0; j < c->s; j++)
            r->weight[j] = r->off[j] = 0;
        r->logsumexp = -INFINITY;
        r->logsumexp_off = 0;
        return;
    }
    for (int64_t j = 0; j < c->s; j++) {
        tc_real x = r->weight[j];
        r->weight[j] = expl(x - most);
        sum += r->weight[j];
        if (x != -INFINITY)
            r->off[j] += c->u * (2 * fabsl(x) + 2 * fabsl(most));
    }
    for (int64_t j = 0; j < c->s; j++) {
        r->weight[j] /= sum;
        spread += r->weight[j] * r->off[j];
    }
    spread += c->u * ((tc_real)c->s + 4 + 2 * c->ulps);
    for (int64_t j = 0; j < c->s; j++)
        r->off[j] += spread + c->u * (2 * c->ulps + 4) + c->narrow;
    r->logsumexp = most + logl(sum);
    r->logsumexp_off = spread + c->u * (2 * fabsl(most) + (2 * c->ulps + 2) * (1 + logl(sum)));
}

/* Adds weight * x to sums, from `at` on, for each of n x. What a weight of 0 multiplies need not count;
 * where that is a slope, which may then be NaN, it is off by infinity. */
static void add(tc_expected *e, int64_t at, tc_real weight, tc_real off, const tc_number *x,
                int64_t n) {
    bool known = isfinite(off);
    for (int64_t k = 0; k < n; k++) {
        tc_real y = x[k].f;
        e->tensor.values[at + k].f += weight * y;
        if (known && isfinite(y))
            e->rounding[at + k] += off * fabsl(y);
        else if (weight == 0)
            e->error[at + k] = INFINITY;
    }
}

void tc_reference_flash_attention(tc_invocation *call) {
    static row r;
    scene c = scene_of(call, TN_ARG_flash_attention_query, TN_ARG_flash_attention_attn_mask,
                       TN_ARG_flash_attention_is_causal, TN_ARG_flash_attention_scale);
    for (int64_t at = 0; at < c.b * c.h * c.l; at++) {
        int64_t i = at % c.l, h = at / c.l % c.h, b = at / c.l / c.h;
        soften(&c, b, h, i, &r);
        tc_out(call, 1)[at].f = r.logsumexp;
        call->outs[1].rounding[at] = isfinite(r.logsumexp) ? r.logsumexp_off : 0;
        for (int64_t j = 0; j < c.s; j++) {
            if (r.weight[j] == 0 && c.finite)
                continue;
            add(&call->outs[0], at * c.v, r.weight[j],
                r.weight[j] * (r.off[j] + c.u * (tc_real)(c.s + 4)) +
                    (r.weight[j] > 0 ? c.tiny : 0),
                c.value + key_at(&c, b, h, j) * c.v, c.v);
        }
    }
}

/* ---- backward ---------------------------------------------------------------------------- */

/* A number and how far it may be off. */
typedef struct about {
    tc_real x, off;
} about;

/* What query i gives by key j: the weight, and the slope of the score. */
static void pair(const scene *c, int64_t b, int64_t h, int64_t i, int64_t j, tc_real logsumexp,
                 const tc_number *grad, about mean, about *weight, about *slope) {
    tc_real off;
    tc_real x = score(c, b, h, i, j, &off);
    *weight = *slope = (about){0, 0};
    bool none = logsumexp == -INFINITY || x == -INFINITY;
    weight->x = none ? 0 : expl(x - logsumexp);
    about y;
    y.x = row_product(c, grad, c->value + key_at(c, b, h, j) * c->v, c->v, &y.off);
    if (none) {
        slope->off = isfinite(y.x - mean.x) ? 0 : INFINITY;
        return;
    }
    off += c->u * (2 * fabsl(x) + 2 * fabsl(logsumexp) + 2 * c->ulps + 4);
    weight->off = weight->x * (off + c->narrow) + c->tiny;
    slope->x = weight->x * (y.x - mean.x);
    slope->off = weight->x * (y.off + mean.off + 2 * c->u * (fabsl(y.x) + fabsl(mean.x))) +
                 fabsl(slope->x) * (off + c->narrow + 2 * c->u) +
                 c->tiny * (1 + fabsl(y.x) + fabsl(mean.x));
}

void tc_reference_flash_attention_backward(tc_invocation *call) {
    scene c = scene_of(
        call, TN_ARG_flash_attention_backward_query, TN_ARG_flash_attention_backward_attn_mask,
        TN_ARG_flash_attention_backward_is_causal, TN_ARG_flash_attention_backward_scale);
    const tc_number *grads = tc_in(call, TN_ARG_flash_attention_backward_grad_output);
    const tc_number *output = tc_in(call, TN_ARG_flash_attention_backward_output);
    const tc_number *sums = tc_in(call, TN_ARG_flash_attention_backward_logsumexp);
    c.finite = c.finite &&
               is_finite(&call->args[TN_ARG_flash_attention_backward_grad_output].tensor) &&
               is_finite(&call->args[TN_ARG_flash_attention_backward_output].tensor);
    int64_t queries = c.l * (c.h / c.g); /* of a key, in all heads that share it */
    tc_real by_key = c.u * (tc_real)(c.s + 6), by_query = c.u * (tc_real)(queries + 6);
    for (int64_t at = 0; at < c.b * c.h * c.l; at++) {
        int64_t i = at % c.l, h = at / c.l % c.h, b = at / c.l / c.h;
        const tc_number *grad = grads + at * c.v;
        about mean, weight, slope;
        mean.x = row_product(&c, grad, output + at * c.v, c.v, &mean.off);
        for (int64_t j = 0; j < c.s; j++) {
            if (c.causal && j > i && c.finite) /* gives nothing */
                break;
            int64_t key = key_at(&c, b, h, j);
            pair(&c, b, h, i, j, sums[at].f, grad, mean, &weight, &slope);
            tc_real size = fabsl(c.scale), x = c.scale * slope.x;
            add(&call->outs[0], at * c.e, x, size * (slope.off + by_key * fabsl(slope.x)),
                c.key + key * c.e, c.e);
            add(&call->outs[1], key * c.e, x, size * (slope.off + by_query * fabsl(slope.x)),
                c.query + at * c.e, c.e);
            add(&call->outs[2], key * c.v, weight.x, weight.off + by_query * weight.x, grad, c.v);
        }
    }
}
