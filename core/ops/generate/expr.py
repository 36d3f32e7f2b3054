"""Expressions over operators, compiled to C that frees each temporary after its one use.

A tensor is `tn_tensor *`; what a call makes is owned, what has a name is borrowed. NULL is a failure
and passes through every call, so the result alone is checked.
"""

import ast

from emit import default_c

# C types of what a formula gives a function, by kind.
C_TYPES = {"tensor": "tn_tensor *", "int": "int64_t ", "ints": "tn_ints ", "float": "double ", "bool": "bool ",
           "scalar": "tn_scalar ", "dtype": "tn_dtype ", "device": "tn_device ", "str": "const char *"}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


class Compiler:
    def __init__(self, table, names, where, functions, widens=False):
        """names: name -> (kind, C expression); where: for messages; functions: C functions that formulas call
        by name, tni_NAME -> parameters, which are added to; widens: an expression that rounds more than once
        takes halves as f32 and gives f32"""
        self.table, self.names, self.where, self.functions = table, names, where, functions
        self.widens, self.wide = widens, False
        self.lines, self.n_temps = [], 0

    def fail(self, why):
        raise SystemExit(f"operators.toml: {self.where}: {why}")

    def compile(self, text):
        """Statements go to self.lines; returns a C expression of an owned tensor."""
        tree = ast.parse(text, mode="eval").body
        self.wide = self.widens and self.rounds_often(tree)
        kind, code, owned = self.visit(tree)
        if kind != "tensor":
            self.fail(f"'{text}' is no tensor but {kind}")
        return code if owned else f"tni_keep_opt({code})"

    def visit(self, node):
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                self.fail(f"no argument or result '{node.id}'")
            kind, code = self.names[node.id]
            if self.wide and kind == "tensor":
                return kind, self.temp(f"tni_wide({code})"), True
            return kind, code, False
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name not in self.names:
                self.fail(f"'{name}' is not known here")
            return (*self.names[name], False)
        if isinstance(node, ast.Constant):
            return "constant", node.value, False
        if isinstance(node, ast.List):
            items = [self.visit(item) for item in node.elts]
            if not items:
                return "ints", "TN_SCALAR_SHAPE", False
            return "ints", f"TN_SHAPE({', '.join(str(code) for _, code, _ in items)})", False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.negate(node.operand)
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node.func.id, [self.visit(a) for a in node.args])
        self.fail(f"cannot compile '{ast.unparse(node)}'")

    def rounds_often(self, tree):
        """Products of matrices add up in f32 and are not worth an operand in f32."""
        rounding = 0
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp):
                rounding += 1
            elif isinstance(node, ast.Call):
                op = self.table.by_c_name(node.func.id)
                if op and op.entry["tolerance"] == "dot":
                    return False
                rounding += op.entry["tolerance"] != "exact" if op else node.func.id == "scaled"
        return rounding > 1

    def temp(self, call):
        """A variable with what the call returns."""
        name = f"t{self.n_temps}"
        self.n_temps += 1
        self.lines.append(f"tn_tensor *{name} = {call};")
        return name

    def negate(self, operand):
        kind, code, owned = value = self.visit(operand)
        if kind == "constant":
            return kind, -code, False
        if kind == "scalar":
            return kind, f"tni_scalar_neg({code})", False
        return self.call("neg", [value])

    def binary(self, node):
        left, right = self.visit(node.left), self.visit(node.right)
        name = BINARY.get(type(node.op)) or self.fail("only + - * / are operators")
        if left[0] != "tensor":
            self.fail(f"'{ast.unparse(node)}': the left operand must be a tensor")
        if right[0] == "tensor":
            return self.call(name, [left, right])
        return self.call(name + "_scalar", [left, right])

    def call(self, name, values):
        """A call of an operator (defaults filled in), else of the C function tni_NAME, which returns a tensor."""
        op = self.table.by_c_name(name)
        if op:
            args = op.schema.args
            if len(values) > len(args):
                self.fail(f"{name} takes {len(args)} arguments")
            code = []
            for i, arg in enumerate(args):
                if i < len(values):
                    code.append(self.convert(values[i], arg))
                elif arg.has_default:
                    code.append(default_c(arg))
                else:
                    self.fail(f"{name}: argument '{arg.name}' is missing")
        else:
            code = [code for _, code, _ in values]
            self.declare(name, values)
        temp = self.temp(f"tni_{name}({', '.join(code)})")
        for value in values:
            if value[2]:
                self.lines.append(f"tni_drop({value[1]});")
        return "tensor", temp, True

    def declare(self, name, values):
        """The C function of a formula; all formulas that call it give it the same."""
        if any(kind == "constant" for kind, _, _ in values):
            self.fail(f"{name} is no operator, so its C function has no argument for a constant")
        types = [C_TYPES[kind] for kind, _, _ in values]
        if self.functions.setdefault(f"tni_{name}", types) != types:
            self.fail(f"{name} gets {types} here and {self.functions[f'tni_{name}']} elsewhere")

    def convert(self, value, arg):
        kind, code, _ = value
        if kind != "constant":
            if kind != arg.kind:
                self.fail(f"argument '{arg.name}' is {arg.kind}, given {kind} '{code}'")
            return code
        return constant_c(code, arg, self.fail)


def constant_c(value, arg, fail):
    """A Python constant as C for an argument."""
    class Given:
        pass
    given = Given()
    given.__dict__.update(arg.__dict__, default=value, has_default=True)
    given.kind, given.c_type = arg.kind, arg.c_type
    return default_c(given)
