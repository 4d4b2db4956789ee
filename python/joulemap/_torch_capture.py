# SPDX-License-Identifier: Apache-2.0
"""Watches PyTorch in a recorded program: install() is called by the injected sitecustomize once torch has been imported."""

from __future__ import annotations

import atexit
import os

from . import _capture
from ._guard import guarded


def install(torch) -> None:
    if not _capture.is_recording():
        return
    from . import _torch_backward, _torch_setup, _torch_light, _torch_loop, _torch_modules, _torch_ops, _torch_regions
    from ._function_samples import samples

    compiled = _torch_light.CompileWatch(torch)
    operations = _torch_ops.Operations(torch, compiled)
    followed = _torch_light.FollowedModules(torch, compiled)

    def on_step_state(is_sampled: int, is_followed: int) -> None:
        operations.look(bool(is_sampled))
        followed.follow(bool(is_followed))

    names = _torch_modules.ModuleNames(torch)
    _capture.setup(
        tensor_type=torch.Tensor,
        is_grad_enabled=torch.is_grad_enabled,
        graph_task=torch._C._current_graph_task_id,
        function_modes=torch._C._len_torch_function_stack,
        is_transformed=_torch_modules.transform_check(torch),
        is_running=_torch_modules.running_check(torch),
        resolve=names.resolve,
        make_carrier=_torch_backward.carrier_maker(torch),
        careful_grad_fn=_torch_backward.careful_grad_fn(torch),
        on_step_state=on_step_state,
    )
    os.register_at_fork(after_in_child=_capture.forget_in_child)
    os.register_at_fork(after_in_child=guarded(operations.forget_in_child))
    atexit.register(_capture.end_between)  # what Python does at its end is no part of the last step
    followed.install()
    _torch_backward.install(torch, operations)
    _torch_loop.install(torch)
    _torch_setup.install(torch)
    _torch_regions.install(torch)
    samples.start()
    _capture.fact("torch", torch.__version__)
