"""Devices, memory, streams, generators: what PyTorch's generic code asks of a device."""

import copy
import io
import threading
import unittest

import torch

import tenon_torch

NAMES = tenon_torch.devices()  # TENON_TORCH_DEVICES of the test: cpu:0, sim:0, sim:1
ALL = [torch.device("tenon", i) for i in range(len(NAMES))]


class Devices(unittest.TestCase):
    def test_every_device_is_an_index(self):
        self.assertEqual(NAMES, ["cpu:0", "sim:0", "sim:1"])
        self.assertEqual(torch.tenon.device_count(), 3)
        self.assertTrue(torch.tenon.is_available() and torch.accelerator.is_available())
        self.assertEqual(torch.accelerator.current_accelerator().type, "tenon")
        self.assertIn("sim:0", torch.tenon.get_device_name(1))

    def test_an_index_that_is_not_there(self):
        with self.assertRaisesRegex(RuntimeError, "device index 7 of 3 that Tenon has"):
            torch.empty(1, device="tenon:7")
        with self.assertRaises(RuntimeError):
            torch.tenon.set_device(9)

    def test_current_device(self):
        self.assertEqual(torch.empty(1, device="tenon").device.index, 0)
        with torch.tenon.device(2):
            self.assertEqual(torch.empty(1, device="tenon").device.index, 2)
            seen = []
            other = threading.Thread(target=lambda: seen.append(torch.tenon.current_device()))
            other.start()
            other.join()
            self.assertEqual(seen, [0])  # each thread's own
        self.assertEqual(torch.tenon.current_device(), 0)

    def test_devices_of_two_vendors_in_one_program(self):
        a, b = torch.arange(6.0, device=ALL[0]), torch.arange(6.0, device=ALL[1])
        self.assertEqual((a * 2).device, ALL[0])
        self.assertEqual((b * 2).device, ALL[1])
        self.assertTrue(torch.equal(a.to(ALL[1]), b))
        self.assertTrue(torch.equal(b.to(ALL[2]).to(ALL[0]), a))
        for call in (lambda: a + b, lambda: torch.add(a, b, out=torch.empty_like(a)), lambda: a.add_(b), lambda: torch.cat([a, b])):
            with self.assertRaisesRegex(RuntimeError, "tenon:0.*tenon:1|tenon:1.*tenon:0"):
                call()

    def test_numbers_on_the_cpu(self):
        for device in ALL:
            x = torch.ones(3, device=device)
            self.assertEqual((x * torch.tensor(2.0)).tolist(), [2, 2, 2])
            self.assertEqual((torch.tensor(2.0) - x).tolist(), [1, 1, 1])
            self.assertEqual((x.int() * 2.5).dtype, torch.float32)
            self.assertEqual((x.half() + 1.0).dtype, torch.float16)
            self.assertEqual((2**53 + 1 + torch.zeros(1, dtype=torch.int64, device=device)).item(), 2**53 + 1)
            with self.assertRaisesRegex(RuntimeError, "other is on cpu"):
                x + torch.ones(3)

    def test_dtypes_that_tenon_has_not(self):
        for dtype in (torch.complex32, torch.float8_e4m3fn):
            with self.assertRaisesRegex(TypeError, "Tenon has no dtype"):
                torch.empty(1, dtype=dtype, device="tenon")
        self.assertEqual(torch.accelerator.get_device_capability(ALL[0])["supported_dtypes"] & {torch.complex32, torch.float32},
                         {torch.float32})


    def test_what_is_written_must_be_on_the_device(self):
        for device in ALL:
            x = torch.ones(4, device=device)
            for write in (lambda n: n.add_(x.sum()), lambda n: n.masked_fill_(x.sum() > 0, 3.0), lambda n: n.bernoulli_(x.sum())):
                number = torch.tensor(0.0)
                with self.assertRaisesRegex(RuntimeError, "on cpu|on a device of Tenon|for its devices alone"):
                    write(number)
                self.assertEqual(number.item(), 0)
            with self.assertRaisesRegex(RuntimeError, "a tensor is on cpu"):
                torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4, device=device), torch.ones(1, 1, 3, 3))

    def test_a_number_wider_than_the_tensors(self):
        for device in ALL:
            x = torch.tensor([3], dtype=torch.uint8, device=device)
            self.assertEqual(torch.div(300, x).item(), 100)
            self.assertAlmostEqual(torch.div(-1, x).item(), -1 / 3, places=6)
            self.assertAlmostEqual(torch.xlogy(-1, x).item(), -1.0986123, places=6)

    def test_memory_that_overlaps(self):
        for device in ALL:
            x = torch.zeros(3, 1, device=device)
            with self.assertRaisesRegex(RuntimeError, "more than one element"):
                x.expand(3, 4).add_(1)
            y = torch.arange(6.0, device=device)
            with self.assertRaisesRegex(RuntimeError, "some elements of the input tensor"):
                y[1:].add_(y[:-1])


class TheTensorThatMadeTheStorage(unittest.TestCase):
    """Operators are given it while PyTorch's tensor is the same view of its storage, and not a moment longer."""

    def both(self, work, devices=None):
        """work(device) on the CPU and on each device: the same values."""
        want = work(torch.device("cpu"))
        for device in devices or ALL:
            for ours, theirs in zip(work(device), want, strict=True):
                self.assertEqual(ours.device, device)
                self.assertEqual((ours.shape, ours.dtype, ours.tolist()), (theirs.shape, theirs.dtype, theirs.tolist()))

    def test_views(self):
        def work(device):
            x = torch.arange(12.0, device=device).reshape(3, 4).add(1)
            views = [x, x.t(), x[1], x[:, 1:3], x[::2], x.view(12), x.view(2, 6), x.expand(2, 3, 4), x.as_strided((2, 2), (1, 4), 3),
                     x.view(torch.int32), x.unsqueeze(0), x.reshape(-1)[5], x[0:0]]
            x[1].mul_(2)
            x.t().add_(1)
            x.as_strided((2, 2), (1, 4), 3).neg_()
            return [v.add(v) for v in views] + [v.clone() for v in views]
        self.both(work)

    def test_a_tensor_that_changes_under_its_name(self):
        def work(device):
            x, seen = torch.arange(6.0, device=device).mul(1), []
            x.add_(1)
            for change in (lambda: x.t_() if x.dim() == 2 else x.unsqueeze_(0), lambda: x.squeeze_(), lambda: x.resize_(2, 2),
                           lambda: x.transpose_(0, 1), lambda: x.as_strided_((3,), (2,)), lambda: x.resize_(3),
                           lambda: x.set_(torch.arange(4.0, device=device) + 7), lambda: x.set_(x.untyped_storage(), 1, (2,), (1,)),
                           lambda: setattr(x, "data", torch.full((2, 2), 3.0, device=device)),
                           lambda: setattr(x, "data", x.data.double())):
                change()
                x.add_(1)
                seen += [x.clone(), x + x, x.sum()]
            return seen
        self.both(work)

    def test_a_storage_that_grows(self):
        def work(device):
            x = torch.arange(3.0, device=device) + 1
            y = x[1:]
            x.add_(1)
            x.resize_(8)[3:].fill_(4)
            y.mul_(10)
            return [x.mul(1), y.mul(1), x[1:3].mul(1)]
        self.both(work)

    def test_a_storage_that_is_given_back(self):
        for device in ALL:
            x = torch.ones(3, device=device) + 1
            x.untyped_storage().resize_(0)
            with self.assertRaisesRegex(RuntimeError, "was given back"):
                x.add_(1)
            x.untyped_storage().resize_(12)
            self.assertEqual(x.fill_(5).add(1).tolist(), [6, 6, 6])

    def test_parameters_take_no_history(self):
        for device in ALL:
            conv = torch.nn.Conv3d(1, 2, 2).to(device)
            x = (torch.ones(1, 1, 3, 3, 3, device=device) + 1).requires_grad_()
            grads = []
            for _ in range(2):
                conv.zero_grad()
                conv(x).sum().backward()
                grads.append(conv.weight.grad.clone())
                with torch.no_grad():  # of Tenon's gradients they are leaves, which would not be written
                    conv.weight.mul_(1)
                    x.mul_(1)
            self.assertTrue(torch.equal(*grads))

    def test_nothing_stays(self):
        for device in ALL:
            for make in (lambda: torch.ones(1000, device=device) + 1, lambda: torch.ones(10, 100, device=device).t().contiguous(),
                         lambda: torch.empty(1000, device=device).relu_(), lambda: torch.ones(1000, device=device)[10:].add(1),
                         lambda: torch.ones(1000, device=device).topk(3), lambda: torch.ones(1000, device=device).sum()):
                make()
                before = torch.tenon.memory_allocated(device)
                for _ in range(20):
                    make()
                self.assertEqual(torch.tenon.memory_allocated(device), before)

    def test_threads_share_one(self):
        for device in ALL:
            x, failed = torch.arange(64.0, device=device) + 1, []
            want = [(torch.arange(64.0) + 1 + i).sum().item() for i in range(4)]

            def work(i):
                y = x[:32]
                for _ in range(200):
                    if (x + i).sum().item() != want[i] or y.add(x[:32]).tolist()[0] != 2:
                        failed.append(i)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(failed, [])

    def test_empty_ones(self):
        def work(device):
            made = [torch.empty(0, 3, device=device), torch.empty((), device=device).fill_(2), torch.empty(2, 0, device=device) + 1,
                    torch.empty_strided((2, 3), (3, 1), device=device).fill_(1),
                    torch.empty_strided((2, 3), (1, 2), device=device).fill_(1),
                    torch.empty(1, 2, 3, 4, device=device, memory_format=torch.channels_last).fill_(3),
                    torch.ones(3, device=device)[:0].add(1)]
            return made + [t.add(1) for t in made]
        self.both(work)
        for device in ALL:
            with self.assertRaisesRegex(RuntimeError, "negative dimension"):
                torch.empty(2, -1, device=device)
            with self.assertRaises(RuntimeError):
                torch.empty(2**40, 2**40, device=device)
            self.assertEqual(torch.empty(1, dtype=torch.float64, device=device).dtype, torch.float64)
            self.assertEqual(torch.empty([1] * 13, device=device).dim(), 13)


class CallsWithoutBoxes(unittest.TestCase):
    def test_arguments_of_every_kind(self):
        for device in ALL:
            x, cpu = torch.arange(6.0, device=device).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
            for call in (lambda t: t + 1, lambda t: 1 - t, lambda t: t + True, lambda t: torch.add(t, t, alpha=2), lambda t: t.int() + 2.5,
                         lambda t: t.int().add(t.int(), alpha=3), lambda t: t.clone().add_(2), lambda t: t.clone().sub_(t, alpha=0.5),
                         lambda t: t.sum(), lambda t: t.sum(dtype=torch.float64), lambda t: t.sum(1), lambda t: t.sum((0, 1), keepdim=True),
                         lambda t: t.sum(dim=0, dtype=torch.int64), lambda t: t.mean(), lambda t: t.amax(1, True), lambda t: t.amax(),
                         lambda t: t.softmax(-1), lambda t: torch.where(t > 2, t, t.neg()), lambda t: t.masked_fill(t > 2, -1),
                         lambda t: t.addcmul(t, t, value=2), lambda t: torch.addmm(t[:, :2], t, t.t(), beta=2, alpha=3),
                         lambda t: t.int().addmm(t.int(), torch.ones(3, 3, dtype=torch.int32, device=t.device), beta=2.0),
                         lambda t: t.gather(1, torch.tensor([[0], [2]], device=t.device)), lambda t: t.index_select(1, torch.tensor([1], device=t.device)),
                         lambda t: t.pow(2), lambda t: t.clamp_min(2), lambda t: t.lt(2), lambda t: t.triu(1), lambda t: t.lerp(t + 1, 0.25),
                         lambda t: torch.nn.functional.mse_loss(t, t + 1), lambda t: t.clone().addcdiv_(t, t + 1, value=2),
                         lambda t: t.half() * torch.tensor(2.0), lambda t: t.eq(t).logical_not_(), lambda t: t.clone().fill_(3)):
                ours, theirs = call(x), call(cpu)
                self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
                self.assertTrue(torch.allclose(ours.cpu().double(), theirs.double()))

    def test_what_is_returned_is_what_was_written(self):
        for device in ALL:
            x = torch.ones(2, device=device)
            for call in (x.add_, x.mul_, x.fill_):
                self.assertIs(call(2), x)
            self.assertIs(x.relu_(), x)

    def test_refusals(self):
        for device in ALL:
            x = torch.ones(2, device=device)
            with self.assertRaisesRegex(TypeError, "a complex number is no argument"):
                x.fill_(1j)
            with self.assertRaisesRegex(TypeError, "a complex number is no argument"):
                torch.add(x, 1j)
            with self.assertRaisesRegex(RuntimeError, "on meta|is on cpu|different|on a device"):
                x + torch.ones(2)
            y = torch.ones(3, device=device)
            with self.assertRaises(RuntimeError):
                x + y

    def test_a_pass_with_gradients(self):
        for device in ALL:
            x = torch.arange(3.0, device=device, requires_grad=True)
            ((x * x + 1).relu().sum() * 2).backward()
            self.assertEqual(x.grad.tolist(), [0, 4, 8])


class Memory(unittest.TestCase):
    def test_in_and_out(self):
        for device in ALL:
            for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.uint8, torch.bool):
                x = torch.randn(3, 5).mul(9).to(dtype)
                self.assertTrue(torch.equal(x.to(device).cpu(), x))
                self.assertTrue(torch.equal(x.to(device).t().cpu(), x.t()))
                self.assertTrue(torch.equal(x.to(device)[:, 1::2].cpu(), x[:, 1::2]))
            self.assertEqual(torch.zeros(0, 3, device=device).cpu().shape, (0, 3))
            self.assertEqual(torch.tensor(1.5, device=device).item(), 1.5)

    def test_into_a_view(self):
        for device in ALL:
            x = torch.zeros(4, 4, device=device)
            x[1:3, ::2] = torch.tensor([[1, 2], [3, 4]])
            self.assertEqual(x.cpu()[1:3].tolist(), [[1, 0, 2, 0], [3, 0, 4, 0]])
            y = torch.zeros(4, 4)
            y[:, 1] = x[1]
            self.assertEqual(y[:, 1].tolist(), [1, 0, 2, 0])

    def test_views_share(self):
        for device in ALL:
            x = torch.arange(12, device=device)
            y = x.view(3, 4)[1:].t()
            y.add_(100)
            self.assertEqual(x.tolist(), [0, 1, 2, 3, 104, 105, 106, 107, 108, 109, 110, 111])
            self.assertEqual(y.data_ptr() - x.data_ptr(), 4 * x.element_size())
            self.assertEqual(torch.as_strided(x, (2, 2), (4, 1), 1).tolist(), [[1, 2], [105, 106]])
            self.assertEqual(x.unfold(0, 4, 4).tolist(), x.view(3, 4).tolist())

    def test_addresses_are_nobody_elses(self):
        for device in ALL:
            held = [torch.empty(n, dtype=torch.uint8, device=device) for n in (1, 511, 512, 513, 4096, 100_000)]
            ranges = sorted((t.data_ptr(), t.data_ptr() + t.numel()) for t in held)
            for (_, end), (start, _) in zip(ranges, ranges[1:]):
                self.assertLessEqual(end, start)

    def test_storage_grows_and_keeps(self):
        for device in ALL:
            x = torch.arange(4, device=device)
            x.resize_(8)
            self.assertEqual(x[:4].tolist(), [0, 1, 2, 3])
            x.untyped_storage().resize_(0)
            self.assertEqual(x.untyped_storage().nbytes(), 0)
            y, z = torch.zeros(2, device=device), torch.arange(6.0, device=device)
            y.set_(z.untyped_storage(), 2, (2, 2), (2, 1))
            self.assertEqual(y.tolist(), [[2, 3], [4, 5]])

    def test_out_is_resized_and_cast(self):
        for device in ALL:
            a = torch.arange(6.0, device=device).view(2, 3)
            out = torch.empty(0, device=device)
            torch.mm(a, a.t(), out=out)
            self.assertEqual(out.tolist(), [[5, 14], [14, 50]])
            wide = torch.empty(2, 3, dtype=torch.float64, device=device)
            torch.add(a, 1, out=wide)
            self.assertEqual(wide.dtype, torch.float64)
            with self.assertRaisesRegex(RuntimeError, "can't be cast"):
                torch.add(a, 1, out=torch.empty(2, 3, dtype=torch.int32, device=device))

    def test_figures(self):
        for device in ALL:
            before = torch.tenon.memory_allocated(device)
            x = torch.empty(1 << 20, dtype=torch.uint8, device=device)
            self.assertGreaterEqual(torch.tenon.memory_allocated(device), before + (1 << 20))
            self.assertGreaterEqual(torch.tenon.max_memory_allocated(device), before + (1 << 20))
            del x
            self.assertEqual(torch.tenon.memory_allocated(device), before)
        torch.tenon.empty_cache()

    def test_too_much(self):
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device="tenon:1")

    def test_pinned(self):
        x = torch.arange(1000.0).pin_memory()
        self.assertTrue(x.is_pinned())
        self.assertFalse(torch.ones(3).is_pinned())
        for device in ALL:
            y = x.to(device, non_blocking=True)
            torch.tenon.synchronize(device)
            self.assertTrue(torch.equal(y.cpu(), x))

    def test_saved_and_loaded(self):
        for device in ALL:
            file = io.BytesIO()
            torch.save({"x": torch.arange(5.0, device=device)}, file)
            file.seek(0)
            self.assertEqual(torch.load(file)["x"].device, device)
            file.seek(0)
            self.assertEqual(torch.load(file, map_location="cpu")["x"].tolist(), [0, 1, 2, 3, 4])
            x = torch.nn.Parameter(torch.ones(2, device=device))
            self.assertEqual(copy.deepcopy(x).device, device)

    def test_printed(self):
        for device in ALL:
            self.assertIn(f"device='{device}'", repr(torch.ones(2, 2, device=device)))


class Streams(unittest.TestCase):
    def test_work_on_another_stream(self):
        for device in ALL:
            stream, x = torch.Stream(device), torch.ones(1000, device=device)
            event = torch.Event(device)
            stream.wait_stream(torch.tenon.current_stream(device))  # which fills x
            with torch.tenon.stream(stream):
                self.assertEqual(torch.tenon.current_stream(device), stream)
                y = x * 3
                y.record_stream(stream)
                event.record()
            self.assertNotEqual(torch.tenon.current_stream(device), stream)
            event.wait(torch.tenon.current_stream(device))
            self.assertEqual((y + 1).sum().item(), 4000)
            stream.synchronize()
            self.assertTrue(stream.query() and event.query())

    def test_streams_that_come_and_go(self):
        for device in ALL:
            seen = {torch.Stream(device).stream_id for _ in range(100)}
            self.assertLessEqual(len(seen), 32)

    def test_elapsed(self):
        for device in ALL:
            a, b = torch.Event(device, enable_timing=True), torch.Event(device, enable_timing=True)
            a.record()
            torch.ones(100, device=device).exp_()
            b.record()
            b.synchronize()
            self.assertGreaterEqual(a.elapsed_time(b), 0)


class Random(unittest.TestCase):
    def test_seeds(self):
        for device in ALL:
            torch.manual_seed(7)
            a = torch.rand(100, device=device)
            state = torch.tenon.get_rng_state(device)
            b = torch.randn(100, device=device)
            torch.tenon.set_rng_state(state, device)
            self.assertTrue(torch.equal(torch.randn(100, device=device), b))
            torch.manual_seed(7)
            self.assertTrue(torch.equal(torch.rand(100, device=device), a))

    def test_the_same_numbers_on_every_device(self):
        drawn = []
        for device in ALL:
            torch.manual_seed(3)
            drawn.append(torch.rand(1000, device=device).cpu())
        self.assertTrue(all(torch.equal(d, drawn[0]) for d in drawn))

    def test_a_generator_of_its_own(self):
        for device in ALL:
            torch.manual_seed(1)
            expected = torch.rand(10, device=device)
            torch.manual_seed(1)
            own = torch.Generator(device).manual_seed(99)
            first = torch.rand(10, device=device, generator=own)
            self.assertTrue(torch.equal(torch.rand(10, device=device), expected))  # the device's own was left alone
            self.assertFalse(torch.equal(torch.rand(10, device=device, generator=own), first))
            self.assertTrue(torch.equal(torch.rand(10, device=device, generator=own.manual_seed(99)), first))
            with self.assertRaisesRegex(RuntimeError, "generator"):
                torch.rand(3, device=device, generator=torch.Generator("cpu"))

    def test_distributions(self):
        for device in ALL[:2]:
            torch.manual_seed(0)
            x = torch.empty(20_000, device=device)
            for fill, mean in ((lambda: x.uniform_(1, 3), 2), (lambda: x.normal_(1, 2), 1), (lambda: x.exponential_(2), 0.5),
                               (lambda: x.bernoulli_(0.25), 0.25), (lambda: x.geometric_(0.5), 2), (lambda: x.random_(0, 11), 5)):
                self.assertAlmostEqual(fill().mean().item(), mean, delta=0.07)
            self.assertEqual(torch.randperm(50, device=device).sort().values.tolist(), list(range(50)))


class Gradients(unittest.TestCase):
    def test_dtypes_of_autocast(self):
        for device in ALL:
            x, w = torch.randn(4, 8, device=device), torch.randn(8, 8, device=device, requires_grad=True)
            with torch.autocast("tenon", dtype=torch.bfloat16):
                y = x @ w
                self.assertEqual(y.dtype, torch.bfloat16)
                loss = torch.nn.functional.cross_entropy(y, torch.zeros(4, dtype=torch.int64, device=device))
                self.assertEqual(loss.dtype, torch.float32)
            loss.backward()
            self.assertEqual(w.grad.dtype, torch.float32)

    def test_scaler(self):
        for device in ALL:
            w = torch.ones(3, device=device, requires_grad=True)
            scaler, step = torch.amp.GradScaler("tenon", init_scale=8.0, growth_interval=1), torch.optim.SGD([w], lr=1.0)
            scaler.scale(w.sum()).backward()
            scaler.step(step)
            scaler.update()
            self.assertEqual((w.tolist(), scaler.get_scale()), ([0, 0, 0], 16.0))
            w.grad = torch.full((3,), float("inf"), device=device)
            scaler.step(step)
            scaler.update()
            self.assertEqual((w.tolist(), scaler.get_scale()), ([0, 0, 0], 8.0))

    def test_recurrent_and_indexed(self):
        for device in ALL:
            for make in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
                torch.manual_seed(0)
                model, x = make(3, 4, num_layers=2), torch.randn(5, 2, 3)
                results = []
                for where in ("cpu", device):
                    run = copy.deepcopy(model).to(where)
                    out = run(x.to(where))[0]
                    out[[0, 2]].pow(2).sum().backward()
                    results.append([out.detach().cpu(), *(p.grad.cpu() for p in run.parameters())])
                for a, b in zip(*results):
                    torch.testing.assert_close(a, b)

    def test_twice(self):
        for device in ALL:
            x = torch.tensor([2.0], device=device, requires_grad=True)
            (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first, x)
            self.assertEqual((first.item(), second.item()), (12, 12))

    def test_threads(self):
        def gradient(value, device):
            x = torch.full((16, 16), float(value), device=device).triu().requires_grad_()
            (x @ x).relu().sum().backward()
            return x.grad.cpu()

        def work(device, value, results):
            for _ in range(20):
                results.append(torch.equal(gradient(value, device), gradient(value, "cpu")))

        results = []
        threads = [threading.Thread(target=work, args=(device, i, results)) for i, device in enumerate(ALL * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 20 * len(threads))

    def test_the_negative_bit(self):
        """As conj().imag of complex tensors has it: the elements in memory are the opposite of what it says."""
        for device in ("tenon:0", "tenon:1"):
            x = torch._neg_view(torch.arange(3.0, device=device))
            self.assertTrue(x.is_neg())
            for got in (x.cpu(), x.clone(), x.resolve_neg(), x * 1, x.to("tenon:2"), x.double(), x[1:].cpu().new_tensor([0, -1, -2])):
                self.assertEqual(got.cpu().tolist(), [0, -1, -2])
            x.copy_(torch.tensor([4.0, 5.0, 6.0]))
            self.assertEqual((x.tolist(), torch._neg_view(x).tolist()), ([4, 5, 6], [-4, -5, -6]))
            x.copy_(torch._neg_view(torch.tensor([1.0, 2.0, 3.0])))
            self.assertEqual(x.tolist(), [-1, -2, -3])
            here = torch._neg_view(torch.zeros(3))
            here.copy_(x)
            self.assertEqual(here.tolist(), [-1, -2, -3])


class Report(unittest.TestCase):
    def test_it_says_who_answers(self):
        report = {name: (how, by) for name, how, by in tenon_torch.report()}
        self.assertEqual(report["add.Tensor"], ("operator", "add.Tensor"))
        self.assertEqual(report["sum.dim_IntList"], ("operator", "sum.dim"))
        self.assertEqual(report["empty.memory_format"][0], "by hand")
        self.assertEqual(report["native_dropout"][0], "left to PyTorch")
        self.assertNotIn("to.dtype", report)  # PyTorch composes it: a kernel would hide its gradient

    def test_nothing_fell_back(self):
        self.assertEqual(tenon_torch.fallback_count(), 0)

    def test_profiler_has_device_times(self):
        x = torch.ones(200, 200, device="tenon:1")
        with torch.autograd.profiler.profile(use_device="tenon", use_kineto=False) as profile:
            (x @ x).sum().item()
        times = {event.key: event.device_time_total for event in profile.key_averages()}
        self.assertGreater(times["aten::mm"], 0)


if __name__ == "__main__":
    unittest.main()
