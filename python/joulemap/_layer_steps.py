# SPDX-License-Identifier: Apache-2.0
"""LayerSteps: the energy of each layer in each step, in joules. One column per layer and pass, one row per step.
Unknown values are None, never 0."""

from __future__ import annotations

import csv
import os
from typing import Any, Callable, Iterable, Sequence, Union

from ._ledger import import_optional
from ._library import JoulemapError
from ._output import escape_csv_cell, replace_file_atomically

Path = Union[str, "os.PathLike[str]"]


class LayerSteps:
    """The energy of each layer in each step, in J. Columns have names like "gpu0 train forward layer1.conv". On GPUs, a
    row is a step whose kernels were recorded individually. On CPUs, where CPU time is summed over intervals, a row is a
    point in time (`index_name` "time_s"), and values are means per call."""

    def __init__(self, rows: Iterable[dict]) -> None:
        rows = list(rows)
        has_steps = bool(rows) and all(row["step"] for row in rows)
        self.index_name = "step" if has_steps else "time_s"  # "step", or "time_s" on CPUs
        self.per = "step" if has_steps else "call"  # what a value covers: "step", or "call" on CPUs
        parse_step_or_time: Callable = int if has_steps else float
        energy_by_column: dict = {}
        for row in rows:
            column_energies = energy_by_column.setdefault(f"{row['device']} {row['path']}", {})
            column_energies[parse_step_or_time(row[self.index_name])] = float(row["energy_j"])
        self.index: list = sorted(
            {step_or_time for column_energies in energy_by_column.values() for step_or_time in column_energies}
        )  # step numbers, or times in s
        # name -> values in J; None where unknown
        self.columns: dict = {
            name: [column_energies.get(step_or_time) for step_or_time in self.index]
            for name, column_energies in energy_by_column.items()
        }

    def select_layers(self, layers: Union[None, str, Sequence[str]]) -> LayerSteps:
        """Only the columns whose names contain one of the texts."""
        substrings = [layers] if isinstance(layers, str) else list(layers or [""])
        selected_steps = LayerSteps([])
        selected_steps.index_name, selected_steps.per, selected_steps.index = self.index_name, self.per, self.index
        selected_steps.columns = {
            name: column for name, column in self.columns.items() if any(substring in name for substring in substrings)
        }
        if not selected_steps.columns:
            raise JoulemapError(f"no layer name contains {' or '.join(map(repr, substrings))}")
        return selected_steps

    def to_dicts(self) -> list:
        """The rows as dictionaries."""
        rows = zip(self.index, *self.columns.values())
        return [dict(zip((self.index_name, *self.columns), row)) for row in rows]

    def to_pandas(self) -> Any:
        """A DataFrame indexed by step (or time); needs pandas."""
        pandas = import_optional("pandas")
        return pandas.DataFrame(self.columns, index=pandas.Index(self.index, name=self.index_name), dtype="float64")

    def to_arrow(self) -> Any:
        """A pyarrow.Table; needs pyarrow."""
        pyarrow = import_optional("pyarrow")
        return pyarrow.table({self.index_name: self.index, **self.columns})

    def to_parquet(self, path: Path) -> None:
        """Writes the table as Parquet; needs pyarrow."""
        arrow_table = self.to_arrow()
        with replace_file_atomically(path) as temporary_path:
            import_optional("pyarrow.parquet").write_table(arrow_table, temporary_path)

    def to_csv(self, path: Path) -> None:
        """Writes the table as CSV."""
        with (
            replace_file_atomically(path) as temporary_path,
            open(temporary_path, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(map(escape_csv_cell, [self.index_name, *self.columns]))
            writer.writerows(zip(self.index, *self.columns.values()))

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"<LayerSteps: {len(self.columns)} layers, {len(self.index)} {'steps' if self.per == 'step' else 'moments'}>"
