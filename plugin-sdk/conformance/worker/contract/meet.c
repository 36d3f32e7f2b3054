/* See meet.h. */
#include "plugin-sdk/conformance/worker/contract/meet.h"

#include "plugin-sdk/conformance/clock.h"

#include <sched.h>

/* So often a thread looks before it lets others run, who may need its processor. */
enum { LOOKS = 300 };

void tc_meeting_init(tc_meeting *m, int n) {
    m->n = n;
    atomic_init(&m->arrived, 0);
    atomic_init(&m->over, 0);
}

/* The last to come ends the meeting and opens the next one. */
static bool is_last(tc_meeting *m) {
    if (atomic_fetch_add(&m->arrived, 1) != m->n - 1)
        return false;
    atomic_store(&m->arrived, 0);
    atomic_fetch_add(&m->over, 1);
    return true;
}

void tc_meet(tc_meeting *m) {
    int now = atomic_load(&m->over);
    if (is_last(m))
        return;
    for (int i = 0; atomic_load(&m->over) == now; i++)
        if (i >= LOOKS)
            sched_yield();
}

bool tc_meet_at_most(tc_meeting *m, double seconds) {
    int now = atomic_load(&m->over), one;
    double end = tc_now() + seconds;
    if (is_last(m))
        return true;
    for (int i = 0; atomic_load(&m->over) == now; i++) {
        if (i < 10 * LOOKS)
            continue;
        sched_yield();
        if (tc_now() < end)
            continue;
        one = 1; /* unless the others come right now */
        if (atomic_compare_exchange_strong(&m->arrived, &one, 0))
            return false;
    }
    return true;
}

void tc_come_late(tc_random *r) {
    uint64_t turns = tc_below(r, (uint64_t)1 << tc_below(r, 12));
    for (volatile uint64_t i = 0; i < turns; i++)
        ;
}
