# SPDX-License-Identifier: Apache-2.0
"""Tensors without data in the place of a module's own, for as long as it is traced."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator


class Faker:
    """Makes one tensor without data for each that it is given: what was shared stays shared."""

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
        """The same list, dictionary or object, with tensors without data."""
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
    """Parameters, buffers and plain attributes of all modules; afterwards all are as they were, also what a module
    keeps for the next call."""
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
