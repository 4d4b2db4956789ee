# SPDX-License-Identifier: Apache-2.0
"""Probing: after the run, each module is replayed alone with its own inputs until the energy counter identifies its
power.

Identical steps make per-kernel power unidentifiable: every counter interval contains the same mixture of kernels.
Probing creates other mixtures: bursts of each module in random order. Their kernels have the same classes as those
of the run. Their energy is reported separately, as mode `probe` (docs/explanation/attribution.md). Functional losses
and optimizers are not replayed.
"""

from __future__ import annotations

import atexit
import os
import random
import sys
import time
from typing import Optional

from . import _capture
from . import _capture_interface as interface
from ._torch_probe_inputs import InputCapture
from ._torch_replay import CallReplay, ModuleStatePreserver

# Longest replay per module; more time hardly reduces the uncertainty of its power.
MAX_TIME_PER_MODULE_S = 2.0
BURSTS_PER_MODULE = 5
MIN_BURST_S, MAX_BURST_S = 0.01, 0.2
# Idle time before the first burst, in which pending records of the run arrive and the recorder starts reading every
# counter update; and after the last burst, in which its counter update is read.
IDLE_BEFORE_PROBING_S, IDLE_AFTER_PROBING_S = 0.7, 0.3
# Random pauses, which identify the power of the waiting GPU.
PAUSE_PROBABILITY, MAX_PAUSE_S = 0.1, 0.04
DEFAULT_PROBE_LIMIT_S = 30.0
MAX_LISTED_FAILURES = 8


class ModuleProbe:
    def __init__(self, torch, input_capture: InputCapture, operation_recorder, module_names) -> None:
        self._torch, self._input_capture, self._operation_recorder, self._module_names = (
            torch,
            input_capture,
            operation_recorder,
            module_names,
        )
        self._owner_pid = os.getpid()

    def register_at_exit(self, limit_s: float) -> None:
        atexit.register(self._run_at_exit, limit_s)

    def _run_at_exit(self, limit_s: float) -> None:
        if os.getpid() != self._owner_pid or not self._input_capture.calls:
            return
        if getattr(sys, "last_type", None) is not None or getattr(sys, "last_exc", None) is not None:
            diagnose_skipped_probing("an exception ended the program")
            return
        try:
            self.probe_modules(limit_s)
        except KeyboardInterrupt:
            diagnose_skipped_probing("interrupted")

    def probe_modules(self, limit_s: float, model: Optional[object] = None) -> None:
        """Probes all captured modules, or those of `model`. Raises only interrupts."""
        model_modules = None if model is None else {id(module) for module in model.modules()}
        calls_and_modules = [(call, call.module()) for call in self._input_capture.calls]
        calls_and_modules = [(call, module) for call, module in calls_and_modules if module is not None]
        calls_and_modules = [
            (call, module) for call, module in calls_and_modules if model_modules is None or id(module) in model_modules
        ]
        skip_reason = self._reason_not_to_probe(calls_and_modules)
        if skip_reason is not None:
            diagnose_skipped_probing(skip_reason)
            return
        self._input_capture.stop()
        was_capture_on = _capture.is_on()
        self._operation_recorder.set_recording(False)
        _capture.set_capture_enabled(False)
        try:
            self._probe_replays(calls_and_modules, limit_s)
        except Exception as error:  # noqa: BLE001 - must not reach the program
            diagnose_skipped_probing(f"{type(error).__name__}: {error}")
        finally:
            self._input_capture.release([call for call, _ in calls_and_modules])
            self._input_capture.resume()
            if was_capture_on:
                _capture.set_capture_enabled(True)

    def _reason_not_to_probe(self, calls_and_modules: list) -> Optional[str]:
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            return "torch.distributed is active: a replay could wait for other processes forever"
        if not calls_and_modules and self._input_capture.calls:
            return "the models were deleted and are too large to keep; keep a reference to them, or use jm.attach"
        if not calls_and_modules:
            return "no module can be replayed; torch.compile hides the modules of a model"
        return None

    def _probe_replays(self, calls_and_modules: list, limit_s: float) -> None:
        interface.probing(1)
        flag_file = ProbingFlagFile()
        try:
            flag_file.create_file()
            with ModuleStatePreserver(self._torch, [module for _, module in calls_and_modules]):
                end_s = time.monotonic() + limit_s
                time.sleep(min(IDLE_BEFORE_PROBING_S, limit_s / 10))
                failures = dict(self._input_capture.refused)
                replays = self._prepare_replays(calls_and_modules, end_s - limit_s / 2, failures)
                burst_count, seed = self._replay_bursts(replays, end_s, failures)
                time.sleep(min(IDLE_AFTER_PROBING_S, limit_s / 10))
            diagnose_unreplayed_modules(failures)
            interface.fact("probed", f"{len(replays)} modules in {burst_count} bursts, seed {seed}")
        finally:
            flag_file.remove_file()
            interface.probing(0)

    def _prepare_replays(self, calls_and_modules: list, deadline_s: float, failures: dict) -> list:
        replays = []
        for call_index, (call, module) in enumerate(calls_and_modules):
            module_path = self._module_names.module_path(module)
            if time.monotonic() > deadline_s and replays:
                failures[module_path] = (
                    f"no time left for it and {len(calls_and_modules) - call_index - 1} more (increase --probe-seconds)"
                )
                break
            try:
                replay = CallReplay(self._torch, call, module, module_path)
                replay.warm_up_and_time()
                replays.append(replay)
            except Exception as error:  # noqa: BLE001 - raised by the module
                failures[module_path] = first_error_line(error)
        return replays

    def _replay_bursts(self, replays: list, end_s: float, failures: dict) -> tuple:
        """Replays bursts in random order. Returns the number of bursts and the seed of their order."""
        seed = int.from_bytes(os.urandom(4), "little")
        rng = random.Random(seed)
        burst_count = 0
        now_s = time.monotonic()
        end_s = min(end_s, now_s + MAX_TIME_PER_MODULE_S * len(replays))
        burst_s = (end_s - now_s) / (BURSTS_PER_MODULE * max(len(replays), 1))
        burst_s = min(max(burst_s, MIN_BURST_S), MAX_BURST_S)
        while replays and now_s < end_s:
            rng.shuffle(replays)
            for replay in list(replays):
                try:
                    replay.run_burst(burst_s * rng.uniform(0.5, 1.5))
                    burst_count += 1
                except Exception as error:  # noqa: BLE001 - raised by the module
                    failures[replay.name] = first_error_line(error)
                    replays.remove(replay)
                if rng.random() < PAUSE_PROBABILITY:
                    time.sleep(rng.uniform(0, MAX_PAUSE_S))
                now_s = time.monotonic()
                if now_s >= end_s:
                    break
        return burst_count, seed


class ProbingFlagFile:
    """A file beside the parts of the recording that makes the recorder read every counter update."""

    def __init__(self) -> None:
        self._flag_folder = os.path.join(os.environ.get("JOULEMAP_RECORDING", ""), "probing")
        self._flag_path = os.path.join(self._flag_folder, str(os.getpid()))

    def create_file(self) -> None:
        os.makedirs(self._flag_folder, exist_ok=True)
        with open(self._flag_path, "w", encoding="utf-8"):
            pass

    def remove_file(self) -> None:
        for remove_entry, path in ((os.remove, self._flag_path), (os.rmdir, self._flag_folder)):
            try:
                remove_entry(path)
            except OSError:  # another process still probes, or the file is gone
                pass


def first_error_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n", 1)[0]


def diagnose_unreplayed_modules(failures: dict) -> None:
    """Records a diagnostic for each module that was not replayed: `failures` maps names to reasons."""
    for name, reason in list(failures.items())[:MAX_LISTED_FAILURES]:
        interface.diagnose(
            "probe_skipped", f"{name} was not replayed: {reason}", "power of its kernels comes from the run only"
        )
    if len(failures) > MAX_LISTED_FAILURES:
        interface.diagnose("probe_skipped", f"{len(failures) - MAX_LISTED_FAILURES} more modules were not replayed")


def diagnose_skipped_probing(reason: str) -> None:
    interface.diagnose("not_probed", f"not probed: {reason}")
