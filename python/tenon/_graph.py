"""Graphs: a device's work, captured once and replayed."""

import threading

from . import _core


class Graph:
    """Graph(fn, device=None): runs fn() with its work on the device recorded instead of run; replay() runs the work.

        x, weight = tenon.zeros(8, 4, device="npu:0"), tenon.randn(4, 2, device="npu:0")
        with tenon.Graph(lambda: x @ weight, device="npu:0") as graph:
            for batch in batches:
                x.copy_(batch)       # what fn reads is replaced in place
                graph.replay()
                print(graph.result)  # what fn returned, written anew

    What repeats is what the device does; what Python does happens once. The memory of what fn made belongs to the graph: clone
    a result that is to outlive the next replay. Fails with UnsupportedError on a device that cannot capture (cpu), and by name
    where fn does what no graph can repeat: docs/graphs.md. It ends with the block, with close(), or when it is forgotten.
    """

    def __init__(self, fn, device=None):
        self._lock = threading.Lock()  # one thread at a time replays or ends it
        self._graph, self.result = _core._graph_capture(device, fn)
        self.device = _core._graph_device(self._graph)

    def replay(self):
        """replay(): queues one run on this thread's current stream of the device, and returns the result."""
        with self._lock:
            if self._graph is None:
                raise RuntimeError("the graph was closed")
            _core._graph_replay(self._graph)
        return self.result

    __call__ = replay

    def close(self):
        """close(): its memory is free for others, but for tensors that are kept."""
        with self._lock:
            self._graph = self.result = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
