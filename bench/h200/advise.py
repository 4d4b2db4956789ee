#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the savings that `joulemap advise` expects with those that its advice realises.

    make dist
    python3 bench/h200/advise.py --joulemap build/dist/joulemap-*/bin/joulemap [--cases data_loading,...] [--markdown OUT.md]

Each program of advise_programs.py contains one known waste. It is recorded, advised, changed as advised, and recorded
again with the same number of steps. Energies exclude start-up and shutdown, which both variants have, and compilation.
Healthy programs must have no finding. About 40 s a case; goals: the realised saving lies in the stated range in 80 % of
the cases, and no healthy program has a finding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from findings import Findings  # noqa: E402

MOST_S = 180
LEAST_IN_RANGE = 0.8
NOT_COMPARED = {"startup", "shutdown", "compilation"}
CASES = ["data_loading", "launch_bound", "synchronization", "checkpoint", "host_code", "full_precision", "half_precision",
         "memory_layout", "unfused_attention", "unfused_elementwise", "unfused_optimizer", "host_copies"]  # fmt: skip
HEALTHY = ["healthy_transformer", "healthy_convnet", "healthy_mlp", "healthy_attention", "healthy_inference"]


def record(joulemap: str, case: str, file: Path, *options: str) -> str:
    program = [sys.executable, str(HERE / "advise_programs.py"), case, *options]
    command = [joulemap, "record", "-q", "--no-learn", "-o", str(file), "--", *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-800:]


def ask(joulemap: str, verb: str, file: Path, *options: str) -> dict:
    done = subprocess.run([joulemap, verb, str(file), "--json", *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.rstrip().split("\n")[-1])


def compared_j(report: dict) -> float:
    """GPU energy of the run without start-up, shutdown and compilation."""
    rows = sum(row["energy_j"] or 0 for row in report["rows"] if row["device"].startswith("gpu"))
    idle = [entry for entry in report["idle"] if entry["device"].startswith("gpu")]
    return rows + sum(entry["energy_j"] or 0 for entry in idle if entry["cause"] not in NOT_COMPARED)


def examine(joulemap: str, case: str, folder: Path, options: list[str]) -> dict:
    before, after = folder / f"{case}.joule", folder / f"{case}-fixed.joule"
    if failure := record(joulemap, case, before, *options):
        return {"case": case, "failure": failure}
    advice = ask(joulemap, "advise", before)
    result = {"case": case, "findings": advice["findings"], "before_j": compared_j(ask(joulemap, "report", before))}
    if case in HEALTHY:
        return result
    if failure := record(joulemap, case, after, "--fixed", *options):
        return {**result, "failure": failure}
    return {**result, "after_j": compared_j(ask(joulemap, "report", after))}


def line_of(result: dict) -> list[str]:
    if "failure" in result:
        return [result["case"], "failed", *[""] * 5]
    rules = ", ".join(finding["rule"] for finding in result["findings"]) or "none"
    if "after_j" not in result:
        return [result["case"], rules, "", "", f"{result['before_j']:.0f} J", "", "yes" if rules == "none" else "no"]
    found = next((finding for finding in result["findings"] if finding["rule"] == result["case"]), None)
    realised = result["before_j"] - result["after_j"]
    result["in_range"] = found is not None and found["low_j"] <= realised <= found["high_j"]
    return [result["case"], rules, f"{found['saves_j']:.0f} J" if found else "-",
            f"{found['low_j']:.0f} to {found['high_j']:.0f} J" if found else "-", f"{result['before_j']:.0f} J",
            f"{realised:.0f} J", "yes" if result["in_range"] else "no"]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--cases", default=",".join(CASES + HEALTHY))
    parser.add_argument("--program", default="", help="further options of advise_programs.py, such as --tiny")
    parser.add_argument("--keep", type=Path, help="a folder for recordings and results")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    findings = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = []
        for case in options.cases.split(","):
            results.append(examine(str(options.joulemap), case, folder, options.program.split()))
            print(json.dumps(results[-1])[:1500], file=sys.stderr, flush=True)
        (folder / "results.json").write_text(json.dumps(results))
    lines = [line_of(result) for result in results]
    findings.table(["case", "findings", "expected", "range", "energy", "realised", "in range"], lines)
    wasteful = [result for result in results if "after_j" in result]
    if wasteful:
        share = sum(result["in_range"] for result in wasteful) / len(wasteful)
        met = findings.bar("savings in range", share >= LEAST_IN_RANGE)
        findings.add_line(f"{share:.0%} of the realised savings lie in the stated range; goal {LEAST_IN_RANGE:.0%}: {met}")
    healthy = [result for result in results if result["case"] in HEALTHY and "failure" not in result]
    if healthy:
        clean = sum(not result["findings"] for result in healthy)
        met = findings.bar("healthy programs", clean == len(healthy))
        findings.add_line(f"{clean} of {len(healthy)} healthy programs have no finding: {met}")
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
