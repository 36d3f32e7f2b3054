/* Forking while devices are open, and unloading the object after shutdown. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void life_fork(tc_contract *k) {
    tc_subject s;
    int ends[2];
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_FORK_SAFE, "before fork"))
        return;
    if (!(s.plugin->flags & TN_PLUGIN_FORK_SAFE)) {
        tc_subject_close(&s);
        TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_FORK_SAFE");
        return;
    }
    tc_lifecycle_probe(k, &s, true, TNP_FORK_SAFE, "before fork", NULL);
    if (!tc_failed(k) && pipe(ends) == 0) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            tc_lifecycle_probe(k, &s, true, TNP_FORK_SAFE, "in a forked child", NULL);
            if (tc_failed(k))
                (void)!write(ends[1], k->out->message, strlen(k->out->message));
            _exit(tc_failed(k) ? 1 : 0);
        }
        close(ends[1]);
        char text[TC_VERDICT_MESSAGE] = "";
        int status = 0;
        ssize_t got = read(ends[0], text, sizeof text - 1);
        close(ends[0]);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (child < 0)
            tc_verdict_set(k->out, TC_ERROR, TNP_NONE, "fork: %s", strerror(errno));
        else if (got > 0)
            TC_BROKEN(k, TNP_FORK_SAFE, "%.900s", text);
        else if (status != 0)
            TC_BROKEN(k, TNP_FORK_SAFE, "the plugin %s in a forked child",
                      WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hung" : "crashed");
        tc_lifecycle_probe(k, &s, true, TNP_FORK_SAFE, "after fork, in the parent", NULL);
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after fork and shutdown");
}

/* What was registered and not taken back is called when a process forks. */
static void fork_once(tc_contract *k) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && status != 0)
        TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE,
                  "a fork after dlclose crashes in what the plugin left behind");
}

static void life_unload(tc_contract *k) {
    uint64_t first = 0, sum = 0;
    for (int i = 0; i < 4 && !tc_failed(k); i++) {
        tc_subject s;
        if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_SHUTDOWN_UNLOADABLE,
                               i ? "loaded again" : "loaded"))
            return;
        tc_lifecycle_probe(k, &s, i == 0, TNP_SHUTDOWN_UNLOADABLE, i ? "loaded again" : "loaded",
                           NULL);
        tc_lifecycle_probe(k, &s, false, TNP_SHUTDOWN_UNLOADABLE, i ? "loaded again" : "loaded",
                           &sum);
        bool unloadable = s.plugin->flags & TN_PLUGIN_UNLOADABLE;
        tc_subject_close(&s);
        if (!unloadable) {
            TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_UNLOADABLE");
            return;
        }
        if (i && sum != first)
            TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE,
                      "a kernel gives other bits after the object was loaded again");
        first = sum;
        if (dlclose(s.object) != 0)
            TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE, "dlclose: %s", dlerror());
        fork_once(k);
    }
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after dlclose");
}

const tc_contract_row tc_fork_rows[] = {
    {"life-fork", "", TC_STANDARD, life_fork},
    {"life-unload", "", TC_STANDARD, life_unload},
    {0},
};
