"""Argument lists beyond those of operators.toml, which every operator is called with anyway. Pointwise
operators need none: calls.py spreads theirs over shapes, values and dtypes.
"""

REDUCE = ["f(3, 5, 7), (1,)", "f(3, 5, 7), (-1, 0)", "f(3, 5, 7), ()", "f(4, 0, 3), (1,)", "f(4, 0, 3), (0,)", "f(0), (0,)",
          "f(1, 6, 1), (0, 2), True", "f(), ()", "f(), (-1,), True", "wide(5, 9), (1,)", "strewn(6, 7), (-1,)",
          "special(24, 4), (0,)", "f(131), (0,)", "f(2, 70), (1,), True", "f(70, 2), (0,)", "apart(3, 4, 5), (2, 0)"]
ALL = ["f(3, 5, 7)", "f(0)", "f(2, 0)", "f()", "f(131)", "wide(23)", "strewn(40)", "special(6)", "apart(1, 30, 1)",
       "listed(3)"]
ALONG = ["f(3, 5, 7), 1", "f(3, 5, 7), -1", "f(3, 5, 7), 0", "f(4, 0, 3), 1", "f(4, 0, 3), 0", "f(), -1", "f(131), 0",
         "f(2, 70), 1", "f(70, 2), 0", "f(1, 6), 0", "wide(3, 9), 1", "strewn(6, 7), 1", "special(5, 4), -1"]
KEEP = ["apart(3, 5, 7), 1, True", "apart(3, 5, 7), -3", "apart(131), 0", "apart(2, 70), -1, True", "apart(70, 2), 0",
        "apart(), 0", "apart(1, 6), 0", "strewn(4, 9), 1", "wide(4, 9), 0", "f(5, 8), 1"]
NORMS = ["f(3, 4, 6), (6,)", "f(2, 37), (37,), f(37), f(37)", "f(2, 3, 5), (3, 5), f(3, 5)",
         "f(2, 3, 5), (5,), None, f(5), 0.01", "f(0, 4), (4,), f(4), f(4)", "apart(2, 64), (64,), f(64), None",
         "f(7), (7,)"]
PICK = ["f(7, 3), 0, idx(7, 5)", "f(2, 9, 3), 1, idx(9, 4)", "f(2, 9, 3), -1, idx(3, 0)", "wide(12), 0, idx(12, 30)",
        "special(6, 4), 0, idx(6, 3)"]
CONVOLVE = ["f(1, 1, 5, 7), f(2, 1, 3, 2), f(2), (2, 1), (1, 1), (1, 1), 1",
            "f(2, 3, 6, 6), f(4, 3, 1, 1), None, (1, 1), (0, 0), (1, 1), 1",
            "f(1, 4, 7, 7), f(4, 1, 3, 3), f(4), (1, 1), (1, 1), (1, 1), 4",
            "f(1, 2, 9, 9), f(2, 2, 3, 3), f(2), (2, 2), (2, 2), (2, 2), 1",
            "f(0, 2, 4, 4), f(3, 2, 3, 3), None, (1, 1), (1, 1), (1, 1), 1",
            "f(2, 6, 5, 5), f(4, 3, 2, 3), f(4), (1, 2), (1, 0), (1, 1), 2",
            "f(1, 3, 4, 11), f(5, 3, 4, 5), f(5), (1, 3), (0, 2), (1, 1), 1"]
POOL = ["(3, 2), (2, 1), (1, 0)", "(2, 2), (2, 2), (0, 0)", "(3, 3), (1, 1), (1, 1)", "(4, 5)", "(1, 1)"]
AROUND = [[("2, 3, 7", "(6, 5)"), ("3, 9", "(-2, 4)"), ("0, 2, 5", "(1, 1)"), ("3, 5", "(0, 0)"),
           ("1, 131", "(3, -90)"), ("2, 4", "(-1, -2)")],
          [("2, 3, 4, 5", "(4, 1, 0, 3)"), ("3, 5, 4", "(-1, 3, 2, -2)"), ("0, 2, 3, 3", "(1, 2, 1, 1)"),
           ("1, 2, 3", "(0, 0, 1, 1)")],
          [("2, 3, 4, 3, 5", "(4, 1, 0, 2, 3, 3)"), ("2, 3, 5, 4", "(-1, 3, 2, -2, 1, 0)"),
           ("0, 2, 2, 3, 2", "(1, 1, 1, 2, 0, 1)")]]
NEAREST = [["f(2, 3, 7), (11,)", "special(2, 3, 12), (24,)", "f(2, 3, 9), (4,)", "f(0, 2, 5), (3,)",
            "f(1, 1, 131), (50,)", "f(1, 2, 3), (3,)", "f(1, 2, 6), (5,), 0.5", "f(1, 2, 6), (9,), 1.5",
            "f(1, 2, 6), (9,), -1.0", "f(1, 1, 2, 'f32'), (82,)"],
           ["f(2, 3, 7, 4), (11, 3)", "special(2, 3, 4, 6), (8, 12)", "f(2, 3, 5, 6), (5, 4)", "f(0, 2, 5, 4), (3, 3)",
            "f(1, 2, 6, 5), (9, 7), 1.5, 1.4", "f(1, 5, 4, 4), (6, 6), None, 1.25"],
           ["f(2, 3, 2, 7, 4), (3, 11, 3)", "special(1, 2, 3, 2, 4), (6, 4, 8)", "f(1, 2, 4, 3, 5), (2, 3, 5)",
            "f(0, 2, 5, 4, 1), (3, 3, 3)", "f(1, 2, 2, 3, 3), (4, 4, 4), 2.0, 1.3, 1.4"]]


def interpolated(n):
    """Argument lists of the operators that interpolate along n dimensions."""
    shapes = [((2, 3, 7), (11,)), ((1, 2, 12), (24,)), ((2, 3, 9), (4,)), ((0, 2, 5), (3,)), ((1, 2, 3), (3,)),
              ((1, 1, 1), (4,)), ((2, 1, 5), (1,))]
    if n > 1:
        shapes = [(s + s[2:] * (n - 1), o * n) for s, o in shapes[2:]]
        shapes += [(s + (3,) * (n - 2), o + (5,) * (n - 2))
                   for s, o in [((2, 2, 4, 7), (9, 3)), ((1, 3, 5, 1), (5, 6))]]
    lists = [f"f{s}, {o}, {corners}" for s, o in shapes for corners in (False, True)]
    scales = ", ".join(["1.7", "0.45", "2.5"][:n])
    return lists + [f"{kind}{(1, 2) + (5, 4, 3)[:n]}, {(8, 3, 5)[:n]}, {corners}, {scales}"
                    for kind in ("f", "strewn") for corners in (False, True)]


LINES = ["(3,), (2,), (1,)", "(2,)", "(4,), (3,)", "(1,)"]
VOLUMES = ["(2, 3, 2), (1, 2, 1), (1, 1, 0)", "(2, 2, 2)", "(3, 3, 3), (1, 1, 1), (1, 1, 1)", "(1, 4, 5)", "2"]
ROWS = ["2.0", "1.0", "0.0", "inf_", "3.0", "1.5", "0.5"]
LOSSES = ["f(3, 5), {0}(3, 5), 'none'", "f(7), {0}(7), 'sum'", "f(2, 3, 4), {0}(2, 3, 4), 'mean'", "f(0), {0}(0), 'sum'",
          "wide(9), {0}(9), 'none'", "f(), {0}()", "f(67), {0}(67)"]
CELL = "f(5, 3), {0}, f({1}, 3), f({1}, 7), f({1}), f({1}); f(5, 3), {0}, f({1}, 3), f({1}, 7), None, f({1})"


def layers(gates, state):
    """Argument lists of recurrent layers: 5 steps of 3 images with 4 features, 2 of them hidden."""
    def params(n, directions, biases):
        rows, out = 2 * gates, []
        for i in range(n * directions):
            out += [f"f({rows}, {4 if i < directions else 2 * directions})", f"f({rows}, 2)"] + [f"f({rows})"] * (2 * biases)
        return f"[{', '.join(out)}], {bool(biases)}, {n}, 0.0, False, {directions == 2}"
    return [f"f({'3, 5' if first else '5, 3'}, 4), {state.format(n * directions, 3, 2)}, "
            f"{params(n, directions, biases)}, {first}" for n, directions, biases, first in (
                (1, 1, 1, True), (2, 1, 0, False), (1, 2, 1, False), (2, 2, 1, True), (3, 1, 0, True))]


EXTRA = {
    # factories
    "full": ["(2, 3), 1.5, 'T'", "(), 3, 'T'", "(0,), 2", "(2, 0, 3), 1", "(7,), True", "(5,), -1, 'T'", "(3,), 300, 'T'",
             "(70,), 7"],
    "zeros": ["(2, 3), 'T'", "(), 'T'", "(0,)", "(67,)"],
    "ones": ["(2, 3), 'T'", "(), 'T'", "(0,)", "(67,)"],
    "full_like": ["f(2, 3), -2", "f(0), 1", "f(5), True", "f(3), 2.5, 'T'", "f(3, 'f32'), 2, 'T'", "f(3), 300"],
    "zeros_like": ["f(), 'f16'", "f(0, 3)", "f(3, 'f32'), 'T'"],
    "ones_like": ["f(), 'f16'", "f(0, 3)", "f(3, 'f32'), 'T'"],
    "arange": ["0", "7.5", "5, 'T'", "3.5, 'T'", "100", "True"],
    "arange.start": ["0, 10, 3", "5, -6, -2", "0.0, 1.0, 0.125", "2, 2", "-3.5, 4, 1.25", "1, 9, 2, 'T'",
                     "0.5, 6.75, 1.25, 'T'", "0, 2, 0.5, 'T'", "9, 1, -3, 'T'", "3.1, 7.9, 1, 'T'", "-2.5, 2.5, 1, 'T'",
                     "0, 130, 1"],
    "linspace": ["-2.0, 3.0, 11", "3, 3, 1", "0, 1, 0", "5, -5, 21", "0, 10, 5, 'T'", "-3.5, 8.5, 7, 'T'", "0.0, 1.0, 67",
                 "2.0, 7.0, 2", "0, 100, 9, 'T'"],
    "eye": ["0", "1", "5, 'T'", "9"],
    "eye.m": ["0, 4", "4, 0", "2, 5, 'T'", "7, 3, 'T'", "9, 9"],
    # copies and casts
    "copy_": ["f(3, 5), f(5)", "f(3, 4), f(1, 1)", "f(2, 3, 'f32'), f(2, 3)", "f(2, 3), f(2, 3, 'f64')",
              "f(2, 3), f(2, 3, 'i32')", "f(2, 3), f(2, 3, 'bool')", "f(0), f(0)", "f(67), f(67, 'bf16')",
              "f(24), listed(24)", "f(2, 3, 'f16'), wide(2, 3)", "f(24, 'f64'), listed(24)", "f(), f()",
              "f(5, 7, layout='strided'), f(5, 7, layout='transposed')"],
    "to": ["f(2, 3), 'T'", "f(2, 3), None, None, True", "f(5, 'f64'), 'T'", "wide(9, 'f32'), 'f16'", "f(9, 'i32'), 'T'"],
    "to.dtype": [f"{k}, '{d}'" for d in ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "bool")
                 for k in ("f(17)", "f(2, 0)", "f()", "f(3, 5, layout='transposed')")]
                + [f"listed(24), '{d}'" for d in ("f32", "f64", "f16", "bf16", "bool")]
                + [f"wide(40), '{d}'" for d in ("f32", "f64", "f16", "bf16", "bool")],
    "to_copy": ["f(2, 3), 'T'", "f(2, 3), 'f32'", "f(7), 'bool'", "listed(24)", "f(4, 6, layout='transposed')"],
    "clone": ["f(0)", "listed(24)", "wide(4, 9, layout='transposed')"],
    "contiguous": ["f(3, 5, layout='transposed')", "f(3, 5, layout='strided')", "f(3, 5, layout='expanded')", "f(0)",
                   "f()", "listed(24)"],
    "fill_": ["f(2, 3), 1.5", "f(2, 3), -1", "f(67), 3", "f(), 2", "f(0), 2", "f(4), True", "f(3), 300",
              "f(3, 5, layout='transposed'), 7"],
    "zero_": ["f(67)", "f()", "f(0)", "f(3, 5, layout='strided')"],
    # views
    "view": ["f(2, 3, 4), (4, 6)", "f(2, 3, 4), (-1, 2)", "f(0, 3), (3, 0)", "f(6), (6,)",
             "f(2, 6, layout='offset'), (3, 4)"],
    "reshape": ["f(2, 3, 4), (4, 6)", "f(2, 3, 4, layout='transposed'), (6, 4)", "f(0, 3), (3, 0)", "f(), (1,)",
                "f(1), ()", "f(2, 6), (-1, 4)"],
    "flatten": ["f(2, 3, 4), 0, 1", "f(2, 3, 4), -2", "f(2, 0, 3)", "f(2, 3, 4, layout='transposed')", "f(7)"],
    "permute": ["f(2, 3, 4), (-1, 0, 1)", "f(), ()", "f(3, 0), (1, 0)", "f(2, 1, 3, 2), (3, 1, 0, 2)"],
    "transpose": ["f(2, 3, 4), 1, 2", "f(3), 0, 0", "f(), 0, -1", "f(0, 2), 0, 1"],
    "t": ["f()", "f(5, 2)", "f(0, 3)"],
    "expand": ["f(1, 3), (4, -1)", "f(3, 1), (2, 3, 5)", "f(1), (0,)", "f(2, 3), (2, 3)", "f(), (3,)"],
    "select": ["f(4, 5, 3), 1, 2", "f(4, 5, 3), -3, -1", "f(7), 0, 6"],
    "slice": ["f(9), 0, 1, 8, 3", "f(4, 7), 1, -4", "f(4, 7), -1, None, -2", "f(5), 0, 3, 2", "f(5), 0, -99, 99, 2",
              "f(0), 0, 0, 5", "f(3, 4, 5), 1, 1, None, 2"],
    "narrow": ["f(5, 7), 1, 2, 4", "f(5), -1, 5, 0", "f(5), 0, -2, 2", "f(3, 4), -2, 0, 3"],
    "squeeze": ["f(1, 1)", "f(2, 1, 3, 1)", "f()", "f(0, 1)"],
    "squeeze.dim": ["f(2, 1, 3), 1", "f(2, 1, 3), -2", "f(2, 3), -1", "f(), 0"],
    "unsqueeze": ["f(2, 3), 1", "f(2, 3), -3", "f(0), 1"],
    "as_strided": ["f(12), (3, 4), (1, 3)", "f(12), (2, 3), (6, 2), 1", "f(12), (), (), 5", "f(12), (0,), (1,)",
                   "f(12), (3,), (-0,)"],
    "diagonal": ["f(4, 5)", "f(4, 5), -2", "f(3, 4, 5), 1, 0, 2", "f(3, 4, 5), 0, -1, -2", "f(3, 3), 3", "f(0, 3)"],
    "alias": ["f()", "f(0)", "f(3, 5)"], "detach": ["f()", "f(0)", "f(3, 5)"],
    "unbind": ["f(3, 2, 4), -1", "f(3, 2, 4), 1", "f(5)"],
    "split": ["f(7), 3", "f(3, 8), 8, 1", "f(3, 8), 3, -1", "f(4), 9"],
    "chunk": ["f(7), 3", "f(3, 8), 3, 1", "f(2), 5", "f(6, 2), 1, 0", "f(9, 2), 4, -2"],
    # joining and indexing
    "cat": ["[f(3), f(0), f(5)], 0", "[f(2, 3), f(2, 1), f(2, 4)], 1", "[f(2, 3, 2)], -2", "[f(2, 2), f(2, 2, 'f64')], 0",
            "[f(2, 2), f(2, 2, 'i32')], -1", "[f(2, 2), f(2, 2, 'bool'), f(1, 2, 'f16')], 0",
            "[wide(30), special(40)], 0", "[f(1, 2), f(1, 2), f(1, 2), f(1, 2), f(1, 2)], 0"],
    "stack": ["[f(2, 3), f(2, 3), f(2, 3)], 1", "[f(), f()], 0", "[f(5)], 0", "[f(3), f(3, 'f32')], 1", "[f(0), f(0)], -1"],
    "gather": ["f(5, 4), 0, idx(5, 3, 4)", "f(5, 4), -1, idx(4, 5, 9)", "f(3, 4, 5), 1, idx(4, 2, 6, 3)",
               "f(7), 0, idx(7, 0)", "f(), 0, idx(1)", "special(20), 0, idx(20, 33)"],
    "scatter_add": ["f(5, 4), 0, idx(5, 3, 4), f(3, 4)", "f(3, 4, 5), 1, idx(4, 2, 6, 3), f(2, 6, 3)",
                    "f(4), 0, idx(4, 40), f(40)", "f(7), 0, idx(7, 0), f(0)", "f(3, 2), -1, idx(2, 3, 5), f(3, 6)",
                    "wide(5), 0, idx(5, 20), wide(20)"],
    "scatter.src": ["f(5, 4), 0, idx(5, 3, 4), f(3, 4)", "f(3, 4, 5), 1, idx(4, 2, 6, 3), f(2, 6, 3)",
                    "f(4), 0, idx(4, 40), f(40)", "f(7), 0, idx(7, 0), f(0)", "f(3, 2), -1, idx(2, 3, 5), f(3, 6)",
                    "special(6), 0, idx(6, 9), special(9)", "f(), 0, idx(1), f()", "f(4, 3), 1, idx(3, 4, 1), f(4, 1)"],
    "scatter.value": ["f(5, 4), 0, idx(5, 3, 4), 2", "f(3, 4, 5), 1, idx(4, 2, 6, 3), 1.5", "f(7), 0, idx(7, 0), 3",
                      "f(4), 0, idx(4, 40), True", "special(6), 0, idx(6, 2), 1"],
    "scatter_reduce.two": [f"{kind}(5, 4), 0, idx(5, 7, 4), {kind}(7, 4), '{word}', {own}" for kind, word in (
                               ("f", "sum"), ("away", "prod"), ("apart", "mean"), ("apart", "amax"), ("apart", "amin"))
                           for own in ("True", "False")]
                          + ["apart(7), 0, idx(7, 0), f(0), 'amax'", "apart(3, 2), -1, idx(2, 3, 5), apart(3, 6), 'amin'",
                             "tame(4), 0, idx(4, 20), tame(20), 'amax'", "away(3), 0, idx(3, 33), away(33), 'prod', False"],
    "masked_scatter": ["f(3, 4), mask(4), f(12)", "f(67), mask(67), f(80)", "f(0), mask(0), f(0)",
                       "special(30), mask(30), special(30)", "f(2, 1), mask(2, 3), f(6)"],
    "select_scatter": ["f(4, 5, 3), f(4, 3), 1, 2", "f(4, 5, 3), f(4, 5), -1, -3", "f(7), f(), 0, 6",
                       "f(3, 2), f(2, 'f32'), 0, 0"],
    "slice_scatter": ["f(9), f(3), 0, 1, 8, 3", "f(4, 7), f(4, 4), 1, -4", "f(4, 7), f(4, 5), -1, None, -2",
                      "f(5), f(3), 0, -99, 99, 2", "f(5), f(0), 0, 3, 2", "f(3, 2), f(3, 2, 'f32')"],
    "diagonal_scatter": ["f(4, 5), f(4)", "f(4, 5), f(2), -2", "f(3, 4, 5), f(4, 3), 1, 0, 2", "f(3, 3), f(0), 3"],
    "index_fill.int_Scalar": ["f(5, 3), 0, idx(5, 2), 2", "f(2, 9, 3), -2, idx(9, 4), 1.5", "f(3), 0, idx(3, 0), 1",
                              "special(6), 0, idx(6, 2), True", "f(2, 4), -1, idx(4), 3"],
    "index_copy": ["f(7, 3), 0, idx(7, 5), f(5, 3)", "f(2, 9, 3), 1, idx(9, 4), f(2, 4, 3)",
                   "f(2, 4), -1, idx(4, 9), f(2, 9)", "f(3), 0, idx(3, 0), f(0)", "special(5), 0, idx(5, 20), special(20)"],
    "index.Tensor": ["f(5, 4), [mask(5, 4)]", "f(5, 4), [mask(5)]", "f(3, 5, 4), [None, mask(5, 4)]", "f(5, 3, 4), [mask(5), None, idx(4, 1)]",
                     "f(5, 4), [idx(5, 2, 3), idx(4, 3)]", "f(3, 4, 5, 2), [None, idx(4, 3, 1), idx(5, 2)]",
                     "f(3, 4, 5), [idx(3), None, idx(5, 2)]", "f(7), [idx(7, 0)]", "f(2, 0, 3), [None, idx(1, 0)]",
                     "special(6, 4), [idx(6, 3)]", "f(5, 4), [idx(5, 3, 'i32')]", "f(19, 5), [f(4, 'i64')]",
                     "f(10, 19, 2), [f(3, 'i64'), f(2, 3, 'i64')]", "f(3, 4), [idx(3), idx(4)]"],
    "index_put": ["f(5, 4), [mask(5, 4)], f()", "f(5, 4), [mask(5)], f(4)", "f(3, 5, 4), [None, mask(5, 4)], f(3, 1)",
                  "f(5, 4), [idx(5, 2, 3), idx(4, 3)], f(2, 3)", "f(3, 4, 5, 2), [None, idx(4, 3, 1), idx(5, 2)], f(3, 3, 2, 2)",
                  "f(3, 4, 5), [idx(3), None, idx(5, 2)], f(2, 4)", "f(7), [idx(7, 0)], f(0)", "f(7), [idx(7, 0)], f()",
                  "f(5, 4), [idx(5, 9)], f(9, 4), True", "f(3, 4, 5), [idx(3, 4), None, idx(5, 4)], f(4, 1), True",
                  "special(6, 4), [idx(6, 3)], special(3, 4)", "f(19, 5), [f(4, 'i64')], f(4, 5)", "f(3), [idx(3)], f(), True"],
    "take": ["f(5, 4), idx(20, 3, 2)", "f(7), idx(7, 0)", "f(), idx(1, 3)", "f(20), f(4, 'i64')", "special(9), idx(9, 20)"],
    "take_along_dim": ["f(5, 4), idx(5, 3, 4), 0", "f(5, 1), idx(5, 3, 4), 0", "f(5, 4), idx(4, 1, 9), -1",
                       "f(3, 4, 5), idx(4, 1, 6, 1), 1", "f(5, 4), idx(20, 3, 3)", "f(19, 3), f(4, 3, 'i64'), 0", "f(7), idx(7, 0), 0"],
    "embedding_dense_backward": ["f(9, 4), idx(7, 9), 7, -1, False", "f(2, 3, 4), idx(5, 2, 3), 5, 2, True", "f(4), idx(5), 5, -1, False",
                                 "f(0, 3), idx(5, 0), 5, -1, True", "wide(20, 2), idx(3, 20), 3, 0, False"],
    "embedding_bag": [f"apart(7, 3), idx(7, 9), {offsets}, False, {mode}, False, None, False, {row}" for mode in (0, 1, 2)
                      for offsets, row in (("zero(1, 'i64')", -1), ("listed(2, 'i64')", 3), ("zero(3, 'i64')", 0))]
                     + ["f(7, 3), idx(7, 9), listed(2, 'i64'), True, 0, False, None, False, 2", "f(7, 3), idx(7, 9), listed(2, 'i64'), True, 1",
                        "f(7, 3), idx(7, 9), listed(2, 'i64'), False, 0, False, f(9)", "f(7, 3), idx(7, 1), listed(2, 'i64'), False, 1, False, None, True",
                        "f(5, 2), idx(5, 0), zero(2, 'i64')", "f(5, 2), idx(5, 0), zero(0, 'i64'), False, 2",
                        "f(7, 3), idx(7, 9), listed(2, 'i64'), False, 0, False, f(9), False, 1"],
    "index_select": PICK,
    "index_add": ["f(7, 3), 0, idx(7, 5), f(5, 3)", "f(2, 9, 3), 1, idx(9, 4), f(2, 4, 3), 2",
                  "f(2, 4), -1, idx(4, 9), f(2, 9), -3", "f(3), 0, idx(3, 0), f(0)",
                  "f(3, 4), 0, idx(3, 6), f(6, 4), 1.5", "wide(5), 0, idx(5, 20), wide(20)"],
    "embedding": ["f(7, 4), idx(7, 9)", "f(5, 3), idx(5)", "f(5, 3), idx(5, 0)", "f(4, 6), idx(4, 2, 1, 3)"],
    "where": ["mask(5, 1), f(5, 7), f(7)", "mask(4), special(4), special(4)", "mask(67), f(67), f(67)",
              "mask(), f(3), f(3)", "mask(2, 0), f(1), f()"],
    "masked_fill.Scalar": ["f(5, 7), mask(5, 1), 2", "f(), mask(), 3", "f(67), mask(67), -1", "f(3), mask(2, 3), 1"],
    "nonzero": ["f(3, 4)", "f(67)", "f()", "f(0)", "listed(24)", "f(2, 3, 4)"],
    "masked_select": ["f(3, 4), mask(4)", "f(67), mask(67)", "f(0), mask(0)", "f(4), mask()", "special(30), mask(30)"],
    "tril": ["f(4, 5), 1", "f(4, 5), -2", "f(5, 3), 9", "f(0, 3)", "special(5, 5)", "f(2, 2, 3, 3)"],
    "triu": ["f(4, 5), 1", "f(4, 5), -2", "f(5, 3), 9", "f(0, 3)", "special(5, 5)", "f(2, 2, 3, 3)"],
    # pointwise: of numbers, where the table has masks alone
    "logical_not": ["f(2, 3)"], "bitwise_not": ["f(2, 3)"], "bitwise_and.Tensor": ["f(2, 3), f(2, 3)"],
    "bitwise_or.Tensor": ["f(2, 3), f(2, 3)"], "bitwise_xor.Tensor": ["f(2, 3), f(2, 3)"], "bitwise_and.Scalar": ["f(2, 3), 6"],
    # reductions
    "sum.dim": REDUCE + ["f(3, 4), (1,), False, 'T'", "f(3, 4, 'i32'), (0,), True, 'T'", "f(3, 4, 'f32'), (0,), True, 'T'"],
    "sum": ALL + ["f(3, 4, 'f16'), 'T'", "f(3, 4), 'f64'"],
    "mean.dim": REDUCE + ["f(3, 4), (1,), False, 'f64'", "f(3, 4, 'i32'), (0,), True, 'T'"], "mean": ALL + ["f(3, 4, 'i32'), 'T'"],
    "amax": REDUCE, "amin": REDUCE, "max": ALL, "min": ALL, "any": ALL + ["mask(5)"], "all": ALL + ["pos(5, 3)"],
    "any.dim": REDUCE, "all.dim": REDUCE + ["pos(5, 3), (0,)"],
    "max.dim": KEEP, "min.dim": KEEP,
    "argmax": ["apart(3, 5, 7), -1", "apart(3, 5, 7), 0, True", "apart(131)", "apart(70, 2), 0", "f(40)",
               "strewn(9, 6), 1", "apart(), 0", "apart(), None, True"],
    "argmin": ["apart(3, 5, 7), -1", "apart(3, 5, 7), 0, True", "apart(131)", "apart(70, 2), 0", "f(40)",
               "strewn(9, 6), 1", "apart(), 0", "apart(), None, True"],
    "prod.dim": [s.replace("special", "tame") for s in ALONG] + ["away(3, 4), 1, False, 'T'", "f(3, 4, 'i32'), 0, True, 'T'"], "prod": ["away(3, 5)", "f(7)", "f(0)", "f()", "strewn(20)", "away(9, 'i32'), 'T'"],
    "var.dim": ["f(3, 5, 7), (1,)", "f(3, 5, 7), (-1, 0), 1.0, True", "f(3, 5, 7), (), 0.0", "f(131)",
                "f(2, 70), (1,), 2.0", "f(5, 1), (1,), 0.0", "f(5, 1), (1,)", "strewn(6, 7), (-1,)", "f(4, 0), (1,)",
                "f(4, 0), (0,)", "wide(5, 9), (1,)"],
    "std.dim": ["zero(3, 4), (1,)", "f(3, 5, 7), (1,)", "f(3, 5, 7), (-1, 0), 1.0, True", "f(3, 5, 7), (), 0.0", "f(131)",
                "f(2, 70), (1,), 2.0", "f(5, 1), (1,)", "strewn(6, 7), (-1,)"],
    "norm": ["zero(3, 4)", "away(3, 5, 7)", "f(0)", "away()", "away(131)", "strewn(20)", "away(30, 1)"],
    "norm.ScalarOpt_dim": ["zero(3, 4), 2, (1,)", "zero(3, 4), 3, (1,)", "zero(4), 1, (0,)"] + [f"away(3, 5, 7), {p}, (1,)" for p in ("None", "0", "1", "2", "2.5", "-1", "inf_", "-inf_")]
                          + [f"away(4, 9), {p}, (), True" for p in ("1.0", "3", "0.5", "inf_")] + ["away(131), 2, (0,)", "strewn(5, 6), 1, (-1,)", "away(2, 0), 2, (1,)"],
    "logsumexp": REDUCE, "cumsum": ALONG + ["f(3, 4), 1, 'T'", "f(3, 4, 'i32'), 0, 'T'"],
    "sort": ["apart(3, 5, 7), 1", "apart(131), 0, True", "f(40)", "f(9, 6), 0", "strewn(4, 12), 1, True", "special(30)",
             "apart(), 0", "apart(0), 0", "wide(50), -1", "f(2, 70), -1"],
    "argsort": ["apart(3, 5, 7), 1", "apart(131), 0, True", "f(40)", "special(30)", "apart(), 0", "wide(50), -1"],
    "topk": ["apart(3, 5, 7), 3, 1", "apart(131), 9, 0, False", "apart(4), 0", "apart(5), 5", "apart(), 1, 0",
             "wide(33), 7", "apart(2, 70), 1, -1"],
    # matrices
    "mm": ["f(5, 7), f(7, 3)", "f(1, 9), f(9, 1)", "f(17, 19), f(19, 5)", "f(3, 0), f(0, 4)", "f(0, 3), f(3, 2)",
           "wide(4, 5), wide(5, 4)", "strewn(5, 3), f(3, 6)", "f(2, 70), f(70, 2)"],
    "bmm": ["f(3, 5, 7), f(3, 7, 4)", "f(1, 9, 2), f(1, 2, 9)", "f(0, 2, 3), f(0, 3, 2)", "f(2, 3, 0), f(2, 0, 3)",
            "wide(2, 3, 5), wide(2, 5, 3)"],
    "addmm": ["f(5, 3), f(5, 7), f(7, 3)", "f(3), f(5, 7), f(7, 3), 0, 2", "f(1, 3), f(4, 2), f(2, 3), 2, -1",
              "f(), f(4, 2), f(2, 3), 0.5, 0.25", "f(2, 2), f(2, 0), f(0, 2)", "f(4, 1), f(4, 2), f(2, 5), 1, 0"],
    "matmul": ["f(7), f(7)", "f(5, 7), f(7)", "f(7), f(7, 5)", "f(4, 5, 7), f(7, 2)", "f(3, 5), f(2, 5, 4)",
               "f(2, 1, 3, 4), f(5, 4, 2)", "f(0), f(0)", "f(4), f(2, 3, 4, 5)", "f(2, 3, 4, 5), f(5)"],
    "normalize": ["away(3, 5, 7)", "away(2, 9), 1.0", "zero(2, 3)", "away(7), 2.0, 0", "away(2, 3), 3.0, -1, 0.5", "f(0, 3)"],
    "cosine_similarity": ["away(3, 5, 7), away(3, 5, 7)", "away(5, 3), away(3)", "zero(2, 3), f(2, 3)", "away(67), away(67), 0",
                          "away(0, 3), away(0, 3)", "away(2, 3, 'f32'), away(2, 3), -1"],
    "pairwise_distance": ["f(3, 5, 7), f(3, 5, 7)", "f(5, 7), f(7), 1.0", "f(67), f(67), 3.0", "f(2, 3), f(2, 3), 2.0, 0.5, True", "f(0, 3), f(0, 3)"],
    "cosine_embedding_loss": [f"f(5, 7), f(5, 7), {t}, {m}, '{how}'" for t, m, how in (
        ("pos(5, 'bool')", 0.0, "mean"), ("listed(5, 'i64')", 0.25, "none"), ("listed(5, 'f32')", -0.5, "sum"))]
        + ["f(5), f(5), zero(), 0.0, 'none'", "zero(2, 3), f(2, 3), listed(2, 'i64')"],
    "margin_ranking_loss": ["f(5), f(5), f(5), 0.0, 'none'", "f(3, 5), f(3, 5), listed(3, 5, 'i64'), 0.5", "f(0), f(0), f(0), 1.0, 'sum'"],
    "triplet_margin_loss": ["f(5, 7), f(5, 7), f(5, 7), 1.0, 2.0, 1e-06, True, 'none'", "f(2, 3, 4), f(2, 3, 4), f(2, 1, 4), 4.0, 1.0",
                            "f(5), f(5), f(5), 0.5, 3.0, 0.001, False, 'sum'"],
    "multi_margin_loss": ["f(5, 7), idx(7, 5), 2", "f(5, 7), idx(7, 5), 1, 0.25, pos(7), 'none'", "f(7), idx(7, 1), 1, 1, None, 'none'",
                          "f(7), idx(7), 2, 1, pos(7)", "f(5, 1), idx(1, 5), 1, 1, None, 'sum'", "f(), idx(1)"],
    "multilabel_margin_loss": ["f(5, 7), idx(7, 5, 7), 'none'", "f(4), listed(4, 'i64'), 'none'", "f(1, 3), listed(1, 3, 'i64')", "f(3, 1), idx(1, 3, 1), 'sum'",
                               "f(), idx(1)"],
    "gaussian_nll_loss": ["f(3, 5), f(3, 5), pos(3, 1), True", "f(3, 5), f(5), pos(3, 5), False, 1e-06, 'none'", "f(3, 5), f(3, 5), zero(3, 5), False, 0.5, 'none'",
                          "f(7), f(7), pos(7), False, 0.75, 'sum'", "f(0), f(0), pos(0), True, 1e-06, 'none'"],
    "ctc_loss.IntList": ["f(7, 3, 5), idx(4, 3, 2), (7, 5, 6), (2, 1, 0), 4, 'none'", "f(9, 2, 4), idx(3, 5), (9, 8), (3, 2), 3, 'none'",
                         "f(5, 2, 4), zero(2, 2, 'i64'), (5, 4), (2, 2), 1, 'none'", "f(3, 2, 4), idx(3, 2, 2), (0, 3), (0, 1), 3, 'sum'",
                         "f(4, 2, 4), zero(2, 3, 'i64'), (4, 4), (3, 1), 3, 'none', True", "f(20, 1, 6), idx(5, 1, 7), (20,), (7,), 5",
                         "f(6, 4), idx(3, 2), (6,), (2,), 3, 'none'", "f(6, 4), idx(3, 2, 'i32'), (6,), (2,), 3"],
    "einsum": [
        "'bij,bjk->bik', [f(3, 5, 7), f(3, 7, 4)]", "'ii', [f(5, 5)]", "'ii->i', [f(5, 5)]", "'ij->', [f(3, 5)]",
        "'ij->ji', [f(3, 5)]", "'i,j', [f(3), f(5)]", "'ij,ij->ij', [f(3, 5), f(3, 5)]", "'...ij,...jk', [f(2, 1, 3, 5), f(4, 5, 2)]",
        "'i...->...', [f(3, 5, 2)]", "'i...->i', [f(3, 5, 2)]", "' a b , b -> a ', [f(3, 5), f(5)]", "',i', [f(), f(3)]",
        "'ij,jk,kl->il', [f(3, 5), f(5, 2), f(2, 4)]", "'bA,Ba', [f(2, 3), f(4, 5)]", "'ij,ij->j', [f(3, 5, 'f32'), f(1, 5, 'f32')]",
        "'ij,ij->ij', [f(3, 1), f(1, 5)]", "'ij,jk->ik', [f(3, 0, 'f32'), f(0, 4, 'f32')]", "'iijj->ij', [f(3, 3, 2, 2)]",
        "'abcd,cdef->aebf', [f(2, 3, 4, 5), f(4, 5, 3, 2)]", "'ik,jkl,il->ij', [f(3, 5), f(4, 5, 2), f(3, 2)], (0, 2, 0, 1)",
        "'ij,k->j', [f(3, 5, 'f32'), f(4, 'f32')]", "'', [f()]", "'...', [f(2, 3)]", "'i,i,i,i->i', [f(5), f(1), f(5), f(5)]",
        "'...a,a...->...', [f(2, 3), f(3, 4, 2)]", "'ij,jk->ik', [wide(4, 5), wide(5, 4)]", "'i,i', [f(67), f(67)]"],
    "scaled_dot_product_attention": [
        "f(2, 3, 5, 4), f(2, 3, 7, 4), f(2, 3, 7, 6), mask(5, 7)", "f(2, 3, 4), f(2, 5, 4), f(2, 5, 6), zero(3, 5, 'bool')",
        "f(2, 3, 4), f(2, 5, 4), f(2, 5, 6), listed(3, 1, 'bool')", "f(2, 1, 3, 4), f(3, 5, 4), f(3, 5, 6), mask(5)",
        "f(2, 4, 3, 4), f(2, 2, 5, 4), f(2, 1, 5, 6), mask(2, 1, 3, 5), 0.0, False, None, True",
        "f(4, 3, 4), f(2, 5, 4), f(2, 5, 3), None, 0.0, True, -0.75, True", "f(7, 3), f(4, 3), f(4, 2), None, 0.0, True",
        "f(4, 3), f(7, 3), f(7, 2), None, 0.0, True, 0.0", "f(3, 4, 'f32'), f(0, 4, 'f32'), f(0, 6, 'f32')",
        "f(0, 4, 'f16'), f(5, 4, 'f16'), f(5, 6, 'f16')", "f(3, 4, 'f64'), f(0, 4, 'f64'), f(0, 6, 'f64'), mask(3, 0)",
        "f(0, 3, 4, 'f32'), f(0, 5, 4, 'f32'), f(0, 5, 6, 'f32')", "f(3, 0), f(5, 0), f(5, 2)",
        "f(2, 17, 9), f(2, 33, 9), f(2, 33, 5), f(17, 33, 'f32')", "f(3, 4), f(5, 4), f(5, 2), f(3, 5)"],
    "rnn_tanh_cell": CELL.format("f(5, 7)", 7).split("; "), "rnn_relu_cell": CELL.format("f(5, 7)", 7).split("; "),
    "gru_cell": CELL.format("f(5, 7)", 21).split("; "), "lstm_cell": CELL.format("[f(5, 7), f(5, 7)]", 28).split("; "),
    **{f"{name}.input": layers(gates, state) for name, gates, state in (
        ("rnn_tanh", 1, "f({0}, {1}, {2})"), ("rnn_relu", 1, "f({0}, {1}, {2})"), ("gru", 3, "f({0}, {1}, {2})"),
        ("lstm", 4, "[f({0}, {1}, {2}), f({0}, {1}, {2})]"))},
    "linear": ["f(7), f(3, 7), f(3)", "f(5, 7), f(1, 7)", "f(2, 3, 5), f(4, 5), f(4)", "f(0, 3), f(2, 3), f(2)",
               "f(17, 9), f(19, 9), f(19)"],
    "convolution": CONVOLVE,
    "conv2d": ["f(2, 3, 7, 5), f(4, 3, 3, 2), f(4), (2, 1), (1, 0)", "f(3, 6, 6), f(2, 3, 2, 2)",
               "f(1, 4, 5, 5), f(8, 2, 3, 3), f(8), (1, 1), (1, 1), (1, 1), 2",
               "f(1, 1, 9, 9), f(1, 1, 3, 3), None, 1, 2, 2"],
    "conv1d": ["f(2, 3, 9), f(4, 3, 3), f(4), 2, 1", "f(3, 8), f(2, 3, 2)", "f(1, 4, 12), f(4, 2, 3), f(4), 1, 2, 2, 2",
               "f(0, 2, 5), f(3, 2, 3)"],
    "convolution_backward_input": ["f(1, 4, 3, 3), f(4, 1, 3, 3), (1, 4, 7, 7), (2, 2), (0, 0), (1, 1), 4",
                                   "f(2, 3, 4, 4), f(3, 2, 3, 3), (2, 2, 8, 8), (2, 2), (1, 1), (1, 1), 1"],
    "convolution_backward_weight": ["f(1, 4, 3, 3), f(1, 4, 7, 7), (4, 1, 3, 3), (2, 2), (0, 0), (1, 1), 4",
                                    "f(2, 3, 4, 4), f(2, 2, 8, 8), (3, 2, 3, 3), (2, 2), (1, 1), (1, 1), 1"],
    "max_pool2d_with_indices": [f"apart(2, 3, 7, 6), {p}" for p in POOL] + ["apart(1, 1, 9, 9), (3, 3), (2, 2), (1, 1), (2, 2), True", "apart(3, 5, 5), (2, 2)", "strewn(1, 2, 6, 6), (2, 2)"],
    "max_pool2d": [f"apart(2, 3, 7, 6), {p}" for p in POOL] + ["apart(1, 1, 9, 9), (3, 3), (2, 2), (1, 1), (2, 2), True", "apart(3, 5, 5), (2, 2)"],
    "max_pool2d_backward": ["f(2, 3, 3, 2), idx(20, 2, 3, 3, 2), (2, 3, 5, 4)",
                            "f(1, 1, 6, 6), idx(9, 1, 1, 6, 6), (1, 1, 3, 3)"],
    "avg_pool2d": [f"f(2, 3, 7, 6), {p}" for p in POOL] + ["f(1, 1, 9, 9), (3, 3), (2, 2), (1, 1), True, False", "f(1, 1, 8, 7), (3, 3), (2, 2), (1, 1), True, True", "f(3, 5, 5), (2, 2)"],
    "avg_pool2d_backward": ["f(2, 3, 3, 3), (2, 3, 7, 7), (3, 3), (2, 2), (0, 0), False, True",
                            "f(1, 1, 5, 5), (1, 1, 9, 9), (3, 3), (2, 2), (1, 1), True, False"],
    # padding and resampling
    "flip": ["f(3, 5, 7), (2, 0)", "f(3, 5, 7), (1,)", "f(), (0,)", "f(), ()", "f(0, 3), (0, 1)", "f(4, 0), (0,)",
             "f(131), (-1,)", "special(24, 4), (0, 1)", "f(1, 6, 1), (0, 1, 2)"],
    "roll": ["f(3, 5, 7), (2, -1), (1, 2)", "f(3, 5, 7), 9", "f(), 3", "f(0, 3), 1, 0", "f(0, 3), 1, 1",
             "f(131), -70, 0", "f(4, 5), (1, 2), (0, 0)", "f(4, 5), (0, 10), (-2, -1)", "special(24, 4), -5",
             "f(1, 6), 1, 0"],
    "repeat": ["f(3, 5), (2, 3)", "f(3, 5), (4, 1, 2)", "f(), ()", "f(), (3, 2)", "f(2, 3), (1, 1)", "f(2, 3), (0, 2)",
               "f(0, 3), (2, 2)", "f(1, 5, 1), (3, 1, 2)", "special(24), (2,)", "f(2, 1, 2, 2), (2, 3, 2, 3)"],
    "constant_pad_nd": ["f(3, 5, 7), (1, 2, 3, 0)", "f(3, 5), (-1, -2)", "f(3, 5), (-1, 2, 2, -2), 3", "f(), ()",
                        "f(0, 3), (1, 1, 2, 1), -1", "f(3), (-3, 0)", "f(3), (-1, -2)", "f(3, 5), (0, 0), 2",
                        "special(24), (1, 1)", "f(2, 70), (0, 3, 1, 0), True", "f(2, 3), (1, 1), inf_",
                        "f(2, 3, 2, 3), (1, 0, 0, 1, 1, 1, 0, 2), 5"],
    **{f"{name}_pad{n}d": [f"{kind}({sizes}), {padding}" for kind in ("f", "special") for sizes, padding in around]
       for name in ("reflection", "replication") for n, around in enumerate(AROUND, 1)},
    "upsample_nearest1d": NEAREST[0], "upsample_nearest2d": NEAREST[1], "upsample_nearest3d": NEAREST[2],
    "upsample_linear1d": interpolated(1), "upsample_bilinear2d": interpolated(2),
    "upsample_trilinear3d": interpolated(3), "upsample_bicubic2d": interpolated(2),
    "adaptive_avg_pool1d": ["f(2, 3, 7), (3,)", "f(3, 9), (9,)", "f(2, 3, 131), (1,)", "f(2, 3, 4), (0,)",
                            "f(0, 3, 4), (3,)", "strewn(2, 3, 10), (4,)", "f(1, 2, 3), (11,)", "wide(2, 12), (4,)"],
    "adaptive_avg_pool2d": ["f(2, 3, 7, 5), (3, 4)", "f(3, 9, 8), (3, 4)", "f(1, 2, 31, 17), (1, 1)",
                            "f(2, 3, 4, 5), (0, 2)", "f(0, 3, 4, 5), (3, 2)", "f(2, 0, 4, 5), (3, 2)",
                            "strewn(2, 3, 10, 7), (4, 3)", "f(1, 2, 3, 2), (7, 5)", "f(1, 1, 6, 7), (6, 3)",
                            "wide(2, 6, 5), (4, 2)"],
    "adaptive_avg_pool3d": ["f(2, 3, 4, 7, 5), (2, 3, 4)", "f(3, 2, 9, 8), (1, 3, 4)", "f(1, 2, 3, 5, 4), (1, 1, 1)",
                            "f(0, 3, 2, 4, 5), (2, 3, 2)", "strewn(1, 2, 5, 4, 3), (3, 3, 2)",
                            "f(1, 1, 2, 3, 2), (3, 7, 5)"],
    "adaptive_avg_pool2d_backward": ["f(2, 3, 3, 4), f(2, 3, 7, 5)", "f(3, 3, 4), f(3, 9, 8)",
                                     "f(1, 2, 1, 1), f(1, 2, 31, 17)", "f(0, 3, 2, 2), f(0, 3, 4, 5)",
                                     "strewn(2, 3, 4, 3), f(2, 3, 10, 7)", "f(1, 2, 7, 5), f(1, 2, 3, 2)"],
    "grid_sampler_2d": [f"f(2, 3, 5, 4), f(2, 3, 5, 2), {mode}, {padding}, {corners}" for mode in (0, 1, 2)
                        for padding in (0, 1, 2) for corners in (False, True)]
                       # PyTorch's process ends at large places that it is to mirror
                       + [f"strewn(1, 2, 4, 3), {kind}(1, 4, 3, 2), {mode}, {padding}, False"
                          for kind in ("f", "strewn") for mode in (0, 1, 2) for padding in (0, 1, 2)
                          if kind == "f" or padding < 2]
                       + ["f(0, 3, 5, 4), f(0, 2, 2, 2), 0, 0, False", "f(1, 0, 5, 4), f(1, 2, 2, 2), 0, 0, False",
                          "f(1, 2, 5, 4), f(1, 0, 2, 2), 0, 1, False", "f(1, 2, 1, 1), f(1, 3, 3, 2), 0, 2, True",
                          "f(1, 2, 1, 3), f(1, 3, 3, 2), 2, 2, True", "f(1, 1, 7, 9), above(1, 3, 3, 2), 0, 2, False"],
    "avg_pool1d": [f"f(2, 3, 7), {p}" for p in LINES] + ["f(3, 8), (3,), (2,), (1,), True, False",
        "f(1, 1, 9), (3,), (4,), (1,), True", "f(0, 2, 5), (2,)"],
    "avg_pool3d": [f"f(2, 2, 4, 6, 5), {p}" for p in VOLUMES] + [
        "f(1, 1, 5, 6, 7), 3, 2, 1, True, False", "f(1, 1, 5, 6, 7), 3, 2, 1, True, True",
        "f(2, 5, 6, 4), (2, 3, 2), (2, 2, 3), (1, 1, 1), True, False, 5",
        "f(0, 2, 3, 3, 3), 2", "f(3, 4, 4, 4), (4, 4, 4), (1, 1, 1), (0, 0, 0), False, True, -2"],
    "max_pool1d": [f"apart(2, 3, 7), {p}" for p in LINES] + ["apart(3, 8), (3,), (2,), (1,), (2,), True",
        "strewn(2, 9), (3,)"],
    "max_pool1d_with_indices": [f"apart(2, 3, 7), {p}" for p in LINES] + ["apart(3, 8), (3,), (2,), (1,), (2,), True",
        "f(1, 1, 9), (3,)"],
    "max_pool3d": [f"apart(1, 2, 4, 6, 5), {p}" for p in VOLUMES] + ["apart(1, 1, 5, 6, 7), 3, 2, 1, (1, 2, 1), True",
        "apart(2, 3, 4, 4), 2"],
    "max_pool3d_with_indices": [f"apart(1, 2, 4, 6, 5), {p}" for p in VOLUMES] + [
        "apart(1, 1, 5, 6, 7), 3, 2, 1, (2, 2, 1), True", "apart(2, 3, 4, 4), 2", "f(0, 2, 3, 3, 3), 2"],
    "adaptive_max_pool1d": ["apart(2, 3, 7), (3,)", "apart(3, 8), (5,)", "apart(2, 2, 4), (1,)", "f(0, 2, 5), (2,)",
                            "apart(2, 3), (0,)", "f(1, 1, 9), (4,)"],
    "adaptive_max_pool2d": ["apart(2, 3, 7, 6), (3, 4)", "apart(3, 5, 8), (7, 2)", "apart(2, 2, 4, 4), 1",
                            "f(0, 2, 5, 3), 2",
                            "f(1, 1, 9, 9), (4, 5)"],
    "conv3d": ["f(2, 2, 4, 5, 3), f(3, 2, 2, 3, 2), f(3), (2, 1, 1), (1, 1, 0)", "f(2, 4, 4, 4), f(2, 2, 1, 2, 2)",
               "f(1, 4, 5, 4, 4), f(4, 2, 3, 2, 2), f(4), 1, 1, (2, 1, 2), 2",
               "f(0, 2, 3, 3, 3), f(3, 2, 2, 2, 2), f(3)"],
    "conv_transpose1d": ["f(2, 3, 5), f(3, 4, 3), f(4), 2, 1, 1", "f(3, 4), f(3, 2, 2)",
                         "f(1, 4, 6), f(4, 1, 3), f(2), 1, 2, 1, 2, 2",
                         "f(0, 2, 5), f(2, 3, 3), f(3)"],
    "conv_transpose2d": ["f(2, 3, 4, 5), f(3, 4, 3, 2), f(4), (2, 1), (1, 0), (1, 0)", "f(3, 4, 4), f(3, 2, 2, 2)",
                         "f(1, 4, 3, 3), f(4, 1, 3, 3), f(2), 1, 2, 1, 2, 2",
                         "f(1, 2, 3, 3), f(2, 2, 1, 1), None, 3, 0, 2",
                         "f(0, 2, 5, 4), f(2, 3, 3, 1), f(3)",
                         "f(1, 2, 3, 3), f(2, 2, 2, 2), None, (2, 3), 0, (3, 4), 1, (4, 5)"],
    "conv_transpose3d": ["f(2, 2, 3, 4, 2), f(2, 3, 2, 3, 2), f(3), (2, 1, 1), (1, 1, 0), (1, 0, 0)",
                         "f(2, 3, 3, 3), f(2, 2, 1, 2, 2)",
                         "f(1, 4, 3, 2, 2), f(4, 1, 3, 2, 2), f(2), 1, 1, 0, 2, (2, 1, 2)",
                         "f(1, 2, 3, 2, 2), f(2, 2, 2, 2, 1), None, (2, 1, 3), 0, (3, 1, 2), 1, (4, 2, 1)",
                         "f(0, 2, 3, 3, 2), f(2, 3, 2, 3, 1), f(3)"],
    "im2col": ["f(2, 3, 5, 4), (2, 3), (1, 1), (0, 1), (1, 1)", "f(3, 6, 6), (3, 2), (2, 1), (1, 0), (2, 3)",
               "f(0, 2, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)",
               "special(1, 1, 5, 5), (2, 2), (1, 1), (1, 1), (2, 2)"],
    "col2im": ["f(2, 18, 12), (5, 4), (2, 3), (1, 1), (0, 1), (1, 1)",
               "f(6, 6), (5, 6), (3, 2), (1, 1), (1, 0), (2, 3)",
               "f(0, 8, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1)"],
    "cdist": [f"f(5, 4), f(3, 4), {p}" for p in ROWS] + ["f(2, 1, 3, 4), f(3, 2, 4), 2.0", "f(3, 0), f(2, 0), 2.0",
        "f(0, 3), f(2, 3)", "f(1, 70), f(2, 70), 1.0",
        "zero(2, 3), zero(2, 3), 2.0", "zero(2, 3), zero(2, 3), 0.5",
        "zero(2, 3), zero(2, 3), 1.0"],
    "pdist": [f"f(5, 4), {p}" for p in ROWS] + ["f(1, 3)", "f(4, 0), 1.0", "zero(3, 2), 3.0", "f(9, 2)"],
    # normalisation, softmax, losses
    "softmax": ALONG + ["f(3, 4), 1, 'f32'", "f(3, 4, 'i32'), 0, 'T'"], "log_softmax": ALONG + ["f(3, 4), 1, 'f32'", "f(3, 4, 'i32'), 0, 'T'"],
    "softmax_forward": ALONG, "log_softmax_forward": ALONG,
    "softmax_backward": ["f(3, 5, 7), unit(3, 5, 7), 1", "f(2, 70), unit(2, 70), -1", "f(70, 2), unit(70, 2), 0",
                         "f(), unit(), 0", "f(0, 3), unit(0, 3), 1"],
    "log_softmax_backward": ["f(3, 5, 7), f(3, 5, 7), 1", "f(2, 70), f(2, 70), -1", "f(70, 2), f(70, 2), 0",
                             "f(), f(), 0", "f(0, 3), f(0, 3), 1"],
    "native_layer_norm": NORMS, "layer_norm": NORMS,
    "native_layer_norm_backward": [
        "f(3, 7), f(3, 7), (7,), f(3, 1), pos(3, 1), f(7), f(7)", "f(2, 64), f(2, 64), (64,), f(2, 1), pos(2, 1), f(64), f(64)",
        "f(2, 3, 5), f(2, 3, 5), (3, 5), f(2, 1, 1), pos(2, 1, 1), f(3, 5), f(3, 5)"],
    "layer_norm_backward": ["f(3, 7), f(3, 7), f(3, 1), pos(3, 1), None, (7,)",
                            "f(2, 3, 5), f(2, 3, 5), f(2, 1, 1), pos(2, 1, 1), f(3, 5), (3, 5)",
                            "f(2, 64), f(2, 64), f(2, 1), pos(2, 1), f(64), (64,)"],
    "batch_norm": ["f(4, 3, 5), f(3), f(3), f(3), pos(3), False", "f(4, 3, 5), None, None, f(3), pos(3), False",
                   "f(4, 3, 2, 2), pos(3), f(3), None, None, True, 0.1, 0.01",
                   "f(4, 3, 5), f(3), f(3), f(3), pos(3), True", "f(17, 2), None, None, None, None, True"],
    "native_batch_norm": ["f(4, 3, 5), f(3), f(3), f(3), pos(3), False, 0.1, 0.01",
                          "f(4, 3, 2, 2), pos(3), f(3), None, None, True, 0.1, 0.01",
                          "f(4, 3, 5), None, None, f(3), pos(3), True, 0.5, 0.001",
                          "f(17, 2), None, None, None, None, True, 0.1, 0.01",
                          "f(3, 2, 4, 'f16'), pos(2, 'f32'), f(2, 'f32'), None, None, True, 0.1, 0.01"],
    "native_group_norm": ["f(2, 6, 5), pos(6), f(6), 2, 6, 5, 3, 0.01",
                          "f(3, 4, 2, 4), None, f(4), 3, 4, 8, 4, 0.001", "f(2, 4, 3), f(4), None, 2, 4, 3, 1, 0.01",
                          "f(1, 3), None, None, 1, 3, 1, 1, 0.01", "f(2, 2, 37), f(2), f(2), 2, 2, 37, 2, 0.01"],
    "native_group_norm_backward": ["f(2, 6, 5), f(2, 6, 5), f(2, 3), pos(2, 3), pos(6), 2, 6, 5, 3",
                                   "f(3, 4, 2, 4), f(3, 4, 2, 4), f(3, 4), pos(3, 4), f(4), 3, 4, 8, 4",
                                   "f(2, 4, 3), f(2, 4, 3), f(2, 1), pos(2, 1), None, 2, 4, 3, 1"],
    "group_norm": ["f(2, 6, 5), 3, pos(6), f(6)", "f(3, 4, 2, 4), 4, None, f(4), 0.001", "f(2, 4), 2",
                   "f(2, 2, 37), 2, f(2), f(2)", "f(0, 4, 3), 2, f(4), f(4)"],
    "instance_norm": ["f(2, 3, 5), f(3), f(3), None, None, True, 0.1, 0.01",
                      "f(2, 3, 5), f(3), None, f(3), pos(3), False, 0.1, 0.01",
                      "f(3, 2, 4, 2), None, f(2), f(2), pos(2), True, 0.5, 0.001",
                      "f(4, 1, 37), pos(1), f(1), None, None, True, 0.1, 0.01"],
    "rms_norm": ["f(3, 4, 6), (6,)", "f(2, 37), (37,), f(37)", "f(2, 3, 5), (3, 5), f(3, 5), 0.5",
                 "f(2, 3, 5), (5,), None, 0.01", "f(0, 4), (4,), f(4)",
                 "apart(2, 64), (64,), f(64)", "f(7), (7,)"],
    "nll_loss": ["f(5, 4), idx(4, 5), None, 'sum'", "f(5, 4), idx(4, 5), pos(4), 'mean'",
                 "f(5, 4), idx(4, 5), pos(4), 'none', 2", "f(9, 3), idx(3, 9), None, 'mean', 1",
                 "f(0, 3), idx(3, 0), None, 'sum'"],
    "cross_entropy": ["f(5, 4), idx(4, 5), None, 'sum'", "f(5, 4), idx(4, 5), pos(4), 'mean'",
                      "f(5, 4), idx(4, 5), pos(4), 'none', 2", "f(9, 3), idx(3, 9), None, 'mean', 1",
                      "f(5, 4), idx(4, 5), pos(4), 'mean', -100, 0.2", "f(2, 70), idx(70, 2), None, 'none', -100, 0.1",
                      "wide(4, 6), idx(6, 4)"],
    "mse_loss": [s.format("f") for s in LOSSES],
    "binary_cross_entropy_with_logits": [s.format("unit") for s in LOSSES[-2:]] + ["f(3, 5), unit(3, 5)", "wide(9), unit(9)", "f(2, 3, 4), unit(2, 3, 4)"],
    # optimizer steps
    "fused_sgd_": ["f(67), f(67), f(67), 0.5, 0.0, 0.0, 0.0, False, False",
                   "f(3, 5), f(3, 5), f(3, 5), 0.1, 0.9, 0.5, 0.01, False, False",
                   "f(), f(), f(), 0.1, 0.9, 0.0, 0.1, True, True"],
    "fused_adamw_": ["f(67), f(67), f(67), pos(67), 0.01, 0.9, 0.999, 1e-08, 0.01, 1, False",
                     "f(3, 5), f(3, 5), f(3, 5), pos(3, 5), 0.1, 0.5, 0.75, 0.001, 0.0, 10, True"],
}

# Formulas whose steps overflow, or become NaN, where PyTorch's do not; beside those that kernels.toml says so of.
TAME = ("lerp.", "atan2(", "hypot(")

# Names in argument lists that are no Python.
WORDS = {"-inf_": "-1e999", "inf_": "1e999"}

# Operators whose elements are unspecified or random: shapes and dtypes are compared. {name: argument lists}
SHAPES = {
    "empty_strided": ["(2, 3), (1, 2)", "(), ()", "(0, 4), (4, 1), 'T'"], "empty": ["(2, 3)", "(), 'T'", "(0, 4), 'T'"], "empty_like": ["f(2, 3)", "f(), 'f16'"],
"dropout": ["f(3, 5), 0.5, False"], "native_dropout": ["f(3, 5), 0.5, False", "f(3, 5, 'f16'), 0.5, True"],
    "rand": ["(2, 3), 'f64'", "()", "(0,)"], "randn": ["(2, 3), 'f16'", "()", "(0,)"], "randint": ["0, 5, (3,), 'i32'", "0, 5, ()"], "randperm": ["0", "7, 'i32'"],
    "rand_like": ["f(3, 5)"], "randn_like": ["f(3, 5)"], "uniform_": ["f(3, 5)"], "normal_": ["f(3, 5)"], "bernoulli_mask": ["(), 0.5"],
    "random_bits": ["(4,), 1, 2, 'i32'"],
}

# Not compared at all, and why.
WITHOUT = {
    "to.device": "its argument is a device, of which there is one in a run",
    "random_bits_from": "its words are those of random_bits, which tests/core compares",
    "fused_sgd_from_": "it is fused_sgd_ with a number in memory; tests/core compares the two",
    "fused_adamw_from_": "it is fused_adamw_ with numbers in memory; tests/core compares the two",
}
