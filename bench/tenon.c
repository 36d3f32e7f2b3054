/* See tenon.h. */
#include "bench/tenon.h"

#include <stdio.h>

tn_device bench_device;

bool bench_tenon_start(uint32_t n_threads) {
    bench_device = tn_default_device();
    return bench_device.type && tn_set_num_threads(n_threads) == TN_OK;
}

static const char *error(void) {
    static char text[512]; /* reading and clearing, so that the next row starts without it */
    snprintf(text, sizeof text, "%s", tn_error_message());
    tn_error_clear();
    return text;
}

static const char *version(void) {
    static char text[256];
    char name[64];
    snprintf(text, sizeof text, "tenon %s on %s (%s)", tn_version(),
             tn_device_name(bench_device, name, sizeof name), tn_device_product(bench_device));
    return text;
}

int bench_tenon_main(const char *name, const bench_row *rows, size_t n_rows, int argc,
                     char **argv) {
    bench_program program = {.name = name,
                             .subject = "Tenon",
                             .rows = rows,
                             .n_rows = n_rows,
                             .start = bench_tenon_start,
                             .error = error,
                             .version = version};
    return bench_main(&program, argc, argv);
}
