# SPDX-License-Identifier: Apache-2.0
"""Writes the times of operations within networks as compressed tables: layers.csv.gz (one row per distinct operation
of a family) and busy.csv.gz (GPU busy time in one step of each network)."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Iterable, Sequence

from . import design, layer_rows, networks, tables

LAYER_COLUMNS = "kind parameters dtype pass source count time_s launches".split()
BUSY_COLUMNS = "setting busy_s kernels calls slice".split()


def write(lines: Iterable[dict], earlier: Path, out: Path) -> dict[str, int]:
    """Writes the tables into `out`: the contents of those in `earlier`, and `lines` of settings that they lack."""
    family = {
        f"{network.package}/{network.name}": network.family
        for held_out in (False, True)
        for network in networks.all_networks(held_out)
    }
    sums = {key_of(line): sums_of(line) for line in tables.records_of(earlier / "layers.csv.gz")}
    busy: dict[str, dict] = {line["setting"]: line for line in tables.records_of(earlier / "busy.csv.gz")}
    known = set(busy)
    for line in lines:
        setting = line["layers_of"].removeprefix("network ")
        if setting in known:
            continue
        busy[setting] = {**line, "setting": setting, "busy_s": line["busy_us"] * 1e-6}
        for layer in layer_rows.layers_of(line):
            if layer.row is None:
                continue
            row = layer.row
            key = (row.kind, design.parameters_text(row.parameters), row.dtype, row.which, family[setting.split()[0]])
            added = sums.setdefault(key, [0, 0.0, 0.0])
            added[0] += layer.count
            added[1] += layer.count * layer.time_s
            added[2] += layer.count * layer.launches
    layers = [
        dict(zip(LAYER_COLUMNS, (*key, int(count), time_s / count, launches / count)))
        for key, (count, time_s, launches) in sorted(sums.items())
    ]
    packed(layers, LAYER_COLUMNS, out / "layers.csv.gz")
    packed([busy[name] for name in sorted(busy)], BUSY_COLUMNS, out / "busy.csv.gz")
    return {"layers": len(layers), "busy": len(busy)}


def key_of(line: dict) -> tuple:
    return tuple(line[name] for name in LAYER_COLUMNS[:5])


def sums_of(line: dict) -> list[float]:
    count = float(line["count"])
    return [count, count * float(line["time_s"]), count * float(line["launches"])]


def packed(rows: Sequence[dict], columns: Sequence[str], path: Path) -> None:
    tables.replace(path, gzip.compress(tables.table_of(rows, columns).encode(), mtime=0))
