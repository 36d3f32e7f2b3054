"""Datasets, and loaders that make batches of them, by the names of torch.utils.data.

The order of samples is that of the C library's loader (docs/data.md): a seed, the epoch and the place in it say what comes next,
whatever the number of workers. Datasets of tensors and of IDX files are loaded by it altogether, without Python; others
in threads of Python, which pays where what they do lets the GIL go: reading files, decoding, tensors.
"""

import collections
import concurrent.futures
import operator
import threading

from . import _core


class Dataset:
    """A base for datasets, which need none: whatever has __len__ and __getitem__ is one."""

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")


class TensorDataset(Dataset):
    """TensorDataset(*tensors): sample i is the tuple of element i along the first dimension of each."""

    def __init__(self, *tensors):
        if not tensors or len({len(tensor) for tensor in tensors}) != 1:
            raise ValueError(f"a dataset is of one tensor at least, all equally long, not of {[t.shape for t in tensors]}")
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)


class IdxDataset(TensorDataset):
    """IdxDataset(*paths): of IDX files (MNIST's format), gzip'd or not."""

    def __init__(self, *paths):
        super().__init__(*(_core.read_idx(path, "cpu:0") for path in paths))


def default_collate(samples):
    """default_collate(samples): a batch of a list of samples. Tensors, arrays and numbers become a tensor with one dimension more;
    tuples, lists and dicts are gone into; others, such as texts, become a list."""
    first = samples[0]
    if isinstance(first, _core.Tensor):
        return _core.stack(samples)
    if isinstance(first, dict):
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(sample) for sample in samples}) != 1:
            raise ValueError("samples of different lengths make no batch; give a collate_fn")
        parts = [default_collate(list(part)) for part in zip(*samples)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    if isinstance(first, (int, float)):
        return _core.tensor(samples, device="cpu:0")
    if hasattr(first, "__array__"):
        return _core.stack([_core.tensor(sample, device="cpu:0") for sample in samples])
    return list(samples)


def _each(change, batch):
    """The batch with its tensors changed, however deep they are."""
    if isinstance(batch, _core.Tensor):
        return change(batch)
    if isinstance(batch, dict):
        return {key: _each(change, value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        parts = [_each(change, value) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


class _Mover:
    """Copies batches to a device on a stream of its own, beside the work on the last one. Used by one thread at a time."""

    def __init__(self, device, pins):
        self._device, self._pins, self._stream = _core.device(device), pins, _core.Stream(device)

    def __call__(self, batch):
        host = _each(self.pin, batch) if self._pins else batch
        before = _core.current_stream(self._device)
        _core.set_current_stream(self._stream)
        try:
            moved = _each(lambda tensor: tensor.to(self._device), host)
            copied = _core.Event(self._device)
            self._stream.record(copied)
        finally:
            _core.set_current_stream(before)
        return moved, copied

    def pin(self, tensor):
        return _core._pin_memory(tensor, self._device) if tensor.device.type == "cpu" else tensor

    def hand_over(self, moved, copied):
        """To the current stream, which waits for the copy; the thread does not."""
        stream = _core.current_stream(self._device)
        stream.wait(copied)
        _each(lambda tensor: tensor.record_stream(stream), moved)
        return moved


class DataLoader:
    """DataLoader(dataset, batch_size=1, shuffle=False, ...): an iteration is an epoch of batches.

    num_workers threads read ahead, prefetch_factor (2) batches for each of them. `generator` is the seed of the order, by
    default manual_seed's. Batches come on `device` (by default: where collate_fn made them; of TensorDataset and IdxDataset
    without a collate_fn the default device), copied on a stream of the loader's own, with pin_memory from pinned memory.

    state_dict() is where it stands; load_state_dict puts it back, and the next iteration goes on there. Otherwise an iteration
    that was left begins a new epoch. What a dataset raises comes out of the iteration in the turn of its batch, before which
    the loader stands then. One iteration at a time: a new one ends the last.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, *, num_workers=0, collate_fn=None, pin_memory=False, drop_last=False,
                 generator=None, prefetch_factor=None, device=None):
        if num_workers < 0 or (prefetch_factor is not None and (num_workers == 0 or prefetch_factor < 1)):
            raise ValueError(f"num_workers is {num_workers}, prefetch_factor {prefetch_factor}: workers read ahead, at least 1 each")
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.collate_fn = collate_fn or default_collate
        self._ahead = num_workers * (prefetch_factor or 2)
        self._lock, self._iteration, self._resumes = threading.Lock(), 0, False
        seed = 0 if generator is None else operator.index(generator)
        self._reads_itself = type(dataset) in (TensorDataset, IdxDataset) and collate_fn is None
        if self._reads_itself:
            source, workers, where = tuple(dataset.tensors), num_workers, device
        else:
            source, workers, where = len(dataset), 0, "cpu:0"
        self._loader = _core._loader(source, batch_size, shuffle, drop_last, seed, workers,
                                     self._ahead if workers else 0, where)
        self._mover = None if self._reads_itself or device is None else _Mover(device, pin_memory)
        self._state = _core._loader_get_state(self._loader)

    def __len__(self):
        return _core._loader_size(self._loader)[1]

    def state_dict(self):
        """state_dict(): seed, epoch and position: how many samples of the epoch were given out."""
        return dict(zip(("seed", "epoch", "position"), self._state))

    def load_state_dict(self, state):
        """load_state_dict(state): what comes next is what came after state_dict()."""
        with self._lock:
            self._iteration += 1
            self._set_state((state["seed"], state["epoch"], state["position"]))
            self._resumes = True

    def _set_state(self, state):
        _core._loader_set_state(self._loader, state)
        self._state = state

    def __iter__(self):
        with self._lock:
            self._iteration += 1
            seed, epoch, position = self._state
            is_new = self._resumes or position == 0
            self._resumes = False
            state = self._state if is_new else (seed, epoch + 1, 0)
            if state != _core._loader_get_state(self._loader):  # else what was read ahead is thrown away
                self._set_state(state)
            mine = self._iteration
        return self._copied(mine) if self._mover else self._batches(mine)

    def _next(self, mine):
        """((indices, tensors) or None at the end of the epoch, where the loader stands behind it)"""
        with self._lock:
            self._check(mine)
            return _core._loader_next(self._loader), _core._loader_get_state(self._loader)

    def _check(self, mine):
        if mine != self._iteration:
            raise RuntimeError("another iteration of this loader began, or its state was put back")

    def _give(self, mine, state):
        with self._lock:
            self._check(mine)
            self._state = state

    def _read(self, indices):
        samples = []
        for index in indices:
            try:
                samples.append(self.dataset[index])
            except BaseException as error:
                error.add_note(f"DataLoader: of sample {index}")
                raise
        return self.collate_fn(samples)

    def _batches(self, mine):
        if self._reads_itself:
            return self._of_library(mine)
        return self._of_threads(mine) if self.num_workers else self._of_caller(mine)

    def _of_library(self, mine):
        while True:
            batch, state = self._next(mine)
            self._give(mine, state)
            if batch is None:
                return
            yield batch[1]

    def _of_caller(self, mine):
        while True:
            batch, state = self._next(mine)
            made = None if batch is None else self._read(batch[0])
            self._give(mine, state)
            if batch is None:
                return
            yield made

    def _of_threads(self, mine):
        pool = concurrent.futures.ThreadPoolExecutor(self.num_workers, "tenon data")
        waiting, is_over = collections.deque(), False
        try:
            while True:
                while not is_over and len(waiting) < self._ahead:
                    batch, state = self._next(mine)
                    is_over = batch is None
                    waiting.append((None if is_over else pool.submit(self._read, batch[0]), state))
                future, state = waiting.popleft()
                made = None if future is None else future.result()
                self._give(mine, state)
                if future is None:
                    return
                yield made
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _copied(self, mine):
        for batch in self._batches(mine):
            yield self._mover.hand_over(*self._mover(batch))
