"""Graphs: captured, replayed, ended, and what cannot be captured."""

import gc
import threading
import unittest
import weakref

import tenon

SIM = "sim:0"


class Graphs(unittest.TestCase):
    def setUp(self):
        self.x = tenon.ones(2, 2, device=SIM)

    def test_replayed(self):
        runs = []

        def step():
            runs.append(tenon.is_capturing())
            return self.x * 2 + 1

        with tenon.Graph(step, device=SIM) as graph:
            self.assertEqual((runs, graph.device, tenon.is_capturing()), ([True], tenon.device(SIM), False))
            for value in (1.0, 4.0):
                self.x.fill_(value)
                graph.replay()
                self.assertEqual(graph.result[0, 0].item(), 2 * value + 1)
            self.assertIs(graph(), graph.result)
        self.assertEqual(len(runs), 1)
        with self.assertRaisesRegex(RuntimeError, "closed"):
            graph.replay()

    def test_a_training_step(self):
        def train(replays):
            tenon.manual_seed(1)
            weight = tenon.full((2, 1), 0.5, device=SIM, requires_grad=True)
            sgd = tenon.optim.SGD([weight], lr=0.1, momentum=0.9)

            def step():
                sgd.zero_grad()
                loss = tenon.mse_loss(self.x @ weight, tenon.zeros(2, 1, device=SIM))
                loss.backward()
                sgd.step()

            if replays:
                with tenon.Graph(step, device=SIM) as graph:
                    for _ in range(4):
                        graph.replay()
            else:
                for _ in range(4):
                    step()
            return weight.tolist()

        self.assertEqual(train(True), train(False))

    def test_operators_of_python(self):
        op = tenon.library.custom_op("pytest::captured", lambda x: x + 3, schema="(Tensor x) -> Tensor")
        with tenon.Graph(lambda: op(self.x), device=SIM) as graph:
            self.assertEqual(graph.replay()[0, 0].item(), 4)
        op.unregister()

    def test_what_cannot_be(self):
        with self.assertRaisesRegex(tenon.UnsupportedError, "cpu:0 computes at once"):
            tenon.Graph(lambda: None, device="cpu:0")
        with self.assertRaisesRegex(tenon.Error, "tn_to_host: cannot be captured"):
            tenon.Graph(lambda: self.x.sum().item(), device=SIM)
        with self.assertRaises(tenon.Error):
            tenon.Graph(lambda: tenon.Graph(lambda: None, device=SIM), device=SIM)
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"):
            tenon.Graph(lambda: 1 // 0, device=SIM)
        with self.assertRaises(TypeError):
            tenon.Graph(lambda: None, device=3)

        def hidden():
            try:
                self.x.sum().item()
            except tenon.Error:
                pass
            return self.x

        with self.assertRaisesRegex(tenon.Error, "tn_to_host: cannot be captured"):
            tenon.Graph(hidden, device=SIM)
        self.assertFalse(tenon.is_capturing())
        self.assertEqual((self.x + 1).sum().item(), 8)

    def test_nothing_is_left(self):
        class Result:
            pass

        gone = []

        def step():
            made = Result()
            made.tensor = self.x + 1
            gone.append(weakref.ref(made))
            return made

        graph = tenon.Graph(step, device=SIM)
        with self.assertRaises(tenon.Error):
            tenon.Graph(lambda: (step(), self.x.sum().item()), device=SIM)

        def hidden():
            try:
                self.x.sum().item()
            except tenon.Error:
                return step()

        with self.assertRaises(tenon.Error):
            tenon.Graph(hidden, device=SIM)
        del graph
        gc.collect()
        self.assertEqual([one() for one in gone], [None] * 3)

    def test_replayed_by_threads(self):
        total = tenon.zeros(1, device=SIM)
        graph = tenon.Graph(lambda: total.add_(1), device=SIM)
        failures = []

        def work():
            try:
                for _ in range(50):
                    graph.replay()
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tenon.synchronize(SIM)
        self.assertEqual((failures, total.item()), ([], 200))


if __name__ == "__main__":
    unittest.main()
