# SPDX-License-Identifier: Apache-2.0
"""Replaces a module's tensors by fake tensors (without data) during a trace."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator


class Faker:
    """Creates one fake tensor for each real tensor; shared tensors stay shared."""

    def __init__(self, torch: Any, mode: Any) -> None:
        self._torch, self._mode = torch, mode
        self._made: dict[int, tuple[Any, Any]] = {}

    def of(self, tensor: Any) -> Any:
        if id(tensor) in self._made:
            return self._made[id(tensor)][1]
        torch = self._torch
        with self._mode, torch.no_grad():
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            elif tensor.requires_grad:
                made.requires_grad_(True)
        self._made[id(tensor)] = (tensor, made)
        return made

    def inside(self, value: Any) -> Any:
        """Returns a copy of a list, dictionary or object with fake tensors."""
        if isinstance(value, self._torch.Tensor):
            return self.of(value)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.inside(one) for one in value)
        if isinstance(value, dict):
            return {key: self.inside(one) for key, one in value.items()}
        return value


def holds_tensors(torch: Any, value: Any) -> bool:
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return any(isinstance(one, torch.Tensor) for one in value)
    if isinstance(value, dict):
        return any(isinstance(one, torch.Tensor) for one in value.values())
    return isinstance(value, torch.Tensor)


@contextlib.contextmanager
def put_aside(torch: Any, model: Any, faker: Faker) -> Iterator[None]:
    """Replaces parameters, buffers and plain attributes of all modules. Restores everything afterwards, including
    state that a module keeps for the next call."""
    kept: list[tuple[dict, dict]] = []
    try:
        for module in model.modules():
            plain = {key: value for key, value in module.__dict__.items() if key not in ("_parameters", "_buffers")}
            caches = [value for key, value in plain.items() if type(value) is dict and not key.startswith("_")]
            for held in (*caches, module._parameters, module._buffers, module.__dict__):
                kept.append((held, dict(held)))
                held.update({key: faker.inside(one) for key, one in held.items() if holds_tensors(torch, one)
                             and not (held is module.__dict__ and key in ("_parameters", "_buffers"))})  # fmt: skip
        yield
    finally:
        for held, before in reversed(kept):
            held.clear()
            held.update(before)
