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
