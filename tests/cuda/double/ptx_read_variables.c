/* Reads declarations: registers, variables of each memory with their values, parameters. */
#include "tests/cuda/double/ptx_reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- declarations ------------------------------------------------------------------------ */

typedef struct declaration {
    ptx_token name;
    ptx_number number;
    uint32_t element; /* bytes */
    uint64_t bytes;   /* 0: an array without a size */
    uint32_t align;
    bool is_register;
} declaration;

static uint64_t aligned(uint64_t offset, uint64_t align) {
    return (offset + align - 1) / align * align;
}

/* From what follows the space to the end of the name and its sizes. */
static declaration read_declaration(ptx_reader *reader) {
    declaration d = {.align = 0};
    bool typed = false;
    while (reader->token.kind == PTX_WORD && reader->token.begin[0] == '.') {
        char word[16] = {0};
        if (reader->token.length < sizeof word)
            memcpy(word, reader->token.begin, reader->token.length);
        if (ptx_accept(reader, ".align")) {
            d.align = (uint32_t)ptx_integer(reader);
        } else if (ptx_accept(reader, ".ptr")) {
            /* What a parameter points to: its space and alignment follow, which nothing here asks
             * for. */
            while (reader->token.kind == PTX_WORD && reader->token.begin[0] == '.') {
                bool number = ptx_is(reader, ".align");
                ptx_next(reader);
                if (number)
                    ptx_integer(reader);
            }
        } else if (word[0] && ptx_type_of(word + 1, &d.number, &d.element)) {
            typed = true;
            ptx_next(reader);
        } else {
            ptx_fail(reader, "'%.*s' of a declaration is not interpreted",
                     (int)reader->token.length, reader->token.begin);
        }
    }
    if (!typed || reader->token.kind != PTX_WORD)
        ptx_fail(reader, "a name with a type is expected before '%.*s'", (int)reader->token.length,
                 reader->token.begin);
    d.name = reader->token;
    ptx_next(reader);
    d.bytes = d.element;
    while (ptx_accept(reader, "[")) {
        d.bytes *= ptx_is(reader, "]") ? 0 : ptx_integer(reader);
        ptx_expect(reader, "]");
    }
    if (!d.align)
        d.align = d.element ? d.element : 1;
    if (d.align & (d.align - 1) || d.align > 4096 || d.bytes > PTX_MOST_BYTES)
        ptx_fail(reader, "'%.*s' has an alignment or a size that is not interpreted",
                 (int)d.name.length, d.name.begin);
    return d;
}

/* .reg .b32 %r<10>, x; */
void ptx_read_registers(ptx_reader *reader) {
    ptx_number number = PTX_BITS;
    uint32_t bytes = 0;
    char word[16] = {0};
    if (reader->token.length < sizeof word)
        memcpy(word, reader->token.begin, reader->token.length);
    if (!word[0] || !ptx_type_of(word + 1, &number, &bytes))
        ptx_fail(reader, "registers of '%.*s' are not interpreted", (int)reader->token.length,
                 reader->token.begin);
    bytes = bytes == 1 ? 2 : bytes;
    ptx_next(reader);
    do {
        ptx_name *name = ptx_add_name(reader, &reader->token, PTX_REGISTERS);
        uint32_t at = reader->n_names - 1;
        ptx_next(reader);
        name->bytes = (uint8_t)bytes;
        if (ptx_accept(reader, "<")) {
            reader->names[at].count = (uint32_t)ptx_integer(reader);
            ptx_expect(reader, ">");
        }
        uint32_t count = reader->names[at].count;
        reader->names[at].place = ptx_add_registers(reader, bytes, count ? count : 1);
    } while (ptx_accept(reader, ","));
    ptx_expect(reader, ";");
}

static ptx_name *add_variable(ptx_reader *reader, const declaration *d, uint8_t space,
                              uint64_t offset, ptx_base base) {
    ptx_name *name = ptx_add_name(reader, &d->name, PTX_VARIABLE);
    name->space = space;
    name->offset = offset;
    name->base = base;
    name->size = (uint32_t)d->bytes;
    return name;
}

/* ---- initialised variables --------------------------------------------------------------- */

/* One number, or an address: of a variable that was declared before. */
static uint64_t read_value(ptx_reader *reader, const declaration *d) {
    ptx_token token = reader->token;
    if (token.kind == PTX_SINGLE || token.kind == PTX_REAL) {
        ptx_next(reader);
        if ((token.kind == PTX_SINGLE) != (d->element == 4))
            ptx_fail(reader, "'%.*s' is of another type", (int)token.length, token.begin);
        return token.bits;
    }
    if (token.kind != PTX_WORD)
        return ptx_integer(reader);
    bool generic = ptx_accept(reader, "generic");
    if (generic)
        ptx_expect(reader, "(");
    const ptx_name *name = ptx_find(reader, reader->token.begin, reader->token.length);
    if (!name || name->kind != PTX_VARIABLE || name->space != PTX_MODULE || d->element != 8)
        ptx_fail(reader, "'%.*s' is no address that is known here", (int)reader->token.length,
                 reader->token.begin);
    uint64_t value = PTX_WINDOW(PTX_MODULE) + name->offset;
    ptx_next(reader);
    if (generic)
        ptx_expect(reader, ")");
    if (ptx_accept(reader, "+"))
        value += ptx_integer(reader);
    return value;
}

static void read_values(ptx_reader *reader, const declaration *d, uint64_t *at, uint64_t end) {
    if (ptx_is(reader, "{")) {
        ptx_enter_braces(reader);
        do {
            read_values(reader, d, at, end);
        } while (ptx_accept(reader, ","));
        ptx_expect(reader, "}");
        reader->depth--;
        return;
    }
    uint64_t value = read_value(reader, d);
    if (*at + d->element > end)
        ptx_fail(reader, "too many values for '%.*s'", (int)d->name.length, d->name.begin);
    memcpy(reader->module->variables + *at, &value, d->element);
    *at += d->element;
}

void ptx_read_module_variable(ptx_reader *reader) {
    ptx_module *module = reader->module;
    declaration d = read_declaration(reader);
    if (!d.bytes)
        ptx_fail(reader, "'%.*s' has no size", (int)d.name.length, d.name.begin);
    uint64_t at = aligned(module->n_variables, d.align > 16 ? d.align : 16);
    uint64_t end = at + d.bytes;
    if (end > module->room_variables) {
        uint64_t room = aligned(end * 2, 4096);
        unsigned char *moved = end <= PTX_MOST_BYTES ? aligned_alloc(4096, room) : NULL;
        if (!moved)
            ptx_fail(reader, "no memory");
        memset(moved, 0, room);
        if (module->variables)
            memcpy(moved, module->variables, module->n_variables);
        free(module->variables);
        module->variables = moved;
        module->room_variables = (uint32_t)room;
    }
    module->n_variables = (uint32_t)end;
    add_variable(reader, &d, PTX_MODULE, at, PTX_BASE_NONE);
    if (ptx_accept(reader, "="))
        read_values(reader, &d, &at, end);
    ptx_expect(reader, ";");
}

/* A kernel's own begin at 0; what others declare comes behind those, and the dynamic last. */
void ptx_read_shared(ptx_reader *reader, bool is_extern) {
    declaration d = read_declaration(reader);
    ptx_expect(reader, ";");
    ptx_base base = is_extern || !d.bytes                             ? PTX_BASE_DYNAMIC
                    : reader->function && reader->function->is_kernel ? PTX_BASE_NONE
                                                                      : PTX_BASE_COMMON;
    uint32_t none = 0;
    uint32_t *end = base == PTX_BASE_DYNAMIC  ? &none
                    : base == PTX_BASE_COMMON ? &reader->module->shared_bytes
                                              : &reader->function->shared_bytes;
    uint64_t at = aligned(*end, d.align);
    if (at + d.bytes > 1u << 20)
        ptx_fail(reader, "'%.*s': too much shared memory", (int)d.name.length, d.name.begin);
    *end = (uint32_t)(at + d.bytes);
    add_variable(reader, &d, PTX_SHARED, at, base);
}

/* Of a function's frame: .local, and .param between calls. */
static ptx_parameter place_in_frame(ptx_reader *reader, const declaration *d, uint8_t space) {
    ptx_function *function = reader->function;
    uint64_t at = aligned(function->local_bytes, d->align);
    if (at + d->bytes > PTX_MOST_BYTES)
        ptx_fail(reader, "'%.*s': too much local memory", (int)d->name.length, d->name.begin);
    function->local_bytes = (uint32_t)(at + d->bytes);
    add_variable(reader, d, space, at, PTX_BASE_FRAME);
    return (ptx_parameter){.offset = (uint32_t)at, .bytes = (uint32_t)d->bytes};
}

void ptx_read_in_frame(ptx_reader *reader, uint8_t space) {
    declaration d = read_declaration(reader);
    place_in_frame(reader, &d, space);
    ptx_expect(reader, ";");
}

/* ---- parameters -------------------------------------------------------------------------- */

ptx_parameter ptx_read_parameter(ptx_reader *reader, bool of_kernel) {
    if (!ptx_accept(reader, ".param"))
        ptx_fail(reader, "a parameter that is not '.param' is not interpreted");
    declaration d = read_declaration(reader);
    ptx_function *function = reader->function;
    ptx_parameter parameter;
    if (of_kernel) {
        uint64_t at = aligned(function->parameter_bytes, d.align);
        if (at + d.bytes > PTX_MOST_PARAMETER_BYTES)
            ptx_fail(reader, "'%s': too many bytes of parameters", function->name);
        parameter = (ptx_parameter){.offset = (uint32_t)at, .bytes = (uint32_t)d.bytes};
        function->parameter_bytes = (uint32_t)(at + d.bytes);
        add_variable(reader, &d, PTX_PARAM, at, PTX_BASE_NONE);
    } else {
        parameter = place_in_frame(reader, &d, PTX_PARAM);
    }
    parameter.name = ptx_copy(reader, &d.name);
    return parameter;
}
