# SPDX-License-Identifier: Apache-2.0
"""jm.attach: traces a model that the program passes explicitly. Starts a recording if none is active."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from typing import Any, Optional, Sequence

from . import _hot
from ._library import JoulemapError
from ._recorder import Recorder
from ._run import Run, run_joulemap, validate_excluded_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._torch_probe import ModuleProbe


class Attachment(Run):
    """The result of attach(). detach() or the end of a `with` block ends it; afterwards it is a complete Run. Before,
    it contains the data written so far (up to a second ago), and `is_complete` of its ledgers is False."""

    def __init__(
        self,
        model: Any,
        probe: Optional[ModuleProbe],
        limit_s: float,
        recorder: Optional[Recorder],
        exclude: Sequence[str] = (),
    ) -> None:
        super().__init__([recorder.file if recorder else _enclosing_recording_path()], exclude)
        self._model, self._module_probe, self._probe_limit_s, self._recorder = model, probe, limit_s, recorder
        self._recording_start_ns: Optional[int] = None  # of a recording that has ended; identifies it
        self.summary: Optional[dict] = None  # output of `joulemap record --json`, set when the recording has ended

    def detach(self) -> None:
        """Ends the attachment and completes a recording that attach() started. With probe=True it first replays the
        modules of the model, which takes up to half a minute. Parameters, gradients, buffers, random states and
        flags are unchanged afterwards."""
        model, module_probe = self._model, self._module_probe
        self._model = self._module_probe = None
        try:
            if module_probe is not None:
                module_probe.probe_modules(self._probe_limit_s, model)
        finally:
            self._end_recording(model)

    def _end_recording(self, model: Any) -> None:
        from . import _torch_capture

        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        if model is not None:
            _wait_for_gpus(model)
        if _torch_capture.capture_session is not None:
            _torch_capture.capture_session.pause()
        self.summary = recorder.end()
        if self.summary is None:  # already ended, or the child of a fork: the recording belongs to its parent
            return
        # Without the time, the result reads FILE. An error here would replace one of the program.
        with contextlib.suppress(OSError, JoulemapError):
            self._recording_start_ns = _read_start_ns(self.files[0])

    def _files_to_read(self) -> list:
        """The file of this recording: a later recording to the same path has renamed it to FILE.old, or removed it."""
        if self._recording_start_ns is None:
            return self.files
        for file in (self.files[0], self.files[0] + ".old"):
            if os.path.exists(file) and _read_start_ns(file) == self._recording_start_ns:
                return [file]
        raise JoulemapError(f"later recordings have replaced {self.files[0]}: pass another `file` to each jm.attach")

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is not None and self._module_probe is not None:
            from ._torch_probe import diagnose_skipped_probing

            self._module_probe = None
            diagnose_skipped_probing("an exception ended the with block of jm.attach")
        self.detach()


def _read_start_ns(file: str) -> int:
    """When the recording began."""
    file_status = os.stat(file)
    return _read_start_ns_of_version(file, file_status.st_mtime_ns, file_status.st_ino)


@functools.lru_cache(maxsize=64)
def _read_start_ns_of_version(file: str, modified_ns: int, inode: int) -> int:
    report: dict = json.loads(run_joulemap("report", file, "--by", "domain", "--json"))
    return report["start_unix_ns"]


def _wait_for_gpus(model: Any) -> None:
    """Waits until the GPUs of `model` have run what the program launched: its energy belongs to the recording."""
    torch = sys.modules["torch"]
    if not torch.cuda.is_initialized():
        return
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    with contextlib.suppress(RuntimeError):  # after an error of CUDA, which the program sees at its next call
        for device in devices:
            torch.cuda.synchronize(device)


def _enclosing_recording_path() -> str:
    """The file that the enclosing `joulemap record` writes for this process."""
    recording_folder = os.environ.get("JOULEMAP_RECORDING", "")
    return recording_folder[:-2] if recording_folder.endswith(".d") else recording_folder


def attach(
    model: Any,
    *,
    loss: Any = None,
    optimizer: Any = None,
    loader: Any = None,
    exclude: Sequence[str] = (),
    probe: bool = False,
    file: str = "run.joule",
    trace: str = "auto",
    sensors: Optional[str] = None,
    keep_arguments: bool = False,
) -> Attachment:
    """Traces `model`, a torch.nn.Module, and the loop around it until detach(): energy by layer, phase and operation.

        with jm.attach(model) as run:
            train()
        print(run.report(by="layer"))

    Under `joulemap record` the model becomes part of that recording. Otherwise attach() records this process to `file`.
    Results of the training are unchanged, bit for bit. A model compiled with torch.compile is one row.

    - `loss`, `optimizer`, `loader`: checked to be those of PyTorch, which are traced even if not passed
    - `exclude`: parts of the machine to exclude from all rows: "cpu", "ram", "gpu"
    - `probe`: replay each module on detach() to measure its power
    - `file`: the recording; an existing one is renamed to FILE.old
    - `trace`, `sensors`, `keep_arguments`: the options of `joulemap record`
    """
    validate_excluded_parts(exclude)
    if not hasattr(model, "named_modules"):
        raise TypeError(f"jm.attach needs a PyTorch module, not a {type(model).__name__}")
    torch = sys.modules["torch"]
    _check_traceable(torch, loss, optimizer, loader)
    from . import _torch_capture

    recorder = None
    if not _hot.is_recording():
        if trace in ("off", "kernels"):
            raise ValueError(f"trace={trace!r} does not capture modules: omit it")
        recorder = Recorder.begin(file, trace, sensors, keep_arguments)
        session: Any = _torch_capture.install_or_resume(torch)
    else:
        session = _torch_capture.capture_session
    if session is None:
        raise JoulemapError("modules are not captured: run joulemap record without --trace off or --trace kernels")
    session.name_modules(model)
    return Attachment(model, session.keep_inputs() if probe else None, session.probe_limit_s, recorder, exclude)


def _check_traceable(torch: Any, loss: Any, optimizer: Any, loader: Any) -> None:
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be a torch.optim.Optimizer, not a {type(optimizer).__name__}")
    if loader is not None and not isinstance(loader, torch.utils.data.DataLoader):
        raise TypeError(
            f"loader must be a torch.utils.data.DataLoader, not a {type(loader).__name__}. Omit it and put "
            'jm.region("dataloader") around the code that creates batches'
        )
    if loss is not None and not callable(loss):
        raise TypeError(f"loss must be a function or a module, not a {type(loss).__name__}")
