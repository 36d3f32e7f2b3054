/* Asks for the device type it is told and prints what became of it: a whole process for tests of
 * places and privileges. Prints the log too. */
#include "loader/loader.h"

#include <stdio.h>

static void print_line(void *user, int32_t level, const char *subsystem, const char *line) {
    printf("log %s: %s\n", subsystem, line);
}

int main(int argc, char **argv) {
    tn_log_set(TN_LOG_WARN, print_line, NULL);
    const tni_plugin *p = tni_loader_get(argc > 1 ? argv[1] : "zoo");
    printf("%s\n", p ? p->path : tn_error_message());
    tni_loader_finish();
    return p ? 0 : 1;
}
