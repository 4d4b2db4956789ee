# SPDX-License-Identifier: Apache-2.0
"""What a set of rows says of itself, in tables of Markdown: how many there are of what, how they are spread, and
what equal ones differ by."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Callable, Sequence

Row = dict


def of(rows: Sequence[Row]) -> str:
    operations = [row for row in rows if row["kind"] != "network"]
    networks = [row for row in rows if row["kind"] == "network"]
    parts = []
    if operations:
        parts += [by("kind", operations, lambda row: row["kind"]), by("type", operations, lambda row: row["dtype"])]
        parts += [by("pass", operations, lambda row: row["pass"])]
    if networks:
        named = {row["parameters"].split(";")[0] for row in networks}
        families = {row["source"] for row in networks}
        parts += [f"{len(named)} networks of {len(families)} families:"]
        parts += [by("network", networks, lambda row: f"{row['pass']}, {row['dtype']}")]
    return "\n\n".join([*parts, repeated(rows)])


def by(title: str, rows: Sequence[Row], name_of: Callable[[Row], str]) -> str:
    groups: dict = defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    lines = [
        f"| {title} | rows | time of a call | joules of a call | power | limited | power known to |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, some in sorted(groups.items()):
        lines.append(line_of(name, some))
    if len(groups) > 1:
        lines.append(line_of("**all**", rows))
    return "\n".join(lines)


def line_of(name: str, rows: Sequence[Row]) -> str:
    distinct = len({row["key"] for row in rows})
    times, joules = (spread([row[column] for row in rows]) for column in ("time_s", "energy_j"))
    limited = sum(bool(row["limited"]) for row in rows) / len(rows)
    known = middle([row["power_error_w"] / row["power_w"] for row in rows])
    powers = "..".join(f"{value:.0f}" for value in tenths([row["power_w"] for row in rows]))
    return f"| {name} | {distinct} | {times}s | {joules}J | {powers} W | {limited:.0%} | {known:.2%} |"


def tenths(values: Sequence[float]) -> tuple[float, float, float]:
    """What a tenth lies below, the middle, what a tenth lies above."""
    ordered = sorted(values)
    return tuple(ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.5, 0.9))  # type: ignore[return-value]


def middle(values: Sequence[float]) -> float:
    return tenths(values)[1]


def spread(values: Sequence[float]) -> str:
    """Three numbers with one prefix of the unit, that of the middle one."""
    low, half, high = tenths(values)
    prefix, scale = next((item for item in (("", 1.0), ("m", 1e3), ("u", 1e6)) if half * item[1] >= 1), ("n", 1e9))
    return f"{low * scale:.3g}..{half * scale:.3g}..{high * scale:.3g} {prefix}"


def repeated(rows: Sequence[Row]) -> str:
    """Equal rows, each against the mean of its likes: the floor under any prediction's error."""
    equal: dict = defaultdict(list)
    for row in rows:
        equal[row["key"]].append(row)
    groups = [some for some in equal.values() if len(some) > 1]
    if not groups:
        return "No row was measured twice."
    lines = ["| measured again | keys | joules differ by | time by | power by |", "|---|---|---|---|---|"]
    kinds = {
        "operations, calls above 20 us": [
            some for some in groups if not is_network(some) and some[0]["time_s"] >= 2e-5
        ],
        "operations, calls below": [some for some in groups if not is_network(some) and some[0]["time_s"] < 2e-5],
        "networks": [some for some in groups if is_network(some)],
    }
    for name, some in kinds.items():
        if some:
            told = " | ".join(differ(some, column) for column in ("energy_j", "time_s", "power_w"))
            lines.append(f"| {name} | {len(some)} | {told} |")
    return "\n".join(
        [*lines, "", "Differences are standard deviations of one measurement, root mean square and median over keys."]
    )


def is_network(some: Sequence[Row]) -> bool:
    return some[0]["kind"] == "network"


def differ(groups: Sequence[Sequence[Row]], column: str) -> str:
    deviations = []
    for some in groups:
        logs = [math.log(row[column]) for row in some]
        mean = sum(logs) / len(logs)
        deviations.append(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    return f"{math.sqrt(sum(deviations) / len(deviations)):.2%} (median {math.sqrt(middle(deviations)):.2%})"
