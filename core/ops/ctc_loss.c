/* ctc_loss: how unlikely a sequence of classes is, when each step says one of them or nothing
 * (Graves et al., 2006). The sum over all ways to say it goes forward over the steps, for the
 * batch at once; lengths are known on the host, targets stay on their device. All of it is other
 * operators, and autograd looks through them. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"
#include "core/ops/scatter.h"

#include <math.h>

static const char call[] = "tn_ctc_loss";

/* The logarithm of nothing: finite, so that sums of nothing have derivatives. Nothing real comes
 * near it. */
static const double nothing = -1e30;

typedef struct ctc {
    tn_tensor *log_probs, *targets; /* [T, N, C]; [N, S] or one behind the other */
    tn_ints steps, lengths;         /* of input and target, [N] */
    int64_t blank, n, most;         /* `most`: the longest target */
    int64_t start;                  /* of the row that place_in_flat is in */
} ctc;

static tn_status check_lengths(const ctc *c, const char *name, tn_ints lengths, int64_t most) {
    if (lengths.n != c->n)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: %s has %lld lengths; there must be one for each of the %lld sequences",
                        call, name, (long long)lengths.n, (long long)c->n);
    for (int64_t i = 0; i < lengths.n; i++)
        if (lengths.data[i] < 0 || lengths.data[i] > most)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: %s[%lld] is %lld; it must lie in [0, %lld]", call, name,
                            (long long)i, (long long)lengths.data[i], (long long)most);
    return TN_OK;
}

static tn_status check_targets(ctc *c) {
    int32_t rank = c->targets->view.rank;
    int64_t sum = 0, all = c->targets->view.numel;
    bool fits = rank == 1 || (rank == 2 && c->targets->sizes[0] == c->n);
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: targets must be [%lld, S], or of rank 1 with one behind the other, "
                        "but have shape %s",
                        call, (long long)c->n, TNI_SHAPE_OF_SIZES(rank, c->targets->sizes));
    TNI_TRY(check_lengths(c, "target_lengths", c->lengths, rank == 2 ? c->targets->sizes[1] : all));
    for (int64_t i = 0; i < c->n; i++) {
        c->most = c->lengths.data[i] > c->most ? c->lengths.data[i] : c->most;
        if (!tni_add_i64(sum, c->lengths.data[i], &sum))
            sum = INT64_MAX;
    }
    if (rank == 1 && sum != all)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: targets have %lld elements, but target_lengths add up "
                        "to %lld",
                        call, (long long)all, (long long)sum);
    return TN_OK;
}

/* A table of whole numbers [rows, columns] on the device of log_probs, of places that `value`
 * tells. */
static tn_tensor *table_of(ctc *c, tni_temps *tmp, int64_t rows, int64_t columns,
                           int64_t (*value)(ctc *c, int64_t row, int64_t column)) {
    tn_tensor *t =
        tni_own(tmp, tni_tensor_new(c->log_probs->device, TN_I64, 2, (int64_t[]){rows, columns}));
    int64_t *table = t ? tni_alloc((size_t)(t->view.numel + 1) * sizeof *table) : NULL;
    if (!table)
        return t ? tni_fail_memory_null("a table of tn_ctc_loss") : NULL;
    for (int64_t i = 0; i < t->view.numel; i++)
        table[i] = value(c, i / columns, i % columns);
    tn_status status = tni_tensor_write(t, table, (uint64_t)t->view.numel * sizeof *table);
    tni_free(table);
    return status == TN_OK ? t : NULL;
}

/* Where the targets of a sequence stand in the flat ones, -1 behind their end. */
static int64_t place_in_flat(ctc *c, int64_t row, int64_t column) {
    if (column == 0)
        c->start = row == 0 ? 0 : c->start + c->lengths.data[row - 1];
    if (column >= c->lengths.data[row])
        return -1;
    return (c->targets->view.rank == 2 ? row * c->targets->sizes[1] : c->start) + column;
}

static int64_t length_of(ctc *c, int64_t row, int64_t column) {
    (void)column;
    return c->lengths.data[row];
}

static int64_t steps_of(ctc *c, int64_t row, int64_t column) {
    (void)column;
    return c->steps.data[row];
}

/* What is said in each state, [N, 2 * most + 1]: the targets with a blank before, between and
 * behind; blanks behind the end. */
static tn_tensor *states_of(ctc *c, tni_temps *tmp) {
    tn_tensor *targets = tni_whole_index(tmp, c->targets, call, "targets");
    tn_tensor *blank = tni_own(
        tmp, tni_full(TN_SHAPE(c->n, 1), tn_int(c->blank), TN_I64, c->log_probs->device->id));
    if (c->most == 0 || !targets)
        return targets ? blank : NULL;
    tn_tensor *flat = tni_own(tmp, tni_reshape(targets, TN_SHAPE(-1)));
    tn_tensor *places = table_of(c, tmp, c->n, c->most, place_in_flat);
    tn_tensor *there = tni_own(tmp, tni_ge_scalar(places, tn_int(0)));
    places =
        tni_own(tmp, tni_reshape(tni_own(tmp, tni_clamp_min(places, tn_int(0))), TN_SHAPE(-1)));
    tn_tensor *padded = tni_own(tmp, tni_index_select(flat, 0, places));
    padded = tni_own(tmp, tni_reshape(padded, TN_SHAPE(c->n, c->most)));
    padded = tni_own(tmp, tni_where_scalarother(there, padded, tn_int(c->blank)));
    tn_tensor *pair[2] = {padded, tni_own(tmp, tni_expand(blank, TN_SHAPE(c->n, c->most)))};
    if (!pair[0] || !pair[1])
        return NULL;
    tn_tensor *both = tni_own(tmp, tni_stack(pair, 2, 2));
    tn_tensor *list[2] = {blank, tni_own(tmp, tni_reshape(both, TN_SHAPE(c->n, 2 * c->most)))};
    return list[1] ? tni_own(tmp, tni_cat(list, 2, 1)) : NULL;
}

/* The logarithms of all ways to be in each state after the last step, [N, states]. Owned. */
static tn_tensor *forward(ctc *c, tni_temps *tmp, tn_tensor *states) {
    if (!states)
        return NULL;
    int64_t n_states = 2 * c->most + 1, shortest = c->log_probs->sizes[0];
    tn_dtype dtype = c->log_probs->view.dtype;
    /* from two states before, to another class (the first two states have no such) */
    tn_tensor *before = states;
    if (c->most > 0)
        before = tni_own(tmp, tni_constant_pad_nd(states, TN_SHAPE(2, -2), tn_int(c->blank)));
    tn_tensor *skips = tni_own(tmp, tni_ne(states, before));
    tn_tensor *steps = table_of(c, tmp, c->n, 1, steps_of);
    tn_tensor *ways = tni_own(tmp, tni_zeros(TN_SHAPE(c->n, 1), dtype, c->log_probs->device->id));
    ways = tni_constant_pad_nd(ways, TN_SHAPE(0, n_states - 1), tn_float(nothing));
    for (int64_t i = 0; i < c->n; i++)
        shortest = c->steps.data[i] < shortest ? c->steps.data[i] : shortest;
    for (int64_t t = 0; t < c->log_probs->sizes[0] && ways; t++) {
        tni_temps one = {0};
        tn_tensor *said = tni_own(&one, tni_select(c->log_probs, 0, t));
        said = tni_own(&one, tni_gather(said, 1, states));
        tn_tensor *wide =
            tni_own(&one, tni_constant_pad_nd(ways, TN_SHAPE(2, 0), tn_float(nothing)));
        tn_tensor *from[3] = {ways, tni_own(&one, tni_narrow(wide, 1, 1, n_states)),
                              tni_own(&one, tni_narrow(wide, 1, 0, n_states))};
        from[2] = tni_own(&one, tni_where_scalarother(skips, from[2], tn_float(nothing)));
        tn_tensor *all = from[1] && from[2] ? tni_own(&one, tni_stack(from, 3, 0)) : NULL;
        tn_tensor *next = tni_own(&one, tni_logsumexp(all, TN_SHAPE(0), false));
        next = tni_own(&one, tni_add(next, said, tn_int(1)));
        next = tni_own(&one, tni_clamp_min(next, tn_float(nothing)));
        if (t >= shortest) { /* some have ended */
            tn_tensor *goes = tni_own(&one, tni_gt_scalar(steps, tn_int(t)));
            next = tni_own(&one, tni_where(goes, next, ways));
        }
        if (next)
            tni_keep(next);
        tni_drop(ways);
        ways = next;
        tni_temps_finish(&one);
    }
    return ways;
}

/* The losses [N]: of the ways that end in the last class, or in the blank behind it. */
static tn_tensor *losses_of(ctc *c, tni_temps *tmp, tn_tensor *ways, bool zero_infinity) {
    if (!ways)
        return NULL;
    tn_tensor *last = table_of(c, tmp, c->n, 1, length_of);
    last = tni_own(tmp, tni_mul_scalar(last, tn_int(2)));
    tn_tensor *pair[2] = {tni_own(tmp, tni_add_scalar(last, tn_int(1), tn_int(1))), last};
    /* a column of nothing in front, for what has no class */
    ways = tni_own(tmp, tni_constant_pad_nd(ways, TN_SHAPE(1, 0), tn_float(nothing)));
    tn_tensor *ends = pair[0] && last ? tni_own(tmp, tni_cat(pair, 2, 1)) : NULL;
    tn_tensor *loss = tni_own(tmp, tni_gather(ways, 1, ends));
    loss = tni_own(tmp, tni_neg(tni_own(tmp, tni_logsumexp(loss, TN_SHAPE(1), false))));
    tn_tensor *never = tni_own(tmp, tni_ge_scalar(loss, tn_float(-nothing / 2)));
    return tni_own(
        tmp, tni_where_scalarself(never, zero_infinity ? tn_int(0) : tn_float(INFINITY), loss));
}

/* ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) */
tn_status tni_run_ctc_loss(const tn_cell *args, tn_cell *rets) {
    ctc c = {.log_probs = tni_arg_tensor(&args[0]),
             .targets = tni_arg_tensor(&args[1]),
             .steps = tni_arg_ints(&args[2]),
             .lengths = tni_arg_ints(&args[3]),
             .blank = args[4].v.i64};
    int32_t rank = c.log_probs->view.rank;
    const char *how = args[5].v.string;
    if ((rank != 2 && rank != 3) || c.log_probs->view.numel == 0)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: log_probs must be [steps, N, C] or [steps, C], with elements, but "
                        "have shape %s",
                        call, TNI_SHAPE_OF_SIZES(rank, c.log_probs->sizes));
    if (!tni_is_float(c.log_probs->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: log_probs are %s; they must be floating", call,
                        tn_dtype_name(c.log_probs->view.dtype));
    c.n = rank == 3 ? c.log_probs->sizes[1] : 1;
    if (c.blank < 0 || c.blank >= c.log_probs->sizes[rank - 1])
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: blank is %lld; it must be one of the %lld classes", call,
                        (long long)c.blank, (long long)c.log_probs->sizes[rank - 1]);
    TNI_TRY(check_lengths(&c, "input_lengths", c.steps, c.log_probs->sizes[0]));
    TNI_TRY(check_targets(&c));
    tni_temps tmp = {0};
    if (rank == 2)
        c.log_probs = tni_own(&tmp, tni_unsqueeze(c.log_probs, 1));
    tn_tensor *loss = NULL;
    if (c.log_probs) {
        tn_tensor *ways = tni_own(&tmp, forward(&c, &tmp, states_of(&c, &tmp)));
        loss = losses_of(&c, &tmp, ways, args[6].v.boolean);
    }
    if (loss && *how == 'm') {
        tn_tensor *lengths = table_of(&c, &tmp, c.n, 1, length_of);
        lengths = tni_own(&tmp, tni_clamp_min(lengths, tn_int(1)));
        lengths = tni_own(&tmp, tni_reshape(lengths, TN_SHAPE(-1)));
        loss = tni_own(&tmp, tni_div(loss, lengths));
    } else if (loss && rank == 2) {
        loss = tni_own(&tmp, tni_reshape(loss, TN_SCALAR_SHAPE));
    }
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reduced(loss, how)), rets);
}
