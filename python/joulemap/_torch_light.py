# SPDX-License-Identifier: Apache-2.0
"""Which modules are followed: all of them, or, where that would cost too much, only the calls of whole models.

Hooks of all modules lie in two dictionaries of PyTorch's. Out of there they cost nothing; then the classes of models get a
__call__ that is seen instead. torch.compile guards those dictionaries and would compile anew: once it has been used they stay
as they are, and a flag stops the work.
"""

from __future__ import annotations

import functools

from . import _capture
from ._guard import guarded


class CompileWatch:
    """Whether torch.compile is in use."""

    def __init__(self, torch) -> None:
        self.is_used = False
        self._when_used: list = []
        compile_ = torch.compile

        @functools.wraps(compile_)
        def compile(*args, **kwargs):  # noqa: A001
            self._use()
            return compile_(*args, **kwargs)

        torch.compile = compile

    def when_used(self, callback) -> None:
        self._when_used.append(guarded(callback))

    def _use(self) -> None:
        if self.is_used:
            return
        self.is_used = True
        for callback in self._when_used:
            callback()


class FollowedModules:
    def __init__(self, torch, compiled: CompileWatch) -> None:
        self._torch = torch
        self._compiled = compiled
        self._handles: list = []
        self._is_followed = True

    def install(self) -> None:
        self._add_hooks()

    def follow(self, is_followed: bool) -> None:
        if is_followed == self._is_followed:
            return
        self._is_followed = is_followed
        _capture.set_followed(is_followed)

    def _add_hooks(self) -> None:
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
