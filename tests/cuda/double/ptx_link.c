/* Functions do not call themselves here, so that each has its registers and its local memory at
 * one place of the warp, as FORTRAN had it: behind those of the functions that it calls, which
 * may be several functions' callees. Code stands in the same order. Lanes that are in a call are
 * then at the lesser places, run first, and meet the others where they come back. */
#include "tests/cuda/double/ptx_link.h"

#include <stdlib.h>
#include <string.h>

enum { FRESH, BEGUN, PLACED };

static uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The value of an instruction that is at its place in the module's code. */
static void relocate(ptx_reader *reader, const ptx_function *function, ptx_instruction *at) {
    const ptx_module *module = reader->module;
    ptx_place *places[PTX_OPERANDS + 1] = {&at->guard};
    uint32_t n = 1;
    for (int k = 0; k < PTX_OPERANDS && at->kind != PTX_COPY; k++)
        places[n++] = &at->o[k];
    for (uint32_t k = 0; k < n; k++)
        if (*places[k] < PTX_CONSTANT && *places[k] >= PTX_FIRST_REGISTER)
            *places[k] += function->base_units;
    if (at->base == PTX_BASE_FRAME)
        at->offset += function->base_local;
    const ptx_function *callee = NULL;
    switch (at->kind) {
    case PTX_BRANCH:
        at->target += function->begin;
        break;
    case PTX_COPY:
        callee = module->functions[at->target];
        at->o[0] += callee->base_local;
        break;
    case PTX_CALL:
        callee = module->functions[at->target];
        at->target = callee->begin;
        at->o[0] = callee->back + callee->base_units;
        break;
    case PTX_RETURN:
        at->o[0] = function->back + function->base_units;
        if (function->is_kernel)
            at->kind = PTX_EXIT;
        break;
    default:
        break;
    }
}

static void place(ptx_reader *reader, ptx_function *function) {
    ptx_module *module = reader->module;
    if (function->mark == PLACED)
        return;
    if (function->mark == BEGUN)
        ptx_fail(reader, "'%s' calls itself, which is not interpreted", function->name);
    function->mark = BEGUN;
    for (uint32_t k = 0; k < function->n_calls; k++) {
        ptx_function *callee = module->functions[function->calls[k]];
        if (!callee->is_defined)
            ptx_fail(reader, "'%s' calls '%s', which is not in the module", function->name,
                     callee->name);
        place(reader, callee);
        function->base_units = greater(function->base_units, callee->total_units);
        function->base_local = greater(function->base_local, callee->total_local);
        function->uses_common |= callee->uses_common;
    }
    function->total_units = function->base_units + function->units;
    function->base_local = (function->base_local + 63) / 64 * 64;
    function->total_local = function->base_local + function->local_bytes;
    if (function->total_units > 4 * PTX_MOST_UNITS || function->total_local > 4 * PTX_MOST_BYTES)
        ptx_fail(reader, "'%s' and what it calls have too much memory", function->name);
    function->begin = module->n_code;
    for (uint32_t k = 0; k < function->n_code; k++)
        relocate(reader, function, &function->code[k]);
    memcpy(module->code + module->n_code, function->code,
           function->n_code * sizeof *function->code);
    module->n_code += function->n_code;
    free(function->code);
    function->code = NULL;
    if (function->uses_common && function->is_kernel) {
        function->common = (function->shared_bytes + 127) / 128 * 128;
        function->shared_bytes = function->common + module->shared_bytes;
    }
    function->mark = PLACED;
}

void ptx_link(ptx_reader *reader) {
    ptx_module *module = reader->module;
    size_t n = 0;
    for (uint32_t k = 0; k < module->n_functions; k++)
        n += module->functions[k]->n_code;
    module->code = calloc(n + 1, sizeof *module->code);
    if (!module->code)
        ptx_fail(reader, "no memory");
    for (uint32_t k = 0; k < module->n_functions; k++)
        if (module->functions[k]->is_defined)
            place(reader, module->functions[k]);
    for (uint32_t k = 0; k < module->n_targets; k++) {
        ptx_targets *targets = &module->targets[k];
        for (uint32_t j = 0; j < targets->n_places; j++)
            targets->places[j] += module->functions[targets->function]->begin;
    }
}
