"""Arguments: by position and by name, overloads, what does not fit, errors of Tenon."""

import ast
import pathlib
import unittest

import tenon


class Arguments(unittest.TestCase):
    def test_by_position_and_by_name(self):
        a, b = tenon.tensor([1.0, 2.0]), tenon.tensor([10.0, 20.0])
        self.assertEqual(tenon.add(a, b, alpha=2).tolist(), [21, 42])
        self.assertEqual(tenon.add(self=a, other=b).tolist(), [11, 22])
        self.assertEqual(a.add(other=b, alpha=0.5).tolist(), [6, 12])
        name = "".join(["al", "pha"])  # a name that was not interned
        self.assertEqual(a.add(b, **{name: 2}).tolist(), [21, 42])
        self.assertEqual(tenon.clamp(a, max=1.5).tolist(), [1, 1.5])
        self.assertEqual(tenon.sum(a, [0], dtype=tenon.float64).dtype, tenon.float64)
        self.assertEqual(tenon.sum(a, [0], dtype="f64").dtype, tenon.float64)

    def test_what_does_not_fit_is_told_for_each_form(self):
        a = tenon.ones(2)
        for call, says in ((lambda: tenon.add(a), "'other' is missing"), (lambda: tenon.add(a, "b"), "'other' is Scalar, not str"),
                           (lambda: tenon.relu(a, 1), "takes 1 positional"), (lambda: a.relu(x=1), "no argument 'x'"),
                           (lambda: tenon.add(a, a, other=a), "'other' was given twice"),
                           (lambda: tenon.relu(None), "'self' is Tensor, not NoneType"),
                           (lambda: a.sum(0, 1), "'keepdim' is bool, not int"),
                           (lambda: tenon.cat([a, 1]), "'tensors' is Tensor\\[\\], not list"),
                           (lambda: a.view("2"), "'size' is int\\[\\]"), (lambda: tenon.zeros(2, dtype=3), "'dtype'"),
                           (lambda: tenon.mse_loss(a, a, 3), "'reduction' is str, not int")):
            with self.assertRaisesRegex(TypeError, says):
                call()

    def test_numbers_of_other_libraries(self):
        class Index:
            def __index__(self):
                return 3

        class Real:
            def __float__(self):
                return 0.5

        a = tenon.ones(2)
        self.assertEqual((a + Index()).tolist(), [4, 4])
        self.assertEqual((a * Real()).tolist(), [0.5, 0.5])
        self.assertEqual(tenon.zeros(Index()).shape, (3,))
        for call in (lambda: a + 2**70, lambda: 2**70 / a, lambda: 2**70 - a, lambda: a < 2**70):
            with self.assertRaises(OverflowError):
                call()

    def test_numbers_beyond_int64(self):
        large, mask = 2**64 - 2, tenon.tensor([True, False])
        u = tenon.tensor([1, 2], dtype=tenon.uint64)
        for made in (tenon.full_like(u, large), tenon.where(mask, u, large)[1:], tenon.where(mask, large, u)[:1], u.clone().fill_(value=large),
                     u.masked_fill(~mask, large)[1:], u.scatter(0, tenon.tensor([0]), large)[:1]):
            self.assertEqual(set(made.tolist()), {large})
        u[1] = large
        self.assertEqual(u.tolist(), [1, large])
        x = tenon.ones(2, dtype=tenon.int64)
        for call in (lambda: x.fill_(2**63), lambda: x + 2**63, lambda: tenon.full_like(u, 2**63, dtype=tenon.int64), lambda: tenon.tensor(2**63),
                     lambda: x.sum(-2**63 - 1), lambda: tenon.where(mask, u, -2**63 - 1), lambda: tenon.where(mask, x, 2**63)):
            with self.assertRaisesRegex(OverflowError, "beyond u?int64"):
                call()
        with self.assertRaisesRegex(OverflowError, "beyond uint64"):
            u.fill_(2**64)
        self.assertEqual(x.tolist(), [1, 1])

    def test_complex_numbers_are_elements_alone(self):
        z = tenon.tensor([1j, 2])
        for call in (lambda: z.fill_(1j), lambda: tenon.full_like(z, fill_value=1j), lambda: tenon.where(z.real > 0, z, 1j)):
            with self.assertRaisesRegex(TypeError, r"is a real number; a complex one is an element of a tensor, as of tenon.tensor\(1j\)"):
                call()
        for call in (lambda: z + 1j, lambda: 1j * z.real, lambda: z.real ** 2j, lambda: z == 1j):
            with self.assertRaisesRegex(TypeError, "stored, moved and converted, and not computed with"):
                call()

    def test_many_arguments_and_long_lists(self):
        parts = [tenon.full((1,), i) for i in range(300)]
        self.assertEqual(tenon.cat(parts).tolist(), list(range(300)))
        self.assertEqual(tenon.stack(parts, 1).shape, (1, 300))
        with self.assertRaises(tenon.ArgumentError):
            tenon.zeros([1] * 300)

    def test_errors_are_tenons_text_and_pythons_kinds(self):
        a, b = tenon.ones(2, 3), tenon.ones(4)
        with self.assertRaises(tenon.ArgumentError) as caught:
            a @ b
        self.assertIn("matmul", str(caught.exception))
        self.assertEqual((caught.exception.status, caught.exception.operator), ("SHAPE", "matmul"))
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, tenon.Error)
        self.assertIsInstance(caught.exception, RuntimeError)
        for call, kind in ((lambda: tenon.device("nosuch:0"), LookupError),
                           (lambda: tenon.device("cpu:77"), tenon.DeviceError),
                           (lambda: tenon.empty(2**60), MemoryError),
                           (lambda: tenon.ones(3).index_select(0, tenon.tensor([7])), IndexError)):
            with self.assertRaises(kind):
                call()
        self.assertEqual((tenon.ones(2) + 1).tolist(), [2, 2])  # nothing stands behind

    def test_every_operator_is_a_function_and_has_its_schema(self):
        schemas = tenon._core.op_schemas()
        self.assertGreater(len(schemas), 600)
        for schema in schemas:
            name = schema.partition("(")[0].partition(".")[0]
            function = getattr(tenon._core, name)
            if type(function).__name__ == "builtin_function_or_method" and name not in ("backward", "grad", "tensor"):
                self.assertIn(schema, function.__doc__)

    def test_every_name_has_a_type_for_editors(self):
        path = pathlib.Path(tenon.__file__).with_name("_core.pyi")
        found = set()
        for node in ast.parse(path.read_text()).body:
            found.add(getattr(node, "name", None))
            if isinstance(node, ast.AnnAssign):
                found.add(node.target.id)
        public = {name for name in dir(tenon._core) if not name.startswith("_")}
        self.assertEqual(public - found, set())

    def test_every_operator_can_be_called(self):
        """With arguments of the right type and no sense: each answers, or says why not."""
        n = 0
        for schema in tenon._core.op_schemas():
            name, _, rest = schema.partition("(")
            function = getattr(tenon._core, name.partition(".")[0])
            for arguments in ((), (tenon.ones(2, 2),), (tenon.ones(2, 2), tenon.ones(2, 2)), (tenon.ones(2, 2), 1),
                              ([tenon.ones(2)],), (2,), ([2], 1)):
                try:
                    function(*arguments)
                    n += 1
                except (TypeError, tenon.Error) as error:
                    self.assertNotIn("INTERNAL", str(getattr(error, "status", "")))
        self.assertGreater(n, 300)


if __name__ == "__main__":
    unittest.main()
