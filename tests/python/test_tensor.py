"""What a tensor is: making, looking, arithmetic, on cpu and sim."""

import copy
import gc
import math
import pickle
import unittest
import weakref

import tenon

DEVICES = ("cpu:0", "sim:0")


class Making(unittest.TestCase):
    def test_kinds_of_numbers(self):
        for data, dtype, shape in ((1, tenon.int64, ()), (True, tenon.bool, ()), (0.5, tenon.float32, ()),
                                   ([1, 2.5], tenon.float32, (2,)), ([[1, 2], [3, 4]], tenon.int64, (2, 2)),
                                   ([True, 2], tenon.int64, (2,)), ([], tenon.float32, (0,)), ([[], []], tenon.float32, (2, 0)),
                                   ((1, (2)), tenon.int64, (2,))):
            t = tenon.tensor(data)
            self.assertEqual((t.dtype, t.shape), (dtype, shape), data)
        self.assertEqual(tenon.tensor([True, 2, 0.5]).tolist(), [1, 2, 0.5])
        self.assertEqual(tenon.tensor([2**62, -2**63]).tolist(), [2**62, -2**63])

    def test_every_dtype_and_device(self):
        for device in DEVICES:
            for dtype in (tenon.float32, tenon.float64, tenon.float16, tenon.bfloat16, tenon.int8, tenon.int16, tenon.int32,
                          tenon.int64, tenon.uint8, tenon.uint16, tenon.uint32, tenon.uint64, tenon.complex64, tenon.complex128):
                t = tenon.tensor([[1, 2], [3, 100]], dtype=dtype, device=device)
                self.assertEqual((t.tolist(), t.dtype, str(t.device)), ([[1, 2], [3, 100]], dtype, device))
            self.assertEqual(tenon.tensor([0, 2], dtype=tenon.bool, device=device).tolist(), [False, True])

    def test_storage_dtypes(self):
        large = tenon.tensor([2**64 - 1, 2**63, -1], dtype=tenon.uint64)
        self.assertEqual((large.tolist(), large[0].item(), int(large[1])), ([2**64 - 1, 2**63, 2**64 - 1], 2**64 - 1, 2**63))
        self.assertEqual(tenon.full((2,), 2**64 - 1, dtype=tenon.uint64).tolist(), [2**64 - 1] * 2)
        z = tenon.tensor([1 + 2j, 3.5, True])
        self.assertEqual((z.dtype, z.tolist(), z[0].item(), complex(z[1])), (tenon.complex64, [1 + 2j, 3.5, 1], 1 + 2j, 3.5))
        self.assertEqual((z.real.tolist(), z.imag.tolist()), ([1, 3.5, 1], [2, 0, 0]))
        z.imag[1] = 7
        self.assertEqual(z.tolist(), [1 + 2j, 3.5 + 7j, 1])
        self.assertEqual(tenon.full((1,), 1j, dtype="complex128").tolist(), [1j])
        self.assertEqual(tenon.zeros(1, dtype=complex).dtype, tenon.complex64)
        self.assertEqual(repr(tenon.tensor([1.5 - 2j])), "tensor([1.5000-2.j])")
        self.assertEqual((tenon.complex64.is_complex, tenon.complex64.is_signed, tenon.uint16.is_signed, tenon.uint16.itemsize),
                         (True, True, False, 2))
        self.assertIs(tenon.promote_types(tenon.complex64, tenon.float64), tenon.complex128)
        for call, error, says in ((lambda: z + z, tenon.Error, "not defined for c64.*convert it with tn_to_dtype first"),
                                  (lambda: large.sum(), tenon.Error, "not defined for u64"),
                                  (lambda: z.requires_grad_(), tenon.Error, "only floating dtypes"),
                                  (lambda: tenon.ones(1, requires_grad=True).to(tenon.complex64), tenon.Error, "tn_detach"),
                                  (lambda: float(z[0]), TypeError, "complex"),
                                  (lambda: tenon.tensor(1j, dtype=tenon.float32), TypeError, "real parts"),
                                  (lambda: tenon.tensor(2**64, dtype=tenon.uint64), OverflowError, ""),
                                  (lambda: tenon.tensor([2**63, 0.5], dtype=tenon.uint64), OverflowError, "floating"),
                                  (lambda: tenon.promote_types("uint16", "int32"), TypeError, "promote to no dtype")):
            with self.assertRaisesRegex(error, says):
                call()

    def test_lists_that_are_no_tensor(self):
        for data, error, says in (([[1], [2, 3]], ValueError, "different lengths"), ([[1], 2], ValueError, "different lengths"),
                                  (["a"], TypeError, "made of numbers"), ([None], TypeError, "made of numbers"),
                                  ([1, [2]], TypeError, "made of numbers"), ([2**64], OverflowError, "")):
            with self.assertRaisesRegex(error, says):
                tenon.tensor(data)
        with self.assertRaisesRegex(TypeError, "dtype is"):
            tenon.tensor([1], dtype="float33")
        with self.assertRaisesRegex(tenon.NotFoundError, "nosuch"):
            tenon.tensor([1], device="nosuch:0")

    def test_factories(self):
        self.assertEqual(tenon.zeros(2, 3).shape, (2, 3))
        self.assertEqual(tenon.zeros((2, 3)).shape, (2, 3))
        self.assertEqual(tenon.ones([2], dtype=tenon.int32).tolist(), [1, 1])
        self.assertEqual(tenon.full((2,), 7).tolist(), [7, 7])
        self.assertEqual(tenon.arange(3).tolist(), [0, 1, 2])
        self.assertEqual(tenon.arange(1, 2, 0.25).tolist(), [1, 1.25, 1.5, 1.75])
        self.assertEqual(tenon.eye(2).tolist(), [[1, 0], [0, 1]])
        self.assertEqual(tenon.linspace(0, 1, 3).tolist(), [0, 0.5, 1])
        self.assertTrue(tenon.rand(3, requires_grad=True).requires_grad)
        tenon.manual_seed(3)
        a = tenon.randn(8)
        tenon.manual_seed(3)
        self.assertEqual(a.tolist(), tenon.randn(8).tolist())
        self.assertEqual(sorted(tenon.randperm(5).tolist()), [0, 1, 2, 3, 4])


class Looking(unittest.TestCase):
    def test_attributes(self):
        t = tenon.zeros(2, 3, dtype=tenon.float64)
        self.assertEqual((t.ndim, t.shape, t.size(), t.size(-1), t.numel(), t.dim()), (2, (2, 3), (2, 3), 3, 6, 2))
        self.assertEqual((t.itemsize, t.nbytes, t.stride(), t.T.stride(), t.T.shape), (8, 48, (3, 1), (1, 3), (3, 2)))
        self.assertTrue(t.is_contiguous() and not t.T.is_contiguous() and t.is_leaf)
        self.assertEqual(t.mT.shape, (3, 2))
        with self.assertRaisesRegex(ValueError, "permute"):
            tenon.zeros(2, 3, 4).T
        with self.assertRaises(ValueError):
            t.size(2)

    def test_text(self):
        self.assertEqual(repr(tenon.tensor([1, 2])), "tensor([1, 2])")
        self.assertEqual(repr(tenon.float32), "tenon.float32")
        self.assertEqual(repr(tenon.device("cpu:0")), "device('cpu:0')")
        self.assertEqual(f"{tenon.tensor(0.5):.3f}", "0.500")

    def test_one_element(self):
        for device in DEVICES:
            t = tenon.tensor(3, device=device)
            self.assertEqual((t.item(), int(t), float(t), bool(t), [5, 6, 7, 8][t]), (3, 3, 3.0, True, 8))
            self.assertEqual(tenon.tensor([1.5], dtype=tenon.bfloat16, device=device).item(), 1.5)
            self.assertEqual(tenon.tensor(2**-24, dtype=tenon.float16, device=device).item(), 2**-24)
            self.assertEqual(tenon.tensor(-65504, dtype=tenon.float16, device=device).item(), -65504)
            self.assertTrue(math.isnan(tenon.tensor(math.nan, dtype=tenon.float16, device=device).item()))
        with self.assertRaisesRegex(ValueError, "2 elements"):
            bool(tenon.tensor([1, 2]))
        with self.assertRaisesRegex(TypeError, "of one integer"):
            [1, 2][tenon.tensor(0.0)]

    def test_a_sequence_of_rows(self):
        t = tenon.tensor([[1, 2], [3, 4]])
        self.assertEqual(len(t), 2)
        self.assertEqual([row.tolist() for row in t], [[1, 2], [3, 4]])
        self.assertIn(3, t)
        self.assertNotIn(7, t)
        with self.assertRaises(TypeError):
            len(tenon.tensor(1))
        with self.assertRaises(TypeError):
            iter(tenon.tensor(1))

    def test_devices(self):
        a, b = tenon.device("cpu:0"), tenon.device("cpu")
        self.assertEqual((a, hash(a), a.type, a.index, str(a)), (b, hash(b), "cpu", 0, "cpu:0"))
        self.assertNotEqual(a, tenon.device("sim:0"))
        self.assertEqual(tenon.device(), tenon.default_device())
        self.assertGreaterEqual(tenon.device_count("sim"), 1)
        x = tenon.ones(2, device="sim:0")
        self.assertEqual(str((x + 1).device), "sim:0")
        self.assertEqual(x.cpu().device, a)
        with self.assertRaises(tenon.Error):
            x + tenon.ones(2, device="cpu:0")


class Arithmetic(unittest.TestCase):
    def test_python_operators(self):
        for device in DEVICES:
            x = tenon.tensor([1.0, -2.0, 4.0], device=device)
            for made, expected in ((x + 1, [2, -1, 5]), (1 + x, [2, -1, 5]), (x - 1, [0, -3, 3]), (1 - x, [0, 3, -3]),
                                   (x * 2, [2, -4, 8]), (2 * x, [2, -4, 8]), (x / 2, [0.5, -1, 2]), (2 / x, [2, -1, 0.5]),
                                   (x // 3, [0, -1, 1]), (7 // x, [7, -4, 1]), (x % 3, [1, 1, 1]), (7 % x, [0, -1, 3]),
                                   (x ** 2, [1, 4, 16]), (2 ** x, [2, 0.25, 16]), (-x, [-1, 2, -4]), (+x, [1, -2, 4]),
                                   (abs(x), [1, 2, 4]), (x + x, [2, -4, 8]), (x - x, [0, 0, 0]), (x @ x, 21),
                                   (x < 2, [True, True, False]), (2 > x, [True, True, False]), (x == 4, [False, False, True]),
                                   (x != 4, [True, True, False]), (x >= x, [True] * 3), (x <= 0, [False, True, False])):
                self.assertEqual(made.tolist(), expected)
            i = tenon.tensor([5, 6], device=device)
            for made, expected in ((i & 4, [4, 4]), (4 & i, [4, 4]), (i | 1, [5, 7]), (i ^ 1, [4, 7]), (~i, [-6, -7]),
                                   (i << 1, [10, 12]), (i >> 1, [2, 3]), (i + 0.5, [5.5, 6.5]), (i / 2, [2.5, 3]),
                                   (i == 5, [True, False])):
                self.assertEqual(made.tolist(), expected)
            self.assertEqual((~(i > 5)).tolist(), [True, False])

    def test_in_place(self):
        x = tenon.tensor([1.0, 2.0])
        before = x
        x += 1
        x *= 2
        x -= tenon.tensor([1.0, 1.0])
        x /= 2
        x **= 2
        self.assertIs(x, before)
        self.assertEqual(x.tolist(), [2.25, 6.25])
        i = tenon.tensor([5, 6])
        i |= 8
        i &= 13
        i ^= 1
        i //= 2
        i %= 4
        self.assertEqual(i.tolist(), [2, 2])

    def test_what_is_no_number_is_left_to_the_other_side(self):
        class Other:
            def __radd__(self, tensor):
                return "other"

        self.assertEqual(tenon.ones(1) + Other(), "other")
        with self.assertRaises(TypeError):
            tenon.ones(1) + "text"
        with self.assertRaises(TypeError):
            "text" + tenon.ones(1)
        with self.assertRaises(TypeError):
            pow(tenon.ones(1), 2, 3)
        self.assertNotEqual(tenon.ones(1).dtype, "text")
        self.assertFalse(tenon.ones(1) is None)

    def test_methods_and_functions_are_the_same(self):
        x = tenon.tensor([[3.0, 1.0], [2.0, 5.0]])
        self.assertEqual(x.sum().item(), 11)
        self.assertEqual(tenon.sum(x, 0).tolist(), [5, 6])
        self.assertEqual(x.sum(dim=(0, 1)).item(), 11)
        self.assertEqual(x.max(dim=1).values.tolist(), [3, 5])
        values, indices = x.sort(-1)
        self.assertEqual((values.tolist(), indices.tolist()), ([[1, 3], [2, 5]], [[1, 0], [0, 1]]))
        self.assertEqual([p.tolist() for p in x.chunk(2)], [[[3, 1]], [[2, 5]]])
        self.assertEqual(x.view(4).tolist(), x.reshape((4,)).tolist())
        self.assertEqual(x.view(1, -1).shape, (1, 4))
        self.assertEqual(x.permute(1, 0).tolist(), x.T.tolist())
        self.assertEqual(tenon.cat([x, x], dim=1).shape, (2, 4))
        self.assertEqual(tenon.where(x > 2, x, 0).tolist(), [[3, 0], [0, 5]])
        out = tenon.empty(2, 2)
        self.assertIs(tenon.add(x, x, out=out), out)
        self.assertEqual(out.tolist(), [[6, 2], [4, 10]])
        self.assertEqual(x.to(tenon.int32).dtype, tenon.int32)
        self.assertIs(x.to("cpu:0").dtype, tenon.float32)


class Parts(unittest.TestCase):
    def test_a_real_tensor_has_no_imaginary_part(self):
        x = tenon.ones(2)
        self.assertFalse(hasattr(x, "imag"))
        self.assertTrue(hasattr(x, "real") and hasattr(x.to(tenon.complex64), "imag"))
        with self.assertRaisesRegex(AttributeError, "has no imaginary part"):
            x.imag


class Life(unittest.TestCase):
    def test_memory_goes_with_the_last_reference(self):
        gc.collect()
        tenon.zeros(1)
        before = tenon.memory_stats("sim:0")["allocated_bytes"]
        x = tenon.zeros(1000, device="sim:0")
        view = x[10:20]
        self.assertGreater(tenon.memory_stats("sim:0")["allocated_bytes"], before)
        del x
        self.assertGreater(tenon.memory_stats("sim:0")["allocated_bytes"], before)
        del view
        self.assertEqual(tenon.memory_stats("sim:0")["allocated_bytes"], before)

    def test_weak_references(self):
        x = tenon.zeros(1)
        weak = weakref.ref(x)
        self.assertIs(weak(), x)
        del x
        self.assertIsNone(weak())

    def test_copies(self):
        x = tenon.tensor([1.0, 2.0], requires_grad=True)
        for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            self.assertEqual((made.tolist(), made.requires_grad, made.is_leaf), ([1, 2], True, True))
            self.assertNotEqual(made.data_ptr(), x.data_ptr())
        for dtype in (tenon.bfloat16, tenon.float16, tenon.bool, tenon.int8, tenon.uint64, tenon.complex128):
            y = tenon.tensor([[1, 0]], dtype=dtype, device="sim:0")
            back = pickle.loads(pickle.dumps(y))
            self.assertEqual((back.tolist(), back.dtype, back.device), (y.tolist(), dtype, y.device))
        self.assertIs(pickle.loads(pickle.dumps(tenon.float16)), tenon.float16)
        self.assertEqual(pickle.loads(pickle.dumps(tenon.device("sim:0"))), tenon.device("sim:0"))

    def test_sets_and_dicts_go_by_identity(self):
        a, b = tenon.ones(1), tenon.ones(1)
        self.assertEqual(len({a: 1, b: 2}), 2)


if __name__ == "__main__":
    unittest.main()
