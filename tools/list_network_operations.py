#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/networks/: the operations of the networks that the collector measures, setting by setting.

`operations.csv.gz` contains every distinct operation with a number. `settings.csv.gz` contains a line for each
setting (network, batch, size, type, pass) with its operations as `number:count`, in order of first appearance. The
line also contains the number of Python functions that its forward pass calls. Networks run on fake tensors (without
data). Settings that were measured come first. Existing lines are kept: the tool can be interrupted at any time and
resumes on the next run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

import torch  # noqa: E402
from _collect import networks  # noqa: E402
from _collect.design import format_parameters  # noqa: E402
from _predict.operation_list import list_operations  # noqa: E402

OPERATION_COLUMNS = ["id", "kind", "parameters", "dtype", "pass", "phase"]
SETTING_COLUMNS = [
    "network",
    "family",
    "package",
    "batch",
    "size",
    "dtype",
    "pass",
    "unknown",
    "operations",
    "python_calls",
]


def format_operation_columns(operation: dict) -> tuple[str, ...]:
    form = {"form": operation["form"]} if operation["form"] else {}
    parameters = format_parameters({**form, **operation["parameters"]})
    return operation["kind"], parameters, operation["dtype"], operation["pass"], operation["phase"]


def read_measured_settings(tables: list[Path], network_by_key: dict) -> list[networks.NetworkSetting]:
    measured_settings = []
    for table in tables:
        with gzip.open(table, "rt", newline="") as file:
            for row in csv.DictReader(file):
                parameters = dict(pair.split("=") for pair in row["parameters"].split(";"))
                network = network_by_key.get((parameters["package"], parameters["name"]))
                if network:
                    batch, size = int(parameters["batch"]), int(parameters["size"])
                    measured_settings.append(networks.NetworkSetting(network, batch, size, row["dtype"], row["pass"]))
    return measured_settings


def operations_of_setting(
    loaded_network: networks.LoadedNetwork, device: str, setting: networks.NetworkSetting
) -> dict:
    """Traces what the collector runs for a setting: same network, inputs, loss and optimizer."""
    model_dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(setting.dtype, torch.float32)
    model = loaded_network._model.to(model_dtype)
    setting_inputs = networks.make_setting_inputs(torch, device, setting, model_dtype)
    return list_operations(
        model,
        setting_inputs["inputs"],
        setting_inputs["named"],
        training=setting.pass_name == "training",
        optimizer="adamw" if setting.network.package == "transformers" else "momentum",
        dtype=setting.dtype if setting.dtype in ("fp32", "tf32") else "default",
        autocast=torch.bfloat16 if setting.dtype == "amp-bf16" else None,
    )


class NetworkOperationTables:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.numbers: dict[tuple, int] = {}
        self.settings: dict[tuple, list] = {}
        if (folder / "settings.csv.gz").exists():
            for row in self._read_rows("operations.csv.gz"):
                self.numbers[tuple(row[1:])] = int(row[0])
            for row in self._read_rows("settings.csv.gz"):
                if len(row) == len(SETTING_COLUMNS):  # a row of an earlier version is listed again
                    self.settings[tuple(row[:7])] = row

    def _read_rows(self, name: str) -> list[list[str]]:
        with gzip.open(self._folder / name, "rt", newline="") as file:
            return list(csv.reader(file))[1:]

    def write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write_rows(
            "operations.csv.gz", OPERATION_COLUMNS, [[number, *operation] for operation, number in self.numbers.items()]
        )
        self._write_rows("settings.csv.gz", SETTING_COLUMNS, list(self.settings.values()))

    def _write_rows(self, name: str, columns: list[str], rows: list) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        temporary_path = self._folder / f".{name}"
        temporary_path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
        os.replace(temporary_path, self._folder / name)

    def add(self, setting: networks.NetworkSetting, operation_trace: dict) -> None:
        counts: Counter = Counter()
        for operation in operation_trace["operations"]:
            counts[format_operation_columns(operation)] += operation["count"]
        numbered_counts = [
            f"{self.numbers.setdefault(operation, len(self.numbers))}:{count}" for operation, count in counts.items()
        ]
        unknown = " ".join(sorted({unknown_operation["source"] for unknown_operation in operation_trace["unknown"]}))
        self.settings[setting_key(setting)] = [
            *setting_key(setting),
            unknown,
            " ".join(numbered_counts),
            str(operation_trace["python_calls"]),
        ]


def setting_key(setting: networks.NetworkSetting) -> tuple[str, ...]:
    network = setting.network
    numbers = (str(setting.batch), str(setting.size))
    return network.name, network.family, network.package, *numbers, setting.dtype, setting.pass_name


def list_network(
    network: networks.Network, pending_settings: list[networks.NetworkSetting], tables: NetworkOperationTables
) -> list[str]:
    """Lists one network. Networks that read their data during construction are constructed with data."""
    failures = []
    for device in ("meta", "cpu"):
        try:
            loaded_network = networks.LoadedNetwork(torch, device, network)
        except Exception as error:  # noqa: BLE001 printed below, with the network
            failures.append(f"{network.name} cannot be constructed on {device}: {str(error).splitlines()[0]}")
            continue
        failed_settings = []
        for setting in pending_settings:
            try:
                tables.add(setting, operations_of_setting(loaded_network, device, setting))
            except Exception as error:  # noqa: BLE001
                failed_settings.append(setting)
                failures.append(f"{setting.key} on {device}: {type(error).__name__} {str(error).splitlines()[:1]}")
        pending_settings = failed_settings
        if not pending_settings:
            return []
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "networks")
    parser.add_argument("--measured", type=Path, nargs="*", default=[ROOT / "data" / "h200" / "networks.csv.gz"])
    parser.add_argument("--each", type=int, default=8, help="settings of each network that the collector plans")
    parser.add_argument("--only", nargs="*", default=[], help="names of networks")
    parser.add_argument("--held-out", action="store_true", help="list the held-out networks instead")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--shard", default="0/1", help="part of the networks: 0/2, 1/2; use one folder for each part")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    available_networks = networks.list_all_networks(options.held_out)
    network_by_key = {
        (candidate_network.package, candidate_network.name): candidate_network
        for candidate_network in available_networks
    }
    planned = [
        setting
        for network_settings in networks.plan_networks(options.each, options.held_out)
        for setting in network_settings
    ]
    tables, begin, failures = NetworkOperationTables(options.out), time.monotonic(), []
    shard_index, shard_count = map(int, options.shard.split("/"))
    shard_networks = [
        candidate_network
        for index, candidate_network in enumerate(available_networks)
        if index % shard_count == shard_index
    ]
    shard_networks = [
        candidate_network
        for candidate_network in shard_networks
        if not options.only or candidate_network.name in options.only
    ]
    for settings in (read_measured_settings(options.measured, network_by_key), planned):
        for network in shard_networks:
            pending_settings = dict.fromkeys(setting for setting in settings if setting.network == network)
            pending_settings = [setting for setting in pending_settings if setting_key(setting) not in tables.settings]
            if not pending_settings:
                continue
            if time.monotonic() - begin > options.seconds:
                break
            since = time.monotonic()
            failures += list_network(network, pending_settings, tables)
            tables.write()
            print(f"{network.name}: {len(pending_settings)} settings in {time.monotonic() - since:.1f} s", flush=True)
    print(f"{len(tables.settings)} settings of {len(tables.numbers)} distinct operations in {options.out}")
    for line in failures:
        print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
