# SPDX-License-Identifier: Apache-2.0
"""Reads the operations of networks listed in a folder (operations.csv.gz and settings.csv.gz, as in data/networks and
data/seed) as rows to measure.

Networks come in the order of the list; rows within a network are shuffled with a fixed seed. A run that ends anywhere
has measured the first networks completely and a balanced part of the next one.
"""

from __future__ import annotations

import random
from pathlib import Path

from .design import KINDS, SEED, PlannedRow
from .kind import FORWARD
from .tables import records_of, value_of


def plan(folder: Path) -> list[PlannedRow]:
    """Returns each distinct forward operation that a kind of the collector can run, once."""
    listed = {line["id"]: line for line in records_of(folder / "operations.csv.gz")}
    of_networks: dict[str, tuple[str, dict[str, None]]] = {}
    for setting in records_of(folder / "settings.csv.gz"):
        _, numbers = of_networks.setdefault(setting["network"], (setting["family"], {}))
        numbers.update(dict.fromkeys(operation.split(":")[0] for operation in setting["operations"].split()))
    rows: dict[str, PlannedRow] = {}
    for network, (family, numbers) in of_networks.items():
        planned = [planned_of(listed[number], family) for number in numbers if is_measurable(listed[number])]
        random.Random(f"{SEED} {network}").shuffle(planned)
        for row in planned:
            rows.setdefault(row.key, row)
    return list(rows.values())


def is_measurable(line: dict) -> bool:
    return line["kind"] in KINDS and line["pass"] == FORWARD


def planned_of(line: dict, family: str) -> PlannedRow:
    pairs = (pair.split("=") for pair in line["parameters"].split(";"))
    parameters = {name: value_of(text) for name, text in pairs}
    return PlannedRow(line["kind"], parameters, line["dtype"], line["pass"], False, family)
