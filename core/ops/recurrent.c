/* Recurrent cells, and layers of them: networks with a memory. Everything is other operators,
 * and autograd looks through them. What the input says is one product for all steps; a step has
 * the product of its state alone. Halves pass through as f32 and are rounded in the results. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <stdio.h>

typedef enum mode { RNN_TANH, RNN_RELU, LSTM, GRU } mode;

/* As the table names it. */
static mode mode_of(const char *name) {
    return *name == 'l' ? LSTM : *name == 'g' ? GRU : *name == 't' ? RNN_TANH : RNN_RELU;
}

/* How many blocks of [hidden, ...] the weights of a cell have. */
static int64_t gates_of(mode kind) {
    return kind == LSTM ? 4 : kind == GRU ? 3 : 1;
}

typedef struct weights {
    tn_tensor *w_ih, *w_hh; /* [gates * hidden, in], [gates * hidden, state] */
    tn_tensor *b_ih, *b_hh; /* [gates * hidden], or TN_NONE */
    tn_tensor *w_hr;        /* of an LSTM with projections [state, hidden], or TN_NONE */
} weights;

typedef struct state {
    tn_tensor *h, *c; /* [N, state]; of an LSTM [N, hidden], else NULL */
} state;

/* Of no matter where there was no memory for weights in f32. */
static int64_t hidden_of(mode kind, const weights *w) {
    return w->w_hh ? w->w_hh->sizes[0] / gates_of(kind) : 0;
}

/* ---- what is given ----------------------------------------------------------------------- */

static tn_status check_input(const char *call, const tn_tensor *input) {
    tn_dtype dtype = input->view.dtype;
    if (tni_is_float(dtype))
        return TN_OK;
    return tni_fail(TN_ERR_DTYPE, "%s: input is %s; it must be floating, cast with tn_to_dtype",
                    call, tn_dtype_name(dtype));
}

static tn_status check_dtype(const char *call, const char *name, const tn_tensor *t,
                             tn_dtype dtype) {
    if (t->view.dtype == dtype)
        return TN_OK;
    return tni_fail(TN_ERR_DTYPE, "%s: %s is %s; all tensors must have the dtype of input, %s",
                    call, name, tn_dtype_name(t->view.dtype), tn_dtype_name(dtype));
}

static tn_status check_sizes(const char *call, const char *name, const tn_tensor *t, tn_dtype dtype,
                             tn_ints sizes) {
    if (tni_not_tensor(t))
        return TN_OK;
    if (!tni_has_shape(t, (int32_t)sizes.n, sizes.data))
        return tni_fail(TN_ERR_SHAPE, "%s: %s must have shape %s, but has %s", call, name,
                        TNI_SHAPE_OF_INTS(sizes), TNI_SHAPE_OF(t));
    return check_dtype(call, name, t, dtype);
}

/* Do the weights fit each other and an input of `in` features? */
static tn_status check_weights(const char *call, mode kind, const weights *w, tn_dtype dtype,
                               int64_t in) {
    int64_t gates = gates_of(kind);
    if (w->w_hh->view.rank != 2 || w->w_hh->sizes[0] % gates != 0)
        return tni_fail(TN_ERR_SHAPE, "%s: w_hh must have shape [%s, state], but has %s", call,
                        gates == 4   ? "4 * hidden"
                        : gates == 3 ? "3 * hidden"
                                     : "hidden",
                        TNI_SHAPE_OF(w->w_hh));
    int64_t rows = w->w_hh->sizes[0], hidden = rows / gates, size = w->w_hh->sizes[1];
    if (w->w_hr == TN_NONE && size != hidden)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: w_hh has shape %s, so that there are %lld hidden features, but takes "
                        "a state of %lld",
                        call, TNI_SHAPE_OF_SIZES(2, w->w_hh->sizes), (long long)hidden,
                        (long long)size);
    TNI_TRY(check_dtype(call, "w_hh", w->w_hh, dtype));
    TNI_TRY(check_sizes(call, "w_ih", w->w_ih, dtype, TN_SHAPE(rows, in)));
    TNI_TRY(check_sizes(call, "b_ih", w->b_ih, dtype, TN_SHAPE(rows)));
    TNI_TRY(check_sizes(call, "b_hh", w->b_hh, dtype, TN_SHAPE(rows)));
    return check_sizes(call, "w_hr", w->w_hr, dtype, TN_SHAPE(size, hidden));
}

/* The same weights, of halves in f32. */
static weights widened(tni_temps *tmp, weights w) {
    tn_tensor **all[] = {&w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr};
    for (int i = 0; i < 5; i++)
        if (*all[i] != TN_NONE)
            *all[i] = tni_widened(tmp, *all[i]);
    return w;
}

/* A result, rounded where the input is of halves. */
static tn_tensor *narrowed(tni_temps *tmp, tn_tensor *t, const tn_tensor *input) {
    return tni_is_half(input->view.dtype) ? tni_as_dtype(tmp, t, input->view.dtype) : t;
}

/* ---- one step ---------------------------------------------------------------------------- */

/* What the input says, [..., gates * hidden]: all that does not depend on the state. The gates
 * of a GRU keep apart what comes of its state, which is multiplied by one of them. */
static tn_tensor *of_input(tni_temps *tmp, mode kind, const weights *w, tn_tensor *input) {
    tn_tensor *x = tni_own(tmp, tni_linear(input, w->w_ih, w->b_ih));
    return kind == GRU || w->b_hh == TN_NONE ? x : tni_then(tmp, tni_add(x, w->b_hh, tn_int(1)), x);
}

/* Blocks [first, first + n) of the gates. */
static tn_tensor *part(tni_temps *tmp, tn_tensor *gates, int64_t hidden, int64_t first, int64_t n) {
    return tni_own(tmp, tni_narrow(gates, -1, first * hidden, n * hidden));
}

/* reset, update = sigmoid(...), new = tanh(x + reset * h): update * (h - new) + new */
static state gru_step(tni_temps *tmp, const weights *w, tn_tensor *x, state s) {
    int64_t hidden = hidden_of(GRU, w);
    tn_tensor *from_state = tni_own(tmp, tni_linear(s.h, w->w_hh, w->b_hh));
    tn_tensor *both = tni_own(
        tmp, tni_add(part(tmp, x, hidden, 0, 2), part(tmp, from_state, hidden, 0, 2), tn_int(1)));
    both = tni_then(tmp, tni_sigmoid(both), both);
    tn_tensor *fresh =
        tni_own(tmp, tni_mul(part(tmp, both, hidden, 0, 1), part(tmp, from_state, hidden, 2, 1)));
    fresh = tni_then(tmp, tni_add(part(tmp, x, hidden, 2, 1), fresh, tn_int(1)), fresh);
    fresh = tni_then(tmp, tni_tanh(fresh), fresh);
    tn_tensor *h = tni_own(tmp, tni_sub(s.h, fresh, tn_int(1)));
    h = tni_then(tmp, tni_mul(h, part(tmp, both, hidden, 1, 1)), h);
    return (state){.h = tni_then(tmp, tni_add(h, fresh, tn_int(1)), h)};
}

/* input, forget, cell, output: c = forget * c + input * cell, h = output * tanh(c) */
static state lstm_step(tni_temps *tmp, const weights *w, tn_tensor *gates, state s) {
    int64_t hidden = hidden_of(LSTM, w);
    tn_tensor *both = tni_own(tmp, tni_sigmoid(part(tmp, gates, hidden, 0, 2)));
    tn_tensor *cell = tni_own(tmp, tni_tanh(part(tmp, gates, hidden, 2, 1)));
    tn_tensor *output = tni_own(tmp, tni_sigmoid(part(tmp, gates, hidden, 3, 1)));
    cell = tni_then(tmp, tni_mul(part(tmp, both, hidden, 0, 1), cell), cell);
    tn_tensor *c = tni_own(tmp, tni_mul(part(tmp, both, hidden, 1, 1), s.c));
    c = tni_then(tmp, tni_add(c, cell, tn_int(1)), c);
    tn_tensor *h = tni_own(tmp, tni_tanh(c));
    h = tni_then(tmp, tni_mul(output, h), h);
    if (w->w_hr != TN_NONE)
        h = tni_then(tmp, tni_linear(h, w->w_hr, TN_NONE), h);
    return (state){h, c};
}

/* The state after s; x [N, gates * hidden] is of_input of the step. */
static state step(tni_temps *tmp, mode kind, const weights *w, tn_tensor *x, state s) {
    if (kind == GRU)
        return gru_step(tmp, w, x, s);
    tn_tensor *turned = tni_own(tmp, tni_transpose(w->w_hh, 0, 1));
    x = tni_own(tmp, tni_addmm(x, s.h, turned, tn_int(1), tn_int(1)));
    if (kind == LSTM)
        return lstm_step(tmp, w, x, s);
    return (state){.h = tni_own(tmp, kind == RNN_TANH ? tni_tanh(x) : tni_relu(x))};
}

/* ---- cells ------------------------------------------------------------------------------- */

static tn_status check_cell(const char *call, mode kind, const tn_tensor *input, const weights *w,
                            state s) {
    if (input->view.rank != 2)
        return tni_fail(TN_ERR_SHAPE, "%s: input must be [N, features], but has shape %s", call,
                        TNI_SHAPE_OF(input));
    tn_dtype dtype = input->view.dtype;
    TNI_TRY(check_input(call, input));
    TNI_TRY(check_weights(call, kind, w, dtype, input->sizes[1]));
    tn_ints sizes = TN_SHAPE(input->sizes[0], hidden_of(kind, w));
    tn_status status = check_sizes(call, s.c ? "hx[0]" : "hx", s.h, dtype, sizes);
    return status == TN_OK && s.c ? check_sizes(call, "hx[1]", s.c, dtype, sizes) : status;
}

/* NAME_cell(input, hx, w_ih, w_hh, b_ih, b_hh) */
tn_status tni_run_cell(const char *call, const tn_cell *args, tn_cell *rets,
                       const char *kind_name) {
    mode kind = mode_of(kind_name);
    uint32_t n;
    tn_tensor *input = tni_arg_tensor(&args[0]), *const *hx = tni_arg_tensors(&args[1], &n);
    weights w = {.w_ih = tni_arg_tensor(&args[2]),
                 .w_hh = tni_arg_tensor(&args[3]),
                 .b_ih = tni_arg_some(&args[4]),
                 .b_hh = tni_arg_some(&args[5]),
                 .w_hr = TN_NONE};
    if (kind == LSTM && n != 2)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: hx must be two tensors, the state h and the cell c, but has %u", call,
                        n);
    state s = {hx[0], kind == LSTM ? hx[1] : NULL};
    TNI_TRY(check_cell(call, kind, input, &w, s));
    tni_temps tmp = {0};
    w = widened(&tmp, w);
    s.h = tni_widened(&tmp, s.h);
    s.c = s.c ? tni_widened(&tmp, s.c) : NULL;
    s = step(&tmp, kind, &w, of_input(&tmp, kind, &w, tni_widened(&tmp, input)), s);
    tn_tensor *results[2] = {narrowed(&tmp, s.h, input), narrowed(&tmp, s.c, input)};
    return tni_temps_return_many(&tmp, results, kind == LSTM ? 2 : 1, rets);
}

/* ---- layers ------------------------------------------------------------------------------ */

typedef struct layers {
    const char *call;
    mode kind;
    tn_tensor *input, *const *params;
    state s; /* [layers * directions, N, ...] */
    int64_t n_layers, n_directions, steps, batch;
    uint32_t n_each; /* tensors in `params` of a layer in one direction */
    double dropout;  /* 0 where it does nothing */
    bool has_biases, has_projections, batch_first;
} layers;

/* NAME.input(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
 * batch_first) */
static tn_status read_layers(layers *l, const tn_cell *args) {
    uint32_t n_hx, n_params;
    tn_tensor *const *hx = tni_arg_tensors(&args[1], &n_hx);
    l->input = tni_arg_tensor(&args[0]);
    l->params = tni_arg_tensors(&args[2], &n_params);
    l->has_biases = args[3].v.boolean;
    l->n_layers = args[4].v.i64;
    l->dropout = args[5].v.f64;
    l->n_directions = args[7].v.boolean ? 2 : 1;
    l->batch_first = args[8].v.boolean;
    if (l->kind == LSTM && n_hx != 2)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: hx must be two tensors, the states h and the cells c, but has %u",
                        l->call, n_hx);
    l->s = (state){hx[0], l->kind == LSTM ? hx[1] : NULL};
    if (l->input->view.rank != 3)
        return tni_fail(TN_ERR_SHAPE, "%s: input must be %s, but has shape %s", l->call,
                        l->batch_first ? "[N, steps, features]" : "[steps, N, features]",
                        TNI_SHAPE_OF(l->input));
    for (int i = 0; i < 2; i++) {
        const tn_tensor *t = i == 0 ? l->s.h : l->s.c;
        if (t && t->view.rank != 3)
            return tni_fail(TN_ERR_SHAPE,
                            "%s: hx must be [layers * directions, N, features], but has shape %s",
                            l->call, TNI_SHAPE_OF(t));
    }
    l->steps = l->input->sizes[l->batch_first];
    l->batch = l->input->sizes[!l->batch_first];
    if (l->steps == 0)
        return tni_fail(TN_ERR_SHAPE, "%s: input of shape %s has no step", l->call,
                        TNI_SHAPE_OF_SIZES(3, l->input->sizes));
    if (!(l->dropout >= 0 && l->dropout <= 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: dropout is %g; it must lie in [0, 1]",
                        l->call, l->dropout);
    l->dropout = args[6].v.boolean ? l->dropout : 0;
    l->has_projections = l->s.c && l->s.h->sizes[2] != l->s.c->sizes[2];
    l->n_each = 2u + (l->has_biases ? 2u : 0u) + l->has_projections;
    int64_t each = l->n_each * l->n_directions;
    if (l->n_layers < 1 || n_params % each != 0 || n_params / each != l->n_layers)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: num_layers is %lld, and params has %u tensors; there must be one "
                        "layer at least, and for each %lld tensors: w_ih, w_hh%s%s%s",
                        l->call, (long long)l->n_layers, n_params, (long long)each,
                        l->has_biases ? ", b_ih, b_hh" : "", l->has_projections ? ", w_hr" : "",
                        l->n_directions == 2 ? ", and those of the other direction" : "");
    return TN_OK;
}

/* The weights of one layer in one direction. */
static weights weights_at(const layers *l, int64_t at) {
    tn_tensor *const *p = l->params + at * l->n_each;
    return (weights){.w_ih = p[0],
                     .w_hh = p[1],
                     .b_ih = l->has_biases ? p[2] : TN_NONE,
                     .b_hh = l->has_biases ? p[3] : TN_NONE,
                     .w_hr = l->has_projections ? p[l->n_each - 1] : TN_NONE};
}

static tn_status check_layers(const layers *l) {
    tn_dtype dtype = l->input->view.dtype;
    tn_status status = check_input(l->call, l->input);
    int64_t in = l->input->sizes[2], n = l->n_layers * l->n_directions;
    int64_t size = l->s.h->sizes[2], hidden = l->s.c ? l->s.c->sizes[2] : size;
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        char call[96];
        weights w = weights_at(l, i);
        snprintf(call, sizeof call, "%s: layer %lld%s", l->call, (long long)(i / l->n_directions),
                 i % l->n_directions ? " backwards" : "");
        status =
            check_sizes(call, "w_hh", w.w_hh, dtype, TN_SHAPE(gates_of(l->kind) * hidden, size));
        if (status == TN_OK)
            status = check_weights(call, l->kind, &w, dtype,
                                   i < l->n_directions ? in : size * l->n_directions);
    }
    if (status == TN_OK)
        status = check_sizes(l->call, l->s.c ? "hx[0]" : "hx", l->s.h, dtype,
                             TN_SHAPE(n, l->batch, size));
    return status == TN_OK && l->s.c
               ? check_sizes(l->call, "hx[1]", l->s.c, dtype, TN_SHAPE(n, l->batch, hidden))
               : status;
}

/* All steps of x [steps, N, in] in one direction: the states after each, [steps, N, state], and
 * in *s the last. Owned by the list; NULL with an error. */
static tn_tensor *run_direction(const layers *l, tni_temps *tmp, int64_t at, tn_tensor *x,
                                bool backwards, state *s) {
    tni_temps inner = {0};
    weights w = widened(&inner, weights_at(l, at));
    x = of_input(&inner, l->kind, &w, x);
    tn_tensor *out = NULL, **states = tni_calloc((size_t)l->steps, sizeof(tn_tensor *));
    if (!states)
        tni_fail_memory("the states of a recurrent layer");
    tn_tensor *held =
        NULL; /* the cell of the last step; those before end unless autograd has them */
    bool is_well = states && x;
    for (int64_t i = 0; i < l->steps && is_well; i++) {
        int64_t t = backwards ? l->steps - 1 - i : i;
        tni_temps one = {0};
        *s = step(&one, l->kind, &w, tni_own(&one, tni_select(x, 0, t)), *s);
        is_well = s->h != NULL;
        states[t] = is_well ? tni_own(&inner, tni_keep(s->h)) : NULL;
        s->c = is_well && s->c ? tni_keep(s->c) : NULL;
        tni_drop(held);
        held = s->c;
        is_well = is_well && states[t];
        tni_temps_finish(&one);
    }
    s->c = tni_own(tmp, held);
    if (is_well) {
        s->h = tni_own(tmp, tni_keep(s->h));
        out = tni_own(tmp, tni_stack(states, (uint64_t)l->steps, 0));
    }
    tni_free(states);
    tni_temps_finish(&inner);
    return out;
}

/* The results: the last layer's states at all steps, and all layers' last states. */
tn_status tni_run_layers(const char *call, const tn_cell *args, tn_cell *rets,
                         const char *kind_name) {
    mode kind = mode_of(kind_name);
    layers l = {.call = call, .kind = kind};
    if (read_layers(&l, args) != TN_OK || check_layers(&l) != TN_OK)
        return tni_failed();
    int64_t n = l.n_layers * l.n_directions;
    tn_tensor **last = tni_calloc((size_t)(2 * n), sizeof *last);
    if (!last)
        return tni_fail_memory("the states of recurrent layers");
    tni_temps tmp = {0};
    tn_tensor *x = tni_widened(&tmp, l.input);
    if (l.batch_first)
        x = tni_own(&tmp, tni_transpose(x, 0, 1));
    tn_tensor *h = tni_widened(&tmp, l.s.h), *c = l.s.c ? tni_widened(&tmp, l.s.c) : NULL;
    for (int64_t layer = 0; layer < l.n_layers && x; layer++) {
        tn_tensor *out[2] = {NULL, NULL};
        if (layer > 0 && l.dropout > 0)
            x = tni_then(&tmp, tni_dropout(x, l.dropout, true), x);
        for (int64_t d = 0; d < l.n_directions && x; d++) {
            int64_t at = layer * l.n_directions + d;
            state s = {tni_own(&tmp, tni_select(h, 0, at)),
                       c ? tni_own(&tmp, tni_select(c, 0, at)) : NULL};
            out[d] = run_direction(&l, &tmp, at, x, d == 1, &s);
            last[at] = s.h;
            last[n + at] = s.c;
            if (!out[d])
                x = NULL;
        }
        if (x)
            x = l.n_directions == 2 ? tni_own(&tmp, tni_cat(out, 2, -1)) : out[0];
    }
    tn_tensor *results[3] = {x, NULL, NULL};
    if (x && l.batch_first)
        results[0] = tni_own(&tmp, tni_transpose(x, 0, 1));
    uint32_t n_results = kind == LSTM ? 3 : 2;
    for (uint32_t i = 0; i < n_results; i++) {
        if (i > 0)
            results[i] = x ? tni_own(&tmp, tni_stack(last + (i - 1) * n, (uint64_t)n, 0)) : NULL;
        results[i] = narrowed(&tmp, results[i], l.input);
    }
    tni_free(last);
    return tni_temps_return_many(&tmp, results, n_results, rets);
}
