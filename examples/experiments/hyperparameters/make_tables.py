# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README.md from results/: energies of cells, and verdicts over all combinations."""

from __future__ import annotations

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BATCHES = ["32", "128", "512"]


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def describe_cell(cell: dict[str, dict[str, str]]) -> str:
    """Energy and epochs to the target; the accuracy at the limit where no training reached it."""
    reached = float(cell["reached"]["mean"])
    energy_j, epochs = float(cell["training_j"]["mean"]), float(cell["epochs"]["mean"])
    if reached == 0:
        return f"not reached: {100 * float(cell['accuracy']['mean']):.1f} % after {energy_j:.3g} J"
    text = f"{energy_j:.3g} J, {epochs:.2g} epochs"
    return text if reached == 1 else f"{text} ({100 * reached:.0f} % of the trainings)"


def make_cell_table(plan: str) -> list[str]:
    cells: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for row in read_csv(FOLDER / "results" / f"{plan}-cells.csv"):
        cells.setdefault((row["optimizer"], row["rate"], row["batch"]), {})[row["metric"]] = row
    lines = [f"| optimizer | rate | {' | '.join(f'batch {batch}' for batch in BATCHES)} |", "|---|---|---|---|---|"]
    for optimizer, rate in dict.fromkeys(key[:2] for key in cells):
        described = [describe_cell(cells[optimizer, rate, batch]) for batch in BATCHES]
        lines.append(f"| {optimizer} | {rate} | {' | '.join(described)} |")
    return lines


def make_tables(plan: str) -> str:
    effects = read_csv(FOLDER / "results" / f"{plan}-effects.csv")
    verdicts = [f"- {row['verdict']}" for row in effects]
    return "\n".join([*make_cell_table(plan), "", "Verdicts over all combinations:", "", *verdicts])


def main() -> None:
    page = FOLDER / "README.md"
    text = page.read_text()
    for file in sorted((FOLDER / "results").glob("*-cells.csv")):
        plan = file.name.removesuffix("-cells.csv")
        before, _, rest = text.partition(f"<!-- {plan} -->\n")
        text = f"{before}<!-- {plan} -->\n{make_tables(plan)}\n{rest[rest.index('<!-- / -->') :]}"
    page.write_text(text)


if __name__ == "__main__":
    main()
