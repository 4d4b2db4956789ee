# SPDX-License-Identifier: Apache-2.0
"""Captures the backward pass and the loss from which it starts."""

from __future__ import annotations

from typing import Callable

from . import _capture
from ._guard import wrap_function
from ._torch_loss import LossLog
from ._torch_modules import make_transform_check
from ._torch_versions import get_is_compiling


def make_hook_tensor_factory(torch, wrap_hook: Callable = lambda hook: hook) -> Callable:
    """Returns a function that makes a tensor with only the given hook. Autograd nodes get the hook through it
    (python/capture/module_calls.h)."""

    def make_hook_tensor(hook):
        hook = wrap_hook(hook)
        with torch._C.DisableTorchFunction(), torch.inference_mode(False), torch.no_grad():
            hook_tensor = torch.empty((), device="cpu")
            hook_tensor._backward_hooks = {0: hook}
        return hook_tensor

    return make_hook_tensor


def make_grad_fn_reader(torch) -> Callable:
    """Reads grad_fn without calling __torch_function__ of tensor subclasses or of function modes of the program."""

    def grad_fn(tensor):
        with torch._C.DisableTorchFunction():
            return tensor.grad_fn

    return grad_fn


def install(torch, operation_recorder) -> LossLog:
    loss_log = LossLog(torch)
    get_graph_task_id = torch._C._current_graph_task_id
    is_in_transform = make_transform_check(torch)

    def begin(args):
        if is_in_transform():
            return None
        is_nested = get_graph_task_id() != -1
        if not is_nested and args:
            operation_recorder.hook_autograd_graph(args[0])
        _capture.backward_begin()
        return (is_nested,)

    def begin_backward_from_loss(args):
        if args and get_graph_task_id() == -1 and not is_in_transform():
            loss_log.add_loss(args[0])
        return begin(args)

    def end(token, has_returned, args):
        _capture.backward_end()
        if has_returned and not token[0]:
            _capture.begin_phase_gap("gradients")

    wrap_function(torch.autograd, "backward", get_is_compiling(torch), begin_backward_from_loss, end)
    wrap_function(torch.autograd, "grad", get_is_compiling(torch), begin, end)
    return loss_log
