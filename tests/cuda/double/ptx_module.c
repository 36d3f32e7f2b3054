/* Modules: reads the directives of PTX, declarations and bodies. */
#include "tests/cuda/double/ptx_link.h"
#include "tests/cuda/double/ptx_reader.h"

#include <stdio.h>
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
            /* What a parameter points to: its space and alignment follow, which nothing here asks for. */
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
static void read_registers(ptx_reader *reader) {
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

static void enter_braces(ptx_reader *reader) {
    ptx_expect(reader, "{");
    if (++reader->depth > PTX_MOST_DEPTH)
        ptx_fail(reader, "too many braces in each other");
}

static void read_values(ptx_reader *reader, const declaration *d, uint64_t *at, uint64_t end) {
    if (ptx_is(reader, "{")) {
        enter_braces(reader);
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

static void read_module_variable(ptx_reader *reader) {
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
static void read_shared(ptx_reader *reader, bool is_extern) {
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

static void read_in_frame(ptx_reader *reader, uint8_t space) {
    declaration d = read_declaration(reader);
    place_in_frame(reader, &d, space);
    ptx_expect(reader, ";");
}

/* ---- bodies ------------------------------------------------------------------------------ */

static const ptx_name *label_of(const ptx_reader *reader, uint32_t begin, const ptx_name *waiting) {
    for (uint32_t k = begin; k < reader->n_names; k++) {
        const ptx_name *name = &reader->names[k];
        if (name->kind == PTX_LABEL && name->length == waiting->length &&
            !memcmp(name->begin, waiting->begin, waiting->length))
            return name;
    }
    return NULL;
}

/* Names end with their braces. What waits for a label that is not among them waits on. */
static void leave_scope(ptx_reader *reader, uint32_t begin) {
    for (uint32_t k = begin; k < reader->n_names; k++) {
        ptx_name *waiting = &reader->names[k];
        const ptx_name *label =
            waiting->kind == PTX_FUTURE ? label_of(reader, begin, waiting) : NULL;
        if (!label)
            continue;
        if (waiting->count)
            reader->module->targets[waiting->index].places[waiting->entry] = label->index;
        else
            reader->function->code[waiting->index].target = label->index;
        waiting->length = 0;
    }
    uint32_t kept = begin;
    for (uint32_t k = begin; k < reader->n_names; k++)
        if (reader->names[k].kind == PTX_FUTURE && reader->names[k].length)
            reader->names[kept++] = reader->names[k];
    reader->n_names = kept;
}

static bool at_label(const ptx_reader *reader) {
    const char *at = reader->at + strspn(reader->at, " \t");
    return reader->token.kind == PTX_WORD && at[0] == ':' && at[1] != ':';
}

static void read_targets(ptx_reader *reader, const ptx_token *name) {
    ptx_module *module = reader->module;
    ptx_targets *targets = PTX_APPEND(reader, module, targets);
    uint32_t index = module->n_targets - 1;
    targets->function = reader->function_index;
    ptx_add_name(reader, name, PTX_TABLE)->index = index;
    do {
        *PTX_APPEND(reader, targets, places) = 0;
        if (reader->token.kind != PTX_WORD)
            ptx_fail(reader, "a label is expected");
        ptx_name *waiting = ptx_add_name(reader, &reader->token, PTX_FUTURE);
        waiting->index = index;
        waiting->entry = targets->n_places - 1;
        waiting->count = 1;
        ptx_next(reader);
    } while (ptx_accept(reader, ","));
    ptx_expect(reader, ";");
}

static void read_label(ptx_reader *reader) {
    ptx_token token = reader->token;
    ptx_next(reader);
    ptx_expect(reader, ":");
    if (ptx_accept(reader, ".branchtargets")) {
        read_targets(reader, &token);
        return;
    }
    if (ptx_is(reader, ".callprototype"))
        ptx_fail(reader, "calls of functions that are values are not interpreted");
    ptx_add_name(reader, &token, PTX_LABEL)->index = reader->function->n_code;
}

static void read_guarded(ptx_reader *reader) {
    reader->begun = reader->line;
    reader->opcode.length = 0;
    reader->guard.place = PTX_NOWHERE;
    reader->guard.negated = false;
    if (ptx_accept(reader, "@")) {
        reader->guard.negated = ptx_accept(reader, "!");
        reader->guard.place = ptx_read_result(reader, 0, NULL);
    }
    ptx_read_instruction(reader);
    reader->guard.place = PTX_NOWHERE;
    reader->begun = 0;
}

static void read_body(ptx_reader *reader) {
    uint32_t begin = reader->n_names;
    enter_braces(reader);
    while (!ptx_accept(reader, "}")) {
        if (reader->token.kind == PTX_END)
            ptx_fail(reader, "'}' is missing");
        if (ptx_is(reader, "{"))
            read_body(reader);
        else if (ptx_accept(reader, ".reg"))
            read_registers(reader);
        else if (ptx_accept(reader, ".local"))
            read_in_frame(reader, PTX_LOCAL);
        else if (ptx_accept(reader, ".param"))
            read_in_frame(reader, PTX_PARAM);
        else if (ptx_accept(reader, ".shared"))
            read_shared(reader, false);
        else if (ptx_is(reader, ".loc") || ptx_is(reader, ".pragma") || ptx_is(reader, ".file"))
            ptx_skip_line(reader);
        else if (at_label(reader))
            read_label(reader);
        else
            read_guarded(reader);
    }
    reader->depth--;
    leave_scope(reader, begin);
}

/* ---- functions --------------------------------------------------------------------------- */

static ptx_parameter read_parameter(ptx_reader *reader, bool of_kernel) {
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

/* Calls that were read before the definition have parameters where the declaration has them. */
static uint64_t signature_of(const ptx_function *function) {
    uint64_t signature = function->is_kernel ? 2 : 1;
    for (uint32_t k = 0; k <= function->n_parameters; k++) {
        const ptx_parameter *p = k ? &function->parameters[k - 1] : &function->result;
        signature = (signature * 31 + p->offset) * UINT64_C(0x9e3779b97f4a7c15) + p->bytes;
    }
    return signature ? signature : 1;
}

static void forget_parameters(ptx_function *function) {
    for (uint32_t k = 0; k < function->n_parameters; k++)
        free(function->parameters[k].name);
    function->n_parameters = 0;
    free(function->result.name);
    function->result = (ptx_parameter){0};
}

/* The function of that name, which a declaration may have made. */
static ptx_function *function_of(ptx_reader *reader, const ptx_token *token) {
    ptx_module *module = reader->module;
    const ptx_name *name = ptx_find(reader, token->begin, token->length);
    if (name && name->kind == PTX_FUNCTION) {
        reader->function_index = name->index;
        return module->functions[name->index];
    }
    ptx_function **slot = PTX_APPEND(reader, module, functions);
    *slot = calloc(1, sizeof **slot);
    if (!*slot) {
        module->n_functions--;
        ptx_fail(reader, "no memory");
    }
    reader->function_index = module->n_functions - 1;
    (*slot)->kernel.module = module;
    ptx_add_name(reader, token, PTX_FUNCTION)->index = reader->function_index;
    (*slot)->name = ptx_copy(reader, token);
    return *slot;
}

/* The least of a block's sides, as three numbers or less. */
static uint32_t read_threads(ptx_reader *reader) {
    uint64_t threads = 1;
    do {
        threads *= ptx_integer(reader);
    } while (ptx_accept(reader, ","));
    return threads < 1024 ? (uint32_t)threads : 1024;
}

static void read_function_directives(ptx_reader *reader) {
    for (;;) {
        if (ptx_accept(reader, ".maxntid") || ptx_accept(reader, ".reqntid")) {
            reader->function->max_threads = read_threads(reader);
        } else if (ptx_accept(reader, ".minnctapersm") || ptx_accept(reader, ".maxnreg") ||
                   ptx_accept(reader, ".maxnctapersm")) {
            ptx_integer(reader);
        } else if (!ptx_accept(reader, ".noreturn") && !ptx_accept(reader, ".noinline")) {
            return;
        }
    }
}

static void read_function(ptx_reader *reader, bool is_kernel) {
    const char *result_at = NULL;
    ptx_token result_token = reader->token;
    uint32_t result_line = reader->line;
    /* The result stands before the name, so that it is read a second time when the function is known. */
    if (!is_kernel && ptx_is(reader, "(")) {
        result_at = reader->at;
        while (!ptx_accept(reader, ")")) {
            if (reader->token.kind == PTX_END)
                ptx_fail(reader, "')' is missing");
            ptx_next(reader);
        }
    }
    ptx_token name = reader->token;
    if (name.kind != PTX_WORD)
        ptx_fail(reader, "a function's name is expected before '%.*s'", (int)name.length,
                 name.begin);
    reader->function = function_of(reader, &name);
    ptx_function *function = reader->function;
    uint32_t scope = reader->n_names;
    if (function->is_defined)
        ptx_fail(reader, "'%s' is defined twice", function->name);
    forget_parameters(function);
    function->is_kernel = is_kernel;
    function->max_threads = 1024;
    function->local_bytes = function->parameter_bytes = function->units = 0;
    ptx_next(reader);
    if (result_at) {
        const char *at = reader->at;
        ptx_token token = reader->token;
        uint32_t line = reader->line;
        reader->at = result_at;
        reader->token = result_token;
        reader->line = result_line;
        ptx_expect(reader, "(");
        function->result = read_parameter(reader, false);
        ptx_expect(reader, ")");
        reader->at = at;
        reader->token = token;
        reader->line = line;
    }
    if (ptx_accept(reader, "(")) {
        while (!ptx_accept(reader, ")")) {
            ptx_parameter parameter = read_parameter(reader, is_kernel);
            *PTX_APPEND(reader, function, parameters) = parameter;
            ptx_accept(reader, ",");
        }
    }
    uint64_t signature = signature_of(function);
    if (function->signature && function->signature != signature)
        ptx_fail(reader, "'%s' was declared with other parameters", function->name);
    function->signature = signature;
    read_function_directives(reader);
    function->back = ptx_add_registers(reader, 4, 1);
    if (!ptx_accept(reader, ";")) {
        read_body(reader);
        reader->guard.place = PTX_NOWHERE;
        /* Nothing goes on behind a function's end. */
        ptx_emit(reader, PTX_TRAP);
        function->is_defined = true;
    }
    for (uint32_t k = scope; k < reader->n_names; k++)
        if (reader->names[k].kind == PTX_FUTURE)
            ptx_fail(reader, "'%s' has no label '%.*s'", function->name,
                     (int)reader->names[k].length, reader->names[k].begin);
    reader->n_names = scope;
    reader->function = NULL;
}

/* ---- modules ----------------------------------------------------------------------------- */

/* Debug sections: braces with anything in them. */
static void skip_section(ptx_reader *reader) {
    while (reader->token.kind != PTX_END && !ptx_is(reader, "{"))
        ptx_next(reader);
    for (int deep = 0; reader->token.kind != PTX_END;) {
        deep += ptx_is(reader, "{");
        deep -= ptx_is(reader, "}");
        ptx_next(reader);
        if (!deep)
            return;
    }
}

static void read_module(ptx_reader *reader) {
    bool is_extern = false;
    ptx_next(reader);
    while (reader->token.kind != PTX_END) {
        if (ptx_is(reader, ".version") || ptx_is(reader, ".target") || ptx_is(reader, ".file") ||
            ptx_is(reader, ".loc") || ptx_is(reader, ".pragma")) {
            ptx_skip_line(reader);
        } else if (ptx_accept(reader, ".address_size")) {
            if (ptx_integer(reader) != 64)
                ptx_fail(reader, "addresses that have not 64 bits are not interpreted");
        } else if (ptx_accept(reader, ".section")) {
            skip_section(reader);
        } else if (ptx_accept(reader, ".extern")) {
            is_extern = true;
            continue;
        } else if (ptx_accept(reader, ".visible") || ptx_accept(reader, ".weak") ||
                   ptx_accept(reader, ".common")) {
            continue;
        } else if (ptx_accept(reader, ".entry")) {
            read_function(reader, true);
        } else if (ptx_accept(reader, ".func")) {
            read_function(reader, false);
        } else if (ptx_is(reader, ".global") || ptx_is(reader, ".const")) {
            if (is_extern)
                ptx_fail(reader, "variables of other modules are not interpreted");
            ptx_next(reader);
            read_module_variable(reader);
        } else if (ptx_accept(reader, ".shared")) {
            read_shared(reader, is_extern);
        } else {
            ptx_fail(reader, "'%.*s' is not interpreted", (int)reader->token.length,
                     reader->token.begin);
        }
        is_extern = false;
    }
    ptx_link(reader);
}

/* PTX_ISA=base is for tests of what older processors do. */
static const ptx_forms *forms_of_processor(void) {
#ifdef PTX_WIDE
    const char *isa = getenv("PTX_ISA");
    __builtin_cpu_init();
    if ((!isa || strcmp(isa, "base") != 0) && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return &ptx_forms_wide;
#endif
    return &ptx_forms_base;
}

static bool read_all(ptx_reader *reader) {
    if (setjmp(reader->failed))
        return false;
    read_module(reader);
    return true;
}

ptx_module *ptx_module_create(const char *text, char *error, size_t room) {
    ptx_module *module = calloc(1, sizeof *module);
    if (!module) {
        snprintf(error, room, "no memory");
        return NULL;
    }
    ptx_reader reader = {.module = module,
                         .forms = forms_of_processor(),
                         .at = text,
                         .line = 1,
                         .guard.place = PTX_NOWHERE,
                         .error = error,
                         .room = room};
    bool done = read_all(&reader);
    free(reader.names);
    if (done)
        return module;
    ptx_module_destroy(module);
    return NULL;
}

void ptx_module_destroy(ptx_module *module) {
    if (!module)
        return;
    for (uint32_t k = 0; k < module->n_functions; k++) {
        ptx_function *function = module->functions[k];
        forget_parameters(function);
        free(function->parameters);
        free(function->name);
        free(function->code);
        free(function->calls);
        free(function);
    }
    for (uint32_t k = 0; k < module->n_targets; k++)
        free(module->targets[k].places);
    free(module->targets);
    free(module->functions);
    free(module->code);
    free(module->constants);
    free(module->variables);
    free(module);
}

const ptx_kernel *ptx_module_kernel(const ptx_module *module, const char *name) {
    for (uint32_t k = 0; k < module->n_functions; k++)
        if (module->functions[k]->is_kernel && !strcmp(module->functions[k]->name, name))
            return &module->functions[k]->kernel;
    return NULL;
}

ptx_facts ptx_kernel_facts(const ptx_kernel *kernel) {
    const ptx_function *function = (const ptx_function *)kernel;
    return (ptx_facts){.parameter_bytes = function->parameter_bytes,
                       .n_parameters = function->n_parameters,
                       .shared_bytes = function->shared_bytes,
                       .local_bytes = function->total_local,
                       .max_threads = function->max_threads};
}

bool ptx_kernel_parameter(const ptx_kernel *kernel, uint32_t index, uint32_t *out_offset,
                          uint32_t *out_bytes) {
    const ptx_function *function = (const ptx_function *)kernel;
    if (index >= function->n_parameters)
        return false;
    *out_offset = function->parameters[index].offset;
    *out_bytes = function->parameters[index].bytes;
    return true;
}
