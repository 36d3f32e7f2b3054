/* See hang.h. */
#include "plugin-sdk/conformance/runner/run/hang.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/stack.h"

enum { MOST_THREADS = 64, FRAMES_SHOWN = 6 };

/* The first line of /proc/PID/task/TID/NAME, or "?". */
static char *read_task(pid_t pid, pid_t tid, const char *name, char out[64]) {
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(out, 64, file))
        strcpy(out, "?");
    if (file)
        fclose(file);
    out[strcspn(out, "\n")] = '\0';
    return out;
}

/* Waits for what the thread has to say: true where it said something. */
static bool hear(tc_child *child) {
    size_t before = child->printed.n;
    for (int patience = 250; child->output >= 0; patience = 30) {
        struct pollfd fd = {.fd = child->output, .events = POLLIN};
        size_t n = child->printed.n;
        if (poll(&fd, 1, patience) <= 0)
            break;
        tc_child_drain(child);
        if (child->printed.n == n)
            break;
    }
    return child->printed.n > before;
}

static int by_number(const void *a, const void *b) {
    return *(const pid_t *)a - *(const pid_t *)b;
}

/* The first thread's id is the process's, and the least unless numbers have wrapped. */
static size_t list_threads(pid_t pid, pid_t out[MOST_THREADS]) {
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && n < MOST_THREADS && (e = readdir(folder));)
        if (*e->d_name != '.')
            out[n++] = (pid_t)strtol(e->d_name, NULL, 10);
    if (folder)
        closedir(folder);
    if (n)
        qsort(out, n, sizeof *out, by_number);
    return n;
}

/* "/lib/libx.so(f+0x12)[0x7f..]" as "libx.so(f+0x12)", the last FRAMES_SHOWN first. */
static void shorten(const char *text, char out[TC_HANG]) {
    const char *line = strchr(text, '\n');
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; line && i < FRAMES_SHOWN; i++, line = strchr(line, '\n')) {
        line++;
        size_t length = strcspn(line, "[\n");
        const char *name = memrchr(line, '/', length);
        if (length == 0 || strncmp(line, "thread ", 7) == 0)
            break;
        length -= name ? (size_t)(name + 1 - line) : 0;
        int wrote = snprintf(out + n, TC_HANG - n, "%s%.*s", n ? " < " : "", (int)length,
                             name ? name + 1 : line);
        if ((size_t)wrote >= TC_HANG - n) {
            out[n] = '\0';
            break;
        }
        n += (size_t)wrote;
    }
}

char *tc_hang_look(tc_child *child, char out[TC_HANG]) {
    pid_t threads[MOST_THREADS];
    size_t n = list_threads(child->pid, threads);
    double until = tc_now() + 4;
    *out = '\0';
    tc_child_drain(child);
    for (size_t i = 0; i < n && tc_now() < until; i++) {
        char text[256], name[64], waits[64];
        size_t before = child->printed.n;
        if (syscall(SYS_tgkill, child->pid, threads[i], tc_stack_signal()) == 0 && hear(child)) {
            char first[4096];
            tc_output_copy(&child->printed, before, first, sizeof first);
            if (threads[i] == child->pid)
                shorten(first, out);
            continue;
        }
        int length = snprintf(text, sizeof text,
                              "thread %d (%s): takes no signal; the kernel says it is in %s\n",
                              (int)threads[i], read_task(child->pid, threads[i], "comm", name),
                              read_task(child->pid, threads[i], "wchan", waits));
        tc_output_add(&child->printed, text, (size_t)length);
    }
    return out;
}
