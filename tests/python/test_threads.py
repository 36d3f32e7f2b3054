"""Threads: kernels run without the GIL; hooks and functions take it."""

import threading
import unittest

import tenon


def at_once(work, n=8):
    failures = []

    def run(i):
        try:
            work(i)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Threads(unittest.TestCase):
    def test_each_computes_its_own(self):
        for device in ("cpu:0", "sim:0"):
            def work(i, device=device):
                x = tenon.full((50,), float(i), device=device, requires_grad=True)
                for _ in range(100):
                    y = (x * x + i).sum()
                    x.grad = None
                    y.backward()
                    assert x.grad[0].item() == 2 * i and y.item() == 50 * (i * i + i)

            at_once(work)

    def test_one_tensor_is_read_by_all(self):
        x = tenon.arange(1000)
        at_once(lambda i: [self.assertEqual(x[j].item(), j) for j in range(i, 1000, 9)])

    def test_callbacks_in_threads(self):
        class Double(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        def work(i):
            for _ in range(50):
                x = tenon.tensor([float(i)], requires_grad=True)
                y = Double.apply(x)
                y.register_hook(lambda grad: grad * 3)
                y.backward()
                assert x.grad.item() == 6

        at_once(work)

    def test_a_list_may_change_while_it_is_read(self):
        tensors, ends = [], []

        def change():
            while not ends:
                tensors[:] = [tenon.ones(100) for _ in range(50)]
                tensors.clear()

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(300):
                if tensors:
                    try:
                        made = tenon.cat(tensors)
                    except (TypeError, tenon.Error):  # it was empty by then
                        continue
                    self.assertEqual(made.sum().item(), made.numel())
        finally:
            ends.append(1)
            thread.join()

    def test_an_error_is_the_threads_own(self):
        def work(i):
            for _ in range(100):
                if i % 2:
                    with self.assertRaises(tenon.Error):
                        tenon.ones(2) @ tenon.ones(3)
                else:
                    assert (tenon.ones(2) + 1).sum().item() == 4

        at_once(work)


if __name__ == "__main__":
    unittest.main()
