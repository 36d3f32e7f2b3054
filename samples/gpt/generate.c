/* Sampling with a cache of keys and values. */
#include "generate.h"

#include "corpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sampler {
    const gpt *model;
    const generate_options *options;
    gpt_cache cache;
    int64_t *tokens, n; /* all that there are */
    float *logits;      /* of the last one, [vocabulary] */
    float *sorted;
    int64_t n_drawn;
} sampler;

/* The n tokens from `first` on, into the model; its logits of the last. */
static tn_status feed(sampler *s, int64_t first, int64_t n) {
    TN_SCOPE;
    TN_NO_GRAD;
    tn_device device = tn_device_of(s->model->parameters[0]);
    tn_tensor *tokens = tn_from_data(s->tokens + first, TN_SHAPE(1, n), TN_I64, device);
    tn_tensor *logits = gpt_forward(s->model, tokens, &s->cache);
    tn_tensor *last = tn_select(tn_select(logits, 0, 0), 0, n - 1);
    return tn_to_host(last, s->logits, (uint64_t)s->model->config.vocabulary * sizeof(float));
}

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* What a token must have to be among the top k. */
static float least_of_top(const sampler *s) {
    int64_t n = s->model->config.vocabulary, k = s->options->top_k;
    if (k <= 0 || k >= n)
        return -INFINITY;
    memcpy(s->sorted, s->logits, (size_t)n * sizeof *s->sorted);
    qsort(s->sorted, (size_t)n, sizeof *s->sorted, descending);
    return s->sorted[k - 1];
}

static int64_t draw(sampler *s) {
    int64_t n = s->model->config.vocabulary, best = 0;
    for (int64_t i = 1; i < n; i++)
        if (s->logits[i] > s->logits[best])
            best = i;
    if (s->options->temperature <= 0)
        return best;
    float least = least_of_top(s);
    double sum = 0, most = s->logits[best];
    for (int64_t i = 0; i < n; i++) {
        bool in = s->logits[i] >= least;
        s->sorted[i] = in ? (float)exp((s->logits[i] - most) / s->options->temperature) : 0;
        sum += s->sorted[i];
    }
    double at =
        (double)(counted_random(s->options->seed, (uint64_t)s->n_drawn++) >> 11) * 0x1p-53 * sum;
    for (int64_t i = 0; i < n; i++)
        if (s->sorted[i] > 0 && (at -= s->sorted[i]) < 0)
            return i;
    return best; /* what rounding left over */
}

static tn_status run(sampler *s, int64_t n_prompt, void (*put)(void *user, int64_t token),
                     void *user) {
    int64_t context = s->model->config.context, first = n_prompt > context ? n_prompt - context : 0;
    tn_status status = feed(s, first, n_prompt - first);
    for (int64_t i = 0; i < s->options->n && status == TN_OK; i++) {
        int64_t token = draw(s);
        put(user, token);
        s->tokens[s->n++] = token;
        if (i + 1 == s->options->n)
            break;
        if (s->cache.length < context) {
            status = feed(s, s->n - 1, 1);
        } else { /* positions are learnt: what stays is seen anew, further to the front */
            int64_t kept = context > 1 ? context / 2 : 1;
            s->cache.length = 0;
            status = feed(s, s->n - kept, kept);
        }
    }
    return status;
}

tn_status generate(const gpt *m, const int64_t *prompt, int64_t n_prompt,
                   const generate_options *options, void (*put)(void *user, int64_t token),
                   void *user) {
    uint64_t n = (uint64_t)m->config.vocabulary;
    sampler s = {.model = m, .options = options, .n = n_prompt};
    s.tokens = malloc((uint64_t)(n_prompt + options->n) * sizeof *s.tokens);
    s.logits = malloc(n * sizeof *s.logits);
    s.sorted = malloc(n * sizeof *s.sorted);
    tn_status status = TN_ERR_OUT_OF_MEMORY;
    if (s.tokens && s.logits && s.sorted) {
        memcpy(s.tokens, prompt, (uint64_t)n_prompt * sizeof *prompt);
        status = gpt_cache_init(&s.cache, m);
        if (status == TN_OK)
            status = run(&s, n_prompt, put, user);
    }
    gpt_cache_finish(&s.cache);
    free(s.tokens);
    free(s.logits);
    free(s.sorted);
    return status;
}
