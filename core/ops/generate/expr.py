"""Expressions over operators, compiled to C that frees each temporary after its last use.

    low = floor(self); rest = self - low; where(rest > 0.5, low + 1, low)

Names are bound once, the last expression is the result. A tensor is `tn_tensor *`; what a call makes is owned, what
has a name is borrowed. NULL is a failure and passes through every call, so the result alone is checked.
"""

import ast

from emit import default_c

# C types of what a formula gives a function, by kind.
C_TYPES = {"tensor": "tn_tensor *", "int": "int64_t ", "ints": "tn_ints ", "float": "double ", "bool": "bool ",
           "scalar": "tn_scalar ", "dtype": "tn_dtype ", "device": "tn_device ", "str": "const char *"}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
          ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
          ast.BitXor: "bitwise_xor", ast.MatMult: "matmul", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
          ast.Eq: "eq", ast.NotEq: "ne"}
# of a number and a tensor: the operator that has the number last
MIRRORED = {ast.Add: "add", ast.Sub: "rsub", ast.Mult: "mul"}
C_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
               ast.Eq: "==", ast.NotEq: "!="}


def parse(text):
    """([(name, expression)], expression): what is bound, in order, and the result."""
    *bound, last = ast.parse(text).body
    for statement in bound:
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)):
            raise SystemExit(f"operators.toml: '{ast.unparse(statement)}' is not 'name = expression'")
    if not isinstance(last, ast.Expr):
        raise SystemExit(f"operators.toml: '{text}' does not end with its result")
    return [(s.targets[0].id, s.value) for s in bound], last.value


def names_in(text):
    """Names and dotted names that an expression asks for; `self.sizes` does not name `self`."""
    nodes = list(ast.walk(ast.parse(text)))
    inner = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    inner |= {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    bound = {name for name, _ in parse(text)[0]}
    found = [f"{n.value.id}.{n.attr}" if isinstance(n, ast.Attribute) else n.id
             for n in nodes if isinstance(n, (ast.Attribute, ast.Name)) and id(n) not in inner]
    return [name for name in dict.fromkeys(found) if name not in bound]


def count_calls(text):
    return sum(isinstance(n, (ast.Call, ast.BinOp, ast.Compare)) for n in ast.walk(ast.parse(text)))


class Compiler:
    def __init__(self, table, names, where, functions, widens=False, owned=()):
        """names: name -> (kind, C expression); where: for messages; functions: C functions that formulas call
        by name, tni_NAME -> parameters, which are added to; widens: an expression that rounds more than once
        takes halves as f32 and gives f32; owned: names that the expression is to drop, and their C variables"""
        self.table, self.names, self.where, self.functions = table, dict(names), where, functions
        self.widens, self.wide = widens, False
        self.lines, self.n_temps = [], 0
        self.bound = dict(owned)  # C variables of names that own what they stand for

    def fail(self, why):
        raise SystemExit(f"operators.toml: {self.where}: {why}")

    def compile(self, text):
        """Statements go to self.lines; returns a C expression of an owned tensor."""
        bound, last = parse(text)
        self.wide = self.widens and self.rounds_often(ast.parse(text))
        for i, (name, value) in enumerate(bound):
            if name in self.names:
                self.fail(f"'{name}' is bound twice")
            kind, code, owned = self.visit(value)
            self.names[name] = (kind, code)
            if owned:
                self.bound[name] = code
            later = {n.id for tree in [v for _, v in bound[i + 1:]] + [last] for n in ast.walk(tree)
                     if isinstance(n, ast.Name)}
            if name not in later:
                self.fail(f"'{name}' is not used")
            for used in [used for used in self.bound if used not in later]:
                self.lines.append(f"tni_drop({self.bound.pop(used)});")
        kind, code, owned = self.visit(last)
        if kind != "tensor":
            self.fail(f"'{text}' is no tensor but {kind}")
        if not owned and code in self.bound.values():
            self.bound = {name: held for name, held in self.bound.items() if held != code}
            owned = True
        self.lines += [f"tni_drop({held});" for held in self.bound.values()]
        return code if owned else f"tni_keep_opt({code})"

    def visit(self, node):
        if isinstance(node, ast.Name):
            if node.id in ("inf", "nan"):
                return "constant", float(node.id), False
            if node.id not in self.names:
                self.fail(f"no argument or result '{node.id}'")
            kind, code = self.names[node.id]
            if self.wide and kind == "tensor" and node.id not in self.bound:
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
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.call("logical_not", [self.visit(node.operand)])
        if isinstance(node, ast.BinOp):
            return self.binary(node, node.op, node.left, node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self.binary(node, node.ops[0], node.left, node.comparators[0])
        if isinstance(node, ast.IfExp):
            return self.choice(node)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
            return self.given_or(node)
        result = None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            node, result = node.value, node.slice.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            named = {k.arg: self.visit(k.value) for k in node.keywords}
            return self.call(node.func.id, [self.visit(a) for a in node.args], named, result)
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
        if kind in ("int", "float"):
            return kind, f"-{code}", False
        return self.call("neg", [value])

    def binary(self, node, operator, left_node, right_node):
        left, right = self.visit(left_node), self.visit(right_node)
        name = BINARY.get(type(operator)) or self.fail(f"no operator does '{ast.unparse(node)}'")
        if left[0] == "tensor":
            return self.call(name if right[0] == "tensor" else name + "_scalar", [left, right])
        if right[0] == "tensor":
            mirrored = MIRRORED.get(type(operator)) or self.fail(
                f"'{ast.unparse(node)}': a number stands left of + - * alone")
            return self.call(mirrored + "_scalar", [right, left])
        if {left[0], right[0]} - {"int", "float", "constant"} or type(operator) not in C_OPERATORS:
            self.fail(f"'{ast.unparse(node)}' is of {left[0]} and {right[0]}")
        kinds = {"float" if isinstance(code, float) else kind for kind, code, _ in (left, right)}
        kind = "bool" if isinstance(node, ast.Compare) else "float" if "float" in kinds else "int"
        return kind, f"({left[1]} {C_OPERATORS[type(operator)]} {right[1]})", False

    def condition(self, node):
        """A truth about arguments, as C."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.condition(node.operand)}"
        if isinstance(node, ast.BoolOp):
            joined = " && " if isinstance(node.op, ast.And) else " || "
            return f"({joined.join(map(self.condition, node.values))})"
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            kind, code = self.names.get(getattr(node.left, "id", ""), (None, None))
            value = node.comparators[0].value
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and value is None and kind in ("tensor", "scalar"):
                absent = f"tni_not_tensor({code})" if kind == "tensor" else f"({code}.tag == TN_CELL_NONE)"
                return absent if isinstance(node.ops[0], ast.Is) else f"!{absent}"
            if kind == "str" and isinstance(node.ops[0], ast.Eq):
                return f'(strcmp({code}, "{value}") == 0)'
        kind, code, _ = self.visit(node)
        return code if kind == "bool" else self.fail(f"'{ast.unparse(node)}' is no condition")

    def choice(self, node):
        """One of two tensors; only that is computed."""
        condition, name = self.condition(node.test), f"t{self.n_temps}"
        self.n_temps += 1
        test = condition if condition.startswith("(") else f"({condition})"
        self.lines += [f"tn_tensor *{name};", f"if {test} {{"]
        for branch, end in ((node.body, "} else {"), (node.orelse, "}")):
            kind, code, owned = self.visit(branch)
            if kind != "tensor":
                self.fail(f"'{ast.unparse(branch)}' is no tensor but {kind}")
            self.lines += [f"{name} = {code if owned else f'tni_keep_opt({code})'};", end]
        return "tensor", name, True

    def given_or(self, node):
        """A dtype, device or list that was given, else the other."""
        (kind, given, _), (other_kind, other, _) = map(self.visit, node.values)
        left_out = {"dtype": f"{given} == TN_DTYPE_NONE", "device": f"{given}.type == 0", "ints": f"{given}.n < 0"}.get(kind)
        if not left_out or kind != other_kind:
            self.fail(f"'{ast.unparse(node)}' is of {kind} and {other_kind}")
        return kind, f"({left_out} ? {other} : {given})", False

    def call_into(self, text, outs):
        """Statements that call one operator and put its results into `outs`, C expressions; they leave `status`."""
        tree = parse(text)[1]
        op = self.table.by_c_name(tree.func.id) if isinstance(tree, ast.Call) and not tree.keywords else None
        if not op or op.n_outs != len(outs):
            self.fail(f"'{text}' is no call of an operator with {len(outs)} results")
        code, values = self.arguments(tree.func.id, op, [self.visit(a) for a in tree.args], {})
        results = [f"&{out}" for out in outs]
        self.lines.append(f"tn_status status = tni_{tree.func.id}({', '.join(code + results)});")
        self.drop(values)

    def call(self, name, values, named=(), result=None):
        """A call of an operator (defaults filled in), else of the C function tni_NAME, which returns a tensor. Of an
        operator with several results one is taken, by its number."""
        op = self.table.by_c_name(name)
        code, values = self.arguments(name, op, values, named)
        if result is None:
            temp = self.temp(f"tni_{name}({', '.join(code)})")
        else:
            results = [self.temp("NULL") for _ in op.schema.rets]
            self.lines.append(f"(void)tni_{name}({', '.join(code + ['&' + r for r in results])});")
            temp = results.pop(result)
            self.lines += [f"tni_drop({other});" for other in results]
        self.drop(values)
        return "tensor", temp, True

    def drop(self, values):
        for value in values:
            if value[2]:
                self.lines.append(f"tni_drop({value[1]});")

    def arguments(self, name, op, values, named):
        """C of each argument, and the values behind them."""
        named = dict(named)
        if op:
            args = op.schema.args
            if len(values) > len(args):
                self.fail(f"{name} takes {len(args)} arguments")
            code = []
            for i, arg in enumerate(args):
                if i < len(values):
                    code.append(self.convert(values[i], arg))
                elif arg.name in named:
                    values.append(named.pop(arg.name))
                    code.append(self.convert(values[-1], arg))
                elif arg.has_default:
                    code.append(default_c(arg))
                    values.append(("constant", None, False))
                else:
                    self.fail(f"{name}: argument '{arg.name}' is missing")
        else:
            code = [code for _, code, _ in values]
            self.declare(name, values)
        if named:
            self.fail(f"{name} has no argument {sorted(named)}")
        return code, values

    def declare(self, name, values):
        """The C function of a formula; all formulas that call it give it the same."""
        if any(kind == "constant" for kind, _, _ in values):
            self.fail(f"{name} is no operator, so its C function has no argument for a constant")
        types = [C_TYPES[kind] for kind, _, _ in values]
        if self.functions.setdefault(f"tni_{name}", types) != types:
            self.fail(f"{name} gets {types} here and {self.functions[f'tni_{name}']} elsewhere")

    def convert(self, value, arg):
        kind, code, _ = value
        if kind == "constant":
            return constant_c(code, arg, self.fail)
        if arg.kind == "scalar" and kind in ("int", "float"):
            return f"tn_{kind}({code})"
        if arg.kind == "float" and kind == "int":
            return f"(double){code}"
        if kind != arg.kind:
            self.fail(f"argument '{arg.name}' is {arg.kind}, given {kind} '{code}'")
        return code


def constant_c(value, arg, fail):
    """A Python constant as C for an argument."""
    class Given:
        pass
    given = Given()
    given.__dict__.update(arg.__dict__, default=value, has_default=True)
    given.kind, given.c_type = arg.kind, arg.c_type
    return default_c(given)
