"""The profiler: every operator call of a block, with the block's own ranges, as a table and as a trace."""

import collections
import contextlib
import threading
import time

from . import _core

Event = collections.namedtuple("Event", (
    "op", "args", "device", "kernel", "start_ns", "host_ns", "device_ns", "device_start_ns", "bytes", "stream", "thread", "depth",
    "status", "how"))
Event.__doc__ = """A call of an operator. Times begin with the profile; device_ns is -1 where it was not measured; bytes were
allocated by the call, less what it freed; depth is how many calls it is within; how is "kernel", "decomposition", "fallback",
"composite", "view" or "nothing"."""
Range = collections.namedtuple("Range", ("name", "start_ns", "ns", "thread"))
Range.__doc__ = "A block that profile_range named, in the thread of that name."


class profile:
    """profile(): every operator call of every thread in the block.

        with tenon.profile() as p:
            step()
        print(p.table())
        p.save("trace.json")     # opens in https://ui.perfetto.dev

    There is one at a time. The next one forgets the calls of the last, whose table stays.
    """

    _newest = None  # whose events the library has
    _running = None

    def __init__(self):
        self.ranges, self._table, self._began = [], None, None

    def __enter__(self):
        self._began = _core._profile_start()
        self.ranges, self._table = [], None
        profile._newest = profile._running = self
        return self

    def __exit__(self, *error):
        profile._running = None
        _core._profile_stop()
        self._table = _core._profile_table()

    def _check(self):
        if profile._newest is not self:
            raise RuntimeError("the calls of this profile are gone: " + (
                "it has not begun" if self._began is None else "another one began since; ask before"))

    def events(self):
        """events(): a list of Event, in the order in which the calls ended."""
        self._check()
        return list(map(Event._make, _core._profile_events()))

    def table(self):
        """table(): a line for each operator and way of running it, the longest first, then one for each range."""
        if self._table is None:
            self._check()
        lines = [self._table if self._table is not None else _core._profile_table()]
        spans = {}
        for one in list(self.ranges):
            spans.setdefault(one.name, []).append(one.ns)
        width = max(map(len, spans), default=0)
        lines += [f"range {name:{width}}  {len(times):7} times  {sum(times) / 1e6:12.3f} ms\n" for name, times in spans.items()]
        return "".join(lines)

    def save(self, path):
        """save(path): a Chrome trace, with a lane for each thread, each stream, and the ranges of each thread."""
        self._check()
        if not self.ranges:
            return _core._profile_write_trace(path)
        import json  # much, for every program that imports tenon
        import tempfile

        with tempfile.NamedTemporaryFile("r", encoding="utf-8", suffix=".json") as file:
            _core._profile_write_trace(file.name)
            trace = json.load(file)
        lanes = {}
        events = trace["traceEvents"]
        events.append({"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "ranges"}})
        for one in list(self.ranges):
            if one.thread not in lanes:
                lanes[one.thread] = len(lanes)
                events.append({"ph": "M", "name": "thread_name", "pid": 3, "tid": lanes[one.thread], "args": {"name": one.thread}})
            events.append({"ph": "X", "cat": "range", "name": one.name, "pid": 3, "tid": lanes[one.thread],
                           "ts": one.start_ns / 1000, "dur": one.ns / 1000})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)


class profile_range(contextlib.ContextDecorator):
    """profile_range(name): names a block, or a function, in the profile that is on. Without one it does nothing."""

    def __init__(self, name):
        self._name, self._starts = name, threading.local()

    def __enter__(self):
        self._starts.__dict__.setdefault("stack", []).append((profile._running, time.monotonic_ns()))
        return self

    def __exit__(self, *error):
        end = time.monotonic_ns()
        of, start = self._starts.stack.pop()
        if of is not None and of is profile._running:
            of.ranges.append(Range(self._name, start - of._began, end - start, threading.current_thread().name))
