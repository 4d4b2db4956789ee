# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README.md from results/: energies of cells, and verdicts over all combinations."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from result_tables import read_csv, write_tables

REFERENCE = ("fp32", "eager")
Cells = dict[tuple[str, ...], dict[str, float]]  # means of metrics by network, precision and execution


def read_cells(file: Path) -> Cells:
    cells: Cells = {}
    for row in read_csv(file):
        key = (row["network"], row["precision"], row["execution"])
        cells.setdefault(key, {})[row["metric"]] = float(row["mean"] or "nan")
    return cells


def describe_energy(cells: Cells, key: tuple[str, ...], metric: str) -> str:
    """Energy per call, and its ratio to fp32 eager."""
    energy_j = cells[key][metric]
    return f"{energy_j:.3g} J ({energy_j / cells[key[0], *REFERENCE][metric]:.2f} x)"


def make_cell_table(plan: str) -> list[str]:
    cells = read_cells(FOLDER / "results" / f"{plan}-cells.csv")
    lines = [
        "| network | precision | execution | training step | inference pass | preparation | error of scores |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for key, metrics in cells.items():
        energies = [describe_energy(cells, key, metric) for metric in ("training_j", "inference_j")]
        prepare_s = metrics["prepare_training_s"] + metrics["prepare_inference_s"]
        lines.append(f"| {' | '.join([*key, *energies])} | {prepare_s:.1f} s | {metrics['score_error']:.1e} |")
    return lines


if __name__ == "__main__":
    write_tables(FOLDER, make_cell_table, "combinations")
