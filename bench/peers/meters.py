# SPDX-License-Identifier: Apache-2.0
"""Meters with the interface that the scene uses: joulemap, and the peers behind agent.py, with the same four calls.

send_* and await_* are separate so that all meters open and close their windows at the same time, without waiting for
one another.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

from machine import SCRIPT_FOLDER, JOULEMAP_PROGRAM


def cpu_s(pid: int) -> float:
    """CPU time of a process with all its threads, including ended ones, s."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3), CPUCLOCK_SCHED
    except OSError:
        return 0.0


def list_process_tree(pid: int) -> List[int]:
    """Returns a process and all its descendants."""
    parents: Dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
                parents[int(entry)] = int(fields.rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # the process has just ended
    tree_pids: Set[int] = {pid}
    while True:
        new_child_pids = {child for child, parent in parents.items() if parent in tree_pids} - tree_pids
        if not new_child_pids:
            return sorted(tree_pids)
        tree_pids |= new_child_pids


class JoulemapMeter:
    """joulemap stat around a shell that only waits: the window lasts as long as the shell."""

    def __init__(self, name: str, options: List[str], folder: Path) -> None:
        self.name = name
        self._options = options
        self._output_path = folder / f"{name.replace(' ', '-')}.json"
        self._process: Optional["subprocess.Popen[str]"] = None

    def prepare(self) -> None:
        """Does nothing: a command cannot start before its window."""

    def send_begin(self) -> None:
        self._output_path.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [str(JOULEMAP_PROGRAM), "stat", *self._options, "--json", "-o", str(self._output_path), "--"]
            + ["/bin/sh", "-c", "echo begun; read -r line"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_begun(self) -> None:
        assert self._process and self._process.stdout
        self._process.stdout.readline()

    def send_end(self) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write("end\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # joulemap has failed; its output comes with the result

    def wait_for_result(self) -> Dict[str, Any]:
        assert self._process
        _, words = self._process.communicate(timeout=30)
        if self._process.returncode != 0 or not self._output_path.exists():
            return {"error": f"exit code {self._process.returncode}: {words.strip()}"}
        document = json.loads(self._output_path.read_text(encoding="utf-8"))
        run = document["runs"][0]
        domains = {domain["name"]: domain for domain in run["domains"]}
        package, dram = domains.get("package-0", {}), domains.get("dram-0", {})
        begin_ns = run["start_monotonic_ns"]
        return {
            "package_j": package.get("joules"),
            "package_uncertainty_j": package.get("uncertainty_j"),
            "dram_j": dram.get("joules"),
            "begin_ns": begin_ns,
            "end_ns": begin_ns + round(run["elapsed_s"] * 1e9),
            "overhead": run["overhead"],
            "messages": [note["message"] for note in run["diagnostics"] + document["diagnostics"]],
        }

    def pids(self) -> List[int]:
        """joulemap itself; the shell is the command, not the meter."""
        return [self._process.pid] if self._process else []

    def close(self) -> None:
        """Does nothing: no process is left."""


class MeterAgent:
    """A peer in its own Python process."""

    def __init__(self, name: str, peer: str, settings: Dict[str, Any], log: Path) -> None:
        self.name = name
        # HOME is the log folder, so that the peer finds no configuration.
        environment = {**os.environ, "HOME": str(log.parent), "PYTHONWARNINGS": "ignore"}
        self._log = log.open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT_FOLDER / "agent.py"), peer, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            cwd=log.parent,
        )
        self._pids = [self._process.pid]

    def prepare(self) -> None:
        self._send_request("prepare")
        self._answer()
        # Found before the window, because the search takes milliseconds.
        self._pids = list_process_tree(self._process.pid)

    def send_begin(self) -> None:
        self._send_request("begin")

    def wait_until_begun(self) -> None:
        self._answer()

    def send_end(self) -> None:
        self._send_request("end")

    def wait_for_result(self) -> Dict[str, Any]:
        return self._answer()

    def pids(self) -> List[int]:
        """The process and the helper processes that existed at the end of prepare()."""
        return self._pids

    def close(self) -> None:
        try:
            self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()

    def _send_request(self, task: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(task + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer contains the failure

    def _answer(self) -> Dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with {self._process.wait()}"}
