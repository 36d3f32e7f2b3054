"""What several emitters share: defaults, parameter lists, text."""

import textwrap

from schema import split_commas

GENERATED = "Generated from operators.toml. Do not edit."


def float_c(x):
    return repr(x).replace("inf", "INFINITY").replace("nan", "NAN")


def default_c(arg):
    """The default of an argument as a C expression."""
    d, kind = arg.default, arg.kind
    if d is None:
        return {"tensor": "TN_NONE", "int": "TN_NO_INT", "ints": "tn_no_ints()",
                "scalar": "tn_no_scalar()", "dtype": "TN_DTYPE_NONE", "device": "tn_no_device()",
                "str": "NULL"}[kind]
    if kind == "ints":
        values = [d] * arg.n_ints if isinstance(d, int) else list(d)
        return f"TN_SHAPE({', '.join(map(str, values))})" if values else "TN_SCALAR_SHAPE"
    if kind == "scalar":
        if isinstance(d, bool):
            return f"tn_bool({str(d).lower()})"
        return f"tn_int({d})" if isinstance(d, int) else f"tn_float({float_c(d)})"
    if kind == "bool":
        return str(bool(d)).lower()
    if kind == "float":
        return float_c(float(d))
    if kind == "str":
        return f'"{d}"'
    return str(d)


def arguments(op):
    """[(C type, name, default or None)] of the operator's C function, without results."""
    out = []
    for arg in op.schema.args:
        if arg.kind == "tensors":
            out += [("tn_tensor *const *", arg.name, None), ("uint64_t ", "n_" + arg.name, None)]
        else:
            out.append((arg.c_type, arg.name, default_c(arg) if arg.has_default else None))
    return out


def parameters(op):
    """The same, results last."""
    out = arguments(op)
    if op.returns_list:
        out += [("tn_tensor **", "outs", None), ("uint64_t ", "n_outs", None)]
    elif op.n_outs > 1:
        out += [("tn_tensor **", "out_" + r.name, None) for r in op.schema.rets]
    return out


def result_type(op):
    return "tn_tensor *" if op.n_outs == 1 and not op.returns_list else "tn_status "


def prototype(op, prefix, name=None):
    params = ", ".join(f"{t}{n}" for t, n, _ in parameters(op)) or "void"
    return f"{result_type(op)}{name or prefix + op.c_name}({params})"


def wrap(text):
    """A prototype in lines of at most 100 columns, broken after commas between parameters, which
    stand under the first."""
    head, params = text.split("(", 1)
    line, lines = head + "(", []
    indent = " " * len(line)
    parts = split_commas(params)
    for part in [p + "," for p in parts[:-1]] + parts[-1:]:
        gap = "" if line.endswith("(") or line == indent else " "
        if gap and len(line) + len(gap) + len(part) > 100:
            lines.append(line)
            line, gap = indent, ""
        line += gap + part
    return "\n".join([*lines, line])


def comment(*paragraphs):
    """A comment in which each paragraph starts a line."""
    lines = [line for text in paragraphs
             for line in textwrap.wrap(text, 94, break_long_words=False, break_on_hyphens=False)]
    return "/* " + "\n * ".join(lines) + " */"
