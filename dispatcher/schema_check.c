/* The check of a call's cells against a schema, with messages that name the argument; and what a
 * schema's name and text mean to others: the plain name, the hash. */
#include "base/error.h"
#include "base/hash.h"
#include "dispatcher/schema.h"

#include <stdio.h>
#include <string.h>

static const char *cell_type_name(const tn_cell *cell) {
    static const char *const names[] = {
        [TN_CELL_NONE] = "nothing", [TN_CELL_TENSOR] = "Tensor", [TN_CELL_TENSORS] = "Tensor[]",
        [TN_CELL_I64] = "int",      [TN_CELL_F64] = "float",     [TN_CELL_BOOL] = "bool",
        [TN_CELL_INTS] = "int[]",   [TN_CELL_STRING] = "str",
    };
    return cell->tag <= TN_CELL_STRING ? names[cell->tag] : "a cell of unknown tag";
}

const char *tni_type_name(const tni_arg *arg) {
    static const char *const names[] = {
        [TNI_TYPE_TENSOR] = "Tensor", [TNI_TYPE_TENSORS] = "Tensor[]", [TNI_TYPE_INT] = "int",
        [TNI_TYPE_INTS] = "int[]",    [TNI_TYPE_FLOAT] = "float",      [TNI_TYPE_BOOL] = "bool",
        [TNI_TYPE_SCALAR] = "Scalar", [TNI_TYPE_DTYPE] = "ScalarType", [TNI_TYPE_DEVICE] = "Device",
        [TNI_TYPE_STRING] = "str",
    };
    return arg->holes ? "Tensor?[]" : names[arg->type];
}

static void print_type(const tni_arg *arg, char out[32]) {
    const char *optional = arg->optional ? "?" : "";
    if (arg->n_ints)
        snprintf(out, 32, "int[%u]%s", arg->n_ints, optional);
    else
        snprintf(out, 32, "%s%s", tni_type_name(arg), arg->holes ? "" : optional);
}

static bool fits(const tni_arg *arg, uint32_t tag) {
    switch (arg->type) {
    case TNI_TYPE_TENSOR:
        return tag == TN_CELL_TENSOR;
    case TNI_TYPE_TENSORS:
        return tag == TN_CELL_TENSORS;
    case TNI_TYPE_INTS:
        return tag == TN_CELL_INTS || (arg->n_ints && tag == TN_CELL_I64);
    case TNI_TYPE_FLOAT:
        return tag == TN_CELL_F64 || tag == TN_CELL_I64;
    case TNI_TYPE_BOOL:
        return tag == TN_CELL_BOOL;
    case TNI_TYPE_SCALAR:
        return tag == TN_CELL_I64 || tag == TN_CELL_F64 || tag == TN_CELL_BOOL;
    case TNI_TYPE_INT:
    case TNI_TYPE_DTYPE:
    case TNI_TYPE_DEVICE:
        return tag == TN_CELL_I64;
    case TNI_TYPE_STRING:
        return tag == TN_CELL_STRING;
    }
    return false;
}

static bool is_dtype(int64_t number) {
    return number >= 0 && (number < TN_DTYPE_COUNT ||
                           (number < TN_DTYPE_END && (TN_DTYPES_STORAGE >> number & 1)));
}

/* What is wrong with the value of a cell whose tag fits, or NULL. */
static const char *bad_value(const tni_arg *arg, const tn_cell *cell) {
    switch (cell->tag) {
    case TN_CELL_TENSOR:
        return cell->v.pointer ? NULL
                               : "the tensor is NULL: the call that should have made it failed";
    case TN_CELL_TENSORS:
        if (cell->n && !cell->v.pointer)
            return "the list is NULL";
        for (uint32_t i = 0; !arg->holes && i < cell->n; i++) {
            if (!((void *const *)cell->v.pointer)[i])
                return "a tensor of the list is NULL: the call that should have made it failed";
        }
        return NULL;
    case TN_CELL_INTS:
        return cell->n && !cell->v.ints ? "the list is NULL" : NULL;
    case TN_CELL_STRING:
        return cell->v.string ? NULL : "the string is NULL";
    case TN_CELL_I64:
        if (arg->type == TNI_TYPE_DTYPE && !is_dtype(cell->v.i64))
            return "no such ScalarType";
        /* 64 device types: the upper half is a backend id plus one. */
        if (arg->type == TNI_TYPE_DEVICE && (cell->v.i64 < 0 || cell->v.i64 >> 32 > 64))
            return "no such Device; pack it with tn_device_pack";
        return NULL;
    default:
        return NULL;
    }
}

tn_status tni_schema_check(const tni_schema *schema, uint32_t i, const tn_cell *cell) {
    const tni_arg *arg = &schema->args[i];
    if (cell->tag == TN_CELL_NONE && (arg->optional || arg->has_default))
        return TN_OK;
    if (!fits(arg, cell->tag)) {
        char type[32];
        print_type(arg, type);
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument %u '%s': expected %s, got %s",
                       tni_plain_name(schema->name), i + 1, arg->name, type, cell_type_name(cell));
    }
    const char *problem = bad_value(arg, cell);
    if (problem)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument %u '%s': %s",
                       tni_plain_name(schema->name), i + 1, arg->name, problem);
    return TN_OK;
}

const char *tni_plain_name(const char *name) {
    return strncmp(name, "tenon::", 7) == 0 ? name + 7 : name;
}

uint64_t tni_schema_hash(const char *text) {
    return tni_hash(text, strlen(text));
}
