/* The command line. */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const help_text =
    "usage: gpt [options]      trains a byte-level transformer on a text, then writes some\n"
    "\n"
    "  --text PATH         a file, or a folder with .txt and .md files [docs]\n"
    "  --steps N           of training, those of a loaded checkpoint included; 0: none [600]\n"
    "  --until N           stops before them, for --save, whose file --load goes on from [steps]\n"
    "  --quick             a small model and 40 steps: a few seconds\n"
    "  --batch N           pieces in a step [16]\n"
    "  --rate X            the highest learning rate [0.002]\n"
    "  --autocast bf16     products in bf16; the weights stay f32 [off]\n"
    "  --recompute         less memory: blocks are computed again in backward\n"
    "  --seed N            of weights, pieces and what is written [1]\n"
    "  --context N         bytes that the model looks back [128]\n"
    "  --width N           numbers that a byte is [128]\n"
    "  --layers N          [4]\n"
    "  --heads N           [4]; of loaded weights: [what the file says, or one for 64 numbers]\n"
    "  --load FILE         goes on from a checkpoint, or from weights with GPT-2's names\n"
    "                      (safetensors); its sizes are taken\n"
    "  --save FILE         model and optimizer, at the end, to go on from\n"
    "  --out FILE          the curve of the training, an SVG [gpt.svg]\n"
    "  --generate N        tokens to write [400]\n"
    "  --prompt TEXT       what they go on from; numbers of tokens where a loaded model has other\n"
    "                      ones than bytes: 15496,995 [The ]\n"
    "  --temperature X     0: the likeliest always [0.8]\n"
    "  --top-k N           only among so many likeliest; 0: among all [0]\n"
    "  --steps-losses      print each loss in full precision, and nothing else\n"
    "  --help              this text\n"
    "\n"
    "TENON_DEVICE chooses the device: TENON_DEVICE=npu:0 gpt\n";

enum {
    CONTEXT = 256,
    LAYERS,
    HEADS,
    SAVE,
    LOAD,
    OUT,
    TEMPERATURE,
    TOP_K,
    LOSSES,
    WIDTH,
    RATE,
    UNTIL,
    AUTOCAST,
    RECOMPUTE
};

static const struct option known[] = {{"text", required_argument, NULL, 't'},
                                      {"steps", required_argument, NULL, 'n'},
                                      {"until", required_argument, NULL, UNTIL},
                                      {"quick", no_argument, NULL, 'q'},
                                      {"batch", required_argument, NULL, 'b'},
                                      {"rate", required_argument, NULL, RATE},
                                      {"autocast", required_argument, NULL, AUTOCAST},
                                      {"recompute", no_argument, NULL, RECOMPUTE},
                                      {"seed", required_argument, NULL, 's'},
                                      {"context", required_argument, NULL, CONTEXT},
                                      {"width", required_argument, NULL, WIDTH},
                                      {"layers", required_argument, NULL, LAYERS},
                                      {"heads", required_argument, NULL, HEADS},
                                      {"load", required_argument, NULL, LOAD},
                                      {"save", required_argument, NULL, SAVE},
                                      {"out", required_argument, NULL, OUT},
                                      {"generate", required_argument, NULL, 'g'},
                                      {"prompt", required_argument, NULL, 'p'},
                                      {"temperature", required_argument, NULL, TEMPERATURE},
                                      {"top-k", required_argument, NULL, TOP_K},
                                      {"steps-losses", no_argument, NULL, LOSSES},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

static bool whole(const char *name, const char *text, int64_t least, int64_t most, int64_t *out) {
    char *end;
    *out = strtoll(text, &end, 10);
    if (*text && !*end && *out >= least && *out <= most)
        return true;
    fprintf(stderr, "gpt: --%s is a whole number from %lld to %lld, not '%s'\n", name,
            (long long)least, (long long)most, text);
    return false;
}

static bool number(const char *name, const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (*text && !*end && isfinite(*out) && *out >= 0)
        return true;
    fprintf(stderr, "gpt: --%s is a number of at least 0, not '%s'\n", name, text);
    return false;
}

static void make_quick(options *o) {
    o->config = (gpt_config){256, 64, 64, 2, 2};
    o->training.n_steps = 40;
    o->training.batch = 8;
    o->generating.n = 80;
}

/* One option; false after a message. */
static bool take(options *o, int c, const char *name, const char *text) {
    const int64_t many = 1 << 20;
    int64_t seed;
    switch (c) {
    case 't':
        o->text = text;
        return true;
    case 'n':
        return whole(name, text, 0, INT32_MAX, &o->training.n_steps);
    case UNTIL:
        return whole(name, text, 0, INT32_MAX, &o->training.until);
    case 'q':
        make_quick(o);
        return true;
    case 'b':
        return whole(name, text, 1, many, &o->training.batch);
    case 's':
        if (!whole(name, text, 0, INT64_MAX, &seed))
            return false;
        o->training.seed = o->generating.seed = (uint64_t)seed;
        return true;
    case 'g':
        return whole(name, text, 0, many, &o->generating.n);
    case 'p':
        o->prompt = text;
        return true;
    case AUTOCAST:
        o->training.autocast = TN_BF16;
        if (strcmp(text, "bf16") == 0)
            return true;
        fprintf(stderr, "gpt: --autocast is bf16, not '%s'\n", text);
        return false;
    case RECOMPUTE:
        o->training.recomputes = true;
        return true;
    case RATE:
        return number(name, text, &o->training.learning_rate);
    case CONTEXT:
        return whole(name, text, 1, many, &o->config.context);
    case WIDTH:
        return whole(name, text, 1, many, &o->config.width);
    case LAYERS:
        return whole(name, text, 1, GPT_MAX_LAYERS, &o->config.n_layers);
    case HEADS:
        o->n_heads = 0;
        if (!whole(name, text, 1, many, &o->n_heads))
            return false;
        o->config.n_heads = o->n_heads;
        return true;
    case LOAD:
        o->load = text;
        return true;
    case SAVE:
        o->save = text;
        return true;
    case OUT:
        o->out = text;
        return true;
    case TEMPERATURE:
        return number(name, text, &o->generating.temperature);
    case TOP_K:
        return whole(name, text, 0, many, &o->generating.top_k);
    case LOSSES:
        o->training.prints_losses = true;
        return true;
    case 'h':
        fputs(help_text, stdout);
        exit(0);
    default: /* getopt has said it */
        return false;
    }
}

bool options_parse(options *o, int argc, char **argv) {
    *o = (options){.text = "docs", .out = "gpt.svg", .prompt = "The "};
    o->config = (gpt_config){256, 128, 128, 4, 4};
    o->training = (train_options){.n_steps = 600,
                                  .until = INT32_MAX,
                                  .batch = 16,
                                  .learning_rate = 2e-3,
                                  .seed = 1,
                                  .autocast = TN_DTYPE_NONE};
    o->generating = (generate_options){.n = 400, .temperature = 0.8, .seed = 1};
    int c, which = 0;
    while ((c = getopt_long(argc, argv, "", known, &which)) != -1)
        if (!take(o, c, c == '?' ? "" : known[which].name, optarg))
            return false;
    if (optind < argc) {
        fprintf(stderr, "gpt: one word too many: '%s'\n", argv[optind]);
        return false;
    }
    if (!o->load && o->config.width % o->config.n_heads != 0) {
        fprintf(stderr, "gpt: --width %lld is not a multiple of --heads %lld\n",
                (long long)o->config.width, (long long)o->config.n_heads);
        return false;
    }
    if (!*o->prompt) {
        fprintf(stderr, "gpt: --prompt has at least one byte\n");
        return false;
    }
    return true;
}
