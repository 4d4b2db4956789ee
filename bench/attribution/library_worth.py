#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the benefit of the kernel library on real recordings: learned from some, applied to others.

    ninja -C build joulemap teach_library leave_one_out
    python3 bench/attribution/library_worth.py --folder RECORDINGS [--build build]

RECORDINGS contains mixture-A-1, -A-2, -B-3, -B-4 (.joule and .json, as bench/h200/mixtures.py stores them) and
optionally resnet50-probed.joule: training steps and then `record --probe`. The library learns from the first mixture
of each pair. The second is reported in short windows, each from its own data and the library, and compared with its
reference.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "h200"))
from mixtures import Recording, rms  # noqa: E402

GPU = "NVIDIA H200"
RECORDING_PAIRS = [("mixture-A-1", "mixture-A-2"), ("mixture-B-3", "mixture-B-4")]
PROBED_RECORDING = "resnet50-probed.joule"
MIN_ENERGY_SHARE = 0.005


class JoulemapPrograms:
    def __init__(self, build: Path) -> None:
        names = ("joulemap", "teach_library", "leave_one_out")
        self.joulemap, self.teach_library_program, self.leave = (str(build / "bin" / name) for name in names)

    def add_to_library(self, library: Path, recording: Path, *window: float) -> None:
        command = [self.teach_library_program, library, GPU, recording, *window]
        print(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout.strip())

    def report(self, recording: Path, by: str, *flags: object) -> dict:
        command = [self.joulemap, "report", "--json", "--by", by, *map(str, flags), str(recording)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class MethodErrors:
    """Errors and intervals of the same windows, by method of attribution."""

    def __init__(self) -> None:
        self.errors: dict[str, list[float]] = {}
        self.held: dict[str, list[bool]] = {}
        self.halves: dict[str, list[float]] = {}

    def add(self, method_name: str, row: dict, truth_j: float) -> None:
        self.errors.setdefault(method_name, []).append(row["energy_j"] / truth_j - 1)
        if row["low_j"] is not None:
            self.held.setdefault(method_name, []).append(row["low_j"] <= truth_j <= row["high_j"])
            self.halves.setdefault(method_name, []).append((row["high_j"] - row["low_j"]) / 2 / row["energy_j"])

    def print_table(self, title: str) -> None:
        print(f"\n{title}\n\n| | error, RMS | 90 % intervals that hold | half width, median |\n|---|---|---|---|")
        for method_name, errors in self.errors.items():
            interval_hits, halves = self.held.get(method_name, []), self.halves.get(method_name, [])
            intervals = (
                f"{statistics.fmean(interval_hits):.0%} of {len(interval_hits)} | {statistics.median(halves):.0%}"
                if interval_hits
                else " | "
            )
            print(f"| {method_name} | {rms(errors):.1%} | {intervals} |")


def compare_mixtures(programs: JoulemapPrograms, folder: Path, library: Path, window_s: float, most: int) -> None:
    method_errors = MethodErrors()
    for _, evaluated_recording in RECORDING_PAIRS:
        file = folder / f"{evaluated_recording}.joule"
        recording = Recording(programs.joulemap, file, json.loads(file.with_suffix(".json").read_text()))
        truth, _ = recording.true_powers_w()
        kernel_s = recording.kernel_s()
        kernel_j = {kind: statistics.mean(watts) * kernel_s[kind] for kind, watts in truth.items()}
        windows = recording.windows(window_s)
        for window in windows[:: max(1, len(windows) // most)]:
            time = ("--time", f"{window[0]:.6f},{window[1]:.6f}")
            for method_name, flags in (
                ("by the library", ("--library", library)),
                ("by itself", ("--library", "none")),
                ("by time", ("--mode", "integral")),
            ):
                report_rows = programs.report(file, "region", *time, *flags)["rows"]
                rows = {row["path"][-1]: row for row in report_rows if row["device"].startswith("gpu")}
                total_j = sum(row["energy_j"] for row in rows.values())
                for kind, row in rows.items():
                    if kind in kernel_j and row["energy_j"] > MIN_ENERGY_SHARE * total_j:
                        method_errors.add(method_name, row, kernel_j[kind] * row["count"])
    method_errors.print_table(f"Joules of a kind in windows of {window_s:g} s, each by its own data")


def compare_steady_loop(
    programs: JoulemapPrograms, file: Path, libraries: dict[str, Path], steps: tuple[float, float]
) -> None:
    """Compares the energy shares of layers that a report of the training steps alone gives with those that powers from
    probing give."""

    def rows(*flags: object) -> dict[tuple, dict]:
        result = programs.report(file, "layer", *flags)["rows"]
        gpu_rows = {
            tuple(row["path"]): row for row in result if row["device"].startswith("gpu") and row["path"] != ["probe"]
        }
        total_j = sum(row["energy_j"] for row in gpu_rows.values())
        return {path: {**row, "share": row["energy_j"] / total_j} for path, row in gpu_rows.items()}

    probed_rows = rows("--library", "none")
    probed_paths = {
        path for path, row in probed_rows.items() if row["basis"] in ("probed", "regressed") and row["share"] > 0.002
    }
    print(
        f"\nLayers of {file.name} whose powers were probed ({len(probed_paths)}), "
        "in its training steps alone: their shares\n"
    )
    print("| | differs from the probed, RMS | worst |\n|---|---|---|")
    for method_name, flags in [("by time", ("--library", "none"))] + [
        (n, ("--library", l)) for n, l in libraries.items()
    ]:
        training_rows = rows("--time", f"{steps[0]},{steps[1]}", *flags)
        errors = [
            training_rows[path]["share"] / probed_rows[path]["share"] - 1
            for path in probed_paths
            if path in training_rows
        ]
        weights = [probed_rows[path]["share"] for path in probed_paths if path in training_rows]
        weighted = math.sqrt(sum(weight * e * e for weight, e in zip(weights, errors)) / sum(weights))
        print(f"| {method_name} | {weighted:.1%} | {min(errors):+.0%} to {max(errors):+.0%} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--windows", default="1,2,6", help="seconds")
    parser.add_argument("--most", type=int, default=8, help="windows of each recording")
    parser.add_argument(
        "--steps", default="12,22.5", help="training steps of the probed recording, and then the probing"
    )
    options = parser.parse_args()
    programs = JoulemapPrograms(options.build.resolve())
    with tempfile.TemporaryDirectory() as temporary:
        library, probing, combined_library = (
            Path(temporary) / f"{name}.joule" for name in ("mixtures", "probing", "all")
        )
        for library_recording, evaluated_recording in RECORDING_PAIRS:
            programs.add_to_library(library, options.folder / f"{library_recording}.joule")
            for name in (library_recording, evaluated_recording):
                programs.add_to_library(combined_library, options.folder / f"{name}.joule")
        for window_s in map(float, options.windows.split(",")):
            compare_mixtures(programs, options.folder, library, window_s, options.most)
        if (options.folder / PROBED_RECORDING).exists():
            file, steps = options.folder / PROBED_RECORDING, tuple(map(float, options.steps.split(",")))
            programs.add_to_library(probing, file, steps[1], 1e6)
            programs.add_to_library(combined_library, file)
            libraries = {"by what the probing taught": probing, "by what the mixtures taught": library}
            compare_steady_loop(programs, file, libraries, steps)
        output = subprocess.run(
            [programs.leave, str(combined_library)], check=True, capture_output=True, text=True
        ).stdout
        print("\n" + output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
