# SPDX-License-Identifier: Apache-2.0
"""Allocates tensors of normally distributed numbers. Their values change the energy of a product by tens of percent,
so zeros would be wrong."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator


class TensorFactory:
    """Allocates tensors of one type on one device; for backward passes they require gradients."""

    def __init__(self, torch: Any, device: str, dtype: str, requires_gradients: bool) -> None:
        self.torch, self.device, self.requires_gradients = torch, device, requires_gradients
        self.dtype = self.to_torch_dtype(dtype)

    def to_torch_dtype(self, name: str) -> Any:
        types = {"fp16": self.torch.float16, "bf16": self.torch.bfloat16, "uint8": self.torch.uint8}
        return types.get(name, self.torch.float32)

    def make_input(self, *shape: int, channels_last: bool = False) -> Any:
        tensor = self.torch.randn(shape, device=self.device, dtype=self.dtype)
        if channels_last:
            tensor = tensor.to(memory_format=self.torch.channels_last)
        return tensor.requires_grad_(self.requires_gradients)

    def make_weight(self, *shape: int, channels_last: bool = False) -> Any:
        """Normally distributed weights divided by the square root of the fan-in, like those of real networks."""
        fan_in = 1
        for size in shape[1:]:
            fan_in *= size
        with self.torch.no_grad():
            weight = self.make_input(*shape, channels_last=channels_last).detach().mul_(max(1, fan_in) ** -0.5)
        return weight.requires_grad_(self.requires_gradients)

    def make_constant(self, value: float, *shape: int) -> Any:
        return self.torch.full(shape, value, device=self.device, dtype=self.dtype)

    def make_indices(self, upper_bound: int, count: int) -> Any:
        return self.torch.randint(0, upper_bound, (count,), device=self.device)

    def make_byte_tensor(self, *shape: int) -> Any:
        return self.torch.randint(0, 256, shape, device=self.device, dtype=self.torch.uint8)

    def make_host_tensor(self, *shape: int, pinned: bool, as_bytes: bool) -> Any:
        """A tensor in host memory that repeats 65536 random values: the host generates normal numbers slowly, and the
        energy of a copy depends on its size only."""
        count = 1
        for size in shape:
            count *= size
        random_values = (
            self.torch.randint(0, 256, (65536,), dtype=self.torch.uint8) if as_bytes else self.torch.randn(65536)
        )
        host_tensor = random_values.repeat(count // random_values.numel() + 1)[:count].view(shape)
        host_tensor = host_tensor if as_bytes else host_tensor.to(self.dtype)
        return host_tensor.pin_memory() if pinned and self.device != "cpu" else host_tensor


@contextlib.contextmanager
def use_matmul_precision(torch: Any, name: str) -> Iterator[None]:
    """Sets the precision of 32-bit products and convolutions inside the context. fp32: full precision; tf32: TF32 in
    both; any other name: PyTorch's default, TF32 in convolutions only."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    previous_settings = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32, cudnn.allow_tf32 = {"fp32": (False, False), "tf32": (True, True)}.get(name, (False, True))
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = previous_settings
