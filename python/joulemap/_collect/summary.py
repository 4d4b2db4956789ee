# SPDX-License-Identifier: Apache-2.0
"""Summarizes a set of rows as Markdown tables: counts, distributions, and differences between repeats."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Callable, Sequence

Row = dict
WHOLE = ("network", "compiled")


def of(rows: Sequence[Row]) -> str:
    operations = [row for row in rows if row["kind"] not in WHOLE]
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
    if compiled := [row for row in rows if row["kind"] == "compiled"]:
        parts += [by("under torch.compile and beside it", compiled, lambda row: f"{row['pass']}, {row['way']}")]
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
    """P10, median, P90."""
    ordered = sorted(values)
    return tuple(ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.5, 0.9))  # type: ignore[return-value]


def middle(values: Sequence[float]) -> float:
    return tenths(values)[1]


def spread(values: Sequence[float]) -> str:
    """Formats P10, median and P90 with one unit prefix, that of the median."""
    low, half, high = tenths(values)
    prefix, scale = next((item for item in (("", 1.0), ("m", 1e3), ("u", 1e6)) if half * item[1] >= 1), ("n", 1e9))
    return f"{low * scale:.3g}..{half * scale:.3g}..{high * scale:.3g} {prefix}"


def repeated(rows: Sequence[Row]) -> str:
    """Compares repeated rows with the mean of their group: the lower bound of any prediction's error."""
    equal: dict = defaultdict(list)
    for row in rows:
        equal[row["key"]].append(row)
    groups = [some for some in equal.values() if len(some) > 1]
    if not groups:
        return "No row was measured twice."
    lines = ["| measured again | keys | joules differ by | time by | power by |", "|---|---|---|---|---|"]
    for where, some in (("same slice", within_slices(groups)), ("other slices", groups_across(groups))):
        lines += lines_of_repeats(where, some)
    return "\n".join(
        [*lines, "", "Differences are standard deviations of one measurement, root mean square and median over keys."]
    )


def within_slices(groups: Sequence[Sequence[Row]]) -> list[list[Row]]:
    split: dict = defaultdict(list)
    for some in groups:
        for row in some:
            split[row["key"], row["slice"]].append(row)
    return [some for some in split.values() if len(some) > 1]


def groups_across(groups: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Returns the first row of each slice: another day, perhaps another card."""
    firsts = [list({row["slice"]: row for row in reversed(some)}.values()) for some in groups]
    return [some for some in firsts if len(some) > 1]


def lines_of_repeats(where: str, groups: Sequence[Sequence[Row]]) -> list[str]:
    by_name: dict = defaultdict(list)
    for some in groups:
        row = some[0]
        size = "above" if row["time_s"] >= 2e-5 else "below"
        name = "networks" if row["kind"] in WHOLE else f"operations, calls {size} 20 us"
        by_name["from the host" if row["kind"] in ("input", "optimizer") else name].append(some)
    lines = []
    for name, some in sorted(by_name.items()):
        told = " | ".join(differ(some, column) for column in ("energy_j", "time_s", "power_w"))
        lines.append(f"| {name}, {where} | {len(some)} | {told} |")
    return lines


def differ(groups: Sequence[Sequence[Row]], column: str) -> str:
    deviations = []
    for some in groups:
        logs = [math.log(row[column]) for row in some]
        mean = sum(logs) / len(logs)
        deviations.append(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    return f"{math.sqrt(sum(deviations) / len(deviations)):.2%} (median {math.sqrt(middle(deviations)):.2%})"
