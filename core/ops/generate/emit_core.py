"""table.c: records of the operators, decompositions and backward functions from expressions."""

import ast

import expr
from emit import GENERATED, wrap
from table import moved

READ = {  # argument cell -> C value, by kind
    "tensor": ("tn_tensor *", "tni_arg_some(&args[{}])"),
    "int": ("int64_t ", "tni_arg_int(&args[{}])"),
    "ints": ("tn_ints ", "tni_arg_ints(&args[{}])"),
    "float": ("double ", "args[{}].v.f64"),
    "bool": ("bool ", "args[{}].v.boolean != 0"),
    "scalar": ("tn_scalar ", "args[{}]"),
    "dtype": ("tn_dtype ", "tni_arg_dtype(&args[{}])"),
    "device": ("tn_device ", "tni_arg_device(&args[{}])"),
    "str": ("const char *", "args[{}].v.string"),
}
ATTR = {  # the same from a node's attribute
    "int": ("int64_t ", "tni_arg_int(&node->attrs[{}])"),
    "ints": ("tn_ints ", "tni_node_ints(node, {})"),
    "float": ("double ", "node->attrs[{}].v.f64"),
    "bool": ("bool ", "node->attrs[{}].v.boolean != 0"),
    "scalar": ("tn_scalar ", "node->attrs[{}]"),
    "dtype": ("tn_dtype ", "(tn_dtype)node->attrs[{}].v.i64"),
    "str": ("const char *", "node->attrs[{}].v.string"),
}
PROPERTIES = {  # of a tensor argument that a formula may ask for, and their kinds
    "sizes": "ints", "strides": "ints", "offset": "int", "dtype": "dtype", "lengths": "ints",
}
OF_ARGUMENT = {  # of a tensor argument in a decomposition: kind, C
    "sizes": ("ints", "tni_sizes({})"), "dtype": ("dtype", "{}->view.dtype"), "device": ("device", "{}->device->id"),
    "rank": ("int", "{}->view.rank"), "numel": ("int", "{}->view.numel"),
    "is_float": ("bool", "tni_is_float({}->view.dtype)"),
}


def is_wide(entry):
    """Does `run` round at several steps, so that halves pass through it as f32?"""
    run = entry.get("run")
    if entry["kind"] not in ("pointwise", "general") or run is None or entry["tolerance"] == "exact":
        return entry.get("wide", False)
    if run.startswith("c:"):
        return True
    return expr.count_calls(run) > 1


class CoreEmitter:
    def __init__(self, table, kernels):
        self.table = table
        self.kernels = {k.name: (i, k) for i, k in enumerate(kernels)}
        self.functions = []  # texts of table.c
        self.declared = {}  # C functions that the table names: name -> parameters
        self.called = {}  # the same of formulas: name -> types of the parameters
        self.infos = [self.info(op) for op in table.ops]

    def declare(self, name, parameters):
        self.declared[name] = parameters
        return name

    # ---- decompositions --------------------------------------------------------------------------

    def run_function(self, op):
        """C name of the boxed function that runs the operator by others, or NULL."""
        run = op.entry.get("run")
        if run is None:
            return "NULL"
        if run.startswith("c:") and "(" not in run:
            return self.declare(run[2:], "const tn_cell *args, tn_cell *rets")
        name = f"run_{op.functional_c_name}"
        if op.form != op.entry["forms"].split()[0]:
            return name
        if run.startswith("c:"):
            self.functions.append(self.shared_run(op, name, ast.parse(run[2:], mode="eval").body))
            return name
        names = {a.name: (a.kind, a.name) for a in op.functional.args}
        for a in op.functional.args:
            if a.type == "Tensor":
                names |= {f"{a.name}.{what}": (kind, code.format(a.name)) for what, (kind, code) in OF_ARGUMENT.items()}
        used = {name.partition(".")[0] for name in expr.names_in(run)}
        # of a composite; other kinds are given arguments of their type already
        cast = [a for a in op.functional.args if a.type == "Tensor" and a.name in used
                and op.kind == "composite" and op.entry["types"] == "float"]
        compiler = expr.Compiler(self.table, names, op.functional.name, self.called,
                                 owned={a.name: a.name for a in cast})
        result = compiler.compile(run)
        lines = [f"static tn_status {name}(const tn_cell *args, tn_cell *rets) {{"]
        if cast:
            mask = sum(1 << a.position for a in op.functional.args if a.kind in ("tensor", "scalar"))
            lines.append(f"    tn_dtype common = tni_common_float(args, {mask:#x});")
        for arg in op.functional.args:
            if arg.name in used:
                c_type, read = ("tn_tensor *", "tni_arg_tensor(&args[{}])") if arg.type == "Tensor" else READ[arg.kind]
                value = read.format(arg.position)
                lines.append(f"    {c_type}{arg.name} = {f'tni_to_dtype({value}, common)' if arg in cast else value};")
        lines += [f"    {line}" for line in compiler.lines]
        lines.append(f"    return tni_return(rets, {result});\n}}\n")
        self.functions.append("\n".join(lines))
        return name

    def shared_run(self, op, name, call):
        """The boxed function of an operator that shares a C function, which is told its name and what sets it apart."""
        given = {word.arg: word.value.value for word in call.keywords}
        types = [{bool: "bool ", int: "int64_t ", str: "const char *"}[type(value)] + word for word, value in given.items()]
        values = [f'"{value}"' if isinstance(value, str) else str(value).lower() for value in given.values()]
        parameters = ", ".join(["const char *call, const tn_cell *args, tn_cell *rets", *types])
        if self.declared.setdefault(call.func.id, parameters) != parameters:
            raise SystemExit(f"operators.toml: {op.schema.name}: {call.func.id} is given other words elsewhere")
        arguments = ", ".join([f'"tn_{op.functional_c_name}"', "args", "rets", *values])
        return (f"static tn_status {name}(const tn_cell *args, tn_cell *rets) {{\n"
                f"    return {call.func.id}({arguments});\n}}\n")

    # ---- derivatives --------------------------------------------------------------------------------

    def derivative(self, op):
        """C name of the derivative record, or NULL."""
        grad = op.entry.get("grad")
        if grad is None:
            return "NULL"
        name = f"derivative_{op.functional_c_name}"
        if op.form != op.entry["forms"].split()[0]:
            return "&" + name
        node = "".join(w.capitalize() for w in op.functional.base.strip("_").split("_")) + "Backward"
        if isinstance(grad, str):
            self.custom_derivative(op, name, node, grad[2:])
        else:
            self.expression_derivative(op, name, node, grad)
        return "&" + name

    def attr_source(self, op, text):
        """(position, source, kind) of 'self.sizes', 'self.dtype' or 'dim'."""
        base, _, what = text.partition(".")
        arg = op.functional.arg(base)
        if arg is None:
            raise SystemExit(f"operators.toml: {op.schema.name}: no argument '{base}' in '{text}'")
        if what:
            return arg.position, f"TNI_ATTR_{what.upper()}", PROPERTIES[what]
        return arg.position, "TNI_ATTR_CELL", arg.kind

    def record(self, op, name, node, function, inputs, saved, attrs, is_list):
        mask = sum(1 << i for i in op.entry.get("nondifferentiable_outputs", []))
        saved_c = ", ".join(f"{{{p}, {int(out)}, {only}}}" for p, out, only in saved)
        attrs_c = ", ".join(f"{{{p}, {s}}}" for p, s, _ in attrs)
        if len(inputs) > 8 or len(saved) > 8 or len(attrs) > 16:
            raise SystemExit(f"operators.toml: {op.schema.name}: too many inputs, saved or attrs")
        lines = [f"static const tni_derivative {name} = {{",
                 f'    .node = {{.name = "{node}", .backward = {function}}},',
                 f"    .n_inputs = {len(inputs)}, .n_saved = {len(saved)}, .n_attrs = {len(attrs)},",
                 f"    .is_list = {int(is_list)}, .inputs = {{{', '.join(map(str, inputs))}}},"]
        if saved:
            lines.append(f"    .saved = {{{saved_c}}},")
        if attrs:
            lines.append(f"    .attrs = {{{attrs_c}}},")
        lines.append(f"    .nondifferentiable_outputs = {mask}}};\n")
        self.functions.append("\n".join(lines))

    def custom_derivative(self, op, name, node, function):
        attrs = [self.attr_source(op, text) for text in op.entry.get("attrs", {}).values()]
        first = op.functional.args[0]
        self.declare(function, "tni_node *node, tn_tensor *const *grads, tn_tensor **out")
        self.record(op, name, node, function, [0], [], attrs, first.kind == "tensors")

    def expression_derivative(self, op, name, node, grad):
        outs = {("result" if i == 0 else f"result{i}"): i for i in range(op.n_outs)}
        edges, groups = [], []  # arguments / those that one formula is of, as numbers of edges, and the formula
        for key, text in grad.items():
            args = key.split(", ")
            groups.append(([len(edges) + i for i in range(len(args))], text))
            edges += args
        saved, attrs = {}, {}  # name -> mask of edges / name -> (position, source, kind)
        for of, text in groups:
            mask = sum(1 << i for i in of)
            for used in expr.names_in(text):
                if used in ("grad", "grad.device"):
                    continue
                target = op.functional.arg(used)
                if used in outs or (target and target.is_tensor):
                    saved[used] = saved.get(used, 0) | mask
                else:
                    attrs[used] = self.attr_source(op, used)
        names = {"grad": ("tensor", "grad"), "grad.device": ("device", "grad->device->id")}
        for used in saved:
            names[used] = ("tensor", used)
        for used, (_, _, kind) in attrs.items():
            names[used] = (kind, used.replace(".", "_"))
        body = []
        for of, text in groups:
            compiler = expr.Compiler(self.table, names, op.functional.name, self.called, widens=True)
            body.append(f"    if (needed & {sum(1 << i for i in of)}u) {{")
            if len(of) == 1:
                fails = f"!(out[{of[0]}] = {compiler.compile(text)})"
            else:
                compiler.call_into(text, [f"out[{i}]" for i in of])
                fails = "status != TN_OK"
            body += [f"        {line}" for line in compiler.lines]
            body.append(f"        if ({fails})\n            goto failed;")
            for i in of if len(of) > 1 else ():
                body.append(f"        if (!(needed & {1 << i}u)) {{\n            tni_drop(out[{i}]);\n            out[{i}] = NULL;\n        }}")
            body.append("    }")
        lines = [f"static tn_status backward_{op.functional_c_name}(tni_node *node, "
                 "tn_tensor *const *grads, tn_tensor **out) {",
                 "    tn_tensor *grad = grads[0];", "    if (!grad)\n        return TN_OK;",
                 "    uint32_t needed = tni_node_needed(node);"]
        for used in saved:
            lines.append(f"    tn_tensor *{used} = NULL;")
        for k, (used, (_, _, kind)) in enumerate(attrs.items()):
            c_type, read = ATTR[kind]
            lines.append(f"    {c_type}{used.replace('.', '_')} = {read.format(k)};")
        for k, (used, mask) in enumerate(saved.items()):
            lines.append(f"    if ((needed & {mask}u) && !({used} = tni_node_saved(node, {k})))\n        goto failed;")
        drops = [f"    tni_drop_opt({used});" for used in saved]
        lines += body + drops + ["    return TN_OK;", "failed:"] + drops
        lines += [f"    tni_drop_all(out, {len(edges)});", "    return tni_failed();", "}\n"]
        self.functions.append("\n".join(lines))
        positions = {a.name: a.position for a in op.functional.args}
        self.record(op, name, node, f"backward_{op.functional_c_name}",
                    [positions[arg] for arg in edges],
                    [(outs[u] if u in outs else positions[u], u in outs, m) for u, m in saved.items()],
                    list(attrs.values()), False)

    # ---- records ---------------------------------------------------------------------------------------

    def constant_c(self, value):
        if isinstance(value, float):
            return f"{{.tag = TN_CELL_F64, .v.f64 = {value!r}}}"
        return f"{{.tag = TN_CELL_I64, .v.i64 = {int(value)}}}"

    def info(self, op):
        entry, fields = op.entry, []
        form = "INPLACE" if op.native_inplace else op.form.upper()
        kind = entry["kind"].upper()
        fields += [f'.name = "{op.schema.name}"', f'.schema = "{op.schema.text}"',
                   f'.call = "tn_{op.c_name}"', f".kind = TNI_OP_{kind}", f".form = TNI_FORM_{form}",
                   f".type_rule = TNI_TYPES_{entry['types'].upper()}", f".n_outs = {op.n_outs}"]
        written = sum(1 << a.position for a in op.schema.args if a.written)
        if written:
            fields.append(f".written = {written:#x}")
        if names := moved(entry):
            fields.append(f".moved = {sum(1 << op.functional.arg(name).position for name in names):#x}")
        if entry.get("moves") is True and kind == "COMPOSITE":
            fields.append(".passes_storage = 1")
        if entry.get("cross_device"):
            fields.append(".cross_device = 1")
        if op.returns_list and kind == "VIEW":
            fields.append(".multi_view = 1")
        if is_wide(entry):
            fields.append(".wide = 1")
        if entry.get("run_for") == "integers":
            fields.append(".run_for_integers = 1")
        if "autocast" in entry and op.form == "functional":
            fields.append(f".autocast = TNI_AUTOCAST_{entry['autocast'].upper()}")
        kernel = entry.get("kernel")
        if kernel:
            fields.append(f".kernel = TNI_KERNEL_{kernel}")
            self.kernel_args(op, self.kernels[kernel][1], fields)
        else:
            fields.append(".kernel = -1")
        for arg, words in entry.get("choices", {}).items():
            words_c = ", ".join(f'"{word}"' for word in words)
            fields.append(f".choices = &(const tni_choices){{{op.functional.arg(arg).position}, "
                          f'"{arg}", {{{words_c}}}}}')
        if "infer" in entry:
            fields.append(f".infer = {self.declare(entry['infer'], 'tni_build *b')}")
        fields += [f".run = {self.run_function(op)}", f".derivative = {self.derivative(op)}"]
        if "constant" in entry:
            fields.append(".not_differentiable = true")
        return f"    [TNI_OP_{op.c_name}] = {{{', '.join(fields)}}},\n"

    def kernel_args(self, op, kernel, fields):
        rename, constants = op.entry.get("rename", {}), dict(op.entry.get("constants", {}))
        positions, values = [], []
        for _, arg in kernel.args:
            target = op.functional.arg(rename.get(arg, arg))
            if target:
                positions.append(str(target.position))
            elif arg in constants:
                positions.append(f"TNI_ARG_CONSTANT + {len(values)}")
                values.append(self.constant_c(constants[arg]))
            elif op.kind == "general":
                positions.append("TNI_ARG_INFERRED")
            else:
                raise SystemExit(f"operators.toml: {op.schema.name}: nothing fills the kernel's '{arg}'")
        fields.append(f".kernel_args = {{{', '.join(positions) or '0'}}}")
        if values:
            fields.append(f".constants = {{{', '.join(values)}}}")

    def source(self):
        return "".join(
            [f"/* The table of operators, decompositions and derivatives. {GENERATED} */\n"
             "#include \"core/call/promote.h\"\n#include \"core/ops/functions.h\"\n#include \"core/ops/halves.h\"\n\n#include <math.h>\n#include <string.h>\n\n"]
            + [f + "\n" for f in self.functions]
            + ["const tni_op_info tni_op_infos[TNI_OP_COUNT] = {\n"] + self.infos + ["};\n"])

    def header(self):
        out = ["/* Every C function that the table names, for the families that define them.\n"
               f" * {GENERATED} */\n"
               "#ifndef TNI_CORE_OPS_FUNCTIONS_H\n#define TNI_CORE_OPS_FUNCTIONS_H\n\n"
               "#include \"core/call/call.h\"\n#include \"core/ops/operators.h\"\n"]
        for title, part in (("`run`", "run"), ("`infer`", "infer"), ("`grad`: whole backward functions", "backward")):
            names = sorted(name for name in self.declared if name.startswith(f"tni_{part}_"))
            out.append(f"\n/* {title} */\n")
            out += [wrap(f"tn_status {name}({self.declared[name]});") + "\n" for name in names]
        out.append("\n/* called in formulas: owned results, of operators, so that derivatives of derivatives work through\n"
                   " * them; a NULL among the tensors gives NULL */\n")
        out += [wrap(f"tn_tensor *{name}({', '.join(t.strip() for t in types)});") + "\n"
                for name, types in sorted(self.called.items())]
        return "".join(out) + "\n#endif\n"
