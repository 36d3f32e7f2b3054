/* See host.h. */
#include "plugin-sdk/conformance/worker/subject/host.h"

#include "plugin-sdk/conformance/worker/poison.h"
#include "plugin-sdk/conformance/worker/subject/fence.h"
#include "plugin-sdk/process/state.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- state ------------------------------------------------------------------------------- */

enum { MESSAGE = 1024 };

static _Thread_local char message[MESSAGE];
static _Thread_local tn_status message_status;

static char type[32];
static const tn_host *_Atomic lives[2]; /* the tables of those that are under way */
static atomic_int_fast64_t blocks, bytes_out, allocations, options_asked, allocs_left = -1;
static atomic_bool failed, yields;

static pthread_mutex_t misuse_lock = PTHREAD_MUTEX_INITIALIZER;
static tn_requirement misuse_requirement;
static char misuse_text[MESSAGE];

void tc_host_blame(tn_requirement requirement, const char *format, ...) {
    pthread_mutex_lock(&misuse_lock);
    if (!misuse_requirement) {
        va_list args;
        va_start(args, format);
        vsnprintf(misuse_text, sizeof misuse_text, format, args);
        va_end(args);
        misuse_requirement = requirement;
    }
    pthread_mutex_unlock(&misuse_lock);
}

static const tni_process_state *_Atomic watched;

void tc_host_watch(const tni_process_state *state) {
    atomic_store(&watched, state);
}

static void check_process(const char *what) {
    const tni_process_state *before = atomic_load_explicit(&watched, memory_order_relaxed);
    char text[256];
    if (before && tni_process_compare_shared(before, text, sizeof text) != TNI_PROCESS_PARTS)
        tc_host_blame(TNP_PROCESS_STATE_KEPT,
                      "at a call of host->%s it is seen that the plugin %s: other threads see it, "
                      "too, however soon it is put back",
                      what, text);
}

/* In query there is no life yet, and another table may do. */
static void check_host(const char *what, const tn_host *host) {
    check_process(what);
    const tn_host *one = atomic_load(&lives[0]), *other = atomic_load(&lives[1]);
    if ((one || other) && (!host || (host != one && host != other)))
        tc_host_blame(TNP_HOST_ARGUMENT,
                      "host->%s: the first argument is %p, and init was given %p", what,
                      (const void *)host, (const void *)(one ? one : other));
}

/* ---- memory: each block has a head, so that a wrong free is seen ------------------------- */

/* Before the block; of a fenced one in the fence's note. */
typedef struct head {
    uint64_t magic, bytes;
    char *start;
    const tn_host *host;
    uint64_t tail;   /* bytes behind the block that are TAIL's */
    uint64_t mapped; /* bytes from start on that are of mmap, not of malloc; or 0 */
} head;
_Static_assert(sizeof(head) <= TC_FENCE_NOTE, "");

static const uint64_t LIVE = 0x6c69766520626c6b, FREED = 0x66726565642e2e2e,
                      TAIL = 0x7461696c7461696c;

static head *head_of(void *p) {
    return tc_fence_has(p) ? tc_fence_note(p) : (head *)p - 1;
}

/* Now and then for longer than others need to come as far. */
static void let_others_run(void) {
    static atomic_uint turn;
    if (!atomic_load_explicit(&yields, memory_order_relaxed))
        return;
    if (atomic_fetch_add(&turn, 1) % 8 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    else
        sched_yield();
}

void tc_host_yield(bool wanted) {
    atomic_store(&yields, wanted);
}

/* Of what is larger only the ends are written over, as far as this: gigabytes come and go in some cases. */
static const uint64_t LARGE = 64 << 20, END = 1 << 20;

static void overwrite(char *p, int value, uint64_t bytes) {
    if (bytes <= LARGE) {
        memset(p, value, bytes);
        return;
    }
    memset(p, value, END);
    memset(p + bytes - END, value, END);
}

/* Gigabytes are the system's own: nobody writes to all of them, as malloc would that MALLOC_PERTURB_
 * tells to. What is large gets large pages, where there are such. */
static char *take(uint64_t room, uint64_t *out_mapped) {
    static const uint64_t HUGE_PAGE = 2 << 20, GIGABYTE = 1 << 30;
    *out_mapped = room >= GIGABYTE ? room : 0;
    if (*out_mapped) {
        void *start = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            return NULL;
        madvise(start, room, MADV_NOHUGEPAGE);
        return start;
    }
    char *start = malloc(room);
    if (start && room > LARGE) {
        char *first = start + (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE);
        madvise(first, room - (uint64_t)(first - start), MADV_HUGEPAGE);
    }
    return start;
}

static void give(const head *h) {
    if (h->mapped)
        munmap(h->start, h->mapped);
    else
        free(h->start);
}

static void *host_alloc(const tn_host *host, uint64_t bytes, uint64_t alignment) {
    check_host("alloc", host);
    let_others_run();
    atomic_fetch_add(&allocations, 1);
    if (alignment == 0 || (alignment & (alignment - 1))) {
        tc_host_blame(TNP_HOST_ALLOC_RETURNED,
                      "host->alloc: an alignment of %llu is no power of two",
                      (unsigned long long)alignment);
        alignment = 16;
    }
    if (atomic_load(&allocs_left) >= 0 && atomic_fetch_sub(&allocs_left, 1) == 0) {
        atomic_store(&allocs_left, -1);
        atomic_store(&failed, true);
        return NULL;
    }
    if (alignment < 16)
        alignment = 16;
    head h = {.magic = LIVE, .bytes = bytes, .host = host, .tail = sizeof TAIL};
    char *p = tc_fence_alloc(bytes, alignment, "a block of host->alloc");
    uint64_t room = p ? tc_fence_room(p) : 0;
    if (p && room - bytes < sizeof TAIL)
        h.tail = room - bytes;
    if (!p) {
        if (__builtin_add_overflow(bytes, 2 * alignment + sizeof h + sizeof TAIL, &room))
            return NULL;
        h.start = take(room, &h.mapped);
        if (!h.start)
            return NULL;
        char *last = h.start + room - sizeof TAIL - bytes;
        p = last - (uint64_t)last % alignment;
    }
    overwrite(h.start ? h.start : p, 0xd5, room); /* nobody may count on zeros */
    *head_of(p) = h;
    memcpy(p + bytes, &TAIL, h.tail);
    atomic_fetch_add(&blocks, 1);
    atomic_fetch_add(&bytes_out, (int64_t)bytes);
    return p;
}

static void host_dealloc(const tn_host *host, void *p) {
    check_host("dealloc", host);
    if (!p)
        return;
    let_others_run();
    bool again = tc_fence_was_freed(p);
    head *h = head_of(p);
    if (again || h->magic != LIVE) {
        tc_host_blame(TNP_HOST_ALLOC_RETURNED, "host->dealloc(%p): %s", p,
                      again || h->magic == FREED ? "this block was given back before"
                                                 : "host->alloc never returned it");
        return;
    }
    if (h->host != host)
        tc_host_blame(TNP_HOST_ARGUMENT, "host->dealloc(%p): the block is of host %p, not of %p", p,
                      (const void *)h->host, (const void *)host);
    if (memcmp((char *)p + h->bytes, &TAIL, h->tail) != 0)
        tc_host_blame(TNP_HOST_ALLOC_RETURNED,
                      "the %llu bytes behind %p from host->alloc were written to",
                      (unsigned long long)h->tail, p);
    h->magic = FREED;
    atomic_fetch_sub(&blocks, 1);
    atomic_fetch_sub(&bytes_out, (int64_t)h->bytes);
    if (tc_fence_has(p)) {
        tc_fence_free(p);
        return;
    }
    head was = *h;
    overwrite(p, TC_POISON_FREED, h->bytes);
    give(&was);
}

int64_t tc_host_blocks(void) {
    return atomic_load(&blocks);
}

int64_t tc_host_bytes(void) {
    return atomic_load(&bytes_out);
}

int64_t tc_host_allocations(void) {
    return atomic_load(&allocations);
}

void tc_host_fail_after(int64_t n) {
    atomic_store(&failed, false);
    atomic_store(&allocs_left, n);
}

bool tc_host_failed(void) {
    return atomic_load(&failed);
}

/* ---- texts ------------------------------------------------------------------------------ */

bool tc_is_utf8(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        int more = *c < 0x80                 ? 0
                   : *c >= 0xc2 && *c < 0xe0 ? 1
                   : *c >= 0xe0 && *c < 0xf0 ? 2
                   : *c >= 0xf0 && *c < 0xf5 ? 3
                                             : -1;
        if (more < 0)
            return false;
        c++;
        for (int i = 0; i < more; i++, c++)
            if ((*c & 0xc0) != 0x80)
                return false;
    }
    return true;
}

/* ---- the other services ------------------------------------------------------------------ */

static void host_log_message(const tn_host *host, int32_t level, const char *text) {
    check_host("log_message", host);
    if (level < TN_LOG_ERROR || level > TN_LOG_TRACE)
        tc_host_blame(TNP_HOST_ARGUMENT, "host->log_message: %d is no level", (int)level);
    if (!text)
        tc_host_blame(TNP_HOST_ARGUMENT, "host->log_message: the text is NULL");
    else if (!tc_is_utf8(text))
        tc_host_blame(TNP_HOST_ARGUMENT, "host->log_message: the text is no UTF-8");
    fprintf(stderr, "plugin: %s\n", text ? text : "");
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *text) {
    check_host("fail", host);
    if (status <= TN_OK || status >= TN_STATUS_COUNT)
        tc_host_blame(TNP_STATUS_CODES, "host->fail: %d is no status of a failure", (int)status);
    if (!text || !*text)
        tc_host_blame(TNP_FAIL_MESSAGE, "host->fail: without a message");
    else if (!tc_is_utf8(text))
        tc_host_blame(TNP_FAIL_MESSAGE,
                      "host->fail: the message is no UTF-8, cut within a character perhaps");
    snprintf(message, sizeof message, "%s", text ? text : "");
    message_status = status;
    return status;
}

int64_t tc_host_options_asked(void) {
    return atomic_load(&options_asked);
}

static const char *host_option(const tn_host *host, const char *name) {
    check_host("option", host);
    if (!name || !*name) {
        tc_host_blame(TNP_HOST_OPTION, "host->option: without a name");
        return NULL;
    }
    if (!atomic_load(&lives[0]) && !atomic_load(&lives[1]))
        tc_host_blame(TNP_HOST_OPTION, "host->option(\"%s\") outside init to shutdown", name);
    atomic_fetch_add(&options_asked, 1);
    char variable[128];
    snprintf(variable, sizeof variable, "TENON_%s_%s", type, name);
    for (char *c = variable; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return getenv(variable);
}

static const void *host_extension(const tn_host *host, const char *id) {
    (void)id;
    check_host("extension", host);
    return NULL;
}

static const tn_host table = {
    .struct_size = sizeof table,
    .abi_version = TN_ABI_VERSION,
    .alloc = host_alloc,
    .dealloc = host_dealloc,
    .log_message = host_log_message,
    .fail = host_fail,
    .option = host_option,
    .extension = host_extension,
};

const tn_host *tc_host_table(void) {
    return &table;
}

void tc_host_set_type(const char *device_type) {
    snprintf(type, sizeof type, "%s", device_type);
}

const char *tc_host_message(void) {
    return message;
}

tn_status tc_host_message_status(void) {
    return message_status;
}

void tc_host_forget(void) {
    message[0] = '\0';
    message_status = TN_OK;
}

void tc_host_remember(tn_status status, const char *text) {
    snprintf(message, sizeof message, "%s", text);
    message_status = status;
}

bool tc_host_misuse(tn_requirement *out_requirement, const char **out_text) {
    pthread_mutex_lock(&misuse_lock);
    *out_requirement = misuse_requirement;
    *out_text = misuse_text;
    pthread_mutex_unlock(&misuse_lock);
    return *out_requirement != 0;
}

void tc_host_clear(void) {
    misuse_requirement = 0;
    misuse_text[0] = '\0';
}

void tc_host_begin(const tn_host *host) {
    const tn_host *none = NULL; /* two may begin at once */
    if (!atomic_compare_exchange_strong(&lives[0], &none, host))
        atomic_store(&lives[1], host);
}

void tc_host_end(const tn_host *host) {
    for (int i = 0; i < 2; i++)
        if (!host || atomic_load(&lives[i]) == host)
            atomic_store(&lives[i], NULL);
}

/* ---- the poor host ----------------------------------------------------------------------- */

tn_host *tc_host_poor_create(uint64_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    char *at = p + page - bytes;
    memcpy(at, &table, bytes);
    memcpy(at, &bytes, sizeof bytes); /* struct_size comes first */
    mprotect(p, page, PROT_READ);
    mprotect(p + page, page, PROT_NONE);
    return (tn_host *)at;
}

void tc_host_poor_destroy(tn_host *host) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (host)
        munmap((char *)((uint64_t)host & ~(uint64_t)(page - 1)), 2 * page);
}
