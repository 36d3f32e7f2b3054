/* See stack.h. */
#include "plugin-sdk/conformance/stack.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
enum { HAS_BACKTRACE = 1 };
#else /* musl */
enum { HAS_BACKTRACE = 0 };
static int backtrace(void **frames, int n) {
    (void)frames, (void)n;
    return 0;
}
static void backtrace_symbols_fd(void *const *frames, int n, int fd) {
    (void)frames, (void)n, (void)fd;
}
#endif

enum { MOST_FRAMES = 64, OWN_FRAMES = 2 }; /* the handler and what called it are left out */

static char *put_text(char *to, const char *text) {
    while (*text)
        *to++ = *text++;
    return to;
}

static char *put_number(char *to, unsigned long number) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    return put_text(to, at);
}

/* Nothing is allocated or locked: the thread may have been stopped anywhere. */
static void on_signal(int number) {
    int kept = errno;
    void *frames[MOST_FRAMES];
    char line[96], name[17] = "", *at = line;
    (void)number;
    int n = backtrace(frames, MOST_FRAMES);
    prctl(PR_GET_NAME, name);
    at = put_text(at, "thread ");
    at = put_number(at, (unsigned long)syscall(SYS_gettid));
    at = put_text(at, " (");
    at = put_text(at, name);
    at = put_text(at, HAS_BACKTRACE ? "):\n" : "): this C library has no backtrace()\n");
    if (write(STDERR_FILENO, line, (size_t)(at - line)) > 0 && n > OWN_FRAMES)
        backtrace_symbols_fd(frames + OWN_FRAMES, n - OWN_FRAMES, STDERR_FILENO);
    errno = kept;
}

void tc_stack_prepare(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    void *frame;
    sigemptyset(&action.sa_mask);
    backtrace(&frame, 1); /* loads the unwinder, which takes the heap */
    sigaction(tc_stack_signal(), &action, NULL);
}
