# SPDX-License-Identifier: Apache-2.0
"""HTML of ledgers for Jupyter and other notebooks: totals, what the GPU waited for, and the tree of rows."""

from __future__ import annotations

import html
import math
from typing import Any, Optional

MAX_NOTEBOOK_ROWS = 60  # rows of a tree that are shown: a notebook file stores the HTML
TABLE_STYLE = (
    "<style>.joulemap td{text-align:right!important;padding:1px 8px;white-space:nowrap}"
    ".joulemap td:first-child,.joulemap th:first-child{text-align:left!important}"
    ".joulemap .bar{display:inline-block;height:.7em;background:#d9822b}"
    ".joulemap caption{text-align:left;caption-side:top}</style>"
)


def ledger_html(ledger: Any) -> str:
    """HTML table of a ledger, with the totals as its caption. Rows of modules include their submodules; all text is
    escaped."""
    rows = _sort_rows_as_tree(ledger)
    max_energy_j = max((_energy_or_zero(row) for row in rows), default=0.0)
    has_waiting = any(row.waiting_j is not None for row in rows)
    rows_html = "".join(_row_html(row, ledger.by, max_energy_j, has_waiting) for row in rows[:MAX_NOTEBOOK_ROWS])
    hidden_row_count = len(rows) - MAX_NOTEBOOK_ROWS
    hidden_rows_note = (
        f"<p>{hidden_row_count} more rows: print(ledger) or ledger.to_pandas()</p>" if hidden_row_count > 0 else ""
    )
    column_titles = ["device", "J", "90 % interval", *(["waiting J"] if has_waiting else []), "s", ""]
    header_html = (
        f"<tr><th>by {html.escape(ledger.by)}</th>"
        + "".join(f"<th>{column_title}</th>" for column_title in column_titles)
        + "</tr>"
    )
    return (
        f'{TABLE_STYLE}<div class="joulemap"><table><caption>{html.escape(_summary_html(ledger))}</caption>'
        f"<thead>{header_html}</thead><tbody>{rows_html}</tbody></table>{hidden_rows_note}</div>"
    )


def _sort_rows_as_tree(ledger: Any) -> list:
    """Rows in the order of a tree: GPUs first, within a device the branch with the most energy first."""
    rows = ledger.nested().rows if ledger.by in ("phase", "layer", "module", "op", "tensor") else list(ledger.rows)
    energy_by_level_j = {(row.device, _split_tree_levels(row.path, ledger.by)): _energy_or_zero(row) for row in rows}

    def tree_sort_key(row: Any) -> tuple:
        levels = _split_tree_levels(row.path, ledger.by)
        return (
            not str(row.device).startswith("gpu"),
            str(row.device),
            *(
                (-energy_by_level_j.get((row.device, levels[:depth]), 0.0), levels[:depth])
                for depth in range(1, len(levels) + 1)
            ),
        )

    return sorted(rows, key=tree_sort_key)


def _split_tree_levels(path: tuple, by: str) -> tuple:
    """The levels of the tree that lead to a row: ("train", "forward", "a.b", "op") gives ("train", "forward", "a", "b",
    "op"). By module, ("a.b",) gives ("a", "b")."""
    module_index = 0 if by == "module" else 2
    module_names = [name for module in path[module_index : module_index + 1] for name in module.split(".")]
    return (*path[:module_index], *module_names, *path[module_index + 1 :])


def _energy_or_zero(row: Any) -> float:
    return row.energy_j or 0.0


def _row_html(row: Any, by: str, max_energy_j: float, has_waiting: bool) -> str:
    levels = _split_tree_levels(row.path, by)
    energy_share = 0.0 if max_energy_j <= 0 else _energy_or_zero(row) / max_energy_j
    name_html = (
        f'<span title="{html.escape(" ".join(row.path))}">'
        f"{'&emsp;' * (len(levels) - 1)}{html.escape(levels[-1])}</span>"
    )
    interval_text = "" if row.low_j is None else f"{_number_text(row.low_j)} to {_number_text(row.high_j)}"
    waiting_cells = [_number_cell(row.waiting_j)] if has_waiting else []
    number_cells = [_number_cell(row.energy_j), interval_text, *waiting_cells, _number_cell(row.time_s)]
    row_cells = [name_html, html.escape(row.device or ""), *number_cells]
    bar_html = f'<span class="bar" style="width:{100 * energy_share:.0f}px"></span>'
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in [*row_cells, bar_html]) + "</tr>"


def _number_cell(value: Optional[float]) -> str:
    return "" if value is None else _number_text(value)


def _number_text(value: float) -> str:
    """Four significant digits, without an exponent between 0.001 and a million: 17210 instead of 1.721e+04."""
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{float(f'{value:.4g}'):.{decimals}f}"


def _summary_html(ledger: Any) -> str:
    if ledger.joules is None:
        energy_text = "energy unknown"
    else:
        interval_text = (
            "" if ledger.low_j is None else f" ({_number_text(ledger.low_j)} to {_number_text(ledger.high_j)})"
        )
        energy_text = f"{_number_text(ledger.joules)} J{interval_text} {ledger.provenance}"
    duration_text = "" if ledger.time_s is None else f" in {_number_text(ledger.time_s)} s"
    idle_text = "" if not ledger.idle_j else f"; {_number_text(ledger.idle_j)} J of it idle"
    recording_text = "" if ledger.is_complete else "; still recording"
    return f"{energy_text}{duration_text}{idle_text}{recording_text}"
