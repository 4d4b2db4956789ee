# SPDX-License-Identifier: Apache-2.0
"""The measured rows of data/h200 and the lists of operations of data/networks, once each (what was measured again is
averaged), under the keys by which models are compared.

    operations   kind|parameters|dtype|pass|cold       dense|rows=8;in=64;out=10;bias=1|fp16|forward|0
    networks     name|batch|size|dtype|pass            resnet50|32|224|tf32|training
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas

ROOT = Path(__file__).resolve().parents[2]
MEASURED, LISTS = ROOT / "data" / "h200", ROOT / "data" / "networks"

DESIGNED = "designed"  # shapes that were drawn, of no family
# Nothing is fitted to these, and no row of theirs may be among the data.
HELD_OUT = {"ConvNeXt", "DenseNet", "RegNet", "Swin", "MaxViT", "ShuffleNet", "ALBERT", "T5", "GPT-NeoX"}

OPERATION_KEY = ["kind", "parameters", "dtype", "pass", "cold"]
NETWORK_KEY = ["name", "batch", "size", "dtype", "pass"]


class Data(NamedTuple):
    operations: pandas.DataFrame  # by key: OPERATION_KEY, family, flops, bytes, time_s, energy_j, times
    networks: pandas.DataFrame  # by key: NETWORK_KEY, family, time_s, energy_j, times
    raw: pandas.DataFrame  # every measurement of both, with its key
    listed: pandas.DataFrame  # by id: kind, parameters, dtype, pass of operations that networks consist of
    lists: dict[str, list[tuple[int, int]]]  # by key of a network: (id, count) in the order of first appearance


def parse(text: str) -> dict[str, object]:
    """`form=relu;batch=8` as a dictionary: whole numbers and fractions as numbers, the rest as texts."""
    return dict(_named(pair) for pair in text.split(";") if pair)


def _named(pair: str) -> tuple[str, object]:
    name, _, value = pair.partition("=")
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            pass
    return name, {"True": 1, "False": 0}.get(value, value)


def joined(frame: pandas.DataFrame, columns: list[str]) -> pandas.Series:
    return frame[columns].astype(str).agg("|".join, axis=1)


def read(measured: Path = MEASURED, lists: Path = LISTS) -> Data:
    operations, networks = _operations(measured), _networks(measured)
    raw = pandas.concat([operations, networks])
    found = set(raw["source"]) & HELD_OUT
    if found:
        raise SystemExit(
            f"{measured}: rows of {', '.join(sorted(found))}, which are held out: nothing may be fitted to them"
        )
    listed, by_network = read_lists(lists)
    return Data(
        distinct(operations, OPERATION_KEY + ["flops", "bytes"]), distinct(networks, NETWORK_KEY), raw, listed, by_network
    )  # fmt: skip


def distinct(raw: pandas.DataFrame, kept: list[str]) -> pandas.DataFrame:
    """One row for each key: means over its measurements, in the order of the keys, whatever that of the file was."""
    grouped = raw.groupby("key", sort=True)
    rows = grouped[[*kept, "source"]].first().rename(columns={"source": "family"})
    rows["time_s"], rows["energy_j"] = grouped["time_s"].mean(), grouped["energy_j"].mean()
    return rows.assign(times=grouped.size())


def _operations(folder: Path) -> pandas.DataFrame:
    raw = pandas.read_csv(folder / "operations.csv.gz", dtype={"cold": str})
    return raw.assign(key=joined(raw, OPERATION_KEY))


def _networks(folder: Path) -> pandas.DataFrame:
    raw = pandas.read_csv(folder / "networks.csv.gz")
    told = pandas.DataFrame([parse(text) for text in raw["parameters"]])
    raw = raw.assign(**{name: told[name].astype(str) for name in ("name", "batch", "size")})
    return raw.assign(key=joined(raw, NETWORK_KEY))


def read_lists(folder: Path) -> tuple[pandas.DataFrame, dict[str, list[tuple[int, int]]]]:
    """Nothing where the lists are not there: networks are then predicted by no sum, and compare.py says so."""
    if not (folder / "settings.csv.gz").exists():
        return pandas.DataFrame(columns=["kind", "parameters", "dtype", "pass", "phase"]), {}
    listed = pandas.read_csv(folder / "operations.csv.gz", keep_default_na=False).set_index("id")
    settings = pandas.read_csv(folder / "settings.csv.gz", dtype=str).rename(columns={"network": "name"})
    keys = joined(settings, NETWORK_KEY)
    return listed, {key: counts(text) for key, text in zip(keys, settings["operations"])}


def counts(text: str) -> list[tuple[int, int]]:
    pairs = (word.split(":") for word in text.split())
    return [(int(number), int(count)) for number, count in pairs]
