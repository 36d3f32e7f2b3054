"""Datasets and loaders."""

import collections
import gc
import os
import pathlib
import tempfile
import threading
import time
import unittest
import unittest.mock
import weakref

import tenon
from tenon.data import DataLoader, Dataset, IdxDataset, TensorDataset, default_collate

Pair = collections.namedtuple("Pair", "x y")


class Squares(Dataset):
    def __init__(self, n=10):
        self.n, self.threads = n, set()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        self.threads.add(threading.current_thread().name)
        return tenon.tensor([float(i), float(i * i)], device="cpu:0"), i


def indices(loader):
    return [batch[1].tolist() for batch in loader]


def tensors(n=10):
    x = tenon.arange(n, device="cpu:0")
    return TensorDataset(x.float().reshape(n, 1), x)


def loaders(**options):
    """The library's own, and that of Python, with and without threads."""
    yield DataLoader(tensors(), **options)
    yield DataLoader(Squares(), **options)
    yield DataLoader(tensors(), num_workers=2, **options)
    yield DataLoader(Squares(), num_workers=3, **options)
    yield DataLoader(Squares(), num_workers=1, prefetch_factor=1, **options)


class Orders(unittest.TestCase):
    def test_batches(self):
        for loader in loaders(batch_size=4):
            self.assertEqual((len(loader), indices(loader)), (3, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]))
        for loader in loaders(batch_size=4, drop_last=True):
            self.assertEqual((len(loader), indices(loader)), (2, [[0, 1, 2, 3], [4, 5, 6, 7]]))

    def test_shuffled_alike_whoever_reads(self):
        orders = [[indices(loader) for _ in range(3)] for loader in loaders(batch_size=3, shuffle=True, generator=7)]
        self.assertTrue(all(order == orders[0] for order in orders))
        self.assertNotEqual(orders[0][0], orders[0][1])
        self.assertEqual(sorted(sum(orders[0][0], [])), list(range(10)))
        tenon.manual_seed(7)
        self.assertEqual(indices(DataLoader(Squares(), batch_size=3, shuffle=True)), orders[0][0])

    def test_resumed(self):
        whole = [indices(DataLoader(Squares(), 3, True, generator=5)), None]
        loader = DataLoader(Squares(), 3, True, generator=5)
        indices(loader)
        whole[1] = indices(loader)
        for first, second in zip(loaders(batch_size=3, shuffle=True, generator=5),
                                 loaders(batch_size=3, shuffle=True, generator=1)):
            given = [batch[1].tolist() for _, batch in zip(range(2), first)]
            state = first.state_dict()
            self.assertEqual(state, {"seed": 5, "epoch": 0, "position": 6})
            second.load_state_dict(state)
            self.assertEqual(given + indices(second), whole[0])
            self.assertEqual(indices(second), whole[1])
            self.assertEqual(indices(first), whole[1])  # the epoch that was left is over

    def test_one_iteration_at_a_time(self):
        for loader in loaders(batch_size=2):
            old = iter(loader)
            next(old)
            new = iter(loader)
            next(new)
            with self.assertRaisesRegex(RuntimeError, "another iteration"):
                next(old)

    def test_bad_arguments(self):
        for bad in ({"batch_size": 0}, {"batch_size": 20, "drop_last": True}, {"num_workers": -1}, {"prefetch_factor": 2},
                    {"num_workers": 1, "prefetch_factor": 0}):
            for dataset in (tensors(), Squares()):
                with self.assertRaises(ValueError):
                    DataLoader(dataset, **bad)
        with self.assertRaises(TypeError):
            DataLoader(Squares(), generator="7")
        with self.assertRaises(ValueError):
            TensorDataset(tenon.ones(2), tenon.ones(3))


class Batches(unittest.TestCase):
    def test_collated(self):
        made = default_collate([{"a": Pair(1, 2.5), "b": "x", "c": True}, {"a": Pair(3, 4.5), "b": "y", "c": False}])
        self.assertEqual((made["a"].x.tolist(), made["a"].y.tolist(), made["b"]), ([1, 3], [2.5, 4.5], ["x", "y"]))
        self.assertEqual((made["a"].x.dtype, made["c"].dtype), (tenon.int64, tenon.bool))
        with self.assertRaises(ValueError):
            default_collate([(1, 2), (1,)])
        loader = DataLoader(Squares(), 2, collate_fn=lambda samples: len(samples), num_workers=2)
        self.assertEqual(list(loader), [2] * 5)
        loader = DataLoader(tensors(), 5, collate_fn=lambda samples: [len(sample) for sample in samples])
        self.assertEqual(list(loader), [[2] * 5] * 2)

    def test_on_a_device(self):
        for pins in (False, True):
            for loader in loaders(batch_size=4, device="sim:0", pin_memory=pins):
                for _ in range(3):
                    total = tenon.zeros(1, device="sim:0")
                    for x, i in loader:
                        self.assertEqual((x.device, i.device), (tenon.device("sim:0"),) * 2)
                        total += i.sum() + x[:, 0].sum()
                    self.assertEqual(total.item(), 90)
                self.assertEqual(tenon.current_stream("sim:0").id, 0)

    def test_copies_are_waited_for(self):
        class Large(Squares):
            def __getitem__(self, i):
                return tenon.full((1 << 20,), float(i), device="cpu:0")

        for pins in (False, True):
            pinned, pin = [], tenon._core._pin_memory
            with unittest.mock.patch.object(tenon._core, "_pin_memory", lambda *args: pinned.append(1) or pin(*args)):
                sums = [batch.sum() for batch in DataLoader(Large(4), 2, device="sim:0", pin_memory=pins)]
            self.assertEqual([one.item() for one in sums], [1 << 20, 5 << 20])
            self.assertEqual(len(pinned), 2 * pins)

    def test_texts_stay_where_they_are(self):
        class Texts(Squares):
            def __getitem__(self, i):
                return {"text": str(i), "pair": Pair(tenon.tensor([i]), i)}

        (batch,) = DataLoader(Texts(2), 2, device="sim:0", num_workers=1)
        self.assertEqual((batch["text"], str(batch["pair"].x.device), batch["pair"].y.tolist()), (["0", "1"], "sim:0", [0, 1]))

    def test_idx_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "labels")
            pathlib.Path(path).write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
            dataset = IdxDataset(path, pathlib.Path(path))
            self.assertEqual((len(dataset), dataset[1][0].item()), (3, 8))
            self.assertEqual([x.tolist() for x, _ in DataLoader(dataset, 2, device="cpu:0")], [[7, 8], [9]])
            with self.assertRaises(LookupError):
                IdxDataset(path + "no")


class Failing(unittest.TestCase):
    def test_in_the_turn_of_its_batch(self):
        class Bad(Squares):
            broken = True

            def __getitem__(self, i):
                if i == 5 and self.broken:
                    raise KeyError("five")
                return super().__getitem__(i)

        for workers in (0, 1, 3):
            dataset = Bad()
            loader, seen = DataLoader(dataset, 2, num_workers=workers), []
            with self.assertRaisesRegex(KeyError, "five") as caught:
                for _, i in loader:
                    seen.append(i.tolist())
            self.assertEqual((seen, caught.exception.__notes__), ([[0, 1], [2, 3]], ["DataLoader: of sample 5"]))
            dataset.broken = False
            loader.load_state_dict(loader.state_dict())
            self.assertEqual(indices(loader), [[4, 5], [6, 7], [8, 9]])

    def test_a_dataset_that_uses_its_loader(self):
        class Inside(Squares):
            def __getitem__(self, i):
                return next(iterator)

        for workers in (0, 2):
            iterator = iter(DataLoader(Inside(), 2, num_workers=workers))
            with self.assertRaisesRegex((ValueError, RuntimeError), "already executing|another iteration"):
                next(iterator)


class Threads(unittest.TestCase):
    def test_read_ahead_at_once(self):
        class Slow(Squares):
            at_once, most, lock = 0, 0, threading.Lock()

            def __getitem__(self, i):
                with self.lock:
                    self.at_once += 1
                    self.most = max(self.most, self.at_once)
                time.sleep(0.01)
                with self.lock:
                    self.at_once -= 1
                return super().__getitem__(i)

        dataset = Slow(24)
        self.assertEqual(len(indices(DataLoader(dataset, 2, num_workers=4))), 12)
        self.assertGreater(dataset.most, 1)
        self.assertTrue(all(name.startswith("tenon data") for name in dataset.threads))

    def test_left_in_the_middle(self):
        dataset = Squares(1000)
        before = threading.active_count()
        for _ in range(5):
            for _batch in DataLoader(dataset, 1, num_workers=2, device="sim:0"):
                break
            for _batch in DataLoader(tensors(100), 1, num_workers=2):
                break
        gc.collect()
        for _ in range(100):
            if threading.active_count() <= before:
                break
            time.sleep(0.02)
        self.assertLessEqual(threading.active_count(), before)
        gone = weakref.ref(dataset)
        del dataset
        gc.collect()
        self.assertIsNone(gone())

    def test_what_was_left_is_not_read(self):
        class Slow(Squares):
            read = 0

            def __getitem__(self, i):
                self.read += 1
                time.sleep(0.02)
                return i

        dataset = Slow(100)
        iterator = iter(DataLoader(dataset, 1, num_workers=1, prefetch_factor=50))
        next(iterator)
        iterator.close()
        seen = dataset.read
        time.sleep(0.1)
        self.assertLessEqual(dataset.read, seen + 1)

    def test_memory_is_given_back(self):
        def epoch():
            for dataset in (tensors(100), Squares(100)):
                for _ in DataLoader(dataset, 7, True, num_workers=2, device="sim:0", pin_memory=True):
                    pass

        epoch()
        gc.collect()
        before = [tenon.memory_stats(device)["allocated_bytes"] for device in ("cpu:0", "sim:0")]
        for _ in range(5):
            epoch()
        gc.collect()
        self.assertEqual([tenon.memory_stats(device)["allocated_bytes"] for device in ("cpu:0", "sim:0")], before)


if __name__ == "__main__":
    unittest.main()
