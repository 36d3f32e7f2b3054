/* Level 2: what is lent to a call. The plugin is given a copy, on pages that nobody may touch
 * once the call has returned. Who does is found by the signal that this raises: the handler
 * writes down whose memory it was, opens the pages again, and lets the plugin go on with what it
 * came to see. */
#include "loader/validation/internal.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    N_LOANS = 64,       /* so many calls are watched after they returned, the latest */
    MAX_BYTES = 4 << 20 /* what is longer is not lent but handed over */
};

struct tni_loan {
    /* What the handler reads, while others lend. */
    _Atomic(char *) base;
    _Atomic size_t room;
    atomic_bool closed;  /* nobody may touch it */
    atomic_bool touched; /* and somebody did */
    /* Under tni_records_lock. */
    bool out; /* a call has it */
    const tni_watch *watch;
    int requirement;
    const char *slot;
    char op[64];
};

static struct tni_loan loans[N_LOANS];
static uint32_t next_loan, n_lenders;
static struct sigaction before;

/* ---- the signal -------------------------------------------------------------------------- */

static void pass_on(int signal, siginfo_t *info, void *context) {
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(signal);
    else
        sigaction(signal, &before,
                  NULL); /* on return it is raised again, and meets what was there */
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    const char *at = info->si_addr;
    for (int i = 0; i < N_LOANS; i++) {
        char *base = atomic_load(&loans[i].base);
        size_t room = atomic_load(&loans[i].room);
        if (!base || at < base || at >= base + room)
            continue;
        if (atomic_exchange(&loans[i].closed, false))
            atomic_store(&loans[i].touched, true);
        mprotect(base, room, PROT_READ | PROT_WRITE);
        return;
    }
    pass_on(signal, info, context);
}

/* ---- findings ---------------------------------------------------------------------------- */

/* Takes what was found of the loan; under the lock. */
static bool take_touched(tni_loan *l, tni_loan *out) {
    if (!atomic_exchange(&l->touched, false))
        return false;
    out->watch = l->watch;
    out->requirement = l->requirement;
    out->slot = l->slot;
    memcpy(out->op, l->op, sizeof out->op);
    return true;
}

static void report(const tni_loan *l) {
    tni_finding(l->watch, l->requirement, l->slot, l->op,
                l->requirement == TNP_WRITE_CONSUMES_SOURCE
                    ? "src, which is not pinned, was read after the call had returned"
                    : "the call, or what it points to, was read after it had returned; it is"
                      " borrowed, so copy what queued work needs");
}

void tni_lending_settle(const tni_watch *w) {
    for (int i = 0; i < N_LOANS; i++) {
        tni_loan found;
        pthread_mutex_lock(&tni_records_lock);
        bool touched = loans[i].watch == w && take_touched(&loans[i], &found);
        pthread_mutex_unlock(&tni_records_lock);
        if (touched)
            report(&found);
    }
}

void tni_lending_begins(void) {
    pthread_mutex_lock(&tni_records_lock);
    if (n_lenders++ == 0) {
        struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&ours.sa_mask);
        sigaction(SIGSEGV, &ours, &before);
    }
    pthread_mutex_unlock(&tni_records_lock);
}

void tni_lending_ends(const tni_watch *w) {
    tni_lending_settle(w);
    pthread_mutex_lock(&tni_records_lock);
    for (int i = 0; i < N_LOANS; i++)
        if (loans[i].watch == w)
            loans[i].watch = NULL;
    if (--n_lenders == 0) {
        struct sigaction now;
        sigaction(SIGSEGV, NULL, &now);
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
            sigaction(SIGSEGV, &before, NULL);
        for (int i = 0; i < N_LOANS; i++) {
            char *base = atomic_exchange(&loans[i].base, NULL);
            if (base)
                munmap(base, atomic_load(&loans[i].room));
        }
    }
    pthread_mutex_unlock(&tni_records_lock);
}

/* ---- lending ----------------------------------------------------------------------------- */

/* A slot that no call has, the one that was used longest ago; under the lock. */
static tni_loan *find_loan(void) {
    for (uint32_t i = 0; i < N_LOANS; i++) {
        tni_loan *l = &loans[(next_loan + i) % N_LOANS];
        if (!l->out) {
            next_loan = (uint32_t)(l - loans) + 1;
            return l;
        }
    }
    return NULL;
}

/* Room for so many bytes, open; under the lock. */
static char *open_loan(tni_loan *l, size_t bytes) {
    char *base = atomic_load(&l->base);
    size_t room = atomic_load(&l->room), page = (size_t)sysconf(_SC_PAGESIZE);
    atomic_store(&l->closed, false);
    if (base && room >= bytes)
        return mprotect(base, room, PROT_READ | PROT_WRITE) == 0 ? base : NULL;
    if (base) {
        atomic_store(&l->base, NULL);
        munmap(base, room);
    }
    room = (bytes + page - 1) / page * page;
    base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    atomic_store(&l->room, room);
    atomic_store(&l->base, base);
    return base;
}

void *tni_lend(const tni_watch *w, int requirement, const char *slot, const char *op,
               uint64_t bytes, tni_loan **out) {
    tni_loan found;
    bool touched = false;
    char *memory = NULL;
    *out = NULL;
    if (w->level < 2 || bytes == 0 || bytes > MAX_BYTES)
        return NULL;
    pthread_mutex_lock(&tni_records_lock);
    tni_loan *l = find_loan();
    if (l) {
        touched = take_touched(l, &found);
        memory = open_loan(l, bytes);
    }
    if (memory) {
        l->out = true;
        l->watch = w;
        l->requirement = requirement;
        l->slot = slot;
        strncpy(l->op, op, sizeof l->op - 1);
        *out = l;
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (touched)
        report(&found);
    return memory;
}

void tni_lend_back(tni_loan *l) {
    if (!l)
        return;
    pthread_mutex_lock(&tni_records_lock);
    atomic_store(&l->closed, true);
    mprotect(atomic_load(&l->base), atomic_load(&l->room), PROT_NONE);
    l->out = false;
    pthread_mutex_unlock(&tni_records_lock);
}

/* ---- a call ------------------------------------------------------------------------------ */

/* Where the parts of a call are put one behind the other; without memory they are counted only. */
typedef struct bump {
    char *at;
    uint64_t bytes;
} bump;

static void *put(bump *b, const void *what, uint64_t bytes) {
    char *here = b->at ? b->at + b->bytes : NULL;
    b->bytes += (bytes + 15) & ~UINT64_C(15);
    if (here && bytes)
        memcpy(here, what, bytes);
    return here;
}

static const tn_tensor_view *put_view(bump *b, const tn_tensor_view *v) {
    if (!v)
        return NULL;
    tn_tensor_view copy = {0};
    memcpy(&copy, v, v->struct_size < sizeof copy ? v->struct_size : sizeof copy);
    if (copy.struct_size > sizeof copy)
        copy.struct_size = sizeof copy;
    uint64_t bytes = (uint64_t)copy.rank * sizeof(int64_t);
    if (copy.sizes)
        copy.sizes = put(b, v->sizes, bytes);
    if (copy.strides)
        copy.strides = put(b, v->strides, bytes);
    return put(b, &copy, sizeof copy);
}

static const tn_tensor_view *const *put_views(bump *b, const tn_tensor_view *const *views,
                                              uint32_t n) {
    const tn_tensor_view **list = put(b, views, n * sizeof *views);
    for (uint32_t i = 0; i < n; i++) {
        const tn_tensor_view *v = put_view(b, views[i]);
        if (list)
            list[i] = v;
    }
    return list;
}

static tn_cell put_cell(bump *b, tn_cell c) {
    switch (c.tag) {
    case TN_CELL_TENSOR:
        c.v.view = put_view(b, c.v.view);
        break;
    case TN_CELL_TENSORS:
        c.v.views = put_views(b, c.v.views, c.n);
        break;
    case TN_CELL_INTS:
    case TN_CELL_FLOATS:
        if (c.v.ints)
            c.v.ints = put(b, c.v.ints, c.n * sizeof(int64_t));
        break;
    case TN_CELL_STRING:
        if (c.v.string)
            c.v.string = put(b, c.v.string, strlen(c.v.string) + 1);
        break;
    default:
        break;
    }
    return c;
}

static tn_call *put_call(bump *b, const tn_call *call) {
    tn_call *copy = put(b, call, sizeof *call);
    tn_cell *args = put(b, call->args, call->n_args * sizeof *args);
    for (uint32_t i = 0; i < call->n_args; i++) {
        tn_cell cell = put_cell(b, call->args[i]);
        if (args)
            args[i] = cell;
    }
    const tn_tensor_view *const *outs = put_views(b, call->outs, call->n_outs);
    if (copy) {
        copy->args = args;
        copy->outs = outs;
    }
    return copy;
}

const tn_call *tni_lend_call(const tni_watch *w, const char *slot, const char *op,
                             const tn_call *call, tni_loan **out) {
    bump b = {0};
    put_call(&b, call);
    b.at = tni_lend(w, TNP_CALL_BORROWED, slot, op, b.bytes, out);
    b.bytes = 0;
    return b.at ? put_call(&b, call) : call;
}
