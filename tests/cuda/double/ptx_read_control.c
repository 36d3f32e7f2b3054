/* Reads what decides where lanes go, and what makes them wait for each other. */
#include "tests/cuda/double/ptx_reader.h"

#include <string.h>

/* ---- branches and calls ------------------------------------------------------------------ */

/* What waits for a label has its name until the braces around both end. */
static void wait_for_label(ptx_reader *reader, uint32_t index, uint32_t entry, bool is_table) {
    if (reader->token.kind != PTX_WORD)
        ptx_fail(reader, "a label is expected before '%.*s'", (int)reader->token.length,
                 reader->token.begin);
    ptx_name *name = ptx_add_name(reader, &reader->token, PTX_FUTURE);
    name->index = index;
    name->entry = entry;
    name->count = is_table;
    ptx_next(reader);
}

static void read_branch(ptx_reader *reader, ptx_opcode *opcode) {
    ptx_take(opcode, "uni");
    ptx_all_taken(reader, opcode);
    ptx_emit(reader, PTX_BRANCH);
    wait_for_label(reader, reader->function->n_code - 1, 0, false);
}

static void read_indexed_branch(ptx_reader *reader, ptx_opcode *opcode) {
    if (!ptx_take(opcode, "idx"))
        ptx_fail(reader, "this brx is not interpreted");
    ptx_take(opcode, "uni");
    ptx_all_taken(reader, opcode);
    ptx_place index = ptx_read_source(reader, 4, NULL);
    ptx_expect(reader, ",");
    const ptx_name *table = ptx_find(reader, reader->token.begin, reader->token.length);
    if (!table || table->kind != PTX_TABLE)
        ptx_fail(reader, "'%.*s' is no list of targets", (int)reader->token.length,
                 reader->token.begin);
    ptx_instruction *out = ptx_emit(reader, PTX_BRANCH_INDEXED);
    out->o[0] = index;
    out->target = table->index;
    ptx_next(reader);
}

/* Bytes between the function's memory and that of the one called. */
static void emit_copy(ptx_reader *reader, uint32_t callee, const ptx_parameter *theirs, bool back) {
    const ptx_name *name = ptx_find(reader, reader->token.begin, reader->token.length);
    if (!name || name->kind != PTX_VARIABLE || name->space != PTX_PARAM ||
        name->base != PTX_BASE_FRAME || name->size != theirs->bytes)
        ptx_fail(reader, "'%.*s' is no .param of %u bytes", (int)reader->token.length,
                 reader->token.begin, theirs->bytes);
    ptx_instruction *out = ptx_emit(reader, PTX_COPY);
    out->offset = (int64_t)name->offset;
    out->base = PTX_BASE_FRAME;
    out->option = back;
    out->target = callee;
    out->o[0] = theirs->offset;
    out->o[1] = theirs->bytes;
    ptx_next(reader);
}

static void read_call(ptx_reader *reader, ptx_opcode *opcode) {
    ptx_take(opcode, "uni");
    ptx_all_taken(reader, opcode);
    ptx_token result = {0};
    if (ptx_accept(reader, "(")) {
        result = reader->token;
        ptx_next(reader);
        ptx_expect(reader, ")");
        ptx_expect(reader, ",");
    }
    const ptx_name *name = ptx_find(reader, reader->token.begin, reader->token.length);
    if (!name || name->kind != PTX_FUNCTION || reader->module->functions[name->index]->is_kernel)
        ptx_fail(reader, "a call of '%.*s', which is no function, is not interpreted",
                 (int)reader->token.length, reader->token.begin);
    uint32_t callee = name->index;
    const ptx_function *function = reader->module->functions[callee];
    ptx_next(reader);
    uint32_t n = 0;
    if (ptx_accept(reader, ",")) {
        ptx_expect(reader, "(");
        while (!ptx_accept(reader, ")")) {
            if (n == function->n_parameters)
                ptx_fail(reader, "too many parameters for '%s'", function->name);
            emit_copy(reader, callee, &function->parameters[n++], false);
            ptx_accept(reader, ",");
        }
    }
    if (n != function->n_parameters || (result.length != 0) != (function->result.name != NULL))
        ptx_fail(reader, "'%s' has other parameters", function->name);
    ptx_emit(reader, PTX_CALL)->target = callee;
    *PTX_APPEND(reader, reader->function, calls) = callee;
    if (result.length) {
        ptx_token next = reader->token;
        reader->token = result;
        const char *at = reader->at;
        uint32_t line = reader->line;
        emit_copy(reader, callee, &function->result, true);
        reader->token = next;
        reader->at = at;
        reader->line = line;
    }
}

/* ---- lanes of a warp --------------------------------------------------------------------- */

/* o: result, predicate, value, two more, the lanes that take part. */
static ptx_instruction *emit_together(ptx_reader *reader, ptx_together what, const ptx_place o[6]) {
    ptx_instruction *out = ptx_emit(reader, PTX_TOGETHER);
    out->what = (uint8_t)what;
    memcpy(out->o, o, 6 * sizeof *o);
    return out;
}

static void refuse_unless_sync(ptx_reader *reader, ptx_opcode *opcode) {
    if (!ptx_take(opcode, "sync"))
        ptx_fail(reader, "'%s' without .sync is not interpreted", opcode->text);
}

static int take_one_of(ptx_opcode *opcode, const char *const *names) {
    for (int k = 0; names[k]; k++)
        if (ptx_take(opcode, names[k]))
            return k;
    return -1;
}

static ptx_place next_source(ptx_reader *reader, uint32_t bytes) {
    ptx_expect(reader, ",");
    return ptx_read_source(reader, bytes, NULL);
}

static void read_shuffle(ptx_reader *reader, ptx_opcode *opcode) {
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    refuse_unless_sync(reader, opcode);
    int mode = take_one_of(opcode, modes);
    if (mode < 0 || !ptx_take(opcode, "b32"))
        ptx_fail(reader, "this shfl is not interpreted");
    ptx_all_taken(reader, opcode);
    ptx_place o[6] = {ptx_read_result(reader, 4, NULL), PTX_NOWHERE};
    if (ptx_accept(reader, "|"))
        o[1] = ptx_read_result(reader, 0, NULL);
    for (int k = 2; k < 6; k++)
        o[k] = next_source(reader, 4);
    emit_together(reader, PTX_SHUFFLE_UP + (ptx_together)mode, o);
}

static void read_vote(ptx_reader *reader, ptx_opcode *opcode) {
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    refuse_unless_sync(reader, opcode);
    int mode = take_one_of(opcode, modes);
    if (mode < 0 || !ptx_take(opcode, mode == 3 ? "b32" : "pred"))
        ptx_fail(reader, "this vote is not interpreted");
    ptx_all_taken(reader, opcode);
    ptx_place o[6] = {ptx_read_result(reader, mode == 3 ? 4 : 0, NULL), PTX_NOWHERE, 0, PTX_NOWHERE,
                      PTX_NOWHERE};
    ptx_expect(reader, ",");
    o[2] = ptx_read_predicate(reader);
    o[5] = next_source(reader, 4);
    emit_together(reader, PTX_VOTE_ALL + (ptx_together)mode, o);
}

static void read_match(ptx_reader *reader, ptx_opcode *opcode) {
    static const char *const modes[] = {"any", "all", NULL};
    refuse_unless_sync(reader, opcode);
    int mode = take_one_of(opcode, modes);
    uint32_t bytes = ptx_take(opcode, "b64") ? 8 : ptx_take(opcode, "b32") ? 4 : 0;
    if (mode < 0 || !bytes)
        ptx_fail(reader, "this match is not interpreted");
    ptx_all_taken(reader, opcode);
    ptx_place o[6] = {ptx_read_result(reader, 4, NULL), PTX_NOWHERE, 0, PTX_NOWHERE, PTX_NOWHERE};
    if (ptx_accept(reader, "|"))
        o[1] = ptx_read_result(reader, 0, NULL);
    o[2] = next_source(reader, bytes);
    o[5] = next_source(reader, 4);
    emit_together(reader, PTX_MATCH_ANY + (ptx_together)mode, o)->row = (uint8_t)bytes;
}

static void read_reduce(ptx_reader *reader, ptx_opcode *opcode) {
    static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", NULL};
    ptx_number number;
    uint32_t bytes;
    refuse_unless_sync(reader, opcode);
    int operation = take_one_of(opcode, operations);
    if (operation < 0 || !ptx_take_type(opcode, &number, &bytes) || bytes != 4 ||
        number > PTX_SIGNED)
        ptx_fail(reader, "this redux is not interpreted");
    ptx_all_taken(reader, opcode);
    ptx_place o[6] = {ptx_read_result(reader, 4, NULL), PTX_NOWHERE, 0, PTX_NOWHERE, PTX_NOWHERE};
    o[2] = next_source(reader, 4);
    o[5] = next_source(reader, 4);
    emit_together(reader, PTX_REDUCE_ADD + (ptx_together)operation, o)->number = number;
}

static void read_elect(ptx_reader *reader, ptx_opcode *opcode) {
    refuse_unless_sync(reader, opcode);
    ptx_all_taken(reader, opcode);
    ptx_place o[6] = {ptx_read_result(reader, 4, NULL), PTX_NOWHERE, PTX_NOWHERE, PTX_NOWHERE,
                      PTX_NOWHERE};
    ptx_expect(reader, "|");
    o[1] = ptx_read_result(reader, 0, NULL);
    o[5] = next_source(reader, 4);
    emit_together(reader, PTX_ELECT, o);
}

static void read_active_mask(ptx_reader *reader, ptx_opcode *opcode) {
    ptx_take(opcode, "b32");
    ptx_all_taken(reader, opcode);
    ptx_place o[6] = {ptx_read_result(reader, 4, NULL),
                      PTX_NOWHERE,
                      PTX_NOWHERE,
                      PTX_NOWHERE,
                      PTX_NOWHERE,
                      PTX_NOWHERE};
    emit_together(reader, PTX_ACTIVE_MASK, o);
}

/* ---- the block --------------------------------------------------------------------------- */

/* o: result, which barrier, threads, predicate. */
static void read_barrier(ptx_reader *reader, ptx_opcode *opcode, const char *base) {
    static const char *const reductions[] = {"popc", "and", "or", NULL};
    bool aligned = ptx_take(opcode, "aligned") || !strcmp(base, "bar");
    ptx_take(opcode, "cta");
    if (ptx_take(opcode, "warp")) {
        refuse_unless_sync(reader, opcode);
        ptx_all_taken(reader, opcode);
        ptx_place o[6] = {PTX_NOWHERE, PTX_NOWHERE, PTX_NOWHERE,
                          PTX_NOWHERE, PTX_NOWHERE, ptx_read_source(reader, 4, NULL)};
        emit_together(reader, PTX_MEET, o);
        return;
    }
    ptx_barrier_kind kind = PTX_BARRIER_SYNC;
    if (ptx_take(opcode, "arrive")) {
        kind = PTX_BARRIER_ARRIVE;
    } else if (ptx_take(opcode, "red")) {
        int which = take_one_of(opcode, reductions);
        if (which < 0 || !ptx_take(opcode, which == 0 ? "u32" : "pred"))
            ptx_fail(reader, "this '%s.red' is not interpreted", base);
        kind = PTX_BARRIER_POPC + (ptx_barrier_kind)which;
    } else {
        refuse_unless_sync(reader, opcode);
    }
    ptx_all_taken(reader, opcode);
    ptx_place o[4] = {PTX_NOWHERE, PTX_NOWHERE, PTX_NOWHERE, PTX_NOWHERE};
    if (kind >= PTX_BARRIER_POPC) {
        o[0] = ptx_read_result(reader, kind == PTX_BARRIER_POPC ? 4 : 0, NULL);
        ptx_expect(reader, ",");
    }
    o[1] = ptx_read_source(reader, 4, NULL);
    if (ptx_accept(reader, ",")) {
        const ptx_name *name = ptx_find(reader, reader->token.begin, reader->token.length);
        bool is_predicate =
            ptx_is(reader, "!") || (name && name->kind == PTX_REGISTERS && !name->bytes);
        if (is_predicate && kind >= PTX_BARRIER_POPC)
            o[3] = ptx_read_predicate(reader);
        else
            o[2] = ptx_read_source(reader, 4, NULL);
    }
    if (kind >= PTX_BARRIER_POPC && o[3] == PTX_NOWHERE) {
        ptx_expect(reader, ",");
        o[3] = ptx_read_predicate(reader);
    }
    if (kind == PTX_BARRIER_ARRIVE && o[2] == PTX_NOWHERE)
        ptx_fail(reader, "'%s.arrive' without a number of threads", base);
    ptx_instruction *out = ptx_emit(reader, PTX_BARRIER);
    out->what = (uint8_t)kind;
    out->option = aligned;
    memcpy(out->o, o, sizeof o);
}

/* ---- any --------------------------------------------------------------------------------- */

/* What does nothing where one thread does everything in order. */
static void skip(ptx_reader *reader) {
    while (reader->token.kind != PTX_END && !ptx_is(reader, ";"))
        ptx_next(reader);
}

void ptx_read_control(ptx_reader *reader, ptx_opcode *opcode, const char *base) {
    if (!strcmp(base, "bra"))
        read_branch(reader, opcode);
    else if (!strcmp(base, "brx"))
        read_indexed_branch(reader, opcode);
    else if (!strcmp(base, "call"))
        read_call(reader, opcode);
    else if (!strcmp(base, "shfl"))
        read_shuffle(reader, opcode);
    else if (!strcmp(base, "vote"))
        read_vote(reader, opcode);
    else if (!strcmp(base, "match"))
        read_match(reader, opcode);
    else if (!strcmp(base, "redux"))
        read_reduce(reader, opcode);
    else if (!strcmp(base, "elect"))
        read_elect(reader, opcode);
    else if (!strcmp(base, "activemask"))
        read_active_mask(reader, opcode);
    else
        read_barrier(reader, opcode, base);
}

bool ptx_read_special(ptx_reader *reader, ptx_opcode *opcode) {
    static const char *const memory[] = {"ld", "ldu", "st", "atom", "red", "cp", NULL};
    static const char *const control[] = {"bra",        "brx",   "call",    "shfl",
                                          "vote",       "match", "redux",   "elect",
                                          "activemask", "bar",   "barrier", NULL};
    static const char *const nothing[] = {"membar",   "fence",         "nanosleep",
                                          "prefetch", "prefetchu",     "pmevent",
                                          "discard",  "applypriority", NULL};
    const char *base = opcode->parts[0];
    for (int k = 0; memory[k]; k++)
        if (!strcmp(base, memory[k]))
            return ptx_read_memory(reader, opcode, base), true;
    for (int k = 0; control[k]; k++)
        if (!strcmp(base, control[k]))
            return ptx_read_control(reader, opcode, base), true;
    for (int k = 0; nothing[k]; k++)
        if (!strcmp(base, nothing[k]))
            return skip(reader), true;
    bool leaves = !strcmp(base, "exit"), returns = !strcmp(base, "ret"),
         traps = !strcmp(base, "trap");
    if (!leaves && !returns && !traps)
        return false;
    ptx_take(opcode, "uni");
    ptx_all_taken(reader, opcode);
    ptx_emit(reader, leaves ? PTX_EXIT : returns ? PTX_RETURN : PTX_TRAP);
    return true;
}
