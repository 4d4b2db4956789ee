#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of 0.2 to 2 s from a default recording of a varying load, against the energy counter read at each of its updates.

    make dist
    python3 bench/h200/window_accuracy.py --joulemap build/dist/joulemap-*/bin/joulemap --markdown OUT.md

By default `joulemap record` reads the counter every few seconds and the power history. Beside it, another process
reads the counter through NVML at each update, every 100 ms. Windows begin and end at updates, where the dense readings
are exact; `report --time` reports the same windows. The counter shows the energy up to some milliseconds before an
update. Both sides are shifted by the lag that joulemap assumes, so the lag cancels here. Needs torch for the load;
about 75 s of GPU time. Exits 1 when the root mean square error of a length is over 2 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402
from gpu_load import EnergyCounter  # noqa: E402

WINDOW_LENGTHS_S = [0.2, 0.3, 0.5, 1.0, 2.0]
MAX_RELATIVE_ERROR = 0.02
COUNTER_PERIOD_NS = 100_000_000
COUNTER_LAG_S = 0.010  # kUsualCounterLag_ns of src/energy/edge_rules.h
# When to read after an update, in ns: a read takes 4 ms, so it certainly shows this update and not the next one.
READ_DELAY_NS = 25_000_000
PHASE_LOCK_UPDATES = 25


class UpdateReader:
    """Reads the counter once after each update, with the common phase of updates found from reads around them."""

    def __init__(self, counter: EnergyCounter) -> None:
        self.counter = counter
        self.low_ns, self.high_ns = 0, COUNTER_PERIOD_NS  # bounds of an update, ns after origin_ns
        self.updates: list[tuple[int, int]] = []  # index of the update, mJ
        self.origin_ns = 0

    def find_update_phase(self) -> None:
        """Finds the time of an update from back-to-back reads. It lies after the start of the last read with the old
        value and before the end of the first read with the new one."""
        last_ns, previous_energy_mj = time.monotonic_ns(), self.counter.read_energy_mj()
        bounds = []
        while len(bounds) < PHASE_LOCK_UPDATES:
            now_ns, value, end_ns = time.monotonic_ns(), self.counter.read_energy_mj(), time.monotonic_ns()
            if value != previous_energy_mj:
                bounds.append((last_ns, end_ns))
            last_ns, previous_energy_mj = now_ns, value
        self.origin_ns = bounds[0][0]
        for low_ns, high_ns in bounds:
            shift_ns = round((low_ns - self.origin_ns) / COUNTER_PERIOD_NS) * COUNTER_PERIOD_NS
            self.low_ns = max(self.low_ns, low_ns - shift_ns - self.origin_ns)
            self.high_ns = min(self.high_ns, high_ns - shift_ns - self.origin_ns)

    def update_ns(self, number: int) -> int:
        return self.origin_ns + (self.low_ns + self.high_ns) // 2 + number * COUNTER_PERIOD_NS

    def read_after_updates(self, until_s: float) -> None:
        """Reads once after each update; a read that is too late for its update is dropped."""
        number = (time.monotonic_ns() - self.update_ns(0)) // COUNTER_PERIOD_NS + 1
        while time.monotonic() < until_s:
            wait_ns = self.update_ns(number) + READ_DELAY_NS - time.monotonic_ns()
            if wait_ns > 0:
                time.sleep(wait_ns / 1e9)
            call_begin_ns = time.monotonic_ns()
            value = self.counter.read_energy_mj()
            if call_begin_ns < self.update_ns(number + 1) - COUNTER_PERIOD_NS // 10:
                self.updates.append((number, value))
            number = max(number + 1, (time.monotonic_ns() - self.update_ns(0)) // COUNTER_PERIOD_NS + 1)


def read_densely(seconds: float, out: Path) -> None:
    reader = UpdateReader(EnergyCounter())
    reader.find_update_phase()
    reader.read_after_updates(time.monotonic() + seconds)
    updates_before_gaps = [
        number for (number, _), (next_number, _) in zip(reader.updates, reader.updates[1:]) if next_number != number + 1
    ]
    out.write_text(
        json.dumps(
            {
                "updates": [[reader.update_ns(number), joules / 1e3] for number, joules in reader.updates],
                "phase_known_to_ns": (reader.high_ns - reader.low_ns) // 2,
                "missed": len(updates_before_gaps),
            }
        )
    )


class WindowBenchmark(Findings):
    def __init__(self, joulemap: Path, folder: Path) -> None:
        super().__init__()
        self.joulemap = str(joulemap)
        self.file = folder / "varying.joule"

    def record(self, seconds: float, seed: int, load: list[str]) -> None:
        load = load or [sys.executable, SCRIPT_FOLDER / "window_accuracy_load.py", "--seconds", seconds, "--seed", seed]
        command = [self.joulemap, "record", "--trace", "off", "-o", self.file, "--", *load]
        subprocess.run([str(word) for word in command], check=True, timeout=seconds + 60)

    def report(self, *options: str) -> dict:
        command = [self.joulemap, "report", "--json", *options, str(self.file)]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(process.stdout.strip().split("\n")[-1])

    def joules(self, from_s: float, to_s: float) -> tuple[float, float]:
        report = self.report("--time", f"{from_s:.9f},{to_s:.9f}")
        gpu = next(domain for domain in report["domains"] if domain["name"] == "gpu0")
        return gpu["measured_j"], gpu["uncertainty_j"]


def draw_windows(updates: list, length_s: float, count: int, chance: random.Random) -> list[tuple[int, int, float]]:
    """Draws windows between two updates that were both read: begin, end, joules."""
    by_time = {round((at_ns - updates[0][0]) / COUNTER_PERIOD_NS): (at_ns, joules) for at_ns, joules in updates}
    periods = round(length_s * 1e9 / COUNTER_PERIOD_NS)
    begins = [number for number in by_time if number + periods in by_time]
    measured_windows = []
    for number in chance.sample(begins, min(count, len(begins))):
        (begin_ns, begin_j), (end_ns, end_j) = by_time[number], by_time[number + periods]
        measured_windows.append((begin_ns, end_ns, end_j - begin_j))
    return measured_windows


def compare(bench: WindowBenchmark, updates: list, count: int, seed: int) -> None:
    recording_report = bench.report()
    start_ns, elapsed_s = recording_report["start_monotonic_ns"], recording_report["elapsed_s"]
    recorded_updates = [
        [update_ns, joules]
        for update_ns, joules in updates
        if start_ns + 3e9 < update_ns < start_ns + (elapsed_s - 1.5) * 1e9
    ]
    chance = random.Random(seed)
    rows = []
    for length_s in WINDOW_LENGTHS_S:
        windows = draw_windows(recorded_updates, length_s, count, chance)

        def ask(window: tuple[int, int, float]) -> tuple[float, float]:
            begin_s, end_s = ((at_ns - start_ns) / 1e9 - COUNTER_LAG_S for at_ns in window[:2])
            return bench.joules(begin_s, end_s)

        with ThreadPoolExecutor(max_workers=8) as pool:
            answers = list(pool.map(ask, windows))
        errors = [joules / truth - 1 for (joules, _), (_, _, truth) in zip(answers, windows, strict=True)]
        coverage_flags = [
            abs(joules - truth) <= half_width_j
            for (joules, half_width_j), (_, _, truth) in zip(answers, windows, strict=True)
        ]
        powers = [truth / (end - begin) * 1e9 for begin, end, truth in windows]
        rms = math.sqrt(sum(error**2 for error in errors) / len(errors))
        met = bench.bar(f"{length_s} s", rms <= MAX_RELATIVE_ERROR)
        rows.append(
            [f"{length_s} s", str(len(windows)), f"{min(powers):.0f} to {max(powers):.0f} W", f"{100 * rms:.2f} %",
             f"{100 * sum(errors) / len(errors):+.2f} %", f"{100 * max(map(abs, errors)):.1f} %",
             f"{100 * sum(coverage_flags) / len(coverage_flags):.0f} %", met]
        )  # fmt: skip
    bench.table(
        ["window", "n", "mean powers", "RMS error", "mean", "largest", "inside its 90 % interval", "within 2 %"], rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path)
    parser.add_argument("--seconds", type=float, default=50, help="of the load")
    parser.add_argument("--windows", type=int, default=60, help="of each length")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--load", nargs=argparse.REMAINDER, help="another command that loads the GPU for that long")
    parser.add_argument("--dense-out", type=Path, help=argparse.SUPPRESS)  # internal: this process is the dense reader
    arguments = parser.parse_args()
    if arguments.dense_out:
        read_densely(arguments.seconds, arguments.dense_out)
        return 0
    if arguments.joulemap is None:
        parser.error("--joulemap is needed")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("JOULEMAP_DATA", folder)
        bench = WindowBenchmark(arguments.joulemap.resolve(), Path(folder))
        dense_reads_file = Path(folder) / "dense.json"
        # The load takes some seconds to import torch, and idles for a second at both ends.
        dense_s = arguments.seconds + 12
        dense_reader_process = subprocess.Popen(
            [
                sys.executable,
                str(SCRIPT_FOLDER / "window_accuracy.py"),
                "--dense-out",
                str(dense_reads_file),
                "--seconds",
                str(dense_s),
            ]
        )
        try:
            bench.record(arguments.seconds, arguments.seed, arguments.load)
            dense_reader_process.wait(timeout=60)
        finally:
            if dense_reader_process.poll() is None:
                dense_reader_process.kill()
        read = json.loads(dense_reads_file.read_text())
        bench.add_line(
            f"## Windows of a varying load: {arguments.seconds:.0f} s, seed {arguments.seed}; "
            f"{len(read['updates'])} updates read, {read['missed']} missed, "
            f"their phase known to +-{read['phase_known_to_ns'] / 1e6:.1f} ms"
        )
        compare(bench, read["updates"], arguments.windows, arguments.seed)
    return bench.conclude(arguments.markdown)


if __name__ == "__main__":
    sys.exit(main())
