/* Trains a transformer of GPT-2's kind on the bytes of a text, on the device that TENON_DEVICE names,
 * draws its loss, and lets it write. Read model.c first, then train.c.
 */
#include "checkpoint.h"
#include "curve.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model --------------------------------------------------------------------------- */

/* New, or from `file` where that is not NULL. */
static tn_status make_model(const options *o, const tn_safetensors *file, tn_device device,
                            gpt *m) {
    tn_manual_seed(o->training.seed);
    tn_status status =
        file ? checkpoint_load(file, m, o->n_heads, device) : gpt_init(m, &o->config, device);
    const gpt_config *c = &m->config;
    if (status == TN_OK && !o->training.prints_losses)
        printf("model   %lld layers, %lld heads, %lld wide, looks back %lld of %lld tokens: "
               "%lld weights\n",
               (long long)c->n_layers, (long long)c->n_heads, (long long)c->width,
               (long long)c->context, (long long)c->vocabulary, (long long)gpt_n_weights(m));
    return status;
}

/* ---- training ---------------------------------------------------------------------------- */

static tn_status train_and_save(trainer *t, const options *o, const tn_safetensors *file) {
    tn_status status =
        file ? checkpoint_load_optimizers(file, t->model, t->groups, &t->step) : TN_OK;
    history *h = status == TN_OK ? malloc(sizeof *h) : NULL;
    if (!h)
        return status == TN_OK ? TN_ERR_OUT_OF_MEMORY : status;
    if (t->step >= o->training.n_steps)
        printf("        %lld steps are done already; --steps more of them trains on\n",
               (long long)t->step);
    status = trainer_run(t, h);
    char name[64];
    tn_device_name(tn_device_of(t->model->parameters[0]), name, sizeof name);
    if (status == TN_OK && h->n_train && !o->training.prints_losses) {
        printf("        %.1f s, %.0f tokens/s", h->seconds, (double)h->n_tokens / h->seconds);
        printf(curve_write(o->out, h, name) ? "; its curve is in %s\n" : "\n", o->out);
    }
    if (status == TN_OK && o->save)
        status = checkpoint_save(o->save, t->model, t->groups, t->step);
    free(h);
    return status;
}

/* TN_ERR_INVALID_ARGUMENT after a message of its own. */
static tn_status train(const options *o, const tn_safetensors *file, gpt *m) {
    corpus text = {0};
    trainer t = {0};
    train_options training = o->training;
    training.length = m->config.context;
    int64_t n_bytes = 0;
    tn_status status = TN_ERR_INVALID_ARGUMENT;
    if (m->config.vocabulary < 256) {
        fprintf(stderr, "gpt: a model of %lld tokens cannot learn bytes\n",
                (long long)m->config.vocabulary);
    } else if (corpus_load(&text, o->text, tn_device_of(m->parameters[0]))) {
        n_bytes = tn_numel(text.train) + tn_numel(text.rest);
        if (tn_numel(text.rest) <= training.length)
            fprintf(stderr,
                    "gpt: %s has %lld bytes, a tenth of which is tested on; --context %lld "
                    "needs at least %lld\n",
                    o->text, (long long)n_bytes, (long long)training.length,
                    (long long)training.length * 10 + 20);
        else
            status = trainer_init(&t, m, &text, &training);
    }
    if (status == TN_OK && !training.prints_losses)
        printf("text    %s: %lld bytes of %lld file%s, %lld of them not learnt\n", o->text,
               (long long)n_bytes, (long long)text.n_files, text.n_files == 1 ? "" : "s",
               (long long)tn_numel(text.rest));
    if (status == TN_OK)
        status = train_and_save(&t, o, file);
    trainer_finish(&t);
    corpus_drop(&text);
    return status;
}

/* ---- writing ----------------------------------------------------------------------------- */

static void put_byte(void *user, int64_t token) {
    putchar((int)token);
    fflush(stdout);
}

static void put_number(void *user, int64_t token) {
    printf(",%lld", (long long)token);
    fflush(stdout);
}

/* Bytes, or numbers with commas between; the tokens there are, 0 after a message. */
static int64_t read_prompt(const char *text, int64_t vocabulary, int64_t *out, int64_t room) {
    int64_t n = 0;
    if (vocabulary == 256) {
        for (; n < room && text[n]; n++)
            out[n] = (uint8_t)text[n];
        return n;
    }
    for (const char *at = text; *at && n < room;) {
        char *end;
        out[n] = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || out[n] < 0 || out[n] >= vocabulary) {
            fprintf(stderr,
                    "gpt: this model has %lld tokens, not bytes: --prompt takes their "
                    "numbers, such as 15496,995, not '%s'\n",
                    (long long)vocabulary, text);
            return 0;
        }
        n++;
        at = *end ? end + 1 : end;
    }
    return n;
}

static tn_status write_some(const options *o, const gpt *m) {
    int64_t room = (int64_t)strlen(o->prompt), *prompt = malloc((size_t)room * sizeof *prompt);
    if (!prompt)
        return TN_ERR_OUT_OF_MEMORY;
    int64_t n = read_prompt(o->prompt, m->config.vocabulary, prompt, room);
    tn_status status = n ? TN_OK : TN_ERR_INVALID_ARGUMENT;
    if (n) {
        printf("\n%s", o->prompt);
        status = generate(m, prompt, n, &o->generating,
                          m->config.vocabulary == 256 ? put_byte : put_number, NULL);
        printf("\n");
    }
    free(prompt);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------- */

static tn_status run(const options *o) {
    tn_device device = tn_default_device();
    if (device.type == 0)
        return tn_error_status();
    char name[64];
    if (!o->training.prints_losses)
        printf("device  %s  %s\n", tn_device_name(device, name, sizeof name),
               tn_device_product(device));
    tn_safetensors *file = o->load ? tn_safetensors_open(o->load) : NULL;
    if (o->load && !file)
        return tn_error_status();
    gpt m = {.n_parameters = 0};
    tn_status status = make_model(o, file, device, &m);
    if (status == TN_OK && o->training.n_steps > 0)
        status = train(o, file, &m);
    else if (status == TN_OK && o->save)
        status = checkpoint_save(o->save, &m, NULL, 0);
    if (status == TN_OK && o->generating.n > 0 && !o->training.prints_losses)
        status = write_some(o, &m);
    gpt_finish(&m);
    tn_safetensors_close(file);
    return status;
}

int main(int argc, char **argv) {
    options o;
    if (!options_parse(&o, argc, argv))
        return 2;
    tn_status status = run(&o);
    if (status != TN_OK && *tn_error_message())
        fprintf(stderr, "gpt: %s\n", tn_error_message());
    else if (status == TN_ERR_OUT_OF_MEMORY)
        fprintf(stderr, "gpt: no memory\n");
    tn_shutdown();
    return status == TN_OK ? 0 : 1;
}
