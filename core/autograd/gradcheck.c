/* Checks derivatives against central differences, as PyTorch's gradcheck does: every element of
 * every output by every element of every f64 input that requires a gradient.
 *
 * Each output is a root by itself, so that formulas see undefined gradients for the others; then
 * all outputs together must give the sum. Each analytic gradient is asked for twice and must be the
 * same. */
#include "core/autograd/engine.h"
#include "core/ops/operators.h"
#include <tenon/ops.h>
#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { MAX_OUTPUTS = 8 };

typedef struct check {
    const char *name; /* "tn_gradcheck" */
    tn_check_fn fn;
    void *user;
    tn_tensor *const *inputs;
    uint64_t n_inputs;
    double eps, atol, rtol;
    /* of the outputs, from a first run */
    uint64_t n_outputs;
    int64_t numel[MAX_OUTPUTS];
    bool differentiable[MAX_OUTPUTS];
} check;

/* The inputs that are checked. */
static bool is_checked(const tn_tensor *t) {
    return t && t != TN_NONE && tn_requires_grad(t) && t->view.dtype == TN_F64;
}

/* t's elements as doubles, row-major; NULL with an error. */
static double *read_f64(tn_tensor *t) {
    double *data = tni_alloc((size_t)t->view.numel * sizeof(double));
    if (!data)
        return tni_fail_memory_null("values of a gradient check");
    tn_thread_keys before = tni_keys_callback(false);
    tn_tensor *wide = tni_to_dtype(t, TN_F64);
    tni_thread_keys = before;
    if (!wide || tn_to_host(wide, data, (uint64_t)t->view.numel * sizeof(double)) != TN_OK) {
        tni_free(data);
        data = NULL;
    }
    tni_drop(wide);
    return data;
}

/* Runs the function; outputs belong to the caller's scope. */
static tn_status call(const check *c, tn_tensor *const *inputs, tn_tensor **outputs) {
    uint64_t n = MAX_OUTPUTS;
    for (uint64_t i = 0; i < MAX_OUTPUTS; i++)
        outputs[i] = NULL;
    TNI_TRY(c->fn(inputs, c->n_inputs, outputs, &n, c->user));
    if (n == 0 || n > MAX_OUTPUTS)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the function made %llu outputs; 1 to %d",
                        c->name, (unsigned long long)n, MAX_OUTPUTS);
    if (c->n_outputs && n != c->n_outputs)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: the function made %llu outputs, before it made %llu", c->name,
                        (unsigned long long)n, (unsigned long long)c->n_outputs);
    for (uint64_t i = 0; i < n; i++) {
        if (!outputs[i] || outputs[i] == TN_NONE)
            return tn_error_status() != TN_OK ? tn_error_status()
                                              : tni_fail(TN_ERR_INVALID_ARGUMENT,
                                                         "%s: the function left output %llu unset",
                                                         c->name, (unsigned long long)i);
        if (c->n_outputs && outputs[i]->view.numel != c->numel[i])
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: output %llu has %lld elements, before it had %lld", c->name,
                            (unsigned long long)i, (long long)outputs[i]->view.numel,
                            (long long)c->numel[i]);
    }
    if (!c->n_outputs)
        ((check *)(uintptr_t)c)->n_outputs = n;
    return TN_OK;
}

static tn_status learn_outputs(check *c) {
    tn_tensor *outputs[MAX_OUTPUTS];
    bool any = false;
    TN_SCOPE;
    tn_status status = call(c, c->inputs, outputs);
    for (uint64_t i = 0; i < c->n_outputs && status == TN_OK; i++) {
        c->numel[i] = outputs[i]->view.numel;
        c->differentiable[i] = tn_requires_grad(outputs[i]);
        any = any || c->differentiable[i];
    }
    if (status == TN_OK && !any)
        status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                          "%s: no output requires a gradient; does the function use its inputs?",
                          c->name);
    return status;
}

/* ---- numerical --------------------------------------------------------------------------- */

/* A leaf with these values that lies in memory as `like` does, zeros between its elements. */
static tn_tensor *leaf_like(const tn_tensor *like, const double *data) {
    tn_tensor *values = tn_from_data(data, tn_sizes(like), TN_F64, tn_device_of(like));
    if (!values || tni_may_overlap(&like->view) ||
        (tni_is_contiguous(&like->view) && tni_offset_elements(like) == 0))
        return tn_set_requires_grad(values, true);
    int64_t end = tni_offset_elements(like) + 1;
    for (int32_t d = 0; d < like->view.rank; d++)
        end += (like->sizes[d] - 1) * like->strides[d];
    tn_tensor *memory = tn_zeros(TN_SHAPE(end), TN_F64, tn_device_of(like));
    tn_tensor *leaf =
        tn_as_strided(memory, tn_sizes(like), tn_strides(like), tni_offset_elements(like));
    return tn_set_requires_grad(tn_detach(tn_copy_(leaf, values)), true);
}

/* out[o]: values of output o with element k of input `which` set to `value`. */
static tn_status values_at(const check *c, uint64_t which, double *data, int64_t k, double value,
                           double **out) {
    tn_status status = TN_OK;
    tn_tensor *outputs[MAX_OUTPUTS];
    tn_tensor *input = c->inputs[which];
    for (uint64_t o = 0; o < c->n_outputs; o++)
        out[o] = NULL;
    TN_SCOPE;
    tn_tensor **inputs = tni_alloc(c->n_inputs * sizeof *inputs);
    if (!inputs)
        return tni_fail_memory("the inputs of a gradient check");
    memcpy(inputs, c->inputs, c->n_inputs * sizeof *inputs);
    double kept = data[k];
    data[k] = value;
    inputs[which] = leaf_like(input, data); /* the function under test may ask for gradients */
    data[k] = kept;
    if (!inputs[which])
        status = tni_failed();
    if (status == TN_OK)
        status = call(c, inputs, outputs);
    for (uint64_t o = 0; o < c->n_outputs && status == TN_OK; o++)
        if (c->differentiable[o] && !(out[o] = read_f64(outputs[o])))
            status = tni_failed();
    tni_free(inputs);
    return status;
}

static void free_values(const check *c, double **values) {
    for (uint64_t o = 0; o < c->n_outputs; o++)
        tni_free(values[o]);
}

/* jacobian[o][k * numel[o] + j] = d output o element j / d input element k */
static tn_status numerical(const check *c, uint64_t which, double **jacobian) {
    tn_tensor *input = c->inputs[which];
    double *data = read_f64(input);
    tn_status status = data ? TN_OK : tni_failed();
    for (int64_t k = 0; k < input->view.numel && status == TN_OK; k++) {
        double *above[MAX_OUTPUTS], *below[MAX_OUTPUTS] = {NULL};
        status = values_at(c, which, data, k, data[k] + c->eps, above);
        if (status == TN_OK)
            status = values_at(c, which, data, k, data[k] - c->eps, below);
        for (uint64_t o = 0; o < c->n_outputs && status == TN_OK; o++)
            for (int64_t j = 0; c->differentiable[o] && j < c->numel[o]; j++)
                jacobian[o][k * c->numel[o] + j] = (above[o][j] - below[o][j]) / (2 * c->eps);
        free_values(c, above);
        free_values(c, below);
    }
    tni_free(data);
    return status;
}

/* ---- analytic ---------------------------------------------------------------------------- */

/* A gradient of output `o` that is one at element j. */
static tn_tensor *one_hot(tn_tensor *output, int64_t j) {
    double *data = tni_calloc((size_t)output->view.numel, sizeof(double));
    if (!data)
        return tni_fail_memory_null("a gradient of a gradient check");
    data[j] = 1;
    tn_tensor *t = tn_from_data(data, tn_sizes(output), TN_F64, tn_device_of(output));
    tni_free(data);
    if (!t || output->view.dtype == TN_F64)
        return t;
    return tni_scope_push(tni_to_dtype(t, output->view.dtype));
}

/* Adds row j of output `o`, for every checked input, to rows[i][o][...]: gradients by element. */
static tn_status analytic_row(const check *c, tn_tensor *const *outputs, uint64_t o, int64_t j,
                              tn_tensor *const *wanted, const uint64_t *index, uint64_t n_wanted,
                              double *(*jacobians)[MAX_OUTPUTS], bool compare) {
    TN_SCOPE;
    tn_tensor *root = outputs[o], *grad = one_hot(root, j);
    tn_tensor **grads = tni_alloc(n_wanted * sizeof *grads);
    tn_status status = grad && grads ? TN_OK : tni_failed();
    if (status == TN_OK)
        status = tn_gradients(&root, &grad, 1, wanted, n_wanted, true, false, true, grads);
    for (uint64_t i = 0; i < n_wanted && status == TN_OK; i++) {
        int64_t numel = wanted[i]->view.numel;
        double *row = grads[i] ? read_f64(grads[i]) : NULL;
        if (grads[i] && !row)
            status = tni_failed();
        for (int64_t k = 0; k < numel && status == TN_OK; k++) {
            double *at = &jacobians[i][o][k * c->numel[o] + j], value = row ? row[k] : 0;
            if (compare && value != *at && !(isnan(value) && isnan(*at)))
                status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                                  "%s: backward is not deterministic: the derivative of output "
                                  "%llu, element %lld, by input %llu, element %lld, was %.17g and "
                                  "then %.17g",
                                  c->name, (unsigned long long)o, (long long)j,
                                  (unsigned long long)index[i], (long long)k, *at, value);
            *at = value;
        }
        tni_free(row);
    }
    tni_free(grads);
    return status;
}

/* All outputs as roots of one pass, with gradients of ones, must give the sum of the rows. */
static tn_status check_together(const check *c, tn_tensor *const *outputs, tn_tensor *const *wanted,
                                const uint64_t *index, uint64_t n_wanted,
                                double *(*jacobians)[MAX_OUTPUTS]) {
    TN_SCOPE;
    tn_tensor *roots[MAX_OUTPUTS], *ones[MAX_OUTPUTS];
    uint64_t n = 0;
    for (uint64_t o = 0; o < c->n_outputs; o++) {
        if (!c->differentiable[o])
            continue;
        roots[n] = outputs[o];
        ones[n] = tni_scope_push(
            tni_ones(tn_sizes(outputs[o]), outputs[o]->view.dtype, outputs[o]->device->id));
        if (!ones[n++])
            return tni_failed();
    }
    if (n < 2)
        return TN_OK;
    tn_tensor **grads = tni_alloc(n_wanted * sizeof *grads);
    tn_status status = grads ? TN_OK : tni_fail_memory("gradients of a gradient check");
    if (status == TN_OK)
        status = tn_gradients(roots, ones, n, wanted, n_wanted, true, false, true, grads);
    for (uint64_t i = 0; i < n_wanted && status == TN_OK; i++) {
        double *got = grads[i] ? read_f64(grads[i]) : NULL;
        if (grads[i] && !got)
            status = tni_failed();
        for (int64_t k = 0; k < wanted[i]->view.numel && status == TN_OK; k++) {
            double sum = 0, value = got ? got[k] : 0;
            for (uint64_t o = 0; o < c->n_outputs; o++)
                for (int64_t j = 0; c->differentiable[o] && j < c->numel[o]; j++)
                    sum += jacobians[i][o][k * c->numel[o] + j];
            if (!(fabs(value - sum) <= c->atol + c->rtol * fabs(sum)))
                status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                                  "%s: with the gradients of all outputs defined, the derivative "
                                  "by input %llu, element %lld, is %.9g; output by output it sums "
                                  "to %.9g: the formula mishandles undefined gradients",
                                  c->name, (unsigned long long)index[i], (long long)k, value, sum);
        }
        tni_free(got);
    }
    tni_free(grads);
    return status;
}

static tn_status analytic(const check *c, tn_tensor *const *wanted, const uint64_t *index,
                          uint64_t n_wanted, double *(*jacobians)[MAX_OUTPUTS]) {
    tn_tensor *outputs[MAX_OUTPUTS];
    TN_SCOPE;
    tn_status status = call(c, c->inputs, outputs);
    for (int again = 0; again < 2; again++)
        for (uint64_t o = 0; o < c->n_outputs && status == TN_OK; o++)
            for (int64_t j = 0; c->differentiable[o] && j < c->numel[o] && status == TN_OK; j++)
                status = analytic_row(c, outputs, o, j, wanted, index, n_wanted, jacobians, again);
    if (status == TN_OK)
        status = check_together(c, outputs, wanted, index, n_wanted, jacobians);
    return status;
}

/* ---- together ---------------------------------------------------------------------------- */

/* The indices of an element of t as text. */
static char *place(const tn_tensor *t, int64_t element, char out[TNI_SHAPE_TEXT]) {
    int64_t at[TN_MAX_RANK];
    for (int32_t i = t->view.rank - 1; i >= 0; i--) {
        at[i] = element % t->sizes[i];
        element /= t->sizes[i];
    }
    return tni_shape_text(t->view.rank, at, out);
}

static tn_status compare(const check *c, tn_tensor *input, uint64_t index, double **analytic_of,
                         double **numerical_of) {
    for (uint64_t o = 0; o < c->n_outputs; o++) {
        uint64_t wrong = 0;
        int64_t worst = 0;
        double worst_by = -1;
        int64_t n = c->differentiable[o] ? input->view.numel * c->numel[o] : 0;
        for (int64_t e = 0; e < n; e++) {
            double a = analytic_of[o][e], b = numerical_of[o][e];
            double by = fabs(a - b) - (c->atol + c->rtol * fabs(b));
            if (by <= 0 || (isnan(a) && isnan(b)) || a == b)
                continue;
            wrong++;
            if (isnan(by) || by > worst_by) {
                worst = e;
                worst_by = isnan(by) ? INFINITY : by;
            }
        }
        if (!wrong)
            continue;
        char where[TNI_SHAPE_TEXT];
        return tni_fail(
            TN_ERR_INVALID_ARGUMENT,
            "%s: the derivative of output %llu, element %lld, by input %llu of shape %s, element "
            "%s, is %.9g by the formula and %.9g by central differences (eps %g, atol %g, rtol "
            "%g); %llu of %lld derivatives of this output by this input differ",
            c->name, (unsigned long long)o, (long long)(worst % c->numel[o]),
            (unsigned long long)index, TNI_SHAPE_OF(input),
            place(input, worst / c->numel[o], where), analytic_of[o][worst], numerical_of[o][worst],
            c->eps, c->atol, c->rtol, (unsigned long long)wrong, (long long)n);
    }
    return TN_OK;
}

/* Rows for every output; all zero. */
static bool jacobians_init(const check *c, int64_t numel, double **out) {
    bool ok = true;
    for (uint64_t o = 0; o < MAX_OUTPUTS; o++)
        out[o] = NULL;
    for (uint64_t o = 0; o < c->n_outputs; o++)
        ok = (out[o] = tni_calloc((size_t)numel * (size_t)c->numel[o], sizeof(double))) && ok;
    return ok;
}
static void jacobians_finish(double **jacobian) {
    for (uint64_t o = 0; o < MAX_OUTPUTS; o++)
        tni_free(jacobian[o]);
}

static tn_status run_check(check *c) {
    uint64_t n_wanted = 0, n_ready = 0;
    for (uint64_t i = 0; i < c->n_inputs; i++)
        n_wanted += is_checked(c->inputs[i]);
    if (n_wanted == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: no input is f64 and requires a gradient",
                        c->name);
    tn_status status = learn_outputs(c);
    if (status != TN_OK)
        return status;
    tn_tensor **wanted = tni_alloc(n_wanted * sizeof *wanted);
    uint64_t *index = tni_alloc(n_wanted * sizeof *index);
    double *(*analytic_of)[MAX_OUTPUTS] = tni_alloc(n_wanted * sizeof *analytic_of);
    if (!wanted || !index || !analytic_of)
        status = tni_fail_memory("a gradient check");
    for (uint64_t i = 0; i < c->n_inputs && status == TN_OK; i++) {
        if (!is_checked(c->inputs[i]))
            continue;
        wanted[n_ready] = c->inputs[i];
        index[n_ready] = i;
        if (!jacobians_init(c, c->inputs[i]->view.numel, analytic_of[n_ready++]))
            status = tni_fail_memory("the Jacobians of a gradient check");
    }
    if (status == TN_OK)
        status = analytic(c, wanted, index, n_wanted, analytic_of);
    for (uint64_t i = 0; i < n_wanted && status == TN_OK; i++) {
        double *numerical_of[MAX_OUTPUTS];
        if (!jacobians_init(c, wanted[i]->view.numel, numerical_of))
            status = tni_fail_memory("the Jacobians of a gradient check");
        if (status == TN_OK)
            status = numerical(c, index[i], numerical_of);
        if (status == TN_OK)
            status = compare(c, wanted[i], index[i], analytic_of[i], numerical_of);
        jacobians_finish(numerical_of);
    }
    for (uint64_t i = 0; i < n_ready; i++)
        jacobians_finish(analytic_of[i]);
    tni_free(analytic_of);
    tni_free(index);
    tni_free(wanted);
    return status;
}

static check check_of(const char *name, tn_check_fn fn, void *user, tn_tensor *const *inputs,
                      uint64_t n_inputs, const tn_gradcheck_options *options) {
    check c = {.name = name,
               .fn = fn,
               .user = user,
               .inputs = inputs,
               .n_inputs = n_inputs,
               .eps = 1e-6,
               .atol = 1e-5,
               .rtol = 1e-3};
    if (options) {
        if (TN_HAS(options, tn_gradcheck_options, eps) && options->eps > 0)
            c.eps = options->eps;
        if (TN_HAS(options, tn_gradcheck_options, atol))
            c.atol = options->atol;
        if (TN_HAS(options, tn_gradcheck_options, rtol))
            c.rtol = options->rtol;
    }
    return c;
}

static tn_status refuse_missing(const char *name, tn_check_fn fn, tn_tensor *const *inputs,
                                uint64_t n_inputs) {
    if (!fn)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there is no function to check", name);
    if (!inputs || n_inputs == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there are no inputs", name);
    for (uint64_t i = 0; i < n_inputs; i++)
        if (!inputs[i])
            return tn_error_status() != TN_OK
                       ? tn_error_status()
                       : tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: input %llu is NULL", name,
                                  (unsigned long long)i);
    return TN_OK;
}

tn_status tn_gradcheck(tn_check_fn fn, void *user, tn_tensor *const *inputs, uint64_t n_inputs,
                       const tn_gradcheck_options *options) {
    TNI_TRY(refuse_missing("tn_gradcheck", fn, inputs, n_inputs));
    bool before = tn_set_grad_enabled(true);
    check c = check_of("tn_gradcheck", fn, user, inputs, n_inputs, options);
    tn_status status = run_check(&c);
    tn_set_grad_enabled(before);
    return status;
}

/* ---- the derivative of the derivative ---------------------------------------------------- */

typedef struct second {
    const check *first;
    uint64_t n_inputs; /* of the first; the rest are gradients of its outputs */
} second;

/* (inputs, gradients of the differentiable outputs) to gradients of the inputs. */
static tn_status first_derivative(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                                  uint64_t *n_outputs, void *user) {
    const second *s = user;
    const check *c = s->first;
    tn_tensor *made[MAX_OUTPUTS], *roots[MAX_OUTPUTS], *wanted[MAX_OUTPUTS];
    TNI_TRY(call(c, inputs, made));
    uint64_t n_roots = 0, n_wanted = 0;
    for (uint64_t o = 0; o < c->n_outputs; o++)
        if (c->differentiable[o])
            roots[n_roots++] = made[o];
    for (uint64_t i = 0; i < s->n_inputs; i++) {
        if (!is_checked(inputs[i]))
            continue;
        if (n_wanted == MAX_OUTPUTS)
            return tni_fail(TN_ERR_UNSUPPORTED,
                            "tn_gradgradcheck: more than %d inputs that require a "
                            "gradient",
                            MAX_OUTPUTS);
        wanted[n_wanted++] = inputs[i];
    }
    tn_status status = tn_gradients(roots, inputs + s->n_inputs, n_roots, wanted, n_wanted, true,
                                    true, true, outputs);
    for (uint64_t i = 0; i < n_wanted && status == TN_OK; i++) {
        if (!outputs[i])
            outputs[i] =
                tni_scope_push(tni_zeros(tn_sizes(wanted[i]), TN_F64, tn_device_of(wanted[i])));
        if (!outputs[i])
            status = tni_failed();
    }
    *n_outputs = n_wanted;
    return status;
}

/* Numbers in [-1, 1] that do not depend on the device or on the default generator. */
static tn_tensor *random_grad(tn_tensor *output, uint64_t *state) {
    double *data = tni_alloc((size_t)output->view.numel * sizeof *data);
    if (!data)
        return tni_fail_memory_null("a gradient of a gradient check");
    for (int64_t i = 0; i < output->view.numel; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (double)(*state >> 11) * 0x1p-52 - 1;
    }
    tn_tensor *t = tn_from_data(data, tn_sizes(output), TN_F64, tn_device_of(output));
    tni_free(data);
    return tn_set_requires_grad(t, true);
}

static tn_status check_second(check *first, const tn_gradcheck_options *options) {
    TN_SCOPE;
    tn_status status = learn_outputs(first);
    tn_tensor *outputs[MAX_OUTPUTS];
    if (status == TN_OK)
        status = call(first, first->inputs, outputs);
    if (status != TN_OK)
        return status;
    uint64_t n = first->n_inputs, state = 67280421310721u;
    tn_tensor **inputs = tni_alloc((n + MAX_OUTPUTS) * sizeof *inputs);
    if (!inputs)
        return tni_fail_memory("the inputs of a gradient check");
    memcpy(inputs, first->inputs, n * sizeof *inputs);
    for (uint64_t o = 0; o < first->n_outputs && status == TN_OK; o++) {
        if (!first->differentiable[o])
            continue;
        inputs[n] = random_grad(outputs[o], &state);
        status = inputs[n++] ? TN_OK : tni_failed();
    }
    if (status == TN_OK) {
        second s = {first, first->n_inputs};
        check c = check_of("tn_gradgradcheck", first_derivative, &s, inputs, n, options);
        status = run_check(&c);
    }
    tni_free(inputs);
    return status;
}

tn_status tn_gradgradcheck(tn_check_fn fn, void *user, tn_tensor *const *inputs, uint64_t n_inputs,
                           const tn_gradcheck_options *options) {
    TNI_TRY(refuse_missing("tn_gradgradcheck", fn, inputs, n_inputs));
    bool before = tn_set_grad_enabled(true);
    check first = check_of("tn_gradgradcheck", fn, user, inputs, n_inputs, options);
    tn_status status = check_second(&first, options);
    tn_set_grad_enabled(before);
    return status;
}
