# SPDX-License-Identifier: Apache-2.0
"""A recording that a program starts itself: `joulemap record -p` of this process runs as its child, reads the sensors
and joins the parts at the end. The result is an ordinary recording."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
from typing import Optional

from ._library import JoulemapError

# Timeout for joining the parts of a long run; a recorder that takes longer is considered hung.
END_TIMEOUT_S = 300


def joulemap_program_path() -> str:
    """Path of the `joulemap` program of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "joulemap")


def sensor_options(sensors: Optional[str] = None) -> list:
    """Options that select sensors or another sysroot; the same environment variables apply to windows."""
    sensors = sensors or os.environ.get("JOULEMAP_SENSORS")
    sysroot = os.environ.get("JOULEMAP_SYSROOT")
    return [*(["--sensors", sensors] if sensors else []), *(["--sysroot", sysroot] if sysroot else [])]


class ExitHook:
    """Wraps os._exit, by which forked workers exit, to complete their part of the recording first."""

    def __init__(self) -> None:
        from . import _capture_interface as interface

        original_exit = self._original_exit = os._exit

        def _exit(status: int) -> None:
            interface.finish()
            original_exit(status)

        _exit.__doc__, _exit.__module__ = original_exit.__doc__, original_exit.__module__
        self._exit_wrapper = os._exit = _exit  # type: ignore[assignment]

    def close(self) -> None:
        if os._exit is self._exit_wrapper:  # otherwise another wrapper has replaced this one and stays
            os._exit = self._original_exit


class Recorder:
    """Records this process from begin() to end(). At most one is active in a process."""

    def __init__(self, file: str, process: subprocess.Popen, variables: dict) -> None:
        self.file = file
        self._process: Optional[subprocess.Popen] = process
        self._owner_pid = os.getpid()
        self._previous_environment = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)  # child processes are recorded, too
        self._exit_hook = ExitHook()
        atexit.register(self.end)

    @staticmethod
    def begin(file: str, trace: str = "auto", sensors: Optional[str] = None, keep_arguments: bool = False) -> Recorder:
        from . import _capture_interface as interface

        file = os.path.abspath(file)
        command = [
            joulemap_program_path(),
            "record",
            "-p",
            str(os.getpid()),
            "-o",
            file,
            "--trace",
            trace,
            "--announce",
            "--json",
        ]
        command += ["--keep-arguments"] if keep_arguments else []
        # Runs in its own session: Ctrl-C of the terminal goes to the program, and the recorder detects the program's
        # end.
        process = subprocess.Popen(
            [*command, *sensor_options(sensors)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        announcement_line = process.stdout.readline()  # type: ignore[union-attr]
        if not announcement_line:
            _, error_text = process.communicate()
            raise JoulemapError(f"the recorder did not start: {error_text.strip()}")
        recorder = Recorder(file, process, json.loads(announcement_line)["variables"])
        if not interface.join_recording():
            recorder.end()
            raise JoulemapError(f"this process could not join the recording {file}: see stderr")
        return recorder

    def end(self) -> Optional[dict]:
        """Ends the recording and returns the output of `joulemap record --json`. Returns None if it has already ended,
        or in the child of a fork."""
        if self._process is None or os.getpid() != self._owner_pid:
            return None
        from . import _capture_interface as interface

        process, self._process = self._process, None
        atexit.unregister(self.end)
        interface.leave_recording()
        self._exit_hook.close()
        self._restore_environment()
        process.send_signal(signal.SIGTERM)
        try:
            output, error_text = process.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise JoulemapError(f"the recorder does not exit; partial data is in {self.file}.d") from None
        output_lines = output.strip().splitlines()
        if process.returncode != 0 or not output_lines:
            raise JoulemapError(f"the recorder failed; partial data is in {self.file}.d: {error_text.strip()}")
        return json.loads(output_lines[-1])

    def _restore_environment(self) -> None:
        for name, value in self._previous_environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
