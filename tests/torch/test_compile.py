"""torch.compile(backend="tenon", mode="reduce-overhead"): what is recorded and replayed gives what runs call by call."""

import unittest

import torch

import tenon_torch
import tenon_torch.compile
from tenon_torch._capture import counts

DEVICE = next(f"tenon:{i}" for i, name in enumerate(tenon_torch.devices()) if name.startswith("sim"))
ALONE = next(f"tenon:{i}" for i, name in enumerate(tenon_torch.devices()) if name.startswith("cpu"))  # records nothing


def compiled(function):
    return torch.compile(function, backend="tenon", mode="reduce-overhead")


def model(device, dropout=0.0):
    torch.manual_seed(0)
    layers = (torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(16, 4))
    return torch.nn.Sequential(*layers).to(device)


def batches(n, rows=6):
    torch.manual_seed(1)
    return [(torch.randn(rows, 8), torch.randn(rows, 4)) for _ in range(n)]


def train(net, call, device, data, calls=1):
    """Every loss, read at the end, and the state; `calls` forward passes make one loss."""
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.1), []
    for x, y in data:
        optimizer.zero_grad()
        loss = sum(((call((k + 1) * x.to(device)) - y.to(device)) ** 2).mean() for k in range(calls))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu(), [t.cpu() for t in net.state_dict().values()]


class Compile(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        counts.clear()

    def check_training(self, device, calls=1):
        data = batches(8)
        net, other = model("cpu"), model(device)
        wanted, got = train(net, net, "cpu", data, calls), train(other, compiled(other), device, data, calls)
        torch.testing.assert_close(got[0], wanted[0])
        for a, b in zip(got[1], wanted[1]):
            torch.testing.assert_close(a, b)

    def test_training(self):
        self.check_training(DEVICE)
        self.assertEqual(counts["recorded"], 2)  # forward, and backward one step later
        self.assertGreaterEqual(counts["replayed"], 12)

    def test_two_forwards_before_one_backward(self):
        """The second must not write over what the first saved."""
        self.check_training(DEVICE, calls=2)
        self.assertGreater(counts["replayed"], 0)

    def test_a_device_that_records_nothing(self):
        self.check_training(ALONE)
        self.assertEqual(counts["recorded"], 0)

    def test_results_are_the_callers(self):
        net = model(DEVICE).eval()
        call = compiled(net)
        with torch.no_grad():
            inputs = [x.to(DEVICE) for x, _ in batches(5)]
            for got, x in zip([call(x) for x in inputs], inputs):
                torch.testing.assert_close(got.cpu(), net(x).cpu())
        self.assertEqual(counts["replayed"], 4)

    def test_backward_twice(self):
        net = model(DEVICE)
        call, x = compiled(net), batches(1)[0][0].to(DEVICE)
        for _ in range(4):
            loss = call(x).sum()
            loss.backward(retain_graph=True)
            once = [p.grad.clone() for p in net.parameters()]
            loss.backward()
            for p, g in zip(net.parameters(), once):
                torch.testing.assert_close(p.grad.cpu(), (2 * g).cpu())
            net.zero_grad()
        self.assertGreater(counts["replayed"], 0)

    def test_dropout_draws_anew_and_what_it_would(self):
        rows = {}
        for how in ("recorded", "call by call"):
            net = model(DEVICE, dropout=0.5)
            call = compiled(net) if how == "recorded" else torch.compile(net, backend="tenon")
            x = batches(1)[0][0].to(DEVICE)
            torch.manual_seed(3)
            rows[how] = [call(x).detach().cpu() for _ in range(5)]
        for a, b in zip(rows["recorded"], rows["call by call"]):
            torch.testing.assert_close(a, b)
        self.assertFalse(torch.equal(rows["recorded"][3], rows["recorded"][4]))
        self.assertGreater(counts["replayed"], 0)

    def test_other_shapes_and_other_parameters(self):
        net = model(DEVICE).eval()
        call = compiled(net)
        with torch.no_grad():
            for rows in (6, 6, 6, 3, 3, 3, 6):
                x = torch.randn(rows, 8, device=DEVICE)
                torch.testing.assert_close(call(x).cpu(), net(x).cpu())
            net[0].weight.data = torch.zeros_like(net[0].weight)
            for _ in range(3):
                torch.testing.assert_close(call(x).cpu(), net(x).cpu())
            net[0].weight.fill_(2.0)  # in place: the recording reads it
            torch.testing.assert_close(call(x).cpu(), net(x).cpu())
        self.assertGreater(counts["replayed"], 3)

    def test_inputs_that_are_parts_of_others(self):
        """What is compiled may count on their strides, and on what lies between their elements."""
        def every_other(x):
            return torch.as_strided(x, (3,), (2,)) + 0

        call = compiled(every_other)
        for i in range(3):
            base = torch.arange(12.0, device=DEVICE) + i
            self.assertEqual(call(base[::2]).tolist(), [i, i + 2, i + 4])

    def test_inputs_of_every_layout(self):
        """Parts of a larger tensor, with gaps, turned, and of one number: each as it lies."""
        def double(x):
            return 2 * x + x.reshape(-1)[0]

        base = torch.arange(48.0, device=DEVICE).reshape(6, 8)
        for part in (lambda t: t[2:4], lambda t: t[:, ::2], lambda t: t.T, lambda t: t[1:2, 1:].T, lambda t: t[0, 3].expand(2, 3)):
            torch._dynamo.reset()
            call = compiled(double)
            for i in range(3):
                x = part(base + i)
                self.assertEqual(call(x).tolist(), double(x).tolist())
        self.assertGreaterEqual(counts["replayed"], 8)

    def test_results_share_memory_and_lie_as_they_did(self):
        def two(x):
            y = x + 1
            return y, y[0], y.expand(4, 2, 3)

        call = compiled(two)
        for _ in range(3):
            whole, row, wide = call(torch.ones(2, 3, device=DEVICE))
            whole.zero_()
            self.assertEqual((row.tolist(), wide.stride()), ([0, 0, 0], (0, 3, 1)))
        self.assertGreater(counts["replayed"], 0)

    def test_a_mode_there_is_not(self):
        with self.assertRaisesRegex(Exception, "max-autotune.*reduce-overhead"):
            torch.compile(model(DEVICE), backend="tenon", mode="max-autotune")(torch.ones(6, 8, device=DEVICE))

    def tearDown(self):
        self.assertEqual(tenon_torch.fallback_count(), 0)


if __name__ == "__main__":
    unittest.main()
