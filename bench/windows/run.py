#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of a window in C++ and in Python, and the overhead of the background thread meanwhile.

bench/windows/run.py [BUILD]        # on a simulated machine; exits 1 when a bar is missed
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_CALL_NS = {"C++: begin, end and free": 500, "Python: begin and end": 1500, "Python: with measure": 1500}
CALL_COUNT = 5_000


def best_ns(call) -> float:
    """Best of many short rounds, ns: other load on the machine can only add time."""
    return min(timeit.repeat(call, number=CALL_COUNT, repeat=60)) / CALL_COUNT * 1e9


def measure_python() -> None:
    """Runs in the process on the simulated machine."""
    import time

    import joulemap as jm

    jm.start(sysroot=os.environ["JOULEMAP_SIMULATED_ROOT"], sensors="powercap")

    def with_statement() -> None:
        with jm.measure("window"):
            pass

    def begin_and_end() -> None:
        jm.end(jm.begin("window"))

    def region() -> None:
        with jm.region("region"):
            pass

    idle = time.process_time()
    time.sleep(2)
    background = (time.process_time() - idle) / 2
    rows = {
        "Python: with measure": best_ns(with_statement),
        "Python: begin and end": best_ns(begin_and_end),
        "Python: with region, not recorded": best_ns(region),
        "Python: step, not recorded": best_ns(jm.step),
    }
    print(json.dumps({"rows": rows, "background_share": background}))


def run_on_simulated_machine(build: Path, command: list[str]) -> str:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        machine = [str(build / "bin" / "joulemap-simulated-machine"), "--root", f"{folder}/machine", "--"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(build / "python"),
            "JOULEMAP_SYSROOT": f"{folder}/machine",
            "JOULEMAP_SENSORS": "powercap",
        }
        return subprocess.run([*machine, *command], env=environment, capture_output=True, text=True, check=True).stdout


def measure_peers(build: Path) -> dict[str, float | str]:
    """Measures Zeus, pyJoules and codecarbon on the same counters at /sys, which needs root."""
    rows: dict[str, float | str] = {}
    for peer in ("zeus", "pyjoules", "codecarbon"):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            machine = [
                str(build / "bin" / "joulemap-simulated-machine"),
                "--root",
                f"{folder}/machine",
                "--mount",
                "--",
            ]
            command = [sys.executable, str(Path(__file__).with_name("peer_window.py")), peer]
            environment = {**os.environ, "PYTHONWARNINGS": "ignore", "HOME": folder}
            answer = Path(folder) / "answer"
            with answer.open("w") as out:  # a file, because lingering helpers of a peer would keep a pipe open
                process = subprocess.Popen([*machine, *command], env=environment, stdout=out, start_new_session=True)
                try:
                    process.wait(timeout=90)
                except subprocess.TimeoutExpired:
                    pass
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            lines = answer.read_text().splitlines()
        rows[f"{peer}: begin and end"] = json.loads(lines[-1])["ns"] if lines else "no answer within 90 s"
    return rows


def main() -> int:
    if sys.argv[1:] == ["--inside"]:
        measure_python()
        return 0
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    lines = run_on_simulated_machine(build, [str(build / "bin" / "bench_windows")]).splitlines()
    rows = {f"C++: {row['what']}": row["ns"] for row in map(json.loads, lines)}
    python = json.loads(run_on_simulated_machine(build, [sys.executable, __file__, "--inside"]))
    rows.update(python["rows"])
    exceeded_limit_count = 0
    for name, ns in rows.items():
        max_call_ns = MAX_CALL_NS.get(name)
        exceeded_limit_count += max_call_ns is not None and ns > max_call_ns
        print(f"{name:62} {ns:8.0f} ns" + (f"   (bar {max_call_ns} ns)" if max_call_ns else ""))
    for name, ns in measure_peers(build).items():
        print(f"{name:62} {ns:8.0f} ns" if isinstance(ns, (int, float)) else f"{name:62} {ns}")
    print(f"{'the background thread and the sampler, of one CPU':62} {100 * python['background_share']:8.2f} %")
    return 1 if exceeded_limit_count else 0


if __name__ == "__main__":
    sys.exit(main())
