# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README.md from results/: means of cells, and verdicts over all networks."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from result_tables import read_csv, write_tables

REFERENCES = {"cpu": "pytorch", "h200": "pytorch-eager"}
Cells = dict[tuple[str, str], dict[str, float]]  # means of metrics by network and framework


def read_cells(file: Path) -> Cells:
    cells: Cells = {}
    for row in read_csv(file):
        cells.setdefault((row["network"], row["framework"]), {})[row["metric"]] = float(row["mean"] or "nan")
    return cells


def describe_steps(metrics: dict[str, float]) -> str:
    """Steps to the target; the mean includes rows that ended at the limit."""
    if metrics["reached"] == 0:
        return "not reached"
    steps = f"{metrics['steps']:.3g}"
    return steps if metrics["reached"] == 1 else f"{steps} (reached: {100 * metrics['reached']:.0f} %)"


def make_cell_table(plan: str) -> list[str]:
    """Energies have their ratio to that of eager PyTorch."""
    cells = read_cells(FOLDER / "results" / f"{plan}-cells.csv")
    lines = [
        "| network | framework | training | steps | loss | inference | quality | start-up |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (network, framework), metrics in cells.items():
        reference = cells[network, REFERENCES[plan]]
        training, inference = (
            f"{metrics[metric]:.3g} J ({metrics[metric] / reference[metric]:.2f} x)"
            for metric in ("training_j", "inference_j")
        )
        steps = describe_steps(metrics)
        quality = f"{metrics['final_loss']:.2f} | {inference} | {metrics['quality']:.2f}"
        startup = f"{metrics['startup_s']:.3g} s"
        lines.append(f"| {network} | {framework} | {training} | {steps} | {quality} | {startup} |")
    return lines


if __name__ == "__main__":
    write_tables(FOLDER, make_cell_table, "networks")
