# SPDX-License-Identifier: Apache-2.0
"""Values returned when a model reads a number from a tensor without data."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from .shapes import collect_tensors


class ScalarValueTracker:
    """Values for the few places where a model reads a number from a tensor. Scalars that follow from sizes are
    computed. Masks count as empty: `all` is true and `any` is false. A random number is never below the dropout
    probability. On a GPU, the host waits for such a value."""

    ASSUMED_VALUE_BY_OPERATION = {"all": True, "any": False, "lt": False}

    def __init__(self, torch: Any) -> None:
        from torch.utils._python_dispatch import _disable_current_modes

        self._torch, self._disable_torch_modes = torch, _disable_current_modes
        self._known_scalars: dict[int, tuple[Any, Any]] = {}
        self._filled_tensors: dict[
            int, tuple[Any, Any]
        ] = {}  # tensors filled with one number, by storage: slices share it

    def record_outputs(self, func: Any, name: str, args: Sequence, outputs: Sequence) -> None:
        if name == "full" and outputs[0].dim() == 1:
            self._filled_tensors[storage_id(outputs[0])] = (outputs[0], args[1])
        if len(outputs) == 1 and storage_id(outputs[0]) in self._filled_tensors:
            return
        if len(outputs) != 1 or outputs[0].dim() != 0 or self._torch._C._current_autograd_node() is not None:
            return
        output, input_tensors = outputs[0], collect_tensors(args)
        input_values = [self._find_value(tensor) for tensor in input_tensors]
        if name in ("fill", "full", "scalar_tensor"):
            fill_value = args[0] if name == "scalar_tensor" else args[1]
            scalar = fill_value if isinstance(fill_value, (int, float, bool)) else None
        elif name == "sum" and not args[0].dtype.is_floating_point:
            scalar = int(args[0].numel())
        elif input_tensors and None not in input_values and name != "_local_scalar_dense":
            scalar = self._compute_scalar(func, args)
        else:
            scalar = self.ASSUMED_VALUE_BY_OPERATION.get(name)
        if scalar is not None:
            self._known_scalars[id(output)] = (output, scalar)

    def _find_value(self, tensor: Any) -> Any:
        constant_tensor = tensor.constant if hasattr(tensor, "constant") else tensor  # a host tensor has data
        if constant_tensor is not None and constant_tensor.dim() == 0 and constant_tensor.device.type == "cpu":
            with self._disable_torch_modes():
                return constant_tensor.item()
        if id(tensor) in self._known_scalars:
            return self._known_scalars[id(tensor)][1]
        return self._filled_tensors.get(storage_id(tensor), (None, None))[1]

    def _compute_scalar(self, func: Any, args: Sequence) -> Any:
        value_by_id = {id(tensor): self._find_value(tensor) for tensor in collect_tensors(args)}
        with self._disable_torch_modes():
            real_arguments = [
                self._torch.tensor(value_by_id[id(tensor)], dtype=tensor.dtype) if id(tensor) in value_by_id else tensor
                for tensor in args
            ]
            return func(*real_arguments).item()

    def read_scalar(self, tensor: Any) -> Any:
        return self._find_value(tensor)


def storage_id(tensor: Any) -> Optional[int]:
    """Returns an id shared by all views of a tensor; None for tensors without storage, such as sparse ones."""
    return tensor.untyped_storage()._cdata if str(tensor.layout) == "torch.strided" else None
