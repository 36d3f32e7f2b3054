"""The profiler."""

import json
import pathlib
import tempfile
import threading
import unittest

import tenon


class Profile(unittest.TestCase):
    def test_events_and_table(self):
        x = tenon.ones(4, 3, device="sim:0")
        with tenon.profile() as p:
            (x @ x.T).relu()
        x.exp()  # after its end
        events = {event.op: event for event in p.events()}
        self.assertNotIn("exp", events)
        relu = events["relu"]
        self.assertEqual((relu.device, relu.args, relu.status, relu.bytes > 0), ("sim:0", "f32[4, 4]", "OK", True))
        self.assertGreater(relu.start_ns, events["matmul"].start_ns)
        self.assertIn("relu", p.table())

    def test_ranges(self):
        @tenon.profile_range("whole")
        def work(depth=2):
            with tenon.profile_range("step"):
                tenon.ones(3).sum().item()
            if depth:
                work(depth - 1)

        work()  # nobody looks
        with tenon.profile() as p:
            thread = threading.Thread(target=work, name="other")
            thread.start()
            work()
            thread.join()
            started = tenon.profile_range("never ended")
            started.__enter__()
        started.__exit__()
        names = [(one.name, one.thread) for one in p.ranges]
        self.assertEqual(sorted(names), sorted([("step", "MainThread"), ("whole", "MainThread"), ("step", "other"),
                                                ("whole", "other")] * 3))
        self.assertRegex(p.table(), r"range whole +6 times")
        inner = [one for one in p.ranges if one.name == "whole" and one.thread == "other"]
        self.assertLess(inner[0].ns, inner[2].ns)
        sums = [event for event in p.events() if event.op == "sum"]
        step = next(one for one in p.ranges if one.name == "step" and one.thread == "MainThread")
        self.assertTrue(any(step.start_ns <= one.start_ns and one.start_ns + one.host_ns <= step.start_ns + step.ns
                            for one in sums))

    def test_trace(self):
        with tenon.profile() as p, tenon.profile_range("a \"range\""):
            tenon.ones(3).sum()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            p.save(path)
            events = json.loads(path.read_text())["traceEvents"]
            self.assertEqual([e["pid"] for e in events if e["name"] == 'a "range"'], [3])
            self.assertEqual([e["pid"] for e in events if e["name"] == "sum" and e["ph"] == "X"], [1])
            with self.assertRaises(OSError):
                p.save(pathlib.Path(folder) / "nosuch" / "trace.json")

    def test_one_at_a_time(self):
        with self.assertRaisesRegex(RuntimeError, "not begun"):
            tenon.profile().table()
        with tenon.profile() as first:
            tenon.ones(2).exp()
            with self.assertRaises(tenon.Error):
                with tenon.profile():
                    pass
            tenon.ones(2).sin()
        with self.assertRaises(ZeroDivisionError):
            with tenon.profile() as second:
                1 // 0
        self.assertIn("sin", first.table())
        self.assertEqual(second.events(), [])
        with self.assertRaisesRegex(RuntimeError, "another one began"):
            first.events()

    def test_read_while_others_work(self):
        """Each of the threads would hold up one that takes the interpreter's lock for each event."""
        def work():
            for _ in range(2000):
                tenon.ones(3).exp()

        threads = [threading.Thread(target=work) for _ in range(3)]
        with tenon.profile() as p:
            for thread in threads:
                thread.start()
            for _ in range(5):
                p.events()
                p.table()
            for thread in threads:
                thread.join()
        self.assertEqual(sum(event.op == "exp" for event in p.events()), 6000)

    def test_operators_of_python(self):
        op = tenon.library.custom_op("pytest::profiled", lambda x: x + 1, schema="(Tensor x) -> Tensor")
        with tenon.profile() as p:
            op(tenon.ones(1))
        self.assertEqual([(e.op, e.depth) for e in p.events() if e.op in ("pytest::profiled", "add.Scalar")],
                         [("add.Scalar", 1), ("pytest::profiled", 0)])
        op.unregister()


if __name__ == "__main__":
    unittest.main()
