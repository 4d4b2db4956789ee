# SPDX-License-Identifier: Apache-2.0
"""Captures PyTorch in a recorded program: the injected sitecustomize calls install() after torch has been imported."""

from __future__ import annotations

import atexit
import contextlib
import os
from typing import Any, Iterator, Optional

from . import _capture
from ._guard import suppress_failures
from ._torch_versions import has_sequence_numbers


# The session of this process, set by install() and used by jm.attach.
capture_session: Optional[TorchCaptureSession] = None


class TorchCaptureSession:
    """The interface of jm.attach and jm.validate to the capture of PyTorch."""

    def __init__(self, torch, module_calls, operation_recorder, module_names) -> None:
        self._torch, self._module_calls, self._operation_recorder, self._module_names = (
            torch,
            module_calls,
            operation_recorder,
            module_names,
        )
        self._module_probe: Any = None

    def name_modules(self, module) -> None:
        """Names the modules of a model that the program passes to jm.attach, before its first call."""
        self._module_names.name_called_module(module, None)

    def pause(self) -> None:
        """Stops capturing calls at the end of a recording."""
        from ._function_samples import function_sampler

        _capture.end_phase_gap()
        self._operation_recorder.set_recording(False)
        _capture.set_capture_enabled(False)
        self._module_calls.uninstall()
        function_sampler.stop()

    def resume(self) -> None:
        """Resumes capturing for a new recording."""
        from ._function_samples import function_sampler

        _capture.reset_after_fork()  # drops the scopes of the previous recording
        _capture.set_capture_enabled(True)
        self._module_calls.install()
        function_sampler.start()
        _capture.fact("torch", self._torch.__version__)

    @property
    def probe_limit_s(self) -> float:
        from ._torch_probe import DEFAULT_PROBE_LIMIT_S

        return float(os.environ.get("JOULEMAP_PROBE") or DEFAULT_PROBE_LIMIT_S)

    def keep_inputs(self):
        """Keeps the inputs of modules from now on, so that they can be replayed."""
        if self._module_probe is None:
            from ._torch_modules import make_transform_check
            from ._torch_probe import ModuleProbe
            from ._torch_probe_inputs import InputCapture

            input_capture = InputCapture(self._torch, make_transform_check(self._torch))
            self._module_calls.wrap_calls(input_capture.wrap_call)
            self._module_probe = ModuleProbe(self._torch, input_capture, self._operation_recorder, self._module_names)
        return self._module_probe

    @contextlib.contextmanager
    def record_in_probe_mode(self) -> Iterator[int]:
        """Separates what runs inside from the program's own work: it is recorded in mode `probe`. Yields the scope of
        that mode."""
        from . import _capture_interface as interface
        from ._torch_probe import ProbingFlagFile

        was_capture_on = _capture.is_on()
        self._operation_recorder.set_recording(False)
        _capture.set_capture_enabled(False)
        interface.probing(1)
        flag_file = ProbingFlagFile()
        probe_scope = interface.child_scope(0, interface.SCOPE_MODE, "probe")
        depth = interface.enter(probe_scope)
        try:
            flag_file.create_file()
            yield probe_scope
        finally:
            flag_file.remove_file()
            interface.leave_to(depth)
            interface.probing(0)
            if was_capture_on:
                _capture.set_capture_enabled(True)


def install_or_resume(torch) -> TorchCaptureSession:
    """Installs the capture, or resumes it, for a recording that the program starts itself with jm.attach."""
    if capture_session is None:
        install(torch)
    else:
        capture_session.resume()
    assert capture_session is not None
    return capture_session


def install(torch) -> None:
    global capture_session
    if not _capture.is_recording():
        return
    from . import (
        _torch_backward,
        _torch_dither,
        _torch_setup,
        _torch_module_calls,
        _torch_loop,
        _torch_modules,
        _torch_ops,
    )
    from . import _torch_ranks, _torch_regions
    from ._function_samples import function_sampler

    compile_detector = _torch_module_calls.CompileDetector(torch)
    operation_recorder = _torch_ops.OperationRecorder(torch, compile_detector)
    _torch_ops.watch_tracing(torch, operation_recorder)
    module_calls = _torch_module_calls.ModuleCallCapture(torch, compile_detector)

    loss_log = _torch_backward.install(torch, operation_recorder)

    rank_recorder = _torch_ranks.RankRecorder(torch)

    def on_step_sampling_change(is_sampled: int, is_traced: int) -> None:
        rank_recorder.record_rank()
        operation_recorder.set_recording(bool(is_sampled))
        module_calls.set_tracing(bool(is_traced))
        function_sampler.uses_untraced_sample_period = loss_log.is_light_mode = not is_traced

    module_names = _torch_modules.ModuleNames(torch)
    dither_seed = os.environ.get("JOULEMAP_DITHER")
    pause_dither = _torch_dither.install(torch, module_calls, dither_seed) if dither_seed else None
    _capture.set_up_module_capture(
        tensor_type=torch.Tensor,
        is_grad_enabled=torch.is_grad_enabled,
        graph_task_id=torch._C._current_graph_task_id,
        function_mode_count=torch._C._len_torch_function_stack,
        is_in_transform=_torch_modules.make_transform_check(torch),
        is_running=_torch_modules.make_running_check(torch),
        resolve=module_names.name_called_module,
        make_hook_tensor=_torch_backward.make_hook_tensor_factory(
            torch, *([pause_dither.wrap_hook] if pause_dither else [])
        ),
        read_grad_fn_bypassing_modes=_torch_backward.make_grad_fn_reader(torch),
        on_step_sampling_change=on_step_sampling_change,
        has_sequence_numbers=has_sequence_numbers(torch),
    )
    os.register_at_fork(after_in_child=_capture.reset_after_fork)
    os.register_at_fork(after_in_child=suppress_failures(operation_recorder.reset_after_fork))
    atexit.register(_capture.end_phase_gap)  # interpreter shutdown is not part of the last step
    module_calls.install()
    capture_session = TorchCaptureSession(torch, module_calls, operation_recorder, module_names)
    if os.environ.get("JOULEMAP_PROBE"):
        capture_session.keep_inputs().register_at_exit(capture_session.probe_limit_s)
    _torch_loop.install(torch, operation_recorder)
    _torch_setup.install(torch)
    _torch_regions.install(torch)
    function_sampler.start()
    _capture.fact("torch", torch.__version__)
