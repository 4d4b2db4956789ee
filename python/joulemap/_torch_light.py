# SPDX-License-Identifier: Apache-2.0
"""Which modules are followed: all of them, or, where that would cost too much, only the calls of whole models.

Hooks of all modules lie in two dictionaries of PyTorch's. Out of there they cost nothing; then the classes of models get a
__call__ that is seen instead. torch.compile guards those dictionaries and would compile anew: once it has been used they
stay as they are, and a flag stops the work.
"""

from __future__ import annotations

import functools

from . import _capture
from ._guard import guarded


class CompileWatch:
    """Whether torch.compile is in use."""

    def __init__(self, torch) -> None:
        self.is_used = False
        compile_ = torch.compile

        @functools.wraps(compile_)
        def compile(*args, **kwargs):  # noqa: A001
            self.is_used = True
            return compile_(*args, **kwargs)

        torch.compile = compile



class FollowedModules:
    """The hooks of all modules, and what stands in for them while they are not followed."""

    def __init__(self, torch, compiled: CompileWatch) -> None:
        self._torch = torch
        self._compiled = compiled
        self._handles: list = []
        self._stand_ins: list[tuple[type, object]] = []
        self._is_followed = True
        self._hide_own_hooks()

    def _hide_own_hooks(self) -> None:
        """A compiled model warns when all modules have hooks. Ours are not the program's business."""
        modules = self._torch.nn.modules.module
        any_hook = getattr(modules, "_has_any_global_hook", None)
        if any_hook is None:
            return
        forward = "_global_forward_pre_hooks", "_global_forward_hooks", "_global_forward_hooks_always_called"
        with_own = [getattr(modules, name) for name in forward]
        backward = "_global_backward_pre_hooks", "_global_backward_hooks", "_global_forward_hooks_with_kwargs"
        others = [getattr(modules, name) for name in backward]

        @functools.wraps(any_hook)
        def _has_any_global_hook():
            own = 1 if self._handles else 0
            return any(len(hooks) > own for hooks in with_own) or any(others)

        modules._has_any_global_hook = _has_any_global_hook

    def follow(self, is_followed: bool) -> None:
        """Called while a model is being called: hooks that saw it begin are to see it end before they go."""
        if is_followed == self._is_followed:
            return
        self._is_followed = is_followed
        _capture.set_followed(is_followed)
        if is_followed:
            self._take_out_stand_ins()
            self.install()
        else:
            _capture.call_when_idle(guarded(self._rest))

    def _rest(self) -> None:
        if self._is_followed or self._compiled.is_used or not self._handles:
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        for model_type in _capture.model_types():
            self._put_in_stand_in(model_type)

    def _put_in_stand_in(self, model_type: type) -> None:
        own = model_type.__dict__.get("__call__")
        call = model_type.__call__
        called, returned = _capture.module_called, _capture.module_returned

        @functools.wraps(call)
        def __call__(self, *args, **kwargs):
            called(self, args)
            try:
                return call(self, *args, **kwargs)
            finally:
                returned(self, args, None)

        model_type.__call__ = __call__
        self._stand_ins.append((model_type, own))

    def _take_out_stand_ins(self) -> None:
        while self._stand_ins:
            model_type, own = self._stand_ins.pop()
            if own is None:
                del model_type.__call__
            else:
                model_type.__call__ = own

    def install(self) -> None:
        if self._handles:
            return
        modules = self._torch.nn.modules.module
        is_compiling = self._torch.compiler.is_compiling
        called, returned = _capture.module_called, _capture.module_returned

        def before(module, inputs):
            if is_compiling():
                return
            called(module, inputs)

        def after(module, inputs, output):
            if is_compiling():
                return
            returned(module, inputs, output)

        self._handles = [
            modules.register_module_forward_pre_hook(before),
            modules.register_module_forward_hook(after, always_call=True),
        ]
