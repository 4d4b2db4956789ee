"""Long work shows its progress on a terminal, and nothing in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

SYSROOT = Path(__file__).resolve().parents[1] / "sysroots" / "amd-zen4"


def run_on_terminal(command: list) -> tuple[int, str]:
    """Runs a command whose stderr is a terminal. Returns its exit code and what it wrote there."""
    terminal, stderr = pty.openpty()
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=stderr) as process:
        os.close(stderr)
        terminal_output = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            terminal_output += part
    os.close(terminal)
    return process.returncode, terminal_output.decode()


def test_a_calibration_shows_how_long_it_takes_and_clears_the_line(binaries, tmp_path):
    calibrate = [binaries / "joulemap", "calibrate", "--seconds", "3", "--no-load", "--sysroot", SYSROOT]
    code, terminal_output = run_on_terminal([*calibrate, "-o", tmp_path / "found.txt"])
    assert code == 0, terminal_output
    lines = terminal_output.replace("\x1b[K", "").split("\r")
    assert any(line.startswith("calibrating: ") and line.endswith(" s left") for line in lines), terminal_output
    assert lines[-1] == ""


def test_neither_a_pipe_nor_a_quiet_terminal_shows_progress(binaries, tmp_path):
    calibrate = [binaries / "joulemap", "calibrate", "--seconds", "1.5", "--no-load", "--sysroot", SYSROOT]
    process = subprocess.run([str(word) for word in calibrate], capture_output=True, text=True, check=True)
    assert "calibrating" not in process.stderr
    code, terminal_output = run_on_terminal([*calibrate, "-q", "-o", tmp_path / "found.txt"])
    assert code == 0 and "calibrating" not in terminal_output
