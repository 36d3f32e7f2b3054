"""Gradients: backward, grad, modes, hooks, functions written in Python."""

import gc
import threading
import unittest
import weakref

import tenon

DEVICES = ("cpu:0", "sim:0")


class Square(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Exp(tenon.autograd.Function):
    """Saves its output: a cycle, were it kept by a reference."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class Backward(unittest.TestCase):
    def test_leaves(self):
        for device in DEVICES:
            x = tenon.tensor([3.0, 4.0], device=device, requires_grad=True)
            y = (x * x).sum()
            self.assertTrue(y.requires_grad and not y.is_leaf and x.is_leaf)
            self.assertEqual((x.grad_fn, y.grad_fn), (None, "SumBackward"))
            y.backward()
            self.assertEqual(x.grad.tolist(), [6, 8])
            (x * 2).sum().backward()
            self.assertEqual(x.grad.tolist(), [8, 10])
            x.grad = None
            self.assertIsNone(x.grad)
            x.grad = tenon.ones(2, device=device)
            self.assertEqual(x.grad.tolist(), [1, 1])

    def test_graphs(self):
        x = tenon.tensor([3.0], requires_grad=True)
        y = x * x
        y.backward(retain_graph=True)
        y.backward()
        self.assertEqual(x.grad.tolist(), [12])
        with self.assertRaises(tenon.Error):
            y.backward()
        y = x * x * x
        (first,) = tenon.autograd.grad(y, x, create_graph=True)
        (second,) = tenon.autograd.grad(first, x)
        self.assertEqual((first.tolist(), second.tolist()), ([27], [18]))
        self.assertEqual(x.grad.tolist(), [12])

    def test_several_roots_and_unused(self):
        x, z = tenon.tensor([1.0, 2.0], requires_grad=True), tenon.tensor([1.0], requires_grad=True)
        tenon.autograd.backward([x * 2, x * 3], [tenon.ones(2), tenon.tensor([0.0, 1.0])])
        self.assertEqual(x.grad.tolist(), [2, 5])
        with self.assertRaises(tenon.Error):
            tenon.autograd.grad((x * 2).sum(), [x, z])
        grads = tenon.autograd.grad((x * 2).sum(), [x, z], allow_unused=True)
        self.assertEqual((grads[0].tolist(), grads[1]), ([2, 2], None))
        with self.assertRaisesRegex(ValueError, "1 gradients for 2"):
            tenon.autograd.backward([x * 2, x * 3], [tenon.ones(2)])
        with self.assertRaises(TypeError):
            tenon.autograd.grad("x", x)
        with self.assertRaises(TypeError):
            tenon.autograd.grad(x * 2, [x, 3])

    def test_marking(self):
        x = tenon.ones(2).requires_grad_()
        with self.assertRaises(tenon.Error):
            (x * 2).requires_grad = False
        with self.assertRaises(tenon.Error):
            tenon.ones(2, dtype=tenon.int64).requires_grad_()
        y = x * 2
        y.retain_grad()
        y.sum().backward()
        self.assertEqual(y.grad.tolist(), [1, 1])
        self.assertFalse(y.detach().requires_grad)
        with self.assertRaises(TypeError):
            x.grad = 3


class Modes(unittest.TestCase):
    def test_no_grad(self):
        x = tenon.ones(2, requires_grad=True)
        with tenon.no_grad():
            self.assertFalse((x * 2).requires_grad)
            with tenon.enable_grad():
                self.assertTrue((x * 2).requires_grad)
            self.assertFalse(tenon.is_grad_enabled())
        self.assertTrue(tenon.is_grad_enabled())

        @tenon.no_grad()
        def twice(x, depth=1):
            return twice(x, 0) if depth else x * 2

        self.assertFalse(twice(x).requires_grad)
        self.assertTrue((x * 2).requires_grad)
        with self.assertRaises(ZeroDivisionError), tenon.no_grad():
            1 / 0
        self.assertTrue(tenon.is_grad_enabled())
        with tenon.inference_mode():
            self.assertFalse((x * 2).requires_grad)

    def test_modes_are_the_threads_own(self):
        seen = []
        with tenon.no_grad():
            thread = threading.Thread(target=lambda: seen.append(tenon.is_grad_enabled()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [True])

    def test_autocast(self):
        a = tenon.ones(2, 2)
        with tenon.autocast(tenon.bfloat16):
            self.assertEqual((a @ a).dtype, tenon.bfloat16)
        self.assertEqual((a @ a).dtype, tenon.float32)

    def test_anomaly(self):
        x = tenon.tensor([0.0], requires_grad=True)
        with self.assertRaises(tenon.Error), tenon.set_anomaly_enabled():
            (x.sqrt() * 0).backward()


class Hooks(unittest.TestCase):
    def test_a_hook_sees_and_replaces(self):
        x, seen = tenon.ones(2, requires_grad=True), []
        y = x * 3
        hook = y.register_hook(lambda grad: seen.append(grad.tolist()))
        y.register_hook(lambda grad: grad * 10)
        y.sum().backward()
        self.assertEqual((seen, x.grad.tolist()), ([[1, 1]], [30, 30]))
        hook.remove()
        hook.remove()
        leaf = tenon.ones(1, requires_grad=True)
        handle = leaf.register_hook(lambda grad: grad * 2)
        leaf.sum().backward()
        handle.remove()
        leaf.sum().backward()
        self.assertEqual(leaf.grad.tolist(), [3])

    def test_what_a_hook_raises_comes_out(self):
        x = tenon.ones(2, requires_grad=True)
        y = x * 3
        y.register_hook(lambda grad: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            y.sum().backward()
        y = x * 3
        y.register_hook(lambda grad: "text")
        with self.assertRaisesRegex(TypeError, "tensor or None"):
            y.sum().backward()
        self.assertEqual((tenon.ones(1) + 1).tolist(), [2])

    def test_a_hook_goes_with_its_tensor(self):
        class Held:
            pass

        held = Held()
        weak = weakref.ref(held)
        x = tenon.ones(1, requires_grad=True)
        y = x * 2
        handle = y.register_hook(lambda grad, held=held: None)
        del held
        handle.remove()
        del y, handle
        gc.collect()
        self.assertIsNone(weak())


    def test_who_forgets_a_hook_keeps_it_on(self):
        for order in ("handle first", "tensor first"):
            seen = []
            x = tenon.ones(1, requires_grad=True)
            y = x * 2
            handle = y.register_hook(lambda grad: seen.append(1))
            if order == "handle first":
                del handle
                gc.collect()
                y.backward()
                del y
                self.assertEqual(seen, [1])
            else:
                del y
                gc.collect()
                handle.remove()
                handle.remove()

    def test_a_hook_may_take_itself_off(self):
        x, seen = tenon.ones(1, requires_grad=True), []

        def once(grad):
            seen.append(1)
            handle.remove()

        handle = x.register_hook(once)
        for _ in range(2):
            (x * 2).backward()
        self.assertEqual(seen, [1])


class Functions(unittest.TestCase):
    def test_a_derivative_of_ones_own(self):
        for device in DEVICES:
            x = tenon.tensor([3.0, -1.0], device=device, requires_grad=True)
            y = Square.apply(x)
            self.assertEqual((y.tolist(), y.grad_fn), ([9, 1], "SquareBackward"))
            y.sum().backward()
            self.assertEqual(x.grad.tolist(), [6, -2])
            (first,) = tenon.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
            (second,) = tenon.autograd.grad(first.sum(), x)
            self.assertEqual(second.tolist(), [2, 2])

    def test_arguments_that_are_no_tensors_and_several_outputs(self):
        class Split(tenon.autograd.Function):
            n_outputs = 2

            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return x * factor, x + factor

            @staticmethod
            def backward(ctx, a, b):
                return (a if a is not None else 0) * ctx.factor + (b if b is not None else 0), None

        x = tenon.tensor([1.0], requires_grad=True)
        a, b = Split.apply(x, 5)
        (a + b).sum().backward()
        self.assertEqual((a.item(), b.item(), x.grad.item()), (5, 6, 6))

    def test_a_gradient_does_not_end_in_complex_numbers(self):
        class AsComplex(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.to(tenon.complex64)

            @staticmethod
            def backward(ctx, grad):
                return grad.real

        x = tenon.ones(2).requires_grad_()
        with self.assertRaisesRegex(tenon.ArgumentError, "AsComplexBackward: an input requires a gradient, and output 0 is c64.*tn_detach"):
            AsComplex.apply(x)
        self.assertEqual(AsComplex.apply(x.detach()).tolist(), [1, 1])
        with tenon.no_grad():
            self.assertEqual(AsComplex.apply(x).dtype, tenon.complex64)

    def test_what_is_saved_goes_with_the_graph(self):
        before = tenon.memory_stats("cpu:0")["allocated_bytes"]
        for _ in range(3):
            x = tenon.ones(1000, requires_grad=True)
            y = Exp.apply(x)
            del x, y
        gc.collect()
        self.assertEqual(tenon.memory_stats("cpu:0")["allocated_bytes"], before)

    def test_a_saved_tensor_that_was_written(self):
        x = tenon.ones(2, requires_grad=True)
        y = Exp.apply(x * 1)
        y *= 2
        with self.assertRaisesRegex(tenon.Error, "in place|written|modified"):
            y.sum().backward()

    def test_exceptions_come_out(self):
        class Bad(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x, where):
                if where == "forward":
                    raise KeyError("forward")
                return x * 1 if where != "type" else 3

            @staticmethod
            def backward(ctx, grad):
                raise KeyError("backward")

        x = tenon.ones(1, requires_grad=True)
        with self.assertRaises(KeyError):
            Bad.apply(x, "forward")
        with self.assertRaises(TypeError):
            Bad.apply(x, "type")
        with self.assertRaises(KeyError):
            Bad.apply(x, "backward").backward()


if __name__ == "__main__":
    unittest.main()
