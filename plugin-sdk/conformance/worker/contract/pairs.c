/* Two threads that call at the same moment: each slot that any thread may call beside each, itself
 * included, with objects of their own, on the same objects, on two devices and as two hosts.
 *
 * What is taken from another thread's call is often in use for nanoseconds, so first the threads meet before
 * each call, and come late by times that are drawn: over the rounds the calls overlap in all ways. Then each
 * calls as fast as it can, since who has to wake up or to give way comes too late. */
#include "plugin-sdk/conformance/worker/contract/hand.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/meet.h"
#include "plugin-sdk/conformance/worker/contract/open_devices.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SMALL = 1000, ROUNDS = 1000, MOST_BYTES = 2 << 20 };

/* How often the threads meet for one pair of slots; how many calls are then to overlap, and how long that may take
 * where the machine has other things to do. */
typedef struct effort {
    int meetings, overlaps;
    double seconds;
} effort;
static const effort alike = {60, 3000, 0.04}, unlike = {8, 150, 0.008};

typedef struct pair {
    tc_meeting meeting;
    tc_hand hands[2];
    const tc_slot *slots[2];
    effort effort; /* on this pair of slots */
    double end;    /* of the time for it */
    atomic_int calls[2], overlaps;
    atomic_bool enough;  /* of this turn: one thread has made its calls */
    atomic_int n_rounds; /* of this turn, in which the threads meet */
    bool over;
} pair;

typedef struct seat {
    pair *p;
    int number;
} seat;

/* The host lets others run in some rounds, which finds what a plugin does round host->alloc without a lock. False in
 * the round that is none any more, since the time is over: where threads wait for processors a meeting is dear. */
static bool call_together(pair *p, int number, int round, tc_random *r) {
    enum { LEAST = 3 };
    tc_hand *h = &p->hands[number];
    if (number == 0) {
        tc_host_yield(round % 4 == 3);
        if (round >= LEAST && tc_now() > p->end)
            atomic_store(&p->n_rounds, round);
    }
    tc_meet(&p->meeting);
    if (round >= atomic_load(&p->n_rounds))
        return false;
    if (!*h->wrong) {
        tc_come_late(r);
        p->slots[number]->call(h, round);
    }
    return true;
}

/* Calls until enough of them were under way when the other thread's ended, or all places are used. */
static void call_freely(pair *p, int number) {
    tc_hand *h = &p->hands[number];
    while (h->used < h->rounds && !*h->wrong && !atomic_load(&p->enough) && tc_now() < p->end) {
        int before = atomic_load(&p->calls[!number]);
        p->slots[number]->call(h, h->used++);
        atomic_fetch_add(&p->calls[number], 1);
        if (atomic_load(&p->calls[!number]) != before &&
            atomic_fetch_add(&p->overlaps, 1) >= p->effort.overlaps)
            break;
    }
    atomic_store(&p->enough, true);
}

/* All calls of a hand in one pair of slots. */
static void call_all(pair *p, int number, tc_random *r) {
    tc_hand *h = &p->hands[number];
    h->used = 0;
    while (h->used < p->effort.meetings && call_together(p, number, h->used, r))
        h->used++;
    if (number == 0)
        tc_host_yield(false);
    tc_meet(&p->meeting);
    call_freely(p, number);
    tc_meet(&p->meeting);
}

/* The second thread: one pair of slots after the other. */
static void *sit(void *context) {
    seat *s = context;
    tc_random r = {77};
    for (;;) {
        tc_meet(&s->p->meeting);
        if (s->p->over)
            return NULL;
        call_all(s->p, s->number, &r);
    }
}

static bool failed(const pair *p) {
    return tc_failed(p->hands[0].k) || tc_failed(p->hands[1].k);
}

/* Each turn has places of its own, which are looked at before the next one. */
static void take_turn(pair *p, const char *what, tc_random *r) {
    atomic_store(&p->enough, false);
    atomic_store(&p->n_rounds, ROUNDS);
    tc_meet(&p->meeting);
    call_all(p, 0, r);
    for (int i = 0; i < 2; i++)
        tc_hand_check(&p->hands[i], what);
    p->effort.meetings = 0;
}

static void cross(pair *p, const tc_slot *a, const tc_slot *b, tc_random *r) {
    char what[200];
    snprintf(what, sizeof what, "one thread in %s, another in %s", a->name, b->name);
    p->slots[0] = a;
    p->slots[1] = b;
    p->effort = a == b ? alike : unlike;
    if (p->effort.meetings > p->hands[0].rounds)
        p->effort.meetings = p->hands[0].rounds;
    p->end = tc_now() + p->effort.seconds;
    atomic_store(&p->overlaps, 0);
    do
        take_turn(p, what, r);
    while (!failed(p) && atomic_load(&p->overlaps) < p->effort.overlaps && tc_now() < p->end);
}

/* Large transfers beside large transfers alone. */
static bool is_asked(const pair *p, const tc_slot *slot) {
    return slot->can(&p->hands[0]) && slot->can(&p->hands[1]) &&
           (slot->moves || p->hands[0].most == SMALL);
}

static void cross_all(pair *p) {
    tc_random r = {p->hands[0].k->c->seed};
    seat second = {p, 1};
    pthread_t thread;
    if (pthread_create(&thread, NULL, sit, &second) != 0) {
        TC_CASE_ERROR(p->hands[0].k->out, "a thread cannot be started");
        return;
    }
    for (const tc_slot *a = tc_slots; a->name; a++)
        for (const tc_slot *b = tc_slots; b <= a; b++)
            if (!failed(p) && is_asked(p, a) && is_asked(p, b))
                cross(p, a, b, &r);
    p->over = true;
    tc_meet(&p->meeting);
    pthread_join(thread, NULL);
}

/* Whose hands they are is set before. */
static void run_pair(pair *p, uint64_t most, bool shares) {
    tc_meeting_init(&p->meeting, 2);
    for (int i = 0; i < 2; i++) {
        tc_hand *h = &p->hands[i];
        uint64_t rounds = MOST_BYTES / most;
        h->number = i;
        h->most = most;
        h->rounds = (int)(rounds < ROUNDS ? rounds : ROUNDS);
    }
    if (tc_hand_create(&p->hands[0], NULL) &&
        tc_hand_create(&p->hands[1], shares ? &p->hands[0] : NULL))
        cross_all(p);
    for (int i = 2; i-- > 0;)
        tc_hand_finish(&p->hands[i]);
}

static void pairs(tc_contract *k) {
    pair p = {.hands = {{.k = k, .s = k->subject}, {.k = k, .s = k->subject}}};
    run_pair(&p, (uint64_t)tc_contract_int(k, "bytes"),
             strcmp(tc_contract_word(k, "objects"), "same") == 0);
}

static void pairs_of_devices(tc_contract *k) {
    tc_devices all;
    if (tc_devices_open(k, &all)) {
        pair p = {.hands = {{.k = k, .s = &all.at[0]}, {.k = k, .s = &all.at[1]}}};
        run_pair(&p, SMALL, false);
    }
    tc_devices_close(&all);
}

/* ---- two hosts --------------------------------------------------------------------------- */

typedef struct tenant {
    tc_contract k;
    tc_verdict verdict;
    tn_host host;
    tc_subject s;
} tenant;

static void tenant_init(tenant *t, const tc_contract *k) {
    memset(t, 0, sizeof *t);
    t->k = (tc_contract){.c = k->c,
                         .options = k->options,
                         .out = &t->verdict,
                         .random = {k->c->seed},
                         .subject = &t->s};
    t->host = *tc_host_table();
}

static void tenant_finish(tenant *t, tc_contract *k) {
    if (t->s.self) {
        tc_release(&t->k, NULL);
        tc_subject_close(&t->s);
    }
    tc_arena_finish(&t->k.arena);
    if (tc_failed(&t->k))
        tc_verdict_set(k->out, t->verdict.status, t->verdict.requirement, "%.900s",
                       t->verdict.message);
}

static void pairs_of_hosts(tc_contract *k) {
    static tenant all[2];
    tenant_init(&all[0], k);
    tenant_init(&all[1], k);
    if (tc_lifecycle_open(&all[0].k, &all[0].s, &all[0].host, TNP_INIT_TWICE, "for a host") &&
        tc_lifecycle_open(&all[1].k, &all[1].s, &all[1].host, TNP_INIT_TWICE, "for another host")) {
        pair p = {.hands = {{.k = &all[0].k, .s = &all[0].s}, {.k = &all[1].k, .s = &all[1].s}}};
        run_pair(&p, SMALL, false);
    }
    for (int i = 2; i-- > 0;)
        tenant_finish(&all[i], k);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after two hosts");
}

/* Lives of two hosts, which begin and end at the same moments: one's first call is another's last. The plugin's
 * own table is called, since what a call changes in the process belongs to one of the two alone. */
typedef struct neighbour {
    tenant *t;
    tc_meeting *meeting;
    double end;
    pthread_t thread;
    int number;
} neighbour;

/* A device is opened, written and read, without a stream of its own where there are none. */
static void use_device(tc_contract *k, const tn_device_ops *ops, tn_device_impl *device,
                       int value) {
    enum { BYTES = 64 };
    tn_allocation a = {.struct_size = sizeof a,
                       .bytes = BYTES,
                       .space = TN_SPACE_DEVICE,
                       .alignment = k->subject->alignment};
    unsigned char back[BYTES] = {0}, expected[BYTES];
    tn_stream_impl *stream = NULL;
    memset(expected, value, BYTES);
    if (!tc_must(k, TNP_INIT_TWICE, ops->memory->alloc(device, &a), "alloc"))
        return;
    if (!ops->streams || tc_must(k, TNP_INIT_TWICE, ops->streams->create(device, 0, &stream),
                                 "create of a stream")) {
        tc_must(k, TNP_INIT_TWICE,
                ops->memory->fill(device, stream, a.memory, 0, (uint8_t)value, BYTES), "fill");
        tc_must(k, TNP_INIT_TWICE,
                ops->memory->copy_to_host(device, stream, back, 0, a.memory, 0, BYTES), "read");
        if (!tc_failed(k) && memcmp(back, expected, BYTES) != 0)
            TC_BROKEN(
                k, TNP_INIT_TWICE,
                "other bytes came back than were filled in, while another host began or ended");
    }
    if (stream)
        ops->streams->destroy(stream);
    ops->memory->dealloc(device, TN_SPACE_DEVICE, a.memory);
}

static void live_once(neighbour *n, tc_random *r) {
    tenant *t = n->t;
    tc_contract *k = &t->k;
    const tn_plugin *plugin = t->s.plugin;
    tn_instance *self = NULL;
    tn_device_impl *device = NULL;
    uint32_t count = 0;
    tc_host_begin(&t->host);
    if (tc_must(k, TNP_INIT_TWICE, plugin->init(&t->host, k->options->plugin, &self), "init")) {
        if (tc_must(k, TNP_INIT_TWICE, plugin->devices->count(self, &count), "count") &&
            tc_must(k, TNP_INIT_TWICE, plugin->devices->open(self, k->options->device, &device),
                    "open while another host begins or ends")) {
            use_device(k, plugin->devices, device, n->number + 1);
            plugin->devices->close(device);
        }
        tc_meet_at_most(n->meeting, 0.2);
        tc_come_late(r);
        plugin->shutdown(self);
    }
    tc_host_end(&t->host);
}

static void *live(void *context) {
    enum { LIVES = 4000 };
    neighbour *n = context;
    tc_random r = {(uint64_t)n->number + 5};
    for (int i = 0; i < LIVES && tc_now() < n->end && !tc_failed(&n->t->k); i++) {
        if (n->number == 0 || i % 4)          /* else it goes on to meet at its end who begins */
            tc_meet_at_most(n->meeting, 0.2); /* the other one may have ended */
        tc_come_late(&r);
        live_once(n, &r);
    }
    return NULL;
}

static void live_at_once(tenant all[2]) {
    tc_meeting meeting;
    neighbour both[2];
    int n = 0;
    tc_meeting_init(&meeting, 2);
    tc_host_yield(true);
    for (; n < 2; n++) {
        both[n] =
            (neighbour){.t = &all[n], .meeting = &meeting, .end = tc_now() + 0.4, .number = n};
        if (pthread_create(&both[n].thread, NULL, live, &both[n]) != 0)
            break;
    }
    if (n < 2)
        TC_CASE_ERROR(all[0].k.out, "a thread cannot be started");
    while (n-- > 0)
        pthread_join(both[n].thread, NULL);
    tc_host_yield(false);
}

static void lives(tc_contract *k) {
    static tenant all[2];
    bool ok = true;
    for (int i = 0; i < 2; i++)
        tenant_init(&all[i], k);
    for (int i = 0; i < 2 && ok; i++) {
        ok = tc_lifecycle_open(&all[i].k, &all[i].s, &all[i].host, TNP_NONE, "alone");
        if (ok)
            tc_subject_close(&all[i].s); /* what it is called with stays */
    }
    if (ok)
        live_at_once(all);
    for (int i = 0; i < 2; i++)
        tenant_finish(&all[i], k);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after lives of two hosts");
}

const tc_contract_row tc_pair_rows[] = {
    {"thread-pairs", "objects=own bytes=1000", TC_SMOKE, pairs},
    {"thread-pairs", "objects=same bytes=1000", TC_SMOKE, pairs},
    {"thread-pairs", "objects=own bytes=70000", TC_STANDARD, pairs},
    {"thread-pairs", "objects=own bytes=1500000", TC_EXHAUSTIVE, pairs},
    {"thread-pairs-devices", "", TC_STANDARD, pairs_of_devices},
    {0},
};

const tc_contract_row tc_pair_host_rows[] = {
    {"life-two-hosts-pairs", "", TC_STANDARD, pairs_of_hosts},
    {"life-two-hosts-lives", "", TC_STANDARD, lives},
    {0},
};
