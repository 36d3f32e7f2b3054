"""tenon.array_api: every name that the standard lists, and what the standard says at edges, on cpu and sim."""

import inspect
import math
import unittest

import tenon
import tenon.array_api as xp

try:
    import numpy
except ImportError:
    numpy = None

DEVICES = ("cpu:0", "sim:0")

# of version 2025.12; the extensions linalg (in part) and fft (not) are optional
FUNCTIONS = """
    abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
    bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_shapes
    broadcast_to can_cast ceil clip concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide
    empty empty_like equal exp expand_dims expm1 eye finfo flip floor floor_divide from_dlpack full full_like greater
    greater_equal hypot iinfo imag isdtype isfinite isin isinf isnan less less_equal linspace log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis
    multiply negative nextafter nonzero not_equal ones ones_like permute_dims positive pow prod real reciprocal remainder
    repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum
    take take_along_axis tan tanh tensordot tile tril triu trunc unique_all unique_counts unique_inverse unique_values
    unstack var vecdot where zeros zeros_like __array_namespace_info__""".split()
LINALG = "cross diagonal matmul matrix_norm matrix_transpose outer tensordot trace vecdot vector_norm".split()
CONSTANTS = {"e": math.e, "inf": math.inf, "pi": math.pi, "newaxis": None}
DTYPES = "bool int8 int16 int32 int64 uint8 float32 float64".split()
MISSING = "uint16 uint32 uint64 complex64 complex128".split()
METHODS = """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
    __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__
    __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device __iadd__ __isub__
    __imul__ __itruediv__ __ifloordiv__ __ipow__ __imod__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __radd__
    __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ __rand__ __ror__ __rxor__ __rlshift__
    __rrshift__""".split()
ATTRIBUTES = "dtype device mT ndim shape size T".split()


class Names(unittest.TestCase):
    def test_every_name_is_there(self):
        for name in FUNCTIONS:
            self.assertTrue(callable(getattr(xp, name)), name)
            self.assertTrue(inspect.getdoc(getattr(xp, name)), name)
            self.assertIn(name, xp.__all__)
        for name in LINALG:
            self.assertTrue(callable(getattr(xp.linalg, name)), name)
        self.assertEqual(sorted(LINALG), sorted(xp.linalg.__all__))
        for name, value in CONSTANTS.items():
            self.assertEqual(getattr(xp, name), value)
        self.assertTrue(math.isnan(xp.nan))
        for name in DTYPES:
            self.assertIs(getattr(xp, name), getattr(tenon, name))
        for name in METHODS + ATTRIBUTES:
            self.assertTrue(hasattr(xp.ones((1, 1)), name), name)

    def test_dtypes_that_are_not_there_are_said_to_be(self):
        info = xp.__array_namespace_info__()
        self.assertEqual(sorted(info.dtypes()), sorted(DTYPES))
        for name in MISSING:
            self.assertFalse(hasattr(xp, name), name)
        self.assertEqual(info.dtypes(kind="complex floating"), {})
        self.assertEqual(sorted(info.dtypes(kind=("bool", "unsigned integer"))), ["bool", "uint8"])
        with self.assertRaisesRegex(TypeError, "no complex dtype"):
            xp.imag(xp.ones(1))

    def test_namespace_of_a_tensor(self):
        x = tenon.ones(2)
        self.assertIs(x.__array_namespace__(), xp)
        self.assertIs(x.__array_namespace__(api_version="2025.12"), xp)
        self.assertEqual(xp.__array_api_version__, "2025.12")
        with self.assertRaisesRegex(ValueError, "2020.01"):
            x.__array_namespace__(api_version="2020.01")
        self.assertIs(tenon.__array_namespace_info__, xp.__array_namespace_info__)

    def test_inspection(self):
        info = xp.__array_namespace_info__()
        self.assertEqual(info.default_dtypes(), {"real floating": xp.float32, "integral": xp.int64, "indexing": xp.int64})
        self.assertIn(info.default_device(), info.devices())
        self.assertIn(tenon.device("sim:0"), info.devices())
        self.assertTrue({"cpu", "sim"} <= set(tenon.device_types()) and tenon.device("cpu:0").has_dtype("float64"))
        self.assertEqual(xp.ones((1,) * info.capabilities()["max dimensions"]).size, 1)
        with self.assertRaises(tenon.Error):
            xp.ones((1,) * (info.capabilities()["max dimensions"] + 1))


class Dtypes(unittest.TestCase):
    def test_limits(self):
        self.assertEqual((xp.iinfo(xp.uint8).min, xp.iinfo(xp.uint8).max), (0, 255))
        self.assertEqual((xp.iinfo(xp.int64).min, xp.iinfo(xp.int64).max), (-2**63, 2**63 - 1))
        for dtype in (xp.float16, xp.bfloat16, xp.float32, xp.float64):
            limits = xp.finfo(dtype)
            for value in (limits.max, limits.smallest_normal, 1 + limits.eps):
                self.assertEqual(xp.asarray(value, dtype=dtype).item(), value, dtype)
            self.assertEqual(xp.asarray(1 + limits.eps / 2, dtype=dtype).item(), 1, dtype)
        self.assertEqual(xp.finfo(tenon.complex64), xp.finfo(xp.float32))
        self.assertEqual(xp.finfo(xp.asarray(1j, dtype=tenon.complex128)), xp.finfo(xp.float64))
        for wrong in (lambda: xp.finfo(xp.int8), lambda: xp.iinfo(xp.float32), lambda: xp.isdtype(xp.int8, "integers")):
            with self.assertRaises(ValueError):
                wrong()

    def test_promotion(self):
        self.assertIs(xp.result_type(xp.int8, xp.uint8), xp.int16)
        self.assertIs(xp.result_type(xp.asarray(1, dtype=xp.int8), 3, True), xp.int8)
        self.assertIs(xp.result_type(xp.float16, xp.bfloat16), xp.float32)
        self.assertIs(xp.result_type(xp.int8, 1j), tenon.complex64)
        self.assertIs(tenon.promote_types("int8", tenon.float16), tenon.float16)
        self.assertTrue(xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8))
        self.assertFalse(xp.can_cast(tenon.uint64, tenon.complex128) or xp.can_cast(tenon.uint16, tenon.uint32))
        self.assertTrue(xp.can_cast(tenon.uint64, xp.float64) and xp.can_cast(xp.float64, tenon.complex128))
        for wrong, error in ((xp.result_type, ValueError), (lambda: xp.result_type(1), ValueError),
                             (lambda: xp.result_type(xp.int8, "x"), TypeError)):
            with self.assertRaises(error):
                wrong()

    def test_an_array_without_dimensions_counts_in_functions(self):
        for device in DEVICES:
            small, large = xp.asarray([1], dtype=xp.int8, device=device), xp.asarray(300, dtype=xp.int64, device=device)
            self.assertEqual((xp.add(small, large).dtype, xp.add(small, large).tolist()), (xp.int64, [301]))
            self.assertEqual((xp.add(small, 3).dtype, xp.add(3, small).dtype), (xp.int8, xp.int8))
            self.assertTrue(xp.less(small, large).item())
            self.assertIs(xp.where(small > 0, small, large).dtype, xp.int64)
            self.assertEqual(xp.subtract(1, small).tolist(), [0])

    def test_an_array_without_dimensions_counts_in_operators_where_it_is_said(self):
        for device in DEVICES:
            small, large = xp.asarray([1], dtype=xp.int8, device=device), xp.asarray(300, dtype=xp.int64, device=device)
            self.assertIs((small + large).dtype, xp.int8)
            with tenon.array_promotion():
                self.assertEqual(((small + large).tolist(), (large - small).tolist()), ([301], [299]))
                self.assertIs((small + large).dtype, xp.int64)
                self.assertEqual(((small < large).tolist(), (large == small).tolist()), ([True], [False]))
                self.assertEqual(((small + 1).dtype, (1.5 * xp.ones(1, dtype=xp.float16)).dtype), (xp.int8, xp.float16))
                with tenon.array_promotion(False):
                    self.assertIs((small + large).dtype, xp.int8)
            self.assertIs((large + small).dtype, xp.int8)

    def test_what_is_no_operand(self):
        x = xp.ones(2)
        for wrong in (lambda: xp.add(1, 2), lambda: xp.add(x, "a"), lambda: xp.exp(1.0), lambda: xp.bitwise_and(x, x),
                      lambda: xp.nextafter(xp.asarray([1]), 2), lambda: xp.add(x, 1j), lambda: xp.add(x, None)):
            with self.assertRaises((TypeError, tenon.Error)):
                wrong()


class Stored(unittest.TestCase):
    """Complex numbers and wide unsigned ones, which nothing computes with by the way."""

    def test_parts(self):
        for device in DEVICES:
            x = tenon.tensor([1 + 2j, 3 - 4j], device=device)
            self.assertEqual((xp.real(x).tolist(), xp.imag(x).tolist(), xp.conj(x).tolist()), ([1, 3], [2, -4], [1 - 2j, 3 + 4j]))
            self.assertEqual((x.tolist(), xp.conj(x.real).tolist()), ([1 + 2j, 3 - 4j], [1, 3]))
            with self.assertRaises(TypeError):
                xp.imag(x.real)

    def test_sums_are_refused(self):
        for data, dtype in (([1 + 2j, 3], tenon.complex64), ([2 ** 63, 1], tenon.uint64), ([1, 2], tenon.uint16)):
            x = tenon.tensor(data, dtype=dtype)
            for function in (xp.sum, xp.prod, xp.cumulative_sum, xp.cumulative_prod, lambda t: xp.linalg.trace(t.reshape(1, 2))):
                with self.assertRaisesRegex(tenon.Error, "stored, moved and converted only"):
                    function(x)

    def test_numbers_take_their_dtype(self):
        x, mask = tenon.tensor([1j, 2]), tenon.tensor([True, False])
        for number in (False, 0, 0.0, 0j):
            self.assertEqual(xp.where(mask, x, number).tolist(), [1j, 0])


class Copies(unittest.TestCase):
    def shares(self, a, b):
        return a.data_ptr() == b.data_ptr()

    def test_asarray(self):
        x = xp.ones((2, 3))
        self.assertTrue(self.shares(xp.asarray(x), x) and self.shares(xp.asarray(x, copy=False), x))
        self.assertFalse(self.shares(xp.asarray(x, copy=True), x))
        self.assertFalse(self.shares(xp.asarray(x, dtype=xp.float32, copy=True), x))
        self.assertFalse(self.shares(xp.asarray(x, device="cpu:0", copy=True), x))
        for wrong in (lambda: xp.asarray(x, dtype=xp.float64, copy=False), lambda: xp.asarray([1], copy=False),
                      lambda: xp.asarray(x, device="sim:0", copy=False)):
            with self.assertRaises(ValueError):
                wrong()
        self.assertEqual(str(xp.asarray(x, device="sim:0").device), "sim:0")

    def test_astype(self):
        x = xp.ones((2, 3))
        self.assertTrue(self.shares(xp.astype(x, xp.float32, copy=False), x))
        self.assertFalse(self.shares(xp.astype(x, xp.float32), x))
        self.assertEqual(xp.astype(x, xp.int8, device="sim:0").device, tenon.device("sim:0"))
        self.assertEqual(xp.astype(xp.asarray([0.5, 0.0]), xp.bool).tolist(), [True, False])

    def test_reshape(self):
        x = xp.ones((2, 3))
        self.assertTrue(self.shares(xp.reshape(x, (3, 2), copy=False), x) and self.shares(xp.reshape(x, (-1,)), x))
        self.assertFalse(self.shares(xp.reshape(x, (3, 2), copy=True), x))
        with self.assertRaises(ValueError):
            xp.reshape(x.T, (6,), copy=False)

    def test_dlpack(self):
        x = xp.asarray([1.0, 2.0])
        self.assertTrue(self.shares(xp.from_dlpack(x), x))
        self.assertFalse(self.shares(xp.from_dlpack(x, copy=True), x))
        self.assertEqual(str(xp.from_dlpack(x, device="sim:0").device), "sim:0")
        with self.assertRaisesRegex(BufferError, "copy"):
            xp.from_dlpack(x, device="sim:0", copy=False)
        self.assertTrue(self.shares(xp.from_dlpack(x, device="cpu:0", copy=False), x))
        x.__dlpack__(stream=None, max_version=(1, 0), dl_device=x.__dlpack_device__(), copy=None)
        on_host = xp.ones(2, device="sim:0").__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        self.assertEqual(str(tenon.from_dlpack(on_host).device), "cpu:0")
        with self.assertRaises(BufferError):
            xp.ones(2, device="sim:0").__dlpack__(dl_device=(1, 0), copy=False)

    def test_to_device(self):
        x = xp.asarray([1.0])
        self.assertEqual(x.to_device("sim:0").to_device(tenon.device("cpu:0")).tolist(), [1.0])
        with self.assertRaisesRegex(ValueError, "stream"):
            x.to_device("cpu:0", stream=1)


class Edges(unittest.TestCase):
    def test_zero_sizes(self):
        for device in DEVICES:
            x = xp.zeros((0, 3), device=device)
            self.assertEqual((xp.sum(x, axis=0).tolist(), xp.prod(x, axis=0).tolist()), ([0] * 3, [1] * 3))
            self.assertEqual((xp.all(x).item(), xp.any(x).item(), xp.max(x, axis=1).shape), (True, False, (0,)))
            self.assertEqual(xp.cumulative_sum(x, axis=0, include_initial=True).tolist(), [[0] * 3])
            self.assertEqual((xp.sort(x, axis=0).shape, xp.unique_values(x).shape, xp.flip(x).shape), ((0, 3), (0,), (0, 3)))
            self.assertEqual(xp.matmul(x.T, x).tolist(), [[0] * 3] * 3)
            self.assertEqual((xp.concat([x, x]).shape, xp.stack([x, x], axis=-1).shape), ((0, 3), (0, 3, 2)))
            self.assertEqual((xp.arange(5, 0).shape, xp.arange(0).dtype, xp.linspace(0, 1, 0).shape), ((0,), xp.int64, (0,)))
            with self.assertRaises(tenon.Error):
                xp.max(x, axis=0)

    def test_axes_and_keepdims(self):
        for device in DEVICES:
            x = xp.reshape(xp.arange(24, dtype=xp.float32, device=device), (2, 3, 4))
            for function in (xp.sum, xp.prod, xp.max, xp.min, xp.mean, xp.var, xp.std, xp.all, xp.any, xp.count_nonzero):
                for axis, kept, gone in ((None, (1, 1, 1), ()), (-1, (2, 3, 1), (2, 3)), ((0, -1), (1, 3, 1), (3,)),
                                         ((), (2, 3, 4), (2, 3, 4))):
                    self.assertEqual(function(x, axis=axis, keepdims=True).shape, kept, (function, axis))
                    self.assertEqual(function(x, axis=axis).shape, gone, (function, axis))
                with self.assertRaisesRegex(IndexError, "axis 3"):
                    function(x, axis=3)
                with self.assertRaisesRegex(ValueError, "twice"):
                    function(x, axis=(0, -3))
            self.assertEqual(xp.sum(x, axis=()).tolist(), x.tolist())
            self.assertEqual(xp.argmax(x, axis=-3, keepdims=True).tolist(), [[[1] * 4] * 3])
            self.assertEqual(xp.linalg.vector_norm(x, axis=(0, 1), keepdims=True).shape, (1, 1, 4))
            self.assertEqual(xp.linalg.matrix_norm(x, ord=-1, keepdims=True).shape, (2, 1, 1))
            self.assertEqual((xp.linalg.matrix_norm(x, ord=1).tolist(), xp.linalg.matrix_norm(x, ord=-math.inf).tolist()),
                             ([21, 57], [6, 54]))

    def test_sums_of_small_integers(self):
        x = xp.asarray([100, 100], dtype=xp.int8)
        self.assertEqual((xp.sum(x).item(), xp.sum(x).dtype), (200, xp.int64))
        self.assertEqual((xp.sum(x, dtype=xp.int8).item(), xp.sum(x, dtype=xp.float64).dtype), (-56, xp.float64))
        self.assertEqual((xp.prod(x).item(), xp.cumulative_sum(x).tolist()), (10000, [100, 200]))
        self.assertIs(xp.sum(xp.ones(2, dtype=xp.float16)).dtype, xp.float16)

    def test_shapes_that_do_not_fit(self):
        x = xp.ones((2, 3))
        for wrong in (lambda: xp.broadcast_shapes((2,), (3,)), lambda: xp.broadcast_to(x, (3,)), lambda: xp.squeeze(x, 0),
                      lambda: xp.linalg.cross(x[:, :2], x[:, :2]), lambda: xp.vecdot(x, x[:, :2]),
                      lambda: xp.tensordot(x, x, axes=1), lambda: xp.tensordot(x, x, axes=3),
                      lambda: xp.take(x, xp.asarray([0])),
                      lambda: xp.cumulative_sum(x), lambda: xp.nonzero(xp.asarray(1)), lambda: xp.matrix_transpose(x[0]),
                      lambda: xp.moveaxis(x, (0, 1), 0), lambda: xp.roll(x, (1, 2)), lambda: xp.arange(0, 1, 0),
                      lambda: xp.searchsorted(x[0], x, side="middle"), lambda: xp.meshgrid(x[0], indexing="yx")):
            with self.assertRaises(ValueError):
                wrong()
        with self.assertRaisesRegex(NotImplementedError, "singular values"):
            xp.linalg.matrix_norm(x, ord="nuc")

    def test_places(self):
        x = xp.asarray([[3, 1, 2], [3, 5, 4]])
        self.assertEqual(xp.take(x, xp.asarray([-1, 0]), axis=-1).tolist(), [[2, 3], [4, 3]])
        self.assertEqual(xp.take_along_axis(x, xp.argsort(x, descending=True)).tolist(), [[3, 2, 1], [5, 4, 3]])
        self.assertEqual(xp.expand_dims(x, (0, -1)).shape, (1, 2, 3, 1))
        self.assertEqual(xp.eye(2, 3, k=-1).tolist(), [[0, 0, 0], [1, 0, 0]])
        self.assertEqual(xp.eye(2, k=9).tolist(), [[0, 0], [0, 0]])
        self.assertEqual((xp.tril(x, k=-2**70).tolist(), xp.triu(x, k=-2**70).tolist()), ([[0] * 3] * 2, x.tolist()))
        self.assertEqual(xp.linspace(0, 1, 4, endpoint=False).tolist(), [0, 0.25, 0.5, 0.75])
        self.assertEqual(xp.linalg.diagonal(x, offset=2).tolist(), [2])
        self.assertEqual(xp.linalg.trace(x, offset=-1).item(), 3)
        self.assertEqual(xp.isin(x, 3, invert=True).tolist(), [[False, True, True]] * 2)
        self.assertEqual(xp.searchsorted(xp.asarray([1.0, 2.0]), 1, side="right").item(), 1)

    def test_unique(self):
        for device in DEVICES:
            x = xp.asarray([[3.0, 1.0], [math.nan, 3.0]], device=device)
            values, indices, inverse, counts = xp.unique_all(x)
            self.assertEqual((values.tolist()[:2], indices.tolist(), counts.tolist()), ([1, 3], [1, 0, 2], [1, 2, 1]))
            self.assertEqual(inverse.tolist(), [[1, 0], [2, 1]])
            self.assertEqual(xp.unique_counts(x).counts.tolist(), [1, 2, 1])

    def test_clip(self):
        x = xp.asarray([1, 5, 9], dtype=xp.int8)
        self.assertEqual(xp.clip(x, 2, 300).tolist(), [2, 5, 9])
        self.assertEqual(xp.clip(x, xp.asarray(3, dtype=xp.int8), None).tolist(), [3, 5, 9])
        self.assertEqual(xp.clip(xp.asarray([1.0, math.nan]), 2, 3).tolist()[0], 2)
        self.assertIsNot(xp.clip(x), x)

    def test_nextafter(self):
        for device in DEVICES:
            for dtype in (xp.float16, xp.bfloat16, xp.float32, xp.float64):
                limits = xp.finfo(dtype)
                tiniest = limits.smallest_normal * limits.eps
                above = 1 + limits.eps
                x1 = xp.asarray([1, above, 0, limits.max, math.inf, -tiniest, limits.smallest_normal, 1], dtype=dtype,
                                device=device)
                x2 = xp.asarray([2, 0, -1, math.inf, 0, 0, 0, 1], dtype=dtype, device=device)
                self.assertEqual(xp.nextafter(x1, x2).tolist(), [above, 1, -tiniest, math.inf, limits.max, 0,
                                                                 limits.smallest_normal - tiniest, 1], (device, dtype))
            self.assertTrue(math.isnan(xp.nextafter(xp.asarray(math.nan, device=device), 1).item()))

    def test_size(self):
        x = xp.ones((2, 3))
        self.assertEqual((x.size, x.size(), x.size(-1)), (6, (2, 3), 3))
        self.assertIsInstance(x.size, int)

    @unittest.skipIf(numpy is None, "NumPy is not here")
    def test_functions_of_numpy(self):
        for device in DEVICES:
            x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
            self.assertEqual((numpy.sum(x), numpy.max(x, axis=0).tolist(), numpy.mean(x, axis=(0, 1))), (10, [3, 4], 2.5))
            self.assertEqual(numpy.concatenate([x, numpy.ones((1, 2))]).shape, (3, 2))
            self.assertEqual(numpy.exp(x).shape, (2, 2))
            with self.assertRaises(TypeError):
                numpy.sum(x, out=tenon.tensor(0.0))
        with self.assertRaisesRegex(RuntimeError, "detach"):
            numpy.sum(tenon.ones(2, requires_grad=True))


if __name__ == "__main__":
    unittest.main()
