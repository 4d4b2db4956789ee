# SPDX-License-Identifier: Apache-2.0
"""`joulemap import`, the whole command: from its start to its end, with what it writes and what the disk is waited for."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

# A small process of its own starts the command: a child's peak counts from that of the process it was forked from.
RUNNER = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}))
"""


def import_once(program: Path, format_name: str, trace: Path) -> dict:
    """How long it took ("seconds") and its memory ("peak_bytes"). What it wrote is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "import", format_name, trace, "-o", Path(folder) / "run.joule"]
        runner = [sys.executable, "-I", "-S", "-c", RUNNER]
        done = subprocess.run([*runner, *map(str, command)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)
