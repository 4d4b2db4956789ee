# SPDX-License-Identifier: Apache-2.0
"""Replaces a module's tensors by fake tensors (without data) during a trace."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator


class FakeTensorFactory:
    """Creates one fake tensor for each real tensor; shared tensors stay shared."""

    def __init__(self, torch: Any, mode: Any) -> None:
        self._torch, self._fake_mode = torch, mode
        self._fake_tensors: dict[int, tuple[Any, Any]] = {}

    def find_or_make_fake(self, tensor: Any) -> Any:
        if id(tensor) in self._fake_tensors:
            return self._fake_tensors[id(tensor)][1]
        torch = self._torch
        with self._fake_mode, torch.no_grad():
            fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            if isinstance(tensor, torch.nn.Parameter):
                fake = torch.nn.Parameter(fake, requires_grad=tensor.requires_grad)
            elif tensor.requires_grad:
                fake.requires_grad_(True)
        self._fake_tensors[id(tensor)] = (tensor, fake)
        return fake

    def replace_tensors(self, value: Any) -> Any:
        """Returns a copy of a list, dictionary or object with fake tensors."""
        if isinstance(value, self._torch.Tensor):
            return self.find_or_make_fake(value)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.replace_tensors(entry) for entry in value)
        if isinstance(value, dict):
            return {key: self.replace_tensors(entry) for key, entry in value.items()}
        return value


@contextlib.contextmanager
def suspend_default_device(torch: Any) -> Iterator[None]:
    """Suspends the default device (torch.set_default_device, `with torch.device`). It would create tensors elsewhere
    than the fake ones, and it intercepts every function of PyTorch in Python, which a module without it does not."""
    modes = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())][::-1]
    kept_modes = [mode for mode in modes if type(mode).__name__ != "DeviceContext"]
    for mode in kept_modes:
        torch._C._push_on_torch_function_stack(mode)
    try:
        yield
    finally:
        for _ in kept_modes:
            torch._C._pop_torch_function_stack()
        for mode in modes:
            torch._C._push_on_torch_function_stack(mode)


def contains_tensors(torch: Any, value: Any) -> bool:
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return any(isinstance(entry, torch.Tensor) for entry in value)
    if isinstance(value, dict):
        return any(isinstance(entry, torch.Tensor) for entry in value.values())
    return isinstance(value, torch.Tensor)


@contextlib.contextmanager
def replace_model_tensors(torch: Any, model: Any, factory: FakeTensorFactory) -> Iterator[None]:
    """Replaces parameters, buffers and plain attributes of all modules. Restores everything afterwards, including
    state that a module keeps for the next call."""
    saved_states: list[tuple[dict, dict]] = []
    try:
        for module in model.modules():
            plain_attributes = {
                key: value for key, value in module.__dict__.items() if key not in ("_parameters", "_buffers")
            }
            caches = [
                value for key, value in plain_attributes.items() if type(value) is dict and not key.startswith("_")
            ]
            for mapping in (*caches, module._parameters, module._buffers, module.__dict__):
                saved_states.append((mapping, dict(mapping)))
                mapping.update({key: factory.replace_tensors(entry) for key, entry in mapping.items()
                             if contains_tensors(torch, entry)
                             and not (mapping is module.__dict__ and key in ("_parameters", "_buffers"))})  # fmt: skip
        yield
    finally:
        for mapping, saved_entries in reversed(saved_states):
            mapping.clear()
            mapping.update(saved_entries)
