/* Reads cvt, which becomes as many steps as it names things to do: the part of a wider register, a
 * rounding to an integer, the conversion, saturation, a part of a wider register again. */
#include "tests/cuda/double/ptx_reader.h"

#include <stdio.h>
#include <string.h>

typedef struct conversion {
    ptx_number to, from;
    uint32_t to_bytes, from_bytes;
    const char *to_name, *from_name;
    const char *integral;  /* rni, rzi, rmi, rpi, or NULL */
    const char *direction; /* rn, rz, rm, rp, or NULL */
    bool ftz, sat, relu;
} conversion;

static bool is_integer(ptx_number number) {
    return number <= PTX_SIGNED;
}

static const char *take_any(ptx_opcode *opcode, const char *const *names) {
    for (; *names; names++)
        if (ptx_take(opcode, *names))
            return *names;
    return NULL;
}

static ptx_place step(ptx_reader *reader, const char *name, ptx_place result, ptx_place source) {
    ptx_instruction *out = ptx_emit_form(reader, name);
    out->o[0] = result;
    out->o[1] = source;
    return result;
}

static ptx_place named_step(ptx_reader *reader, ptx_place source, const char *format, const char *a,
                            const char *b) {
    char name[48];
    snprintf(name, sizeof name, format, a, b);
    return step(reader, name, ptx_scratch(reader), source);
}

/* The type of the row that a number is in: those of 8 bits are in 16. */
static const char *row_type(ptx_number number, uint32_t bytes) {
    static const char *const names[2][9] = {
        {NULL, "u16", "u16", NULL, "u32", NULL, NULL, NULL, "u64"},
        {NULL, "s16", "s16", NULL, "s32", NULL, NULL, NULL, "s64"},
    };
    return names[number == PTX_SIGNED][bytes];
}

static const char *bits_type(uint32_t bytes) {
    return bytes == 8 ? "b64" : bytes == 4 ? "b32" : "b16";
}

/* The source in a row of its own type. */
static ptx_place read_value(ptx_reader *reader, const conversion *c) {
    uint32_t bytes;
    uint32_t wanted = c->from_bytes == 1 ? 2 : c->from_bytes;
    bool is_register = reader->token.kind == PTX_WORD;
    ptx_place source = ptx_read_source(reader, is_register ? PTX_ANY : wanted, &bytes);
    if (bytes < c->from_bytes || (!is_integer(c->from) && bytes != c->from_bytes))
        ptx_fail(reader, "a register of %u bits for a source of %u", bytes * 8, c->from_bytes * 8);
    if (c->from_bytes == 1) {
        char width[2] = {(char)('0' + bytes), 0};
        return named_step(reader, source, "narrow.%s.%s", c->from == PTX_SIGNED ? "s8" : "u8",
                          width);
    }
    if (bytes != c->from_bytes)
        return named_step(reader, source, "cvt.%s.%s", bits_type(c->from_bytes),
                          row_type(PTX_UNSIGNED, bytes));
    return source;
}

/* A value of `c.to` in a row of that type into a register that may be wider. */
static void write_value(ptx_reader *reader, const conversion *c, ptx_place result, uint32_t bytes,
                        ptx_place value) {
    if (c->to_bytes == 1)
        value = named_step(reader, value, "narrow.%s.%s", c->to == PTX_SIGNED ? "s8" : "u8", "2");
    uint32_t row = c->to_bytes == 1 ? 2 : c->to_bytes;
    char name[48];
    if (!is_integer(c->to) || bytes == row)
        snprintf(name, sizeof name, "mov.%s", bits_type(row));
    else
        snprintf(name, sizeof name, "cvt.%s.%s", bits_type(bytes), row_type(c->to, row));
    step(reader, name, result, value);
}

/* Around a step that rounds in a direction of its own. */
static void set_direction(ptx_reader *reader, const char *direction) {
    char name[16];
    if (!direction || !strcmp(direction, "rn"))
        return;
    snprintf(name, sizeof name, "round.%s", direction);
    ptx_emit_form(reader, name);
}

static ptx_place converted(ptx_reader *reader, const conversion *c, ptx_place value) {
    static const char *const nearest = "rn";
    bool from_small = !is_integer(c->from) && c->from_bytes == 2;
    if (is_integer(c->from) && is_integer(c->to)) {
        bool widens = c->to_bytes > c->from_bytes && (c->to == c->from || c->from == PTX_UNSIGNED);
        const char *from = row_type(c->from, c->from_bytes);
        if (c->sat && !widens)
            return named_step(reader, value, "cvt.sat.%s.%s", c->to_name, from);
        return named_step(reader, value, "cvt.%s.%s", bits_type(c->to_bytes), from);
    }
    if (is_integer(c->from)) {
        if (c->to == PTX_BFLOAT)
            ptx_fail(reader, "cvt from an integer to bf16 is not interpreted");
        bool steps = c->to_bytes != 2;
        if (!steps && strcmp(c->direction ? c->direction : nearest, nearest) != 0)
            ptx_fail(reader, "'.%s' from an integer to f16 is not interpreted", c->direction);
        set_direction(reader, c->direction);
        value =
            named_step(reader, value, "cvt.%s.%s", c->to_name, row_type(c->from, c->from_bytes));
        if (c->direction && strcmp(c->direction, nearest) != 0)
            ptx_emit_form(reader, "round.rn");
        return value;
    }
    if (is_integer(c->to)) {
        const char *from = c->from_name;
        if (from_small) {
            value = named_step(reader, value, "cvt.%s.%s", "f32", from);
            from = "f32";
        } else if (c->ftz && c->from_bytes == 4) {
            value = named_step(reader, value, "flush%s%s", "", "");
        }
        if (!c->integral)
            ptx_fail(reader, "cvt to an integer without a direction");
        value = named_step(reader, value, "integral.%s.%s", c->integral, from);
        return named_step(reader, value, "cvt.%s.%s", c->to_name, from);
    }
    if (c->ftz && c->from_bytes == 4)
        value = named_step(reader, value, "flush%s%s", "", "");
    if (c->integral) {
        if (c->from_bytes == 2 || c->from != c->to || c->from_bytes != c->to_bytes)
            ptx_fail(reader, "'.%s' between these types is not interpreted", c->integral);
        return named_step(reader, value, "integral.%s.%s", c->integral, c->from_name);
    }
    if (c->to_bytes == 2) {
        if (from_small && (c->from != c->to || c->direction))
            return named_step(reader, named_step(reader, value, "cvt.%s.%s", "f32", c->from_name),
                              !c->direction || !strcmp(c->direction, "rn") ? "cvt.rn.%s.%s"
                                                                           : "cvt.rz.%s.%s",
                              c->to_name, "f32");
        if (from_small)
            return value;
        if (!c->direction)
            ptx_fail(reader, "cvt to 16 bits without a direction");
        char name[32];
        snprintf(name, sizeof name, "cvt.%s.%%s.%%s", c->direction);
        return named_step(reader, value, name, c->to_name, c->from_name);
    }
    set_direction(reader, c->direction);
    value = named_step(reader, value, "cvt.%s.%s", c->to_name, c->from_name);
    if (c->direction && strcmp(c->direction, nearest) != 0)
        ptx_emit_form(reader, "round.rn");
    if (c->ftz && c->to_bytes == 4)
        value = named_step(reader, value, "flush%s%s", "", "");
    return value;
}

/* cvt.rn.f16x2.f32 d, a, b */
static void read_pair(ptx_reader *reader, const conversion *c) {
    char name[48];
    if (!c->direction || c->from != PTX_FLOAT || c->from_bytes != 4 || c->integral || c->sat ||
        c->ftz)
        ptx_fail(reader, "this cvt to %s is not interpreted", c->to_name);
    snprintf(name, sizeof name, "cvt.%s.%s%s.f32", c->direction, c->relu ? "relu." : "",
             c->to_name);
    ptx_place o[3];
    o[0] = ptx_read_result(reader, 4, NULL);
    for (int k = 1; k < 3; k++) {
        ptx_expect(reader, ",");
        o[k] = ptx_read_source(reader, 4, NULL);
    }
    memcpy(ptx_emit_form(reader, name)->o, o, sizeof o);
}

void ptx_read_convert(ptx_reader *reader, ptx_opcode *opcode) {
    static const char *const integrals[] = {"rni", "rzi", "rmi", "rpi", NULL};
    static const char *const directions[] = {"rn", "rz", "rm", "rp", NULL};
    conversion c = {.ftz = ptx_take(opcode, "ftz"),
                    .sat = ptx_take(opcode, "sat"),
                    .relu = ptx_take(opcode, "relu")};
    c.integral = take_any(opcode, integrals);
    c.direction = take_any(opcode, directions);
    if (opcode->n < 3)
        ptx_fail(reader, "this cvt is not interpreted");
    c.to_name = opcode->parts[opcode->n - 2];
    c.from_name = opcode->parts[opcode->n - 1];
    if (!c.to_name || !c.from_name || !ptx_take_type(opcode, &c.from, &c.from_bytes) ||
        !ptx_take_type(opcode, &c.to, &c.to_bytes) || c.from == PTX_PRED || c.to == PTX_PRED)
        ptx_fail(reader, "this cvt is not interpreted");
    ptx_all_taken(reader, opcode);
    if (c.to == PTX_FLOAT2 || c.to == PTX_BFLOAT2) {
        read_pair(reader, &c);
        return;
    }
    if (c.relu && c.to_bytes != 2)
        ptx_fail(reader, "'.relu' of this cvt is not interpreted");
    uint32_t bytes;
    ptx_place result = ptx_read_result(reader, PTX_ANY, &bytes);
    if (bytes < c.to_bytes || (!is_integer(c.to) && bytes != c.to_bytes))
        ptx_fail(reader, "a register of %u bits for a result of %u", bytes * 8, c.to_bytes * 8);
    ptx_expect(reader, ",");
    uint32_t before = reader->function->n_code;
    ptx_place value = read_value(reader, &c);
    if (c.relu)
        value = named_step(reader, value, "relu.%s%s", c.from_name, "");
    if (c.sat && !is_integer(c.to) && c.to_bytes == 2)
        value = named_step(reader, value, "saturate.%s%s", c.from_name, "");
    value = converted(reader, &c, value);
    if (c.sat && !is_integer(c.to) && c.to_bytes != 2)
        value = named_step(reader, value, "saturate.%s%s", c.to_name, "");
    /* Most are one step, which writes the result itself. */
    ptx_instruction *last = &reader->function->code[reader->function->n_code - 1];
    if (reader->function->n_code > before && c.to_bytes == bytes && last->o[0] == value)
        last->o[0] = result;
    else
        write_value(reader, &c, result, bytes, value);
}
