/* Schedules of learning rates: PyTorch's closed forms (torch.optim.lr_scheduler), as functions of the
 * step. */
#include "core/optim/optimizer.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static bool at_least_zero(const char *call, const char *name, double value) {
    return tni_option_at_least_zero(call, name, value) == TN_OK;
}

/* NaN, with an error unless all is as it must be. */
static bool rate_and_step(const char *call, double lr, int64_t t) {
    if (!at_least_zero(call, "lr", lr))
        return false;
    if (t < 0)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: t is %lld; steps count from 0", call, (long long)t);
    return t >= 0;
}

static bool at_least_one(const char *call, const char *name, int64_t value) {
    if (value >= 1)
        return true;
    tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %lld; it must be at least 1", call, name,
             (long long)value);
    return false;
}

double tn_lr_step(double lr, int64_t t, int64_t step_size, double gamma) {
    static const char call[] = "tn_lr_step";
    if (!rate_and_step(call, lr, t) || !at_least_one(call, "step_size", step_size) ||
        !at_least_zero(call, "gamma", gamma))
        return NAN;
    int64_t n_times = t / step_size; /* whole */
    return lr * pow(gamma, (double)n_times);
}

double tn_lr_multi_step(double lr, int64_t t, const int64_t *milestones, uint64_t n, double gamma) {
    static const char call[] = "tn_lr_multi_step";
    if (!rate_and_step(call, lr, t) || !at_least_zero(call, "gamma", gamma))
        return NAN;
    if (n > 0 && !milestones) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: milestones is NULL, and n is %llu", call,
                 (unsigned long long)n);
        return NAN;
    }
    uint64_t passed = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0 && milestones[i] < milestones[i - 1]) {
            tni_fail(TN_ERR_INVALID_ARGUMENT,
                     "%s: milestone %llu is %lld, below the one before it, %lld; they ascend", call,
                     (unsigned long long)i, (long long)milestones[i], (long long)milestones[i - 1]);
            return NAN;
        }
        passed += milestones[i] <= t;
    }
    return lr * pow(gamma, (double)passed);
}

double tn_lr_exponential(double lr, int64_t t, double gamma) {
    static const char call[] = "tn_lr_exponential";
    if (!rate_and_step(call, lr, t) || !at_least_zero(call, "gamma", gamma))
        return NAN;
    return lr * pow(gamma, (double)t);
}

double tn_lr_linear(double lr, int64_t t, int64_t steps, double start, double end) {
    static const char call[] = "tn_lr_linear";
    if (!rate_and_step(call, lr, t) || !at_least_one(call, "steps", steps) ||
        !at_least_zero(call, "start", start) || !at_least_zero(call, "end", end))
        return NAN;
    double share = t < steps ? (double)t / (double)steps : 1;
    return lr * (start + (end - start) * share);
}

/* From `a` at 0 to `b` at 1. */
static double half_cosine(double a, double b, double share) {
    return b + (a - b) * (1 + cos(pi * share)) / 2;
}

double tn_lr_cosine(double lr, int64_t t, int64_t steps, double eta_min) {
    static const char call[] = "tn_lr_cosine";
    if (!rate_and_step(call, lr, t) || !at_least_one(call, "steps", steps) ||
        !at_least_zero(call, "eta_min", eta_min))
        return NAN;
    return half_cosine(lr, eta_min, (double)t / (double)steps);
}

double tn_lr_cosine_restarts(double lr, int64_t t, int64_t steps, int64_t factor, double eta_min) {
    static const char call[] = "tn_lr_cosine_restarts";
    if (!rate_and_step(call, lr, t) || !at_least_one(call, "steps", steps) ||
        !at_least_one(call, "factor", factor) || !at_least_zero(call, "eta_min", eta_min))
        return NAN;
    if (factor == 1)
        return half_cosine(lr, eta_min, (double)(t % steps) / (double)steps);
    int64_t period = steps;
    double length = (double)steps; /* the period, also where that is more than any t */
    while (t >= period) {
        t -= period;
        length = (double)period * (double)factor;
        if (period > INT64_MAX / factor)
            break;
        period *= factor;
    }
    return half_cosine(lr, eta_min, (double)t / length);
}

static bool read_one_cycle(tn_one_cycle_options *out, const tn_one_cycle_options *given) {
    static const char call[] = "tn_lr_one_cycle";
    *out = tn_one_cycle_defaults();
    if (given) {
#define READ(member) \
    if (TN_HAS(given, tn_one_cycle_options, member)) \
    out->member = given->member
        READ(total_steps);
        READ(pct_start);
        READ(div_factor);
        READ(final_div_factor);
        READ(linear);
        READ(three_phase);
#undef READ
    }
    if (!at_least_one(call, "total_steps", out->total_steps))
        return false;
    const char *name = NULL, *range = "above 0";
    double value = 0;
    if (!(out->pct_start >= 0 && out->pct_start <= 1))
        name = "pct_start", value = out->pct_start, range = "in [0, 1]";
    else if (!(out->div_factor > 0))
        name = "div_factor", value = out->div_factor;
    else if (!(out->final_div_factor > 0))
        name = "final_div_factor", value = out->final_div_factor;
    if (name)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is %g; it must be %s", call, name, value, range);
    return !name;
}

double tn_lr_one_cycle(double lr, int64_t t, const tn_one_cycle_options *options) {
    static const char call[] = "tn_lr_one_cycle";
    tn_one_cycle_options o;
    if (!rate_and_step(call, lr, t) || !read_one_cycle(&o, options))
        return NAN;
    if (t >= o.total_steps) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: t is %lld; it must be below total_steps, %lld", call,
                 (long long)t, (long long)o.total_steps);
        return NAN;
    }
    double first = lr / o.div_factor, last = first / o.final_div_factor;
    double total = (double)o.total_steps;
    /* Rates at the ends of the phases, and the steps at which those are. */
    double rates[] = {first, lr, o.three_phase ? first : last, last};
    double ends[] = {0, o.pct_start * total - 1,
                     o.three_phase ? 2 * o.pct_start * total - 2 : total - 1, total - 1};
    int last_phase = o.three_phase ? 3 : 2, phase = 1;
    while (phase < last_phase && (double)t > ends[phase])
        phase++;
    double length = ends[phase] - ends[phase - 1];
    double share = length != 0 ? ((double)t - ends[phase - 1]) / length : 1;
    return o.linear ? rates[phase - 1] + (rates[phase] - rates[phase - 1]) * share
                    : half_cosine(rates[phase - 1], rates[phase], share);
}
