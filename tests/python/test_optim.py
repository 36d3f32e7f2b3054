"""Optimizers: steps by hand, options, state that goes on to the last bit."""

import unittest

import tenon
from tenon import optim

MAKERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01), "Adam": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1, betas=(0.8, 0.9)), "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1), "Lion": lambda p: optim.Lion(p, lr=0.1),
}


def step(optimizer, parameter, i):
    optimizer.zero_grad()
    ((parameter - i) ** 2).sum().backward()
    optimizer.step()


class Optimizers(unittest.TestCase):
    def test_a_step_by_hand(self):
        p = tenon.tensor([1.0, 2.0], requires_grad=True)
        sgd = optim.SGD([p], lr=0.5)
        (p * p).sum().backward()
        sgd.step()
        self.assertEqual(p.tolist(), [0, 0])
        self.assertTrue(p.is_leaf)
        sgd.zero_grad()
        self.assertIsNone(p.grad)
        sgd.lr = 0.25
        self.assertEqual(sgd.lr, 0.25)

    def test_state_goes_on_to_the_last_bit(self):
        for name, make in MAKERS.items():
            p = tenon.tensor([1.0, -2.0, 0.5], requires_grad=True)
            one = make([p])
            for i in range(3):
                step(one, p, i)
            q = p.detach().clone().requires_grad_()
            other = make([q])
            other.load_state_dict(one.state_dict())
            for i in range(3):
                step(one, p, i)
                step(other, q, i)
            self.assertEqual(p.tolist(), q.tolist(), name)

    def test_what_is_refused(self):
        p = tenon.ones(1, requires_grad=True)
        for call, error in ((lambda: optim.SGD([3]), TypeError), (lambda: optim.SGD([p], lr=-1), tenon.Error),
                            (lambda: optim.SGD([p, p]), tenon.Error),
                            (lambda: optim.Optimizer("sgd", [p], {"nosuch": 1}), TypeError),
                            (lambda: optim.Optimizer("nosuch", [p], {}), ValueError),
                            (lambda: optim.SGD([p]).load_state_dict({}), ValueError)):
            with self.assertRaises(error):
                call()

    def test_clipping(self):
        p = tenon.tensor([3.0, 4.0], requires_grad=True)
        p.grad = tenon.tensor([3.0, 4.0])
        self.assertEqual(optim.clip_grad_norm_([p], 1.0).item(), 5)
        self.assertAlmostEqual(p.grad.norm().item(), 1, places=5)


if __name__ == "__main__":
    unittest.main()
