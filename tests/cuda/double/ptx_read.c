/* Reads instructions: operands, and what is found in the lists of forms by its name. */
#include "tests/cuda/double/ptx_reader.h"

#include <stdio.h>
#include <string.h>

/* ---- names of instructions --------------------------------------------------------------- */

static void split(ptx_reader *reader, ptx_opcode *opcode) {
    const ptx_token *token = &reader->token;
    *opcode = (ptx_opcode){0};
    if (token->kind != PTX_WORD || token->length >= sizeof opcode->text)
        ptx_fail(reader, "an instruction is expected before '%.*s'", (int)token->length,
                 token->begin);
    reader->opcode = *token;
    memcpy(opcode->text, token->begin, token->length);
    opcode->parts[opcode->n++] = opcode->text;
    for (char *at = opcode->text; *at; at++) {
        if (*at != '.')
            continue;
        *at = 0;
        if (opcode->n == sizeof opcode->parts / sizeof *opcode->parts)
            ptx_fail(reader, "'%.*s' is not understood", (int)token->length, token->begin);
        opcode->parts[opcode->n++] = at + 1;
    }
}

bool ptx_take(ptx_opcode *opcode, const char *part) {
    for (uint32_t k = 1; k < opcode->n; k++) {
        if (opcode->parts[k] && !strcmp(opcode->parts[k], part)) {
            opcode->parts[k] = NULL;
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    uint8_t number, bytes;
} types[] = {
    {"b8", PTX_BITS, 1},      {"b16", PTX_BITS, 2},     {"b32", PTX_BITS, 4},
    {"b64", PTX_BITS, 8},     {"u8", PTX_UNSIGNED, 1},  {"u16", PTX_UNSIGNED, 2},
    {"u32", PTX_UNSIGNED, 4}, {"u64", PTX_UNSIGNED, 8}, {"s8", PTX_SIGNED, 1},
    {"s16", PTX_SIGNED, 2},   {"s32", PTX_SIGNED, 4},   {"s64", PTX_SIGNED, 8},
    {"f16", PTX_FLOAT, 2},    {"f32", PTX_FLOAT, 4},    {"f64", PTX_FLOAT, 8},
    {"f16x2", PTX_FLOAT2, 4}, {"bf16", PTX_BFLOAT, 2},  {"bf16x2", PTX_BFLOAT2, 4},
    {"pred", PTX_PRED, 0},
};

bool ptx_type_of(const char *part, ptx_number *out_number, uint32_t *out_bytes) {
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        if (!strcmp(types[k].name, part)) {
            *out_number = types[k].number;
            *out_bytes = types[k].bytes;
            return true;
        }
    }
    return false;
}

bool ptx_take_type(ptx_opcode *opcode, ptx_number *out_number, uint32_t *out_bytes) {
    for (uint32_t k = opcode->n; k-- > 1;) {
        if (opcode->parts[k] && ptx_type_of(opcode->parts[k], out_number, out_bytes)) {
            opcode->parts[k] = NULL;
            return true;
        }
    }
    return false;
}

/* The parts that are left, with dots. */
static void joined(const ptx_opcode *opcode, char *out, size_t room) {
    size_t n = 0;
    for (uint32_t k = 0; k < opcode->n; k++)
        if (opcode->parts[k] && n < room)
            n += (size_t)snprintf(out + n, room - n, n ? ".%s" : "%s", opcode->parts[k]);
}

void ptx_all_taken(ptx_reader *reader, const ptx_opcode *opcode) {
    for (uint32_t k = 1; k < opcode->n; k++)
        if (opcode->parts[k])
            ptx_fail(reader, "'.%s' of '%s' is not interpreted", opcode->parts[k], opcode->text);
}

/* ---- forms ------------------------------------------------------------------------------- */

static bool same_name(const char *form, const char *name) {
    for (; *form && *name; form++, name++)
        if (*form != *name && !(*form == '_' && *name == '.'))
            return false;
    return *form == *name;
}

const ptx_form *ptx_form_of(ptx_reader *reader, const char *name) {
    for (size_t k = 0; k < sizeof *reader->forms / sizeof **reader->forms && (*reader->forms)[k];
         k++)
        for (const ptx_form *form = (*reader->forms)[k]; form->name; form++)
            if (same_name(form->name, name))
                return form;
    return NULL;
}

ptx_instruction *ptx_emit(ptx_reader *reader, ptx_kind kind) {
    ptx_instruction *out = PTX_APPEND(reader, reader->function, code);
    *out = (ptx_instruction){.kind = (uint8_t)kind,
                             .guard = reader->guard.place,
                             .negated = reader->guard.negated,
                             .line = reader->line};
    for (int k = 0; k < PTX_OPERANDS; k++)
        out->o[k] = PTX_NOWHERE;
    return out;
}

ptx_instruction *ptx_emit_form(ptx_reader *reader, const char *name) {
    const ptx_form *form = ptx_form_of(reader, name);
    if (!form)
        ptx_fail(reader, "'%s' is not interpreted", name);
    ptx_instruction *out = ptx_emit(reader, PTX_ALU);
    out->run = form->run;
    return out;
}

/* One with a result and a source. */
static void emit_step(ptx_reader *reader, const char *name, ptx_place result, ptx_place source) {
    ptx_instruction *out = ptx_emit_form(reader, name);
    out->o[0] = result;
    out->o[1] = source;
}

/* ---- operands ---------------------------------------------------------------------------- */

static const char *const special_names[] = {
#define SPECIAL_NAME(name, text) text,
    PTX_SPECIALS(SPECIAL_NAME)
#undef SPECIAL_NAME
};

static bool special_place(const ptx_token *token, ptx_place *out) {
    for (uint32_t k = 0; k < PTX_N_SPECIALS; k++) {
        if (strlen(special_names[k]) == token->length &&
            !memcmp(special_names[k], token->begin, token->length)) {
            *out = PTX_SPECIAL + 2 * k;
            return true;
        }
    }
    return false;
}

static ptx_name *name_of_token(ptx_reader *reader) {
    ptx_name *name = ptx_find(reader, reader->token.begin, reader->token.length);
    if (!name)
        ptx_fail(reader, "'%.*s' is not declared", (int)reader->token.length, reader->token.begin);
    return name;
}

static ptx_place register_place(const ptx_name *name, const ptx_token *token) {
    uint32_t number = 0;
    for (uint32_t k = name->length; k < token->length; k++)
        number = number * 10 + (uint32_t)(token->begin[k] - '0');
    return name->place + number * ptx_register_units(name->bytes);
}

static ptx_place read_register(ptx_reader *reader, uint32_t bytes, uint32_t *out_bytes) {
    const ptx_name *name = name_of_token(reader);
    if (name->kind != PTX_REGISTERS)
        ptx_fail(reader, "'%.*s' is no register", (int)reader->token.length, reader->token.begin);
    if (bytes == PTX_ANY ? !name->bytes : name->bytes != bytes)
        ptx_fail(reader, "register '%.*s' has %u bits", (int)reader->token.length,
                 reader->token.begin, name->bytes ? name->bytes * 8u : 1u);
    if (out_bytes)
        *out_bytes = name->bytes;
    ptx_place place = register_place(name, &reader->token);
    ptx_next(reader);
    return place;
}

ptx_place ptx_read_result(ptx_reader *reader, uint32_t bytes, uint32_t *out_bytes) {
    if (ptx_accept(reader, "_")) {
        if (out_bytes)
            *out_bytes = bytes == PTX_ANY ? 8 : bytes;
        return ptx_scratch(reader);
    }
    return read_register(reader, bytes, out_bytes);
}

static uint64_t narrowed(const ptx_token *token, uint32_t bytes) {
    float single;
    double real;
    uint64_t bits = token->bits;
    if (token->kind == PTX_SINGLE && bytes == 8) {
        memcpy(&single, &bits, sizeof single);
        real = single;
        memcpy(&bits, &real, sizeof real);
    } else if (token->kind == PTX_REAL && bytes == 4) {
        memcpy(&real, &bits, sizeof real);
        single = (float)real;
        bits = 0;
        memcpy(&bits, &single, sizeof single);
    }
    return bits;
}

/* For a base that is not known yet, or not the same for all kernels. */
static ptx_place emit_address(ptx_reader *reader, ptx_base base, uint64_t offset, uint32_t bytes) {
    ptx_instruction *out = ptx_emit(reader, PTX_ADDRESS);
    out->row = (uint8_t)bytes;
    out->base = (uint8_t)base;
    out->offset = (int64_t)offset;
    reader->function->uses_common |= base == PTX_BASE_COMMON;
    return out->o[0] = ptx_scratch(reader);
}

/* The address of a variable in its own space, plus what follows. */
static ptx_place address_of(ptx_reader *reader, const ptx_name *name, uint32_t bytes) {
    if (bytes != 8 && bytes != 4)
        ptx_fail(reader, "an address in %u bits", bytes * 8);
    uint64_t offset = name->offset;
    uint8_t space = name->space;
    ptx_base base = name->base;
    ptx_next(reader);
    if (ptx_accept(reader, "+"))
        offset += ptx_integer(reader);
    if (space == PTX_PARAM)
        offset += base == PTX_BASE_FRAME ? PTX_WINDOW(PTX_LOCAL) : PTX_WINDOW(PTX_PARAM);
    if (space == PTX_MODULE)
        offset += PTX_WINDOW(PTX_MODULE);
    if (base == PTX_BASE_NONE)
        return ptx_constant(reader, offset, bytes);
    return emit_address(reader, base, offset, bytes);
}

ptx_place ptx_read_source(ptx_reader *reader, uint32_t bytes, uint32_t *out_bytes) {
    ptx_place place;
    if (out_bytes)
        *out_bytes = bytes == PTX_ANY ? 8 : bytes;
    uint32_t wanted = bytes == PTX_ANY ? 8 : bytes;
    ptx_token token = reader->token;
    if (token.kind == PTX_WORD) {
        if (ptx_accept(reader, "WARP_SZ"))
            return ptx_constant(reader, PTX_LANES, wanted);
        if (special_place(&token, &place)) {
            if (bytes != 4 && bytes != PTX_ANY)
                ptx_fail(reader, "'%.*s' has 32 bits", (int)token.length, token.begin);
            if (out_bytes)
                *out_bytes = 4;
            ptx_next(reader);
            return place;
        }
        const ptx_name *name = name_of_token(reader);
        return name->kind == PTX_VARIABLE ? address_of(reader, name, wanted)
                                          : read_register(reader, bytes, out_bytes);
    }
    if (token.kind == PTX_REAL || token.kind == PTX_SINGLE) {
        ptx_next(reader);
        return ptx_constant(reader, narrowed(&token, wanted), wanted);
    }
    return ptx_constant(reader, ptx_integer(reader), wanted);
}

ptx_place ptx_read_predicate(ptx_reader *reader) {
    bool negated = ptx_accept(reader, "!");
    if (reader->token.kind == PTX_NUMBER || ptx_is(reader, "-"))
        return ptx_constant(reader, (ptx_integer(reader) != 0) != negated ? PTX_ALL : 0, 0);
    ptx_place place = read_register(reader, 0, NULL);
    if (!negated)
        return place;
    ptx_place out = ptx_scratch(reader);
    emit_step(reader, "not.pred", out, place);
    return out;
}

void ptx_read_address(ptx_reader *reader, ptx_instruction *out, uint32_t k) {
    ptx_expect(reader, "[");
    uint32_t bytes = 8;
    const ptx_name *name = reader->token.kind == PTX_WORD
                               ? ptx_find(reader, reader->token.begin, reader->token.length)
                               : NULL;
    if (name && name->kind == PTX_VARIABLE) {
        bool local = name->space == PTX_PARAM && name->base == PTX_BASE_FRAME;
        out->offset = (int64_t)name->offset;
        out->base = name->base == PTX_BASE_FRAME ? PTX_BASE_FRAME : PTX_BASE_NONE;
        if (local && out->space == PTX_PARAM)
            out->space = PTX_LOCAL;
        else if (name->space == PTX_PARAM || name->space == PTX_MODULE || out->space == PTX_GENERIC)
            out->offset += (int64_t)PTX_WINDOW(local ? PTX_LOCAL : name->space);
        out->o[k] = name->base > PTX_BASE_FRAME ? emit_address(reader, name->base, 0, 8)
                                                : ptx_constant(reader, 0, 8);
        ptx_next(reader);
    } else if (reader->token.kind == PTX_WORD) {
        out->o[k] = read_register(reader, PTX_ANY, &bytes);
        if (bytes == 4) {
            ptx_place wide = ptx_scratch(reader);
            emit_step(reader, "cvt.b64.u32", wide, out->o[k]);
            out->o[k] = wide;
        } else if (bytes != 8) {
            ptx_fail(reader, "an address in %u bits", bytes * 8);
        }
    } else {
        out->o[k] = ptx_constant(reader, 0, 8);
        out->offset = (int64_t)ptx_integer(reader);
    }
    if (ptx_accept(reader, "+"))
        out->offset += (int64_t)ptx_integer(reader);
    else if (ptx_is(reader, "-"))
        out->offset += (int64_t)ptx_integer(reader);
    ptx_expect(reader, "]");
}

/* ---- mov --------------------------------------------------------------------------------- */

/* Reads `{a, b}`. */
static uint32_t read_parts(ptx_reader *reader, bool results, uint32_t bytes, ptx_place out[8]) {
    uint32_t n = 0;
    ptx_expect(reader, "{");
    do {
        if (n == 8)
            ptx_fail(reader, "a vector of more than 8");
        if (results && ptx_accept(reader, "_"))
            out[n++] = PTX_NOWHERE;
        else
            out[n++] = results ? ptx_read_result(reader, bytes, NULL)
                               : ptx_read_source(reader, bytes, NULL);
    } while (ptx_accept(reader, ","));
    ptx_expect(reader, "}");
    return n;
}

/* How many there are in braces from here on. */
static uint32_t count_parts(const ptx_reader *reader) {
    uint32_t n = 1;
    for (const char *at = reader->at; *at && *at != '}'; at++)
        n += *at == ',';
    return n;
}

static void read_unpack(ptx_reader *reader, uint32_t bytes) {
    uint32_t n = count_parts(reader);
    ptx_place parts[8];
    if ((n != 2 && n != 4) || bytes / n < 2)
        ptx_fail(reader, "a mov of %u bits into %u parts is not interpreted", bytes * 8, n);
    if (read_parts(reader, true, bytes / n, parts) != n)
        ptx_fail(reader, "these parts are not understood");
    ptx_expect(reader, ",");
    ptx_place source = ptx_read_source(reader, bytes, NULL);
    /* The source may be one of the results only where it is as wide as they are, which it is not. */
    for (uint32_t k = 0; k < n; k++) {
        if (parts[k] == PTX_NOWHERE)
            continue;
        char name[48];
        snprintf(name, sizeof name, "part%u.%u.%u", k, bytes / n, bytes);
        emit_step(reader, name, parts[k], source);
    }
}

static void read_pack(ptx_reader *reader, ptx_place result, uint32_t bytes) {
    uint32_t n = count_parts(reader);
    ptx_place parts[8];
    if ((n != 2 && n != 4) || bytes / n < 2)
        ptx_fail(reader, "a mov of %u parts into %u bits is not interpreted", n, bytes * 8);
    if (read_parts(reader, false, bytes / n, parts) != n)
        ptx_fail(reader, "these parts are not understood");
    char name[48];
    snprintf(name, sizeof name, "join.%u.%u", bytes, bytes / n);
    ptx_instruction *out = ptx_emit_form(reader, name);
    out->o[0] = result;
    for (uint32_t k = 0; k < n; k++)
        out->o[1 + k] = parts[k];
}

static void read_mov(ptx_reader *reader, ptx_opcode *opcode) {
    ptx_number number;
    uint32_t bytes;
    if (!ptx_take_type(opcode, &number, &bytes) || bytes == 1)
        ptx_fail(reader, "this mov is not interpreted");
    ptx_all_taken(reader, opcode);
    if (ptx_is(reader, "{")) {
        read_unpack(reader, bytes);
        return;
    }
    ptx_place result =
        number == PTX_PRED ? read_register(reader, 0, NULL) : ptx_read_result(reader, bytes, NULL);
    ptx_expect(reader, ",");
    if (ptx_is(reader, "{")) {
        read_pack(reader, result, bytes);
        return;
    }
    static const char *const clocks[] = {"%clock",       "%clock_hi",       "%clock64",
                                         "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"};
    for (size_t k = 0; k < sizeof clocks / sizeof *clocks; k++) {
        if (ptx_accept(reader, clocks[k])) {
            ptx_instruction *out = ptx_emit(reader, PTX_CLOCK);
            out->row = (uint8_t)bytes;
            out->option = strstr(clocks[k], "_hi") != NULL;
            out->o[0] = result;
            return;
        }
    }
    static const char *const moves[9] = {"mov.pred", NULL, "mov.b16", NULL,     "mov.b32",
                                         NULL,       NULL, NULL,      "mov.b64"};
    ptx_place source =
        number == PTX_PRED ? ptx_read_predicate(reader) : ptx_read_source(reader, bytes, NULL);
    emit_step(reader, moves[bytes], result, source);
}

/* ---- comparisons ------------------------------------------------------------------------- */

static void flush(ptx_reader *reader, ptx_place *place, uint32_t bytes) {
    ptx_place out = ptx_scratch(reader);
    emit_step(reader, bytes == 2 ? "flush.f16" : bytes == 8 ? "flush.f64" : "flush", out, *place);
    *place = out;
}

/* Compares into a predicate of its own, in which all but the lanes' own bits is left as it is. */
static ptx_place read_comparison(ptx_reader *reader, ptx_opcode *opcode, const char *base) {
    bool ftz = ptx_take(opcode, "ftz");
    char name[64];
    opcode->parts[0] = base;
    joined(opcode, name, sizeof name);
    const ptx_form *form = ptx_form_of(reader, name);
    if (!form || form->operands[0] != 'p')
        ptx_fail(reader, "'%s' is not interpreted", name);
    uint32_t bytes = (uint32_t)(form->operands[2] - '0');
    ptx_place sources[2];
    sources[0] = ptx_read_source(reader, bytes, NULL);
    ptx_expect(reader, ",");
    sources[1] = ptx_read_source(reader, bytes, NULL);
    for (int k = 0; ftz && k < 2; k++)
        flush(reader, &sources[k], bytes);
    ptx_place out = ptx_scratch(reader);
    ptx_instruction *at = ptx_emit(reader, PTX_ALU);
    at->run = form->run;
    at->o[0] = out;
    at->o[1] = sources[0];
    at->o[2] = sources[1];
    return out;
}

static const char *take_combination(ptx_opcode *opcode) {
    static const char *const names[] = {"and", "or", "xor"};
    static const char *const forms[] = {"and.pred", "or.pred", "xor.pred"};
    for (int k = 0; k < 3; k++)
        if (ptx_take(opcode, names[k]))
            return forms[k];
    return NULL;
}

static void combine(ptx_reader *reader, const char *how, ptx_place into, ptx_place with) {
    ptx_instruction *out = ptx_emit_form(reader, how);
    out->o[0] = out->o[1] = into;
    out->o[2] = with;
}

static void read_setp(ptx_reader *reader, ptx_opcode *opcode) {
    const char *how = take_combination(opcode);
    ptx_place results[2] = {PTX_NOWHERE, PTX_NOWHERE};
    for (int k = 0; k < 2; k++) {
        if (!ptx_accept(reader, "_"))
            results[k] = read_register(reader, 0, NULL);
        if (!ptx_accept(reader, "|"))
            break;
    }
    ptx_expect(reader, ",");
    ptx_place values[2] = {read_comparison(reader, opcode, "setp"), PTX_NOWHERE};
    if (results[1] != PTX_NOWHERE) {
        values[1] = ptx_scratch(reader);
        emit_step(reader, "not.pred", values[1], values[0]);
    }
    if (how) {
        ptx_expect(reader, ",");
        ptx_place with = ptx_read_predicate(reader);
        for (int k = 0; k < 2; k++)
            if (results[k] != PTX_NOWHERE)
                combine(reader, how, values[k], with);
    }
    /* The guard last, as its steps ask for it. */
    int first = results[0] == reader->guard.place;
    for (int k = 0; k < 2; k++)
        if (results[k ^ first] != PTX_NOWHERE)
            emit_step(reader, "mov.pred", results[k ^ first], values[k ^ first]);
}

static void read_set(ptx_reader *reader, ptx_opcode *opcode) {
    const char *how = take_combination(opcode);
    ptx_number number = PTX_BITS;
    uint32_t bytes = 0;
    /* The result's type stands before the operands'. */
    uint32_t k = opcode->n - 2;
    if (opcode->n < 4 || !opcode->parts[k] || !ptx_type_of(opcode->parts[k], &number, &bytes) ||
        (bytes != 4 && bytes != 2))
        ptx_fail(reader, "this set is not interpreted");
    opcode->parts[k] = NULL;
    ptx_place result = ptx_read_result(reader, bytes, NULL);
    ptx_expect(reader, ",");
    ptx_place value = read_comparison(reader, opcode, "setp");
    if (how) {
        ptx_expect(reader, ",");
        combine(reader, how, value, ptx_read_predicate(reader));
    }
    uint64_t one = number == PTX_BFLOAT  ? 0x3f80
                   : number != PTX_FLOAT ? PTX_ALL
                   : bytes == 2          ? 0x3c00
                                         : 0x3f800000;
    ptx_instruction *out = ptx_emit_form(reader, bytes == 2 ? "set.2" : "set.4");
    out->o[0] = result;
    out->o[1] = ptx_constant(reader, one, bytes);
    out->o[2] = ptx_constant(reader, 0, bytes);
    out->o[3] = value;
}

/* ---- what the lists have ----------------------------------------------------------------- */

static const char *take_rounding(ptx_opcode *opcode) {
    static const char *const directions[] = {"rz", "rm", "rp"};
    static const char *const steps[] = {"round.rz", "round.rm", "round.rp"};
    ptx_take(opcode, "rn");
    for (int k = 0; k < 3; k++)
        if (ptx_take(opcode, directions[k]))
            return steps[k];
    return NULL;
}

static void read_listed(ptx_reader *reader, ptx_opcode *opcode) {
    ptx_number number = PTX_BITS;
    uint32_t bytes = 0;
    const char *last = opcode->parts[opcode->n - 1];
    bool real = ptx_type_of(last, &number, &bytes) && number >= PTX_FLOAT && number <= PTX_BFLOAT2;
    char name[64];
    joined(opcode, name, sizeof name);
    /* Where the form itself flushes, it is another than the one that does not. */
    bool ftz = !ptx_form_of(reader, name) && ptx_take(opcode, "ftz");
    bool sat = real && ptx_take(opcode, "sat");
    const char *rounding = real ? take_rounding(opcode) : NULL;
    joined(opcode, name, sizeof name);
    const ptx_form *form = ptx_form_of(reader, name);
    if (!form || ((ftz || sat || rounding) && (number != PTX_FLOAT || bytes == 2)))
        ptx_fail(reader, "'%s' is not interpreted", name);

    ptx_place o[PTX_OPERANDS];
    uint32_t n = 0;
    bool results = true;
    ptx_place sources = 0;
    for (const char *at = form->operands; *at; at++) {
        if (*at == '/') {
            results = false;
            sources = n;
            continue;
        }
        if (n)
            ptx_expect(reader, ",");
        uint32_t width = (uint32_t)(*at - '0');
        if (*at == 'p')
            o[n] = results ? read_register(reader, 0, NULL) : ptx_read_predicate(reader);
        else
            o[n] = results ? ptx_read_result(reader, width, NULL)
                           : ptx_read_source(reader, width, NULL);
        if (ftz && !results && width == bytes)
            flush(reader, &o[n], width);
        n++;
    }
    if (rounding)
        ptx_emit_form(reader, rounding);
    ptx_instruction *out = ptx_emit(reader, PTX_ALU);
    out->run = form->run;
    memcpy(out->o, o, n * sizeof *o);
    if (rounding)
        ptx_emit_form(reader, "round.rn");
    if (ftz && sources && form->operands[0] != 'p')
        emit_step(reader, bytes == 8 ? "flush.f64" : "flush", o[0], o[0]);
    if (sat)
        emit_step(reader, bytes == 8 ? "saturate.f64" : "saturate.f32", o[0], o[0]);
}

static void read_cvta(ptx_reader *reader, ptx_opcode *opcode) {
    bool to = ptx_take(opcode, "to");
    ptx_number number;
    uint32_t bytes;
    if (!ptx_take_type(opcode, &number, &bytes) || bytes != 8)
        ptx_fail(reader, "this cvta is not interpreted");
    uint64_t window = ptx_take(opcode, "shared") || ptx_take(opcode, "shared::cta")
                          ? PTX_WINDOW(PTX_SHARED)
                      : ptx_take(opcode, "local") ? PTX_WINDOW(PTX_LOCAL)
                                                  : 0;
    if (!window && !ptx_take(opcode, "global") && !ptx_take(opcode, "const"))
        ptx_take(opcode, "param");
    ptx_all_taken(reader, opcode);
    ptx_place result = ptx_read_result(reader, 8, NULL);
    ptx_expect(reader, ",");
    ptx_place source = ptx_read_source(reader, 8, NULL);
    if (!window) {
        emit_step(reader, "mov.b64", result, source);
        return;
    }
    ptx_instruction *out = ptx_emit_form(reader, to ? "and.b64" : "or.b64");
    out->o[0] = result;
    out->o[1] = source;
    out->o[2] = ptx_constant(reader, to ? PTX_OFFSET_OF(UINT64_MAX) : window, 8);
}

/* ---- any --------------------------------------------------------------------------------- */

void ptx_read_instruction(ptx_reader *reader) {
    ptx_opcode opcode;
    split(reader, &opcode);
    const char *base = opcode.parts[0];
    uint32_t begin = reader->function->n_code;
    reader->scratch = 0;
    ptx_next(reader);
    if (!strcmp(base, "mov"))
        read_mov(reader, &opcode);
    else if (!strcmp(base, "setp"))
        read_setp(reader, &opcode);
    else if (!strcmp(base, "set"))
        read_set(reader, &opcode);
    else if (!strcmp(base, "cvt"))
        ptx_read_convert(reader, &opcode);
    else if (!strcmp(base, "cvta"))
        read_cvta(reader, &opcode);
    else if (!ptx_read_special(reader, &opcode))
        read_listed(reader, &opcode);
    for (uint32_t k = begin; k < reader->function->n_code; k++)
        reader->function->code[k].line = reader->begun;
    if (reader->token.kind == PTX_MARK && ptx_is(reader, ";"))
        ptx_next(reader);
    else
        ptx_fail(reader, "';' is expected before '%.*s'", (int)reader->token.length,
                 reader->token.begin);
}
