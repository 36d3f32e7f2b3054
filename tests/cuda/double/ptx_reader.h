/* What the files that read PTX share: the text, the names in force, the function that is being read. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_READER_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_READER_H

#include "tests/cuda/double/ptx_code.h"

#include <setjmp.h>

/* ---- text -------------------------------------------------------------------------------- */

typedef enum ptx_token_kind {
    PTX_END,
    PTX_WORD,   /* a name, an instruction with its modifiers, a directive with its dot */
    PTX_NUMBER, /* an integer in `bits` */
    PTX_REAL,   /* a double's bits in `bits` */
    PTX_SINGLE, /* 0f: a float's */
    PTX_STRING,
    PTX_MARK, /* one character */
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    const char *begin;
    uint32_t length;
    uint64_t bits;
} ptx_token;

/* ---- names ------------------------------------------------------------------------------- */

typedef enum ptx_name_kind {
    PTX_REGISTERS, /* one, or `count` of them with a number behind the name */
    PTX_VARIABLE,  /* at `offset` of `space` */
    PTX_LABEL,
    PTX_TABLE, /* of branch targets */
    PTX_FUNCTION,
    PTX_FUTURE, /* `count` instructions or table entries wait for a label */
} ptx_name_kind;

typedef struct ptx_name {
    ptx_name_kind kind;
    const char *begin;
    uint32_t length;
    uint32_t line;
    uint32_t count;
    ptx_place place; /* of the first register */
    uint8_t bytes;   /* of a register's elements, 0: predicate */
    uint8_t space;
    ptx_base base; /* of `offset` */
    uint64_t offset;
    uint32_t size;
    uint32_t
        index; /* of a label: the instruction; of a table or function: which; else what waits */
    uint32_t entry; /* of a table, which waits */
} ptx_name;

/* No real module asks for more: of registers in units, of a variable, parameters and braces. */
enum {
    PTX_MOST_UNITS = 1 << 20,
    PTX_MOST_BYTES = 1 << 26,
    PTX_MOST_PARAMETER_BYTES = 32764,
    PTX_MOST_DEPTH = 256,
};

/* ---- the reader -------------------------------------------------------------------------- */

typedef struct ptx_reader {
    ptx_module *module;
    ptx_function *function;
    uint32_t function_index;
    const ptx_forms *forms;
    const char *at;
    uint32_t line;
    uint32_t begun;   /* the line of the instruction that is read, or 0 */
    ptx_token opcode; /* its name with all modifiers, once that is read */
    ptx_token token;
    ptx_name *names;
    uint32_t n_names, room_names;
    uint32_t scratch; /* rows of this instruction that are in use */
    uint32_t depth;   /* of braces */
    struct {          /* guard of the instruction that is read */
        ptx_place place;
        bool negated;
    } guard;
    jmp_buf failed;
    char *error;
    size_t room;
} ptx_reader;

/* Leaves the reader: "line N: ...", and in which instruction. */
_Noreturn void ptx_fail(ptx_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Room for one more item, or leaves. */
void ptx_room(ptx_reader *reader, void *items, uint32_t n, uint32_t *room, size_t bytes);
#define PTX_APPEND(reader, owner, field) \
    (ptx_room(reader, (void *)&(owner)->field, (owner)->n_##field, &(owner)->room_##field, \
              sizeof *(owner)->field), \
     &(owner)->field[(owner)->n_##field++])

/* ---- tokens ------------------------------------------------------------------------------ */

void ptx_next(ptx_reader *reader);
bool ptx_is(const ptx_reader *reader, const char *text);
bool ptx_accept(ptx_reader *reader, const char *text);
void ptx_expect(ptx_reader *reader, const char *text);
uint64_t ptx_integer(ptx_reader *reader); /* with a sign */
char *ptx_copy(ptx_reader *reader, const ptx_token *token);
void ptx_skip_line(ptx_reader *reader);
void ptx_enter_braces(ptx_reader *reader); /* who leaves them counts `depth` down */

/* ---- names, registers, constants --------------------------------------------------------- */

ptx_name *ptx_find(ptx_reader *reader, const char *begin, uint32_t length);
ptx_name *ptx_add_name(ptx_reader *reader, const ptx_token *token, ptx_name_kind kind);
/* One more register of elements of so many bytes; 0: a predicate. */
ptx_place ptx_add_registers(ptx_reader *reader, uint32_t bytes, uint32_t count);
uint32_t ptx_register_units(uint32_t bytes);
ptx_place ptx_constant(ptx_reader *reader, uint64_t bits, uint32_t bytes);
ptx_place ptx_scratch(ptx_reader *reader);

/* ---- declarations ------------------------------------------------------------------------ */

/* Each from what follows its space on. */
void ptx_read_registers(ptx_reader *reader);
void ptx_read_module_variable(ptx_reader *reader);
void ptx_read_shared(ptx_reader *reader, bool is_extern);
void ptx_read_in_frame(ptx_reader *reader, uint8_t space);
ptx_parameter ptx_read_parameter(ptx_reader *reader, bool of_kernel);

/* ---- instructions ------------------------------------------------------------------------ */

/* One more, with the guard in force. */
ptx_instruction *ptx_emit(ptx_reader *reader, ptx_kind kind);
const ptx_form *ptx_form_of(ptx_reader *reader, const char *name);
/* One that is certain to be there. */
ptx_instruction *ptx_emit_form(ptx_reader *reader, const char *name);
/* Reads one from its name on, without the guard, up to and with the semicolon. */
void ptx_read_instruction(ptx_reader *reader);

/* An instruction's name in parts, which are crossed out as they are understood. */
typedef struct ptx_opcode {
    char text[128];
    const char *parts[20]; /* NULL: understood */
    uint32_t n;
} ptx_opcode;

bool ptx_take(ptx_opcode *opcode, const char *part);
/* A type: its bytes, and what it is; of the last part that is one, which is crossed out. */
bool ptx_take_type(ptx_opcode *opcode, ptx_number *out_number, uint32_t *out_bytes);
bool ptx_type_of(const char *part, ptx_number *out_number, uint32_t *out_bytes);
void ptx_all_taken(ptx_reader *reader, const ptx_opcode *opcode);

/* Operands. A source has so many bytes, or PTX_ANY: what the register has, in out_bytes. */
#define PTX_ANY UINT32_MAX
ptx_place ptx_read_result(ptx_reader *reader, uint32_t bytes, uint32_t *out_bytes);
ptx_place ptx_read_source(ptx_reader *reader, uint32_t bytes, uint32_t *out_bytes);
ptx_place ptx_read_predicate(ptx_reader *reader);
/* The address in brackets; into o[k], offset, space's particulars. */
void ptx_read_address(ptx_reader *reader, ptx_instruction *out, uint32_t k);

void ptx_read_memory(ptx_reader *reader, ptx_opcode *opcode, const char *base);
void ptx_read_convert(ptx_reader *reader, ptx_opcode *opcode);
void ptx_read_control(ptx_reader *reader, ptx_opcode *opcode, const char *base);
bool ptx_read_special(ptx_reader *reader, ptx_opcode *opcode);

#endif
