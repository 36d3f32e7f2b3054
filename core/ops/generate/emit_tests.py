"""gradcheck_cases.c and operator_samples.c: every sample of every operator, so that a new operator is tested
without anyone remembering; for the gradient tests and for the conformance suite."""

import ast

from emit import GENERATED

FILLS = {"f": "FILL_ANY", "pos": "FILL_POSITIVE", "away": "FILL_AWAY", "apart": "FILL_APART",
         "unit": "FILL_UNIT", "above": "FILL_ABOVE", "mask": "FILL_MASK", "idx": "FILL_INDEX"}


def tensor_call(node, target, prefix):
    """f(2, 3) and its like as a C call that makes the tensor."""
    values = [ast.literal_eval(a) for a in node.args]
    limit = values.pop(0) if node.func.id == "idx" else 0
    sizes = ", ".join(map(str, values)) or "0"
    return f"{prefix}make_tensor({target}, {FILLS[node.func.id]}, {limit}, {len(values)}, (int64_t[]){{{sizes}}});"


def argument(arg, node, prefix):
    """The statements that fill argument `arg` of a case; they call functions of that prefix."""
    cell = f"&s->args[{arg.position}]"
    if isinstance(node, ast.Call):
        return [tensor_call(node, f"s, {cell}", prefix)]
    if isinstance(node, ast.List) and arg.kind == "tensors":
        lines = [f"{prefix}make_list(s, {cell}, {len(node.elts)});"]
        return lines + [tensor_call(e, f"s, {prefix}list_element(s, {cell}, {i})", prefix)
                        for i, e in enumerate(node.elts) if isinstance(e, ast.Call)]
    value = ast.literal_eval(node)
    if value is None:
        return []
    if arg.kind == "ints":
        values = [value] if isinstance(value, int) else list(value)
        text = ", ".join(map(str, values)) or "0"
        return [f"{prefix}make_ints(s, {cell}, {len(values)}, (int64_t[]){{{text}}});"]
    if arg.kind == "dtype":
        return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_I64, .v.i64 = TN_{value.upper()}}};"]
    if arg.kind == "str":
        return [f'{prefix}make_string({cell}, "{value}");']
    if isinstance(value, bool):
        return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_BOOL, .v.boolean = {int(value)}}};"]
    if isinstance(value, float) or arg.kind == "float":
        return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_F64, .v.f64 = {float(value)!r}}};"]
    return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_I64, .v.i64 = {value}}};"]


def parsed(op, text):
    """The arguments of a sample as syntax trees."""
    nodes = ast.parse(f"({text},)", mode="eval").body.elts
    if len(nodes) > len(op.functional.args):
        raise SystemExit(f"operators.toml: {op.functional.name}: sample '{text}' has too many arguments")
    return nodes


def function(name, sample_type, op, text, prefix):
    """The C function that fills a sample of that type with the arguments of `text`."""
    lines = [f"static void {name}({sample_type} *s) {{"]
    for arg, node in zip(op.functional.args, parsed(op, text)):
        lines += ["    " + line for line in argument(arg, node, prefix)]
    return "\n".join(lines + ["}\n"])


def samples_of(table, entry):
    """The argument lists that gradients are checked with; none where the entry says why."""
    samples = entry["samples"]
    if isinstance(samples, list):
        return samples
    return [] if samples.startswith("none: ") else table.sample_classes[samples]


def order(entry):
    """How often the operator can be differentiated."""
    return "CONSTANT" if "constant" in entry else "FIRST_ORDER" if "why_not_second" in entry else "SECOND_ORDER"


def source(table):
    functions, rows = [], []
    for op in table.ops:
        if op.form == "out" or (op.form == "inplace" and "constant" in op.entry):
            continue
        samples = samples_of(table, op.entry)
        for text in samples if op.form == "functional" else samples[:1]:
            name = f"case_{len(rows)}"
            functions.append(function(name, "sample", op, text, ""))
            rows.append(f'    {{"{op.schema.name}", "{text}", {name}, {order(op.entry)}}},\n')
    return "".join([f"/* The samples of operators.toml. {GENERATED} */\n#include \"tests/ops/gradcheck_cases.h\"\n\n"]
                   + [f + "\n" for f in functions]
                   + ["const gradcheck_case gradcheck_cases[] = {\n"] + rows
                   + ["};\nconst unsigned n_gradcheck_cases = sizeof gradcheck_cases / sizeof gradcheck_cases[0];\n"])


def can_grow(op):
    """Do the sample's tensors still fit each other, and the other arguments, when every size above 1 is
    multiplied? Not where an argument tells a shape, or a part of one."""
    tells = ("size", "shape", "groups", "sizes", "input_size", "weight_size", "normalized_shape", "stride",
             "num_layers", "target_lengths")
    return op.kind != "view" and not any(a.name in tells for a in op.functional.args) \
        and op.functional.base not in ("prod", "prod_", "uniform_", "normal_", "grid_sampler_2d")


def position(op, kind):
    return next((a.position for a in op.functional.args if a.kind == kind), -1)


def signs_zero(entry, kernels):
    """Is the sign of a zero in the result told?"""
    kernel = next((k for k in kernels if k.name == entry.get("kernel")), None)
    return entry["kind"] == "view" or kernel is not None and kernel.signs_zero


def conformance(table, sections, kernels):
    """operator_samples.c. Operators without samples for gradients have `calls` for this purpose."""
    functions, rows = [], []
    for op in table.ops:
        if op.form != "functional":
            continue
        forms = {o.form: f'"{o.schema.name}"' for o in table.ops if o.entry is op.entry}
        written = sum(1 << a.position for a in op.schema.args if a.written)
        flags = [f"TC_{op.kind.upper()}"]
        flags += ["TC_GROWS"] if can_grow(op) else []
        flags += ["TC_RANDOM"] if sections[op.entry["schema"]] == "random" else []
        flags += ["TC_CROSS_DEVICE"] if op.entry.get("cross_device") else []
        flags += ["TC_SIGNED_ZERO"] if signs_zero(op.entry, kernels) else []
        flags += ["TC_DERIVATIVE"] if "backward" in op.schema.name else []
        flags += [f"TC_{word.upper()}" for word in op.entry.get("check", [])]
        for i, text in enumerate(op.entry.get("calls") or samples_of(table, op.entry)):
            name = f"sample_{len(rows)}"
            functions.append(function(name, "tc_sample", op, text, "tc_"))
            rows.append(f'    {{"{op.schema.name}", {forms.get("inplace", "NULL")}, {forms.get("out", "NULL")}, '
                        f'{i}, "{text}", {name}, TC_{"CONSTANT" if "calls" in op.entry else order(op.entry)}, TC_TOLERANCE_{op.entry["tolerance"].upper()}, '
                        f'{" | ".join(flags)}, {written}, {position(op, "device")}, {position(op, "dtype")}}},\n')
    return "".join([f"/* The samples of operators.toml. {GENERATED} */\n#include \"plugin-sdk/conformance/worker/core/sample.h\"\n\n"]
                   + [f + "\n" for f in functions] + ["const tc_operator tc_operators[] = {\n"] + rows
                   + ["};\nconst uint32_t tc_n_operators = sizeof tc_operators / sizeof tc_operators[0];\n"])
