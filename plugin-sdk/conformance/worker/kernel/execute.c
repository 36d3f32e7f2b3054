/* See execute.h. */
#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/poison.h"
#include "plugin-sdk/conformance/worker/subject/fence.h"
#include "plugin-sdk/conformance/worker/subject/watch.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- placing ----------------------------------------------------------------------------- */

static bool set_up_failed(tc_verdict *verdict, tn_requirement requirement, const char *what,
                          tn_status status) {
    char reason[TC_MESSAGE];
    return !tc_excuses(verdict, requirement, status, what) &&
           tc_verdict_set(verdict, TC_FAIL, requirement, "%s: %s", what, tc_reason(status, reason));
}

/* What lies on the shelf, if there is enough. */
static tn_status take(tc_placed *p, uint64_t bytes, tn_memory *out) {
    tc_subject *s = p->subject;
    void *host = NULL;
    uint32_t n = p->n_memory;
    if (!p->shelf)
        return tc_alloc(s, TN_SPACE_DEVICE, bytes, out, &host);
    if (p->shelf->room[n] < bytes) {
        if (p->shelf->room[n])
            s->memory->dealloc(s->device, TN_SPACE_DEVICE, p->shelf->memory[n]);
        p->shelf->room[n] = 0;
        tn_status status = tc_alloc(s, TN_SPACE_DEVICE, bytes, &p->shelf->memory[n], &host);
        if (status != TN_OK)
            return status;
        p->shelf->room[n] = bytes;
    }
    *out = p->shelf->memory[n];
    return TN_OK;
}

void tc_shelf_clear(tc_shelf *shelf, tc_subject *s) {
    for (int i = 0; i < TC_MAX_ARGS + TC_MAX_OUTS; i++)
        if (shelf->room[i])
            s->memory->dealloc(s->device, TN_SPACE_DEVICE, shelf->memory[i]);
    *shelf = (tc_shelf){0};
}

/* What a tensor takes of the allocation of all. */
static uint64_t share_of(const tc_operand *o) {
    return (o->bytes + 7) / 8 * 8;
}

static uint64_t bytes_of_all(const tc_invocation *call) {
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        bytes += share_of(&call->args[a].tensor);
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        bytes += share_of(&call->outs[k].tensor);
    return bytes;
}

/* Of an image what has a place on the device; a fence stands where the guard would. */
static uint64_t placed_bytes(const tc_invocation *call, const tc_operand *o) {
    return call->memory == TC_MEMORY_FENCED ? o->bytes - TC_GUARD : o->bytes;
}

/* Room for a tensor, from `start` on: an allocation of its own, or the next of the one for all. */
static tn_status find_room(tc_placed *p, const tc_operand *o, tn_memory *out, uint64_t *out_start) {
    bool together = p->call->memory == TC_MEMORY_ONE;
    uint64_t own = placed_bytes(p->call, o), step = p->subject->alignment;
    uint64_t bytes = p->call->memory == TC_MEMORY_FENCED ? (own + step - 1) / step * step : own;
    tn_status status = TN_OK;
    *out_start = together ? p->used : bytes - own;
    if (!together || p->n_memory == 0) {
        status = take(p, together ? bytes_of_all(p->call) : bytes, out);
        if (status != TN_OK)
            return status;
        p->memory[p->n_memory++] = *out;
    }
    *out = p->memory[p->n_memory - 1];
    p->used += together ? share_of(o) : 0;
    return TN_OK;
}

/* Others of the call have been written to, perhaps, and go now: first the writes end. */
static bool no_room(tc_placed *p, tn_status status, tc_verdict *verdict) {
    set_up_failed(verdict, TNP_ALLOC_HANDLE, "alloc for a tensor", status);
    if (p->tn.stream)
        p->subject->ops->streams->synchronize(p->tn.stream);
    return false;
}

static bool place_tensor(tc_placed *p, const tc_operand *o, tn_tensor_view *view,
                         tc_verdict *verdict) {
    tc_subject *s = p->subject;
    tn_memory memory = 0;
    uint64_t start = 0;
    tn_status status = find_room(p, o, &memory, &start);
    if (status == TN_ERR_OUT_OF_MEMORY && o->bytes >> 30) /* far.c; a device may have less */
        return tc_verdict_set(verdict, TC_UNSUPPORTED, 0,
                              "the device has no %llu bytes for a tensor",
                              (unsigned long long)o->bytes);
    if (status != TN_OK)
        return no_room(p, status, verdict);
    tc_piece piece;
    for (uint64_t i = 0; tc_operand_piece(o, i, placed_bytes(p->call, o), &piece); i++) {
        status = s->memory->copy_from_host(s->device, p->tn.stream, memory, start + piece.at,
                                           o->image + piece.at, 0, piece.bytes);
        if (status != TN_OK)
            return set_up_failed(verdict, TNP_TRANSFER_RANGE, "write of a tensor", status);
    }
    *view = tc_operand_view(o, memory);
    view->offset += start;
    return true;
}

/* The view of an argument that lies in the memory of another. */
static tn_tensor_view inner_view(const tc_placed *p, const tc_operand *o) {
    const tc_invocation *call = p->call;
    const tc_operand *outer = &call->args[call->within].tensor;
    const tn_tensor_view *placed = &p->arg_views[call->within];
    tn_tensor_view view = tc_operand_view(o, placed->memory);
    view.offset += placed->offset - (uint64_t)outer->shape.offset * tc_dtype_bytes(outer->dtype);
    return view;
}

static bool place_args(tc_placed *p, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        const tc_arg *arg = &call->record->args[a];
        const tc_value *v = &call->args[a];
        if (v->none || arg->kind != TC_ARG_TENSOR || call->scalar == (int32_t)a)
            p->cells[a] = tc_value_cell(call, a);
        else if (tc_owner(call, a) != a || tc_lies_within(call, a) ||
                 place_tensor(p, &v->tensor, &p->arg_views[a], verdict))
            p->cells[a] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &p->arg_views[a]};
        else
            return false;
    }
    for (uint32_t a = 0; a < call->record->n_args; a++)
        p->arg_views[a] = tc_lies_within(call, a) ? inner_view(p, &call->args[a].tensor)
                                                  : p->arg_views[tc_owner(call, a)];
    return true;
}

static bool place_outs(tc_placed *p, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        if (k == 0 && call->in_place >= 0)
            p->out_views[0] = p->arg_views[call->in_place];
        else if (!place_tensor(p, &call->outs[k].tensor, &p->out_views[k], verdict))
            return false;
        p->outs[k] = &p->out_views[k];
    }
    return true;
}

/* Records that have declined without memory decline with it: what the core would hand them is known
 * before. */
static bool still_decline(tc_placed *p, tc_verdict *verdict) {
    const tn_kernel *kernel = NULL;
    while ((kernel = tc_next_fitting(p->subject, p->call, kernel)) && kernel != p->kernel) {
        p->tn.user = kernel->user;
        if (tc_watch_supports(kernel, &p->tn) != TN_ERR_UNSUPPORTED)
            return tc_verdict_set(verdict, TC_FAIL, TNP_SUPPORTS_ANSWER,
                                  "supports of %s declines where stream and memory are 0, and not "
                                  "where they are there; it is about shapes and attributes",
                                  kernel->op);
    }
    return true;
}

static bool place_on(tc_shelf *shelf, tc_subject *s, tn_stream_impl *stream, tc_invocation *call,
                     tc_placed *p, tc_verdict *verdict) {
    memset(p, 0, sizeof *p);
    p->shelf = shelf;
    p->subject = s;
    p->call = call;
    tc_claim claim = tc_find_kernel(s, call, NULL, &p->kernel);
    if (claim != TC_CLAIMED && claim != TC_NO_SHAPE)
        return tc_claimed_kernel(s, call, verdict) != NULL;
    p->tn = (tn_call){.struct_size = sizeof p->tn,
                      .device = s->device,
                      .stream = stream,
                      .args = p->cells,
                      .outs = p->outs,
                      .n_args = call->record->n_args,
                      .n_outs = call->record->n_outs};
    if (!place_args(p, verdict) || !place_outs(p, verdict) || !still_decline(p, verdict))
        return false;
    if (claim == TC_NO_SHAPE)
        return tc_claimed_kernel(s, call, verdict) != NULL;
    p->tn.user = p->kernel->user;
    return true;
}

bool tc_place_call(tc_subject *s, tn_stream_impl *stream, tc_invocation *call, tc_placed *p,
                   tc_verdict *verdict) {
    return place_on(NULL, s, stream, call, p, verdict);
}

bool tc_next_record(tc_placed *p) {
    const tn_kernel *next;
    if (tc_find_kernel(p->subject, p->call, p->kernel, &next) != TC_CLAIMED)
        return false;
    p->kernel = next;
    p->tn.user = next->user;
    return true;
}

void tc_unplace(tc_placed *p) {
    for (uint32_t i = 0; i < p->n_memory && !p->shelf; i++)
        p->subject->memory->dealloc(p->subject->device, TN_SPACE_DEVICE, p->memory[i]);
    if (p->workspace)
        p->subject->memory->dealloc(p->subject->device, TN_SPACE_DEVICE, p->workspace);
    p->n_memory = 0;
    p->workspace = 0;
}

/* ---- afterwards -------------------------------------------------------------------------- */

static unsigned char *room_for(tc_placed *p, uint64_t bytes, tc_verdict *verdict) {
    unsigned char *image = tc_arena_array(p->call->arena, bytes, 1);
    if (!image)
        TC_CASE_ERROR(verdict, "the host has no memory for a case of this size");
    return image;
}

static bool read_bytes(tc_placed *p, tn_memory memory, uint64_t start, uint64_t bytes,
                       unsigned char *to, tc_verdict *verdict) {
    tc_subject *s = p->subject;
    tn_status status =
        s->memory->copy_to_host(s->device, p->tn.stream, to, 0, memory, start, bytes);
    return status == TN_OK ||
           set_up_failed(verdict, TNP_TRANSFER_RANGE, "read of a tensor", status);
}

/* What has no place on the device is as it was. */
static unsigned char *read_image(tc_placed *p, const tc_operand *o, const tn_tensor_view *view,
                                 tc_verdict *verdict) {
    uint64_t start = view->offset - (uint64_t)o->shape.offset * tc_dtype_bytes(o->dtype);
    uint64_t bytes = placed_bytes(p->call, o);
    unsigned char *image = room_for(p, o->bytes, verdict);
    tc_piece piece;
    if (!image)
        return NULL;
    for (uint64_t i = 0; tc_operand_piece(o, i, bytes, &piece); i++)
        if (!read_bytes(p, view->memory, start + piece.at, piece.bytes, image + piece.at, verdict))
            return NULL;
    memcpy(image + bytes, o->image + bytes, o->bytes - bytes);
    return image;
}

/* What a workspace is full of that nobody has written. 0xff is NaN in every floating dtype, but an index
 * of -1, by which the element before is found; 0x7f a large number in each, and an index or length that
 * leads far outside. Some cases have the one and some the other. */
static unsigned char unwritten(const tc_placed *p) {
    int64_t some = p->call->outs[0].tensor.shape.numel + (int64_t)p->call->data;
    return some % 2 == 0 ? 0xff : 0x7f;
}

/* Its guards: what lies between, which may be large, is the kernel's. */
static bool read_workspace(tc_placed *p, tc_result *out, tc_verdict *verdict) {
    if (!p->workspace)
        return true;
    uint64_t guard = p->subject->alignment, end = p->workspace_room - guard;
    unsigned char *guards = room_for(p, 2 * guard, verdict);
    if (!guards || !read_bytes(p, p->workspace, 0, guard, guards, verdict) ||
        !read_bytes(p, p->workspace, end, guard, guards + guard, verdict))
        return false;
    unsigned char byte = unwritten(p);
    for (uint64_t i = 0; i < 2 * guard; i++)
        if (guards[i] != byte)
            out->workspace_overrun = true;
    return true;
}

bool tc_read_back(tc_placed *p, tc_result *out, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (p->cells[a].tag == TN_CELL_TENSOR) {
            out->args[a] = read_image(p, &call->args[a].tensor, &p->arg_views[a], verdict);
            if (!out->args[a])
                return false;
        }
    return tc_read_outs(p, out, verdict) && read_workspace(p, out, verdict);
}

bool tc_read_outs(tc_placed *p, tc_result *out, tc_verdict *verdict) {
    tc_invocation *call = p->call;
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        out->outs[k] = k == 0 && call->in_place >= 0
                           ? out->args[call->in_place]
                           : read_image(p, &call->outs[k].tensor, &p->out_views[k], verdict);
        if (!out->outs[k])
            return false;
    }
    return true;
}

/* What a newer host has behind the members that there are. */
enum { LATER = 24 };
typedef struct newer_view {
    tn_tensor_view view;
    unsigned char later[LATER];
} newer_view;

/* A call and all that it points to. */
typedef struct expendable {
    tn_call call;
    unsigned char later[LATER];
    tn_cell cells[TC_MAX_ARGS];
    const tn_tensor_view *outs[TC_MAX_OUTS];
    newer_view views[TC_MAX_ARGS + TC_MAX_OUTS];
    uint64_t more; /* bytes of each struct, LATER or 0 */
    int64_t lists[2 * (TC_MAX_ARGS + TC_MAX_OUTS)][TC_MAX_RANK];
    char strings[TC_MAX_ARGS][32];
    uint32_t chosen; /* of these arrays the one to be fenced: a list, CELLS or OUTS */
    char *fenced;    /* it, or NULL */
} expendable;

enum { CELLS = 2 * (TC_MAX_ARGS + TC_MAX_OUTS), OUTS };

static void *no_access;

static void map_no_access(void) {
    no_access =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (no_access == MAP_FAILED)
        no_access = NULL;
}

/* Where memory is fenced, one array of a call lies so: another one in the next case, as it takes time. */
static void *hand_over(expendable *e, uint32_t number, void *array, uint64_t bytes) {
    if (number != e->chosen || bytes == 0)
        return array;
    e->fenced = tc_fence_alloc(bytes, sizeof(int64_t), "an array of the call");
    return e->fenced ? memcpy(e->fenced, array, bytes) : array;
}

/* Behind its end a list has what is no size; one of none cannot be read. */
static const int64_t *copy_list(expendable *e, uint32_t at, const int64_t *values, int32_t n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, map_no_access);
    memset(e->lists[at], 0xa5, sizeof e->lists[at]);
    if (n == 0)
        return no_access;
    memcpy(e->lists[at], values, (size_t)n * sizeof *values);
    return hand_over(e, at, e->lists[at], (uint64_t)n * sizeof *values);
}

static const tn_tensor_view *copy_view(expendable *e, uint32_t at, const tn_tensor_view *view) {
    tn_tensor_view *copy = &e->views[at].view;
    *copy = *view;
    copy->struct_size += e->more;
    copy->sizes = copy_list(e, 2 * at, view->sizes, view->rank);
    copy->strides = copy_list(e, 2 * at + 1, view->strides, view->rank);
    memset(e->views[at].later, 0xa5, LATER);
    return copy;
}

static void copy_cell(expendable *e, uint32_t a, const tn_cell *cell) {
    e->cells[a] = *cell;
    if (cell->tag == TN_CELL_TENSOR)
        e->cells[a].v.view = copy_view(e, a, cell->v.view);
    else if (cell->tag == TN_CELL_INTS)
        e->cells[a].v.ints = cell->n ? copy_list(e, 2 * a, cell->v.ints, (int32_t)cell->n) : NULL;
    else if (cell->tag == TN_CELL_STRING && strlen(cell->v.string) < sizeof e->strings[a])
        e->cells[a].v.string = strcpy(e->strings[a], cell->v.string);
}

/* By its seed, of those that it may have. */
static uint32_t choose_array(const tc_invocation *call) {
    uint32_t n_args = call->record->n_args, n = 2 * (n_args + call->record->n_outs) + 2;
    uint32_t i = (uint32_t)(call->seed / 8 % n);
    return i < 2 * n_args ? i : i < n - 2 ? i - 2 * n_args + 2 * TC_MAX_ARGS : i - (n - 2) + CELLS;
}

/* Copies of all that the call hands over, and afterwards nothing of it: what a plugin keeps of a
 * call is gone when that returns. */
static void lend(expendable *e, const tc_placed *p) {
    e->fenced = NULL;
    e->chosen = choose_array(p->call);
    e->more = p->call->newer ? LATER : 0;
    e->call = p->tn;
    e->call.struct_size += e->more;
    memset(e->later, 0xa5, LATER);
    for (uint32_t a = 0; a < p->tn.n_args; a++)
        copy_cell(e, a, &p->tn.args[a]);
    for (uint32_t k = 0; k < p->tn.n_outs; k++)
        e->outs[k] = copy_view(e, TC_MAX_ARGS + k, p->tn.outs[k]);
    e->call.args = hand_over(e, CELLS, e->cells, p->tn.n_args * sizeof *e->cells);
    e->call.outs = hand_over(e, OUTS, e->outs, p->tn.n_outs * sizeof *e->outs);
}

static void take_back(expendable *e) {
    if (e->fenced)
        tc_fence_free(e->fenced);
    memset(e, TC_POISON_CALL, sizeof *e);
    __asm__ volatile("" : : "r"(e) : "memory"); /* the compiler may not leave it out */
}

/* ---- calling ----------------------------------------------------------------------------- */

/* Unwritten, between guards of the alignment. */
static tn_status new_workspace(tc_placed *p, uint64_t bytes) {
    tc_subject *s = p->subject;
    void *host;
    if (p->workspace)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, p->workspace);
    p->workspace_room = bytes + 2 * s->alignment;
    /* A plan that is more than the device has in one is the kernel's mistake. */
    bool never = s->max_allocation && bytes > s->max_allocation;
    tn_status status = (never ? tc_alloc_any : tc_alloc)(s, TN_SPACE_DEVICE, p->workspace_room,
                                                         &p->workspace, &host);
    return status == TN_OK ? s->memory->fill(s->device, p->tn.stream, p->workspace, 0, unwritten(p),
                                             p->workspace_room)
                           : status;
}

tn_status tc_prepare_placed(tc_placed *p) {
    expendable e;
    struct {
        tn_plan known;
        unsigned char later[LATER];
    } asked = {.known.struct_size = p->call->newer ? sizeof asked : sizeof asked.known};
    const tn_plan *plan = &asked.known;
    p->tn.workspace = p->tn.workspace_offset = p->tn.workspace_bytes = p->tn.cookie = 0;
    if (!p->kernel->prepare)
        return TN_OK;
    lend(&e, p);
    tn_status status = tc_watch_prepare(p->kernel, &e.call, &asked.known);
    take_back(&e);
    if (status != TN_OK)
        return status;
    p->tn.cookie = plan->cookie;
    if (plan->workspace_bytes == 0)
        return TN_OK;
    if (!p->workspace || p->workspace_room < plan->workspace_bytes + 2 * p->subject->alignment)
        status = new_workspace(p, plan->workspace_bytes);
    p->tn.workspace = p->workspace;
    p->tn.workspace_offset = p->subject->alignment;
    p->tn.workspace_bytes = plan->workspace_bytes;
    if (status != TN_OK)
        tc_abandon_placed(p);
    return status;
}

void tc_abandon_placed(tc_placed *p) {
    expendable e;
    if (!p->kernel->prepare || !p->kernel->abandon)
        return;
    lend(&e, p);
    tc_watch_abandon(p->kernel, &e.call);
    take_back(&e);
    p->tn.cookie = 0;
}

tn_status tc_run_placed(const tc_placed *p) {
    expendable e;
    lend(&e, p);
    tc_caller_calls();
    tn_status status = tc_watch_run(p->kernel, &e.call);
    take_back(&e);
    return status;
}

tn_status tc_call_placed(tc_placed *p) {
    tn_status status;
    do {
        status = tc_prepare_placed(p);
        if (status == TN_OK)
            status = tc_run_placed(p);
    } while (status == TN_ERR_UNSUPPORTED && tc_next_record(p));
    return status;
}

/* `supports`, which took the call without memory, takes it with it. */
static bool ask_support(tc_placed *p, tc_verdict *verdict) {
    if (!p->kernel->supports)
        return true;
    expendable e;
    lend(&e, p);
    tn_status answer = tc_watch_supports(p->kernel, &e.call);
    tn_status again = tc_watch_supports(p->kernel, &e.call);
    take_back(&e);
    if (answer == TN_OK && again == TN_OK)
        return true;
    if (answer != TN_OK && answer != TN_ERR_UNSUPPORTED)
        return tc_verdict_set(verdict, TC_FAIL, TNP_SUPPORTS_ANSWER,
                              "supports answered %s; it is TN_OK or TN_ERR_UNSUPPORTED",
                              tc_tn_status_name(answer));
    return tc_verdict_set(verdict, TC_FAIL, TNP_SUPPORTS_ANSWER,
                          "supports took a call whose memory it was not told, and answered %s and "
                          "then %s when it was",
                          tc_tn_status_name(answer), tc_tn_status_name(again));
}

bool tc_supports_placed(tc_placed *p) {
    expendable e;
    if (!p->kernel->supports)
        return true;
    lend(&e, p);
    tn_status answer = tc_watch_supports(p->kernel, &e.call);
    take_back(&e);
    return answer == TN_OK;
}

bool tc_ready_call(tc_placed *p, bool *out_declined, tc_verdict *verdict) {
    char reason[TC_MESSAGE];
    *out_declined = false;
    if (!ask_support(p, verdict))
        return false;
    tc_host_forget();
    tn_status status = tc_prepare_placed(p);
    *out_declined = status == TN_ERR_UNSUPPORTED;
    if (status == TN_OK || *out_declined)
        return true;
    uint64_t most = p->subject->max_allocation;
    if (status == TN_ERR_OUT_OF_MEMORY && most && p->tn.workspace_bytes > most)
        return tc_verdict_set(verdict, TC_FAIL, TNP_KERNEL_WORKSPACE,
                              "prepare asks for %llu bytes, and TN_PROP_MAX_ALLOCATION is %llu; "
                              "it declines what it has no room for",
                              (unsigned long long)p->tn.workspace_bytes, (unsigned long long)most);
    return !tc_excuses(verdict, TNP_KERNEL_WORKSPACE, status, "a workspace") &&
           tc_verdict_set(verdict, TC_FAIL, TNP_KERNEL_WORKSPACE, "prepare, or its workspace: %s",
                          tc_reason(status, reason));
}

static void run(tc_placed *p, tc_result *out) {
    tc_host_forget();
    out->kernel = p->kernel;
    out->run = tc_run_placed(p);
    out->sync = TN_OK;
    if (out->run != TN_OK)
        tc_reason(out->run, out->message);
    tc_host_forget();
    tn_status later = tc_subject_sync(p->subject);
    out->sync = later;
    if (out->run == TN_OK && later != TN_OK)
        tc_reason(later, out->message);
}

/* Asks one record: true when it took the call, or everything is over. */
static bool try_record(tc_placed *p, tc_result *out, bool *out_declined, tc_verdict *verdict) {
    if (!tc_ready_call(p, out_declined, verdict))
        return false;
    if (*out_declined)
        return true;
    run(p, out);
    *out_declined = out->run == TN_ERR_UNSUPPORTED;
    return tc_read_back(p, out, verdict) &&
           (!*out_declined || tc_check_declined(p->call, out, verdict));
}

static tc_fence fence_of(const tc_invocation *call) {
    return call->memory == TC_MEMORY_FENCED          ? TC_FENCE_BEHIND
           : call->memory == TC_MEMORY_FENCED_BEFORE ? TC_FENCE_BEFORE
                                                     : TC_FENCE_NONE;
}

bool tc_execute(tc_subject *s, tc_invocation *call, tc_result *out, tc_verdict *verdict) {
    return tc_execute_on(NULL, s, call, out, verdict);
}

bool tc_execute_on(tc_shelf *shelf, tc_subject *s, tc_invocation *call, tc_result *out,
                   tc_verdict *verdict) {
    tc_placed p;
    bool declined = false;
    memset(out, 0, sizeof *out);
    if (!shelf)
        tc_fence_set(fence_of(call));
    bool ok = place_on(shelf, s, s->stream, call, &p, verdict);
    do
        ok = ok && try_record(&p, out, &declined, verdict);
    while (ok && declined && tc_next_record(&p));
    if (!ok || declined) /* what brought the tensors there may still be queued */
        tc_subject_sync(s);
    tc_unplace(&p);
    tc_fence_set(TC_FENCE_NONE);
    if (ok && declined)
        ok = tc_verdict_set(verdict, TC_UNSUPPORTED, TNP_NONE,
                            "prepare or run of every record declines this call");
    return ok;
}
