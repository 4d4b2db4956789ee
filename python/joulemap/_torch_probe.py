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
    def __init__(self, torch, inputs: InputCapture, operations, names) -> None:
        self._torch, self._input_capture, self._operations, self._names = torch, inputs, operations, names
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
        pairs = [(call, call.module()) for call in self._input_capture.calls]
        pairs = [(call, module) for call, module in pairs if module is not None]
        pairs = [(call, module) for call, module in pairs if model_modules is None or id(module) in model_modules]
        reason = self._reason_not_to_probe(pairs)
        if reason is not None:
            diagnose_skipped_probing(reason)
            return
        self._input_capture.stop()
        was_capture_on = _capture.is_on()
        self._operations.set_recording(False)
        _capture.set_capture_enabled(False)
        try:
            self._probe_replays(pairs, limit_s)
        except Exception as error:  # noqa: BLE001 - must not reach the program
            diagnose_skipped_probing(f"{type(error).__name__}: {error}")
        finally:
            self._input_capture.release([call for call, _ in pairs])
            self._input_capture.resume()
            if was_capture_on:
                _capture.set_capture_enabled(True)

    def _reason_not_to_probe(self, pairs: list) -> Optional[str]:
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            return "torch.distributed is active: a replay could wait for other processes forever"
        if not pairs and self._input_capture.calls:
            return "the models were deleted and are too large to keep; keep a reference to them, or use jm.attach"
        if not pairs:
            return "no module can be replayed; torch.compile hides the modules of a model"
        return None

    def _probe_replays(self, pairs: list, limit_s: float) -> None:
        interface.probing(1)
        flag = ProbingFlagFile()
        try:
            flag.create_file()
            with ModuleStatePreserver(self._torch, [module for _, module in pairs]):
                end = time.monotonic() + limit_s
                time.sleep(min(IDLE_BEFORE_PROBING_S, limit_s / 10))
                failures = dict(self._input_capture.refused)
                replays = self._prepare_replays(pairs, end - limit_s / 2, failures)
                bursts, seed = self._replay_bursts(replays, end, failures)
                time.sleep(min(IDLE_AFTER_PROBING_S, limit_s / 10))
            diagnose_unreplayed_modules(failures)
            interface.fact("probed", f"{len(replays)} modules in {bursts} bursts, seed {seed}")
        finally:
            flag.remove_file()
            interface.probing(0)

    def _prepare_replays(self, pairs: list, deadline: float, failures: dict) -> list:
        replays = []
        for number, (call, module) in enumerate(pairs):
            name = self._names.module_path(module)
            if time.monotonic() > deadline and replays:
                failures[name] = f"no time left for it and {len(pairs) - number - 1} more (increase --probe-seconds)"
                break
            try:
                replay = CallReplay(self._torch, call, module, name)
                replay.warm_up_and_time()
                replays.append(replay)
            except Exception as error:  # noqa: BLE001 - raised by the module
                failures[name] = first_error_line(error)
        return replays

    def _replay_bursts(self, replays: list, end: float, failures: dict) -> tuple:
        """Replays bursts in random order. Returns the number of bursts and the seed of their order."""
        seed = int.from_bytes(os.urandom(4), "little")
        rng = random.Random(seed)
        bursts = 0
        now = time.monotonic()
        end = min(end, now + MAX_TIME_PER_MODULE_S * len(replays))
        burst_s = (end - now) / (BURSTS_PER_MODULE * max(len(replays), 1))
        burst_s = min(max(burst_s, MIN_BURST_S), MAX_BURST_S)
        while replays and now < end:
            rng.shuffle(replays)
            for replay in list(replays):
                try:
                    replay.run_burst(burst_s * rng.uniform(0.5, 1.5))
                    bursts += 1
                except Exception as error:  # noqa: BLE001 - raised by the module
                    failures[replay.name] = first_error_line(error)
                    replays.remove(replay)
                if rng.random() < PAUSE_PROBABILITY:
                    time.sleep(rng.uniform(0, MAX_PAUSE_S))
                now = time.monotonic()
                if now >= end:
                    break
        return bursts, seed


class ProbingFlagFile:
    """A file beside the parts of the recording that makes the recorder read every counter update."""

    def __init__(self) -> None:
        self._folder = os.path.join(os.environ.get("JOULEMAP_RECORDING", ""), "probing")
        self._file = os.path.join(self._folder, str(os.getpid()))

    def create_file(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        with open(self._file, "w", encoding="utf-8"):
            pass

    def remove_file(self) -> None:
        for remove, path in ((os.remove, self._file), (os.rmdir, self._folder)):
            try:
                remove(path)
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
