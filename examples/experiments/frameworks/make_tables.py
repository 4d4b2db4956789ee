# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of README.md from results/: means of cells, and verdicts over all networks."""

from __future__ import annotations

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REFERENCES = {"cpu": "pytorch", "h200": "pytorch-eager"}
Cells = dict[tuple[str, str], dict[str, float]]  # means of metrics by network and framework


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


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


def make_tables(plan: str) -> str:
    effects = read_csv(FOLDER / "results" / f"{plan}-effects.csv")
    verdicts = [f"- {row['verdict']}" for row in effects]
    return "\n".join([*make_cell_table(plan), "", "Verdicts over all networks:", "", *verdicts])


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
