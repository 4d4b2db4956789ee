# SPDX-License-Identifier: Apache-2.0
"""Reads the operations of networks listed in a folder (operations.csv.gz and settings.csv.gz, as in data/networks and
data/seed) as rows to measure.

Networks come in the order of the list; rows within a network are shuffled with a fixed seed. A run that ends anywhere
has measured the first networks completely and a balanced part of the next one.
"""

from __future__ import annotations

import random
from pathlib import Path

from .design import DESIGN_SEED, OPERATION_KINDS, PlannedRow
from .kind import PASS_FORWARD
from .tables import parse_cell, read_csv_records


def plan_listed_rows(folder: Path) -> list[PlannedRow]:
    """Returns each distinct forward operation that a kind of the collector can run, once."""
    operation_by_id = {line["id"]: line for line in read_csv_records(folder / "operations.csv.gz")}
    operations_by_network: dict[str, tuple[str, dict[str, None]]] = {}
    for setting in read_csv_records(folder / "settings.csv.gz"):
        _, operation_ids = operations_by_network.setdefault(setting["network"], (setting["family"], {}))
        operation_ids.update(dict.fromkeys(counted_id.split(":")[0] for counted_id in setting["operations"].split()))
    rows: dict[str, PlannedRow] = {}
    for network, (family, operation_ids) in operations_by_network.items():
        network_rows = [
            make_listed_row(operation_by_id[operation_id], family)
            for operation_id in operation_ids
            if is_measurable(operation_by_id[operation_id])
        ]
        random.Random(f"{DESIGN_SEED} {network}").shuffle(network_rows)
        for row in network_rows:
            rows.setdefault(row.key, row)
    return list(rows.values())


def is_measurable(line: dict) -> bool:
    return line["kind"] in OPERATION_KINDS and line["pass"] == PASS_FORWARD


def make_listed_row(line: dict, family: str) -> PlannedRow:
    name_value_pairs = (assignment.split("=") for assignment in line["parameters"].split(";"))
    parameters = {name: parse_cell(text) for name, text in name_value_pairs}
    return PlannedRow(line["kind"], parameters, line["dtype"], line["pass"], False, family)
