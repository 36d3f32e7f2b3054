"""Dtypes that are stored, moved and converted, with PyTorch's CPU beside every device."""

import io
import itertools
import unittest

import torch

import tenon_torch

ALL = [torch.device("tenon", i) for i in range(len(tenon_torch.devices()))]
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
COMPLEX = (torch.complex64, torch.complex128)
STORED = UNSIGNED + COMPLEX
OTHERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
          torch.bool)


def bits(dtype, *shape):
    """Any bits at all, of a dtype that takes any."""
    n = torch.Size(shape).numel() * dtype.itemsize
    return torch.randint(0, 256, (n,), dtype=torch.uint8).view(dtype).reshape(shape)


def numbers(dtype):
    """Those that every conversion to a dtype of more kinds is defined for, and the edges."""
    if dtype in UNSIGNED:
        top = 2 ** (8 * dtype.itemsize)
        return torch.tensor([0, 1, 2, 100, 127, 128, 255, 256, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1], dtype=dtype)
    if dtype in COMPLEX:
        return torch.tensor([0, 1, -1.5 + 2j, 3j, 100.75 - 0.25j, complex("inf"), complex("nan"), -0.0], dtype=dtype)
    if dtype is torch.bool:
        return torch.tensor([True, False])
    if dtype.is_floating_point:
        return torch.tensor([0, 1, 1.75, 100.5, -0.0, -1, -3.7, 20000.9], dtype=dtype)
    low = torch.iinfo(dtype).min
    return torch.tensor([0, 1, low, low + 1, torch.iinfo(dtype).max, 100], dtype=dtype)


def memory(t):
    return t.resolve_conj().clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8)


def same(ours, theirs):
    ours = ours.cpu()
    return (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape) and memory(ours).equal(memory(theirs))


def without_nan(t):
    """A NaN that is converted may have any payload."""
    return torch.where(t.isnan(), torch.zeros_like(t), t) if t.is_floating_point() else t


def converted_as_c(x, dtype):
    """Without what C leaves open: numbers beyond an integer dtype, NaN among them."""
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool or not (x.is_floating_point() or x.is_complex()):
        return x
    real = torch.real(x).double()
    return x[real.isfinite() & (real.abs() < 2.0 ** (8 * dtype.itemsize - (dtype.is_signed or dtype.itemsize < 8)))]


class StorageDtypes(unittest.TestCase):
    def check(self, ours, theirs, what):
        self.assertTrue(same(ours, theirs), (what, ours.cpu(), theirs))

    def test_there_and_back(self):
        for device, dtype in itertools.product(ALL, STORED):
            x = bits(dtype, 3, 5)
            y = x.to(device)
            self.assertEqual((y.device, y.dtype), (device, dtype))
            for view in (lambda t: t, lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[:0], lambda t: t[2, 3], lambda t: t[:, 1:2].expand(3, 4)):
                self.check(view(y), view(x), (device, dtype))
                self.check(view(y).contiguous(), view(x), (device, dtype))
                self.check(view(y).clone().to(ALL[-1]), view(x), (device, dtype))
            y[1:, ::2] = x[:2, ::2]
            x[1:, ::2] = x[:2, ::2].clone()
            self.check(y, x, dtype)

    def test_elements_move(self):
        for device, dtype in itertools.product(ALL, STORED):
            x, index, mask = bits(dtype, 4, 6), torch.tensor([2, 0, 3]), torch.rand(4, 6) > 0.5
            calls = {
                "flip": lambda t, i, m: t.flip(0, 1), "roll": lambda t, i, m: t.roll(2, 1), "cat": lambda t, i, m: torch.cat([t, t[:1]]),
                "stack": lambda t, i, m: torch.stack([t, t.flip(0)], -1), "select": lambda t, i, m: t.index_select(0, i),
                "index": lambda t, i, m: t[i, :, None][:, ::2], "gather": lambda t, i, m: t.gather(0, i[None]),
                "where": lambda t, i, m: torch.where(m, t, t.flip(1)), "repeat": lambda t, i, m: t.repeat(2, 1),
                "pad": lambda t, i, m: torch.nn.functional.pad(t, (1, 2)), "zeros": lambda t, i, m: torch.zeros_like(t),
                "split": lambda t, i, m: torch.cat(t.split(4, 1)[::-1], 1), "as_strided": lambda t, i, m: t.as_strided((3, 3), (2, 1), 4)}
            for name, call in calls.items():
                self.check(call(x.to(device), index.to(device), mask.to(device)), call(x, index, mask), (name, device, dtype))

    def test_conversions(self):
        for device, (a, b) in itertools.product(ALL, itertools.product(STORED + OTHERS, STORED + OTHERS)):
            if not ({a, b} & set(STORED)):
                continue
            x = converted_as_c(numbers(a), b)
            into = torch.zeros(2 * len(x), dtype=b)
            ours = into.to(device)
            ours[1::2] = x.to(device)
            into[1::2] = x
            for got, want in ((x.to(device).to(b), x.to(b)), (x.to(device)[::2].to(b), x[::2].to(b)), (ours, into)):
                if b in COMPLEX:
                    got, want = torch.view_as_real(got), torch.view_as_real(want)
                self.assertTrue(torch.equal(got.cpu().isnan(), want.isnan()) if want.is_floating_point() else True)
                self.check(without_nan(got.cpu()), without_nan(want), (device, a, b))

    def test_numbers(self):
        for device in ALL:
            self.assertEqual(torch.tensor(2**64 - 1, dtype=torch.uint64, device=device).item(), 2**64 - 1)
            self.assertEqual(torch.tensor([1, 65535], dtype=torch.uint16, device=device).tolist(), [1, 65535])
            self.assertEqual(torch.tensor(1.5 - 2j, device=device).item(), 1.5 - 2j)
            self.assertEqual(torch.tensor([1j], dtype=torch.complex128, device=device).tolist(), [1j])
            self.assertEqual(torch.full((2,), 7, dtype=torch.uint32, device=device).tolist(), [7, 7])
            self.assertEqual(repr(torch.tensor([1 + 2j], device=device).cpu()), "tensor([1.+2.j])")
            self.assertTrue(torch.equal(torch.ones(2, dtype=torch.complex64, device=device), torch.ones(2, dtype=torch.complex64, device=device)))

    def test_complex_views(self):
        for device, dtype in itertools.product(ALL, COMPLEX):
            x = numbers(dtype)[:5].clone()
            y = x.to(device)
            self.check(y.real, x.real, dtype)
            self.check(y.imag, x.imag, dtype)
            self.check(torch.view_as_real(y), torch.view_as_real(x), dtype)
            self.check(torch.view_as_complex(torch.view_as_real(y)), x, dtype)
            y.imag.mul_(-2)
            x.imag.mul_(-2)
            self.check(y, x, dtype)
            self.check(y.conj(), x.conj().resolve_conj(), dtype)
            self.check(x.conj().to(device), x.conj().resolve_conj(), dtype)
            for conjugated in (lambda t: t.clone(), lambda t: t.clone().conj(), lambda t: t.clone()._neg_view(), lambda t: t.clone()[1:4:2]):
                ours, theirs = conjugated(y).conj_physical_().cpu(), conjugated(x).conj_physical_()
                self.assertTrue(torch.equal(ours, theirs.resolve_conj().resolve_neg()), (ours, theirs))
            real = torch.ones(2, device=device)
            self.assertIs(real.conj_physical_(), real)

    def test_complex_samples_become_batches(self):
        for device, dtype in itertools.product(ALL, COMPLEX):
            x = numbers(dtype)[:4].clone()
            y = x.to(device)
            for of in (lambda t: [t[0], t[1]], lambda t: [t, t.conj()], lambda t: [(t, 1), (t.conj(), 2)]):
                ours, theirs = (torch.utils.data.default_collate(of(t)) for t in (y, x))
                for a, b in zip(ours if isinstance(ours, list) else [ours], theirs if isinstance(theirs, list) else [theirs], strict=True):
                    self.check(a, b, dtype)
            out = torch.empty(0, dtype=dtype, device=device)
            self.check(torch.stack([y, y.conj()], out=out), torch.stack([x, x.conj()]), dtype)
            loaded = next(iter(torch.utils.data.DataLoader(list(x), batch_size=4, pin_memory=True))).to(device)
            self.check(loaded, x, dtype)

    def test_saved_and_loaded(self):
        for device, dtype in itertools.product(ALL, STORED):
            x, file = bits(dtype, 3), io.BytesIO()
            torch.save(x.to(device), file)
            file.seek(0)
            self.check(torch.load(file), x, dtype)

    def test_arithmetic_is_an_error(self):
        for device, dtype in itertools.product(ALL, STORED):
            x = torch.ones(2, dtype=dtype, device=device)
            for call in (lambda: x + x, lambda: x * 2, lambda: x.sum(), lambda: x.square_()):
                with self.assertRaisesRegex(RuntimeError, "not defined for .*convert it with tn_to_dtype first|not implemented"):
                    call()
        with self.assertRaisesRegex(TypeError, "a complex number is no argument"):
            torch.ones(2, device=ALL[0]).fill_(1j)


if __name__ == "__main__":
    unittest.main()
