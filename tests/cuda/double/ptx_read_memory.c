/* Reads loads, stores, atomics and asynchronous copies. */
#include "tests/cuda/double/ptx_reader.h"

#include <string.h>

/* How an access is ordered and cached does not matter where one thread does all of them in order;
 * atomics are sequentially consistent. */
static void take_hints(ptx_opcode *opcode) {
    static const char *const hints[] = {"weak",    "volatile", "relaxed", "acquire", "release",
                                        "acq_rel", "mmio",     "cta",     "cluster", "gpu",
                                        "sys",     "ca",       "cg",      "cs",      "lu",
                                        "cv",      "nc",       "wb",      "wt",      "noftz"};
    for (size_t k = 0; k < sizeof hints / sizeof *hints; k++)
        ptx_take(opcode, hints[k]);
    for (uint32_t k = 1; k < opcode->n; k++)
        if (opcode->parts[k] &&
            (!strncmp(opcode->parts[k], "L1::", 4) || !strncmp(opcode->parts[k], "L2::", 4)) &&
            !strstr(opcode->parts[k], "cache_hint"))
            opcode->parts[k] = NULL;
}

static uint8_t take_space(ptx_opcode *opcode) {
    static const struct {
        const char *name;
        uint8_t space;
    } spaces[] = {
        {"global", PTX_GLOBAL},     {"shared", PTX_SHARED}, {"shared::cta", PTX_SHARED},
        {"local", PTX_LOCAL},       {"param", PTX_PARAM},   {"param::entry", PTX_PARAM},
        {"param::func", PTX_PARAM}, {"const", PTX_GLOBAL},
    };
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (ptx_take(opcode, spaces[k].name))
            return spaces[k].space;
    return PTX_GENERIC;
}

static uint32_t take_count(ptx_opcode *opcode) {
    return ptx_take(opcode, "v2") ? 2 : ptx_take(opcode, "v4") ? 4 : ptx_take(opcode, "v8") ? 8 : 1;
}

/* Registers of one width, at least as wide as the type. Those that are not wanted are NOWHERE. */
static void read_elements(ptx_reader *reader, ptx_instruction *out, bool results) {
    bool vector = out->count > 1;
    if (vector)
        ptx_expect(reader, "{");
    uint32_t least = out->bytes == 1 ? 2 : out->bytes;
    out->row = (uint8_t)least;
    for (uint32_t k = 0; k < out->count; k++) {
        uint32_t bytes = least;
        if (k)
            ptx_expect(reader, ",");
        if (results && ptx_accept(reader, "_"))
            continue;
        if (results)
            out->o[k] = ptx_read_result(reader, PTX_ANY, &bytes);
        else if (reader->token.kind == PTX_WORD)
            out->o[k] = ptx_read_source(reader, PTX_ANY, &bytes);
        else
            out->o[k] = ptx_read_source(reader, least, NULL);
        if (bytes < least || (k && bytes != out->row))
            ptx_fail(reader, "a register of %u bits for %u in memory", bytes * 8, out->bytes * 8u);
        out->row = (uint8_t)bytes;
    }
    if (vector)
        ptx_expect(reader, "}");
}

static void read_access(ptx_reader *reader, ptx_opcode *opcode, bool load) {
    ptx_number number;
    uint32_t bytes;
    ptx_instruction out = {.kind = load ? PTX_LOAD : PTX_STORE};
    for (int k = 0; k < PTX_OPERANDS; k++)
        out.o[k] = PTX_NOWHERE;
    take_hints(opcode);
    out.space = take_space(opcode);
    out.count = (uint8_t)take_count(opcode);
    if (!ptx_take_type(opcode, &number, &bytes) || !bytes)
        ptx_fail(reader, "'%s' of this type is not interpreted", opcode->text);
    ptx_all_taken(reader, opcode);
    out.bytes = (uint8_t)bytes;
    out.option = number == PTX_SIGNED;
    if (load) {
        read_elements(reader, &out, true);
        ptx_expect(reader, ",");
        ptx_read_address(reader, &out, 8);
    } else {
        ptx_read_address(reader, &out, 8);
        ptx_expect(reader, ",");
        read_elements(reader, &out, false);
    }
    ptx_instruction *at = ptx_emit(reader, out.kind);
    out.guard = at->guard;
    out.negated = at->negated;
    *at = out;
}

static void read_atomic(ptx_reader *reader, ptx_opcode *opcode, bool has_result) {
    static const struct {
        const char *name;
        ptx_atomic what;
    } operations[] = {
        {"add", PTX_ATOMIC_ADD}, {"exch", PTX_ATOMIC_EXCHANGE}, {"cas", PTX_ATOMIC_CAS},
        {"and", PTX_ATOMIC_AND}, {"or", PTX_ATOMIC_OR},         {"xor", PTX_ATOMIC_XOR},
        {"min", PTX_ATOMIC_MIN}, {"max", PTX_ATOMIC_MAX},       {"inc", PTX_ATOMIC_INC},
        {"dec", PTX_ATOMIC_DEC},
    };
    ptx_number number;
    uint32_t bytes;
    ptx_instruction out = {.kind = PTX_ATOMIC, .count = 1};
    for (int k = 0; k < PTX_OPERANDS; k++)
        out.o[k] = PTX_NOWHERE;
    take_hints(opcode);
    out.space = take_space(opcode);
    size_t k = 0;
    size_t n = sizeof operations / sizeof *operations;
    while (k < n && !ptx_take(opcode, operations[k].name))
        k++;
    if (k == n || !ptx_take_type(opcode, &number, &bytes) || bytes < 2)
        ptx_fail(reader, "'%s' of this kind is not interpreted", opcode->text);
    out.what = operations[k].what;
    out.bytes = out.row = (uint8_t)bytes;
    out.number = number;
    bool real = number >= PTX_FLOAT;
    bool fits = real         ? out.what == PTX_ATOMIC_ADD
                : bytes == 2 ? out.what == PTX_ATOMIC_CAS || out.what == PTX_ATOMIC_EXCHANGE
                : out.what == PTX_ATOMIC_INC || out.what == PTX_ATOMIC_DEC ? bytes == 4
                                                                           : true;
    if (!fits || number == PTX_PRED)
        ptx_fail(reader, "'%s.%s' of this type is not interpreted", opcode->text,
                 operations[k].name);
    ptx_all_taken(reader, opcode);
    if (has_result) {
        if (!ptx_accept(reader, "_"))
            out.o[0] = ptx_read_result(reader, bytes, NULL);
        ptx_expect(reader, ",");
    }
    ptx_read_address(reader, &out, 8);
    for (int s = 1; s < (out.what == PTX_ATOMIC_CAS ? 3 : 2); s++) {
        ptx_expect(reader, ",");
        out.o[s] = ptx_read_source(reader, bytes, NULL);
    }
    ptx_instruction *at = ptx_emit(reader, PTX_ATOMIC);
    out.guard = at->guard;
    out.negated = at->negated;
    *at = out;
}

static void read_async(ptx_reader *reader, ptx_opcode *opcode) {
    ptx_instruction out = {.kind = PTX_ASYNC, .space = PTX_SHARED, .count = 1};
    for (int k = 0; k < PTX_OPERANDS; k++)
        out.o[k] = PTX_NOWHERE;
    if (!ptx_take(opcode, "async"))
        ptx_fail(reader, "this cp is not interpreted");
    if (ptx_take(opcode, "commit_group")) {
        out.what = PTX_ASYNC_COMMIT;
    } else if (ptx_take(opcode, "wait_all")) {
        out.what = PTX_ASYNC_WAIT_ALL;
    } else if (ptx_take(opcode, "wait_group")) {
        out.what = PTX_ASYNC_WAIT;
        out.offset = (int64_t)ptx_integer(reader);
    } else {
        out.what = PTX_ASYNC_COPY;
        take_hints(opcode);
        if (!ptx_take(opcode, "shared") && !ptx_take(opcode, "shared::cta"))
            ptx_fail(reader, "this cp.async is not interpreted");
        if (!ptx_take(opcode, "global"))
            ptx_fail(reader, "this cp.async is not interpreted");
        ptx_instruction from = {.space = PTX_GLOBAL};
        ptx_read_address(reader, &out, 8);
        ptx_expect(reader, ",");
        ptx_read_address(reader, &from, 9);
        if (from.base)
            ptx_fail(reader, "cp.async from local memory");
        if (from.offset) {
            ptx_instruction *sum = ptx_emit_form(reader, "add.u64");
            sum->o[0] = ptx_scratch(reader);
            sum->o[1] = from.o[9];
            sum->o[2] = ptx_constant(reader, (uint64_t)from.offset, 8);
            from.o[9] = sum->o[0];
        }
        out.o[9] = from.o[9];
        ptx_expect(reader, ",");
        uint64_t bytes = ptx_integer(reader);
        if (bytes != 4 && bytes != 8 && bytes != 16)
            ptx_fail(reader, "cp.async of %u bytes", (unsigned)bytes);
        out.bytes = (uint8_t)bytes;
        /* So many bytes are read, and zeros are written for the others. */
        if (ptx_accept(reader, ","))
            out.o[0] = ptx_read_source(reader, 4, NULL);
    }
    ptx_all_taken(reader, opcode);
    ptx_instruction *at = ptx_emit(reader, PTX_ASYNC);
    out.guard = at->guard;
    out.negated = at->negated;
    *at = out;
}

void ptx_read_memory(ptx_reader *reader, ptx_opcode *opcode, const char *base) {
    if (!strcmp(base, "ld") || !strcmp(base, "ldu"))
        read_access(reader, opcode, true);
    else if (!strcmp(base, "st"))
        read_access(reader, opcode, false);
    else if (!strcmp(base, "cp"))
        read_async(reader, opcode);
    else
        read_atomic(reader, opcode, !strcmp(base, "atom"));
}
