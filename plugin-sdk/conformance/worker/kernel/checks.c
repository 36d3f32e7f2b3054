/* See checks.h. */
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include "plugin-sdk/conformance/worker/kernel/factors.h"

#include "plugin-sdk/conformance/worker/oracle/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool tc_fill_for(const tc_subject *s, tc_invocation *call, uint64_t surroundings,
                 char why[TC_MESSAGE]) {
    call->flushes = s->flushes;
    return tc_invocation_fill(call, surroundings, why);
}

bool tc_is_flushed_away(const tc_subject *s, const tc_invocation *call) {
    return tc_is_faint(call->data) && s->flushes >> call->types[0] & 1;
}

bool tc_check_success(const tc_invocation *call, const tc_result *result, tc_verdict *out) {
    if (result->run == TN_OK && result->sync == TN_OK)
        return true;
    return tc_verdict_set(out, TC_FAIL, TNP_KERNEL_RESULT, "%s: %s %s", call->record->op,
                          result->run != TN_OK ? "run returned" : "the stream reports",
                          result->message);
}

/* ---- bytes that nobody may write --------------------------------------------------------- */

/* Marks the bytes of elements in `mask`. */
static bool element_bytes(const tc_operand *o, tc_arena *arena, unsigned char **out) {
    uint64_t size = tc_dtype_bytes(o->dtype);
    *out = tc_arena_array(arena, o->bytes, 1);
    for (tc_runs r = tc_runs_start(&o->shape); *out && r.first < o->shape.numel; tc_runs_on(&r))
        for (int64_t k = 0; k < r.n; k++)
            memset(*out + (uint64_t)(r.place + k * r.stride) * size, 1, size);
    return *out != NULL;
}

/* What of the allocation byte `at` is. */
static const char *region_of(const tc_operand *o, uint64_t at) {
    uint64_t size = tc_dtype_bytes(o->dtype);
    return at < (uint64_t)o->shape.offset * size    ? "before the first element"
           : at >= (uint64_t)o->shape.extent * size ? "behind the last element"
                                                    : "between the elements";
}

/* Is the image as it was, from `from` up to `to`? */
static bool same_bytes(const tc_operand *o, const unsigned char *after, uint64_t from,
                       uint64_t to) {
    tc_piece p;
    for (uint64_t i = 0; tc_operand_piece(o, i, to, &p); i++) {
        uint64_t at = p.at > from ? p.at : from;
        if (at < p.at + p.bytes && memcmp(after + at, o->image + at, p.at + p.bytes - at) != 0)
            return false;
    }
    return true;
}

/* The first byte that may not differ and does; false where there is none. */
static bool find_written(const tc_operand *o, const unsigned char *after, const unsigned char *mask,
                         bool elements, uint64_t *out) {
    tc_piece p;
    for (uint64_t i = 0; tc_operand_piece(o, i, o->bytes, &p); i++)
        for (*out = p.at; *out < p.at + p.bytes; (*out)++)
            if (after[*out] != o->image[*out] && (elements || !mask[*out]))
                return true;
    return false;
}

/* Bytes of `after` that differ from the image, those of elements aside where `elements` is false.
 */
static void check_bytes(const tc_invocation *call, const char *name, const tc_operand *o,
                        const unsigned char *after, bool elements, tc_verdict *out) {
    unsigned char *mask = NULL;
    uint64_t size = tc_dtype_bytes(o->dtype), first = (uint64_t)o->shape.offset * size,
             end = (uint64_t)o->shape.extent * size, at;
    if (!after || same_bytes(o, after, 0, o->bytes))
        return;
    if (!elements && tc_is_dense(&o->shape) && same_bytes(o, after, 0, first) &&
        same_bytes(o, after, end, o->bytes))
        return;
    if (!element_bytes(o, call->arena, &mask)) {
        TC_CASE_ERROR(out, "the host has no memory for a case of this size");
        return;
    }
    if (find_written(o, after, mask, elements, &at))
        tc_verdict_set(out, TC_FAIL, TNP_KERNEL_WRITES_OUTPUTS_ONLY,
                       "%s: %s of %s was written: byte %" PRIu64
                       " of its allocation was 0x%02x and is 0x%02x",
                       call->record->op, mask[at] ? "an element" : region_of(o, at), name, at,
                       o->image[at], after[at]);
}

void tc_check_untouched(const tc_invocation *call, const tc_result *result, tc_verdict *out) {
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (result->args[a])
            check_bytes(call, call->record->args[a].name, &call->args[a].tensor, result->args[a],
                        call->in_place < 0 ||
                            tc_owner(call, (uint32_t)call->in_place) != tc_owner(call, a),
                        out);
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        char name[24];
        snprintf(name, sizeof name, "output %u", k);
        if (k > 0 || call->in_place < 0)
            check_bytes(call, name, &call->outs[k].tensor, result->outs[k], false, out);
    }
    if (result->workspace_overrun)
        tc_verdict_set(out, TC_FAIL, TNP_KERNEL_WORKSPACE,
                       "%s: bytes before or behind the workspace were written", call->record->op);
}

/* No byte of the outputs changed either. */
static void check_outputs_untouched(const tc_invocation *call, const tc_result *result,
                                    tc_verdict *out) {
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        char name[24];
        snprintf(name, sizeof name, "output %u", k);
        if (k > 0 || call->in_place < 0)
            check_bytes(call, name, &call->outs[k].tensor, result->outs[k], true, out);
    }
}

bool tc_check_declined(const tc_invocation *call, const tc_result *result, tc_verdict *out) {
    if (result->sync != TN_OK)
        return tc_verdict_set(out, TC_FAIL, TNP_SUPPORTED_RUNS,
                              "%s: run declines the call, and the stream reports %s",
                              call->record->op, tc_tn_status_name(result->sync));
    tc_check_untouched(call, result, out);
    check_outputs_untouched(call, result, out);
    if (out->status != TC_FAIL)
        return true;
    out->requirement = TNP_SUPPORTED_RUNS;
    return false;
}

/* ---- results ----------------------------------------------------------------------------- */

void tc_check_outputs(const tc_invocation *call, const tc_result *result, const tc_subject *s,
                      tc_verdict *out) {
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        tc_compare(call, k, result->outs[k], s->flushes, out);
    if (out->status == TC_PASS)
        tc_check_conclusive(call, s->flushes, out);
}

void tc_check_host(tc_verdict *out) {
    tn_requirement requirement;
    const char *text;
    if (tc_host_misuse(&requirement, &text))
        tc_verdict_set(out, TC_FAIL, requirement, "%s", text);
    tc_host_clear();
}
