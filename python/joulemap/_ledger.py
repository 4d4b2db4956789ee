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
    `unattributed_j` add up to `joules`. Printing a ledger shows the table of `joulemap report`, or its own rows if it was
    computed from another ledger. polars.DataFrame(ledger) and duckdb read it through the Arrow C interface."""

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
        self.diagnostics = [
            _make_diagnostic(diagnostic) for diagnostic in report.get("diagnostics", [])
        ]  # a list of Diagnostic

    @property
    def is_complete(self) -> bool:
        """False if the recording was truncated or is still being written."""
        return bool(self._report["complete"])

    @property
    def serving(self) -> Optional[dict]:
        """By request and by token: energy of a serving engine, as `serving` of the JSON output; otherwise None."""
        return self._report.get("serving")

    @property
    def steps(self) -> int:
        """Number of steps in the recording, evaluation steps not included."""
        return self._report["steps"]

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
        counted_provenances = {domain["provenance"] for domain in self._counted_domains()}
        return next((provenance for provenance in ("measured", "estimated") if provenance in counted_provenances), None)

    @property
    def joules(self) -> Optional[float]:
        """Sum over the counted domains, in J: the measured ones if there are any, otherwise the estimated ones."""
        known_joules = [
            domain["measured_j"] for domain in self._counted_domains() if domain["provenance"] == self.provenance
        ]
        return sum(known_joules) if known_joules else None

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
        uncertainties_j = [
            domain.get("uncertainty_j") for domain in self._counted_domains() if domain["provenance"] == self.provenance
        ]
        return None if not uncertainties_j or None in uncertainties_j else sum(uncertainties_j)

    @property
    def idle_j(self) -> Optional[float]:
        """Energy of devices while nothing ran on them, in J."""
        return self._report["idle_j"]

    @property
    def unattributed_j(self) -> Optional[float]:
        """Measured energy that neither rows nor `idle_j` contain, in J."""
        return self._report["unattributed_j"]

    def _counted_domains(self) -> list:
        return [domain for domain in self.domains if domain["counted"] and domain["measured_j"] is not None]

    def per_step(self, steps: int) -> Ledger:
        """Means per step: rows and totals divided by the number of steps."""
        if steps == 0:
            raise JoulemapError("the recording has no steps: mark them with jm.step()")
        ledger = self._copy_with_rows([_scale_row(row, 1 / steps) for row in self.rows])
        ledger._report = _scale_totals(ledger._report, 1 / steps)
        ledger.domains = ledger._report["domains"]
        return ledger

    def nested(self) -> Ledger:
        """One row per module including all its submodules, and one per phase: "layer4" is the sum of "layer4.0.conv1"
        and its siblings. Bounds of intervals are summed, because the errors of layers are correlated."""
        sum_rows: dict = {}
        for row in self.rows:
            for path in _enclosing_paths(row.path, self.by):
                row_key = (path, row.device, row.part)
                sum_rows[row_key] = _add_row_to_sum(sum_rows.get(row_key), row, path)
        return self._copy_with_rows(list(sum_rows.values()))

    def _copy_with_rows(self, rows: list) -> Ledger:
        ledger = Ledger({**self._report, "rows": []}, lambda: _render_computed_ledger(ledger))
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
        schema_fields = [
            (name, integer_types.get(name, pa.float64() if name in number_fields else pa.string()))
            for name in _ROW_FIELD_NAMES
        ]
        rows = [{**row, "count": round(row["count"])} for row in self.to_dicts()]
        return pa.Table.from_pylist(rows, schema=pa.schema(schema_fields))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow C data interface, for polars.DataFrame(ledger), duckdb and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_parquet(self, path: Path) -> None:
        """Writes the rows as Parquet; needs pyarrow."""
        arrow_table = self.to_arrow()
        import pyarrow.parquet

        with replace_file_atomically(path) as temporary_path:
            pyarrow.parquet.write_table(arrow_table, temporary_path)

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
        total_text = "energy unknown" if self.joules is None else f"{self.joules:.4g} J {self.provenance}"
        return f"<Ledger by {self.by}: {len(self.rows)} rows, {total_text}>"


def _make_row(report_row: dict, counted_parts: Sequence[str]) -> Row:
    field_values = {name: report_row.get(name) for name in _ROW_FIELD_NAMES}
    return Row(
        **{**field_values, "path": tuple(report_row["path"]), "part": _machine_part_of_row(report_row, counted_parts)}
    )


def _machine_part_of_row(report_row: dict, counted_parts: Sequence[str]) -> str:
    """The part of the machine that a row covers: "gpu", "cpu", "ram" or several, joined by "+". The device "cpu" covers
    all counted parts except GPUs. A row without a device is a domain, or a step, which covers all counted parts."""
    device = report_row["device"]
    if device == "cpu":
        return "+".join(part for part in counted_parts if part != "gpu") or "cpu"
    if device is not None:
        return "gpu"
    return (
        _machine_part_of_domain(report_row["name"])
        if report_row["name"] in report_row["path"]
        else "+".join(counted_parts)
    )


def _machine_part_of_domain(name: str) -> str:
    """The part of the machine of a domain: "node1/dram-0" is "ram". With several machines, the name of a domain starts
    with that of its machine."""
    name = name.rsplit("/", 1)[-1]
    return "gpu" if name.startswith("gpu") else "ram" if name.startswith("dram") else "cpu"


def merge_ledgers(ledgers: list) -> Ledger:
    """Merges the ledgers of different parts (cpu, ram, gpu) of the same recording into one with all their rows."""
    report = dict(ledgers[0]._report)
    counted_names = {domain["name"] for ledger in ledgers for domain in ledger._counted_domains()}
    report["domains"] = [{**domain, "counted": domain["name"] in counted_names} for domain in report["domains"]]
    for field_name in ("attributed_j", "idle_j", "unattributed_j"):
        known_energies_j = [ledger._report[field_name] for ledger in ledgers if ledger._report[field_name] is not None]
        report[field_name] = sum(known_energies_j) if known_energies_j else None
    merged_ledger = Ledger({**report, "rows": []}, ledgers[0]._render_text)
    merged_ledger.rows = [row for ledger in ledgers for row in ledger.rows]
    return merged_ledger


def _make_diagnostic(report_diagnostic: dict) -> Diagnostic:
    return Diagnostic(
        report_diagnostic["code"],
        report_diagnostic.get("count", 1),
        report_diagnostic["message"],
        report_diagnostic.get("remedy") or "",
    )


def _scale_totals(report: dict, factor: float) -> dict:
    """The report with all its energies and times multiplied by `factor`."""

    def scale_fields(fields: dict) -> dict:
        return {
            name: value * factor if name.endswith(("_j", "_s")) and isinstance(value, (int, float)) else value
            for name, value in fields.items()
        }

    return {**scale_fields(report), "domains": [scale_fields(domain) for domain in report["domains"]]}


def _render_computed_ledger(ledger: Ledger) -> str:
    """The rows of a ledger that is not a report, such as means per step."""
    total_text = "energy unknown" if ledger.joules is None else f"{ledger.joules:.4g} J {ledger.provenance}"
    lines = [f"{total_text}, by {ledger.by}", f"{'J':>11}  {'s':>9}  {'device':<8}  name"]
    for row in ledger.rows:
        energy_text, time_text = ("-" if value is None else f"{value:.4g}" for value in (row.energy_j, row.time_s))
        lines.append(f"{energy_text:>11}  {time_text:>9}  {row.device or '-':<8}  {' '.join(row.path)}")
    for name, joules in (("(idle)", ledger.idle_j), ("(no row)", ledger.unattributed_j)):
        if joules:
            lines.append(f"{joules:>11.4g}  {'':>9}  {'':<8}  {name}")
    return "\n".join(lines)


def _scale_row(row: Row, factor: float) -> Row:
    scaled_fields = {
        field_name: None if getattr(row, field_name) is None else getattr(row, field_name) * factor
        for field_name in _SUMMED_FIELDS
    }
    return dataclasses.replace(row, **scaled_fields)


def _enclosing_paths(path: tuple, by: str) -> list:
    """The paths that include a row: ("train", "forward", "a.b", "op") gives its mode, its phase, module a, module a.b and
    the operation. By module, ("a.b",) gives module a and module a.b."""
    if by == "module" and len(path) == 1:
        module_names = path[0].split(".")
        return [(".".join(module_names[:depth]),) for depth in range(1, len(module_names) + 1)]
    if len(path) < 3:
        return [path[:depth] for depth in range(1, len(path) + 1)]
    module_names = path[2].split(".")
    module_paths = [(*path[:2], ".".join(module_names[:depth])) for depth in range(1, len(module_names) + 1)]
    return [path[:1], path[:2], *module_paths, *(path[:depth] for depth in range(4, len(path) + 1))]


def _add_row_to_sum(sum_row: Optional[Row], row: Row, path: tuple) -> Row:
    if sum_row is None:
        return dataclasses.replace(row, path=path, name=path[-1])
    summed_fields: dict = {"basis": row.basis if row.basis == sum_row.basis else "mixed"}
    for field_name in (*_SUMMED_FIELDS, "share"):
        field_values = getattr(sum_row, field_name), getattr(row, field_name)
        summed_fields[field_name] = None if None in field_values else sum(field_values)
    if summed_fields["time_s"] and summed_fields["energy_j"] is not None:
        summed_fields["power_w"] = summed_fields["energy_j"] / summed_fields["time_s"]
    return dataclasses.replace(sum_row, **summed_fields)


def import_optional(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise JoulemapError(f"{name} is not installed: pip install {name}") from error
