#!/usr/bin/env python3
"""Plays a language binding: generated functions, owned results, memory shared with others, nothing left.

usage: binding_test.py LIBTENON TENON
"""

import array
import ctypes
import gc
import sys
import threading
import unittest

import binding

try:
    import numpy
except ImportError:
    numpy = None

t = None  # the binding.Library
DEVICES = ("cpu:0", "sim:0")


class Case(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(t.c.tn_scope_held(), 0)  # no scope ever has anything


class Operators(Case):
    def test_every_c_function_is_there(self):
        for op in t.ops.values():
            self.assertTrue(getattr(t.c, op.description["function"]), op.description["name"])

    def test_arguments_by_position_and_by_name(self):
        for device in DEVICES:
            a, b = t.tensor([1, 2, 3, 4], (2, 2), device=device), t.tensor([10, 20], (2,), device=device)
            add = t.ops["add.Tensor"]
            self.assertEqual(add(a, b).tolist(), [11, 22, 13, 24])
            self.assertEqual(add(self=a, alpha=2, other=b).tolist(), [21, 42, 23, 44])
            self.assertEqual(t.ops["matmul"](a, a).tolist(), [7, 10, 15, 22])
            self.assertEqual(t.ops["sum.dim"](a, [0], dtype="f64").tolist(), [4, 6])
            self.assertEqual(t.ops["clamp"](a, max=2.5).tolist(), [1, 2, 2.5, 2.5])
            full = t.ops["full"]([2], True, dtype="bool", device=device)
            self.assertEqual((full.tolist(), full.dtype), ([True, True], "bool"))

    def test_forms(self):
        a, out = t.tensor([1, 2], (2,)), t.tensor([0, 0], (2,))
        self.assertIs(t.ops["mul_.Scalar"](a, 3), a)
        self.assertIs(t.ops["add.out"](a, a, out=out), out)
        self.assertEqual(out.tolist(), [6, 12])

    def test_lists_know_their_length(self):
        x = t.ops["arange"](10, dtype="i64")
        parts = t.ops["chunk"](x, 4)
        self.assertEqual([p.shape for p in parts], [(3,), (3,), (3,), (1,)])
        self.assertEqual(t.ops["cat"](parts[::-1]).tolist(), [9, 6, 7, 8, 3, 4, 5, 0, 1, 2])
        self.assertEqual(t.ops["split"](t.ops["zeros"]([0]), 1)[0].shape, (0,))

    def test_several_results(self):
        values, indices = t.ops["max.dim"](t.tensor([1, 5, 3, 2], (2, 2)), 1)
        self.assertEqual((values.tolist(), indices.tolist()), ([5, 3], [1, 0]))

    def test_errors_are_exceptions(self):
        a = t.tensor([1, 2, 3, 4], (2, 2))
        with self.assertRaisesRegex(binding.Error, r"SHAPE: matmul: .*\[2, 2\] x \[3\]"):
            t.ops["matmul"](a, t.tensor([1, 2, 3], (3,)))
        with self.assertRaisesRegex(TypeError, "'other' is missing"):
            t.ops["add.Tensor"](a)
        with self.assertRaisesRegex(TypeError, "3 positional arguments; there are 2"):
            t.ops["add.Tensor"](a, a, 2)

    def test_every_operator_can_be_called(self):
        """With arguments of the right type and no sense: each answers, or says why not."""
        n_answered = 0
        for device in DEVICES:
            samples = {"int": 1, "int[]": [1, 1], "float": 0.5, "bool": False, "Scalar": 1, "ScalarType": "f32",
                       "Device": device, "str": "mean"}
            for op in t.ops.values():
                arguments = {}
                for arg in op.description["args"]:
                    tensor = t.tensor([1, 2, 3, 4], (2, 2), device=device)
                    if "default" not in arg:
                        arguments[arg["name"]] = {"Tensor": tensor, "Tensor[]": [tensor, tensor]}.get(
                            arg["type"], samples.get(arg["type"]))
                try:
                    op(**arguments)
                    n_answered += 1
                except binding.Error as error:
                    self.assertNotIn("INTERNAL", str(error))
        self.assertGreater(n_answered, 300)


class Ownership(Case):
    def test_gradients(self):
        x = t.tensor([3, 4], (2,), "f64")
        t.c.tn_set_requires_grad(x.handle, True)
        loss = t.ops["sum"](t.ops["mul.Tensor"](x, x))
        t.check(t.c.tn_backward(loss.handle))
        grad = t.wrap(t.c.tn_keep(t.c.tn_grad(x.handle)))
        self.assertEqual(grad.tolist(), [6, 8])

    def test_threads_own_what_they_make(self):
        found = []

        def work():
            t.check(t.c.tn_set_results_owned(True))
            x = t.tensor([1, 2], (2,))
            found.append(t.ops["add.Tensor"](x, x))
            found.append(t.c.tn_scope_held())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual((found[0].tolist(), found[1]), ([2, 4], 0))

    def test_a_storage_outlives_its_tensor(self):
        x = t.tensor([1, 2, 3, 4], (4,))
        storage = t.c.tn_storage_keep(t.c.tn_storage_of(x.handle))
        del x
        self.assertEqual(t.c.tn_storage_bytes(storage), 16)
        self.assertEqual(ctypes.c_float.from_address(t.c.tn_storage_address(storage) + 8).value, 3)
        f32 = t.dtypes["f32"]["number"]
        turned = t.wrap(t.c.tn_from_storage(storage, binding.ints_of([2, 2]), binding.ints_of([1, 2]), 0, f32))
        t.c.tn_storage_drop(storage)
        self.assertEqual(turned.tolist(), [1, 3, 2, 4])


class Memory(Case):
    def test_a_tensor_over_python_memory(self):
        numbers, released = array.array("f", [1, 2, 3, 4]), []
        release = binding.RELEASE(released.append)
        at, _ = numbers.buffer_info()
        x = t.wrap(t.c.tn_from_blob(at, binding.ints_of([2, 2]), binding.ints_of([1, 2]), t.dtypes["f32"]["number"],
                                    t.device("cpu:0"), release, 7))
        self.assertEqual(x.tolist(), [1, 3, 2, 4])
        t.ops["mul_.Scalar"](x, 10)
        self.assertEqual(numbers[3], 40)
        view = t.ops["select"](x, 0, 1)
        del x
        self.assertEqual((view.tolist(), released), ([20, 40], []))
        del view
        self.assertEqual(released, [7])

    def test_dlpack_with_itself(self):
        for device in DEVICES:
            x = t.tensor([1, 2, 3, 4], (2, 2), device=device)
            y = t.from_dlpack(t.ops["t"](x), copy=False)
            self.assertEqual(y.tolist(), [1, 3, 2, 4])
            t.ops["fill_"](y, 5)
            self.assertEqual(x.tolist(), [5, 5, 5, 5])
            z = t.from_dlpack(x, copy=True)
            t.ops["zero_"](x)
            self.assertEqual((z.tolist(), y.tolist()), ([5] * 4, [0] * 4))
            self.assertEqual(x.__dlpack_device__()[0], {"cpu:0": 1, "sim:0": 12}[device])

    def test_a_capsule_is_taken_once_or_ends_itself(self):
        x = t.tensor([1, 2], (2,))
        x.__dlpack__()  # nobody takes it
        x.__dlpack__(max_version=(1, 0))
        capsule = x.__dlpack__(max_version=(1, 3))

        class Once:
            def __dlpack__(self, **_):
                return capsule

        self.assertEqual(t.from_dlpack(Once()).tolist(), [1, 2])
        with self.assertRaisesRegex(binding.Error, "taken"):
            t.from_dlpack(Once())

    def test_another_producer(self):
        """What a library of before 1.0 hands out, and one of today with data that must not be written."""
        numbers, deleted = array.array("i", [1, 2, 3]), []
        seen = []
        for name, kind in ((b"dltensor", binding.DLManagedTensor),
                           (b"dltensor_versioned", binding.DLManagedTensorVersioned)):
            shape = (ctypes.c_int64 * 1)(3)
            managed = kind(deleter=binding.DELETER(lambda _, name=name: deleted.append(name)))
            managed.dl_tensor = binding.DLTensor(numbers.buffer_info()[0], (1, 0), 1, (0, 32, 1), shape, shape, 0)
            managed.dl_tensor.strides = (ctypes.c_int64 * 1)(1)
            if name == b"dltensor_versioned":
                managed.major, managed.minor, managed.flags = 1, 3, 1

            class Producer:
                def __dlpack__(self, **_):
                    return binding.capsule_new(ctypes.addressof(managed), name, None)

            if name == b"dltensor_versioned":
                with self.assertRaisesRegex(binding.Error, "read-only"):
                    t.from_dlpack(Producer(), copy=False)
            x = t.from_dlpack(Producer())
            self.assertEqual(x.dtype, "i32")
            t.ops["add_.Scalar"](x, 1)
            seen.append((x.tolist(), list(numbers)))
            del x
            self.assertEqual(deleted.pop(), name)
        self.assertEqual(seen, [([2, 3, 4], [2, 3, 4]), ([3, 4, 5], [2, 3, 4])])  # shared, and copied

    @unittest.skipUnless(numpy, "numpy is not there")
    def test_numpy(self):
        x = t.tensor(range(6), (2, 3))
        theirs = numpy.from_dlpack(x)
        theirs[1, 2] = 50
        self.assertEqual(x.tolist()[5], 50)
        ours = t.from_dlpack(numpy.arange(6, dtype="int64").reshape(2, 3).T)
        self.assertEqual((ours.shape, ours.tolist()), ((3, 2), [0, 3, 1, 4, 2, 5]))
        self.assertEqual(t.from_dlpack(numpy.arange(3.0)[::-1]).tolist(), [2, 1, 0])


if __name__ == "__main__":
    t = binding.Library(sys.argv[1], sys.argv[2])
    passed = unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful()
    gc.collect()
    t.check(t.c.tn_shutdown())  # TN_ERR_STATE while any tensor is alive
    sys.exit(not passed)
