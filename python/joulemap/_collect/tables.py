# SPDX-License-Identifier: Apache-2.0
"""Stores rows as compressed tables, the format in which they are shipped: operations.csv.gz, networks.csv.gz,
compiled.csv.gz and slices.csv. Compiled networks have their own table, because readers of networks expect eager rows.
Rows in these tables count as measured, so a later run continues from them.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from pathlib import Path
from typing import Any, Iterator, Sequence

ROW_COLUMNS = (
    "kind parameters dtype pass cold source way flops bytes time_s eager_s energy_j power_w history_w power_error_w "
    "samples length_s temperature_c sm_clock_mhz limited idle_w repeat slice "
    "issue_s launch_s quiet_windows"
).split()


SLICE_COLUMNS = (
    "slice seconds measured gpu uuid driver torch cuda cudnn python power_limit_w idle_w counter_w history_w".split()
)


NUMERIC_SLICE_COLUMNS = {"seconds", "measured", "power_limit_w", "idle_w", "counter_w", "history_w"}


def read_rows(folder: Path) -> Iterator[dict]:
    for name in ("networks", "compiled", "operations"):
        for line in read_csv_records(folder / f"{name}.csv.gz"):
            row = {name: parse_cell(text) for name, text in line.items()}
            row["parameters"], row["slice"] = line["parameters"], line["slice"]
            yield {"key": row_key(row), **row}
    for line in read_csv_records(folder / "busy.csv.gz"):  # settings whose layers were already profiled
        yield {"layers_of": f"network {line['setting']}", "busy_us": float(line["busy_s"]) * 1e6}
    if (folder / "slices.csv").exists():
        with (folder / "slices.csv").open(newline="") as file:
            for line in csv.DictReader(file):
                yield {name: parse_cell(text) if name in NUMERIC_SLICE_COLUMNS else text for name, text in line.items()}


def read_csv_records(path: Path) -> Iterator[dict]:
    if path.exists():
        with gzip.open(path, "rt", newline="") as file:
            yield from csv.DictReader(file)


def parse_cell(text: str) -> Any:
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return text or None


def row_key(row: dict) -> str:
    """Returns the same key as PlannedRow.key, NetworkSetting.key and compiled_row_key."""
    if row["kind"] in ("network", "compiled"):
        parameters = dict(assignment.split("=") for assignment in row["parameters"].split(";"))
        setting = f"{parameters['package']}/{parameters['name']} {parameters['batch']}x{parameters['size']}"
        mode = f" {row['way']}" if row["kind"] == "compiled" else ""
        return f"{row['kind']} {setting} {row['dtype']} {row['pass']}{mode}"
    return f"{row['kind']} {row['parameters']} {row['dtype']} {row['pass']}{' cold' if row['cold'] else ''}"


def round_to_digits(value):
    return float(f"{value:.5g}") if isinstance(value, float) else int(value) if isinstance(value, bool) else value


def write_tables(measured: Sequence[dict], slices: Sequence[dict], output_folder: Path) -> dict[str, int]:
    """Writes sorted tables with one row per repeat; returns the row count of each table."""
    output_folder.mkdir(parents=True, exist_ok=True)
    measured = sorted(measured, key=lambda row: (row["kind"], row["key"], row["slice"], row["repeat"]))
    tables = {
        "operations": [row for row in measured if row["kind"] not in ("network", "compiled")],
        "networks": [row for row in measured if row["kind"] == "network"],
    }
    if compiled_rows := [row for row in measured if row["kind"] == "compiled"]:
        tables["compiled"] = compiled_rows
    for name, rows in tables.items():
        # mtime=0: equal rows give equal bytes.
        replace_file(output_folder / f"{name}.csv.gz", gzip.compress(format_csv(rows, ROW_COLUMNS).encode(), mtime=0))
    slice_by_name = {line["slice"]: line for line in slices}
    replace_file(
        output_folder / "slices.csv",
        format_csv([slice_by_name[name] for name in sorted(slice_by_name)], SLICE_COLUMNS).encode(),
    )
    return {name: len(rows) for name, rows in tables.items()}


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically: a full disk leaves the older table intact."""
    temporary_path = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary_path.write_bytes(content)
        os.replace(temporary_path, path)
    finally:
        temporary_path.unlink(missing_ok=True)


def format_csv(rows: Sequence[dict], columns: Sequence[str]) -> str:
    csv_buffer = io.StringIO()
    writer = csv.DictWriter(csv_buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: round_to_digits(row.get(name)) for name in columns} for row in rows)
    return csv_buffer.getvalue()
