/* See checkpoint.h. */
#include "core/autograd/checkpoint.h"
#include "base/alloc.h"
#include "core/autograd/engine.h"
#include "core/call/op_info.h"
#include "core/call/wrap.h"
#include "core/random/generator.h"

#include <tenon/autocast.h>

#include <string.h>

/* What one run collected. */
typedef struct collected {
    uint64_t n;
    struct {
        tn_tensor *tensor; /* owned */
        uint32_t version;
    } at[];
} collected;

struct tni_checkpoint {
    _Atomic uint32_t refs; /* of the saved that it stands for, and of its first run */
    tn_tensors_fn fn;
    void *user;
    void (*destroy)(void *user);
    uint64_t n_inputs, n_outputs;
    tn_tensor **inputs; /* owned */
    uint32_t *versions; /* of the inputs */
    tni_draws draws;    /* of its first run */
    tn_dtype autocast;
    bool open;       /* its first run is under way */
    tni_spec *specs; /* of what is saved, in order */
    size_t n_saved, capacity;
    /* Without history, and with it for derivatives of derivatives; whoever is first puts it there.
     * */
    _Atomic(collected *) again[2];
};

struct tni_checkpoint_run {
    tni_checkpoint *of;
    collected *into; /* NULL: the first run */
    tni_drawing drawing;
    bool with_history;
    uint64_t next;
};

TNI_TLS tni_checkpoint_run *tni_checkpoint_running;

static void collected_free(collected *c) {
    for (uint64_t i = 0; c && i < c->n; i++)
        tni_drop(c->at[i].tensor);
    tni_free(c);
}

static void forget_inputs(tni_checkpoint *c) {
    for (uint64_t i = 0; i < c->n_inputs; i++)
        tni_drop_opt(c->inputs[i]);
    c->n_inputs = 0;
}

void tni_checkpoint_drop(tni_checkpoint *c) {
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    for (int i = 0; i < 2; i++)
        collected_free(atomic_load(&c->again[i]));
    forget_inputs(c);
    if (c->destroy)
        c->destroy(c->user);
    tni_free(c->inputs);
    tni_free(c->versions);
    tni_free(c->draws.items);
    tni_free(c->specs);
    tni_free(c);
}

/* ---- saving ------------------------------------------------------------------------------ */

static tni_spec spec_of(const tn_tensor *t) {
    tni_spec spec = {.dtype = t->view.dtype, .rank = t->view.rank};
    memcpy(spec.sizes, t->view.sizes, (size_t)t->view.rank * sizeof *spec.sizes);
    return spec;
}

static tn_status differs(const tni_checkpoint *c, const char *what) {
    return tni_fail(
        TN_ERR_STATE,
        "tn_checkpoint: when its function ran again for backward, %s; it must do the same "
        "each time, and read nothing that changes in between (first run: %llu tensors saved)",
        what, (unsigned long long)c->n_saved);
}

static tn_status collect(tni_checkpoint_run *run, tn_tensor *t, uint32_t output) {
    tni_checkpoint *c = run->of;
    if (run->next == c->n_saved)
        return differs(c, "it saved more");
    tni_spec spec = spec_of(t);
    const tni_spec *first = &c->specs[run->next];
    if (spec.dtype != first->dtype || spec.rank != first->rank ||
        memcmp(spec.sizes, first->sizes, (size_t)spec.rank * sizeof *spec.sizes) != 0)
        return differs(c, "a tensor that it saved had another shape or dtype");
    /* An output gets the history of the first run's node, where it is wanted. */
    tn_tensor *kept = run->with_history && !output ? tni_keep(t) : tni_tensor_alias(t);
    if (!kept)
        return tni_failed();
    run->into->at[run->next].tensor = kept;
    run->into->at[run->next].version = tni_version(t);
    run->into->n = ++run->next;
    return TN_OK;
}

tn_status tni_checkpoint_save(tni_saved *saved, tn_tensor *t, uint32_t output, bool *out_taken) {
    tni_checkpoint_run *run = tni_checkpoint_running;
    tni_checkpoint *c = run->of;
    bool is_leaf = tni_requires_grad(t) && !t->autograd->node;
    *out_taken = !run->into && !is_leaf;
    if (is_leaf) /* somebody else keeps it */
        return TN_OK;
    if (run->into)
        return collect(run, t, output);
    if (c->n_saved >= UINT32_MAX ||
        !tni_grow(&c->specs, c->n_saved, &c->capacity, sizeof *c->specs))
        return tni_fail_memory("what a checkpoint stands for");
    c->specs[c->n_saved] = spec_of(t);
    atomic_fetch_add(&c->refs, 1);
    saved->checkpoint = c;
    saved->again = 1;
    saved->version = (uint32_t)c->n_saved++;
    saved->output = output;
    return TN_OK;
}

/* ---- running ----------------------------------------------------------------------------- */

/* The function, recorded, in a scope of its own; outputs, where there is room for them, become
 * owned references. */
static tn_status call(const tni_checkpoint *c, tni_checkpoint_run *run, tn_tensor **outputs) {
    tni_checkpoint_run *outer = tni_checkpoint_running;
    tni_drawing *drawing = tni_drawing_now;
    tni_callback_scope scope = tni_scope_enter();
    for (uint64_t i = 0; i < c->n_outputs; i++)
        outputs[i] = NULL;
    tni_checkpoint_running = run;
    if (run != outer)
        tni_drawing_now = &run->drawing;
    tn_status status = c->fn(c->inputs, c->n_inputs, outputs, c->n_outputs, c->user);
    tni_checkpoint_running = outer;
    tni_drawing_now = drawing;
    if (status != TN_OK && tn_error_status() == TN_OK)
        tni_fail(status, "tn_checkpoint: the function failed without a message");
    for (uint64_t i = 0; i < c->n_outputs && status == TN_OK; i++)
        if (tni_not_tensor(outputs[i]))
            status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                              "tn_checkpoint: the function left output %llu unset",
                              (unsigned long long)i);
    for (uint64_t i = 0; i < c->n_outputs; i++)
        outputs[i] = status == TN_OK ? tni_keep(outputs[i]) : NULL;
    tni_scope_leave(scope);
    return status;
}

static tn_status check_inputs(const tni_checkpoint *c) {
    for (uint64_t i = 0; i < c->n_inputs; i++)
        if (!tni_not_tensor(c->inputs[i]) && tni_version(c->inputs[i]) != c->versions[i])
            return tni_fail(TN_ERR_STATE,
                            "tn_checkpoint: input %llu of shape %s was written in place, by its "
                            "function or since that ran; write to a tn_clone of it",
                            (unsigned long long)i, TNI_SHAPE_OF(c->inputs[i]));
    return TN_OK;
}

/* The thread as it was when the function ran first, without what lies around this call. */
static tn_status call_again(tni_checkpoint_run *run, tn_tensor **outputs) {
    tni_checkpoint *c = run->of;
    bool inference = tn_set_inference_mode(false);
    tn_thread_keys before = tni_keys_callback(true);
    tni_thread_keys.excluded &= ~(uint32_t)TN_KEY_BIT(TN_KEY_AUTOCAST);
    tn_dtype autocast = tn_set_autocast(c->autocast);
    tn_status status = call(c, run, outputs);
    tn_set_autocast(autocast);
    tni_thread_keys = before;
    tn_set_inference_mode(inference);
    for (uint64_t i = 0; i < c->n_outputs; i++)
        tni_drop_opt(outputs[i]);
    if (status == TN_OK && run->next != c->n_saved)
        status = differs(c, "it saved less");
    if (status == TN_OK && run->drawing.next != c->draws.n)
        status = differs(c, "it drew fewer random numbers");
    return status;
}

static collected *compute_again(tni_checkpoint *c, bool with_history) {
    if (c->open)
        return tni_fail_null(TN_ERR_STATE,
                             "tn_checkpoint: its function asks for gradients of what it records; "
                             "what is inside is differentiated when it has returned");
    if (check_inputs(c) != TN_OK)
        return NULL;
    collected *made = tni_calloc(1, sizeof *made + c->n_saved * sizeof made->at[0]);
    tn_tensor **outputs = tni_alloc((c->n_outputs + 1) * sizeof *outputs);
    tn_status status = TN_OK;
    if (!made || !outputs) {
        status = tni_fail_memory("what a checkpoint computes again");
    } else {
        tni_checkpoint_run run = {.of = c,
                                  .into = made,
                                  .with_history = with_history,
                                  .drawing = {.draws = &c->draws, .again = true}};
        status = call_again(&run, outputs);
    }
    tni_free(outputs);
    if (status != TN_OK) {
        collected_free(made);
        return NULL;
    }
    return made;
}

tn_tensor *tni_checkpoint_saved(const tni_saved *saved, uint32_t *out_version) {
    tni_checkpoint *c = saved->checkpoint;
    bool with_history = tni_grad_mode();
    _Atomic(collected *) *place = &c->again[with_history];
    collected *there = atomic_load_explicit(place, memory_order_acquire);
    if (!there) {
        collected *made = compute_again(c, with_history);
        if (!made)
            return NULL;
        if (atomic_compare_exchange_strong(place, &there, made))
            there = made;
        else
            collected_free(made); /* another thread's pass was first */
    }
    *out_version = there->at[saved->version].version;
    return there->at[saved->version].tensor;
}

/* ---- the public call --------------------------------------------------------------------- */

/* What the function is given, and the state that it starts from. */
static tn_status note_inputs(tni_checkpoint *c, tn_tensor *const *inputs, uint64_t n) {
    c->inputs = tni_alloc((n + 1) * sizeof *c->inputs);
    c->versions = tni_alloc((n + 1) * sizeof *c->versions);
    if (!c->inputs || !c->versions)
        return tni_fail_memory("the inputs of a checkpoint");
    for (uint64_t i = 0; i < n; i++) {
        tn_tensor *t = inputs[i];
        c->inputs[c->n_inputs++] = tni_keep_opt(t);
        c->versions[i] = tni_not_tensor(t) ? 0 : tni_version(t);
    }
    return TN_OK;
}

static tn_status check_arguments(tn_tensors_fn fn, tn_tensor *const *inputs, uint64_t n_inputs,
                                 tn_tensor **outputs, uint64_t n_outputs) {
    static const char call_name[] = "tn_checkpoint";
    if (!fn)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the function is NULL", call_name);
    if ((n_inputs && !inputs) || (n_outputs && !outputs))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the array of %s is NULL", call_name,
                        n_inputs && !inputs ? "inputs" : "outputs");
    for (uint64_t i = 0; i < n_inputs; i++) {
        if (!inputs[i] && tn_error_status() != TN_OK)
            return tn_error_status();
        if (!inputs[i])
            return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: input %llu is NULL", call_name,
                            (unsigned long long)i);
        if (tni_is_given_gone(inputs[i], call_name))
            return tni_failed();
    }
    return TN_OK;
}

static tn_status first_run(tni_checkpoint *c, tn_tensor **outputs) {
    tni_checkpoint_run run = {.of = c, .drawing = {.draws = &c->draws}};
    c->open = true;
    tn_status status = call(c, &run, outputs);
    c->open = false;
    if (status != TN_OK || c->n_saved == 0 || check_inputs(c) == TN_OK)
        return status;
    /* What it wrote to has a history that leads here. */
    for (uint64_t i = 0; i < c->n_outputs; i++)
        tni_drop_opt(outputs[i]);
    return tn_error_status();
}

tn_status tn_checkpoint(tn_tensors_fn fn, void *user, void (*destroy)(void *user),
                        tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                        uint64_t n_outputs) {
    tn_status status = check_arguments(fn, inputs, n_inputs, outputs, n_outputs);
    /* Inside of another it is a part of that: what it saves is let go there. */
    bool is_part = !tni_grad_mode() || tni_checkpoint_running;
    tni_checkpoint *c = status == TN_OK ? tni_calloc(1, sizeof *c) : NULL;
    if (!c) {
        if (destroy)
            destroy(user);
        return status != TN_OK ? status : tni_fail_memory("a checkpoint");
    }
    *c = (tni_checkpoint){.refs = 1,
                          .fn = fn,
                          .user = user,
                          .destroy = destroy,
                          .n_outputs = n_outputs,
                          .autocast = tn_autocast()};
    status = note_inputs(c, inputs, n_inputs);
    if (status == TN_OK)
        status = is_part ? call(c, tni_checkpoint_running, outputs) : first_run(c, outputs);
    if (status != TN_OK) /* nothing that it recorded holds them any more */
        forget_inputs(c);
    tni_checkpoint_drop(c);
    return tni_public_status(status, outputs, n_outputs, "tn_checkpoint");
}
