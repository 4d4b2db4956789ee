# SPDX-License-Identifier: Apache-2.0
"""Summarizes a set of rows as Markdown tables: counts, distributions, and differences between repeats."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Callable, Sequence

MeasuredRow = dict
NETWORK_KINDS = ("network", "compiled")


def summarize_rows(rows: Sequence[MeasuredRow]) -> str:
    operation_rows = [row for row in rows if row["kind"] not in NETWORK_KINDS]
    network_rows = [row for row in rows if row["kind"] == "network"]
    sections = []
    if operation_rows:
        sections += [
            group_table("kind", operation_rows, lambda row: row["kind"]),
            group_table("type", operation_rows, lambda row: row["dtype"]),
        ]
        sections += [group_table("pass", operation_rows, lambda row: row["pass"])]
    if network_rows:
        distinct_networks = {row["parameters"].split(";")[0] for row in network_rows}
        families = {row["source"] for row in network_rows}
        sections += [f"{len(distinct_networks)} networks of {len(families)} families:"]
        sections += [group_table("network", network_rows, lambda row: f"{row['pass']}, {row['dtype']}")]
    if compiled_rows := [row for row in rows if row["kind"] == "compiled"]:
        sections += [group_table("torch.compile and eager", compiled_rows, lambda row: f"{row['pass']}, {row['way']}")]
    return "\n\n".join([*sections, repeats_table(rows)])


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
    distinct_count = len({row["key"] for row in rows})
    time_text, energy_text = (format_percentiles([row[column] for row in rows]) for column in ("time_s", "energy_j"))
    limited_share = sum(bool(row["limited"]) for row in rows) / len(rows)
    power_uncertainty = median([row["power_error_w"] / row["power_w"] for row in rows])
    power_text = "..".join(f"{value:.0f}" for value in compute_p10_median_p90([row["power_w"] for row in rows]))
    return (
        f"| {name} | {distinct_count} | {time_text}s | {energy_text}J | {power_text} W | {limited_share:.0%} "
        f"| {power_uncertainty:.2%} |"
    )


def compute_p10_median_p90(values: Sequence[float]) -> tuple[float, float, float]:
    """P10, median, P90."""
    ascending = sorted(values)
    last_index = len(ascending) - 1
    return tuple(ascending[round(quantile * last_index)] for quantile in (0.1, 0.5, 0.9))  # type: ignore[return-value]


def median(values: Sequence[float]) -> float:
    return compute_p10_median_p90(values)[1]


def format_percentiles(values: Sequence[float]) -> str:
    """Formats P10, median and P90 with one unit prefix, that of the median."""
    low, median_value, high = compute_p10_median_p90(values)
    prefix, scale = next(
        (
            prefix_and_scale
            for prefix_and_scale in (("", 1.0), ("m", 1e3), ("u", 1e6))
            if median_value * prefix_and_scale[1] >= 1
        ),
        ("n", 1e9),
    )
    return f"{low * scale:.3g}..{median_value * scale:.3g}..{high * scale:.3g} {prefix}"


def repeats_table(rows: Sequence[MeasuredRow]) -> str:
    """Compares repeated rows with the mean of their group: the lower bound of any prediction's error."""
    rows_by_key: dict = defaultdict(list)
    for row in rows:
        rows_by_key[row["key"]].append(row)
    groups = [group for group in rows_by_key.values() if len(group) > 1]
    if not groups:
        return "No row was measured twice."
    lines = ["| measured again | keys | energy differs by | time by | power by |", "|---|---|---|---|---|"]
    for comparison, group in (
        ("same slice", group_repeats_within_slices(groups)),
        ("other slices", group_repeats_across_slices(groups)),
    ):
        lines += format_repeat_lines(comparison, group)
    return "\n".join(
        [*lines, "", "Differences are standard deviations of one measurement, root mean square and median over keys."]
    )


def group_repeats_within_slices(groups: Sequence[Sequence[MeasuredRow]]) -> list[list[MeasuredRow]]:
    rows_by_slice: dict = defaultdict(list)
    for group in groups:
        for row in group:
            rows_by_slice[row["key"], row["slice"]].append(row)
    return [group for group in rows_by_slice.values() if len(group) > 1]


def group_repeats_across_slices(groups: Sequence[Sequence[MeasuredRow]]) -> list[list[MeasuredRow]]:
    """Returns the first row of each slice: another day, perhaps another card."""
    first_rows_per_slice = [list({row["slice"]: row for row in reversed(group)}.values()) for group in groups]
    return [group for group in first_rows_per_slice if len(group) > 1]


def format_repeat_lines(comparison: str, groups: Sequence[Sequence[MeasuredRow]]) -> list[str]:
    groups_by_name: dict = defaultdict(list)
    for group in groups:
        row = group[0]
        duration_class = "above" if row["time_s"] >= 2e-5 else "below"
        name = "networks" if row["kind"] in NETWORK_KINDS else f"operations, calls {duration_class} 20 us"
        groups_by_name["from the host" if row["kind"] in ("input", "optimizer") else name].append(group)
    lines = []
    for name, group in sorted(groups_by_name.items()):
        differences = " | ".join(format_repeat_deviation(group, column) for column in ("energy_j", "time_s", "power_w"))
        lines.append(f"| {name}, {comparison} | {len(group)} | {differences} |")
    return lines


def format_repeat_deviation(groups: Sequence[Sequence[MeasuredRow]], column: str) -> str:
    variances = []
    for group in groups:
        log_values = [math.log(row[column]) for row in group]
        mean = sum(log_values) / len(log_values)
        variances.append(sum((value - mean) ** 2 for value in log_values) / (len(log_values) - 1))
    return f"{math.sqrt(sum(variances) / len(variances)):.2%} (median {math.sqrt(median(variances)):.2%})"
