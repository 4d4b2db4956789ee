# SPDX-License-Identifier: Apache-2.0
"""Keeps the inputs of modules during the second and third call of every model, so that probing can later call each
module again, alone.

Inputs are copied while enough memory is free, because programs modify tensors in place and free them. Otherwise only
shape, layout and type are kept, and random values are generated for the replay. Of calls with the same class, settings
and input shapes, one is kept.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import Callable, NamedTuple, Optional

from . import _capture_interface as interface
from ._torch_wrappers import WRAPPED_MODEL_ATTRIBUTES

# Indices of a model's calls that are captured. The first is skipped: only after it is the program's memory use known.
CAPTURED_CALL_INDICES = range(1, 3)
MAX_CAPTURED_MODELS = 64
MAX_CAPTURED_CALLS = 400
MAX_FREE_MEMORY_SHARE = 0.25
MAX_ARGUMENT_NESTING = 4
CONSTANT_TYPES = (type(None), bool, int, float, complex, str, bytes)


class InputNotReproducible(Exception):
    """Raised for an input that a second call could change, or that cannot be reproduced."""


class SavedTensor(NamedTuple):
    """A copy of a tensor, or the properties needed to generate a similar one."""

    value: Optional[object]
    shape: tuple
    stride: tuple
    dtype: object
    device: object
    lowest: int
    highest: int
    requires_grad: bool

    def make_tensor(self, torch):
        if self.value is not None:
            return self.value.detach().requires_grad_(self.requires_grad)
        tensor = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device)
        if self.dtype.is_floating_point or self.dtype.is_complex:
            tensor.normal_()
        elif self.dtype is torch.bool:
            tensor.random_(0, 2)
        else:
            tensor.random_(self.lowest, self.highest + 1)
        return tensor.requires_grad_(self.requires_grad)


class ModuleCall(NamedTuple):
    """The arguments of a module's call, and the state of the module at that time."""

    module: Callable[[], Optional[object]]
    args: tuple
    kwargs: dict
    training_flags: list  # the flag `training` of the module and of each submodule
    autocast: tuple
    grad_enabled: bool
    is_inference: bool
    is_leaf: bool


class _CallFrame:
    __slots__ = ("module", "call_signature", "saved_inputs", "child_count")

    def __init__(self, module, call_signature, saved_inputs) -> None:
        self.module, self.call_signature, self.saved_inputs, self.child_count = module, call_signature, saved_inputs, 0


def map_tensors(value, function: Callable, nesting_depth: int = 0):
    """Returns the same nesting of tuples, lists and dictionaries with function(tensor) in place of each tensor. Raises
    InputNotReproducible for other objects."""
    if isinstance(value, CONSTANT_TYPES):
        return value
    if hasattr(value, "data_ptr") and hasattr(value, "requires_grad"):
        return function(value)
    if isinstance(value, SavedTensor):
        return function(value)
    if nesting_depth < MAX_ARGUMENT_NESTING and type(value) in (tuple, list):
        return type(value)(map_tensors(entry, function, nesting_depth + 1) for entry in value)
    if nesting_depth < MAX_ARGUMENT_NESTING and type(value) is dict:
        return {name: map_tensors(entry, function, nesting_depth + 1) for name, entry in value.items()}
    if type(value).__module__ == "torch":  # dtype, device or size
        return value
    raise InputNotReproducible(f"takes a {type(value).__name__}")


class InputCapture:
    """Captures calls of modules on the thread that made the first call. `wrap_call` makes a captured __call__."""

    def __init__(self, torch, is_in_transform: Callable[[], bool]) -> None:
        self._torch = torch
        self._is_in_transform = is_in_transform
        self._captured_thread = 0
        self._has_stopped = False
        self._is_in_uncaptured_call = False  # within a call that is not captured
        self._call_frames: list[_CallFrame] = []
        self._call_counts: dict[tuple, int] = {}
        self._tensor_copies: dict[
            int, tuple
        ] = {}  # copies of tensors by id, shared by the modules within one call of a model
        self._free_bytes: dict[object, float] = {}  # by device: bytes that copies may still use
        self._kept_models: dict[int, object] = {}  # models kept alive for replay after the program has released them
        self._settings_by_module: dict[int, tuple] = {}  # by id of the module
        self._kept_signatures: set = set()
        self.calls: list[ModuleCall] = []
        self.refused: dict[str, str] = {}  # name of a class -> why calls of its modules cannot be kept
        self._keep_scope = interface.child_scope(
            interface.child_scope(0, interface.SCOPE_MODE, "probe"), interface.SCOPE_PHASE, "keep"
        )

    def wrap_call(self, call: Callable) -> Callable:
        @functools.wraps(call)
        def __call__(module, *args, **kwargs):
            if (
                self._has_stopped
                or self._is_in_uncaptured_call
                or (self._captured_thread and threading.get_ident() != self._captured_thread)
            ):
                return call(module, *args, **kwargs)
            if not self._call_frames and not self._should_capture(module):
                self._is_in_uncaptured_call = True
                try:
                    return call(module, *args, **kwargs)
                finally:
                    self._is_in_uncaptured_call = False
            frame = self._call_guarded(self._enter_call, module, args, kwargs)
            try:
                return call(module, *args, **kwargs)
            finally:
                self._call_guarded(self._leave_call, frame)

        return __call__

    def stop(self) -> None:
        self._has_stopped = True
        self._call_frames.clear()
        self._tensor_copies.clear()

    def resume(self) -> None:
        self._has_stopped = False

    def release(self, calls: list[ModuleCall]) -> None:
        """Releases replayed calls, and the models once no call is left."""
        released_ids = {id(call) for call in calls}
        self.calls = [call for call in self.calls if id(call) not in released_ids]
        if not self.calls:
            self._kept_models.clear()

    def _call_guarded(self, function: Callable, *args):
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - must not reach the program
            self.stop()
            interface.diagnose("not_probed", f"module inputs cannot be kept: {type(error).__name__}: {error}")
            return None

    def _should_capture(self, module) -> bool:
        call_key = id(module), module.training, self._torch.is_grad_enabled()
        call_count = self._call_counts.get(call_key, 0)
        if (
            call_count >= CAPTURED_CALL_INDICES.stop
            or len(self._call_counts) > MAX_CAPTURED_MODELS
            or len(self.calls) >= MAX_CAPTURED_CALLS
        ):
            return False
        self._call_counts[call_key] = call_count + 1
        return call_count in CAPTURED_CALL_INDICES

    def _enter_call(self, module, args, kwargs) -> _CallFrame:
        self._captured_thread = self._captured_thread or threading.get_ident()
        if self._call_frames:
            self._call_frames[-1].child_count += 1
        frame = _CallFrame(module, None, None)
        self._call_frames.append(frame)
        torch = self._torch
        is_unsupported = (
            type(module).__name__ in WRAPPED_MODEL_ATTRIBUTES
            or isinstance(module, torch.jit.ScriptModule)
            or self._is_in_transform()
        )
        if is_unsupported or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()):
            return frame
        depth = interface.enter(self._keep_scope)
        try:
            with torch._C.DisableTorchFunction():  # function modes, including the capture's, must not see the copying
                self._save_call(frame, args, kwargs)
        except InputNotReproducible as error:
            self.refused.setdefault(type(module).__name__, str(error))
        finally:
            interface.leave_to(depth)
        return frame

    def _save_call(self, frame: _CallFrame, args, kwargs) -> None:
        module, torch = frame.module, self._torch
        tensor_signatures: list = []
        map_tensors((args, kwargs), lambda tensor: tensor_signatures.append(self._tensor_signature(tensor)))
        autocast = autocast_state(torch)
        grad_enabled = torch.is_grad_enabled()
        constant_arguments = tuple(value for value in (*args, *kwargs.values()) if isinstance(value, CONSTANT_TYPES))
        call_signature = (
            self._module_settings(module),
            tuple(tensor_signatures),
            constant_arguments,
            module.training,
            grad_enabled,
            autocast,
        )
        if call_signature in self._kept_signatures or len(self.calls) + len(self._call_frames) > MAX_CAPTURED_CALLS:
            return
        with torch.inference_mode(False), torch.no_grad():
            saved_args, saved_kwargs = map_tensors((args, kwargs), self._save_tensor)
        frame.call_signature = call_signature
        training_flags = [submodule.training for submodule in module.modules()]
        is_inference = torch.is_inference_mode_enabled()
        # ModuleCall.is_leaf is added in _leave_call(): whether the module calls other modules is known only when it
        # returns.
        frame.saved_inputs = (
            self._module_reference(module),
            saved_args,
            saved_kwargs,
            training_flags,
            autocast,
            grad_enabled,
            is_inference,
        )

    def _leave_call(self, frame: Optional[_CallFrame]) -> None:
        if frame is None or frame not in self._call_frames:
            return
        del self._call_frames[self._call_frames.index(frame) :]
        if not self._call_frames:
            self._tensor_copies.clear()
        if frame.saved_inputs is None or frame.call_signature in self._kept_signatures:
            return
        is_sequential = type(frame.module).forward is self._torch.nn.Sequential.forward
        if frame.child_count and is_sequential:
            return
        self._kept_signatures.add(frame.call_signature)
        self.calls.append(ModuleCall(*frame.saved_inputs, is_leaf=frame.child_count == 0))

    def _module_settings(self, module) -> tuple:
        if id(module) not in self._settings_by_module:
            parameters = tuple(
                (tuple(parameter.shape), parameter.dtype, parameter.requires_grad) for parameter in module.parameters()
            )
            try:
                description = repr(module)
            except Exception:  # noqa: BLE001 - repr of the program failed: treat it as unique
                description = str(id(module))
            self._settings_by_module[id(module)] = type(module), description, parameters
        return self._settings_by_module[id(module)]

    def _tensor_signature(self, tensor) -> tuple:
        if type(tensor) not in (self._torch.Tensor, self._torch.nn.Parameter) or tensor.layout != self._torch.strided:
            raise InputNotReproducible(f"takes a tensor of an unsupported type ({type(tensor).__name__})")
        return tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device, tensor.requires_grad

    def _module_reference(self, module) -> Callable[[], Optional[object]]:
        """Returns a function that returns the module. Keeps its model alive if memory permits."""
        model = self._call_frames[0].module
        if id(model) not in self._kept_models:
            model_tensors = [*model.parameters(), *model.buffers()]
            if model_tensors and not self._reserve_memory(
                model_tensors[0].device, sum(tensor.numel() * tensor.element_size() for tensor in model_tensors)
            ):
                return weakref.ref(module)
            self._kept_models[id(model)] = model
        return lambda: module

    def _reserve_memory(self, device, needed_bytes: int) -> bool:
        if device not in self._free_bytes:
            if device.type == "cuda":
                free_bytes = self._torch.cuda.mem_get_info(device)[0]
            else:
                free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            self._free_bytes[device] = MAX_FREE_MEMORY_SHARE * free_bytes
        if needed_bytes > self._free_bytes[device]:
            return False
        self._free_bytes[device] -= needed_bytes
        return True

    def _save_tensor(self, tensor) -> SavedTensor:
        cached_copy = self._tensor_copies.get(id(tensor))
        if cached_copy is not None and cached_copy[0]() is tensor and cached_copy[1] == tensor_version(tensor):
            return cached_copy[2]
        tensor_properties = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device
        requires_grad = tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
        if self._reserve_memory(tensor.device, tensor.numel() * tensor.element_size()):
            saved_tensor = SavedTensor(_copy_tensor(tensor), *tensor_properties, 0, 0, requires_grad)
        else:
            needs_no_bounds = tensor.is_floating_point() or tensor.is_complex() or tensor.numel() == 0
            lowest, highest = (0, 0) if needs_no_bounds else (int(tensor.min()), int(tensor.max()))
            saved_tensor = SavedTensor(None, *tensor_properties, lowest, highest, requires_grad)
        self._tensor_copies[id(tensor)] = weakref.ref(tensor), tensor_version(tensor), saved_tensor
        return saved_tensor


def tensor_version(tensor) -> int:
    """The version counter of in-place changes; -1 for inference tensors, which have none."""
    return -1 if tensor.is_inference() else tensor._version


def _copy_tensor(tensor):
    """Copies a tensor with its layout: dimensions expanded by a stride of 0 stay expanded."""
    tensor = tensor.detach()
    expanded_dimensions = [stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)]
    if not any(expanded_dimensions):
        return tensor.clone()
    unexpanded_tensor = tensor[
        tuple(slice(0, 1) if is_expanded else slice(None) for is_expanded in expanded_dimensions)
    ]
    return unexpanded_tensor.clone().expand(tensor.shape)


def autocast_state(torch) -> tuple:
    """(device kind, dtype) for each device kind with autocast enabled."""
    enabled_autocasts = []
    for device_kind in ("cuda", "cpu"):
        try:
            is_enabled, dtype = torch.is_autocast_enabled(device_kind), torch.get_autocast_dtype(device_kind)
        except (TypeError, AttributeError):  # PyTorch before 2.4
            is_enabled = torch.is_autocast_enabled() if device_kind == "cuda" else torch.is_autocast_cpu_enabled()
            dtype = torch.get_autocast_gpu_dtype() if device_kind == "cuda" else torch.get_autocast_cpu_dtype()
        if is_enabled:
            enabled_autocasts.append((device_kind, dtype))
    return tuple(enabled_autocasts)
