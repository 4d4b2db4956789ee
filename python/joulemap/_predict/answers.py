# SPDX-License-Identifier: Apache-2.0
"""Values returned when a model reads a number from a tensor without data."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from .shapes import tensors_in


class Answers:
    """Answers the few data-dependent queries of models. Scalars on the host that follow from sizes are computed.
    Masks count as empty: `all` is true and `any` is false. A random number is never below the dropout probability.
    The host waits for such a value."""

    BY_NAME = {"all": True, "any": False, "lt": False}

    def __init__(self, torch: Any) -> None:
        from torch.utils._python_dispatch import _disable_current_modes

        self._torch, self._real = torch, _disable_current_modes
        self._known: dict[int, tuple[Any, Any]] = {}
        self._filled: dict[int, tuple[Any, Any]] = {}  # tensors filled with one number, by storage: slices share it

    def keep(self, func: Any, name: str, args: Sequence, outs: Sequence) -> None:
        if name == "full" and outs[0].dim() == 1:
            self._filled[memory_of(outs[0])] = (outs[0], args[1])
        if len(outs) == 1 and memory_of(outs[0]) in self._filled:
            return
        if len(outs) != 1 or outs[0].dim() != 0 or self._torch._C._current_autograd_node() is not None:
            return
        out, given = outs[0], tensors_in(args)
        values = [self._value(one) for one in given]
        if name in ("fill", "full", "scalar_tensor"):
            number = args[0] if name == "scalar_tensor" else args[1]
            value = number if isinstance(number, (int, float, bool)) else None
        elif name == "sum" and not args[0].dtype.is_floating_point:
            value = int(args[0].numel())
        elif given and None not in values and name != "_local_scalar_dense":
            value = self._computed(func, args)
        else:
            value = self.BY_NAME.get(name)
        if value is not None:
            self._known[id(out)] = (out, value)

    def _value(self, tensor: Any) -> Any:
        constant = tensor.constant if hasattr(tensor, "constant") else tensor  # a host tensor has data
        if constant is not None and constant.dim() == 0 and constant.device.type == "cpu":
            with self._real():
                return constant.item()
        if id(tensor) in self._known:
            return self._known[id(tensor)][1]
        return self._filled.get(memory_of(tensor), (None, None))[1]

    def _computed(self, func: Any, args: Sequence) -> Any:
        values = {id(one): self._value(one) for one in tensors_in(args)}
        with self._real():
            real = [self._torch.tensor(values[id(one)], dtype=one.dtype) if id(one) in values else one for one in args]
            return func(*real).item()

    def of(self, tensor: Any) -> Any:
        return self._value(tensor)


def memory_of(tensor: Any) -> Optional[int]:
    """Returns an id shared by all views of a tensor; None for tensors without storage, such as sparse ones."""
    return tensor.untyped_storage()._cdata if str(tensor.layout) == "torch.strided" else None
