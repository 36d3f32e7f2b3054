/* tenon-conform-core: the worker of the conformance suite whose cases run through libtenon, as
 * users' programs do. */
#include "plugin-sdk/conformance/worker/core/classes.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"

#include <stdio.h>

static const tc_class *const classes[] = {&tc_operator_class, &tc_gradient_class, &tc_train_class};

static const tc_suite suite = {
    .classes = classes,
    .n_classes = sizeof classes / sizeof *classes,
    .finish = tc_device_pair_close,
};

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: tenon-conform-core list|work ...\n");
        return 2;
    }
    return tc_worker_main(argc - 1, argv + 1, &suite);
}
