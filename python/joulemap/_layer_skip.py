# SPDX-License-Identifier: Apache-2.0
"""Skips a module of a PyTorch model, and restores the model exactly: ModelStateRestorer.

A skipped module returns its input if input and output have the same shape ("identity"), zeros ("zero": the residual
branch that it belongs to adds nothing), or its input resized to the shape of the output ("shrink")."""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Callable, Iterator, Optional

from ._torch_replay import collect_tensors
from ._validate_blocks import replace_forward


class LayerObservation:
    """The calls of a module in one evaluation."""

    def __init__(self) -> None:
        self.calls = 0
        self.shapes: dict = {}  # shape of the first input tensor -> shape of the first output tensor
        self.is_plain = True  # every output is one tensor
        self.keeps_dtype = True  # input and output have the same type of numbers
        self.reason: Optional[str] = None  # why it cannot be skipped


def observe_layers(modules: list, run: Callable[[], Any]) -> tuple:
    """Runs `run`; returns what each module did, by id, and the result of `run`."""
    seen = {id(module): LayerObservation() for module in modules}

    def observed(module: Any, forward: Callable) -> Callable:
        entry = seen[id(module)]

        def call(*args: Any, **kwargs: Any) -> Any:
            output = forward(*args, **kwargs)
            entry.calls += 1
            inputs, outputs = collect_tensors((args, kwargs)), collect_tensors(output)
            if not inputs or not outputs:
                entry.reason = f"its {'input' if not inputs else 'output'} contains no tensor"
                return output
            entry.is_plain &= output is outputs[0]
            entry.keeps_dtype &= inputs[0].dtype == outputs[0].dtype
            entry.shapes[tuple(inputs[0].shape)] = tuple(outputs[0].shape)
            return output

        return call

    with contextlib.ExitStack() as undo:
        for module in {id(module): module for module in modules}.values():
            undo.enter_context(replace_forward(module, lambda forward, module=module: observed(module, forward)))
        result = run()
    for entry in seen.values():
        if entry.calls == 0:
            entry.reason = "the evaluation does not call it"
    return seen, result


def list_skip_methods(seen: LayerObservation) -> list:
    """How a module can be skipped: "identity" alone where shapes agree, otherwise "zero" and, if possible, "shrink"."""
    if seen.keeps_dtype and all(before == after for before, after in seen.shapes.items()):
        return ["identity"]
    can_shrink = seen.keeps_dtype and all(_can_resize(before, after) for before, after in seen.shapes.items())
    return ["zero", "shrink"] if can_shrink else ["zero"]


@contextlib.contextmanager
def skip_module(torch: Any, module: Any, seen: LayerObservation, way: str) -> Iterator[None]:
    """Skips the module inside. A module whose output is more than one tensor still runs; its first tensor is replaced."""

    def make(forward: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            first = collect_tensors((args, kwargs))[0]
            shape = seen.shapes.get(tuple(first.shape))
            if not seen.is_plain or shape is None:
                output = forward(*args, **kwargs)
                original = collect_tensors(output)[0]
                return _replace_tensor(
                    output, original, _make_substitute_output(torch, first, original.shape, original.dtype, way)
                )
            dtype = first.dtype if seen.keeps_dtype else _output_dtype(torch, module, first)
            return _make_substitute_output(torch, first, shape, dtype, way)

        return call

    with replace_forward(module, make):
        yield


def _make_substitute_output(torch: Any, first: Any, shape: Any, dtype: Any, way: str) -> Any:
    if way == "identity" and tuple(first.shape) == tuple(shape):
        return first
    if way == "shrink" and _can_resize(tuple(first.shape), tuple(shape)):
        return _resize_tensor(torch, first, tuple(shape))
    return torch.zeros(shape, dtype=dtype, device=first.device)


def _output_dtype(torch: Any, module: Any, first: Any) -> Any:
    """Type of the output of a module with another type of input, such as an embedding: that of its parameters."""
    parameter = next(module.parameters(), None)
    return torch.get_default_dtype() if parameter is None else parameter.dtype


def _replace_tensor(value: Any, original: Any, replacement: Any) -> Any:
    """A copy of nested tuples, lists and dictionaries in which one tensor is replaced."""
    if value is original:
        return replacement
    if isinstance(value, tuple):
        items = [_replace_tensor(item, original, replacement) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [_replace_tensor(item, original, replacement) for item in value]
    if isinstance(value, dict):
        changed = {key: _replace_tensor(item, original, replacement) for key, item in value.items()}
        return changed if type(value) is dict else type(value)(**changed)
    return value


def _can_resize(before: tuple, after: tuple) -> bool:
    """Images (N, C, H, W) change channels and size; other tensors only their last dimension."""
    if len(before) != len(after) or len(before) < 2 or before[0] != after[0]:
        return False
    return len(before) == 4 or before[:-1] == after[:-1]


def _resize_tensor(torch: Any, tensor: Any, shape: tuple) -> Any:
    """Averages pixels, and truncates or zero-pads channels (of images) or features."""
    if len(shape) == 4:
        tensor = torch.nn.functional.adaptive_avg_pool2d(tensor, shape[2:])
        dimension = 1
    else:
        dimension = len(shape) - 1
    wanted = shape[dimension]
    if tensor.shape[dimension] >= wanted:
        return tensor.narrow(dimension, 0, wanted)
    missing = list(tensor.shape)
    missing[dimension] = wanted - tensor.shape[dimension]
    return torch.cat([tensor, tensor.new_zeros(missing)], dimension)


class ModelStateRestorer(contextlib.AbstractContextManager):
    """Restores a model bit by bit at the end, also after an exception: parameters, gradients, buffers, hooks, modes and
    other attributes of its modules, and the random states. Attributes that are lists, dictionaries or sets contain the
    same objects as before; changes within these objects stay. restore_model() does so in between."""

    def __init__(self, torch: Any, model: Any) -> None:
        self._torch = torch
        self._modules = list(model.modules())
        self._saved_module_states: list = []
        self._saved_containers: list = []  # (list, dictionary or set; copy)
        self._tensors: list = []
        self._gradients: list = []
        self._random_state_restorers: list = []

    def __enter__(self) -> ModelStateRestorer:
        torch = self._torch
        self._saved_module_states = [_copy_state(module.__dict__) for module in self._modules]
        values = [value for module in self._modules for value in vars(module).values()]
        self._saved_containers = [(value, value.copy()) for value in values if type(value) in (list, dict, set)]
        tensors = {}
        for module in self._modules:
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None:
                    tensors[id(tensor)] = tensor
        with torch.no_grad():
            self._tensors = [(tensor, tensor.detach().clone(), tensor.requires_grad) for tensor in tensors.values()]
            self._gradients = [
                (tensor, tensor.grad, None if tensor.grad is None else tensor.grad.detach().clone())
                for tensor in tensors.values()
                if tensor.is_leaf
            ]
        self._save_random_states()
        return self

    def _save_random_states(self) -> None:
        torch, numpy = self._torch, sys.modules.get("numpy")
        self._random_state_restorers = [
            (torch.set_rng_state, torch.get_rng_state()),
            (random.setstate, random.getstate()),
        ]
        if torch.cuda.is_initialized():
            self._random_state_restorers.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
        if numpy is not None:
            self._random_state_restorers.append((numpy.random.set_state, numpy.random.get_state()))

    def restore_model(self) -> None:
        """Restores the model and the random states as they were at the beginning. If a part cannot be restored, the
        others are; its exception is raised at the end."""
        for value, before in self._saved_containers:
            _restore_container(value, before)
        for module, before in zip(self._modules, self._saved_module_states):
            state = _copy_state(before)
            module.__dict__.clear()
            module.__dict__.update(state)
        errors: list = []

        def try_to_restore(restore: Callable, *arguments: Any) -> None:
            try:
                restore(*arguments)
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)

        with self._torch.no_grad():
            for tensor, _, _ in self._gradients:
                tensor.grad = None  # a gradient must have the type of its tensor
            for entry in self._tensors:
                try_to_restore(self._restore_parameter, *entry)
            for entry in self._gradients:
                try_to_restore(self._restore_gradient, *entry)
        for restore, state in self._random_state_restorers:
            try_to_restore(restore, state)
        if errors:
            raise errors[0]

    def _restore_parameter(self, tensor: Any, copy: Any, requires_grad: bool) -> None:
        _restore_tensor(self._torch, tensor, copy)
        if tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)

    def _restore_gradient(self, tensor: Any, gradient: Any, copy: Any) -> None:
        if gradient is not None:
            _restore_tensor(self._torch, gradient, copy)
        tensor.grad = gradient

    def __exit__(self, *details: object) -> None:
        self.restore_model()


def _copy_state(state: dict) -> dict:
    """A copy of a module's attributes; its dictionaries of parameters, buffers, submodules and hooks are copied, too."""
    return {name: value.copy() if name.startswith("_") and hasattr(value, "copy") and isinstance(value, dict) else value
            for name, value in state.items()}  # fmt: skip


def _restore_tensor(torch: Any, tensor: Any, copy: Any) -> None:
    """Copies only if the bits differ, so that the version of an unchanged tensor stays."""
    has_same_layout = all(
        getattr(tensor, name) == getattr(copy, name) for name in ("dtype", "shape", "device", "layout")
    )
    if not has_same_layout or tensor.layout != torch.strided or tensor.is_quantized:
        tensor.data = copy.clone()
    elif not torch.equal(_view_tensor_as_bytes(torch, tensor), _view_tensor_as_bytes(torch, copy)):
        tensor.copy_(copy)


def _view_tensor_as_bytes(torch: Any, tensor: Any) -> Any:
    """The bytes of a dense tensor: they distinguish -0.0 from 0.0, and a NaN is equal to itself."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _restore_container(value: Any, before: Any) -> None:
    """The same objects in a list, dictionary or set again."""
    if isinstance(value, list):
        value[:] = before
    else:
        value.clear()
        value.update(before)
