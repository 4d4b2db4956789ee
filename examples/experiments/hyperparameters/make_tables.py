# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README.md from results/: energies of cells, and verdicts over all combinations."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from result_tables import read_csv, write_tables

BATCHES = ["32", "128", "512"]


def describe_cell(cell: dict[str, dict[str, str]]) -> str:
    """Energy and epochs to the target; the accuracy at the limit where no training reached it."""
    target_reached_share = float(cell["reached"]["mean"])
    energy_j, epochs = float(cell["training_j"]["mean"]), float(cell["epochs"]["mean"])
    if target_reached_share == 0:
        return f"not reached: {100 * float(cell['accuracy']['mean']):.1f} % after {energy_j:.3g} J"
    text = f"{energy_j:.3g} J, {epochs:.2g} epochs"
    return text if target_reached_share == 1 else f"{text} ({100 * target_reached_share:.0f} % of the trainings)"


def make_cell_table(plan: str) -> list[str]:
    cells: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for row in read_csv(FOLDER / "results" / f"{plan}-cells.csv"):
        cells.setdefault((row["optimizer"], row["rate"], row["batch"]), {})[row["metric"]] = row
    lines = [f"| optimizer | rate | {' | '.join(f'batch {batch}' for batch in BATCHES)} |", "|---|---|---|---|---|"]
    for optimizer, rate in dict.fromkeys(key[:2] for key in cells):
        described = [describe_cell(cells[optimizer, rate, batch]) for batch in BATCHES]
        lines.append(f"| {optimizer} | {rate} | {' | '.join(described)} |")
    return lines


if __name__ == "__main__":
    write_tables(FOLDER, make_cell_table, "combinations")
