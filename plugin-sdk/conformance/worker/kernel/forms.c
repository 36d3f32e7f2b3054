/* See forms.h. */
#include "plugin-sdk/conformance/worker/kernel/forms.h"

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How many lines of a kind in the standard set, for each operator and dtype. */
enum {
    APART = 2,
    IN_PLACE = 2, /* for each argument */
    SHARED = 3,
    RANDOM = 10,
    RELAID = 5,
    IDLE = 4,
    SPECIALS = 3,
    TOGETHER = 2,
    WITHIN = 2,
    OVERLAPS = 2,      /* lines, in other dtypes one */
    WAYS_TO_SLIDE = 3, /* of each; in other dtypes one */
    GROWN = 3,
    GROWN_MORE = 2,        /* in other dtypes */
    MOST_PLACED = 1 << 18, /* elements */
    MOST_SMALL = 10000,
    MOST_GROWN = 1 << 19,
    MOST_WORK = 1 << 22, /* elements, each as often as it is added up */
    MOST_TERMS = 1 << 12 /* of a sum; longer ones prove little, with numbers that nobody chose */
};

/* The call that a line describes, in `arena`; false where it describes none. */
static bool parse(const char *line, tc_case *c, tc_arena *arena, tc_invocation *out) {
    char why[TC_MESSAGE];
    return tc_case_parse(line, c, why) && tc_invocation_parse(c, arena, out, why);
}

/* Elements of the largest tensor. */
static int64_t most_elements(const tc_draft *d) {
    int64_t most = 0;
    tc_shape s;
    for (int i = 0; i < (int)d->n; i++)
        if (d->at[i].value[0] == '[' && tc_draft_shape(d, i, &s) && s.numel > most)
            most = s.numel;
    return most;
}

/* Enough elements that a wrong one shows; and but for pointwise operators no line of one element,
 * or of equal ones, whose largest is always the first. */
static bool tells(const tc_forms *f, const tc_draft *d) {
    tc_shape s;
    for (int i = 0; i < (int)d->n; i++) {
        if (d->at[i].value[0] != '[' || !tc_draft_shape(d, i, &s))
            continue;
        for (int32_t k = 0; k < s.rank && !f->record->pointwise; k++)
            if (s.sizes[k] == 1 || s.strides[k] == 0)
                return false;
    }
    return most_elements(d) >= 12;
}

/* ---- in place, shared -------------------------------------------------------------------- */

static bool add(tc_forms *f, const char *line, const char *form) {
    char text[TC_MAX_LINE];
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    bool good = snprintf(text, sizeof text, "%s %s", line, form) < (int)sizeof text &&
                parse(text, &c, &arena, &call);
    if (good)
        f->to->line(f->to, text);
    tc_arena_finish(&arena);
    return good;
}

/* Each argument that can be, as the output, or with others as one tensor, or both. */
static void add_in_place(tc_forms *f, const char *line) {
    char form[96];
    bool shared = false;
    for (uint32_t a = f->record->n_args; a-- > 0;) {
        const char *name = f->record->args[a].name;
        if (f->record->args[a].kind != TC_ARG_TENSOR)
            continue;
        snprintf(form, sizeof form, "in-place=%s", name);
        if (!f->record->pointwise && !(f->few && f->in_place[a] >= IN_PLACE))
            f->in_place[a] += add(f, line, form);
        if (shared || (f->few && f->shared >= SHARED))
            continue;
        snprintf(form, sizeof form, "shared=%s", name);
        shared = add(f, line, form);
        f->shared += shared;
        snprintf(form, sizeof form, "in-place=%s shared=%s", name, name);
        if (shared)
            add(f, line, form);
    }
}

/* Inputs that begin where one of them does, with sizes and strides of their own: a transposed factor, the first rows of
 * a tensor as their own index. */
static bool add_within(tc_forms *f, const char *line) {
    char form[96], why[TC_MESSAGE];
    bool any = false;
    tc_draft d;
    if (!tc_draft_read(line, &d, why) || !tells(f, &d))
        return false;
    for (uint32_t a = 0; a < f->record->n_args; a++) {
        snprintf(form, sizeof form, "within=%s", f->record->args[a].name);
        any |= f->record->args[a].kind == TC_ARG_TENSOR && add(f, line, form);
    }
    return any;
}

/* With all tensors in one allocation; a call of one number hides what is mixed up. */
static bool add_together(tc_forms *f, const char *line) {
    char why[TC_MESSAGE];
    tc_draft d;
    return tc_draft_read(line, &d, why) && tells(f, &d) && add(f, line, "memory=one");
}

/* ---- laid out anew ----------------------------------------------------------------------- */

/* How the nth input or output of a call lies; false where it stays as it is. */
typedef bool layout(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output, tc_random *random);

static bool apart(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output, tc_random *random) {
    static const int64_t offsets[] = {1, 2, 5, 9, 14, 20, 27, 35};
    (void)f, (void)random;
    s->offset = is_output ? 3 + 4 * (int64_t)n : offsets[n];
    s->placed = true;
    return true;
}

/* Of lines of equal elements only pointwise operators tell anything. */
static bool anyhow(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output, tc_random *random) {
    (void)n;
    tc_mutate_place(s, random, f->record->pointwise && !is_output);
    return true;
}

/* The strides of dimensions of one element say nothing. */
static bool idle(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output, tc_random *random) {
    const int64_t strides[] = {0, 1, 2, 5, s->numel, 1000, (INT64_C(1) << 40) + 1, INT64_MAX};
    bool any = false;
    (void)f, (void)n, (void)is_output;
    for (int32_t k = 0; k < s->rank; k++)
        if (s->sizes[k] == 1) {
            s->strides[k] = strides[tc_below(random, TC_LENGTH(strides))];
            any = true;
        }
    s->placed |= any;
    return any;
}

/* The draft with all its tensors laid out; false where none is, where there is no such call, or it takes
 * long. */
static bool add_laid_out(tc_forms *f, tc_draft *d, layout *lay_out, tc_random *random) {
    char text[TC_MAX_LINE], name[TC_OUT_NAME];
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    tc_shape s;
    uint32_t n = 0;
    bool any = false;
    bool good = tc_draft_line(d, text) && parse(text, &c, &arena, &call) &&
                call.outs[0].tensor.shape.numel <= MOST_PLACED;
    for (uint32_t a = 0; good && a < f->record->n_args; a++) {
        int at = tc_draft_find(d, f->record->args[a].name);
        if (f->record->args[a].kind != TC_ARG_TENSOR || call.args[a].none ||
            !tc_draft_shape(d, at, &s) || !lay_out(f, &s, n++, false, random))
            continue;
        tc_draft_put_shape(d, at, &s);
        any = true;
    }
    for (uint32_t k = 0; good && k < f->record->n_outs; k++) {
        s = call.outs[k].tensor.shape;
        if (!lay_out(f, &s, k, true, random))
            continue;
        tc_draft_set_shape(d, tc_record_out(f->record, k, name), &s);
        any = true;
    }
    good = any && tc_draft_line(d, text);
    if (good)
        f->to->line(f->to, text);
    tc_arena_finish(&arena);
    return good;
}

static bool add_placed(tc_forms *f, const char *line, layout *lay_out, tc_random random) {
    char why[TC_MESSAGE];
    tc_draft d;
    return tc_draft_read(line, &d, why) && add_laid_out(f, &d, lay_out, &random);
}

/* A size of the first tensor becomes 1, unless there is such. */
static bool narrow(const tc_forms *f, tc_draft *d, tc_random *random) {
    tc_shape s;
    int at = tc_draft_find(d, f->record->args[0].name);
    if (at < 0 || !tc_draft_shape(d, at, &s) || s.rank < 2)
        return false;
    for (int32_t k = 0; k < s.rank; k++)
        if (s.sizes[k] == 1)
            return true;
    tc_mutate_resize(d, s.sizes[tc_below(random, (uint64_t)s.rank)], 1);
    return true;
}

static bool add_idle(tc_forms *f, const char *line, tc_random random) {
    char why[TC_MESSAGE];
    tc_draft d;
    if (!tc_draft_read(line, &d, why) || !narrow(f, &d, &random))
        return false;
    tc_draft_set(&d, "drawn", "idle"); /* what one element of a size leaves may tell little */
    return add_laid_out(f, &d, idle, &random);
}

/* Rows that begin within the one before, as windows that slide over a signal do: half a row later; one element later,
 * where rows and columns lie alike; and columns that begin within one another. */
static bool sliding(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output, tc_random *random) {
    int64_t extent = 1;
    (void)n, (void)random;
    for (int32_t i = 0; i < s->rank; i++) {
        int32_t k = f->sliding == 2 ? i : s->rank - 1 - i;
        s->strides[k] = f->sliding == 1 ? 1 : (extent + 1) / 2;
        extent += (s->sizes[k] - 1) * s->strides[k];
    }
    s->placed = true;
    return s->rank > 1 && !is_output;
}

/* Elements of an input may share their place. True where there is such a line. */
static bool add_overlapping(tc_forms *f, const char *line, tc_random random) {
    enum { LEAST = 1000 }; /* elements: small calls are often made another way */
    char why[TC_MESSAGE];
    tc_draft d;
    bool any = false;
    if (!tc_draft_read(line, &d, why) || !tells(f, &d) || most_elements(&d) < LEAST ||
        most_elements(&d) > 2 * MOST_SMALL)
        return false;
    tc_draft_set(&d, "drawn", "overlap"); /* of windows of few numbers, which tell little */
    for (f->sliding = 0; f->sliding < WAYS_TO_SLIDE; f->sliding++) {
        tc_draft placed = d;
        if (f->grows == GROWN || f->sliding == (int)f->dtype % WAYS_TO_SLIDE)
            any |= add_laid_out(f, &placed, sliding, &random);
    }
    return any;
}

/* ---- special values ---------------------------------------------------------------------- */

/* All elements one further apart. */
static bool stepped(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output, tc_random *random) {
    (void)f, (void)n, (void)is_output, (void)random;
    for (int32_t k = 0; k < s->rank; k++)
        s->strides[k] *= 2;
    s->placed = true;
    return s->rank > 0;
}

/* Inputs with their first dimension innermost. */
static bool turned_round(const tc_forms *f, tc_shape *s, uint32_t n, bool is_output,
                         tc_random *random) {
    int64_t stride = 1;
    (void)f, (void)n, (void)random;
    for (int32_t k = 0; k < s->rank; k++) {
        s->strides[k] = stride;
        stride *= s->sizes[k];
    }
    s->placed = true;
    return s->rank > 1 && !is_output;
}

/* What looks for NaN and infinities in rows of neighbours may not where elements lie apart. */
static bool add_special(tc_forms *f, const char *line) {
    static layout *const ways[SPECIALS] = {stepped, turned_round, anyhow};
    char why[TC_MESSAGE];
    tc_random random = {tc_hash(line) + 4};
    tc_draft d;
    if (!tc_draft_read(line, &d, why))
        return false;
    tc_draft_set(&d, "drawn", "special");
    return add_laid_out(f, &d, ways[f->specials % SPECIALS], &random);
}

/* ---- other sizes ------------------------------------------------------------------------- */

static void add_neighbour(tc_forms *f, const char *line, tc_random random) {
    char text[TC_MAX_LINE], why[TC_MESSAGE];
    tc_draft d;
    for (int tries = 0; tries < 4; tries++)
        if (tc_draft_read(line, &d, why) && tc_mutate_shapes(&d, &random) &&
            tc_mutate_shapes(&d, &random) && tells(f, &d) && tc_draft_line(&d, text) &&
            strcmp(text, line) != 0) {
            f->to->line(f->to, text);
            f->neighbours++;
            return;
        }
}

static bool is_affordable(const tc_forms *f, const tc_invocation *call) {
    int64_t numel = 0, terms = f->record->family->terms ? f->record->family->terms(call) : 1;
    for (uint32_t k = 0; k < f->record->n_outs; k++)
        if (call->outs[k].tensor.shape.numel > numel)
            numel = call->outs[k].tensor.shape.numel;
    if (terms > MOST_TERMS || numel > MOST_WORK / terms)
        return false;
    for (uint32_t a = 0; a < f->record->n_args; a++)
        if (f->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            call->args[a].tensor.shape.numel > numel)
            numel = call->args[a].tensor.shape.numel;
    int64_t per =
        numel / call->outs[0].tensor.shape.numel; /* inputs: a half has not so many numbers */
    return numel <= MOST_GROWN && (per < 512 || tc_dtype_bytes(call->types[0]) >= 4);
}

/* The dimension that the call is about, or -1. */
static int32_t dim_of(const tc_forms *f, const char *line) {
    int32_t at = tc_record_arg(f->record, "dim"), dim = -1;
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    if (at >= 0 && parse(line, &c, &arena, &call))
        dim = (int32_t)(f->record->args[at].kind == TC_ARG_INT ? call.args[at].i
                                                               : call.args[at].ints[0]);
    tc_arena_finish(&arena);
    return dim;
}

/* Every second line along the dimension that the call is about. */
static bool add_grown(tc_forms *f, const char *line, tc_random random) {
    char text[TC_MAX_LINE], why[TC_MESSAGE];
    int32_t dim = f->grown % 2 ? -1 : dim_of(f, line);
    bool added = false;
    for (int tries = 0; !added && tries < 4; tries++) {
        const tc_arg *arg = &f->record->args[tc_below(&random, f->record->n_args)];
        int64_t numel = (int64_t)1 << (14 + tc_below(&random, f->grows == GROWN ? 5 : 2));
        int at;
        tc_arena arena = {NULL};
        tc_draft d;
        tc_case c;
        tc_invocation call;
        bool good = arg->kind == TC_ARG_TENSOR && tc_draft_read(line, &d, why) &&
                    (at = tc_draft_find(&d, arg->name)) >= 0 &&
                    tc_mutate_grow(&d, at, dim, numel, &random);
        if (good && f->grows == GROWN_MORE) /* for this class alone (tc_is_extra) */
            tc_draft_set(&d, "seed", "1");
        added = good && tc_draft_line(&d, text) && parse(text, &c, &arena, &call) &&
                is_affordable(f, &call);
        if (added)
            f->to->line(f->to, text);
        tc_arena_finish(&arena);
    }
    return added;
}

/* ---- other attributes -------------------------------------------------------------------- */

/* Two calls in a row of which nothing differs but one attribute, for each of them: for what is kept
 * from one call to the next. False where the line's tensors tell little, or take long. */
static bool add_pairs(tc_forms *f, const char *line) {
    char first[TC_MAX_LINE], second[TC_MAX_LINE], why[TC_MESSAGE], seed[16];
    tc_draft d;
    if (!tc_draft_read(line, &d, why) || !tells(f, &d) || most_elements(&d) > MOST_SMALL)
        return false;
    for (int i = 0; tc_draft_read(line, &d, why) && i < (int)d.n; i++) {
        if (!tc_mutate_attribute(&d, f->record, i))
            continue;
        snprintf(seed, sizeof seed, "%d", i + 1);
        tc_draft_set(&d, "seed", seed);
        bool good = tc_draft_line(&d, second);
        tc_draft_read(line, &d, why);
        tc_draft_set(&d, "seed", seed);
        if (good && tc_draft_line(&d, first)) {
            f->to->line(f->to, first);
            f->to->line(f->to, second);
        }
    }
    return true;
}

/* The ends of what a scalar attribute may be: of its tensor's dtype, or where it may be left out, as
 * a bound of clamp, of all whole numbers; of f64 two numbers, too, which f32 rounds to either side. What
 * other than pointwise operators make of an infinity is left open. The k-th, or NULL. */
static const char *extreme(const tc_forms *f, const tc_arg *arg, tn_dtype dtype, int k,
                           char text[32]) {
    static const char *const floats[] = {"nan", "inf", "-inf", "-0.0", "0.7", "-0.7"};
    int n = TC_LENGTH(floats) - (dtype == TN_F64 ? 0 : 2); /* f32 has not all their digits */
    if (tc_is_float(dtype))
        return f->record->pointwise && k < n ? floats[k] : NULL;
    if (dtype == TN_BOOL || k > 3)
        return NULL;
    int64_t low = arg->optional ? INT64_MIN : tc_int_min(dtype),
            high = arg->optional ? INT64_MAX : tc_int_max(dtype);
    const int64_t ends[] = {low, high, low + 1, high - 1};
    snprintf(text, 32, "%" PRId64, ends[k]);
    return text;
}

/* The line with each scalar attribute at each of its ends. False where its tensors tell little. */
static bool add_extremes(tc_forms *f, const char *line) {
    char text[TC_MAX_LINE], why[TC_MESSAGE], value[32];
    const char *end;
    tc_draft d, changed;
    if (!tc_draft_read(line, &d, why) || !tells(f, &d))
        return false;
    for (uint32_t a = 0; a < f->record->n_args; a++) {
        const tc_arg *arg = &f->record->args[a];
        for (int k = 0; arg->kind == TC_ARG_SCALAR && (end = extreme(f, arg, f->dtype, k, value));
             k++) {
            changed = d;
            tc_draft_set(&changed, arg->name, end);
            tc_draft_set(&changed, "drawn", "extreme");
            if (strstr(end, "0.7")) /* which is met, as what it is compared with */
                tc_draft_set(&changed, "data", "special");
            if (tc_draft_line(&changed, text))
                f->to->line(f->to, text);
        }
    }
    return true;
}

/* ---- other orders of dimensions ---------------------------------------------------------- */

/* Dense, with its dimensions in the `which`th order (Lehmer's code, digit by digit); 0 is row-major. */
static void turn(tc_shape *s, int64_t which) {
    int32_t left[TC_MAX_RANK];
    int64_t stride = 1;
    for (int32_t k = 0; k < s->rank; k++)
        left[k] = s->rank - 1 - k;
    for (int32_t n = s->rank; n > 0; n--) {
        int32_t at = (int32_t)(which % n);
        which /= n;
        s->strides[left[at]] = stride;
        stride *= s->sizes[left[at]];
        memmove(left + at, left + at + 1, (size_t)(n - 1 - at) * sizeof *left);
    }
    s->offset = 0;
    s->placed = true;
}

/* One tensor of three dimensions or more, in all orders, or in some. */
static bool add_orders(tc_forms *f, const tc_draft *d, const char *name, tc_shape s) {
    char text[TC_MAX_LINE];
    int64_t orders = 1;
    for (int32_t k = 2; k <= s.rank; k++)
        orders *= k;
    bool any = false;
    int64_t step = orders > 6 ? orders / 6 + 1 : 1;
    for (int64_t k = 1; s.rank > 2 && k < orders; k += step) {
        tc_draft turned = *d;
        turn(&s, k);
        tc_draft_set_shape(&turned, name, &s);
        if (tc_draft_line(&turned, text)) {
            f->to->line(f->to, text);
            any = true;
        }
    }
    return any;
}

/* One tensor of two dimensions or more as a slice of a larger one, along each dimension but the first: dense within
 * what lies behind that, and again in front of it. */
static void add_slices(tc_forms *f, const tc_draft *d, const char *name, tc_shape s) {
    enum { GAP = 3 };
    char text[TC_MAX_LINE];
    for (int32_t along = 1; along < s.rank; along++) {
        tc_draft sliced = *d;
        int64_t stride = 1;
        for (int32_t k = s.rank - 1; k >= 0; k--) {
            s.strides[k] = stride;
            stride *= s.sizes[k] + (k == along ? GAP : 0);
        }
        s.placed = true;
        tc_draft_set_shape(&sliced, name, &s);
        if (tc_draft_line(&sliced, text))
            f->to->line(f->to, text);
    }
}

static void make_dense(tc_draft *d) {
    tc_shape s;
    for (int i = 0; i < (int)d->n; i++)
        if (d->at[i].value[0] == '[' && tc_draft_shape(d, i, &s)) {
            s.placed = false;
            s.offset = 0;
            tc_draft_put_shape(d, i, &s);
        }
}

/* Each tensor of the call alone, the others row-major: what is dense in another order, or in parts, may be taken
 * for one piece. */
static bool add_all_orders(tc_forms *f, const tc_draft *d) {
    char text[TC_MAX_LINE], name[TC_OUT_NAME];
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    bool any = false;
    bool good = tc_draft_line(d, text) && parse(text, &c, &arena, &call) &&
                call.outs[0].tensor.shape.numel <= MOST_PLACED;
    for (uint32_t a = 0; good && a < f->record->n_args; a++)
        if (f->record->args[a].kind == TC_ARG_TENSOR && !call.args[a].none) {
            any |= add_orders(f, d, f->record->args[a].name, call.args[a].tensor.shape);
            add_slices(f, d, f->record->args[a].name, call.args[a].tensor.shape);
        }
    for (uint32_t k = 0; any && k < f->record->n_outs; k++) {
        add_orders(f, d, tc_record_out(f->record, k, name), call.outs[k].tensor.shape);
        add_slices(f, d, tc_record_out(f->record, k, name), call.outs[k].tensor.shape);
    }
    tc_arena_finish(&arena);
    return any;
}

/* The same along every dimension, where the call is about one. */
static bool add_turned(tc_forms *f, const char *line) {
    char why[TC_MESSAGE], dim[16];
    int32_t at = tc_record_arg(f->record, "dim");
    tc_draft d;
    tc_shape s;
    bool any = false;
    if (!tc_draft_read(line, &d, why) || !tells(f, &d))
        return false;
    make_dense(&d);
    if (at < 0 || f->record->args[at].kind != TC_ARG_INT)
        return add_all_orders(f, &d);
    if (!tc_draft_shape(&d, tc_draft_find(&d, f->record->args[0].name), &s))
        return false;
    for (int32_t k = 0; k < s.rank; k++) {
        snprintf(dim, sizeof dim, "%d", k);
        tc_draft_set(&d, "dim", dim);
        any |= add_all_orders(f, &d);
    }
    return any;
}

/* ---- all of them ------------------------------------------------------------------------- */

static void pass_on(tc_sink *sink, const char *line) {
    tc_forms *f = (tc_forms *)sink;
    f->to->line(f->to, line);
    bool formed = strstr(line, "in-place=") || strstr(line, "scalar=");
    if (strstr(line, "data=special") && !formed && !f->record->pointwise && f->specials < SPECIALS)
        f->specials += add_special(f, line);
    bool dense = strchr(line, '/') == strrchr(line, '/') && !strchr(line, '+');
    bool plain = !strstr(line, "data=");
    if (dense && !formed && (plain || strstr(line, "data=random")) && !f->record->pointwise &&
        f->within < WITHIN)
        f->within += add_within(f, line);
    if (!plain)
        return;
    tc_random random = {tc_hash(line)};
    if (tc_below(&random, 8) == 0 && !(f->few && f->neighbours >= RANDOM))
        add_neighbour(f, line, random);
    random.state = tc_hash(line) + 1;
    if (tc_below(&random, 8) == 0 && !(f->few && f->relaid >= RELAID))
        f->relaid += add_placed(f, line, anyhow, random);
    random.state = tc_hash(line) + 3;
    if (tc_below(&random, 8) == 0 && !(f->few && f->idle >= IDLE))
        f->idle += add_idle(f, line, random);
    random.state = tc_hash(line) + 2;
    if (tc_below(&random, 4) == 0 && !(f->few && f->grown >= f->grows))
        f->grown += add_grown(f, line, random);
    if (f->grows == GROWN && !f->paired)
        f->paired = add_pairs(f, line);
    if (f->grows == GROWN && !f->turned)
        f->turned = add_turned(f, line);
    if (dense && f->apart < APART)
        f->apart += add_placed(f, line, apart, random);
    if (dense && !formed && f->overlaps < (f->grows == GROWN ? OVERLAPS : 1))
        f->overlaps += add_overlapping(f, line, random);
    if (!f->extremes && !formed)
        f->extremes = add_extremes(f, line);
    if (!formed && f->together < TOGETHER && dense == (f->together == 0))
        f->together += add_together(f, line);
    if (dense && !formed)
        add_in_place(f, line);
}

tc_forms tc_forms_start(const tc_record *record, tn_dtype dtype, tc_set set, tc_sink *to) {
    tn_dtype grows = record->dtypes[0] & TN_DTYPE_BIT(TN_F32) ? TN_F32 : TN_I64;
    return (tc_forms){.sink = {pass_on},
                      .to = to,
                      .record = record,
                      .dtype = dtype,
                      .few = set == TC_STANDARD,
                      .grows = dtype == grows ? GROWN : GROWN_MORE};
}
