"""torch.tenon: what PyTorch's device modules have."""

import torch

from . import _C


def is_available():
    return _C.device_count() > 0


def device_count():
    return _C.device_count()


def is_initialized():
    return True


def init():
    _C.devices()  # says why there are none


_lazy_init = init


def _is_in_bad_fork():
    return False  # devices serve a forked child as docs/decisions/0017-plugins-are-told-of-forks.md has it


def _index(device=None):
    return torch.accelerator._utils._get_device_index(device, optional=True)


def current_device():
    return _C.current_device()


def set_device(device):
    _C.exchange_device(_index(device))


class device:
    """Makes a device the current one for a block."""

    def __init__(self, device):
        self.index = _index(device)

    def __enter__(self):
        self.before = _C.exchange_device(self.index)
        return self

    def __exit__(self, *exception):
        _C.exchange_device(self.before)


def get_device_name(device=None):
    """Tenon's name for it and the product's: "npu:0 (Acme N1)"."""
    index = _index(device)
    product = _C.product(index)
    return _C.devices()[index] + (f" ({product})" if product else "")


def synchronize(device=None):
    torch.accelerator.synchronize(_index(device))


# ---- streams and events -----------------------------------------------------------------------------

Stream = torch.Stream
Event = torch.Event


def current_stream(device=None):
    return torch.accelerator.current_stream(_index(device))


def set_stream(stream):
    torch.accelerator.set_stream(stream)


class stream:
    """Makes a stream the current one of its device for a block; of None does nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.before = torch.accelerator.current_stream(self.stream.device.index)
            torch.accelerator.set_stream(self.stream)
        return self.stream

    def __exit__(self, *exception):
        if self.stream is not None:
            torch.accelerator.set_stream(self.before)


# ---- random numbers ------------------------------------------------------------------------------------


def default_generator(device=None):
    return _C.default_generator(_index(device))


def manual_seed(seed):
    default_generator().manual_seed(seed)


def manual_seed_all(seed):
    for index in range(device_count()):
        default_generator(index).manual_seed(seed)


def seed():
    default_generator().seed()


def seed_all():
    manual_seed_all(default_generator().seed())


def initial_seed():
    return default_generator().initial_seed()


def get_rng_state(device=None):
    return default_generator(device).get_state()


def set_rng_state(state, device=None):
    default_generator(device).set_state(state)


# ---- memory ----------------------------------------------------------------------------------------------


def empty_cache():
    torch.accelerator.memory.empty_cache()


def memory_stats(device=None):
    return torch.accelerator.memory.memory_stats(_index(device))


def memory_allocated(device=None):
    return torch.accelerator.memory.memory_allocated(_index(device))


def max_memory_allocated(device=None):
    return torch.accelerator.memory.max_memory_allocated(_index(device))


def memory_reserved(device=None):
    return torch.accelerator.memory.memory_reserved(_index(device))


def max_memory_reserved(device=None):
    return torch.accelerator.memory.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device=None):
    torch.accelerator.memory.reset_peak_memory_stats(_index(device))


# ---- autocast ------------------------------------------------------------------------------------------------


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]
