# SPDX-License-Identifier: Apache-2.0
"""Ledger: the rows of a report, in joules, seconds and watts. Unknown values are None, never 0."""

from __future__ import annotations

import csv
import dataclasses
import os
from typing import Any, Callable, Optional, Sequence, Union

from ._energy import Diagnostic, interval_bound
from ._library import JoulemapError
from ._output import escape_csv_cell, replace_file_atomically

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Row:
    """The energy of one layer (kernel, step ...) on one device. `path` distinguishes rows of equal names."""

    path: tuple  # such as ("train", "forward", "layer4.0.conv1")
    name: str  # last element of the path; for kernels the mangled name
    device: Optional[str]  # "gpu0", "cpu"; None for domains and steps
    count: int  # number of calls; on a GPU, number of kernels
    time_s: Optional[float]  # summed duration, in s
    energy_j: Optional[float]  # energy of the device while the row ran, on a GPU while its kernels ran, in J
    low_j: Optional[float]  # lower bound of the 90 % interval, in J
    high_j: Optional[float]  # upper bound of the 90 % interval, in J
    dynamic_j: Optional[float]  # energy above the power of a GPU that runs nothing (active idle), in J
    power_w: Optional[float]  # mean power, in W
    share: Optional[float]  # fraction of the energy of all rows
    basis: Optional[str]  # method: "measured", "regressed", "library", "probed", "time-share", "cpu-time", "estimated"
    waiting_s: Optional[float]  # time that the GPU was idle because of this scope, in s
    waiting_j: Optional[float]  # energy of the GPU in that time, in J; part of idle_j of the ledger, not of energy_j
    part: str  # "gpu", "cpu" or "ram"; "cpu+ram" if the row covers several


_ROW_FIELD_NAMES = [field.name for field in dataclasses.fields(Row)]
_SUMMED_FIELDS = ("count", "time_s", "energy_j", "low_j", "high_j", "dynamic_j", "waiting_s", "waiting_j")


class Ledger:
    """The rows of one level, with the totals and the energy that belongs to no row: the rows, `idle_j` and
    `unattributed_j` add up to `joules`. Printing a ledger shows the table of `joulemap report`. polars.DataFrame(ledger)
    and duckdb read it through the Arrow C interface."""

    def __init__(self, report: dict, render_text: Callable[[], str]) -> None:
        self._report, self._render_text = report, render_text
        self.by: str = report["by"]  # level of the rows: "layer", "kernel" ...
        self.domains: list = report["domains"]  # dictionaries, as in the JSON output
        included_parts = {
            _machine_part_of_domain(domain["name"])
            for domain in self._counted_domains()
            if domain["provenance"] == self.provenance
        }
        counted_parts = [part for part in ("cpu", "ram", "gpu") if part in included_parts]
        self.rows = [_make_row(row, counted_parts) for row in report["rows"]]  # a list of Row
        self.diagnostics = [_make_diagnostic(entry) for entry in report.get("diagnostics", [])]  # a list of Diagnostic

    @property
    def is_complete(self) -> bool:
        """False if the recording was truncated or is still being written."""
        return bool(self._report["complete"])

    @property
    def serving(self) -> Optional[dict]:
        """By request and by token: energy of a serving engine, as `serving` of the JSON output; otherwise None."""
        return self._report.get("serving")

    @property
    def seconds(self) -> Optional[float]:
        """Duration of the recording, or of the selected part of it, in s."""
        return self._report["elapsed_s"]

    @property
    def time_s(self) -> Optional[float]:
        """Same value as `seconds`."""
        return self.seconds

    @property
    def provenance(self) -> Optional[str]:
        """Provenance of `joules`: "measured", "estimated" or None."""
        counted = {domain["provenance"] for domain in self._counted_domains()}
        return next((kind for kind in ("measured", "estimated") if kind in counted), None)

    @property
    def joules(self) -> Optional[float]:
        """Sum over the counted domains, in J: the measured ones if there are any, otherwise the estimated ones."""
        known = [domain["measured_j"] for domain in self._counted_domains() if domain["provenance"] == self.provenance]
        return sum(known) if known else None

    @property
    def energy_j(self) -> Optional[float]:
        """Same value as `joules`."""
        return self.joules

    @property
    def low_j(self) -> Optional[float]:
        """Lower bound of the 90 % interval of `energy_j`, as if the errors of domains were fully correlated."""
        return interval_bound(self.joules, self._uncertainty_j, -1)

    @property
    def high_j(self) -> Optional[float]:
        """Upper bound of the 90 % interval of `energy_j`, as if the errors of domains were fully correlated."""
        return interval_bound(self.joules, self._uncertainty_j, 1)

    @property
    def _uncertainty_j(self) -> Optional[float]:
        """Half width of the 90 % interval: the sum over the domains of `joules`; None if one of them is unknown."""
        known = [
            domain.get("uncertainty_j") for domain in self._counted_domains() if domain["provenance"] == self.provenance
        ]
        return None if not known or None in known else sum(known)

    @property
    def idle_j(self) -> Optional[float]:
        """Energy of devices while nothing ran on them, in J."""
        return self._report["idle_j"]

    @property
    def unattributed_j(self) -> Optional[float]:
        """Measured energy that neither rows nor `idle_j` contain, in J."""
        return self._report["unattributed_j"]

    def _counted_domains(self) -> list:
        return [entry for entry in self.domains if entry["counted"] and entry["measured_j"] is not None]

    def per_step(self, steps: int) -> Ledger:
        """Means per step: sums divided by the number of steps."""
        if steps == 0:
            raise JoulemapError("the recording has no steps: mark them with jm.step()")
        return self._copy_with_rows([_scale_row(row, 1 / steps) for row in self.rows])

    def nested(self) -> Ledger:
        """One row per module including all its submodules, and one per phase: "layer4" is the sum of "layer4.0.conv1"
        and its siblings. Bounds of intervals are summed, because the errors of layers are correlated."""
        sums: dict = {}
        for row in self.rows:
            for path in _enclosing_paths(row.path, self.by):
                key = (path, row.device, row.part)
                sums[key] = _add_row_to_sum(sums.get(key), row, path)
        return self._copy_with_rows(list(sums.values()))

    def _copy_with_rows(self, rows: list) -> Ledger:
        ledger = Ledger({**self._report, "rows": []}, self._render_text)
        ledger.rows = rows
        return ledger

    def to_dicts(self) -> list:
        """The rows as dictionaries."""
        return [
            {**{name: getattr(row, name) for name in _ROW_FIELD_NAMES}, "path": " ".join(row.path)} for row in self.rows
        ]

    def to_pandas(self) -> Any:
        """A DataFrame with the same rows; needs pandas."""
        return import_optional("pandas").DataFrame(self.to_dicts(), columns=_ROW_FIELD_NAMES)

    def to_arrow(self) -> Any:
        """A pyarrow.Table, which pandas and polars import without a copy; needs pyarrow. By request, its columns are
        the keys of `serving["requests"]`."""
        import_optional("pyarrow")
        import pyarrow as pa

        if self.by == "request" and self.serving:
            return pa.Table.from_pylist(self.serving["requests"])
        integer_types, number_fields = (
            {"count": pa.int64()},
            set(_ROW_FIELD_NAMES) - {"path", "name", "device", "count", "basis", "part"},
        )
        types = [
            (name, integer_types.get(name, pa.float64() if name in number_fields else pa.string()))
            for name in _ROW_FIELD_NAMES
        ]
        rows = [{**row, "count": round(row["count"])} for row in self.to_dicts()]
        return pa.Table.from_pylist(rows, schema=pa.schema(types))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow C data interface, for polars.DataFrame(ledger), duckdb and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_parquet(self, path: Path) -> None:
        """Writes the rows as Parquet; needs pyarrow."""
        table = self.to_arrow()
        import pyarrow.parquet

        with replace_file_atomically(path) as temporary_path:
            pyarrow.parquet.write_table(table, temporary_path)

    def to_csv(self, path: Path) -> None:
        """Writes the rows as CSV."""
        with (
            replace_file_atomically(path) as temporary_path,
            open(temporary_path, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, _ROW_FIELD_NAMES)
            writer.writeheader()
            writer.writerows({name: escape_csv_cell(value) for name, value in row.items()} for row in self.to_dicts())

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return self._render_text()

    def _repr_html_(self) -> str:
        from ._notebook import ledger_html

        return ledger_html(self)

    def __repr__(self) -> str:
        total = "energy unknown" if self.joules is None else f"{self.joules:.4g} J {self.provenance}"
        return f"<Ledger by {self.by}: {len(self.rows)} rows, {total}>"


def _make_row(entry: dict, counted_parts: Sequence[str]) -> Row:
    fields = {name: entry.get(name) for name in _ROW_FIELD_NAMES}
    return Row(**{**fields, "path": tuple(entry["path"]), "part": _machine_part_of_row(entry, counted_parts)})


def _machine_part_of_row(entry: dict, counted_parts: Sequence[str]) -> str:
    """The part of the machine that a row covers: "gpu", "cpu", "ram" or several, joined by "+". The device "cpu" covers
    all counted parts except GPUs. A row without a device is a domain, or a step, which covers all counted parts."""
    device = entry["device"]
    if device == "cpu":
        return "+".join(part for part in counted_parts if part != "gpu") or "cpu"
    if device is not None:
        return "gpu"
    return _machine_part_of_domain(entry["name"]) if entry["name"] in entry["path"] else "+".join(counted_parts)


def _machine_part_of_domain(name: str) -> str:
    """The part of the machine of a domain: "node1/dram-0" is "ram". With several machines, the name of a domain starts
    with that of its machine."""
    name = name.rsplit("/", 1)[-1]
    return "gpu" if name.startswith("gpu") else "ram" if name.startswith("dram") else "cpu"


def merge_ledgers(ledgers: list) -> Ledger:
    """Merges the ledgers of different parts (cpu, ram, gpu) of the same recording into one with all their rows."""
    report = dict(ledgers[0]._report)
    counted = {domain["name"] for ledger in ledgers for domain in ledger._counted_domains()}
    report["domains"] = [{**domain, "counted": domain["name"] in counted} for domain in report["domains"]]
    for name in ("attributed_j", "idle_j", "unattributed_j"):
        known = [ledger._report[name] for ledger in ledgers if ledger._report[name] is not None]
        report[name] = sum(known) if known else None
    merged = Ledger({**report, "rows": []}, ledgers[0]._render_text)
    merged.rows = [row for ledger in ledgers for row in ledger.rows]
    return merged


def _make_diagnostic(entry: dict) -> Diagnostic:
    return Diagnostic(entry["code"], entry.get("count", 1), entry["message"], entry.get("remedy") or "")


def _scale_row(row: Row, factor: float) -> Row:
    scaled = {name: None if getattr(row, name) is None else getattr(row, name) * factor for name in _SUMMED_FIELDS}
    return dataclasses.replace(row, **scaled)


def _enclosing_paths(path: tuple, by: str) -> list:
    """The paths that include a row: ("train", "forward", "a.b") gives its mode, its phase, module a and module a.b.
    By module, ("a.b",) gives module a and module a.b."""
    if by == "module" and len(path) == 1:
        names = path[0].split(".")
        return [(".".join(names[:depth]),) for depth in range(1, len(names) + 1)]
    phases = [path[:depth] for depth in range(1, min(len(path), 3))]
    if len(path) < 3:
        return [*phases, path]
    names = path[-1].split(".")
    return [*phases, *((*path[:-1], ".".join(names[:depth])) for depth in range(1, len(names) + 1))]


def _add_row_to_sum(sum_row: Optional[Row], row: Row, path: tuple) -> Row:
    if sum_row is None:
        return dataclasses.replace(row, path=path, name=path[-1])
    added: dict = {"basis": row.basis if row.basis == sum_row.basis else "mixed"}
    for name in (*_SUMMED_FIELDS, "share"):
        values = getattr(sum_row, name), getattr(row, name)
        added[name] = None if None in values else sum(values)
    if added["time_s"] and added["energy_j"] is not None:
        added["power_w"] = added["energy_j"] / added["time_s"]
    return dataclasses.replace(sum_row, **added)


def import_optional(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise JoulemapError(f"{name} is not installed: pip install {name}") from error
