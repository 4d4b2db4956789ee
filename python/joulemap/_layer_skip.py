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
    observations = {id(module): LayerObservation() for module in modules}

    def observe_forward(module: Any, forward: Callable) -> Callable:
        observation = observations[id(module)]

        def call(*args: Any, **kwargs: Any) -> Any:
            output = forward(*args, **kwargs)
            observation.calls += 1
            inputs, outputs = collect_tensors((args, kwargs)), collect_tensors(output)
            if not inputs or not outputs:
                observation.reason = f"its {'input' if not inputs else 'output'} contains no tensor"
                return output
            observation.is_plain &= output is outputs[0]
            observation.keeps_dtype &= inputs[0].dtype == outputs[0].dtype
            observation.shapes[tuple(inputs[0].shape)] = tuple(outputs[0].shape)
            return output

        return call

    with contextlib.ExitStack() as replaced_forwards:
        for module in {id(module): module for module in modules}.values():
            replaced_forwards.enter_context(
                replace_forward(module, lambda forward, module=module: observe_forward(module, forward))
            )
        result = run()
    for observation in observations.values():
        if observation.calls == 0:
            observation.reason = "the evaluation does not call it"
    return observations, result


def list_skip_methods(seen: LayerObservation) -> list:
    """How a module can be skipped: "identity" alone where shapes agree, otherwise "zero" and, if possible, "shrink"."""
    if seen.keeps_dtype and all(input_shape == output_shape for input_shape, output_shape in seen.shapes.items()):
        return ["identity"]
    can_shrink = seen.keeps_dtype and all(
        _can_resize(input_shape, output_shape) for input_shape, output_shape in seen.shapes.items()
    )
    return ["zero", "shrink"] if can_shrink else ["zero"]


@contextlib.contextmanager
def skip_module(torch: Any, module: Any, seen: LayerObservation, way: str) -> Iterator[None]:
    """Skips the module inside. A module whose output is more than one tensor still runs; its first tensor is replaced."""

    def substitute_forward(forward: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            first_input = collect_tensors((args, kwargs))[0]
            output_shape = seen.shapes.get(tuple(first_input.shape))
            if not seen.is_plain or output_shape is None:
                output = forward(*args, **kwargs)
                first_output = collect_tensors(output)[0]
                return _replace_tensor(
                    output,
                    first_output,
                    _make_substitute_output(torch, first_input, first_output.shape, first_output.dtype, way),
                )
            dtype = first_input.dtype if seen.keeps_dtype else _output_dtype(torch, module)
            return _make_substitute_output(torch, first_input, output_shape, dtype, way)

        return call

    with replace_forward(module, substitute_forward):
        yield


def _make_substitute_output(torch: Any, first_input: Any, output_shape: Any, dtype: Any, skip_method: str) -> Any:
    if skip_method == "identity" and tuple(first_input.shape) == tuple(output_shape):
        return first_input
    if skip_method == "shrink" and _can_resize(tuple(first_input.shape), tuple(output_shape)):
        return _resize_tensor(torch, first_input, tuple(output_shape))
    return torch.zeros(output_shape, dtype=dtype, device=first_input.device)


def _output_dtype(torch: Any, module: Any) -> Any:
    """Type of the output of a module with another type of input, such as an embedding: that of its parameters."""
    parameter = next(module.parameters(), None)
    return torch.get_default_dtype() if parameter is None else parameter.dtype


def _replace_tensor(value: Any, original_tensor: Any, replacement: Any) -> Any:
    """A copy of nested tuples, lists and dictionaries in which one tensor is replaced."""
    if value is original_tensor:
        return replacement
    if isinstance(value, tuple):
        replaced_items = [_replace_tensor(nested_value, original_tensor, replacement) for nested_value in value]
        return type(value)(*replaced_items) if hasattr(value, "_fields") else tuple(replaced_items)
    if isinstance(value, list):
        return [_replace_tensor(nested_value, original_tensor, replacement) for nested_value in value]
    if isinstance(value, dict):
        replaced_dict = {
            key: _replace_tensor(nested_value, original_tensor, replacement) for key, nested_value in value.items()
        }
        return replaced_dict if type(value) is dict else type(value)(**replaced_dict)
    return value


def _can_resize(input_shape: tuple, output_shape: tuple) -> bool:
    """Images (N, C, H, W) change channels and size; other tensors only their last dimension."""
    if len(input_shape) != len(output_shape) or len(input_shape) < 2 or input_shape[0] != output_shape[0]:
        return False
    return len(input_shape) == 4 or input_shape[:-1] == output_shape[:-1]


def _resize_tensor(torch: Any, tensor: Any, output_shape: tuple) -> Any:
    """Averages pixels, and truncates or zero-pads channels (of images) or features."""
    if len(output_shape) == 4:
        tensor = torch.nn.functional.adaptive_avg_pool2d(tensor, output_shape[2:])
        dimension = 1
    else:
        dimension = len(output_shape) - 1
    output_size = output_shape[dimension]
    if tensor.shape[dimension] >= output_size:
        return tensor.narrow(dimension, 0, output_size)
    padding_shape = list(tensor.shape)
    padding_shape[dimension] = output_size - tensor.shape[dimension]
    return torch.cat([tensor, tensor.new_zeros(padding_shape)], dimension)


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
        attribute_values = [attribute_value for module in self._modules for attribute_value in vars(module).values()]
        self._saved_containers = [
            (attribute_value, attribute_value.copy())
            for attribute_value in attribute_values
            if type(attribute_value) in (list, dict, set)
        ]
        tensors_by_id = {}
        for module in self._modules:
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None:
                    tensors_by_id[id(tensor)] = tensor
        with torch.no_grad():
            self._tensors = [
                (tensor, tensor.detach().clone(), tensor.requires_grad) for tensor in tensors_by_id.values()
            ]
            self._gradients = [
                (tensor, tensor.grad, None if tensor.grad is None else tensor.grad.detach().clone())
                for tensor in tensors_by_id.values()
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
        for container, saved_items in self._saved_containers:
            _restore_container(container, saved_items)
        for module, saved_state in zip(self._modules, self._saved_module_states):
            restored_state = _copy_state(saved_state)
            module.__dict__.clear()
            module.__dict__.update(restored_state)
        errors: list = []

        def try_to_restore(restore: Callable, *arguments: Any) -> None:
            try:
                restore(*arguments)
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)

        with self._torch.no_grad():
            for tensor, _, _ in self._gradients:
                tensor.grad = None  # a gradient must have the type of its tensor
            for saved_parameter in self._tensors:
                try_to_restore(self._restore_parameter, *saved_parameter)
            for saved_gradient in self._gradients:
                try_to_restore(self._restore_gradient, *saved_gradient)
        for restore, restored_state in self._random_state_restorers:
            try_to_restore(restore, restored_state)
        if errors:
            raise errors[0]

    def _restore_parameter(self, tensor: Any, saved_tensor: Any, requires_grad: bool) -> None:
        _restore_tensor(self._torch, tensor, saved_tensor)
        if tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)

    def _restore_gradient(self, tensor: Any, gradient: Any, saved_gradient: Any) -> None:
        if gradient is not None:
            _restore_tensor(self._torch, gradient, saved_gradient)
        tensor.grad = gradient

    def __exit__(self, *exception_details: object) -> None:
        self.restore_model()


def _copy_state(module_state: dict) -> dict:
    """A copy of a module's attributes; its dictionaries of parameters, buffers, submodules and hooks are copied, too."""
    return {name: value.copy() if name.startswith("_") and hasattr(value, "copy") and isinstance(value, dict) else value
            for name, value in module_state.items()}  # fmt: skip


def _restore_tensor(torch: Any, tensor: Any, saved_tensor: Any) -> None:
    """Copies only if the bits differ, so that the version of an unchanged tensor stays."""
    has_same_layout = all(
        getattr(tensor, name) == getattr(saved_tensor, name) for name in ("dtype", "shape", "device", "layout")
    )
    if not has_same_layout or tensor.layout != torch.strided or tensor.is_quantized:
        tensor.data = saved_tensor.clone()
    elif not torch.equal(_view_tensor_as_bytes(torch, tensor), _view_tensor_as_bytes(torch, saved_tensor)):
        tensor.copy_(saved_tensor)


def _view_tensor_as_bytes(torch: Any, tensor: Any) -> Any:
    """The bytes of a dense tensor: they distinguish -0.0 from 0.0, and a NaN is equal to itself."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _restore_container(container: Any, saved_items: Any) -> None:
    """The same objects in a list, dictionary or set again."""
    if isinstance(container, list):
        container[:] = saved_items
    else:
        container.clear()
        container.update(saved_items)
