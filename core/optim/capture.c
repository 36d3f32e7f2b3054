/* Steps of optimizers in graphs: what changes from step to step stands in memory, which the host
 * writes before each launch. */
#include "core/optim/optimizer.h"
#include "base/alloc.h"

/* One parameter that takes part. */
typedef struct captured_item {
    tni_param_state *state;
    void *host; /* where the factors of the next launch go */
    bool is_f64;
    int64_t ahead; /* steps of the parameter within the graph, up to this one */
} captured_item;

typedef struct captured_step {
    tni_graph_source source;
    tn_optimizer *optimizer; /* owned */
    uint64_t n;
    captured_item items[];
} captured_step;

static void write_factors(const captured_item *item, const double *values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (item->is_f64)
            ((double *)item->host)[i] = values[i];
        else
            ((float *)item->host)[i] = (float)values[i];
    }
}

/* The factors of the steps that the next launch takes. */
static void fill(tni_graph_source *source) {
    const captured_step *s = (captured_step *)source;
    const tni_algorithm *algorithm = s->optimizer->algorithm;
    int64_t known = 0;
    double factors[TNI_OPTIMIZER_FACTORS];
    for (uint64_t i = 0; i < s->n; i++) {
        int64_t number = s->items[i].state->steps + s->items[i].ahead;
        if (number != known) /* mostly they are all the same */
            algorithm->factors(s->optimizer, number, factors);
        known = number;
        write_factors(&s->items[i], factors, algorithm->n_factors);
    }
}

static void launched(tni_graph_source *source) {
    const captured_step *s = (captured_step *)source;
    for (uint64_t i = 0; i < s->n; i++)
        s->items[i].state->steps++;
}

static void destroy(tni_graph_source *source) {
    tn_optimizer_destroy(((captured_step *)source)->optimizer);
    tni_free(source);
}

/* Adds an item for a parameter; the tensor of its factors, owned. */
static tn_tensor *add_item(captured_step *s, const tn_tensor *param, tni_param_state *state) {
    captured_item *item = &s->items[s->n];
    *item = (captured_item){.state = state, .is_f64 = param->view.dtype == TN_F64, .ahead = 1};
    for (tni_graph_source *before = s->source.next; before; before = before->next)
        for (uint64_t i = 0; before->fill == fill && i < ((captured_step *)before)->n; i++)
            item->ahead += ((captured_step *)before)->items[i].state == state;
    tn_tensor *factors = tni_graph_values(tni_capturing, item->is_f64 ? TN_F64 : TN_F32,
                                          s->optimizer->algorithm->n_factors, &item->host);
    s->n += factors != NULL;
    return factors;
}

static tn_status capture_one(captured_step *s, uint64_t i, tn_tensor *grad) {
    tn_optimizer *o = s->optimizer;
    tni_param_step step = {.param = o->params[i], .grad = grad, .states = o->states[i].tensors};
    TNI_TRY(tni_states_ready(o, i, &step.is_first));
    step.later = add_item(s, step.param, &o->states[i]);
    tn_status status = step.later ? o->algorithm->update(o, &step) : tni_failed();
    tni_drop(step.later);
    if (status != TN_OK && step.is_first)
        tni_states_drop(o, &o->states[i]);
    return status;
}

tn_status tni_optimizer_capture(tn_optimizer *o) {
    captured_step *s = tni_calloc(1, sizeof *s + o->n * sizeof s->items[0]);
    if (!s)
        return tni_fail_memory("a captured step of an optimizer");
    s->source = (tni_graph_source){.fill = fill, .launched = launched, .destroy = destroy};
    s->optimizer = o;
    atomic_fetch_add(&o->refs, 1);
    tni_graph_add_source(tni_capturing, &s->source);
    tn_status status = TN_OK;
    bool before = tn_set_grad_enabled(false);
    for (uint64_t i = 0; i < o->n && status == TN_OK; i++) {
        tn_tensor *grad = tn_grad(o->params[i]);
        if (grad)
            status = capture_one(s, i, grad);
    }
    tn_set_grad_enabled(before);
    return status;
}
