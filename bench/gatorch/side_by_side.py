#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares results and overhead of GATorch and jm.attach on GATorch's own example with the real data, in turns.

    apt-get install dataset-fashion-mnist
    pip install -r bench/gatorch/requirements.txt && pip install --no-deps GATorch==0.0.2
    make build && python bench/gatorch/side_by_side.py --rounds 5

Runs on the simulated machine, whose counters both read at /sys/class/powercap and whose true energy is known; --here
runs on this machine instead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Optional

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER.parent / "peers"))
import machine  # noqa: E402  found through the path above

MEASUREMENT_TOOLS = ("nothing", "gatorch", "joulemap")


def run_tool(tool: str, options: argparse.Namespace, folder: Path) -> dict:
    """Returns the worker's output, with the true energy of its span where it is known."""
    out = folder / f"{tool}.json"
    package = machine.PROGRAMS.parent / "python"
    words = ["env", f"PYTHONPATH={package}", sys.executable, str(SCRIPT_FOLDER / "fashion_worker.py"), tool]
    words += ["--data", str(options.data), "--steps", str(options.steps), "--out", str(out)]
    if options.here:
        subprocess.run(words, check=True, timeout=1800)
        return json.loads(out.read_text())
    truth = machine.run_on_simulated_machine(folder / f"machine-{tool}", words, [])
    results = json.loads(out.read_text())
    if "begin_ns" in results:
        results["truth_j"] = sum(
            truth.joules(name, results["begin_ns"], results["end_ns"]) for name in ("package-0", "dram-0")
        )
    return results


def format_time_ratio(results: list, tool: str, time: str) -> str:
    """Ratio of step times, each round relative to its own run without a tool."""
    ratios = [
        round_result[tool][time] / round_result["nothing"][time]
        for round_result in results
        if time in round_result[tool]
    ]
    if not ratios:
        return "did not run"
    return f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})"


def joules(value: Optional[float]) -> str:
    return "" if value is None else f"{value:.4g}"


def print_gatorch(results: dict) -> None:
    print("\n| GATorch: layer and pass | joules | readings of 0 J |\n|---|---|---|")
    for name, energy_j in results["rows"].items():
        print(f"| {name} | {joules(energy_j)} | {results['zeros'][name]:.0%} |")


def print_joulemap(results: dict) -> None:
    print("\n| jm.attach: pass and layer | joules | 90 % interval | known by |\n|---|---|---|---|")
    for name, (energy_j, low_j, high_j, basis) in results["rows"].items():
        interval = f"{joules(low_j)} to {joules(high_j)}" if low_j is not None else ""
        print(f"| {name} | {joules(energy_j)} | {interval} | {basis or ''} |")
    for name, energy_j in results["unattributed"].items():
        print(f"| {name} | {joules(energy_j)} | | |")


def print_energy_sums(results: dict) -> None:
    print("\n| | says of the training | true meanwhile |\n|---|---|---|")
    gatorch, joulemap_results = results["gatorch"], results["joulemap"]
    if "rows" in gatorch:
        model = sum(value for name, value in gatorch["rows"].items() if name.startswith(("NeuralNetwork ", "loss ")))
        print(f"| GATorch, model and loss | {joules(model)} J | {joules(gatorch.get('truth_j'))} J |")
    stated_energy, true = joules(joulemap_results["joules"]), joules(joulemap_results.get("truth_j"))
    print(
        f"| jm.attach, {joulemap_results['steps']} steps and its own beginning and end | "
        f"{stated_energy} J | {true} J in the steps |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="on this machine as it is, not on a simulated one")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} is not there: apt-get install dataset-fashion-mnist")
    results = []
    for number in range(options.rounds):
        with machine.scratch_folder("gatorch") as folder:
            results.append({tool: run_tool(tool, options, Path(folder)) for tool in MEASUREMENT_TOOLS})
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    print(
        f"{options.steps} steps, {options.rounds} rounds; a step alone: {results[-1]['nothing']['step_s'] * 1e3:.2f} ms"
    )
    for tool in MEASUREMENT_TOOLS[1:]:
        print(
            f"- under {tool} a step takes {format_time_ratio(results, tool, 'step_s')} as long; "
            f"CPU time: {format_time_ratio(results, tool, 'cpu_s')}"
        )
        if "error" in results[-1][tool]:
            print(f"  it raised: {results[-1][tool]['error']}")
    distinct_weights = {
        round_result[tool].get("weights")
        for round_result in results
        for tool in MEASUREMENT_TOOLS
        if "weights" in round_result[tool]
    }
    print(f"- weights after the training: {'the same under each' if len(distinct_weights) == 1 else 'they differ'}")
    if "rows" in results[-1]["gatorch"]:
        print_gatorch(results[-1]["gatorch"])
    print_joulemap(results[-1]["joulemap"])
    print_energy_sums(results[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
