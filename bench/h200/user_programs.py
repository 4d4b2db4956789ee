#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each program of user_program_set.py alone and under `joulemap record`, and prints what a user would see.

    make dist
    python3 bench/h200/user_programs.py --joulemap build/dist/joulemap-*/bin/joulemap --markdown OUT.md --json OUT.json

For each program: results equal bit by bit, phases found, share of the GPU's energy that has an owner (rows other than
`background`), share that is idle, time lost, and the notes printed. `attach` runs without a recorder around it and
records itself with `jm.attach`. Exits 1 when a result differs, an expected phase is missing, a recording is missing, or
energy of the program's own process is called background. About 45 s a program. With --rounds N each runs N times alone and
N times recorded, in turn, and the time lost is that of the medians. With --beside N the first runs alone take place before
all recordings, N at once: half the time, and no figure of the time lost.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402
from user_program_set import PROGRAMS  # noqa: E402

TRAINING_PHASES = {"forward", "backward", "optimizer"}
PHASES = {name: TRAINING_PHASES for name in PROGRAMS}
PHASES.update({name: {"forward"} for name in ("small_llm_inference", "large_llm_inference", "generate", "server")})
PHASES["jax"] = {"forward", "backward"}
# Largest share of GPU energy that may be background when no other process uses the GPU.
MAX_BACKGROUND_SHARE = 0.01
# Least share of GPU energy with an owner: what ran, or what the GPU waited for.
MIN_ATTRIBUTED_SHARE = 0.98


def run(command: list[str], **variables: str) -> tuple[subprocess.CompletedProcess, dict]:
    """Returns a finished process and the content of its last line of JSON."""
    completed_process = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env={**os.environ, **variables}, check=False
    )
    lines = [line for line in completed_process.stdout.splitlines() if line.startswith('{"checksum"')]
    return completed_process, json.loads(lines[-1]) if lines else {}


def report(joulemap: str, file: Path, level: str) -> dict:
    command = [joulemap, "report", "--json", "--by", level, str(file)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout)


class Energy:
    """Shares of the measured GPU energy of a recording by destination."""

    def __init__(self, joulemap: str, file: Path) -> None:
        self.layers = report(joulemap, file, "layer")
        rows = [row for row in self.layers["rows"] if row["device"].startswith("gpu")]
        gpus = [domain for domain in self.layers["domains"] if domain["name"].startswith("gpu") and domain["counted"]]
        total_j = sum(gpu_domain["measured_j"] or 0 for gpu_domain in gpus)
        background_j = sum(row["energy_j"] or 0 for row in rows if row["path"][:1] == ["background"])
        owned_j = sum(row["energy_j"] or 0 for row in rows) - background_j
        self.total_j = total_j
        self.owned, self.background = owned_j / total_j, background_j / total_j
        self.idle = (self.layers["idle_j"] or 0) / total_j
        self.waiting: dict[str, float] = {}  # cause -> share of energy while the GPU waited
        for entry in self.layers["idle"]:
            if entry["device"].startswith("gpu"):
                share = (entry["energy_j"] or 0) / total_j
                self.waiting[entry["cause"]] = self.waiting.get(entry["cause"], 0) + share
        self.attributed_share = (
            self.owned + self.background + sum(self.waiting.values()) - self.waiting.get("unknown", 0)
        )
        self.paths = {element for row in self.layers["rows"] for element in row["path"]}
        self.costliest = sorted(rows, key=lambda row: -(row["energy_j"] or 0))[:5]


def record(joulemap: str, name: str, command: list[str], file: Path) -> tuple[subprocess.CompletedProcess, dict]:
    if name == "attach":
        package = Path(joulemap).resolve().parent.parent / "python"
        return run(command, JOULEMAP_ATTACH_TO=str(file), PYTHONPATH=f"{package}:{os.environ.get('PYTHONPATH', '')}")
    return run([joulemap, "record", "-o", str(file), "--", *command])


def relative_slowdown(pairs: list[tuple[dict, dict]], key: str) -> float | None:
    """Relative difference of medians, recorded against alone; `key`: step_s (median step of a run) or mean_s (mean
    step)."""
    times = [(unrecorded_run[key], recorded_run[key]) for unrecorded_run, recorded_run in pairs]
    if not all(unrecorded_step_s and recorded_step_s for unrecorded_step_s, recorded_step_s in times):
        return None
    unrecorded_s, recorded_s = (statistics.median(column) for column in zip(*times))
    return recorded_s / unrecorded_s - 1


def make_command(name: str, options: argparse.Namespace) -> list[str]:
    return [sys.executable, str(SCRIPT_FOLDER / "user_program_set.py"), name, "--seconds", str(options.seconds)]


def examine_program(
    joulemap: str,
    name: str,
    options: argparse.Namespace,
    folder: Path,
    findings: Findings,
    unrecorded_run: tuple[subprocess.CompletedProcess, dict] | None,
) -> dict:
    """Compares an unrecorded run, made now unless one is given, with a recorded one."""
    file, command = folder / f"{name}.joule", make_command(name, options)
    unrecorded_process, unrecorded_result = unrecorded_run or run(command)
    if not unrecorded_result:
        findings.bar(f"{name}: runs alone", False)
        return {"name": name, "failure": f"the program alone: {unrecorded_process.stderr[-600:]}"}
    recorded_process, result = record(joulemap, name, command, file)
    if not result or not file.exists():
        findings.bar(f"{name}: recorded", False)
        return {
            "name": name,
            "failure": f"recorded: exit {recorded_process.returncode}: {recorded_process.stderr[-900:]}",
        }
    energy = Energy(joulemap, file)
    has_equal_checksum = unrecorded_result["checksum"] == result["checksum"]
    repeats = has_equal_checksum or run(command)[1].get("checksum") == unrecorded_result["checksum"]
    missing_phases = sorted(PHASES[name] - energy.paths)
    findings.bar(f"{name}: bit-equal", has_equal_checksum or not repeats)
    findings.bar(f"{name}: phases {missing_phases}", not missing_phases)
    findings.bar(f"{name}: background", energy.background <= MAX_BACKGROUND_SHARE)
    findings.bar(f"{name}: owner of {energy.attributed_share:.3f}", energy.attributed_share >= MIN_ATTRIBUTED_SHARE)
    pairs = [(unrecorded_result, result)]
    pairs += [(run(command)[1], record(joulemap, name, command, file)[1]) for _ in range(options.rounds - 1)]
    return {
        "name": name,
        "equal": "yes" if has_equal_checksum else "**no**" if repeats else "not repeatable alone",
        "missing_phases": missing_phases,
        "owned": energy.owned,
        "with_owner": energy.attributed_share,
        "waiting": energy.waiting,
        "idle": energy.idle,
        "background": energy.background,
        "total_j": energy.total_j,
        "steps": result["steps"],
        "time_lost": None if unrecorded_run else relative_slowdown(pairs, "step_s"),
        "mean_time_lost": None if unrecorded_run else relative_slowdown(pairs, "mean_s"),
        "step_times_s": [[(run_result["step_s"], run_result["mean_s"]) for run_result in pair] for pair in pairs],
        "diagnostics": energy.layers["diagnostics"],
        "notes": recorded_process.stderr[-3000:],
        "bytes": file.stat().st_size,
        "costliest": [
            [row["path"], row["energy_j"], row["low_j"], row["high_j"], row["basis"]] for row in energy.costliest
        ],
    }


def run_all_unrecorded(
    names: list[str], options: argparse.Namespace
) -> dict[str, tuple[subprocess.CompletedProcess, dict]]:
    def run_one(name: str) -> tuple[str, tuple[subprocess.CompletedProcess, dict]]:
        try:
            return name, run(make_command(name, options))
        except (subprocess.SubprocessError, ValueError) as error:
            return name, (subprocess.CompletedProcess(name, 1, "", repr(error)), {})

    with ThreadPoolExecutor(options.beside) as pool:
        return dict(pool.map(run_one, names))


def table(findings: Findings, results: list[dict]) -> None:
    lines = []
    for result in results:
        if "failure" in result:
            lines.append([result["name"], "**failed**", *[""] * 9])
            continue
        slowdown_cells = [
            "-" if value is None else f"{100 * value:+.1f} %"
            for value in (result["time_lost"], result["mean_time_lost"])
        ]
        shares = [f"{result[key]:.2f}" for key in ("owned", "idle", "with_owner")]
        waiting = sorted(result["waiting"].items(), key=lambda entry: -entry[1])
        shares.append(", ".join(f"{cause} {share:.2f}" for cause, share in waiting if share >= 0.01))
        codes = ", ".join(sorted({entry["code"] for entry in result["diagnostics"]})) or "none"
        phases = ", ".join(result["missing_phases"])
        lines.append(
            [result["name"], result["equal"], phases or "all", *shares, *slowdown_cells, str(result["steps"]), codes]
        )
    shares = ["ran", "idle", "with an owner", "idle waiting for"]
    findings.table(["program", "bit-equal", "phases", *shares, "median step", "mean step", "steps", "notes"], lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the recordings")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each program after its warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="runs alone and recorded of each program, in turn")
    parser.add_argument("--beside", type=int, default=0, help="unrecorded runs at once, before all recordings")
    parser.add_argument("--programs", default="", help="some of them, with commas between")
    options = parser.parse_args()
    findings, results = Findings(), []
    names = [name for name in options.programs.split(",") if name] or list(PROGRAMS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        unrecorded_runs = run_all_unrecorded(names, options) if options.beside else {}
        for name in names:
            try:
                results.append(
                    examine_program(
                        str(options.joulemap.resolve()), name, options, folder, findings, unrecorded_runs.get(name)
                    )
                )
            except (subprocess.SubprocessError, ValueError, LookupError, ArithmeticError) as error:
                findings.bar(f"{name}: examined", False)
                results.append({"name": name, "failure": repr(error)[-900:]})
            print(json.dumps(results[-1])[:600], file=sys.stderr, flush=True)
            if options.json:  # written after each program, so that a time limit loses no results
                options.json.write_text(json.dumps(results, indent=1))
    table(findings, results)
    for result in results:
        if "failure" in result:
            findings.add_line(f"- {result['name']}: {result['failure']}")
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
