# SPDX-License-Identifier: Apache-2.0
"""Summarizes a set of rows as Markdown tables: counts, distributions, and differences between repeats."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Callable, Sequence

MeasuredRow = dict
NETWORK_KINDS = ("network", "compiled")


def summarize_rows(rows: Sequence[MeasuredRow]) -> str:
    operations = [row for row in rows if row["kind"] not in NETWORK_KINDS]
    networks = [row for row in rows if row["kind"] == "network"]
    parts = []
    if operations:
        parts += [
            group_table("kind", operations, lambda row: row["kind"]),
            group_table("type", operations, lambda row: row["dtype"]),
        ]
        parts += [group_table("pass", operations, lambda row: row["pass"])]
    if networks:
        named = {row["parameters"].split(";")[0] for row in networks}
        families = {row["source"] for row in networks}
        parts += [f"{len(named)} networks of {len(families)} families:"]
        parts += [group_table("network", networks, lambda row: f"{row['pass']}, {row['dtype']}")]
    if compiled := [row for row in rows if row["kind"] == "compiled"]:
        parts += [group_table("torch.compile and eager", compiled, lambda row: f"{row['pass']}, {row['way']}")]
    return "\n\n".join([*parts, repeats_table(rows)])


def group_table(title: str, rows: Sequence[MeasuredRow], name_of: Callable[[MeasuredRow], str]) -> str:
    groups: dict = defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    lines = [
        f"| {title} | rows | time per call | energy per call | power | limited | power uncertainty |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, group in sorted(groups.items()):
        lines.append(table_line(name, group))
    if len(groups) > 1:
        lines.append(table_line("**all**", rows))
    return "\n".join(lines)


def table_line(name: str, rows: Sequence[MeasuredRow]) -> str:
    distinct = len({row["key"] for row in rows})
    times, joules = (format_percentiles([row[column] for row in rows]) for column in ("time_s", "energy_j"))
    limited = sum(bool(row["limited"]) for row in rows) / len(rows)
    known = median([row["power_error_w"] / row["power_w"] for row in rows])
    powers = "..".join(f"{value:.0f}" for value in compute_p10_median_p90([row["power_w"] for row in rows]))
    return f"| {name} | {distinct} | {times}s | {joules}J | {powers} W | {limited:.0%} | {known:.2%} |"


def compute_p10_median_p90(values: Sequence[float]) -> tuple[float, float, float]:
    """P10, median, P90."""
    ordered = sorted(values)
    return tuple(ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.5, 0.9))  # type: ignore[return-value]


def median(values: Sequence[float]) -> float:
    return compute_p10_median_p90(values)[1]


def format_percentiles(values: Sequence[float]) -> str:
    """Formats P10, median and P90 with one unit prefix, that of the median."""
    low, median_value, high = compute_p10_median_p90(values)
    prefix, scale = next(
        (item for item in (("", 1.0), ("m", 1e3), ("u", 1e6)) if median_value * item[1] >= 1), ("n", 1e9)
    )
    return f"{low * scale:.3g}..{median_value * scale:.3g}..{high * scale:.3g} {prefix}"


def repeats_table(rows: Sequence[MeasuredRow]) -> str:
    """Compares repeated rows with the mean of their group: the lower bound of any prediction's error."""
    by_key: dict = defaultdict(list)
    for row in rows:
        by_key[row["key"]].append(row)
    groups = [group for group in by_key.values() if len(group) > 1]
    if not groups:
        return "No row was measured twice."
    lines = ["| measured again | keys | energy differs by | time by | power by |", "|---|---|---|---|---|"]
    for where, group in (
        ("same slice", group_repeats_within_slices(groups)),
        ("other slices", group_repeats_across_slices(groups)),
    ):
        lines += format_repeat_lines(where, group)
    return "\n".join(
        [*lines, "", "Differences are standard deviations of one measurement, root mean square and median over keys."]
    )


def group_repeats_within_slices(groups: Sequence[Sequence[MeasuredRow]]) -> list[list[MeasuredRow]]:
    by_slice: dict = defaultdict(list)
    for group in groups:
        for row in group:
            by_slice[row["key"], row["slice"]].append(row)
    return [group for group in by_slice.values() if len(group) > 1]


def group_repeats_across_slices(groups: Sequence[Sequence[MeasuredRow]]) -> list[list[MeasuredRow]]:
    """Returns the first row of each slice: another day, perhaps another card."""
    first_rows_per_slice = [list({row["slice"]: row for row in reversed(group)}.values()) for group in groups]
    return [group for group in first_rows_per_slice if len(group) > 1]


def format_repeat_lines(where: str, groups: Sequence[Sequence[MeasuredRow]]) -> list[str]:
    by_name: dict = defaultdict(list)
    for group in groups:
        row = group[0]
        size = "above" if row["time_s"] >= 2e-5 else "below"
        name = "networks" if row["kind"] in NETWORK_KINDS else f"operations, calls {size} 20 us"
        by_name["from the host" if row["kind"] in ("input", "optimizer") else name].append(group)
    lines = []
    for name, group in sorted(by_name.items()):
        differences = " | ".join(format_repeat_deviation(group, column) for column in ("energy_j", "time_s", "power_w"))
        lines.append(f"| {name}, {where} | {len(group)} | {differences} |")
    return lines


def format_repeat_deviation(groups: Sequence[Sequence[MeasuredRow]], column: str) -> str:
    deviations = []
    for group in groups:
        logs = [math.log(row[column]) for row in group]
        mean = sum(logs) / len(logs)
        deviations.append(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    return f"{math.sqrt(sum(deviations) / len(deviations)):.2%} (median {math.sqrt(median(deviations)):.2%})"
