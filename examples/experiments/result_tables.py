# SPDX-License-Identifier: Apache-2.0
"""Tables of an experiment: reads its results/ and writes them into its README.md, between the comments `<!-- cpu -->` and
`<!-- / -->`. Each experiment has its own table of cells; the verdicts are those of `joulemap experiment analyze`."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def read_verdicts(folder: Path, plan: str) -> list[str]:
    return [f"- {row['verdict']}" for row in read_csv(folder / "results" / f"{plan}-effects.csv")]


def write_tables(folder: Path, make_cell_table: Callable[[str], list[str]], combinations: str) -> None:
    """Writes the tables of each plan that has results. `make_cell_table` returns the lines of a plan's table;
    `combinations` names what verdicts are over."""
    page = folder / "README.md"
    text = page.read_text()
    for file in sorted((folder / "results").glob("*-cells.csv")):
        plan = file.name.removesuffix("-cells.csv")
        lines = [*make_cell_table(plan), "", f"Verdicts over all {combinations}:", "", *read_verdicts(folder, plan)]
        text_before_marker, _, text_after_marker = text.partition(f"<!-- {plan} -->\n")
        text = (
            f"{text_before_marker}<!-- {plan} -->\n{chr(10).join(lines)}\n"
            f"{text_after_marker[text_after_marker.index('<!-- / -->') :]}"
        )
    page.write_text(text)
