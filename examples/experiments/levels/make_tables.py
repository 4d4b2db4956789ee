# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README.md from results/: energies of cells, their first epochs, and verdicts."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from result_tables import read_csv, write_tables

FACTORS = ("depth", "classes", "batch")  # cpu.toml has no factor classes
CellKey = tuple[str, ...]


def key_of(row: dict[str, str]) -> CellKey:
    return tuple(row[factor] for factor in FACTORS if factor in row)


def read_energies(plan: str) -> dict[CellKey, dict[str, str]]:
    """Mean of the energy of the training with its interval, by cell."""
    rows = read_csv(FOLDER / "results" / f"{plan}-cells.csv")
    return {key_of(row): row for row in rows if row["metric"] == "training_j"}


def read_first_epoch_ratios(plan: str) -> dict[CellKey, float]:
    """Energy of the first epoch relative to the mean of the later ones. The last entry is what follows the training."""
    energies_j: dict[CellKey, list[float]] = {}
    for row in read_csv(FOLDER / "results" / f"{plan}-epochs.csv"):
        energies_j.setdefault(key_of(row), []).append(float(row["energy_j"] or "nan"))
    return {key: epochs[0] * (len(epochs) - 2) / sum(epochs[1:-1]) for key, epochs in energies_j.items()}


def make_cell_table(plan: str) -> list[str]:
    energies, ratios = read_energies(plan), read_first_epoch_ratios(plan)
    header = [factor for factor in FACTORS if factor in next(iter(energies.values()))]
    lines = [
        f"| {' | '.join(header)} | energy of the training | 95 % interval | first epoch / later epoch |",
        "|---:" * (len(header) + 3) + "|",
    ]
    for key, row in energies.items():
        mean_j, low_j, high_j = (float(row[name] or "nan") for name in ("mean", "low", "high"))
        numbers = [f"{mean_j:.4g} J", f"{low_j:.4g} to {high_j:.4g} J", f"{ratios[key]:.2f}"]
        lines.append(f"| {' | '.join([*key, *numbers])} |")
    return lines


if __name__ == "__main__":
    write_tables(FOLDER, make_cell_table, "combinations")
