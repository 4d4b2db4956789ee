#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the time to write 100,000 TensorBoard scalars with torch's SummaryWriter, in turns.

    ninja -C build joulemap joulemap-made-recording joulemap-write-scalars
    PYTHON bench/export/scalars.py [--build build] [--rounds 5]

"writer" writes the same 100,000 scalars as torch does, one event each. "command" is the whole `joulemap export`
command. It includes the analysis of a recording of 20,000 steps and writes more than a hundred thousand scalars, which
TensorBoard's own loader counts. Results are medians over rounds; the ratio compares times per scalar.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

ROOT = Path(__file__).resolve().parent.parent.parent
SCALAR_COUNT = 100_000
STEP_COUNT = 20_000


def measure_torch_write_s(folder: Path) -> float:
    begin = time.perf_counter()
    with SummaryWriter(folder) as writer:
        for i in range(SCALAR_COUNT):
            writer.add_scalar("bench/energy_j", i * 0.5, i)
    return time.perf_counter() - begin


def measure_writer_s(program: Path, folder: Path) -> float:
    folder.mkdir()
    file = folder / "events.out.tfevents.1790000000.bench"
    return float(subprocess.run([program, file, str(SCALAR_COUNT)], check=True, capture_output=True, text=True).stdout)


def measure_export_s(program: Path, recording: Path, folder: Path) -> float:
    begin = time.perf_counter()
    subprocess.run([program, "export", recording, "--to", "tensorboard", "-o", folder], check=True)
    return time.perf_counter() - begin


def count_scalars(folder: Path) -> int:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return sum(len(events.Scalars(tag)) for tag in events.Tags()["scalars"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    binaries = options.build / "bin"
    times: dict[str, list[float]] = {"torch": [], "writer": [], "command": []}
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as temporary_folder:
        top = Path(temporary_folder)
        recording = top / "made.joule"
        subprocess.run([binaries / "joulemap-made-recording", recording, str(STEP_COUNT), "2", "1"], check=True)
        for round_number in range(options.rounds):
            folders = {name: top / f"{name}-{round_number}" for name in times}
            times["torch"].append(measure_torch_write_s(folders["torch"]))
            times["writer"].append(measure_writer_s(binaries / "joulemap-write-scalars", folders["writer"]))
            times["command"].append(measure_export_s(binaries / "joulemap", recording, folders["command"]))
        counts = {name: count_scalars(folder) for name, folder in folders.items()}
    times_per_scalar_s = {name: statistics.median(values) / counts[name] for name, values in times.items()}
    for name in times:
        print(
            f"{name:8} {counts[name]:8} scalars  {statistics.median(times[name]):8.3f} s  "
            f"{times_per_scalar_s[name] * 1e6:7.2f} us each  "
            f"{times_per_scalar_s['torch'] / times_per_scalar_s[name]:6.1f} times as fast as torch"
        )


if __name__ == "__main__":
    main()
