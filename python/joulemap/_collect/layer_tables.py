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


def write_layer_tables(lines: Iterable[dict], earlier: Path, out: Path) -> dict[str, int]:
    """Writes the tables into `out`: the contents of those in `earlier`, and `lines` of settings that they lack."""
    family = {
        f"{network.package}/{network.name}": network.family
        for held_out in (False, True)
        for network in networks.list_all_networks(held_out)
    }
    sums = {layer_row_key(line): parse_layer_sums(line) for line in tables.read_csv_records(earlier / "layers.csv.gz")}
    busy: dict[str, dict] = {line["setting"]: line for line in tables.read_csv_records(earlier / "busy.csv.gz")}
    known = set(busy)
    for line in lines:
        setting = line["layers_of"].removeprefix("network ")
        if setting in known:
            continue
        busy[setting] = {**line, "setting": setting, "busy_s": line["busy_us"] * 1e-6}
        for layer in layer_rows.read_network_operations(line):
            if layer.row is None:
                continue
            row = layer.row
            key = (
                row.kind,
                design.format_parameters(row.parameters),
                row.dtype,
                row.pass_name,
                family[setting.split()[0]],
            )
            added = sums.setdefault(key, [0, 0.0, 0.0])
            added[0] += layer.count
            added[1] += layer.count * layer.time_s
            added[2] += layer.count * layer.launches
    layers = [
        dict(zip(LAYER_COLUMNS, (*key, int(count), time_s / count, launches / count)))
        for key, (count, time_s, launches) in sorted(sums.items())
    ]
    write_gzipped_table(layers, LAYER_COLUMNS, out / "layers.csv.gz")
    write_gzipped_table([busy[name] for name in sorted(busy)], BUSY_TIME_COLUMNS, out / "busy.csv.gz")
    return {"layers": len(layers), "busy": len(busy)}


def layer_row_key(line: dict) -> tuple:
    return tuple(line[name] for name in LAYER_COLUMNS[:5])


def parse_layer_sums(line: dict) -> list[float]:
    count = float(line["count"])
    return [count, count * float(line["time_s"]), count * float(line["launches"])]


def write_gzipped_table(rows: Sequence[dict], columns: Sequence[str], path: Path) -> None:
    tables.replace_file(path, gzip.compress(tables.format_csv(rows, columns).encode(), mtime=0))
