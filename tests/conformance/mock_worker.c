/* A worker whose cases do every bad thing a plugin can do to one, so that the runner can be tested
 * without a plugin. Cases are named by what they do; what must last beyond the process (the flake)
 * is a file below the folder MOCK_DIR.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin-sdk/conformance/worker/worker.h"

static int poisoned; /* by kernel/poison, for kernel/victim: only together do they fail */

static void flood(FILE *out, size_t megabytes) {
    static char block[65536];
    memset(block, 'x', sizeof block);
    block[sizeof block - 1] = '\n';
    for (size_t i = 0; i < megabytes * 16; i++)
        fwrite(block, 1, sizeof block, out);
    fputs("the end of the flood\n", out);
    fflush(out);
}

/* The descriptor for verdicts, wherever the worker has moved it: the highest pipe. */
static int verdicts(void) {
    for (int fd = 1023; fd > 3; fd--) {
        char name[64], target[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, target, sizeof target - 1);
        if (n > 5 && memcmp(target, "pipe:", 5) == 0 &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
            return fd;
    }
    return 3;
}

static void shout(const char *text) {
    if (write(verdicts(), text, strlen(text)) < 0)
        abort();
}

/* Whether this is the first time `name` is asked for in MOCK_DIR. */
static bool first_time(const char *name) {
    const char *dir = getenv("MOCK_DIR");
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir ? dir : "/nonexistent", name);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* One byte more in the file `runs`. */
static void log_run(void) {
    const char *dir = getenv("MOCK_DIR");
    char path[512];
    snprintf(path, sizeof path, "%s/runs", dir ? dir : "/nonexistent");
    int fd = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, ".", 1) != 1)
        abort();
    close(fd);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die_later(void) {
    raise(SIGSEGV);
}

static void *listen(void *context) {
    prctl(PR_SET_NAME, "listens");
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
    return context;
}

static void *do_not_listen(void *context) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "deaf");
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
    return context;
}

static void hang_with_threads(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, listen, NULL);
    pthread_create(&threads[1], NULL, do_not_listen, NULL);
    for (;;)
        pause();
}

/* Level Load speaks of load-fail and its like. */
static const char *subject_of(const tc_case *c) {
    return c->subject + (strncmp(c->subject, "load-", 5) == 0 ? 5 : 0);
}

static void run(const tc_case *c, const tc_options *options, tc_verdict *out) {
    const char *s = subject_of(c);
    if (getenv("MOCK_ALL_CRASH"))
        abort();
    if (strcmp(s, "fail") == 0) {
        tc_verdict_set(out, TC_FAIL, 12, "self[3]: expected 1, got 2 <\"&'>");
        out->measured = true;
        out->share = 3.5;
        out->worst = 3;
    } else if (strcmp(s, "unsupported") == 0) {
        tc_verdict_set(out, TC_UNSUPPORTED, 0, "not offered");
    } else if (strncmp(s, "lacks.", 6) == 0) {
        /* items=amax.bool:copy.f32.i64 */
        char items[128] = "";
        const char *given = tc_case_get(c, "items");
        for (size_t n = 0; given && *given && n + 3 < sizeof items; given++) {
            n += (size_t)snprintf(items + n, 3, "%s",
                                  *given == ':'   ? ", "
                                  : *given == '.' ? " "
                                                  : "");
            if (*given != ':' && *given != '.')
                items[n++] = *given;
        }
        tc_verdict_set(out, TC_UNSUPPORTED, 0, TC_LACKS "%s; UNSUPPORTED: no kernel", items);
    } else if (strcmp(s, "inconclusive") == 0) {
        tc_verdict_set(out, TC_INCONCLUSIVE, 0, "all outputs are zero");
    } else if (strcmp(s, "segv") == 0) {
        fputs("about to fall\n", stderr);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(s, "abort") == 0) {
        abort();
    } else if (strcmp(s, "exit0") == 0) {
        exit(0);
    } else if (strcmp(s, "exit3") == 0) {
        _exit(3);
    } else if (strcmp(s, "hang") == 0) {
        for (;;)
            pause();
    } else if (strcmp(s, "hangthreads") == 0) {
        hang_with_threads();
    } else if (strcmp(s, "closed") == 0) {
        tc_verdict_set(out, TC_FAIL, 0, TC_CANNOT_OPEN ": it is asleep");
    } else if (strcmp(s, "longcrash") == 0) {
        puts("the first words");
        for (int i = 0; i < 5000; i++)
            printf("line %d\n", i);
        puts("the last words");
        fflush(stdout);
        abort();
    } else if (strcmp(s, "race") == 0) {
        fputs("chatter\n==================\nWARNING: ThreadSanitizer: data race (pid=1)\n"
              "  Write of size 4 at 0x1 by main thread:\n",
              stderr);
    } else if (strcmp(s, "stubborn") == 0) {
        /* Hangs with a child, which says who it is so that a test can see that it is gone. */
        pid_t pid = fork();
        for (int n = 1; n < 32; n++)
            signal(n, SIG_IGN);
        if (pid > 0)
            printf("grandchild %d\n", (int)pid);
        fflush(stdout);
        for (;;)
            pause();
    } else if (strcmp(s, "orphan") == 0) {
        if (fork() == 0) /* holds every pipe open while its parent dies */
            for (;;)
                pause();
        _exit(7);
    } else if (strcmp(s, "tunables") == 0) {
        const char *value = getenv("GLIBC_TUNABLES");
        tc_verdict_set(out, TC_INCONCLUSIVE, 0, "%s", value ? value : "none");
    } else if (strcmp(s, "waits") == 0) {
        const char *value = getenv("OMP_WAIT_POLICY");
        tc_verdict_set(out, TC_INCONCLUSIVE, 0, "%s", value ? value : "none");
    } else if (strcmp(s, "slow") == 0) {
        usleep(30000);
    } else if (strcmp(s, "when") == 0 || strcmp(s, "memory-when") == 0) {
        double start = seconds();
        usleep(30000);
        tc_verdict_set(out, TC_INCONCLUSIVE, 0, "%.6f %.6f", start, seconds());
    } else if (strcmp(s, "flood") == 0) {
        flood(stdout, 8);
        flood(stderr, 8);
    } else if (strcmp(s, "floodfail") == 0) {
        flood(stderr, 8);
        tc_verdict_set(out, TC_FAIL, 0, "after a flood");
    } else if (strcmp(s, "binary") == 0) {
        for (int i = 0; i < 4096; i++)
            putchar(i * 7 & 0xff);
        fflush(stdout);
        tc_verdict_set(out, TC_FAIL, 0, "binary \x80\xff\x01 in a message");
    } else if (strcmp(s, "garbage") == 0) {
        shout("\x01\xfe{\"case\":3}\n");
    } else if (strcmp(s, "endless") == 0) {
        for (int i = 0; i < 10000; i++)
            shout("no newline anywhere ");
    } else if (strcmp(s, "closeall") == 0) {
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        for (;;)
            pause();
    } else if (strcmp(s, "flake") == 0) {
        if (first_time("flake"))
            tc_verdict_set(out, TC_FAIL, 0, "this time");
    } else if (strcmp(s, "counted") == 0) {
        /* Fails, where once=NAME is given for the first time alone; a line of the file says it ran. */
        const char *once = tc_case_get(c, "once");
        log_run();
        if (!once || first_time(once))
            tc_verdict_set(out, TC_FAIL, 0, "element %s is wrong", once ? once : "1");
    } else if (strcmp(s, "flakecrash") == 0) {
        if (first_time("flakecrash"))
            abort();
    } else if (strcmp(s, "lie") == 0) {
        shout("{\"case\":\"kernel/another\",\"status\":\"pass\"}\n");
        pause();
    } else if (strcmp(s, "promotes") == 0) {
        shout("{\"case\":\"kernel/promotes\",\"status\":\"waived\"}\n");
        pause();
    } else if (strcmp(s, "twice") == 0) {
        shout("{\"case\":\"kernel/twice\",\"status\":\"pass\"}\n");
    } else if (strcmp(s, "badend") == 0) {
        atexit(die_later);
    } else if (strcmp(s, "leak") == 0) {
        for (int i = 0; i < 100; i++)
            if (dup(1) < 0 || !malloc(1000))
                break;
    } else if (strcmp(s, "poison") == 0) {
        poisoned = 1;
    } else if (strcmp(s, "victim") == 0) {
        if (poisoned)
            tc_verdict_set(out, TC_FAIL, 0, "poisoned");
    } else if (strcmp(s, "killed") == 0) {
        printf("worker %d\n", (int)getpid());
        fflush(stdout);
        const char *dir = getenv("MOCK_DIR");
        char path[512];
        snprintf(path, sizeof path, "%s/pid", dir ? dir : "/nonexistent");
        FILE *file = fopen(path, "w");
        if (file) {
            fprintf(file, "%d\n", (int)getpid());
            fclose(file);
        }
        for (;;)
            pause();
    } else if (strcmp(s, "pid") == 0) {
        tc_verdict_set(out, TC_INCONCLUSIVE, 0, "pid %d", (int)getpid());
    }
}

static const char *const smoke[] = {"add T=f32", "add T=f16", "fail", "unsupported"};

static void list(tc_set set, tc_sink *sink) {
    const char *file = getenv("MOCK_LIST");
    FILE *in = file ? fopen(file, "r") : NULL;
    char line[TC_MAX_LINE];
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        sink->line(sink, line);
    }
    if (in)
        fclose(in);
    for (size_t i = 0; !file && i < sizeof smoke / sizeof *smoke; i++) {
        snprintf(line, sizeof line, "kernel/%s", smoke[i]);
        sink->line(sink, line);
    }
    if (!file && set == TC_EXHAUSTIVE)
        sink->line(sink, "kernel/rare");
}

static void describe(const tc_options *options, FILE *out) {
    if (getenv("MOCK_MUTE"))
        abort();
    const char *devices = getenv("MOCK_DEVICES");
    fprintf(
        out,
        "{\"id\":\"mock\",\"version\":\"1.2\",\"device\":\"Mock <device>\",\"firmware\":\"fw %u\","
        "\"n_devices\":%s}",
        options->device, devices ? devices : "1");
}

#define CLASS(name) static const tc_class name##_class = {#name, NULL, run, false};
CLASS(same)
CLASS(refuse)
CLASS(contract)
CLASS(process)
CLASS(operator)
CLASS(gradient)
CLASS(train)
CLASS(perf)
static const tc_class kernel_class = {.name = "kernel", .list = list, .run = run};
static const tc_class *const classes[] = {&kernel_class,   &same_class,    &refuse_class,
                                          &contract_class, &process_class, &operator_class,
                                          &gradient_class, &train_class,   &perf_class};
static const tc_suite suite = {
    .classes = classes, .n_classes = sizeof classes / sizeof *classes, .describe = describe};

int main(int argc, char **argv) {
    return tc_worker_main(argc - 1, argv + 1, &suite);
}
