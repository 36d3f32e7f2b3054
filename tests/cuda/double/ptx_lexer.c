/* Words, numbers and marks of PTX, and what else all readers of it need. */
#include "tests/cuda/double/ptx_reader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_fail(ptx_reader *reader, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    bool inside = reader->begun && reader->opcode.length;
    snprintf(reader->error, reader->room, inside ? "line %u: %s, in '%.*s'" : "line %u: %s",
             reader->begun ? reader->begun : reader->line, what, (int)reader->opcode.length,
             reader->opcode.begin);
    longjmp(reader->failed, 1);
}

void ptx_room(ptx_reader *reader, void *items, uint32_t n, uint32_t *room, size_t bytes) {
    if (n < *room)
        return;
    uint32_t wanted = *room ? *room * 2 : 16;
    void *old;
    memcpy(&old, items, sizeof old);
    void *moved = realloc(old, wanted * bytes);
    if (!moved)
        ptx_fail(reader, "no memory");
    memcpy(items, &moved, sizeof moved);
    memset((unsigned char *)moved + *room * bytes, 0, (wanted - *room) * bytes);
    *room = wanted;
}

static bool in_word(const char *at) {
    return isalnum((unsigned char)*at) || (*at && strchr("_$%.", *at)) ||
           (at[0] == ':' && at[1] == ':');
}

static void skip_space(ptx_reader *reader) {
    for (;; reader->at++) {
        const char *at = reader->at;
        if (*at == '\n') {
            reader->line++;
        } else if (at[0] == '/' && at[1] == '/') {
            reader->at += strcspn(at, "\n") - 1;
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            end = end ? end + 1 : at + strlen(at) - 1;
            for (; reader->at < end; reader->at++)
                reader->line += *reader->at == '\n';
        } else if (!isspace((unsigned char)*at)) {
            return;
        }
    }
}

static void read_number(ptx_reader *reader) {
    ptx_token *token = &reader->token;
    const char *at = reader->at;
    char *end = NULL;
    token->kind = PTX_NUMBER;
    if (at[0] == '0' && at[1] && strchr("fFdD", at[1])) {
        token->kind = at[1] == 'f' || at[1] == 'F' ? PTX_SINGLE : PTX_REAL;
        token->bits = strtoull(at + 2, &end, 16);
        if (end - at != (token->kind == PTX_SINGLE ? 10 : 18))
            ptx_fail(reader, "'%.*s' is no number", (int)(end - at), at);
    } else if (at[0] == '0' && (at[1] == 'b' || at[1] == 'B')) {
        token->bits = strtoull(at + 2, &end, 2);
    } else {
        token->bits = strtoull(at, &end, 0);
        if (*end == '.' || *end == 'e' || *end == 'E') {
            double x = strtod(at, &end);
            token->kind = PTX_REAL;
            memcpy(&token->bits, &x, sizeof x);
        }
        end += *end == 'U' || *end == 'u';
    }
    token->length = (uint32_t)(end - at);
    reader->at = end;
    if (in_word(end))
        ptx_fail(reader, "'%.*s' is no number", (int)token->length + 1, at);
}

void ptx_next(ptx_reader *reader) {
    skip_space(reader);
    ptx_token *token = &reader->token;
    *token = (ptx_token){.begin = reader->at};
    if (!*reader->at)
        return;
    if (isdigit((unsigned char)*reader->at)) {
        read_number(reader);
        return;
    }
    token->length = 1;
    if (in_word(reader->at) && *reader->at != ':') {
        token->kind = PTX_WORD;
        while (in_word(reader->at + token->length))
            token->length += reader->at[token->length] == ':' ? 2 : 1;
    } else if (*reader->at == '"') {
        token->kind = PTX_STRING;
        token->length += (uint32_t)strcspn(reader->at + 1, "\"\n");
        token->length += reader->at[token->length] == '"';
    } else {
        token->kind = PTX_MARK;
    }
    reader->at += token->length;
}

bool ptx_is(const ptx_reader *reader, const char *text) {
    return reader->token.length == strlen(text) &&
           !memcmp(reader->token.begin, text, reader->token.length) &&
           reader->token.kind != PTX_END;
}

bool ptx_accept(ptx_reader *reader, const char *text) {
    if (!ptx_is(reader, text))
        return false;
    ptx_next(reader);
    return true;
}

void ptx_expect(ptx_reader *reader, const char *text) {
    if (!ptx_accept(reader, text))
        ptx_fail(reader, "'%s' is expected before '%.*s'", text, (int)reader->token.length,
                 reader->token.begin);
}

uint64_t ptx_integer(ptx_reader *reader) {
    bool negative = ptx_accept(reader, "-");
    if (reader->token.kind != PTX_NUMBER)
        ptx_fail(reader, "a number is expected before '%.*s'", (int)reader->token.length,
                 reader->token.begin);
    uint64_t value = reader->token.bits;
    ptx_next(reader);
    return negative ? 0 - value : value;
}

char *ptx_copy(ptx_reader *reader, const ptx_token *token) {
    char *copy = calloc(token->length + 1, 1);
    if (!copy)
        ptx_fail(reader, "no memory");
    memcpy(copy, token->begin, token->length);
    return copy;
}

void ptx_skip_line(ptx_reader *reader) {
    reader->at += strcspn(reader->at, "\n");
    ptx_next(reader);
}

void ptx_enter_braces(ptx_reader *reader) {
    ptx_expect(reader, "{");
    if (++reader->depth > PTX_MOST_DEPTH)
        ptx_fail(reader, "too many braces in each other");
}

/* ---- names, registers, constants --------------------------------------------------------- */

/* A register of a group: its name ends in a number below `count`. */
static bool is_one_of(const ptx_name *name, const char *begin, uint32_t length) {
    if (length <= name->length || length > name->length + 9)
        return false;
    uint32_t number = 0;
    for (uint32_t k = name->length; k < length; k++) {
        if (!isdigit((unsigned char)begin[k]))
            return false;
        number = number * 10 + (uint32_t)(begin[k] - '0');
    }
    return number < name->count;
}

ptx_name *ptx_find(ptx_reader *reader, const char *begin, uint32_t length) {
    for (uint32_t k = reader->n_names; k-- > 0;) {
        ptx_name *name = &reader->names[k];
        if (name->kind == PTX_FUTURE || length < name->length ||
            memcmp(begin, name->begin, name->length) != 0)
            continue;
        if (name->kind == PTX_REGISTERS && name->count ? is_one_of(name, begin, length)
                                                       : length == name->length)
            return name;
    }
    return NULL;
}

ptx_name *ptx_add_name(ptx_reader *reader, const ptx_token *token, ptx_name_kind kind) {
    ptx_name *name = PTX_APPEND(reader, reader, names);
    *name = (ptx_name){
        .kind = kind, .begin = token->begin, .length = token->length, .line = reader->line};
    return name;
}

uint32_t ptx_register_units(uint32_t bytes) {
    return bytes > 2 ? bytes / 2 : 1;
}

ptx_place ptx_add_registers(ptx_reader *reader, uint32_t bytes, uint32_t count) {
    ptx_place place = PTX_FIRST_REGISTER + reader->function->units;
    if (count > PTX_MOST_UNITS || reader->function->units + 4 * count > PTX_MOST_UNITS)
        ptx_fail(reader, "%u registers more are too many", count);
    reader->function->units += ptx_register_units(bytes) * count;
    return place;
}

/* Constants that are equal are one: as many as a module has would not stay in a cache. */
ptx_place ptx_constant(ptx_reader *reader, uint64_t bits, uint32_t bytes) {
    ptx_module *module = reader->module;
    uint32_t units = ptx_register_units(bytes);
    unsigned char row[PTX_LANES * 8];
    for (uint32_t l = 0; l < PTX_LANES; l++)
        memcpy(row + (size_t)l * (bytes ? bytes : 4), &bits, bytes ? bytes : 4);
    if (!bytes)
        memset(row + 4, 0, PTX_UNIT - 4);
    for (size_t k = 0; k + units <= module->n_constants; k++)
        if (!memcmp(module->constants + k * PTX_UNIT, row, (size_t)units * PTX_UNIT))
            return PTX_CONSTANT | (ptx_place)k;
    if (module->n_constants + units > module->room_constants) {
        size_t room = module->room_constants ? module->room_constants * 2 : 64;
        unsigned char *moved = aligned_alloc(PTX_UNIT, room * PTX_UNIT);
        if (!moved)
            ptx_fail(reader, "no memory");
        if (module->constants)
            memcpy(moved, module->constants, module->n_constants * PTX_UNIT);
        free(module->constants);
        module->constants = moved;
        module->room_constants = room;
    }
    memcpy(module->constants + module->n_constants * PTX_UNIT, row, (size_t)units * PTX_UNIT);
    module->n_constants += units;
    return PTX_CONSTANT | (ptx_place)(module->n_constants - units);
}

ptx_place ptx_scratch(ptx_reader *reader) {
    if (reader->scratch == PTX_SCRATCHES)
        ptx_fail(reader, "an instruction of too many steps");
    return PTX_SCRATCH + 4 * reader->scratch++;
}
