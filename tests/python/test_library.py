"""Operators and implementations written in Python."""

import ctypes
import gc
import sys
import threading
import traceback
import tracemalloc
import unittest
import weakref
from typing import List, Optional, Tuple

import tenon
from tenon import library


def define(schema, fn, name="pytest::op", **options):
    return library.custom_op(name, fn, schema=schema, **options)


class Defining(unittest.TestCase):
    def test_called_as_an_object_and_by_name(self):
        @library.custom_op("pytest::scaled", schema="(Tensor x, float by=2.0, *, bool negated=False) -> Tensor")
        def scaled(x, by, *, negated):
            """Scales."""
            return x * -by if negated else x * by

        self.assertEqual(scaled(tenon.ones(2)).tolist(), [2, 2])
        self.assertEqual(tenon.ops.pytest.scaled(tenon.ones(2), by=3, negated=True).tolist(), [-3, -3])
        self.assertIn("scaled", dir(tenon.ops.pytest))
        self.assertIn("pytest", dir(tenon.ops))
        define("(Tensor x) -> Tensor", lambda x: x, "pytest2::elsewhere")
        self.assertNotIn("elsewhere", dir(tenon.ops.pytest))
        self.assertIn("pytest::scaled(Tensor x", tenon.ops.pytest.scaled.__doc__)
        self.assertEqual(scaled.__doc__, "Scales.")
        with self.assertRaisesRegex(TypeError, "'by' is float, not str"):
            scaled(tenon.ones(2), "2")
        with self.assertRaisesRegex(AttributeError, "no operator pytest::nosuch"):
            tenon.ops.pytest.nosuch  # noqa: B018
        scaled.unregister()
        with self.assertRaises(AttributeError):
            tenon.ops.pytest.scaled  # noqa: B018
        with self.assertRaisesRegex(tenon.Error, "unregistered"):
            scaled(tenon.ones(2))
        scaled.unregister()

    def test_every_type_of_argument_arrives(self):
        seen = []
        op = define("(Tensor a, Tensor? b, Tensor[] c, Tensor?[] d, int e, int[] f, float g, bool h, Scalar i, str j, "
                    "ScalarType k, Device l, int? m) -> Tensor", lambda *args: seen.extend(args) or args[0])
        a = tenon.ones(1)
        op(a, None, [a, a], [None, a], 2**40, [1, 2], 1, True, 2.5, "text", tenon.int8, "cpu:0", None)
        self.assertEqual([type(one).__name__ for one in seen],
                         ["Tensor", "NoneType", "list", "list", "int", "list", "float", "bool", "float", "str", "dtype",
                          "device", "NoneType"])
        self.assertEqual(seen[4:6] + seen[7:12], [2**40, [1, 2], True, 2.5, "text", tenon.int8, tenon.device("cpu:0")])
        self.assertIsNone(seen[3][0])

    def test_results(self):
        op = define("(Tensor x) -> (Tensor low, Tensor high)", lambda x: (x - 1, x + 1))
        low, high = op(tenon.zeros(1))
        self.assertEqual((low.item(), high.item()), (-1, 1))
        self.assertEqual(op(tenon.zeros(1)).high.item(), 1)
        nothing = define("(Tensor x) -> ()", lambda x: None, "pytest::nothing")
        self.assertIsNone(nothing(low))
        for schema, made in (("(Tensor x) -> Tensor", None), ("(Tensor x) -> Tensor", 3), ("(Tensor x) -> ()", 3),
                             ("(Tensor x) -> (Tensor, Tensor)", (low,)), ("(Tensor x) -> (Tensor, Tensor)", (low, 1))):
            with self.assertRaisesRegex(TypeError, "pytest::op: its implementation returned"):
                define(schema, lambda x, made=made: made)(low)
        with self.assertRaises(NotImplementedError):
            define("(Tensor x) -> Tensor[]", lambda x: [x])
        with self.assertRaises(AttributeError):  # nothing is left of what could not be
            tenon.ops.pytest.op  # noqa: B018

    def test_a_schema_by_annotations(self):
        def f(x: tenon.Tensor, n: int, more: List[tenon.Tensor], by: Optional[float] = None, *,
              on: bool = True) -> Tuple[tenon.Tensor, tenon.Tensor]:
            return x, x

        self.assertEqual(library.infer_schema(f),
                         "(Tensor x, int n, Tensor[] more, float? by=None, *, bool on=True) -> (Tensor, Tensor)")

        @library.custom_op("pytest::add_one", mutates_args=("x",))
        def add_one(x: tenon.Tensor) -> None:
            x.add_(1)

        x = tenon.zeros(2)
        before = x._version
        add_one(x)
        self.assertEqual(x.tolist(), [1, 1])
        self.assertGreater(x._version, before)
        for bad in (lambda x: x, lambda *x: x):
            with self.assertRaises(TypeError):
                library.infer_schema(bad)
        with self.assertRaises(ValueError):
            library.infer_schema(f, mutates_args=("z",))

        def quoted(x: tenon.Tensor, text: str = "it's") -> tenon.Tensor:
            return x

        with self.assertRaisesRegex(TypeError, "'text'.*give the schema"):
            library.infer_schema(quoted)

    def test_bad_definitions(self):
        with self.assertRaises(ValueError):
            define("(Tensor x) -> Tensor", abs, "nameless")
        with self.assertRaises(tenon.Error):
            define("(Tensor x -> Tensor", abs)
        with self.assertRaises(tenon.Error):
            library.register_kernel("pytest::nosuch", "cpu", abs)
        with self.assertRaises(TypeError):
            library.register_kernel("add.Tensor", "cpu", 3)

    def test_a_definition_is_replaced(self):
        define("(Tensor x) -> Tensor", lambda x: x + 1)
        op = define("(Tensor x, int n) -> Tensor", lambda x, n: x + n)
        self.assertEqual(tenon.ops.pytest.op(tenon.zeros(1), 3).item(), 3)
        self.assertEqual(op(tenon.zeros(1), 3).item(), 3)


class OfC(unittest.TestCase):
    """A C library defines an operator after the import."""

    class Cell(ctypes.Structure):
        _fields_ = [("tag", ctypes.c_uint32), ("n", ctypes.c_uint32), ("pointer", ctypes.c_void_p)]

    def test_found_and_called(self):
        library_ = ctypes.CDLL("libtenon.so.1")
        for name in ("tn_op_define", "tn_handler_register", "tn_keep"):
            getattr(library_, name).restype = ctypes.c_void_p
        cells, failing = ctypes.POINTER(self.Cell), []

        class KeySet(ctypes.Structure):
            _fields_ = [("backends", ctypes.c_uint64), ("keys", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, KeySet, cells, cells, ctypes.c_void_p)
        def second(op, keys, args, rets, user):
            if failing:
                return library_.tn_fail(3, b"as it was told")
            rets[0].tag, rets[0].pointer = args[1].tag, library_.tn_keep(ctypes.c_void_p(args[1].pointer))
            return 0

        definition = ctypes.c_void_p()
        self.assertFalse(hasattr(tenon.ops.clib, "second"))
        op = library_.tn_op_define(b"clib::second(Tensor a, Tensor b) -> Tensor", b"clib", ctypes.byref(definition))
        handler = ctypes.c_void_p(library_.tn_handler_register(ctypes.c_void_p(op), 0, None, second, None, b"clib"))
        self.assertEqual(tenon.ops.clib.second(tenon.ones(1), b=tenon.zeros(1)).item(), 0)
        library.register_kernel("clib::second", "sim", lambda a, b: a + b)
        self.assertEqual(tenon.ops.clib.second(*(tenon.ones(1, device="sim:0"),) * 2).item(), 2)
        failing.append(1)
        with self.assertRaisesRegex(tenon.Error, "as it was told"):
            tenon.ops.clib.second(tenon.ones(1), tenon.ones(1))
        library_.tn_registration_drop(handler)
        library_.tn_registration_drop(definition)
        self.assertFalse(hasattr(tenon.ops.clib, "second"))


class Implementing(unittest.TestCase):
    def test_by_device_type(self):
        op = define("(Tensor x) -> Tensor", lambda x: x + 1)
        op.register_kernel("sim", lambda x: x + 10)
        op.register_fake(lambda x: tenon.empty(x.shape + (2,), device="meta"))
        self.assertEqual(op(tenon.zeros(1)).item(), 1)
        self.assertEqual(op(tenon.zeros(1, device="sim:0")).item(), 10)
        self.assertEqual(op(tenon.zeros(3, device="meta")).shape, (3, 2))

    def test_in_place_of_a_plugins_kernel(self):
        handler = tenon._core._register_handler("erf", "Backend", "sim", lambda x: x * 0 + 7)
        self.assertEqual(tenon.zeros(1, device="sim:0").erf().item(), 7)
        self.assertEqual(tenon.zeros(1).erf().item(), 0)
        tenon._core._drop_handler(handler)
        self.assertEqual(tenon.zeros(1, device="sim:0").erf().item(), 0)

    def test_differentiated_through_what_it_calls(self):
        x = tenon.tensor([3.0], requires_grad=True)
        define("(Tensor x) -> Tensor", lambda x: x * x, composite=True)(x).backward()
        self.assertEqual(x.grad.item(), 6)
        with self.assertRaisesRegex(tenon.UnsupportedError, "pytest::op has no derivative"):
            define("(Tensor x) -> Tensor", lambda x: x * x)(x).backward()

    def test_a_derivative_of_its_own(self):
        op = define("(Tensor x, Tensor[] more, float by, *, bool on=True) -> Tensor",
                    lambda x, more, by, *, on: (x * more[0] * more[1] * by).detach())

        def setup(ctx, inputs, keyword_only_inputs, output):
            x, more, ctx.by = inputs
            ctx.on = keyword_only_inputs["on"]
            ctx.save_for_backward(x, *more, output)
            self.assertEqual(ctx.needs_input_grad, (True, True, False))

        def backward(ctx, grad):
            x, a, b, out = ctx.saved_tensors
            self.assertTrue(ctx.on)
            return grad * a * b * ctx.by, [grad * x * b * ctx.by, None], None

        op.register_autograd(backward, setup_context=setup)
        x, a, b = (tenon.tensor([v], requires_grad=True) for v in (2.0, 3.0, 5.0))
        y = op(x, [a, b], 0.5)
        self.assertEqual((y.item(), y.grad_fn), (15, "OpBackward"))
        y.backward()
        self.assertEqual((x.grad.item(), a.grad.item(), b.grad), (7.5, 5, None))
        with tenon.no_grad():
            self.assertFalse(op(x, [a, b], 0.5).requires_grad)

    def test_a_derivative_of_the_derivative(self):
        op = define("(Tensor x) -> Tensor", lambda x: x * x * x)
        op.register_autograd(lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2 * grad,
                             setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        x = tenon.tensor([2.0], requires_grad=True)
        (first,) = tenon.autograd.grad(op(x), x, create_graph=True)
        (second,) = tenon.autograd.grad(first, x)
        self.assertEqual((first.item(), second.item()), (12, 12))

    def test_gradients_that_are_none(self):
        op = define("(Tensor x) -> Tensor", lambda x: x * 2)
        op.register_autograd(lambda ctx, grad: (grad, grad))
        with self.assertRaisesRegex(ValueError, "2 gradients for 1 arguments"):
            op(tenon.ones(1, requires_grad=True)).backward()
        for schema in ("(Tensor(a!) x) -> ()", "(Tensor x, *, Tensor y) -> Tensor", "(Tensor x) -> ()"):
            with self.assertRaises(ValueError):
                define(schema, lambda *x, **y: None).register_autograd(lambda ctx, grad: grad)


class Failing(unittest.TestCase):
    def test_an_exception_comes_out_as_itself(self):
        class Own(Exception):
            pass

        def fail(x):
            raise Own("why")

        op = define("(Tensor x) -> Tensor", fail)
        for _ in range(3):
            try:
                op(tenon.ones(1))
            except Own as error:
                self.assertEqual(str(error), "why")
                self.assertIn("fail", [frame.name for frame in traceback.extract_tb(error.__traceback__)])
            else:
                self.fail("nothing was raised")
        self.assertEqual((tenon.ones(2) + 1).tolist(), [2, 2])

    def test_an_exception_that_was_caught_within_is_gone(self):
        def inner(x):
            raise KeyError("inner")

        def outer(x):
            try:
                failing(x)
            except KeyError:
                pass
            return tenon.ones(2) @ tenon.ones(3)

        failing = define("(Tensor x) -> Tensor", inner, "pytest::inner")
        op = define("(Tensor x) -> Tensor", outer)
        with self.assertRaises(tenon.ArgumentError):
            op(tenon.ones(1))

    def test_an_exception_that_c_let_pass(self):
        """A later failure of the same kind is not taken for it."""
        def fail(x):
            raise KeyError("passed")

        op, x = define("(Tensor? x) -> Tensor", fail), tenon.ones(1, requires_grad=True)
        c = ctypes.CDLL("libtenon.so.1")
        c.tn_op_find.restype = ctypes.c_void_p
        none, result = OfC.Cell(), OfC.Cell()
        find = ctypes.c_void_p(c.tn_op_find(b"pytest::op"))
        self.assertNotEqual(c.tn_op_call(find, ctypes.byref(none), 1, ctypes.byref(result)), 0)
        c.tn_error_clear()
        y = (x * x).sum()
        y.backward()
        with self.assertRaisesRegex(tenon.Error, "backward"):
            y.backward()
        with self.assertRaises(KeyError):
            op(x)

    def test_without_end(self):
        op = define("(Tensor x) -> Tensor", lambda x: op(x))
        with self.assertRaises(RecursionError):
            op(tenon.ones(1))

    def test_unregistered_by_itself(self):
        def once(x):
            op.unregister()
            return x + 1

        op = define("(Tensor x) -> Tensor", once)
        self.assertEqual(op(tenon.zeros(1)).item(), 1)
        with self.assertRaises(tenon.Error):
            op(tenon.zeros(1))


def growth(work):
    """Bytes of Python's that are there after work() and were not before."""
    tracemalloc.start()
    try:
        work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


class Holding(unittest.TestCase):
    def test_no_reference_is_left(self):
        op = define("(Tensor x, Tensor[] y, int[] z, *, str s='t') -> (Tensor, Tensor)", lambda x, y, z, *, s: (x, y[0]))
        fails = define("(Tensor x) -> (Tensor, Tensor)", lambda x: (x, 1), "pytest::fails")
        x, y, before = tenon.ones(2), [tenon.ones(2)], tenon.memory_stats("cpu:0")["allocated_bytes"]
        counts = [sys.getrefcount(one) for one in (x, y[0], None)]

        def work():
            for _ in range(500):
                op(x, y, [1, 2])
                tenon.ops.pytest.op(x, y, [1, 2])
                with self.assertRaises(TypeError):
                    fails(x)

        work()
        self.assertLess(growth(work), 4000)
        self.assertEqual([sys.getrefcount(one) for one in (x, y[0])], counts[:2])
        self.assertLess(abs(sys.getrefcount(None) - counts[2]), 100)
        self.assertEqual(tenon.memory_stats("cpu:0")["allocated_bytes"], before)

    def test_a_function_that_was_looked_up_goes(self):
        define("(Tensor x, int n=1) -> (Tensor, Tensor)", lambda x, n: (x, x))

        def look_up():
            for _ in range(300):
                tenon.ops.pytest.op  # noqa: B018

        look_up()
        self.assertLess(growth(look_up), 4000)

    def test_an_implementation_goes_with_its_operator(self):
        class Callable:
            def __call__(self, x):
                return x

        fn = Callable()
        gone = weakref.ref(fn)
        op = library.custom_op("pytest::held", fn, schema="(Tensor x) -> Tensor")
        op.register_autograd(lambda ctx, grad: grad)
        op(tenon.ones(1, requires_grad=True)).backward()
        del fn
        gc.collect()
        self.assertIsNotNone(gone())
        op.unregister()
        del op
        gc.collect()
        self.assertIsNone(gone())


class InThreads(unittest.TestCase):
    def test_called_by_all_at_once(self):
        op = define("(Tensor x, int n) -> Tensor", lambda x, n: x * n if n % 3 else 1 // 0)
        op.register_autograd(lambda ctx, grad: (grad * 10, None))
        failures = []

        def work(i):
            try:
                for k in range(200):
                    x = tenon.full((3,), float(i), requires_grad=True)
                    if k % 3:
                        op(x, k).sum().backward()
                        assert x.grad[0].item() == 10
                    else:
                        with self.assertRaises(ZeroDivisionError):
                            op(x, k)
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_unregistered_while_others_call(self):
        ends, failures = [], []
        define("(Tensor x) -> Tensor", lambda x: x + 1)

        def work():
            while not ends:
                try:
                    op = tenon.ops.pytest.op
                    for _ in range(20):
                        assert op(tenon.ones(1)).item() == 2
                except (AttributeError, tenon.Error):
                    pass
                except BaseException as error:  # noqa: BLE001
                    failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            define("(Tensor x) -> Tensor", lambda x: x + 1)
        ends.append(1)
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
