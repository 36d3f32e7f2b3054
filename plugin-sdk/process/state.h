/* What of the process and of the calling thread a plugin leaves as it found it (TNP-94). The
 * validation layer and the conformance suite look before a call and after it, by this one list.
 *
 * Looking changes nothing, not even for a moment. What another thread changes meanwhile shows too,
 * but for what is a thread's own.
 */
#ifndef TNI_PLUGIN_SDK_PROCESS_STATE_H
#define TNI_PLUGIN_SDK_PROCESS_STATE_H

#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>

/* X(PART, part): each has its member of the state below, and in state.c look_<part>, compare_<part>
 * and restore_<part>. Those in TNI_PROCESS_QUICK_MAP are looked at without a call of the system, in
 * some nanoseconds. */
#define TNI_PROCESS_QUICK_MAP(X) \
    X(FLOATING_POINT, floating_point) \
    X(LOCALE, locale)
#define TNI_PROCESS_SLOW_MAP(X) \
    X(SIGNAL_MASK, signal_mask) \
    X(THREAD_NAME, thread_name) \
    X(PROCESSORS, processors) \
    X(TEAMS, teams) \
    X(DIRECTORY, directory) \
    X(SIGNAL_ACTIONS, signal_actions) \
    X(UMASK, umask) \
    X(ENVIRONMENT, environment) \
    X(LIMITS, limits) \
    X(TIMERS, timers) \
    X(PRIORITY, priority)
#define TNI_PROCESS_MAP(X) TNI_PROCESS_QUICK_MAP(X) TNI_PROCESS_SLOW_MAP(X)

/* What all threads share. */
#define TNI_PROCESS_SHARED_MAP(X) \
    X(LOCALE, locale) \
    X(DIRECTORY, directory) \
    X(SIGNAL_ACTIONS, signal_actions) \
    X(UMASK, umask) \
    X(ENVIRONMENT, environment) \
    X(LIMITS, limits) \
    X(TIMERS, timers)

typedef enum tni_process_part {
#define X(PART, part) TNI_PROCESS_##PART,
    TNI_PROCESS_MAP(X)
#undef X
        TNI_PROCESS_PARTS
} tni_process_part;

enum { TNI_N_SIGNALS = 25, TNI_N_LIMITS = 8, TNI_N_TIMERS = 3, TNI_N_OPENMPS = 4 };

typedef struct tni_process_state {
    struct {
        int rounding;
        uint32_t mxcsr;
        uint64_t control; /* of the x87, or of the FPCR */
    } floating_point;
    sigset_t signal_mask;
    char thread_name[16];
    int teams
        [TNI_N_OPENMPS]; /* threads of its next parallel region, in each OpenMP that is loaded; else 0 */
    cpu_set_t processors; /* that the thread may run on; none where there are too many to say */
    struct {
        locale_t thread;
        char process[512];
    } locale;
    char directory[1024];
    struct sigaction signal_actions[TNI_N_SIGNALS];
    uint32_t umask;       /* all ones where the system does not say */
    uint64_t environment; /* a sum of all variables */
    struct rlimit limits[TNI_N_LIMITS];
    struct itimerval timers[TNI_N_TIMERS];
    int priority;
} tni_process_state;

/* For tests: each OpenMP that is loaded gives the thread n threads from now on (0: as before), and what it gave; and back. */
void tni_process_set_teams(int n, int before[TNI_N_OPENMPS]);
void tni_process_restore_teams(const int before[TNI_N_OPENMPS]);
/* The thread may be given fewer than it asks for (OMP_DYNAMIC). */
void tni_process_let_teams_be_smaller(bool may);
/* Runs `run` on the last of n threads that share an OpenMP's parallel region, and waits for it; false where nobody has
 * loaded one, or it gives fewer threads: then it did not run. */
bool tni_process_run_in_team(int n, void (*run)(void *context), void *context);

void tni_process_look(tni_process_state *s);

/* Looks again: the first part that is different from `before`, and in `text` what was done to it, as
 * "changed the umask from 22 to 27". TNI_PROCESS_PARTS where all is as it was. */
tni_process_part tni_process_compare(const tni_process_state *before, char *text, size_t size);

/* The same of what all threads share; of the locale not what is the calling thread's. */
tni_process_part tni_process_compare_shared(const tni_process_state *before, char *text,
                                            size_t size);

/* The same of the quick parts alone, in a state that has no others. */
void tni_process_look_quickly(tni_process_state *s);
tni_process_part tni_process_compare_quickly(const tni_process_state *before, char *text,
                                             size_t size);

/* Puts back what differs, as far as that can be: environment variables and hard limits stay. Only the
 * quick parts of a state that was looked at quickly. */
void tni_process_restore(const tni_process_state *before);
void tni_process_restore_quickly(const tni_process_state *before);

#endif
