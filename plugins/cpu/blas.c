/* BLAS as a guest: on the calling thread, and never in the middle of something when the process
 * forks. */
#include "plugins/cpu/gemm.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef TNC_HAVE_OPENBLAS
#include <cblas.h>
#endif

/* Held by who forks while that lasts. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* ---- threads: we share out the work, it computes ----------------------------------------- */

/* OpenBLAS built for OpenMP asks OpenMP how many threads to use; that answer belongs to the calling
 * thread, so it can be changed for a while without anyone noticing. Its own setter would change the
 * whole process. Inside a parallel region it is serial anyway. */
static int take_one_thread(void) {
    int was = 1;
#ifdef _OPENMP
    was = tnc_openmp_is_safe() ? omp_get_max_threads() : 1;
    if (was != 1)
        omp_set_num_threads(1);
#endif
    return was;
}

static void give_threads_back(int was) {
#ifdef _OPENMP
    if (was != 1)
        omp_set_num_threads(was);
#else
    (void)was;
#endif
}

#ifdef TNC_HAVE_OPENBLAS
/* OpenBLAS built for pthreads has only its process-wide setter: one thread while the plugin lives.
 */
enum { OPENBLAS_PTHREADS = 1 };
static int n_users, blas_threads; /* under the gate */
static char version[160];         /* written by the first user */

void tnc_blas_start(void) {
    pthread_mutex_lock(&gate);
    if (!*version)
        snprintf(version, sizeof version, "%s", openblas_get_config());
    if (n_users++ == 0 && openblas_get_parallel() == OPENBLAS_PTHREADS) {
        blas_threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
    pthread_mutex_unlock(&gate);
}

void tnc_blas_stop(void) {
    pthread_mutex_lock(&gate);
    if (--n_users == 0 && blas_threads) {
        openblas_set_num_threads(blas_threads);
        blas_threads = 0;
    }
    pthread_mutex_unlock(&gate);
}

const char *tnc_blas_version(void) {
    return version;
}
#else
void tnc_blas_start(void) {}

void tnc_blas_stop(void) {}

const char *tnc_blas_version(void) {
    return "";
}
#endif

/* ---- forks ------------------------------------------------------------------------------- */

/* OpenBLAS guards its table of buffers with locks that spin, and does not look after them at a fork:
 * a child of a thread in the table spins for ever. So a fork waits until nobody is in BLAS, and who
 * comes waits for the fork. Threads count themselves in on a few seats, so that they do not share a
 * cache line. */
enum { N_SEATS = 16, CACHE_LINE = 64 };
static struct { _Alignas(CACHE_LINE) atomic_int n; } seats[N_SEATS];
static atomic_bool closed; /* by a fork that holds the gate */
static atomic_bool lost;   /* see tnc_blas_works */

static bool anyone_inside(void) {
    for (int i = 0; i < N_SEATS; i++)
        if (atomic_load(&seats[i].n) != 0)
            return true;
    return false;
}

tnc_blas_visit tnc_blas_enter(void) {
    /* threads' descriptors lie a multiple of a page apart */
    atomic_int *seat = &seats[((uintptr_t)pthread_self() >> 12) % N_SEATS].n;
    atomic_fetch_add(seat, 1);
    while (atomic_load(&closed)) {
        atomic_fetch_sub(seat, 1);
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
        atomic_fetch_add(seat, 1);
    }
    return (tnc_blas_visit){take_one_thread(), seat};
}

void tnc_blas_leave(tnc_blas_visit visit) {
    give_threads_back(visit.n_threads);
    atomic_fetch_sub(visit.seat, 1);
}

bool tnc_blas_works(void) {
    return !atomic_load_explicit(&lost, memory_order_relaxed);
}

/* Each host of this object announces the same fork, one after the other. */
static _Thread_local int n_announced;

void tnc_blas_before_fork(void) {
    if (n_announced++ > 0)
        return;
    pthread_mutex_lock(&gate);
    atomic_store(&closed, true);
    while (anyone_inside())
        sched_yield();
}

/* In a child: who was on the way to the gate is not there. */
static void empty_seats(void) {
    for (int i = 0; i < N_SEATS; i++)
        atomic_store(&seats[i].n, 0);
}

void tnc_blas_after_fork(bool in_child) {
    if (--n_announced > 0)
        return;
    if (in_child)
        empty_seats();
    atomic_store(&closed, false);
    pthread_mutex_unlock(&gate);
}

void tnc_blas_forked(void) {
    if (atomic_load(&closed)) /* announced, and not over */
        return;
    if (anyone_inside())
        atomic_store(&lost, true);
    empty_seats();
    pthread_mutex_init(&gate, NULL);
}
