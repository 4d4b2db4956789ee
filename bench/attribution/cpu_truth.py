#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well `joulemap report` attributes CPU energy to operations beside a noisy neighbour.

    PYTHON bench/attribution/cpu_truth.py [--rounds 5] [--seconds 60] [--json FILE]

A real PyTorch training runs on the simulated machine, whose RAPL counters advance with the CPU time of real processes.
Each operation has its own power: random in every round, between 0.6 and 1.5 times the usual. A neighbour process comes
and goes. The true energy of each operation is the simulator's sum; no meter is involved. The counters advance every 2
ms: the simulator's own CPU time has no power, but the recorder sees it as that of another process. Needs root, like
the benchmarks of the peers. Exit codes: 0 all bars are met, 1 some are not, 77 the simulated machine is not permitted
here.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
from bisect import bisect_left
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER.parent / "peers"))
from announced_training_names import NEIGHBOUR_OPERATION, OPERATION_NAMES, find_row_operation  # noqa: E402  in this folder
from machine import (  # noqa: E402  found through the path above
    EXIT_NOT_PERMITTED,
    JOULEMAP_PROGRAM,
    PROGRAMS,
    NotPermittedError,
    run_on_simulated_machine,
    scratch_folder,
)

MIN_ENERGY_SHARE = 0.02  # operations below this share of the training's energy are not evaluated individually
MAX_RMS_ERROR = 0.08
MAX_BACKGROUND_ERROR = 0.05
ATTRIBUTION_MODES = {"regress": "regressed", "integral": "by CPU time"}


class ComparedOperation(NamedTuple):
    """One operation of one round: its true energy and the reported one."""

    operation: str
    true_j: float
    said_j: float
    low_j: Optional[float]
    high_j: Optional[float]
    share: float
    basis: str

    @property
    def error(self) -> float:
        """Relative error."""
        return self.said_j / self.true_j - 1

    @property
    def is_truth_in_interval(self) -> bool:
        """Whether the interval covers the true value."""
        return self.low_j is not None and self.high_j is not None and self.low_j <= self.true_j <= self.high_j


class OperationTruthLog:
    """truth_operations.csv: cumulative energy of each operation over time."""

    def __init__(self, path: Path) -> None:
        """Reads the whole file."""
        lines = path.read_text(encoding="ascii").split("\n")
        self._columns = {name: number for number, name in enumerate(lines[0].split(","))}
        self._rows = [[float(word) for word in line.split(",")] for line in lines[1:-1]]
        self._times_ns = [row[0] for row in self._rows]

    def energy_between(self, column: str, begin_ns: float, end_ns: float) -> float:
        """Energy added to a column between two times."""
        return self._interpolate_column(self._columns[column], end_ns) - self._interpolate_column(
            self._columns[column], begin_ns
        )

    def _interpolate_column(self, column: int, time_ns: float) -> float:
        next_row_index = min(max(bisect_left(self._times_ns, time_ns), 1), len(self._rows) - 1)
        before_row, after_row = self._rows[next_row_index - 1], self._rows[next_row_index]
        share = (time_ns - before_row[0]) / (after_row[0] - before_row[0])
        return before_row[column] + min(max(share, 0.0), 1.0) * (after_row[column] - before_row[column])


def run_inside_machine(folder: Path, seconds: float, seed: int) -> None:
    """Runs on the simulated machine: the neighbour and the recorded training."""
    files = [str(folder / "page"), str(folder / "kinds")]
    neighbour = subprocess.Popen([sys.executable, str(SCRIPT_FOLDER / "noisy_neighbour.py"), *files, str(seed)])
    try:
        training = [sys.executable, str(SCRIPT_FOLDER / "announced_training.py"), *files, str(seconds)]
        environment = {**os.environ, "PYTHONPATH": str(PROGRAMS.parent / "python")}
        command = [str(JOULEMAP_PROGRAM), "record", "-o", str(folder / "run.joule"), "--", *training]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    finally:
        neighbour.kill()
        neighbour.wait()


def simulate_round(folder: Path, seconds: float, seed: int) -> OperationTruthLog:
    """Runs outside of the simulated machine: chooses this round's powers, starts the machine, and returns the true
    energies."""
    chance = random.Random(seed)
    kinds = [f"{name} {chance.uniform(0.6, 1.5):.3f} {chance.uniform(0.5, 2):.3f}\n" for name in OPERATION_NAMES]
    (folder / "kinds").write_text("".join(kinds), encoding="ascii")
    (folder / "page").write_bytes(bytes(512))
    inner_command = [sys.executable, str(Path(__file__).resolve()), "--inside", str(folder)]
    inner_command += ["--seconds", str(seconds), "--seed", str(seed)]
    options = ["--operation-kinds", str(folder / "kinds"), "--operation-page", str(folder / "page")]
    options += ["--seed", str(seed), "--period-us", "2000"]
    run_on_simulated_machine(folder / "machine", inner_command, options)
    return OperationTruthLog(folder / "machine" / "truth_operations.csv")


def report(folder: Path, mode: str) -> Dict[str, Any]:
    """Returns the report of the recording."""
    command = [str(JOULEMAP_PROGRAM), "report", str(folder / "run.joule"), "--by", "op", "--mode", mode, "--json"]
    report_json = subprocess.run(command, capture_output=True, text=True, check=True)
    result: Dict[str, Any] = json.loads(report_json.stdout)
    return result


def compare(report_json: Dict[str, Any], truth: OperationTruthLog) -> List[ComparedOperation]:
    """Compares all operations of a round; the rest of the machine is "background"."""
    begin_ns = report_json["start_monotonic_ns"]
    end_ns = begin_ns + 1e9 * report_json["elapsed_s"]
    rows: Dict[str, List[Dict[str, Any]]] = {}
    for row in report_json["rows"]:
        rows.setdefault(find_row_operation(row["path"]), []).append(row)
    true_energies_j = {
        name: truth.energy_between(f"{name}.energy_j", begin_ns, end_ns) for name in [*OPERATION_NAMES, "other"]
    }
    true_energies_j["background"] = true_energies_j.pop("other") + true_energies_j.pop(NEIGHBOUR_OPERATION)
    true_total_j = sum(joules for name, joules in true_energies_j.items() if name != "background")
    compared_operations = []
    for name, true_energy_j in true_energies_j.items():
        parts = rows.get(name, [])
        largest_row = max(
            parts, key=lambda row: row["energy_j"], default={"basis": "none", "low_j": None, "high_j": None}
        )
        said_j = sum(row["energy_j"] for row in parts)
        # Errors of several rows of one operation are correlated: their intervals scale with the largest.
        scale = said_j / largest_row["energy_j"] if parts and largest_row["energy_j"] else 1
        low_j, high_j = (
            bound if bound is None else scale * bound for bound in (largest_row["low_j"], largest_row["high_j"])
        )
        compared_operations.append(
            ComparedOperation(
                name, true_energy_j, said_j, low_j, high_j, true_energy_j / true_total_j, largest_row["basis"]
            )
        )
    return compared_operations


def evaluated_operations(compared_operations: List[ComparedOperation]) -> List[ComparedOperation]:
    """Returns the operations that are evaluated individually."""
    return [
        compared_operation
        for compared_operation in compared_operations
        if compared_operation.share >= MIN_ENERGY_SHARE
        and compared_operation.operation not in ("background", "outside")
    ]


def format_wilson_interval(hits: int, trial_count: int) -> str:
    """Formats a proportion with its 90 % interval."""
    z, p = 1.645, hits / trial_count
    centre = (p + z * z / (2 * trial_count)) / (1 + z * z / trial_count)
    half_width = (
        z / (1 + z * z / trial_count) * math.sqrt(p * (1 - p) / trial_count + z * z / (4 * trial_count * trial_count))
    )
    return f"{100 * p:.0f} % of {trial_count} ({100 * (centre - half_width):.0f} to {100 * (centre + half_width):.0f})"


def rms(errors: List[float]) -> float:
    """Root mean square."""
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def conservation_error(report_json: Dict[str, Any]) -> float:
    """Relative difference between attributed and measured energy."""
    ledger_total_j = report_json["attributed_j"] + report_json["idle_j"] + report_json["unattributed_j"]
    measured_j = report_json["measured_j"]
    return abs(ledger_total_j / measured_j - 1)


def print_round(number: int, operations_by_mode: Dict[str, List[ComparedOperation]]) -> None:
    """Prints a line for each operation."""
    print(f"round {number}")
    print(f"  {'operation':22}{'true J':>9}{'regressed':>11}{'90 %':>18}{'CPU time':>10}")
    by_time = {
        integral_operation.operation: integral_operation for integral_operation in operations_by_mode["integral"]
    }
    for compared_operation in sorted(operations_by_mode["regress"], key=lambda operation: -operation.true_j):
        if compared_operation.share < MIN_ENERGY_SHARE:
            continue
        interval = (
            "unknown"
            if compared_operation.low_j is None
            else f"{compared_operation.low_j:.0f} .. {compared_operation.high_j:.0f}"
        )
        mark = " " if compared_operation.is_truth_in_interval else "!"
        print(
            f"  {compared_operation.operation:22}{compared_operation.true_j:9.1f}"
            f"{100 * compared_operation.error:+10.1f} %{interval:>17}{mark}"
            f"{100 * by_time[compared_operation.operation].error:+8.1f} %  {compared_operation.basis}"
        )


def print_summary(rounds: List[Dict[str, List[ComparedOperation]]], max_conservation_error: float) -> int:
    """Prints the results of all rounds and compares them with the bars. Returns the exit code."""
    print(f"\n{'':30}" + "".join(f"{title:>24}" for title in ATTRIBUTION_MODES.values()))

    def line(title: str, values: List[str]) -> None:
        print(f"{title:30}" + "".join(f"{value:>24}" for value in values))

    rms_errors: Dict[str, float] = {}
    for mode in ATTRIBUTION_MODES:
        ops = [
            compared_operation
            for operations_by_mode in rounds
            for compared_operation in evaluated_operations(operations_by_mode[mode])
        ]
        rms_errors[mode] = rms([compared_operation.error for compared_operation in ops])
        background = [
            compared_operation.error
            for operations_by_mode in rounds
            for compared_operation in operations_by_mode[mode]
            if compared_operation.operation == "background"
        ]
        rms_errors[mode + " background"] = rms(background)
    line("error per operation, RMS", [f"{100 * rms_errors[mode]:.1f} %" for mode in ATTRIBUTION_MODES])
    line("error of background, RMS", [f"{100 * rms_errors[mode + ' background']:.1f} %" for mode in ATTRIBUTION_MODES])
    coverage_cells = []
    for mode in ATTRIBUTION_MODES:
        ops = [
            compared_operation
            for operations_by_mode in rounds
            for compared_operation in evaluated_operations(operations_by_mode[mode])
        ]
        coverage_cells.append(
            format_wilson_interval(sum(compared_operation.is_truth_in_interval for compared_operation in ops), len(ops))
        )
    line("90 % intervals that hold", coverage_cells)
    print(f"attributed + idle + unattributed against measured: {100 * max_conservation_error:.4f} % at worst")
    met = (
        rms_errors["regress"] <= MAX_RMS_ERROR
        and rms_errors["regress background"] <= MAX_BACKGROUND_ERROR
        and max_conservation_error < 0.001
    )
    print(
        "the bars are met" if met else "the bars are NOT met: 8 % RMS per operation, 5 % of background, 0.1 % balance"
    )
    return 0 if met else 1


def main() -> int:
    """Runs the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all comparisons")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep recordings and truths there")
    parser.add_argument("--again", action="store_true", help="compare what --keep kept, without running anything")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside_machine(options.inside, options.seconds, options.seed)
        return 0
    rounds: List[Dict[str, List[ComparedOperation]]] = []
    max_conservation_error = 0.0
    for seed in range(options.seed, options.seed + options.rounds):
        with scratch_folder("cpu") as name:
            folder = options.keep / str(seed) if options.keep else Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                truth = (
                    OperationTruthLog(folder / "machine" / "truth_operations.csv")
                    if options.again
                    else simulate_round(folder, options.seconds, seed)
                )
            except NotPermittedError as error:
                print(f"not permitted here: {error}", file=sys.stderr)
                return EXIT_NOT_PERMITTED
            report_json = {mode: report(folder, mode) for mode in ATTRIBUTION_MODES}
        rounds.append({mode: compare(report_json[mode], truth) for mode in ATTRIBUTION_MODES})
        max_conservation_error = max(
            max_conservation_error, *(conservation_error(mode_report) for mode_report in report_json.values())
        )
        print_round(seed, rounds[-1])
    if options.json:
        options.json.write_text(
            json.dumps(
                [
                    {
                        attribution_mode: [
                            compared_operation._asdict() for compared_operation in operations_by_mode[attribution_mode]
                        ]
                        for attribution_mode in ATTRIBUTION_MODES
                    }
                    for operations_by_mode in rounds
                ]
            )
        )
    return print_summary(rounds, max_conservation_error)


if __name__ == "__main__":
    sys.exit(main())
