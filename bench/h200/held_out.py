#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learns powers of kernels from half of a training and predicts the counter's energy in the other half.

    make dist
    python3 bench/h200/held_out.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR --collect-only     about 45 s
    python3 bench/h200/held_out.py --joulemap J --folder DIR --predict build/bin/held_out --markdown OUT.md

held_out_load.py runs the training that is recorded. build/bin/held_out (bench/attribution/held_out.cc) fits on every
second block of `--block-s` seconds. It predicts the counter in intervals of `--interval-s` of the other blocks, which
are held out; then the roles swap. Baselines: two powers, one for kernel time and one for the rest (as if all kernel
classes had the same power), and the last power by the counter before the block (`hold`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from findings import Findings
from mixtures import binomial_interval
from recordings import (
    SCRIPT_FOLDER,
    INVALID_DATA_ERRORS,
    Recording,
    collect,
    doubled,
    run_study,
    make_study_parser,
    read_load_log,
    why,
)
from study_statistics import Interval, bootstrap, verdict_above

NAME = "held-out"
LOAD_NAMES = ["steady", "varied"]
PREDICTION_KEYS = {"regress": "predicted_j", "by time": "by_time_j", "hold": "held_j"}
MIN_COVERAGE, MAX_COVERAGE = 0.8, 0.97


def compute_covering_span(entries: list[dict]) -> dict:
    return {
        "begin_ns": min(log_entry["begin_ns"] for log_entry in entries),
        "end_ns": max(log_entry["end_ns"] for log_entry in entries),
    }


def run_prediction(options, file: Path, recording: Recording, span: dict) -> list[dict]:
    edges = [f"{(span[edge] - recording.began_ns) * 1e-9:.6f}" for edge in ("begin_ns", "end_ns")]
    command = [str(options.predict), str(file), *edges, str(options.block_s), str(options.interval_s)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if process.returncode != 0:
        raise ValueError(process.stderr.strip() or f"{options.predict.name} exited with {process.returncode}")
    return json.loads(process.stdout)["intervals"]


def compute_relative_errors(intervals: list[dict], key: str) -> list[float]:
    return [interval[key] / interval["measured_j"] - 1 for interval in intervals if interval["measured_j"] > 0]


def compute_rms_interval(errors: list[float]) -> Interval:
    return bootstrap(errors, doubled.rms)


def write_load_section(findings: Findings, load: str, intervals: list[dict]) -> None:
    findings.add_line(f"\n### {load}: {len(intervals)} intervals\n")
    rms = {
        predictor_name: compute_rms_interval(compute_relative_errors(intervals, key))
        for predictor_name, key in PREDICTION_KEYS.items()
    }
    findings.table(
        ["way", "RMS error (90 %)", "mean error"],
        [
            [
                predictor_name,
                rms_interval.as_text(".2%"),
                f"{sum(compute_relative_errors(intervals, PREDICTION_KEYS[predictor_name])) / len(intervals):+.2%}",
            ]
            for predictor_name, rms_interval in rms.items()
        ],
    )
    covered_count = sum(interval["low_j"] <= interval["measured_j"] <= interval["high_j"] for interval in intervals)
    low, high = binomial_interval(covered_count, len(intervals))
    coverage = covered_count / len(intervals)
    bar_verdict = findings.bar(f"coverage, {load}", MIN_COVERAGE <= coverage <= MAX_COVERAGE or low <= 0.9 <= high)
    widths = sorted((interval["high_j"] - interval["low_j"]) / 2 / interval["measured_j"] for interval in intervals)
    findings.add_line(
        f"90 % intervals hold {coverage:.1%} of {len(intervals)} (95 %: {low:.1%} to {high:.1%}; {MIN_COVERAGE:.0%} to "
        f"{MAX_COVERAGE:.0%} wanted: {bar_verdict}); half of them are narrower than ±{widths[len(widths) // 2]:.1%}."
    )
    for baseline_predictor in ("by time", "hold"):
        rms_difference = bootstrap(
            intervals,
            lambda resampled_intervals: (
                doubled.rms(compute_relative_errors(resampled_intervals, PREDICTION_KEYS[baseline_predictor]))
                - doubled.rms(compute_relative_errors(resampled_intervals, PREDICTION_KEYS["regress"]))
            ),
        )
        findings.add_line(
            f"\nThat powers of kernels predict better than `{baseline_predictor}`: **{verdict_above(rms_difference, 0.0)}** "
            f"(RMS errors differ by {rms_difference.as_text('+.2%')})."
        )


def analyse_recordings(options, findings: Findings) -> None:
    file = options.folder / f"{NAME}.joule"
    process, recording = read_load_log(options.folder, NAME), Recording(str(options.joulemap.resolve()), file)
    findings.add_line(f"{process['network']}; blocks of {options.block_s:g} s, intervals of {options.interval_s:g} s.")
    for load in LOAD_NAMES:
        entries = [log_entry for log_entry in process["entries"] if log_entry["load"] == load]
        try:
            if not entries:
                raise ValueError("nothing was collected")
            write_load_section(findings, load, run_prediction(options, file, recording, compute_covering_span(entries)))
        except INVALID_DATA_ERRORS as error:
            findings.add_line(f"\n### {load}\n\n**Not analysed**: {why(error)}")
            findings.missed.append(load)


def main() -> int:
    parser = make_study_parser(__doc__, 45)
    parser.add_argument("--predict", type=Path, default=SCRIPT_FOLDER.parent.parent / "build" / "bin" / "held_out")
    parser.add_argument("--block-s", type=float, default=2.2)
    parser.add_argument("--interval-s", type=float, default=0.5)
    options = parser.parse_args()
    load = [str(SCRIPT_FOLDER / "held_out_load.py"), *(["--tiny"] if options.device == "cpu" else [])]
    record = ["--trace", "full", "--period", "100", "--no-learn"]
    return run_study(
        options, lambda: [] if collect(options, NAME, load, options.seconds, *record) else [NAME], analyse_recordings
    )


if __name__ == "__main__":
    sys.exit(main())
