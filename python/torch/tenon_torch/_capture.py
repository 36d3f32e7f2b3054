"""A compiled function's work, recorded by the device once and replayed by one call.

A recording reads its inputs and leaves its results at fixed places. Inputs are copied there, but for parameters, and in backward for what
forward saved, which stay where they are. Results are copied out, but for what forward saves: while somebody holds those, another forward is
not replayed over them and runs call by call.
"""

import collections
import threading
import warnings

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from . import _C, name

MOST = 8  # recordings of one function: of each set of shapes, dtypes and places of parameters
counts = collections.Counter()  # recorded, replayed, refused


class Saved:
    """What a forward's recordings left for backward: where, and whether somebody still holds it."""

    def __init__(self):
        self.places, self.held, self.lock = set(), [], threading.RLock()

    def is_held(self):
        self.held = [reference for reference in self.held if not reference.expired()]
        return bool(self.held)

    def hand_out(self, tensor):
        alias = _C.alias(tensor)
        if alias.numel():
            self.held.append(StorageWeakRef(alias.untyped_storage()))
        return alias


def _has_a_copy(x, alone):
    """Can its elements lie as they do in another place? `alone`: and is it all of its memory, since the function looks beyond it?"""
    overlaps = any(stride == 0 and size > 1 for size, stride in zip(x.shape, x.stride()))
    return not overlaps and (not alone or x.untyped_storage().nbytes() == x.numel() * x.element_size())


def _copy_of(x):
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device).copy_(x)


def _whole(x):
    """All of the memory that x is a part of."""
    n = x.untyped_storage().nbytes()
    return torch.empty(0, dtype=torch.uint8, device=x.device).set_(x.untyped_storage(), 0, (n,), (1,))


class Recording:
    """`stay`: the inputs that are read where they are. The device keeps their memory, and nobody here the tensors."""

    def __init__(self, function, inputs, stay):
        fixed = [x if i in stay or not isinstance(x, torch.Tensor) else _copy_of(x) for i, x in enumerate(inputs)]
        self.results = None
        index = next(x.device.index for x in inputs if isinstance(x, torch.Tensor))

        def work():
            self.results = list(function(*fixed))

        self.graph = _C.Graph(index, work)
        self.inputs = {i: x for i, x in enumerate(fixed) if isinstance(x, torch.Tensor) and i not in stay}
        self.passed = {k: i for k, result in enumerate(self.results) for i in stay if result is fixed[i]}
        for k in self.passed:
            self.results[k] = None
        counts["recorded"] += 1

    def run(self, inputs):
        for i, mine in self.inputs.items():
            mine.copy_(inputs[i])
        self.graph.replay()
        counts["replayed"] += 1

    def handed_out(self, inputs, returned, saved):
        """The first `returned` results are the caller's, the others saved for backward. Those that share memory go on sharing it."""
        copies = {}
        for k, result in enumerate(self.results):
            if k in self.passed:
                yield inputs[self.passed[k]]
            elif not isinstance(result, torch.Tensor):
                yield result
            elif k >= returned:
                yield saved.hand_out(result)
            else:
                memory = _C.place(result)[0]
                if memory not in copies:
                    copies[memory] = _whole(result).clone()
                yield copies[memory].view(result.dtype).as_strided(result.shape, result.stride(), result.storage_offset())


class Replayed:
    """What a graph of PyTorch computes, of tensors of one device. `returned`: how many results are the caller's, None: all."""

    def __init__(self, graph, stays, returned, saved):
        self.function, self.stays, self.returned, self.saved = graph.forward, frozenset(stays), returned, saved
        self.looks_beyond = any("as_strided" in str(node.target) for node in graph.graph.nodes)
        self.seen, self.recordings, self.refused = set(), {}, False

    def key(self, inputs, stay):
        return tuple(x if not isinstance(x, torch.Tensor) else (x.shape, x.stride(), x.dtype, x.device, _C.place(x) if i in stay else None)
                     for i, x in enumerate(inputs))

    def recording_of(self, inputs):
        """None where the function runs call by call: the first time, too, when libraries make what they keep."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        if self.refused or {x.device.type for x in tensors} != {name} or len({x.device for x in tensors}) > 1:
            return None
        from_forward = {i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and _C.place(x) in self.saved.places}
        if self.saved.is_held() if self.returned is not None else self.saved.places and not from_forward:
            return None  # what forward saved would be written over; and it ran call by call, so backward does
        stay = self.stays | from_forward
        if not all(_has_a_copy(x, self.looks_beyond) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and i not in stay):
            return None
        key = self.key(inputs, stay)
        if key not in self.recordings and key in self.seen and len(self.recordings) < MOST:
            self.recordings[key] = Recording(self.function, inputs, stay)
            if self.returned is not None:
                self.saved.places |= {_C.place(t) for t in self.recordings[key].results[self.returned :] if isinstance(t, torch.Tensor)}
        if len(self.seen) < 8 * MOST:
            self.seen.add(key)
        return self.recordings.get(key)

    def __call__(self, inputs):
        """Takes a list and empties it, as PyTorch's compiled functions do."""
        given = list(inputs)
        inputs.clear()
        with self.saved.lock:
            try:
                recording = self.recording_of(given)
            except RuntimeError as error:
                self.refuse(error)
                recording = None
            if recording is not None:
                recording.run(given)
                returned = len(recording.results) if self.returned is None else self.returned
                return list(recording.handed_out(given, returned, self.saved))
        return self.function(*given)

    def refuse(self, error):
        """A device that records nothing at all is no surprise."""
        self.refused = True
        counts["refused"] += 1
        if not isinstance(error, NotImplementedError):
            warnings.warn(f"torch.compile: a graph runs call by call, since {name} cannot record it: {error}", stacklevel=3)
