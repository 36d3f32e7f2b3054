/* Requests for memory and events: what is offered is served, what is not known is refused and leaves
 * nothing behind. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 1000 };
static const tn_memory POISON = UINT64_C(0x5a5a5a5a5a5a5a5a);

static tn_allocation request(const tc_subject *s, int32_t space) {
    return (tn_allocation){.struct_size = sizeof(tn_allocation),
                           .bytes = BYTES,
                           .alignment = s->alignment,
                           .space = space,
                           .memory = POISON,
                           .host = (void *)POISON}; /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* Twice, since the first refusal may set something up for good. */
static void refuse_alloc(tc_contract *k, tn_allocation asked, tn_requirement requirement,
                         const char *what) {
    const tc_subject *s = k->subject;
    int64_t blocks = 0;
    for (int i = 0; i < 2 && !tc_failed(k); i++) {
        tn_allocation a = asked;
        tc_host_forget();
        tn_status status = s->memory->alloc(s->device, &a);
        tc_must_fail(k, requirement, status, TN_ERR_UNSUPPORTED, what);
        if (status == TN_OK)
            s->memory->dealloc(s->device, asked.space, a.memory);
        else if (!tc_is_as_asked(a, &asked))
            TC_BROKEN(k, requirement, "%s: refused, and the tn_allocation was written to", what);
        if (i == 1 && tc_host_blocks() > blocks)
            TC_BROKEN(k, requirement, "%s: refused, and %lld host blocks more are out", what,
                      (long long)(tc_host_blocks() - blocks));
        blocks = tc_host_blocks();
    }
}

static void refuse_info(tc_contract *k, int32_t space, tn_requirement requirement,
                        const char *what) {
    const tc_subject *s = k->subject;
    tn_memory_info info = {sizeof info, POISON, POISON};
    if (!tc_has_info(s))
        return;
    tc_host_forget();
    tc_must_fail(k, requirement, s->memory->info(s->device, space, &info), TN_ERR_UNSUPPORTED,
                 what);
    if ((info.total_bytes != POISON && info.total_bytes) ||
        (info.free_bytes != POISON && info.free_bytes)) /* cleared they may be */
        TC_BROKEN(k, requirement, "%s: refused, and the tn_memory_info was written to", what);
}

/* ---- spaces ------------------------------------------------------------------------------ */

static void offered(tc_contract *k) {
    static const char *const names[] = {"TN_SPACE_DEVICE", "TN_SPACE_PINNED"};
    tc_subject *s = k->subject;
    for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++) {
        char what[96];
        tc_buffer b;
        tn_memory_info info = {.struct_size = sizeof info};
        bool serves = s->spaces >> space & 1;
        snprintf(what, sizeof what, "alloc in %s, which TN_PROP_SPACES does not name",
                 names[space]);
        if (!serves)
            refuse_alloc(k, request(s, space), TNP_MEMORY_SPACES, what);
        else if (tc_buffer_create(k, s, space, BYTES, &b))
            tc_buffer_check(k, &b, s->stream, TNP_MEMORY_SPACES, "memory of a space on offer");
        snprintf(what, sizeof what, "info of %s, which TN_PROP_SPACES %s", names[space],
                 serves ? "names" : "does not name");
        if (!serves)
            refuse_info(k, space, TNP_MEMORY_SPACES, what);
        else if (tc_has_info(s))
            tc_must(k, TNP_MEMORY_SPACES, s->memory->info(s->device, space, &info), what);
    }
}

static void unknown(tc_contract *k) {
    static const int32_t spaces[] = {-1, 2, 3, 64, 1 << 30, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        char what[64];
        snprintf(what, sizeof what, "alloc in space %d", (int)spaces[i]);
        refuse_alloc(k, request(k->subject, spaces[i]), TNP_UNKNOWN_REFUSED, what);
        snprintf(what, sizeof what, "info of space %d", (int)spaces[i]);
        refuse_info(k, spaces[i], TNP_UNKNOWN_REFUSED, what);
    }
}

/* ---- flags ------------------------------------------------------------------------------- */

static void alloc_flags(tc_contract *k) {
    static const uint32_t flags[] = {1, 2, 1u << 16, 1u << 31, UINT32_MAX};
    for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++)
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
            char what[64];
            tn_allocation asked = request(k->subject, space);
            asked.flags = flags[i];
            snprintf(what, sizeof what, "alloc in space %d with flags 0x%x", (int)space, flags[i]);
            if (k->subject->spaces >> space & 1)
                refuse_alloc(k, asked, TNP_UNKNOWN_REFUSED, what);
        }
}

static void event_flags(tc_contract *k) {
    static const uint32_t flags[] = {2, TN_EVENT_TIMING | 4, 1u << 16, 1u << 31, UINT32_MAX};
    const tc_subject *s = k->subject;
    if (!tc_has_streams(k))
        return;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char what[64];
        static char poison;
        tn_event_impl *event = (tn_event_impl *)(void *)&poison;
        snprintf(what, sizeof what, "create of an event with flags 0x%x", flags[i]);
        tc_host_forget();
        tc_must_fail(k, TNP_UNKNOWN_REFUSED, s->ops->events->create(s->device, flags[i], &event),
                     TN_ERR_UNSUPPORTED, what);
        if (event && (void *)event != &poison)
            TC_BROKEN(k, TNP_UNKNOWN_REFUSED, "%s: refused, and gave an event", what);
    }
}

/* ---- alignment, and callers that know more ----------------------------------------------- */

/* What is asked for is given or, where it is more than the device's own, refused. */
static void ask_alignment(tc_contract *k, int32_t space, uint64_t bytes, uint64_t alignment) {
    const tc_subject *s = k->subject;
    char what[96];
    tn_allocation a = request(s, space), asked;
    a.bytes = bytes;
    a.alignment = alignment;
    asked = a;
    if (space == TN_SPACE_DEVICE && s->max_allocation && bytes > s->max_allocation)
        return; /* more than anybody asks for */
    snprintf(what, sizeof what, "alloc of %llu bytes in space %d aligned to %llu",
             (unsigned long long)bytes, (int)space, (unsigned long long)alignment);
    tc_host_forget();
    tn_status status = s->memory->alloc(s->device, &a);
    if (status == TN_ERR_UNSUPPORTED && alignment > s->alignment) {
        refuse_alloc(k, asked, TNP_ALLOC_ALIGNMENT, what);
        return;
    }
    if (!tc_must(k, TNP_ALLOC_ALIGNMENT, status, what))
        return;
    if (a.host && ((uint64_t)a.host & (alignment - 1)))
        TC_BROKEN(k, TNP_ALLOC_ALIGNMENT, "%s gave %p; refuse what cannot be served", what, a.host);
    s->memory->dealloc(s->device, space, a.memory);
}

/* Of a size that has nothing to do with it, and of its own size and the neighbours of that, several
 * times: one may be right by chance. */
static void ask_sizes(tc_contract *k, int32_t space, uint64_t alignment) {
    ask_alignment(k, space, BYTES, alignment);
    for (int i = 0; i < 5 && !tc_failed(k); i++)
        for (int more = -1; more <= 1; more++)
            if (alignment + (uint64_t)more > 0)
                ask_alignment(k, space, alignment + (uint64_t)more, alignment);
}

static void alloc_alignment(tc_contract *k) {
    for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++)
        for (uint64_t alignment = k->subject->alignment; alignment <= 1 << 21 && !tc_failed(k);
             alignment *= 2)
            if (k->subject->spaces >> space & 1)
                ask_sizes(k, space, alignment);
}

/* A caller that knows more members gets the rest back as it was. */
static void alloc_newer(tc_contract *k) {
    const tc_subject *s = k->subject;
    struct {
        tn_allocation a;
        uint64_t later[4];
    } newer = {.a = request(s, TN_SPACE_DEVICE), .later = {1, 2, 3, 4}};
    newer.a.struct_size = sizeof newer;
    if (!tc_must(k, TNP_ALLOC_HANDLE, s->memory->alloc(s->device, &newer.a),
                 "alloc of a caller that knows more members"))
        return;
    if (newer.a.struct_size != sizeof newer || newer.a.bytes != BYTES ||
        newer.a.alignment != s->alignment || newer.a.space != TN_SPACE_DEVICE || newer.a.flags)
        TC_BROKEN(k, TNP_HOST_STRUCT_SIZE, "alloc changed what was asked of it");
    for (uint64_t i = 0; i < 4; i++)
        if (newer.later[i] != i + 1)
            TC_BROKEN(k, TNP_HOST_STRUCT_SIZE,
                      "alloc wrote behind the struct that the plugin knows");
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, newer.a.memory);
}

const tc_contract_row tc_space_rows[] = {
    {"space-offered", "", TC_SMOKE, offered},
    {"space-unknown", "", TC_SMOKE, unknown},
    {"alloc-flags", "", TC_SMOKE, alloc_flags},
    {"alloc-alignment", "", TC_SMOKE, alloc_alignment},
    {"alloc-newer", "", TC_SMOKE, alloc_newer},
    {"event-flags", "", TC_SMOKE, event_flags},
    {0},
};
