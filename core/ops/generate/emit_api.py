"""tenon/ops.h (public), operators.h (internal prototypes) and ops.c (both kinds of wrappers)."""

from emit import GENERATED, arguments, comment, parameters, prototype, result_type, wrap

PUBLIC_HEAD = f"""\
/* tenon/ops.h: the operators. {GENERATED}
 *
 * The C name follows from the schema: tn_ + name + _overload in lower case (Tensor is left out),
 * with a _ at the end for in-place and _out for out forms. Arguments come in the schema's order;
 * those with defaults may be left out from the right: tn_sum_dim(x, TN_DIMS(1)) and
 * tn_sum_dim(x, TN_DIMS(1), true). A Tensor[] argument is a pointer and a count; in a
 * Tensor?[] one TN_NONE stands for an element that is left out.
 *
 * Results belong to the innermost scope; in-place and out forms return the argument they wrote and
 * add nothing. An operator with several results returns a status, and its results through out_
 * pointers; one that returns Tensor[] fills an array of exactly the right size, which its _count
 * function tells (-1 with an error); a boxed call tells it with the results. NULL arguments make the
 * result NULL and leave the standing error alone. What stands for an argument left out is in
 * tenon/tensor.h. Any thread may call.
 */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include <tenon/tensor.h>

/* Picks the macro for a number of arguments. */
#define TN_CAT_(a, b) a##b
#define TN_CAT(a, b) TN_CAT_(a, b)
#define TN_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, ...) n
#define TN_COUNT(...) TN_COUNT_(__VA_ARGS__, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#ifdef __cplusplus
extern "C" {{
#define TN_DEFAULT(value) = value
#else
#define TN_DEFAULT(value)
#endif

"""


def n_without_default(params):
    """How many come before the trailing run of those with a default."""
    first = len(params)
    while first > 0 and params[first - 1][2] is not None:
        first -= 1
    return first


def public_functions(op):
    """[(result type, name, parameters)] of what the header declares for an operator."""
    functions = [(result_type(op), f"tn_{op.c_name}", parameters(op))]
    if op.returns_list:
        functions.append(("int64_t ", f"tn_{op.c_name}_count", arguments(op)))
    return functions


def public_prototype(result, name, params):
    """With C++ defaults on the trailing run of defaulted parameters."""
    first = n_without_default(params)
    text = ", ".join(f"{t}{n}" + (f" TN_DEFAULT(({d}))" if i >= first else "")
                     for i, (t, n, d) in enumerate(params)) or "void"
    return f"TN_API {result}{name}({text});"


def default_macros(name, params):
    """Nothing for a function all of whose parameters must be given."""
    first = n_without_default(params)
    if first == len(params):
        return ""
    lines = [f"#define {name}(...) \\\n    TN_CAT({name}__, TN_COUNT(__VA_ARGS__))(__VA_ARGS__)\n"]
    for n in range(max(first, 1), len(params) + 1):
        given = [f"a{i}" for i in range(n)]
        rest = [params[i][2] for i in range(n, len(params))]
        call = f"({name})({', '.join(given + rest)})"
        lines.append(f"#define {name}__{n}({', '.join(given)}) \\\n    {call}\n")
    return "".join(lines)


def public_header(table):
    out = [PUBLIC_HEAD]
    for op in table.ops:
        text = op.entry["doc"] if op.form == "functional" else \
            op.entry["doc"] + (" In place." if op.form == "inplace" else " Into out.")
        out.append(comment(op.schema.text, text) + "\n")
        out += [wrap(public_prototype(*function)) + "\n" for function in public_functions(op)]
        out.append("\n")
    out.append("#ifndef __cplusplus\n/* What may be left out. C++ has default arguments. */\n")
    out += [default_macros(name, params) for op in table.ops
            for _, name, params in public_functions(op)]
    out.append("#endif\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* TENON_OPS_H */\n")
    return "".join(out)


def internal_header(table):
    out = ["/* The operators as the library calls them: results are owned references.\n"
           f" * {GENERATED} */\n"
           "#ifndef TNI_CORE_OPS_OPERATORS_H\n#define TNI_CORE_OPS_OPERATORS_H\n\n#include \"core/call/op_info.h\"\n\n"
           "typedef enum tni_op_id {\n"]
    out += [f"    TNI_OP_{op.c_name},\n" for op in table.ops]
    out.append("    TNI_OP_COUNT\n} tni_op_id;\n\n"
               "extern const tn_op *tni_ops[TNI_OP_COUNT];\n"
               "extern const tni_op_info tni_op_infos[TNI_OP_COUNT];\n\n")
    out += [wrap(prototype(op, "tni_") + ";") + "\n" for op in table.ops]
    out.append("\n#endif\n")
    return "".join(out)


def cell_of(arg):
    return {
        "tensor": f"tni_cell_tensor({arg.name})",
        "tensors": f"{{.tag = TN_CELL_TENSORS, .n = (uint32_t)n_{arg.name}, "
                   f".v.pointer = (void *){'some_' if arg.has_holes else ''}{arg.name}}}",
        "int": f"tni_cell_i64({arg.name})" if arg.type == "int" else f"tni_cell_opt_int({arg.name})",
        "ints": f"tni_cell_ints({arg.name})",
        "float": f"tni_cell_f64({arg.name})",
        "bool": f"tni_cell_bool({arg.name})",
        "scalar": arg.name,
        "dtype": f"tni_cell_dtype({arg.name})",
        "device": f"tni_cell_device({arg.name})",
        "str": f"tni_cell_string({arg.name})",
    }[arg.kind]


def checked_cells(op, call, bad):
    """Lines: arguments that can be put into cells, or `call` returns `bad`; then the cells, args."""
    lines = []
    for arg in op.schema.args:
        given = not arg.type.endswith("?") and not arg.has_default
        if arg.has_holes:
            lines.append(f"    tn_tensor *some_{arg.name}[TN_MAX_RANK];")
            given = f"{arg.name}, n_{arg.name}, some_{arg.name}"
            lines.append(f"    if (!tni_list_some({given}, \"{call}\", \"{arg.name}\"))")
            lines.append(f"        return {bad};")
        elif arg.kind == "tensors":
            lines.append(f"    if (!tni_list_ok({arg.name}, n_{arg.name}, \"{call}\", \"{arg.name}\"))")
            lines.append(f"        return {bad};")
        elif arg.kind in ("tensor", "ints", "dtype", "device", "scalar") or arg.kind == "str" and given:
            refuse = "tni_refuse" + ("" if arg.kind == "tensor" else f"_{arg.kind}")
            lines.append(f"    if (TNI_UNLIKELY(!tni_{'given' if given else 'ok'}_{arg.kind}({arg.name})))")
            lines.append(f"        return {refuse}({arg.name}, \"{call}\", \"{arg.name}\"), {bad};")
    if not any(a.kind in ("tensor", "tensors") for a in op.schema.args):
        lines.append(f"    if (tni_core_init() != TN_OK)\n        return {bad};")
    cells = ", ".join(cell_of(a) for a in op.schema.args)
    lines.append(f"    tn_cell args[] = {{{cells}}};")
    return lines


def internal_wrapper(op):
    """tni_add: cells on the stack, the call, the result."""
    bad = "NULL" if result_type(op).startswith("tn_tensor") else "tni_failed()"
    lines = [prototype(op, "tni_") + " {"]
    if op.returns_list:
        lines.append("    for (uint64_t i = 0; i < n_outs; i++)\n        outs[i] = NULL;")
    elif op.n_outs > 1:
        lines += [f"    *out_{r.name} = NULL;" for r in op.schema.rets]
    lines += checked_cells(op, f"tn_{op.c_name}", bad)
    n_rets = max(op.n_outs, 1)
    lines.append(f"    tn_cell rets[{n_rets}];")
    call = f"tni_call(tni_ops[TNI_OP_{op.c_name}], args, rets)"
    if op.n_outs == 1 and not op.returns_list:
        lines.append(f"    return TNI_LIKELY({call} == TN_OK) ? rets[0].v.pointer : NULL;")
    elif op.n_outs == 0:
        lines.append(f"    return {call};")
    elif op.returns_list:
        lines.append(f"    tn_status status = {call};")
        lines.append(f"    return status == TN_OK ? tni_take_list(rets, outs, n_outs, \"tn_{op.c_name}\") : status;")
    else:
        lines.append(f"    tn_status status = {call};")
        lines.append("    if (status != TN_OK)\n        return status;")
        lines += [f"    *out_{r.name} = rets[{i}].v.pointer;" for i, r in enumerate(op.schema.rets)]
        lines.append("    return TN_OK;")
    lines.append("}\n")
    return "\n".join(lines)


def public_wrapper(op):
    """tn_add: the same, and the result goes to the scope."""
    names = [n for _, n, _ in parameters(op)]
    call = f"tni_{op.c_name}({', '.join(names)})"
    lines = [prototype(op, "", f"(tn_{op.c_name})") + " {"]
    label = f'"{op.schema.name}"'
    if op.n_outs == 1 and not op.returns_list:
        if op.returns_written():
            lines.append(f"    return tni_public_written({call}, {label});")
        else:
            lines.append(f"    return tni_public(({call}), {label});")
    elif op.n_outs == 0:
        lines.append(f"    return tni_public_status({call}, NULL, 0, {label});")
    elif op.returns_list:
        lines.append(f"    if (!outs && n_outs)\n        return tni_refuse_out(\"tn_{op.c_name}\", \"outs\");")
        lines.append(f"    return tni_public_status({call}, outs, n_outs, {label});")
    else:
        lines += [f"    if (!{n})\n        return tni_refuse_out(\"tn_{op.c_name}\", \"{n}\");" for n in names[-op.n_outs:]]
        lines.append(f"    tn_tensor *results[{op.n_outs}] = {{NULL}};")
        results = [f"&results[{i}]" for i in range(op.n_outs)]
        inner = f"tni_{op.c_name}({', '.join(names[:-op.n_outs] + results)})"
        lines.append(f"    tn_status status = {inner};")
        lines.append(f"    status = tni_public_status(status, results, {op.n_outs}, {label});")
        lines += [f"    *{n} = results[{i}];" for i, n in enumerate(names[-op.n_outs:])]
        lines.append("    return status;")
    lines.append("}\n")
    return "\n".join(lines)


def count_function(op):
    """tn_split_count: the operator's own rule, by running it."""
    params = ", ".join(f"{t}{n}" for t, n, _ in arguments(op))
    name = f"tn_{op.c_name}_count"
    return "\n".join([f"int64_t ({name})({params}) {{", *checked_cells(op, name, "-1"),
                      f"    return tni_count_list(tni_ops[TNI_OP_{op.c_name}], args);", "}\n"])


def source(table):
    out = [f"/* The operators as C functions. {GENERATED} */\n"
           "#include \"core/call/init.h\"\n#include \"core/call/wrap.h\"\n#include \"core/ops/operators.h\"\n\n"
           "#include <tenon/ops.h>\n\n"]
    out += [internal_wrapper(op) + "\n" + public_wrapper(op) + "\n" for op in table.ops]
    out += [count_function(op) + "\n" for op in table.ops if op.returns_list]
    return "".join(out)
