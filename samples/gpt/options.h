/* What the command line says. */
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include "generate.h"
#include "train.h"

typedef struct options {
    const char *text, *out, *save, *load, *prompt;
    gpt_config config; /* of a model that is made */
    int64_t n_heads;   /* of one that is loaded; 0: what the file says */
    train_options training;
    generate_options generating;
} options;

/* False, after a message, when the command line is wrong. --help prints and ends the program. */
bool options_parse(options *o, int argc, char **argv);

#endif
