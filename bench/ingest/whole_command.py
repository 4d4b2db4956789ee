# SPDX-License-Identifier: Apache-2.0
"""Runs the whole `joulemap import` command and measures it, including writing and waiting for the disk."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

# A small separate process starts the command: a child inherits the peak memory of the process that forks it.
RUNNER_PROGRAM = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}))
"""


def run_import(program: Path, format_name: str, trace: Path) -> dict:
    """Returns its duration ("seconds") and peak memory ("peak_bytes"), and deletes its output."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "import", format_name, trace, "-o", Path(folder) / "run.joule"]
        runner = [sys.executable, "-I", "-S", "-c", RUNNER_PROGRAM]
        completed_process = subprocess.run([*runner, *map(str, command)], check=True, capture_output=True, text=True)
    return json.loads(completed_process.stdout)
