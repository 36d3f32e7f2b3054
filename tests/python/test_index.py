"""x[key] and x[key] = value, compared with a model of NumPy's rules over nested lists, and with NumPy where it is."""

import itertools
import random
import unittest

import tenon

try:
    import numpy
except ImportError:
    numpy = None


def count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def numbers(shape, device="cpu:0"):
    return tenon.arange(count(shape), dtype=tenon.int64, device=device).reshape(shape)


def model(shape, key):
    """(shape, row-major list of positions in the source) of basic keys."""
    key = key if isinstance(key, tuple) else (key,)
    n = sum(k is not None and k is not Ellipsis for k in key)
    if Ellipsis in key:
        at = key.index(Ellipsis)
        key = key[:at] + (slice(None),) * (len(shape) - n) + key[at + 1:]
    else:
        key = key + (slice(None),) * (len(shape) - n)
    axes, out, d = [], [], 0
    for k in key:
        if k is None:
            out.append(1)
            continue
        places = range(shape[d])
        axes.append([places[k]] if isinstance(k, int) else list(places[k]))
        if not isinstance(k, int):
            out.append(len(axes[-1]))
        d += 1
    flat = []
    for place in itertools.product(*axes):
        position = 0
        for size, i in zip(shape, place):
            position = position * size + i
        flat.append(position)
    return tuple(out), flat


KEYS = [0, -1, slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(2, 0), slice(-2, None), slice(0, 100),
        slice(None, None, -1), slice(-1, None, -2), slice(0, 0), slice(1, 2), Ellipsis, None]


class Basic(unittest.TestCase):
    def test_every_pair_of_keys(self):
        for device in ("cpu:0", "sim:0"):
            x = numbers((3, 4, 2), device)
            for pair in itertools.product(KEYS, repeat=2):
                if pair.count(Ellipsis) > 1:
                    continue
                shape, flat = model((3, 4, 2), pair)
                made = x[pair]
                self.assertEqual((made.shape, made.reshape(-1).tolist()), (shape, flat), pair)
            for key in KEYS:
                shape, flat = model((3, 4, 2), key)
                self.assertEqual((x[key].shape, x[key].reshape(-1).tolist()), (shape, flat), key)

    def test_views_share_memory(self):
        x = numbers((3, 4))
        y = x[1:, ::2]
        y += 100
        self.assertEqual(x.tolist(), [[0, 1, 2, 3], [104, 5, 106, 7], [108, 9, 110, 11]])
        self.assertIsNot(x[...], x)
        self.assertEqual(x[...].data_ptr(), x.data_ptr())

    def test_assignment_of_every_pair_of_keys(self):
        for pair in itertools.product(KEYS, repeat=2):
            if pair.count(Ellipsis) > 1:
                continue
            x, (shape, flat) = numbers((3, 4, 2)), model((3, 4, 2), pair)
            expected = list(range(24))
            for i, position in enumerate(flat):
                expected[position] = 1000 + i
            x[pair] = numbers(shape) + 1000
            self.assertEqual(x.reshape(-1).tolist(), expected, pair)
            x[pair] = -1
            for position in flat:
                expected[position] = -1
            self.assertEqual(x.reshape(-1).tolist(), expected, pair)

    def test_values_are_broadcast_and_converted(self):
        x = tenon.zeros(2, 3)
        x[:] = [1, 2, 3]
        x[0] = 7
        x[1, 1:] = tenon.tensor([[5, 6]])
        self.assertEqual(x.tolist(), [[7, 7, 7], [1, 5, 6]])
        x[::-1, 0] = tenon.tensor([1.5, 2.5])
        self.assertEqual(x.tolist(), [[2.5, 7, 7], [1.5, 5, 6]])

    def test_keys_that_are_none(self):
        x = numbers((3, 4))
        for key, error in ((3, IndexError), (-4, IndexError), ((0, 4), IndexError), ((0, 0, 0), IndexError), ("a", TypeError),
                           (1.5, TypeError), (slice("a", None), TypeError), (slice(None, None, 0), ValueError),
                           ((Ellipsis, Ellipsis), IndexError), (tenon.tensor([0.5]), IndexError), (tenon.tensor([3]), IndexError)):
            with self.assertRaises(error, msg=key):
                x[key].tolist()
        with self.assertRaises(TypeError):
            del x[0]
        with self.assertRaises((ValueError, RuntimeError)):
            x[0] = tenon.zeros(5)


class Gathering(unittest.TestCase):
    def test_what_is_no_index(self):
        x = tenon.arange(5)
        for index in (tenon.tensor([1.0]), tenon.tensor([1j]), tenon.tensor([2 ** 64 - 1], dtype=tenon.uint64)):
            with self.assertRaisesRegex(IndexError, "indices are of integers"):
                x[index]
            with self.assertRaisesRegex(IndexError, "indices are of integers"):
                x[index] = 0
        self.assertEqual(x[tenon.tensor([4, 0], dtype=tenon.uint32)].tolist(), [4, 0])

    def test_tensors_lists_and_masks(self):
        for device in ("cpu:0", "sim:0"):
            x = numbers((3, 4), device)
            rows = tenon.tensor([2, 0], device=device)
            self.assertEqual(x[rows].tolist(), [[8, 9, 10, 11], [0, 1, 2, 3]])
            self.assertEqual(x[[2, 0]].tolist(), [[8, 9, 10, 11], [0, 1, 2, 3]])
            self.assertEqual(x[:, [1, -1]].tolist(), [[1, 3], [5, 7], [9, 11]])
            self.assertEqual(x[rows, [1, 3]].tolist(), [9, 3])
            self.assertEqual(x[[[0, 1], [2, 0]], 1].tolist(), [[1, 5], [9, 1]])
            self.assertEqual(x[x > 8].tolist(), [9, 10, 11])
            self.assertEqual(x[[True, False, True]].tolist(), [[0, 1, 2, 3], [8, 9, 10, 11]])
            self.assertEqual(x[[]].shape, (0, 4))
            self.assertEqual(x[tenon.tensor(1, device=device)].tolist(), [4, 5, 6, 7])
            self.assertEqual(x[True].shape, (1, 3, 4))
            self.assertEqual(x[False].shape, (0, 3, 4))
            self.assertEqual(x[::-1][rows].tolist(), [[0, 1, 2, 3], [8, 9, 10, 11]])

    def test_assignment(self):
        x = numbers((3, 4))
        x[[0, 2], [1, 3]] = 100
        x[x < 3] = -1
        x[[1]] = tenon.tensor([5, 6, 7, 8])
        self.assertEqual(x.tolist(), [[-1, 100, -1, 3], [5, 6, 7, 8], [8, 9, 10, 100]])
        y = tenon.zeros(4)
        y[::-1][[0, 1]] = 1
        self.assertEqual(y.tolist(), [0, 0, 0, 0])  # what runs backwards is a copy
        y[::-1, None][[0]] = 2
        z = numbers((4,))
        z[::-1] = numbers((4,))
        self.assertEqual(z.tolist(), [3, 2, 1, 0])

    def test_complex_numbers_do_not_become_real_ones(self):
        x, z = tenon.zeros(3), tenon.tensor([1j, 2, 3])
        for key in (slice(None), slice(1, None), [0, 1, 2], tenon.tensor([True, False, True]), 0):
            with self.assertRaisesRegex(TypeError, "take their real parts"):
                x[key] = z[key]
        self.assertEqual(x.tolist(), [0, 0, 0])
        x[:] = z.real
        z[1:] = x[1:]
        self.assertEqual((x.tolist(), z.tolist()), ([0, 2, 3], [1j, 2, 3]))

    def test_masks_that_do_not_fit(self):
        x = numbers((2, 3))
        for sizes in ((3,), (2, 2), (1, 3), (2, 0, 1)):
            with self.assertRaises(IndexError):
                x[tenon.ones(sizes, dtype=tenon.bool)]
        for device in ("cpu:0", "sim:0"):  # of size 0 it takes nothing
            x = numbers((2, 3), device)
            for sizes, shape in (((0,), (0, 3)), ((2, 0), (0,)), ((0, 3), (0,))):
                nothing = tenon.zeros(sizes, dtype=tenon.bool, device=device)
                self.assertEqual(x[nothing].shape, shape)
                x[nothing] = -1
            self.assertEqual(x.tolist(), [[0, 1, 2], [3, 4, 5]])

    @unittest.skipIf(numpy is None, "NumPy is not here")
    def test_as_numpy_does(self):
        rng = random.Random(5)
        shape = (3, 4, 2, 5)
        x, n = numbers(shape), numpy.arange(count(shape)).reshape(shape)

        def item(size):
            kind = rng.randrange(6)
            if kind == 0:
                return rng.randrange(-size, size)
            if kind == 1:
                return slice(rng.choice([None, 0, 1, -1]), rng.choice([None, size, -1]), rng.choice([None, 1, 2, -1]))
            if kind == 2:
                return [rng.randrange(-size, size) for _ in range(3)]
            if kind == 3:
                return [[rng.randrange(size)] for _ in range(2)]
            if kind == 4:
                return None
            return slice(None)

        n_same = 0
        for _ in range(3000):
            key, d = [], 0
            while d < rng.randrange(1, 5):
                key.append(item(shape[d]))
                d += key[-1] is not None
            if rng.random() < 0.2:
                key.append(Ellipsis)
            # NumPy counts an integer beside lists as a list, which moves dimensions; PyTorch and the array API do not
            lists = [isinstance(k, list) for k in key]
            if any(lists) and any(isinstance(k, int) for k in key):
                continue
            key = tuple(key)
            expected = n[key]
            made = x[key]
            self.assertEqual((made.shape, made.tolist()), (expected.shape, expected.tolist()), key)
            n_same += 1
        self.assertGreater(n_same, 1500)


if __name__ == "__main__":
    unittest.main()
