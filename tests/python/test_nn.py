"""Modules: names, state, modes, and a small network that learns on each device."""

import copy
import math
import pickle
import unittest

import tenon
from tenon import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(4 * 4 * 4, 3))

    def forward(self, x):
        return self.head(self.norm(self.conv(x)))


class Modules(unittest.TestCase):
    def test_names_are_pytorchs(self):
        net = Net()
        self.assertEqual(list(net.state_dict()), ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "norm.running_mean",
                                                  "norm.running_var", "norm.num_batches_tracked", "head.4.weight", "head.4.bias"])
        self.assertEqual([n for n, _ in net.named_parameters()], ["conv.weight", "conv.bias", "norm.weight", "norm.bias",
                                                                  "head.4.weight", "head.4.bias"])
        self.assertEqual([n for n, _ in net.named_modules()][:3], ["", "conv", "norm"])
        self.assertIn("Linear(in_features=64, out_features=3, bias=True)", repr(net))

    def test_attributes(self):
        net = Net()
        net.conv.bias = None
        self.assertNotIn("conv.bias", net.state_dict())
        net.extra = nn.Parameter(tenon.ones(2))
        self.assertIn("extra", net.state_dict())
        net.extra = 3
        self.assertNotIn("extra", net.state_dict())
        del net.norm
        with self.assertRaises(AttributeError):
            net.norm

        class Early(nn.Module):
            def __init__(self):
                self.x = 1

        with self.assertRaisesRegex(AttributeError, "super"):
            Early()
        shared = nn.Linear(2, 2)
        self.assertEqual(len(list(nn.Sequential(shared, shared).parameters())), 2)

    def test_state(self):
        a, b = Net(), Net()
        b.load_state_dict(a.state_dict())
        x = tenon.randn(2, 1, 8, 8)
        self.assertEqual(a.eval()(x).tolist(), b.eval()(x).tolist())
        state = a.state_dict()
        del state["conv.bias"]
        with self.assertRaisesRegex(KeyError, "conv.bias"):
            b.load_state_dict(state)
        self.assertEqual(b.load_state_dict(state, strict=False), (["conv.bias"], []))
        state["conv.bias"] = tenon.ones(5)
        with self.assertRaisesRegex(ValueError, "conv.bias"):
            b.load_state_dict(state)
        for made in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
            self.assertEqual(made(x).tolist(), a(x).tolist())
            self.assertIsInstance(made.conv.weight, nn.Parameter)

    def test_modes_and_buffers(self):
        net = Net()
        x = tenon.randn(4, 1, 8, 8) * 3 + 1
        net(x)
        self.assertEqual(net.norm.num_batches_tracked.item(), 1)
        self.assertNotEqual(net.norm.running_mean.tolist(), [0, 0, 0, 0])
        net.eval()
        self.assertEqual(net(x).tolist(), net(x).tolist())
        self.assertFalse(net.head[3].training)

    def test_moving(self):
        net = Net().to("sim:0")
        self.assertEqual({str(t.device) for t in net.state_dict().values()}, {"sim:0"})
        net = Net().to(tenon.float64)
        self.assertEqual((net.conv.weight.dtype, net.norm.num_batches_tracked.dtype), (tenon.float64, tenon.int64))

    def test_initialisation(self):
        tenon.manual_seed(0)
        layer = nn.Linear(400, 300)
        bound = 1 / math.sqrt(400)
        weights = layer.weight.detach()
        self.assertTrue(-bound <= weights.min().item() < -0.99 * bound and 0.99 * bound < weights.max().item() <= bound)
        self.assertAlmostEqual(weights.std(dim=(0, 1)).item(), bound / math.sqrt(3), delta=1e-3)

    def test_attention_is_what_its_parts_are(self):
        tenon.manual_seed(0)
        layer = nn.MultiheadAttention(8, 2)
        x = tenon.randn(2, 5, 8)
        y = layer(x)
        self.assertEqual(y.shape, (2, 5, 8))
        self.assertTrue(((layer(x, x, x) - y).abs().max() < 1e-5).item())
        causal = layer(x, is_causal=True)
        x2 = x.clone()
        x2[:, 3:] = 0
        self.assertTrue(((layer(x2, is_causal=True)[:, :3] - causal[:, :3]).abs().max() < 1e-5).item())


class Learning(unittest.TestCase):
    def test_a_network_learns_on_each_device(self):
        finals = {}
        for device in ("cpu:0", "sim:0"):
            tenon.manual_seed(1)
            x = tenon.randn(96, 1, 8, 8).to(device)
            target = (x[:, 0, 2:6, 2:6].mean(dim=(1, 2)) > 0).long()
            net = Net().to(device)
            net.head[3].p = 0.0
            adam = tenon.optim.AdamW(net.parameters(), lr=1e-2)
            losses = []
            for _ in range(30):
                loss = tenon.cross_entropy(net(x), target)
                adam.zero_grad()
                loss.backward()
                adam.step()
                losses.append(loss.item())
            self.assertLess(losses[-1], 0.4 * losses[0])
            finals[device] = losses
        self.assertAlmostEqual(finals["cpu:0"][5], finals["sim:0"][5], delta=1e-3)


if __name__ == "__main__":
    unittest.main()
