/* Modules: reads the directives of PTX, declarations and bodies. */
#include "tests/cuda/double/ptx_link.h"
#include "tests/cuda/double/ptx_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    ptx_enter_braces(reader);
    while (!ptx_accept(reader, "}")) {
        if (reader->token.kind == PTX_END)
            ptx_fail(reader, "'}' is missing");
        if (ptx_is(reader, "{"))
            read_body(reader);
        else if (ptx_accept(reader, ".reg"))
            ptx_read_registers(reader);
        else if (ptx_accept(reader, ".local"))
            ptx_read_in_frame(reader, PTX_LOCAL);
        else if (ptx_accept(reader, ".param"))
            ptx_read_in_frame(reader, PTX_PARAM);
        else if (ptx_accept(reader, ".shared"))
            ptx_read_shared(reader, false);
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
    /* The result stands before the name, so that it is read a second time when the function is
     * known. */
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
        function->result = ptx_read_parameter(reader, false);
        ptx_expect(reader, ")");
        reader->at = at;
        reader->token = token;
        reader->line = line;
    }
    if (ptx_accept(reader, "(")) {
        while (!ptx_accept(reader, ")")) {
            ptx_parameter parameter = ptx_read_parameter(reader, is_kernel);
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
            ptx_read_module_variable(reader);
        } else if (ptx_accept(reader, ".shared")) {
            ptx_read_shared(reader, is_extern);
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
