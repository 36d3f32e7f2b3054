"""gradcheck_cases.c: a case for every sample of every operator, so that a new operator is tested without
anyone remembering."""

import ast

from emit import GENERATED

FILLS = {"f": "FILL_ANY", "pos": "FILL_POSITIVE", "away": "FILL_AWAY", "apart": "FILL_APART",
         "mask": "FILL_MASK", "idx": "FILL_INDEX"}


def tensor_call(node, target):
    """f(2, 3) and its like as a C call that makes the tensor."""
    values = [ast.literal_eval(a) for a in node.args]
    limit = values.pop(0) if node.func.id == "idx" else 0
    sizes = ", ".join(map(str, values)) or "0"
    return f"make_tensor({target}, {FILLS[node.func.id]}, {limit}, {len(values)}, (int64_t[]){{{sizes}}});"


def argument(op, arg, node):
    """The statements that fill argument `arg` of a case."""
    cell = f"&s->args[{arg.position}]"
    if isinstance(node, ast.Call):
        return [tensor_call(node, f"s, {cell}")]
    if isinstance(node, ast.List) and arg.kind == "tensors":
        lines = [f"make_list(s, {cell}, {len(node.elts)});"]
        return lines + [tensor_call(e, f"s, list_element(s, {cell}, {i})") for i, e in enumerate(node.elts)]
    value = ast.literal_eval(node)
    if value is None:
        return []
    if arg.kind == "ints":
        values = [value] if isinstance(value, int) else list(value)
        text = ", ".join(map(str, values)) or "0"
        return [f"make_ints(s, {cell}, {len(values)}, (int64_t[]){{{text}}});"]
    if arg.kind == "str":
        return [f'make_string({cell}, "{value}");']
    if isinstance(value, bool):
        return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_BOOL, .v.boolean = {int(value)}}};"]
    if isinstance(value, float) or arg.kind == "float":
        return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_F64, .v.f64 = {float(value)!r}}};"]
    return [f"*({cell}) = (tn_cell){{.tag = TN_CELL_I64, .v.i64 = {value}}};"]


def source(table):
    functions, rows = [], []
    for op in table.ops:
        entry = op.entry
        samples = entry["samples"]
        if isinstance(samples, str):
            if samples.startswith("none: ") or op.form == "out":
                continue
            samples = table.sample_classes[samples]
        if op.form == "out" or (op.form == "inplace" and "constant" in entry):
            continue
        for text in samples if op.form == "functional" else samples[:1]:
            nodes = ast.parse(f"({text},)", mode="eval").body.elts
            if len(nodes) > len(op.functional.args):
                raise SystemExit(f"operators.toml: {op.functional.name}: sample '{text}' has too many arguments")
            name = f"case_{len(rows)}"
            lines = [f"static void {name}(sample *s) {{"]
            for arg, node in zip(op.functional.args, nodes):
                lines += ["    " + line for line in argument(op, arg, node)]
            functions.append("\n".join(lines + ["}\n"]))
            kind = "CONSTANT" if "constant" in entry else \
                "FIRST_ORDER" if entry.get("second") is False else "SECOND_ORDER"
            rows.append(f'    {{"{op.schema.name}", "{text}", {name}, {kind}}},\n')
    return "".join([f"/* The samples of operators.toml. {GENERATED} */\n#include \"gradcheck_cases.h\"\n\n"]
                   + [f + "\n" for f in functions]
                   + ["const gradcheck_case gradcheck_cases[] = {\n"] + rows
                   + ["};\nconst unsigned n_gradcheck_cases = sizeof gradcheck_cases / sizeof gradcheck_cases[0];\n"])
