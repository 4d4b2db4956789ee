#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the savings that `joulemap advise` expects with those that its advice realises.

    make dist
    python3 bench/h200/advise.py --joulemap build/dist/joulemap-*/bin/joulemap [--cases data_loading,...] [--markdown OUT.md]

Each program of advise_programs.py and advise_further.py contains one known waste. It is recorded, advised, changed as
advised, and recorded again with the same number of steps. The realised saving is that of a step in steady state, by
`joulemap diff`; where a variant has no steps, that of the run without start-up, shutdown and compilation. Rules were
adjusted to the first programs; the further ones were looked at once. Healthy programs must have no finding. About 27 s a
case; goals: the realised saving lies in the stated range in 80 % of the cases, and no healthy program has a finding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from advice_results import format_result_cells  # noqa: E402
from findings import Findings  # noqa: E402

MAX_RUN_S = 180
MIN_SAVINGS_IN_RANGE = 0.8
UNCOMPARED_IDLE_CAUSES = {"startup", "shutdown", "compilation"}
CASES = ["data_loading", "launch_bound", "synchronization", "checkpoint", "host_code", "full_precision", "half_precision",
         "memory_layout", "unfused_attention", "unfused_elementwise", "unfused_optimizer", "host_copies"]  # fmt: skip
FURTHER_CASES = ["data_loading_text", "launch_bound_recurrent", "synchronization_metrics", "checkpoint_optimizer",
           "host_code_labels", "full_precision_convolutions", "half_precision_transformer", "memory_layout_resnet",
           "unfused_attention_causal", "unfused_elementwise_norms", "unfused_elementwise_convnet",
           "unfused_elementwise_attention", "unfused_optimizer_large", "host_copies_inference"]  # fmt: skip
HEALTHY_CASES = ["healthy_transformer", "healthy_convnet", "healthy_mlp", "healthy_attention", "healthy_inference"]


def record(joulemap: str, case: str, file: Path, *options: str) -> str:
    program = [sys.executable, str(SCRIPT_FOLDER / "advise_programs.py"), case, *options]
    command = [joulemap, "record", "-q", "--no-learn", "-o", str(file), "--", *program]
    completed_process = subprocess.run(command, capture_output=True, text=True, timeout=MAX_RUN_S, check=False)
    return "" if completed_process.returncode == 0 else (completed_process.stdout + completed_process.stderr)[-800:]


def ask(joulemap: str, verb: str, *arguments: object) -> dict:
    command = [joulemap, verb, *map(str, arguments), "--json"]
    completed_process = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(completed_process.stdout.rstrip().split("\n")[-1])


def sum_compared_energy_j(report: dict) -> float:
    """GPU energy of the run without start-up, shutdown and compilation."""
    rows = sum(row["energy_j"] or 0 for row in report["rows"] if row["device"].startswith("gpu"))
    idle = [entry for entry in report["idle"] if entry["device"].startswith("gpu")]
    return rows + sum(entry["energy_j"] or 0 for entry in idle if entry["cause"] not in UNCOMPARED_IDLE_CAUSES)


def compute_realised_saving(joulemap: str, before: Path, after: Path) -> float:
    """The share of the energy that the change saved."""
    difference = ask(joulemap, "diff", after, before)
    if difference["state"] == "steady":
        step_j = [difference[side]["recordings"][0]["energy_j"] for side in ("a", "b")]
        return 1 - step_j[0] / step_j[1]
    return 1 - sum_compared_energy_j(ask(joulemap, "report", after)) / sum_compared_energy_j(
        ask(joulemap, "report", before)
    )


def measure_case(joulemap: str, case: str, folder: Path, options: argparse.Namespace) -> dict:
    original_recording, fixed_recording = folder / f"{case}.joule", folder / f"{case}-fixed.joule"
    if not options.recorded and (failure := record(joulemap, case, original_recording, *options.program.split())):
        return {"case": case, "failure": failure}
    advice = ask(joulemap, "advise", original_recording)
    result = {"case": case, "findings": advice["findings"], "gpu_energy_j": advice["gpu_energy_j"]}
    if case in HEALTHY_CASES:
        return result
    if not options.recorded and (
        failure := record(joulemap, case, fixed_recording, "--fixed", *options.program.split())
    ):
        return {**result, "failure": failure}
    return {**result, "realised": compute_realised_saving(joulemap, original_recording, fixed_recording)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--cases", default=",".join(CASES + FURTHER_CASES + HEALTHY_CASES))
    parser.add_argument("--program", default="", help="further options of advise_programs.py, such as --tiny")
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
            results.append(measure_case(str(options.joulemap), case, folder, options))
            print(json.dumps(results[-1])[:1500], file=sys.stderr, flush=True)
        (folder / "results.json").write_text(json.dumps(results))
    lines = [format_result_cells(result, result.get("gpu_energy_j", 0.0)) for result in results]
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
