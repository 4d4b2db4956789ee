#!/usr/bin/env python3
"""Reanalyses PrEnGDL's published measurements: the numbers of docs/studies/prengdl.md.

    python3 bench/experiment/prengdl_study.py --joulemap build/bin/joulemap --data DIR [--check docs/studies/prengdl.md]

DIR contains measurements_train and measurements_inference of the artifact (github.com/stefanos1316/ICSE_2022_artifact,
data/). Prints the table of corrections and the list of flags as in the page; --check fails when the page differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

METRICS = ("package", "dram", "gpu", "time_s")
TESTS = {"wilcoxon-signed-rank": "signed-rank, pairs by number", "mann-whitney": "Mann-Whitney, unpaired"}
ADJUSTMENTS = {"none": "none", "bh": "Benjamini-Hochberg", "holm": "Holm", "bonferroni": "Bonferroni"}


def run_experiment_analysis(program: str, folder: str, adjustment: str) -> dict:
    metric_options = [word for metric in METRICS for word in ("--metric", metric)]
    command = [program, "experiment", "analyze", folder, "--json", "--adjust", adjustment, *metric_options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def corrected_p_rows(program: str, folder: str) -> list[str]:
    lines = ["| test | correction | different | of training | of inference | PyTorch significantly less, inference |"]
    lines.append("|---|---|---:|---:|---:|---:|")
    for adjustment, name in ADJUSTMENTS.items():
        comparisons = run_experiment_analysis(program, folder, adjustment)["comparisons"]
        for test, words in TESTS.items():
            test_comparisons = [comparison for comparison in comparisons if comparison["test"] == test]
            different_comparisons = [comparison for comparison in test_comparisons if comparison["different"]]
            phases = {
                phase: [comparison for comparison in different_comparisons if comparison["within"]["phase"] == phase]
                for phase in ("train", "inference")
            }
            negative_differences = [comparison for comparison in phases["inference"] if comparison["difference"] < 0]
            lines.append(
                f"| {words} | {name} | {len(different_comparisons)} of {len(test_comparisons)} "
                f"({100 * len(different_comparisons) / len(test_comparisons):.1f} %) "
                f"| {len(phases['train'])} of 24 | {len(phases['inference'])} of 24 | {len(negative_differences)} of 24 |"
            )
    return lines


def format_analysis_flags(program: str, folder: str) -> list[str]:
    return [
        f"- `{flag['code']}`: {flag['message']}" for flag in run_experiment_analysis(program, folder, "holm")["flags"]
    ]


def warm_up(program: str, folder: str) -> list[str]:
    for cell in run_experiment_analysis(program, folder, "holm")["cells"]:
        if cell["factors"] == {"phase": "inference", "model": "ncf", "framework": "TensorFlow"}:
            times = ", ".join(f"{value:.0f}" for value in cell["time_s"]["values"])
            messages = [
                flag["message"] for flag in cell["flags"] if flag["code"] == "warm_up" and "run time" in flag["message"]
            ]
            return [f"- inference of NCF with TensorFlow: {times} s; {messages[0]}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joulemap", default="build/bin/joulemap")
    parser.add_argument("--data", required=True)
    parser.add_argument("--check", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = f"{scratch}/prengdl"
        command = [arguments.joulemap, "import", "prengdl", arguments.data, "-o", folder]
        subprocess.run(command, check=True, capture_output=True)
        result_lines = [
            *corrected_p_rows(arguments.joulemap, folder),
            "",
            *format_analysis_flags(arguments.joulemap, folder),
            *warm_up(arguments.joulemap, folder),
        ]
    print("\n".join(result_lines))
    if arguments.check is None:
        return 0
    page = arguments.check.read_text().splitlines()
    missing_lines = [line for line in result_lines if line not in page]
    for line in missing_lines:
        print(f"not in {arguments.check}: {line}", file=sys.stderr)
    return 1 if missing_lines else 0


if __name__ == "__main__":
    sys.exit(main())
