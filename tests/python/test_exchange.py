"""DLPack's exchange table, called as a C library would call it, and with PyTorch's at the other side where PyTorch is there."""

import ctypes
import gc
import sys
import threading
import unittest

import tenon

try:
    import torch
except ImportError:
    torch = None

CPU, EXT_DEV, FLOAT, BOOL, BFLOAT = 1, 12, 2, 6, 4


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("ctx", ctypes.c_void_p), ("deleter", Deleter),
                    ("flags", ctypes.c_uint64), ("tensor", DLTensor)]
ManagedPointer = ctypes.POINTER(Managed)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev", ctypes.c_void_p),
                ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ManagedPointer),
                                              ctypes.c_void_p, SetError)),
                ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ManagedPointer))),
                ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, ManagedPointer, ctypes.POINTER(ctypes.c_void_p))),
                ("view", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
                ("stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)))]


def table_of(kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Table.from_address(get(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


OURS = table_of(tenon.Tensor)


def taken(table, managed):
    """The object that a table makes of a tensor."""
    out = ctypes.c_void_p()
    table.to_object(managed, ctypes.byref(out))
    made = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))  # the reference that was ours
    return made


def given(table, tensor):
    managed = ManagedPointer()
    table.from_object(tensor, ctypes.byref(managed))
    return managed


def allocated(shape, dtype=(FLOAT, 32, 1), device=(CPU, 0)):
    prototype = DLTensor(device=Device(*device), ndim=len(shape), dtype=DType(*dtype), shape=(ctypes.c_int64 * len(shape))(*shape))
    managed, errors = ManagedPointer(), []
    status = OURS.allocate(prototype, ctypes.byref(managed), 42,
                           SetError(lambda context, kind, message: errors.append((context, kind, message))))
    assert (status == 0) == bool(managed) == (not errors)
    return managed if managed else errors[0]


class Exchange(unittest.TestCase):
    def test_the_table(self):
        self.assertEqual((OURS.major, OURS.minor, OURS.prev), (1, 3, None))
        self.assertIs(tenon.nn.Parameter.__dlpack_c_exchange_api__, tenon.Tensor.__dlpack_c_exchange_api__)

    def test_there_and_back(self):
        for x in (tenon.arange(6, device="cpu:0").reshape(2, 3).T, tenon.ones(2, device="sim:0")):
            managed = given(OURS, x)
            self.assertEqual((managed.contents.major, managed.contents.tensor.ndim), (1, x.ndim))
            again = taken(OURS, managed)
            x += 1
            self.assertEqual((again.tolist(), again.device, again.stride()), (x.tolist(), x.device, x.stride()))

    def test_a_view(self):
        x = tenon.arange(12, device="cpu:0").reshape(3, 4)[1:, ::2]
        view = DLTensor()
        self.assertEqual(OURS.view(x, view), 0)
        self.assertEqual((view.data + view.byte_offset, view.ndim, view.shape[:2], view.strides[:2], view.dtype.bits),
                         (x.data_ptr(), 2, [2, 2], [4, 2], 64))
        OURS.view(tenon.ones(1, device="sim:0"), view)
        self.assertEqual((view.device.type, view.device.id), (EXT_DEV, 0))

    def test_what_cannot_be_given(self):
        for bad, kind in ((tenon.ones(1, requires_grad=True), BufferError), (tenon.ones(1, device="meta"), BufferError),
                          (3, TypeError)):
            with self.assertRaises(kind):
                given(OURS, bad)
            with self.assertRaises(kind):
                OURS.view(bad, DLTensor())

    def test_what_cannot_be_taken_is_ended(self):
        ended = []
        other = Managed(major=1, minor=3, deleter=Deleter(lambda managed: ended.append(1)),
                        tensor=DLTensor(device=Device(10, 0), ndim=0, dtype=DType(FLOAT, 32, 1)))
        with self.assertRaises(BufferError):
            taken(OURS, ctypes.pointer(other))
        self.assertEqual(ended, [1])

    def test_allocated(self):
        for dtype, name in (((FLOAT, 32, 1), "float32"), ((BFLOAT, 16, 1), "bfloat16"), ((BOOL, 8, 1), "bool"), ((0, 64, 1), "int64")):
            made = taken(OURS, allocated((2, 3), dtype))
            self.assertEqual((made.shape, made.dtype, made.device), ((2, 3), getattr(tenon, name), tenon.device("cpu:0")))
        self.assertEqual(taken(OURS, allocated((), device=(CPU, 0))).shape, ())
        tenon.device("sim:0")
        self.assertEqual(taken(OURS, allocated((4,), device=(EXT_DEV, 0))).device, tenon.device("sim:0"))
        for wrong in (allocated((2,), (FLOAT, 8, 1)), allocated((2,), (FLOAT, 32, 2)), allocated((2,), device=(10, 0)),
                      allocated((2,), device=(EXT_DEV, 99)), allocated((-2,))):
            self.assertEqual(wrong[:2], (42, b"BufferError"))
        self.assertEqual(allocated((2**60,))[1], b"MemoryError")
        self.assertEqual((tenon.ones(2) + 1).tolist(), [2, 2])  # nothing stands behind

    def test_the_stream(self):
        out = ctypes.c_void_p(1)
        self.assertEqual((OURS.stream(CPU, 0, out), out.value), (0, None))
        with self.assertRaises(BufferError):
            OURS.stream(10, 0, out)

    def test_memory_is_given_back(self):
        x = tenon.ones(1000, device="cpu:0")
        before, count = tenon.memory_stats("cpu:0")["allocated_bytes"], sys.getrefcount(x)
        for _ in range(500):
            taken(OURS, given(OURS, x))
            OURS.view(x, DLTensor())
            taken(OURS, allocated((100,)))
        gc.collect()
        self.assertEqual((tenon.memory_stats("cpu:0")["allocated_bytes"], sys.getrefcount(x)), (before, count))
        del x
        gc.collect()
        self.assertLessEqual(tenon.memory_stats("cpu:0")["allocated_bytes"], before - 4000)

    def test_allocated_by_threads(self):
        def work():
            for _ in range(200):
                managed = allocated((10,))
                managed.contents.deleter(managed)

        threads = [threading.Thread(target=work) for _ in range(4)]
        before = tenon.memory_stats("cpu:0")["allocated_bytes"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(tenon.memory_stats("cpu:0")["allocated_bytes"], before)


@unittest.skipUnless(hasattr(getattr(torch, "Tensor", None), "__dlpack_c_exchange_api__"), "PyTorch, or its table, is not there")
class PyTorch(unittest.TestCase):
    def setUp(self):
        self.theirs = table_of(torch.Tensor)

    def test_theirs_as_ours(self):
        for made in (torch.arange(6).reshape(2, 3).T, torch.ones(3, dtype=torch.bfloat16), torch.tensor(2.5), torch.ones(0, 2)):
            x = taken(OURS, given(self.theirs, made))
            made += 1
            self.assertEqual((x.tolist(), x.shape, x.stride()), (made.tolist(), tuple(made.shape), made.stride()))
            if made.numel():
                self.assertEqual(x.data_ptr(), made.data_ptr())

    def test_ours_as_theirs(self):
        for x in (tenon.arange(6, device="cpu:0").reshape(2, 3).T, tenon.tensor([True, False], device="cpu:0"),
                  tenon.tensor(2.5, device="cpu:0")):
            made = taken(self.theirs, given(OURS, x))
            self.assertEqual((made.tolist(), made.stride()), (x.tolist(), x.stride()))
            del x
            made.fill_(1)

    def test_by_their_functions(self):
        x = tenon.ones(3, device="cpu:0")
        made = torch.from_dlpack(x)
        made += 1
        self.assertEqual(x.tolist(), [2, 2, 2])


if __name__ == "__main__":
    unittest.main()
