# SPDX-License-Identifier: Apache-2.0
"""Reads the measured rows of data/h200 and the lists of operations of data/networks, one row per key (repeated
measurements are averaged). Models are compared by these keys.

    operations   kind|parameters|dtype|pass|cold       dense|rows=8;in=64;out=10;bias=1|fp16|forward|0
    networks     name|batch|size|dtype|pass            resnet50|32|224|tf32|training
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas

ROOT = Path(__file__).resolve().parents[2]
MEASURED_FOLDER, OPERATION_LISTS_FOLDER = ROOT / "data" / "h200", ROOT / "data" / "networks"

DESIGNED_SHAPES = "designed"  # sampled shapes, of no family
# Held-out families: nothing is fitted to them, and the data must not contain rows of them.
HELD_OUT_FAMILIES = {"ConvNeXt", "DenseNet", "RegNet", "Swin", "MaxViT", "ShuffleNet", "ALBERT", "T5", "GPT-NeoX"}

OPERATION_KEY = ["kind", "parameters", "dtype", "pass", "cold"]
NETWORK_KEY = ["name", "batch", "size", "dtype", "pass"]


class PredictionData(NamedTuple):
    operations: pandas.DataFrame  # by key: OPERATION_KEY, family, flops, bytes, time_s, energy_j, times
    networks: pandas.DataFrame  # by key: NETWORK_KEY, family, time_s, energy_j, times
    raw: pandas.DataFrame  # every measurement of both, with its key
    listed: pandas.DataFrame  # by id: kind, parameters, dtype, pass of operations that networks consist of
    lists: dict[str, list[tuple[int, int]]]  # by key of a network: (id, count) in the order of first appearance


def parse(text: str) -> dict[str, object]:
    """Parses `form=relu;batch=8` into a dictionary: integers and fractions as numbers, the rest as text."""
    return dict(_parse_pair(pair) for pair in text.split(";") if pair)


def _parse_pair(pair: str) -> tuple[str, object]:
    name, _, value = pair.partition("=")
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            pass
    return name, {"True": 1, "False": 0}.get(value, value)


def join_columns(frame: pandas.DataFrame, columns: list[str]) -> pandas.Series:
    return frame[columns].astype(str).agg("|".join, axis=1)


def read(measured: Path = MEASURED_FOLDER, operation_lists_folder: Path = OPERATION_LISTS_FOLDER) -> PredictionData:
    operations, networks = _operations(measured), _read_networks(measured)
    measurements = pandas.concat([operations, networks])
    leaked_families = set(measurements["source"]) & HELD_OUT_FAMILIES
    if leaked_families:
        raise SystemExit(
            f"{measured}: rows of {', '.join(sorted(leaked_families))}, which are held out: nothing may be fitted to them"
        )
    listed_operations, by_network = read_operation_lists(operation_lists_folder)
    return PredictionData(
        mean_per_key(operations, OPERATION_KEY + ["flops", "bytes"]), mean_per_key(networks, NETWORK_KEY),
        measurements, listed_operations, by_network,
    )  # fmt: skip


def mean_per_key(measurements: pandas.DataFrame, kept_columns: list[str]) -> pandas.DataFrame:
    """One row per key: means over its measurements, sorted by key and independent of the file's order."""
    grouped = measurements.groupby("key", sort=True)
    rows = grouped[[*kept_columns, "source"]].first().rename(columns={"source": "family"})
    rows["time_s"], rows["energy_j"] = grouped["time_s"].mean(), grouped["energy_j"].mean()
    return rows.assign(times=grouped.size())


def _operations(folder: Path) -> pandas.DataFrame:
    measurements = pandas.read_csv(folder / "operations.csv.gz", dtype={"cold": str})
    return measurements.assign(key=join_columns(measurements, OPERATION_KEY))


# The same limits as in src/predict/model/network_tables.cc, which contains the reasons.
MAX_LAUNCH_RATIO, MAX_TIME_RATIO, MIN_BUSY_FRACTION, MAX_ISSUE_FRACTION = 1.25, 1.3, 0.9, 0.5


def select_undisturbed(measurements: pandas.DataFrame, busy_s: pandas.Series) -> pandas.DataFrame:
    """Selects the measurements of networks for training and evaluation: for each setting the rows with an undisturbed
    host. If there are none, it keeps settings whose time did not depend on the host."""
    busy = measurements["key"].map(busy_s).fillna(0.0)
    min_launch_s = measurements.groupby("slice")["launch_s"].transform("min")
    has_issue_time = (measurements["issue_s"] > 0) & (busy > 0)
    is_explained = ~has_issue_time | (
        measurements["time_s"] < MAX_TIME_RATIO * pandas.concat([measurements["issue_s"], busy], axis=1).max(axis=1)
    )
    # Rank of a measurement: 2 if the host was undisturbed, 1 if only its launch time is known, 0 otherwise. Of each
    # setting, only the rows with the highest rank count.
    rank = (measurements["launch_s"] > 0).astype(int)
    has_idle_host_windows = (
        measurements["quiet_windows"] != 0 if "quiet_windows" in measurements else True
    )  # 0: no idle-host window was found
    rank = rank.mask(
        (measurements["launch_s"] < MAX_LAUNCH_RATIO * min_launch_s) & is_explained & has_idle_host_windows, 2
    )
    best_measurements = measurements.assign(rank=rank, busy_s=busy)[
        rank == rank.groupby(measurements["key"]).transform("max")
    ]
    means = best_measurements.groupby("key")[["rank", "busy_s", "time_s", "issue_s"]].mean()
    was_ahead = (
        (means["busy_s"] == 0) & (means["issue_s"] > 0) & (means["issue_s"] < MAX_ISSUE_FRACTION * means["time_s"])
    )
    accepted_keys = means.index[
        (means["rank"] == 2) | was_ahead | (means["busy_s"] >= MIN_BUSY_FRACTION * means["time_s"])
    ]
    return best_measurements[best_measurements["key"].isin(accepted_keys)].drop(columns=["rank", "busy_s"])


def _busy_seconds(folder: Path) -> pandas.Series:
    """GPU busy time by key of a setting, s; the table names settings like "timm/resnet50 8x224 fp32 inference"."""
    if not (folder / "busy.csv.gz").exists():
        return pandas.Series(dtype=float)
    table = pandas.read_csv(folder / "busy.csv.gz")
    parts = table["setting"].str.extract(r"^[^/]*/(.*) (\d+)x(\d+) (\S+) (\S+)$")
    return table.assign(key=parts.agg("|".join, axis=1)).groupby("key")["busy_s"].last()


def _read_networks(folder: Path) -> pandas.DataFrame:
    measurements = pandas.read_csv(folder / "networks.csv.gz")
    table = pandas.DataFrame([parse(text) for text in measurements["parameters"]])
    measurements = measurements.assign(**{name: table[name].astype(str) for name in ("name", "batch", "size")})
    return select_undisturbed(measurements.assign(key=join_columns(measurements, NETWORK_KEY)), _busy_seconds(folder))


def read_operation_lists(folder: Path) -> tuple[pandas.DataFrame, dict[str, list[tuple[int, int]]]]:
    """Returns the listed operations, and for each network (id, count) of its operations. Both are empty where the lists
    are missing: then no sum over layers predicts networks, and compare.py prints that."""
    if not (folder / "settings.csv.gz").exists():
        return pandas.DataFrame(columns=["kind", "parameters", "dtype", "pass", "phase"]), {}
    listed_operations = pandas.read_csv(folder / "operations.csv.gz", keep_default_na=False).set_index("id")
    settings = pandas.read_csv(folder / "settings.csv.gz", dtype=str).rename(columns={"network": "name"})
    keys = join_columns(settings, NETWORK_KEY)
    return listed_operations, {key: parse_counts(text) for key, text in zip(keys, settings["operations"])}


def parse_counts(text: str) -> list[tuple[int, int]]:
    pairs = (word.split(":") for word in text.split())
    return [(int(number), int(count)) for number, count in pairs]
