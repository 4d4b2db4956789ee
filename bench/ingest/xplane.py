#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time to read a profile of TensorFlow or JAX.

    bench/ingest/xplane.py [--build build] [--repeats 7] [PROFILE.xplane.pb ...]   # exits 1 when the bar is missed

Without a profile it generates two: one with mostly kernels, and one with mostly Python functions and internal events
of runtimes, which are ten times smaller. The best of the repeats counts: other load on the machine can only add time.
The output also shows two references. One is the time to read the bytes of the file, a lower bound for every reader.
The other is the whole `joulemap import` command: start, reading, assigning scopes, writing the recording, waiting for
the disk, exit. It has its own bar."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from whole_command import run_import
from xplane_maker import write_profile

ROOT = Path(__file__).resolve().parent.parent.parent
MIN_MB_PER_S = 200.0
MIN_TRACE_BYTES = 20_000_000  # bytes; no bar applies to smaller profiles


def read_once(program: Path, profile: Path) -> dict:
    completed_process = subprocess.run([program, "xplane", profile], capture_output=True, text=True, check=True)
    return json.loads(completed_process.stdout)


def measure_bytes_s(profile: Path) -> float:
    begin = time.perf_counter()
    profile.read_bytes()
    return time.perf_counter() - begin


def measure(programs: Path, profile: Path, repeats: int) -> bool:
    megabytes = profile.stat().st_size / 1e6
    summaries, plain_s, command_s = [], [], []
    for _ in range(repeats):
        summaries.append(read_once(programs / "trace_summary", profile))
        plain_s.append(measure_bytes_s(profile))
        command_s.append(run_import(programs / "joulemap", "xplane", profile)["seconds"])
    fastest_summary = min(summaries, key=lambda summary: summary["read_s"])
    read_mb_per_s = megabytes / fastest_summary["read_s"]
    command_mb_per_s = megabytes / min(command_s)
    is_small = profile.stat().st_size < MIN_TRACE_BYTES
    verdicts = [
        "met" if is_small or throughput_mb_per_s >= MIN_MB_PER_S else "MISSED"
        for throughput_mb_per_s in (read_mb_per_s, command_mb_per_s)
    ]
    numbers = [
        f"{megabytes:.1f}",
        fastest_summary["events_read"],
        f"{fastest_summary['read_s']:.3f}",
        f"{read_mb_per_s:.0f}",
        f"{fastest_summary['cpu_s']:.3f}",
        f"{min(plain_s):.3f}",
        f"{fastest_summary['peak_rss_bytes'] / 1e6:.0f}",
    ]
    command = [f"{min(command_s):.3f}", f"{command_mb_per_s:.0f}", verdicts[1]]
    print("| " + " | ".join(map(str, [profile.name, *numbers, verdicts[0], *command])) + " |")
    return "MISSED" not in verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("profiles", type=Path, nargs="*")
    arguments = parser.parse_args()
    print(
        "| profile | MB | events | seconds | MB/s | CPU seconds | its bytes alone, s | peak MB | bar: 200 MB/s "
        "| whole import, s | MB/s | bar: 200 MB/s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        profiles = list(arguments.profiles)
        if not profiles:
            profiles = [Path(folder) / "kernels.xplane.pb", Path(folder) / "functions.xplane.pb"]
            write_profile(profiles[0], kernels=300_000, calls=10_000)
            write_profile(profiles[1], kernels=1_000, calls=150_000)
        return 0 if all([measure(arguments.build / "bin", profile, arguments.repeats) for profile in profiles]) else 1


if __name__ == "__main__":
    sys.exit(main())
