"""Data in and out: buffers, DLPack, files."""

import array
import gc
import hashlib
import os
import struct
import tempfile
import unittest
import warnings

import tenon

try:
    import numpy
except ImportError:
    numpy = None


class Buffers(unittest.TestCase):
    def test_in(self):
        for code, dtype in (("f", tenon.float32), ("d", tenon.float64), ("b", tenon.int8), ("h", tenon.int16),
                            ("i", tenon.int32), ("q", tenon.int64), ("l", tenon.int64), ("B", tenon.uint8),
                            ("H", tenon.uint16), ("I", tenon.uint32), ("Q", tenon.uint64), ("L", tenon.uint64)):
            t = tenon.tensor(array.array(code, [1, 2, 3]))
            self.assertEqual((t.tolist(), t.dtype), ([1, 2, 3], dtype), code)
        self.assertEqual(tenon.tensor(b"\x01\xff").tolist(), [1, 255])
        turned = memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3))
        self.assertEqual(tenon.tensor(turned).tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(tenon.tensor(memoryview(array.array("i", range(6)))[::2]).tolist(), [0, 2, 4])
        self.assertEqual(tenon.tensor(array.array("d", [0.5]), dtype="f32", device="sim:0").tolist(), [0.5])
        with self.assertRaisesRegex(TypeError, "no dtype of Tenon"):
            tenon.tensor(memoryview(b"ab").cast("c"))

    def test_out(self):
        t = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
        view = memoryview(t.T)
        self.assertEqual((view.format, view.shape, view.strides, view.tolist()), ("f", (2, 2), (4, 8), [[1, 3], [2, 4]]))
        view[0, 1] = 7
        self.assertEqual(t.tolist(), [[1, 2], [7, 4]])
        del t
        gc.collect()
        self.assertEqual(view.tolist(), [[1, 7], [2, 4]])
        for wrong in (tenon.ones(1, device="sim:0"), tenon.ones(1, requires_grad=True), tenon.ones(1, dtype=tenon.bfloat16)):
            with self.assertRaises(BufferError):
                memoryview(wrong)
        self.assertEqual(bytes(tenon.tensor([1, 2], dtype=tenon.uint8)), b"\x01\x02")
        turned = tenon.arange(6, dtype=tenon.uint8).reshape(2, 3).T
        self.assertEqual(memoryview(turned).tobytes(), bytes([0, 3, 1, 4, 2, 5]))
        with self.assertRaises(BufferError):  # it is read as it lies
            hashlib.sha256(turned)
        flat = turned.reshape(-1)
        self.assertEqual(hashlib.sha256(flat).digest(), hashlib.sha256(bytes([0, 3, 1, 4, 2, 5])).digest())
        self.assertEqual(memoryview(tenon.zeros(0, 3)).shape, (0, 3))

    @unittest.skipIf(numpy is None, "NumPy is not here")
    def test_numpy(self):
        a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        t = tenon.from_numpy(a)
        t += 1
        self.assertEqual(a.tolist(), [[1, 2, 3], [4, 5, 6]])
        back = t.numpy()
        self.assertEqual((back.tolist(), back.dtype), (a.tolist(), numpy.float32))
        self.assertEqual(numpy.asarray(tenon.ones(2, dtype=tenon.bfloat16)).dtype, numpy.float32)
        self.assertEqual(tenon.tensor(a[:, ::-1].copy()).tolist(), [[3, 2, 1], [6, 5, 4]])
        self.assertEqual((tenon.ones(2) * numpy.float32(3)).tolist(), [3, 3])
        self.assertEqual((tenon.arange(3) + numpy.int64(3)).tolist(), [3, 4, 5])

    @unittest.skipIf(numpy is None, "NumPy is not here")
    def test_storage_dtypes_of_numpy(self):
        for name in ("uint16", "uint32", "uint64", "complex64", "complex128"):
            a = (numpy.arange(12) * 3 - 5).astype(name).reshape(3, 4)
            for device in ("cpu:0", "sim:0"):
                t = tenon.tensor(a, device=device)
                self.assertIs(t.dtype, getattr(tenon, name))
                for ours, theirs in ((t, a), (t.T, a.T), (t[1:, ::2], a[1:, ::2]), (t.flip((0,)), a[::-1])):
                    self.assertEqual((ours.numpy().dtype, ours.numpy().tolist()), (a.dtype, theirs.tolist()))
            shared = tenon.from_numpy(a)
            shared[0] = shared[2]
            self.assertEqual(a[0].tolist(), a[2].tolist())
            self.assertEqual(numpy.from_dlpack(shared).tolist(), a.tolist())
            for other in ("float32", "int64", "bool", "uint8", "complex64"):
                with warnings.catch_warnings(action="ignore"):  # imaginary parts are dropped
                    self.assertEqual(shared.to(getattr(tenon, other)).tolist(), a.astype(other).tolist(), (name, other))

    @unittest.skipIf(numpy is None, "NumPy is not here")
    def test_a_buffer_says_why_it_is_none(self):
        with self.assertRaisesRegex(TypeError, "'>i' is in the order of bytes of another machine; NumPy turns it round") as raised:
            tenon.tensor(numpy.array([1, 2], dtype=">i4"))
        self.assertNotIn("dimensions", str(raised.exception))
        swapped = numpy.array([1, 2], dtype=">i4")
        self.assertEqual(tenon.tensor(swapped.astype(swapped.dtype.newbyteorder("="))).tolist(), [1, 2])
        with self.assertRaisesRegex(TypeError, "the buffer has 13 dimensions; tensors have 12 at most"):
            tenon.tensor(numpy.ones((1,) * 13, dtype="f4"))
        with self.assertRaisesRegex(TypeError, "no dtype of Tenon is like the buffer's 'g'$"):
            tenon.tensor(numpy.ones(1, dtype=numpy.longdouble))

    @unittest.skipIf(numpy is None, "NumPy is not here")
    def test_complex_numbers_of_numpy_keep_both_parts(self):
        for number in (numpy.complex64(1 + 2j), numpy.complex128(1 + 2j)):
            for data in (number, [number], [1, number]):
                self.assertEqual(tenon.tensor(data).reshape(-1).tolist()[-1], 1 + 2j)
            with self.assertRaises(TypeError):
                tenon.tensor([number], dtype=tenon.float32)
        self.assertEqual(tenon.tensor([numpy.float32(1.5), numpy.int8(2)]).dtype, tenon.float32)


class DLPack(unittest.TestCase):
    def test_there_and_back(self):
        for device in ("cpu:0", "sim:0"):
            t = tenon.tensor([[1.0, 2.0]], device=device)
            other = tenon.from_dlpack(t)
            other += 1
            self.assertEqual((t.tolist(), str(other.device)), ([[2, 3]], device))
            copied = tenon.from_dlpack(t, copy=True)
            copied += 1
            self.assertEqual(t.tolist(), [[2, 3]])
        self.assertEqual(tenon.ones(1).__dlpack_device__(), (1, 0))
        self.assertEqual(tenon.from_dlpack(tenon.ones(1, device="sim:0").__dlpack__(dl_device=(1, 0), max_version=(1, 0))).tolist(),
                         [1])

    def test_capsules(self):
        t = tenon.ones(2)
        capsule = t.__dlpack__(max_version=(1, 0))
        self.assertEqual(tenon.from_dlpack(capsule).tolist(), [1, 1])
        with self.assertRaisesRegex(TypeError, "taken before"):
            tenon.from_dlpack(capsule)
        old = t.__dlpack__()
        del old  # nobody took it: it gives back what it holds
        with self.assertRaises(tenon.Error):
            tenon.ones(1, requires_grad=True).__dlpack__()
        with self.assertRaises(BufferError):
            tenon.ones(1, device="sim:0").__dlpack__(dl_device=(1, 0), copy=False)
        with self.assertRaises(AttributeError):
            tenon.from_dlpack(3)

    def test_memory_goes_with_the_last_side(self):
        before = tenon.memory_stats("cpu:0")["allocated_bytes"]
        capsule = tenon.ones(1000).__dlpack__(max_version=(1, 0))
        other = tenon.from_dlpack(capsule)
        del capsule
        self.assertGreater(tenon.memory_stats("cpu:0")["allocated_bytes"], before)
        del other
        self.assertEqual(tenon.memory_stats("cpu:0")["allocated_bytes"], before)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "model.safetensors")

    def tearDown(self):
        self.folder.cleanup()

    def test_there_and_back(self):
        state = {"a": tenon.tensor([[1.5, 2.5]], dtype=tenon.bfloat16), "b": tenon.tensor([True, False]), "none": tenon.zeros(0, 2),
                 "c": tenon.arange(3, device="sim:0"), "d": tenon.tensor([2**64 - 1, 0], dtype=tenon.uint64),
                 "e": tenon.tensor([1 + 2j])}
        tenon.save(state, self.path)
        found = tenon.load(self.path)
        self.assertEqual(set(found), set(state))
        for name in state:
            self.assertEqual((found[name].tolist(), found[name].dtype, found[name].shape),
                             (state[name].tolist(), state[name].dtype, state[name].shape))
        self.assertEqual(str(tenon.load(self.path, "sim:0")["a"].device), "sim:0")
        self.assertEqual(os.listdir(self.folder.name), ["model.safetensors"])

    def test_files_that_are_none(self):
        tenon.save({"a": tenon.ones(2)}, self.path)
        with open(self.path, "rb") as file:
            good = file.read()
        header = b'{"a":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}}'
        bad = [b"", b"short", good[:-1], struct.pack("<Q", 2**63) + good[8:], struct.pack("<Q", 5) + b"[1,2]" + b"0" * 50]
        for shape, place in ((b"2", b"0,9"), (b"2", b"-8,0"), (b"3", b"0,8"), (b"-2", b"0,8"), (b"1073741824,1073741824,1073741824",
                             b"0,8"), (b"2", b"8,0"), (b"2", b"0")):
            text = header % (shape, place)
            bad.append(struct.pack("<Q", len(text)) + text + bytes(8))
        for data in bad:
            with open(self.path, "wb") as file:
                file.write(data)
            with self.assertRaises(tenon.FileError, msg=data):
                tenon.load(self.path)
        with self.assertRaises(LookupError):
            tenon.load(self.path + ".none")
        for tensors in ({"a": 3}, {3: tenon.ones(1)}, [tenon.ones(1)], {"__metadata__": tenon.ones(1)}):
            with self.assertRaises((TypeError, tenon.Error)):
                tenon.save(tensors, self.path)


if __name__ == "__main__":
    unittest.main()
