/* Plugins that end the process that opens them, or keep it for ever, each in another way:
 * EVIL_<HOW>. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ZOO_TYPE "evil"

#if defined(EVIL_ABORT)
__attribute__((constructor)) static void begin(void) {
    fprintf(stderr, "evil: \033[31mnothing works\n");
    abort();
}
#elif defined(EVIL_EXIT)
__attribute__((constructor)) static void begin(void) {
    _exit(0);
}
#elif defined(EVIL_HANG)
__attribute__((constructor)) static void begin(void) {
    for (;;)
        pause();
}
#elif defined(EVIL_INIT)
#define ZOO_INIT exit(3);
#elif defined(EVIL_OPEN)
#define ZOO_BREAK device_ops.open = open_and_die;
#elif defined(EVIL_LAST)
__attribute__((destructor)) static void end(void) {
    abort();
}
#elif defined(EVIL_TEXT)
__attribute__((constructor)) static void begin(void) {
    printf("a banner of the vendor's\n");
}
#define ZOO_INIT \
    host->log_message(host, TN_LOG_WARN, "one\033]0;title\007\ntenon error loader: forged \xff"); \
    return host->fail(host, TN_ERR_IO, "\033[2J\xfe is gone");
#define ZOO_BREAK plugin.version = "1\033[31m\n2\xff";
#endif

#include <tenon/plugin.h>
static inline tn_status open_and_die(tn_instance *self, uint32_t index, tn_device_impl **out) {
    raise(SIGKILL);
    return TN_OK;
}

#include "tests/zoo/good.c"
