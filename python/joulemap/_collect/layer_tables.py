# SPDX-License-Identifier: Apache-2.0
"""Writes the times of operations within networks as compressed tables: layers.csv.gz (one row per distinct operation
of a family) and busy.csv.gz (GPU busy time in one step of each network)."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Iterable, Sequence

from . import design, layer_rows, networks, tables

LAYER_COLUMNS = "kind parameters dtype pass source count time_s launches".split()
BUSY_TIME_COLUMNS = "setting busy_s kernels calls slice".split()


def write_layer_tables(lines: Iterable[dict], earlier_folder: Path, output_folder: Path) -> dict[str, int]:
    """Writes the tables into `output_folder`: the contents of those in `earlier_folder`, and `lines` of settings that
    they lack."""
    family_by_network = {
        f"{network.package}/{network.name}": network.family
        for is_held_out in (False, True)
        for network in networks.list_all_networks(is_held_out)
    }
    sums_by_key = {
        layer_row_key(line): parse_layer_sums(line)
        for line in tables.read_csv_records(earlier_folder / "layers.csv.gz")
    }
    busy_by_setting: dict[str, dict] = {
        line["setting"]: line for line in tables.read_csv_records(earlier_folder / "busy.csv.gz")
    }
    known_settings = set(busy_by_setting)
    for line in lines:
        setting = line["layers_of"].removeprefix("network ")
        if setting in known_settings:
            continue
        busy_by_setting[setting] = {**line, "setting": setting, "busy_s": line["busy_us"] * 1e-6}
        for layer in layer_rows.read_network_operations(line):
            if layer.row is None:
                continue
            row = layer.row
            layer_key = (
                row.kind,
                design.format_parameters(row.parameters),
                row.dtype,
                row.pass_name,
                family_by_network[setting.split()[0]],
            )
            row_sums = sums_by_key.setdefault(layer_key, [0, 0.0, 0.0])
            row_sums[0] += layer.count
            row_sums[1] += layer.count * layer.time_s
            row_sums[2] += layer.count * layer.launches
    layer_lines = [
        dict(zip(LAYER_COLUMNS, (*layer_key, int(count), time_s / count, launches / count)))
        for layer_key, (count, time_s, launches) in sorted(sums_by_key.items())
    ]
    write_gzipped_table(layer_lines, LAYER_COLUMNS, output_folder / "layers.csv.gz")
    write_gzipped_table(
        [busy_by_setting[name] for name in sorted(busy_by_setting)], BUSY_TIME_COLUMNS, output_folder / "busy.csv.gz"
    )
    return {"layers": len(layer_lines), "busy": len(busy_by_setting)}


def layer_row_key(line: dict) -> tuple:
    return tuple(line[name] for name in LAYER_COLUMNS[:5])


def parse_layer_sums(line: dict) -> list[float]:
    count = float(line["count"])
    return [count, count * float(line["time_s"]), count * float(line["launches"])]


def write_gzipped_table(rows: Sequence[dict], columns: Sequence[str], path: Path) -> None:
    tables.replace_file(path, gzip.compress(tables.format_csv(rows, columns).encode(), mtime=0))
