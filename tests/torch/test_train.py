"""A ResNet-18 and a GPT written for PyTorch train on every device with the losses of PyTorch's CPU, and nothing falls back."""

import unittest

import models
import torch

import tenon_torch

STEPS = 12


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.005)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=3e-3)


class Train(unittest.TestCase):
    # Over twelve batches: batch norm over the last 2x2 pixels makes much of little, so that later PyTorch's own f64 differs from its f32.
    def check(self, make, batch, optimizer, bound, **more):
        wanted = models.losses(make, batch, optimizer, "cpu", STEPS)
        for index, name in enumerate(tenon_torch.devices()):
            with self.subTest(device=name):
                got = models.losses(make, batch, optimizer, f"tenon:{index}", STEPS, **more)
                for a, b in zip(got, wanted):
                    self.assertLess(abs(a - b), bound * b)
        self.assertEqual(tenon_torch.fallback_count(), 0)
        return wanted

    def test_resnet(self):
        self.check(models.ResNet18, models.resnet_batch, sgd, 1e-4)

    def test_gpt(self):
        wanted = self.check(models.GPT, models.gpt_batch, adamw, 1e-3)
        self.assertLess(wanted[-1], 0.95 * wanted[0])  # it learns

    def test_compiled(self):
        import tenon_torch.compile  # noqa: F401  (registers the backend)

        for mode in ("default", "reduce-overhead"):
            with self.subTest(mode=mode):
                torch._dynamo.reset()
                self.check(models.GPT, models.gpt_batch, adamw, 1e-3, wrap=lambda model: torch.compile(model, backend="tenon", mode=mode))


if __name__ == "__main__":
    unittest.main()
