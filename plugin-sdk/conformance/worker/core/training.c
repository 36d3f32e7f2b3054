/* train/NAME: a small network is trained on the subject and on the CPU, from the same weights on
 * the same data.
 *
 * The first ten losses must agree to 1e-5: later ones drift apart, as rounding errors grow from
 * step to step, so that at the end only what was learned is compared. Afterwards no byte may be
 * missing on the device. */
#include "plugin-sdk/conformance/worker/core/classes.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"
#include "plugin-sdk/conformance/worker/core/lacks.h"
#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "plugin-sdk/conformance/worker/core/refuse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 8, N_CLASSES = 4, N_ROWS = 128, N_AGREE = 10 };
#define AGREE 1e-5     /* of a loss, relative */
#define END_LOSS 0.05  /* of the last loss, absolute */
#define END_RIGHT 0.05 /* of the share of rows that are classified rightly */

typedef struct network {
    const char *name;
    int64_t row[3]; /* shape of a row of the data; 0 ends it */
    int64_t params[MAX_PARAMS][4];
    tn_tensor *(*forward)(tn_tensor *const *w, tn_tensor *x);
    int n_steps;
    bool adamw, two_streams;
} network;

static tn_tensor *mlp(tn_tensor *const *w, tn_tensor *x) {
    return tn_linear(tn_relu(tn_linear(x, w[0], w[1])), w[2], w[3]);
}

static tn_tensor *cnn(tn_tensor *const *w, tn_tensor *x) { /* x [N, 1, 8, 8] */
    tn_tensor *h = tn_relu(tn_conv2d(x, w[0], w[1]));      /* [N, 4, 6, 6] */
    h = tn_max_pool2d(h, TN_SHAPE(2, 2));                  /* [N, 4, 3, 3] */
    return tn_linear(tn_flatten(h, 1), w[2], w[3]);
}

static tn_tensor *normed(tn_tensor *const *w, tn_tensor *x) {
    tn_tensor *h = tn_layer_norm(tn_linear(x, w[0], w[1]), TN_SHAPE(24), w[4], w[5]);
    return tn_linear(tn_gelu(h), w[2], w[3]);
}

#define MLP_PARAMS \
    { \
        {24, 16}, {24}, {N_CLASSES, 24}, { \
            N_CLASSES \
        } \
    }
static const network networks[] = {
    {"mlp", {16}, MLP_PARAMS, mlp, 200, false, false},
    {"cnn", {1, 8, 8}, {{4, 1, 3, 3}, {4}, {N_CLASSES, 36}, {N_CLASSES}}, cnn, 100, false, false},
    {"layernorm",
     {16},
     {{24, 16}, {24}, {N_CLASSES, 24}, {N_CLASSES}, {24}, {24}},
     normed,
     150,
     false,
     false},
    {"adamw", {16}, MLP_PARAMS, mlp, 150, true, false},
    {"two-streams", {16}, MLP_PARAMS, mlp, 100, false, true},
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

/* ---- data -------------------------------------------------------------------------------- */

static tn_ints shape_of(const int64_t *sizes, int max) {
    int n = 0;
    while (n < max && sizes[n])
        n++;
    return tn_ints_of(sizes, n);
}

typedef struct data {
    tn_tensor *x, *labels; /* on the device that computes */
    tn_tensor *params[MAX_PARAMS];
    uint64_t n_params;
} data;

/* Numbers are drawn on the CPU, in the same order for both. A row's label says which of some random
 * directions it points along most. */
static bool make_data(const network *net, uint64_t seed, tn_device cpu, tn_device device,
                      data *out) {
    int64_t sizes[4] = {N_ROWS, net->row[0], net->row[1], net->row[2]};
    memset(out, 0, sizeof *out);
    if (tn_generator_set(cpu, seed, 0) != TN_OK)
        return false;
    tn_tensor *x = tn_randn(shape_of(sizes, 4), TN_F32, cpu);
    tn_tensor *flat = tn_reshape(x, TN_SHAPE(N_ROWS, -1));
    tn_tensor *teacher = tn_randn(TN_SHAPE(N_CLASSES, tn_size(flat, 1)), TN_F32, cpu);
    tn_tensor *labels = tn_argmax(tn_linear(flat, teacher), 1);
    out->x = tn_to_device(x, device);
    out->labels = tn_to_device(labels, device);
    for (int i = 0; i < MAX_PARAMS && net->params[i][0]; i++) {
        tn_ints shape = shape_of(net->params[i], 4);
        double fan_in = 1;
        for (int64_t d = 1; d < shape.n; d++)
            fan_in *= (double)shape.data[d];
        tn_tensor *w = tn_mul_scalar(tn_randn(shape, TN_F32, cpu),
                                     tn_float(shape.n > 1 ? 1 / sqrt(fan_in) : 0.1));
        if (i == 4) /* the scale of a layer norm */
            w = tn_add_scalar(w, tn_int(1));
        /* A copy of its own, since on the CPU `to` gives the tensor itself. */
        out->params[i] = tn_set_requires_grad(tn_clone(tn_to_device(w, device)), true);
        out->n_params++;
        if (!out->params[i])
            return false;
    }
    return out->x && out->labels;
}

/* ---- one run ----------------------------------------------------------------------------- */

typedef struct course {
    double losses[512];
    double right; /* share of rows */
} course;

static tn_status step(const network *net, const data *d, tn_optimizer *optimizer,
                      double *out_loss) {
    TN_SCOPE;
    if (tn_optimizer_zero_grad(optimizer) != TN_OK)
        return tn_error_status();
    tn_tensor *loss = tn_cross_entropy(net->forward(d->params, d->x), d->labels);
    tn_status status = tn_backward(loss);
    if (status == TN_OK)
        status = tn_optimizer_step(optimizer);
    return status == TN_OK ? tn_item(loss, out_loss) : status;
}

/* Streams that take turns: each step waits for the one before, on the other stream. */
typedef struct turns {
    tn_stream *streams[2], *before;
    tn_event *done;
} turns;

static bool turns_init(turns *t, tn_device device) {
    t->before = tn_stream_keep(tn_current_stream(device));
    t->streams[0] = tn_stream_create(device, 0);
    t->streams[1] = tn_stream_create(device, 0);
    t->done = tn_event_create(device, false);
    return t->before && t->streams[0] && t->streams[1] && t->done &&
           tn_event_record(t->done, t->before) == TN_OK;
}

static tn_status turns_take(turns *t, int i, const data *d) {
    tn_stream *mine = t->streams[i % 2];
    tn_status status = tn_event_wait(t->done, mine);
    if (status == TN_OK)
        status = tn_set_current_stream(mine);
    for (uint64_t p = 0; p < d->n_params && status == TN_OK; p++)
        status = tn_record_stream(d->params[p], mine);
    if (status == TN_OK)
        status = tn_record_stream(d->x, mine);
    return status == TN_OK ? tn_record_stream(d->labels, mine) : status;
}

static void turns_finish(turns *t) {
    if (t->before)
        tn_set_current_stream(t->before);
    tn_event_destroy(t->done);
    tn_stream_drop(t->streams[0]);
    tn_stream_drop(t->streams[1]);
    tn_stream_drop(t->before);
}

static double share_right(const network *net, const data *d) {
    TN_NO_GRAD;
    tn_tensor *guess = tn_argmax(net->forward(d->params, d->x), 1);
    double share = NAN;
    tn_item(tn_mean(tn_to_dtype(tn_eq(guess, d->labels), TN_F32)), &share);
    return share;
}

static tn_status train(const network *net, uint64_t seed, tn_device cpu, tn_device device,
                       course *out) {
    TN_SCOPE;
    data d;
    if (!make_data(net, seed, cpu, device, &d))
        return tn_error_status() ? tn_error_status() : TN_ERR_INTERNAL;
    tn_sgd_options slow = tn_sgd_defaults();
    slow.lr = 0.1;
    slow.momentum = 0.9;
    tn_adam_options adaptive = tn_adamw_defaults();
    adaptive.lr = 0.02;
    tn_optimizer *optimizer = net->adamw ? tn_adamw_create(d.params, d.n_params, &adaptive)
                                         : tn_sgd_create(d.params, d.n_params, &slow);
    turns t = {.done = NULL};
    tn_status status = optimizer ? TN_OK : tn_error_status();
    if (status == TN_OK && net->two_streams && !turns_init(&t, device))
        status = tn_error_status();
    for (int i = 0; i < net->n_steps && status == TN_OK; i++) {
        if (net->two_streams)
            status = turns_take(&t, i, &d);
        if (status == TN_OK)
            status = step(net, &d, optimizer, &out->losses[i]);
        if (status == TN_OK && net->two_streams)
            status = tn_event_record(t.done, t.streams[i % 2]);
    }
    if (status == TN_OK)
        out->right = share_right(net, &d);
    if (status == TN_OK)
        status = tn_synchronize(device);
    turns_finish(&t);
    tn_optimizer_destroy(optimizer);
    return status;
}

/* ---- judging ----------------------------------------------------------------------------- */

static void check(const network *net, const course *got, const course *cpu, tc_verdict *out) {
    int last = net->n_steps - 1;
    for (int i = 0; i < N_AGREE; i++) {
        double share = fabs(got->losses[i] - cpu->losses[i]) / (AGREE * fabs(cpu->losses[i]));
        if (share > out->share || !out->measured) {
            out->measured = true;
            out->share = share;
            out->worst = i;
        }
        if (!(share <= 1))
            tc_verdict_set(out, TC_FAIL, TNP_NONE, "loss of step %d: %.9g, on the CPU %.9g", i,
                           got->losses[i], cpu->losses[i]);
    }
    if (!(cpu->losses[last] < cpu->losses[0] / 2))
        TC_CASE_ERROR(out, "the CPU does not learn: loss %.3g to %.3g", cpu->losses[0],
                      cpu->losses[last]);
    if (!(got->losses[last] <= cpu->losses[last] + END_LOSS) ||
        !(got->right >= cpu->right - END_RIGHT))
        tc_verdict_set(out, TC_FAIL, TNP_NONE,
                       "after %d steps: loss %.4g, %.3g of the rows right; on the CPU %.4g, %.3g",
                       net->n_steps, got->losses[last], got->right, cpu->losses[last], cpu->right);
}

static bool read_memory(tn_device device, tn_memory_stats *out) {
    *out = (tn_memory_stats){.struct_size = sizeof *out};
    return tn_synchronize(device) == TN_OK && tn_empty_cache(device) == TN_OK &&
           tn_memory_stats_get(device, out) == TN_OK;
}

static void check_memory(const tn_memory_stats *before, const tn_memory_stats *after,
                         tc_verdict *out) {
    if (after->allocated_bytes != before->allocated_bytes ||
        after->reserved_bytes != before->reserved_bytes)
        tc_verdict_set(out, TC_FAIL, TNP_NONE,
                       "memory does not come back: %llu bytes allocated and %llu reserved, at the "
                       "start %llu and %llu",
                       (unsigned long long)after->allocated_bytes,
                       (unsigned long long)after->reserved_bytes,
                       (unsigned long long)before->allocated_bytes,
                       (unsigned long long)before->reserved_bytes);
}

/* The network does not learn: something is missing, or wrong. */
static void judge_failure(const tc_device_pair *pair, tc_verdict *out) {
    tc_outcome failure = {.status = tn_error_status()};
    snprintf(failure.message, sizeof failure.message, "%s", tn_error_message());
    tc_verdict_set(out, tc_is_clean_lack(&failure, pair->name) ? TC_UNSUPPORTED : TC_FAIL, TNP_NONE,
                   "%s", failure.message);
}

static void run_network(const network *net, uint64_t seed, const tc_device_pair *pair, course *got,
                        course *cpu, tc_verdict *out) {
    tn_memory_stats before, after;
    char lacks[TC_LACKS_TEXT];
    tn_fallback_reset();
    if (train(net, seed, pair->cpu, pair->cpu, cpu) != TN_OK)
        TC_CASE_ERROR(out, "on the CPU: %s", tn_error_message());
    else if (!read_memory(pair->subject, &before))
        tc_verdict_set(out, TC_FAIL, TNP_NONE, "%s", tn_error_message());
    else if (train(net, seed, pair->cpu, pair->subject, got) != TN_OK)
        judge_failure(pair, out);
    else if (!read_memory(pair->subject, &after))
        tc_verdict_set(out, TC_FAIL, TNP_NONE, "%s", tn_error_message());
    else {
        check(net, got, cpu, out);
        check_memory(&before, &after, out);
    }
    if (out->status == TC_PASS && tn_fallback_count() > 0)
        tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE, "%s; it went through the host",
                       tc_lacks_text(pair, 0, lacks));
}

static void run_case(const tc_case *c, const tc_options *options, tc_verdict *out) {
    const network *net = NULL;
    for (int i = 0; i < N_NETWORKS; i++) {
        if (strcmp(networks[i].name, c->subject) == 0)
            net = &networks[i];
    }
    if (!net) {
        TC_CASE_ERROR(out, "train/%s: there is no such network", c->subject);
        return;
    }
    const tc_device_pair *pair = tc_device_pair_open(options, TC_MODE_NATIVE, out);
    course *courses = pair ? calloc(2, sizeof *courses) : NULL;
    if (!pair)
        return;
    tn_error_clear();
    if (courses)
        run_network(net, c->seed >> 1, pair, &courses[0], &courses[1], out);
    else
        TC_CASE_ERROR(out, "no memory");
    tn_error_clear();
    free(courses);
}

static void list(tc_set set, tc_sink *sink) {
    for (int i = 0; i < (set == TC_SMOKE ? 1 : N_NETWORKS); i++) {
        char line[64];
        snprintf(line, sizeof line, "train/%s", networks[i].name);
        sink->line(sink, line);
    }
}

const tc_class tc_train_class = {.name = "train", .list = list, .run = run_case};
