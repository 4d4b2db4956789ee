#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the savings that `joulemap advise` expects for programs on a CPU with those that its advice realises.

    make build
    python3 bench/advise/cpu.py --joulemap build/bin/joulemap [--cases data_loading,...] [--markdown OUT.md]

Each program of cpu_programs.py contains one known waste. It is recorded, advised, changed as advised, and recorded again.
Energies are those of the command without other processes: where no counter is readable, Joulemap's estimate, which follows
CPU time. Both variants of a program process the same number of items.
Rules were adjusted to the first programs; the further ones were looked at once. Healthy programs must have no finding.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER.parent / "h200"))
from advice_results import format_result_cells  # noqa: E402
from findings import Findings  # noqa: E402

MAX_RUN_S = 600
MIN_SAVINGS_IN_RANGE = 0.8
CASES = ["data_loading", "unfused_optimizer", "unfused_attention", "unfused_attention_causal", "small_operations",
         "evaluation", "checkpoint"]  # fmt: skip
FURTHER_CASES = ["data_loading_text", "unfused_optimizer_embedding", "unfused_attention_encoder",
                 "small_operations_recurrent", "evaluation_convnet", "checkpoint_optimizer"]  # fmt: skip
HEALTHY_CASES = ["healthy_convnet", "healthy_mlp", "healthy_transformer", "healthy_inference", "healthy_loader"]


def record(joulemap: str, case: str, file: Path, *options: str) -> str:
    """Records a program; returns what it printed if it failed."""
    program = [sys.executable, str(SCRIPT_FOLDER / "cpu_programs.py"), case, *options]
    command = [joulemap, "record", "-q", "--no-learn", "-o", str(file), "--", *program]
    environment = {**os.environ, "PYTHONPATH": str(Path(joulemap).resolve().parent.parent / "python")}
    completed_process = subprocess.run(
        command, capture_output=True, text=True, timeout=MAX_RUN_S, check=False, env=environment
    )
    return "" if completed_process.returncode == 0 else (completed_process.stdout + completed_process.stderr)[-800:]


def ask(joulemap: str, verb: str, *arguments: object) -> dict:
    completed_process = subprocess.run(
        [joulemap, verb, *map(str, arguments), "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(completed_process.stdout.rstrip().split("\n")[-1])


def is_compared_row(row: dict) -> bool:
    return row["device"] == "cpu" and row["path"][0] not in ("background", "probe") and "compile" not in row["path"]


def command_j(report: dict) -> float:
    """Energy of the command in its phases: without start-up, and without compilation, which a longer run does not repeat."""
    return sum(row["energy_j"] or 0 for row in report["rows"] if is_compared_row(row))


def compute_realised_saving(joulemap: str, before: Path, after: Path) -> float:
    """The share of the energy that the change saved."""
    return 1 - command_j(ask(joulemap, "report", after)) / command_j(ask(joulemap, "report", before))


def measure_case(joulemap: str, case: str, folder: Path, has_recordings: bool) -> dict:
    original_recording, fixed_recording = folder / f"{case}.joule", folder / f"{case}-fixed.joule"
    if not has_recordings and (failure := record(joulemap, case, original_recording)):
        return {"case": case, "failure": failure}
    advice = ask(joulemap, "advise", original_recording)
    result = {"case": case, "findings": advice["findings"], "energy_j": advice["energy_j"]}
    if case in HEALTHY_CASES:
        return result
    if not has_recordings and (failure := record(joulemap, case, fixed_recording, "--fixed")):
        return {**result, "failure": failure}
    return {**result, "realised": compute_realised_saving(joulemap, original_recording, fixed_recording)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--cases", default=",".join(CASES + FURTHER_CASES + HEALTHY_CASES))
    parser.add_argument("--keep", type=Path, help="a folder for recordings and results")
    parser.add_argument("--recorded", action="store_true", help="use the recordings in --keep")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    findings = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = []
        for case in options.cases.split(","):
            results.append(measure_case(str(options.joulemap), case, folder, options.recorded))
            print(json.dumps(results[-1])[:1500], file=sys.stderr, flush=True)
        (folder / "results.json").write_text(json.dumps(results))
    lines = [format_result_cells(result, result.get("energy_j", 0.0)) for result in results]
    findings.table(["case", "findings", "expected", "range", "realised", "in range"], lines)
    for name, cases in (("adjusted to", CASES), ("looked at once", FURTHER_CASES)):
        wasteful_results = [result for result in results if result["case"] in cases and "realised" in result]
        if not wasteful_results:
            continue
        count = sum(result["in_range"] for result in wasteful_results)
        met = findings.bar(f"savings in range, {name}", count >= MIN_SAVINGS_IN_RANGE * len(wasteful_results))
        findings.add_line(f"programs {name}: {count} of {len(wasteful_results)} realised savings lie in the stated range; "
                          f"goal {MIN_SAVINGS_IN_RANGE:.0%}: {met}")  # fmt: skip
    healthy_results = [result for result in results if result["case"] in HEALTHY_CASES and "failure" not in result]
    if healthy_results:
        clean = sum(not result["findings"] for result in healthy_results)
        met = findings.bar("healthy programs", clean == len(healthy_results))
        findings.add_line(f"{clean} of {len(healthy_results)} healthy programs have no finding: {met}")
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
