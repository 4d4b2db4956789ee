# SPDX-License-Identifier: Apache-2.0
"""Ledger: the rows of a report, in joules, seconds and watts. Unknown values are None, never 0."""

from __future__ import annotations

import csv
import dataclasses
import os
from typing import Any, Callable, Optional, Sequence, Union

from ._energy import Diagnostic
from ._library import JoulemapError
from ._output import csv_cell, replaced

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Row:
    """The energy of one layer (kernel, step ...) on one device. `path` distinguishes rows of equal names."""

    path: tuple
    name: str
    device: Optional[str]
    count: int  # number of calls; on a GPU, of kernels
    time_s: Optional[float]
    energy_j: Optional[float]
    low_j: Optional[float]  # bounds of the report's interval
    high_j: Optional[float]
    dynamic_j: Optional[float]
    power_w: Optional[float]
    share: Optional[float]
    basis: Optional[str]  # method: "measured", "regressed", "time-share" ...
    part: str  # "gpu", "cpu" or "ram"; "cpu+ram" if the row covers several


_FIELDS = [field.name for field in dataclasses.fields(Row)]
_SUMS = ("count", "time_s", "energy_j", "low_j", "high_j", "dynamic_j")


class Ledger:
    """The rows of one level, with the totals and the energy outside of all rows. Printing it shows the table of
    `joulemap report`."""

    def __init__(self, told: dict, text: Callable[[], str]) -> None:
        self._told, self._text = told, text
        self.by: str = told["by"]
        self.domains: list = told["domains"]
        shown = {_part_of_domain(domain["name"]) for domain in self._counted() if domain["provenance"] == self.provenance}
        counted = [part for part in ("cpu", "ram", "gpu") if part in shown]
        self.rows = [_row(row, counted) for row in told["rows"]]
        self.diagnostics = [_diagnostic(entry) for entry in told.get("diagnostics", [])]

    @property
    def is_complete(self) -> bool:
        """False if the recording was truncated or is still being written."""
        return bool(self._told["complete"])

    @property
    def seconds(self) -> Optional[float]:
        return self._told["elapsed_s"]

    @property
    def provenance(self) -> Optional[str]:
        """Provenance of `joules`: "measured", "estimated" or None."""
        counted = {domain["provenance"] for domain in self._counted()}
        return next((kind for kind in ("measured", "estimated") if kind in counted), None)

    @property
    def joules(self) -> Optional[float]:
        """Sum over the counted domains: of the measured ones if there are any, otherwise of the estimated ones."""
        known = [domain["measured_j"] for domain in self._counted() if domain["provenance"] == self.provenance]
        return sum(known) if known else None

    @property
    def idle_j(self) -> Optional[float]:
        return self._told["idle_j"]

    @property
    def unattributed_j(self) -> Optional[float]:
        return self._told["unattributed_j"]

    def _counted(self) -> list:
        return [entry for entry in self.domains if entry["counted"] and entry["measured_j"] is not None]

    def per_step(self, steps: int) -> Ledger:
        """Means per step: sums divided by the number of steps."""
        if steps == 0:
            raise JoulemapError("the recording has no steps: nothing can be told per step")
        return self._with([_scaled(row, 1 / steps) for row in self.rows])

    def nested(self) -> Ledger:
        """One row per module including all its submodules, and one per phase: "layer4" is the sum of "layer4.0.conv1"
        and its siblings. Bounds of intervals are summed, because the errors of layers are correlated."""
        sums: dict = {}
        for row in self.rows:
            for path in _enclosing(row.path):
                key = (path, row.device, row.part)
                sums[key] = _added(sums.get(key), row, path)
        return self._with(list(sums.values()))

    def _with(self, rows: list) -> Ledger:
        made = Ledger({**self._told, "rows": []}, self._text)
        made.rows = rows
        return made

    def to_dicts(self) -> list:
        return [{**{name: getattr(row, name) for name in _FIELDS}, "path": " ".join(row.path)} for row in self.rows]

    def to_pandas(self) -> Any:
        """A DataFrame with the same rows; needs pandas."""
        return imported("pandas").DataFrame(self.to_dicts(), columns=_FIELDS)

    def to_arrow(self) -> Any:
        """A pyarrow.Table, which pandas and polars import without a copy; needs pyarrow."""
        imported("pyarrow")
        import pyarrow as pa

        whole, numbers = {"count": pa.int64()}, set(_FIELDS) - {"path", "name", "device", "count", "basis", "part"}
        types = [(name, whole.get(name, pa.float64() if name in numbers else pa.string())) for name in _FIELDS]
        rows = [{**row, "count": round(row["count"])} for row in self.to_dicts()]
        return pa.Table.from_pylist(rows, schema=pa.schema(types))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow C data interface, for polars.DataFrame(ledger), duckdb and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_parquet(self, path: Path) -> None:
        """Needs pyarrow."""
        table = self.to_arrow()
        import pyarrow.parquet

        with replaced(path) as beside:
            pyarrow.parquet.write_table(table, beside)

    def to_csv(self, path: Path) -> None:
        with replaced(path) as beside, open(beside, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _FIELDS)
            writer.writeheader()
            writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in self.to_dicts())

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        total = "nothing known" if self.joules is None else f"{self.joules:.4g} J {self.provenance}"
        return f"<Ledger by {self.by}: {len(self.rows)} rows, {total}>"


def _row(told: dict, counted: Sequence[str]) -> Row:
    known = {name: told.get(name) for name in _FIELDS}
    return Row(**{**known, "path": tuple(told["path"]), "part": _part_of(told, counted)})


def _part_of(told: dict, counted: Sequence[str]) -> str:
    """Device "cpu" covers all parts except GPUs. Rows without a device are domains, or steps, which cover all counted
    parts."""
    device = told["device"]
    if device == "cpu":
        return "+".join(part for part in counted if part != "gpu") or "cpu"
    if device is not None:
        return "gpu"
    return _part_of_domain(told["name"]) if told["name"] in told["path"] else "+".join(counted)


def _part_of_domain(name: str) -> str:
    """With several machines, domain names start with the machine's name."""
    name = name.rsplit("/", 1)[-1]
    return "gpu" if name.startswith("gpu") else "ram" if name.startswith("dram") else "cpu"


def together(ledgers: list) -> Ledger:
    """Merges ledgers of parts of one machine."""
    told = dict(ledgers[0]._told)
    counted = {domain["name"] for ledger in ledgers for domain in ledger._counted()}
    told["domains"] = [{**domain, "counted": domain["name"] in counted} for domain in told["domains"]]
    for name in ("attributed_j", "idle_j", "unattributed_j"):
        known = [ledger._told[name] for ledger in ledgers if ledger._told[name] is not None]
        told[name] = sum(known) if known else None
    made = Ledger({**told, "rows": []}, ledgers[0]._text)
    made.rows = [row for ledger in ledgers for row in ledger.rows]
    return made


def _diagnostic(told: dict) -> Diagnostic:
    return Diagnostic(told["code"], told.get("count", 1), told["message"], told.get("remedy") or "")


def _scaled(row: Row, by: float) -> Row:
    scaled = {name: None if getattr(row, name) is None else getattr(row, name) * by for name in _SUMS}
    return dataclasses.replace(row, **scaled)


def _enclosing(path: tuple) -> list:
    """("train", "forward", "a.b") -> its phases, a, a.b."""
    phases = [path[:depth] for depth in range(1, min(len(path), 3))]
    if len(path) < 3:
        return [*phases, path]
    names = path[-1].split(".")
    return [*phases, *((*path[:-1], ".".join(names[:depth])) for depth in range(1, len(names) + 1))]


def _added(sum_so_far: Optional[Row], row: Row, path: tuple) -> Row:
    if sum_so_far is None:
        return dataclasses.replace(row, path=path, name=path[-1])
    added: dict = {"basis": row.basis if row.basis == sum_so_far.basis else "mixed"}
    for name in (*_SUMS, "share"):
        values = getattr(sum_so_far, name), getattr(row, name)
        added[name] = None if None in values else sum(values)
    if added["time_s"] and added["energy_j"] is not None:
        added["power_w"] = added["energy_j"] / added["time_s"]
    return dataclasses.replace(sum_so_far, **added)


def imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise JoulemapError(f"this needs {name}: pip install {name}") from error
