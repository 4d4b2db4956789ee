# SPDX-License-Identifier: Apache-2.0
"""Captures calls of modules: all of them or, where that would cost too much, only those of whole models.

Usually it replaces torch.nn.Module.__call__: PyTorch's global module hooks make every call several times as slow even
if they do nothing. For untraced steps it replaces only the __call__ of the model classes. torch.compile traces through
modules and supports only PyTorch's own __call__ and hooks. Once it is used, the capture switches to global hooks, which
do nothing while compiling. The hooks stay installed, because a change would trigger recompilation; a flag disables
their work instead.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Callable

from . import _capture
from ._guard import suppress_failures
from ._torch_versions import get_is_compiling, register_forward_hook, warn_about_old_compilers


class CompileDetector:
    """Detects the first use of torch.compile or torch.export and calls `on_first_compilation`."""

    def __init__(self, torch) -> None:
        self.has_compiled = _has_compiled(torch)
        self.on_first_compilation: Callable[[], None] = lambda: None
        self._wrap_compiler(torch, "compile", torch)
        if hasattr(torch, "export"):  # since PyTorch 2.1
            self._wrap_compiler(torch.export, "export", torch)

    def _wrap_compiler(self, owner, name: str, torch) -> None:
        original_compiler = getattr(owner, name)

        @functools.wraps(original_compiler)
        def compile_with_detection(*args, **kwargs):
            if not self.has_compiled:
                self.has_compiled = True
                suppress_failures(self.on_first_compilation)()
                suppress_failures(warn_about_old_compilers)(torch)
                suppress_failures(_capture_compilations)()
            return original_compiler(*args, **kwargs)

        setattr(owner, name, compile_with_detection)


def _has_compiled(torch) -> bool:
    """Whether the program compiled before the capture was attached. Importing torch._dynamo alone does not count: every
    optimizer does so."""
    dynamo_utils = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo_utils is not None and dynamo_utils.counters["frames"]["total"])


def _capture_compilations() -> None:
    """Makes compilation a phase of its own: the GPU waits meanwhile. Since PyTorch 2.4."""
    try:
        from torch._dynamo.callback import on_compile_end, on_compile_start
    except ImportError:
        return
    depths_by_thread = threading.local()

    @on_compile_start
    @suppress_failures
    def begin(*_: object) -> None:
        depth_stack = depths_by_thread.__dict__.setdefault("stack", [])
        depth_stack.append(_capture.phase_begin("compile", None))

    @on_compile_end
    @functools.partial(suppress_failures, runs_when_capture_off=True)
    def end(*_: object) -> None:
        depth_stack = depths_by_thread.__dict__.get("stack")
        if depth_stack:
            _capture.leave_to(depth_stack.pop())


def make_traced_call(call: Callable, is_compiling: Callable[[], bool]) -> Callable:
    """Wraps a __call__ of modules to report calls and returns to the capture."""
    report_call, report_return = _capture.on_module_call, _capture.on_module_return

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):
        if is_compiling():
            return call(self, *args, **kwargs)
        report_call(self, (args, kwargs) if kwargs else args)
        output = None
        try:
            output = call(self, *args, **kwargs)
            return output
        finally:
            report_return(self, args, output)

    return __call__


class ModuleCallCapture:
    """Installs and removes the wrappers or hooks that capture calls of modules."""

    def __init__(self, torch, compile_detector: CompileDetector) -> None:
        self._module_namespace = torch.nn.modules.module
        self._is_compiling = get_is_compiling(torch)
        self._compile_detector = compile_detector
        self._global_hooks: list = []
        self._replaced_calls: list[tuple[type, object, object]] = []  # class, installed __call__, previous one or None
        self._is_traced = True
        self._call_wrappers: list[Callable] = []
        compile_detector.on_first_compilation = self._switch_to_hooks

    def install(self) -> None:
        if not self._compile_detector.has_compiled:
            self._wrap_class(self._module_namespace.Module)
        elif not self._global_hooks:
            self._switch_to_hooks()

    def uninstall(self) -> None:
        """Removes the wrappers until the next install(). Hooks that torch.compile has seen stay, and do nothing."""
        self.set_tracing(True)
        if not self._compile_detector.has_compiled:
            self._restore_calls()

    def wrap_calls(self, call_wrapper: Callable) -> None:
        """Adds call_wrapper(call) to all captured calls; not while torch.compile is used."""
        self._call_wrappers.append(call_wrapper)
        owners = [owner for owner, _, _ in self._replaced_calls]
        self._restore_calls()
        for owner in owners:
            self._wrap_class(owner)

    def set_tracing(self, is_traced: bool) -> None:
        """Switches tracing of all modules on or off. This is safe during a call: the __call__ that reported its begin
        also reports its end."""
        if is_traced == self._is_traced:
            return
        self._is_traced = is_traced
        _capture.set_submodule_tracing(is_traced)
        if self._compile_detector.has_compiled:
            return
        self._restore_calls()
        for model in [self._module_namespace.Module] if is_traced else _capture.model_types():
            self._wrap_class(model)

    def _wrap_class(self, owner: type) -> None:
        previous_call = owner.__dict__.get("__call__")
        call = owner.__call__
        for call_wrapper in self._call_wrappers:
            call = call_wrapper(call)
        wrapper = make_traced_call(call, self._is_compiling)
        owner.__call__ = wrapper
        self._replaced_calls.append((owner, wrapper, previous_call))

    def _restore_calls(self) -> None:
        while self._replaced_calls:
            owner, wrapper, previous_call = self._replaced_calls.pop()
            if owner.__dict__.get("__call__") is not wrapper:
                continue  # another library has wrapped __call__ since
            if previous_call is None:
                del owner.__call__
            else:
                owner.__call__ = previous_call

    def _switch_to_hooks(self) -> None:
        self._restore_calls()
        is_compiling = self._is_compiling
        report_call, report_return = _capture.on_module_call, _capture.on_module_return

        def before(module, inputs):
            if is_compiling():
                return
            report_call(module, inputs)

        def after(module, inputs, output):
            if is_compiling():
                return
            report_return(module, inputs, output)

        self._global_hooks = [
            self._module_namespace.register_module_forward_pre_hook(before),
            register_forward_hook(self._module_namespace, after),
        ]
        self._hide_own_hooks()

    def _hide_own_hooks(self) -> None:
        """A compiled model warns about global module hooks. This excludes the hooks of the capture from that check."""
        has_any_global_hook = getattr(self._module_namespace, "_has_any_global_hook", None)
        if has_any_global_hook is None:
            return
        forward_hook_names = "_global_forward_pre_hooks", "_global_forward_hooks", "_global_forward_hooks_always_called"
        forward_hook_dicts = [getattr(self._module_namespace, name) for name in forward_hook_names]
        backward_hook_names = (
            "_global_backward_pre_hooks",
            "_global_backward_hooks",
            "_global_forward_hooks_with_kwargs",
        )
        backward_hook_dicts = [getattr(self._module_namespace, name) for name in backward_hook_names]

        @functools.wraps(has_any_global_hook)
        def _has_any_global_hook():
            return any(len(hooks) > 1 for hooks in forward_hook_dicts) or any(backward_hook_dicts)

        self._module_namespace._has_any_global_hook = _has_any_global_hook
