# SPDX-License-Identifier: Apache-2.0
"""Result types of the benchmark, and their formatting for a terminal and as Markdown."""

import statistics
import textwrap
from dataclasses import dataclass, field
from typing import List, Sequence

TEXT_WIDTH = 110


@dataclass
class Table:
    """A table of formatted cells; the first column names the row."""

    title: str
    columns: List[str]
    rows: List[List[str]]


@dataclass
class Bar:
    """A requirement that joulemap must meet."""

    what: str
    limit: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        return "met" if self.met else "NOT MET"


@dataclass
class ReportSection:
    """One formatted part of the benchmark."""

    title: str
    introduction: str
    tables: List[Table]
    notes: List[str] = field(default_factory=list)
    bars: List[Bar] = field(default_factory=list)
    unfavourable_results: List[str] = field(
        default_factory=list
    )  # unfavourable results of joulemap, with or without a bar


def median_and_half_range(values: Sequence[float], form: str) -> str:
    """Median, and half of the range: "+0.12 +-0.06" for "{:+.2f}"."""
    half_range = (max(values) - min(values)) / 2
    return f"{form.format(statistics.median(values))} +-{form.replace('+', '').format(half_range)}"


def median_and_quartiles(values: Sequence[float], form: str) -> str:
    """Median and quartiles, for many values with outliers."""
    low, median_value, high = statistics.quantiles(values, n=4)
    return f"{form.format(median_value)} ({form.format(low)} to {form.format(high)})"


def format_list(texts: Sequence[str]) -> str:
    """Formats a list for the terminal."""
    return "\n".join(textwrap.fill(text, TEXT_WIDTH, initial_indent="  - ", subsequent_indent="    ") for text in texts)


def bars_table(bars: List[Bar]) -> Table:
    """All bars in one table."""
    rows = [
        [acceptance_bar.what, acceptance_bar.limit, acceptance_bar.measured, acceptance_bar.verdict]
        for acceptance_bar in bars
    ]
    return Table("What joulemap has to keep to", ["bar", "limit", "measured", "verdict"], rows)


def table_as_text(table: Table) -> str:
    """Aligned columns, the first to the left and the others to the right."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.columns))]

    def aligned(cells: List[str]) -> str:
        right_aligned_cells = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "  " + "  ".join([cells[0].ljust(widths[0]), *right_aligned_cells]).rstrip()

    rule = "  " + "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([f"  {table.title}", "", aligned(table.columns), rule, *map(aligned, table.rows)])


def table_as_markdown(table: Table) -> str:
    """Formats a table for docs/."""

    def line(cells: List[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|---|" + "---:|" * (len(table.columns) - 1)
    return "\n".join([f"**{table.title}**", "", line(table.columns), rule, *map(line, table.rows)])


def section_as_text(section: ReportSection) -> str:
    """A section for the terminal."""
    parts = [
        section.title.upper(),
        textwrap.fill(section.introduction, TEXT_WIDTH),
        *map(table_as_text, section.tables),
    ]
    if section.notes:
        parts.append(format_list(section.notes))
    return "\n\n".join(parts)


def section_as_markdown(section: ReportSection) -> str:
    """A section for docs/."""
    parts = [f"## {section.title}", section.introduction, *map(table_as_markdown, section.tables)]
    if section.notes:
        parts.append("\n".join(f"- {note}" for note in section.notes))
    return "\n\n".join(parts)
