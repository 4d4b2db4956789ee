# SPDX-License-Identifier: Apache-2.0
"""Calls a module again, alone, as in the run: forward, and backward if the run trained it. The state of the program
does not change: see ModuleStatePreserver."""

from __future__ import annotations

import contextlib
import math
import os
import random
import sys
import time
import warnings
from typing import Callable

from . import _capture_interface as interface
from ._torch_probe_inputs import ModuleCall, SavedTensor, map_tensors, tensor_version

MODULE_HOOK_ATTRIBUTES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOK_ATTRIBUTES = (
    "_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks",
    "_global_forward_hooks_always_called", "_global_forward_hooks_with_kwargs",
)  # fmt: skip


class ModuleStatePreserver(contextlib.AbstractContextManager):
    """Inside this context modules run without side effects. Buffers are copies, hooks of the program are removed, and
    aliases replace parameters that have hooks. Random states, attributes of modules and warnings are restored at the
    end; printed output is discarded."""

    def __init__(self, torch, modules: list) -> None:
        self._torch = torch
        self._modules = list(
            {id(submodule): submodule for module in modules for submodule in module.modules()}.values()
        )
        self._exit_stack = contextlib.ExitStack()

    def __enter__(self) -> "ModuleStatePreserver":
        with contextlib.ExitStack() as undo_stack:
            self._save_random_states(undo_stack)
            undo_stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            null_file = undo_stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
            undo_stack.enter_context(contextlib.redirect_stdout(null_file))
            undo_stack.enter_context(contextlib.redirect_stderr(null_file))
            undo_stack.enter_context(self._torch.inference_mode(False))
            self._remove_global_hooks(undo_stack)
            buffer_copies: dict = {}
            for module in self._modules:
                undo_stack.callback(_restore_state, module.__dict__, dict(module.__dict__))
                self._replace_buffers_and_hooks(module, buffer_copies)
            self._exit_stack = undo_stack.pop_all()
        return self

    def __exit__(self, *exception_details) -> None:
        self._exit_stack.close()

    def _save_random_states(self, undo_stack: contextlib.ExitStack) -> None:
        torch = self._torch
        undo_stack.callback(torch.set_rng_state, torch.get_rng_state())
        if torch.cuda.is_initialized():
            undo_stack.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
        undo_stack.callback(random.setstate, random.getstate())
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            undo_stack.callback(numpy.random.set_state, numpy.random.get_state())

    def _remove_global_hooks(self, undo_stack: contextlib.ExitStack) -> None:
        for attribute_name in GLOBAL_HOOK_ATTRIBUTES:
            hooks = getattr(self._torch.nn.modules.module, attribute_name, None)
            if hooks:
                undo_stack.callback(hooks.update, dict(hooks))
                hooks.clear()

    def _replace_buffers_and_hooks(self, module, buffer_copies: dict) -> None:
        module_state = module.__dict__
        for name in MODULE_HOOK_ATTRIBUTES:
            hooks = module_state.get(name)
            if hooks:
                module_state[name] = type(hooks)(
                    (hook_id, hook) for hook_id, hook in hooks.items() if _is_pytorch_hook(hook)
                )
        module_state["_buffers"] = {
            name: self._copy_buffer(buffer, buffer_copies) for name, buffer in module._buffers.items()
        }
        if any(parameter is not None and parameter._backward_hooks for parameter in module._parameters.values()):
            module_state["_parameters"] = {
                name: self._alias_parameter(module_parameter) for name, module_parameter in module._parameters.items()
            }

    def _copy_buffer(self, buffer, buffer_copies: dict):
        if buffer is None:
            return None
        if id(buffer) not in buffer_copies:
            buffer_copies[id(buffer)] = buffer.detach().clone()
        return buffer_copies[id(buffer)]

    def _alias_parameter(self, parameter):
        if parameter is None or not parameter._backward_hooks:
            return parameter
        return self._torch.nn.Parameter(parameter.detach(), requires_grad=parameter.requires_grad)


def _restore_state(module_state: dict, saved_state: dict) -> None:
    module_state.clear()
    module_state.update(saved_state)


def _is_pytorch_hook(hook) -> bool:
    """Whether the hook is one of PyTorch's own that compute weights (weight_norm, pruning), which forward needs."""
    return getattr(hook, "__module__", "").startswith("torch.nn.utils.")


class CallReplay:
    """Replays one call repeatedly. Used inside ModuleStatePreserver."""

    def __init__(self, torch, call: ModuleCall, module, name: str) -> None:
        self._torch, self._captured_call, self._module = torch, call, module
        self.name = name
        mode_scope = interface.child_scope(0, interface.SCOPE_MODE, "probe")
        self._phase_scopes = [
            interface.child_scope(
                interface.child_scope(mode_scope, interface.SCOPE_PHASE, phase), interface.SCOPE_MODULE, name
            )
            for phase in ("forward", "backward")
        ]
        self._leaf_tensors: list = []
        self._call_inputs: tuple = ((), {})
        self._changes_inputs = True  # assumed until _run_on_copies() has checked it
        self._output_gradients: list = []
        self._gradient_targets: list = []
        self._devices: set = set()
        self.run_s = 0.0

    def warm_up_and_time(self) -> None:
        """Runs the call three times and times the last run. Exceptions of the module propagate."""
        with self._create_inputs():
            self._changes_inputs = self._run_on_copies()
            self._run_call()
            self._synchronize_devices()
            begin_s = time.perf_counter()
            self._run_call()
            self._synchronize_devices()
            self.run_s = max(time.perf_counter() - begin_s, 1e-6)

    def run_burst(self, length_s: float) -> None:
        with self._create_inputs():
            for _ in range(max(1, math.ceil(length_s / self.run_s))):
                self._run_call()
            self._synchronize_devices()

    @contextlib.contextmanager
    def _create_inputs(self):
        """Creates the inputs for one burst: inputs of all modules together might not fit into memory."""
        self._set_training_flags()
        depth = interface.enter(self._phase_scopes[0])
        try:
            self._call_inputs = map_tensors(
                (self._captured_call.args, self._captured_call.kwargs), self._make_leaf_tensor
            )
        finally:
            interface.leave_to(depth)
        parameters = list(self._module.parameters())
        self._gradient_targets = [tensor for tensor in (*self._leaf_tensors, *parameters) if tensor.requires_grad]
        self._devices = {tensor.device for tensor in (*self._leaf_tensors, *parameters)}
        try:
            yield
        finally:
            self._leaf_tensors, self._gradient_targets, self._output_gradients, self._call_inputs = [], [], [], ((), {})

    def _make_leaf_tensor(self, saved_tensor: SavedTensor):
        leaf_tensor = saved_tensor.make_tensor(self._torch)
        self._leaf_tensors.append(leaf_tensor)
        return leaf_tensor

    def _set_training_flags(self) -> None:
        submodules = list(self._module.modules())
        if len(submodules) != len(self._captured_call.training_flags):
            raise RuntimeError("its submodules changed after the call")
        for module, training in zip(submodules, self._captured_call.training_flags):
            module.__dict__["training"] = training

    def _synchronize_devices(self) -> None:
        for device in self._devices:
            if device.type == "cuda":
                self._torch.cuda.synchronize(device)

    def _run_on_copies(self) -> bool:
        """Runs once on copies; returns whether the module changes its inputs."""
        input_copies: list = []

        def append_clone(tensor):
            input_copies.append(tensor.clone())
            return input_copies[-1]

        self._run_call(append_clone, lambda: [tensor_version(tensor) for tensor in input_copies])
        return self._versions_before != self._versions_after

    def _run_call(self, copy_tensor: Callable = None, read_versions: Callable = lambda: None) -> None:
        torch, call = self._torch, self._captured_call
        if copy_tensor is None and self._changes_inputs:
            copy_tensor = torch.clone
        with contextlib.ExitStack() as exit_stack:
            exit_stack.enter_context(
                torch.inference_mode() if call.is_inference else torch.set_grad_enabled(call.grad_enabled)
            )
            for device_kind, dtype in call.autocast:
                exit_stack.enter_context(torch.autocast(device_kind, dtype=dtype))
            depth = interface.enter(self._phase_scopes[0])
            exit_stack.callback(interface.leave_to, depth)
            args, kwargs = self._call_inputs
            if copy_tensor is not None:
                args, kwargs = map_tensors((args, kwargs), copy_tensor)
            self._versions_before = read_versions()
            output = self._module(*args, **kwargs)
            self._versions_after = read_versions()
        if call.grad_enabled and not call.is_inference and self._gradient_targets:
            self._run_backward(output)

    def _run_backward(self, output) -> None:
        outputs = [tensor for tensor in collect_tensors(output) if tensor.requires_grad]
        if not outputs:
            return
        interface.backward_begin(self._phase_scopes[1])
        try:
            if len(self._output_gradients) != len(outputs):
                self._output_gradients = [_make_random_gradient(self._torch, tensor) for tensor in outputs]
            self._torch.autograd.grad(outputs, self._gradient_targets, self._output_gradients, allow_unused=True)
        finally:
            interface.backward_end()


def _make_random_gradient(torch, tensor):
    """A gradient for the replayed backward pass: random values instead of ones, because GPU power depends on the bits
    that toggle. A scalar gets 1."""
    return torch.ones_like(tensor) if tensor.dim() == 0 else torch.randn_like(tensor)


def collect_tensors(value, nesting_depth: int = 0) -> list:
    if hasattr(value, "requires_grad") and hasattr(value, "data_ptr"):
        return [value]
    if nesting_depth > 3:
        return []
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dataclass_fields__"):
        value = vars(value).values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for entry in value for tensor in collect_tensors(entry, nesting_depth + 1)]
