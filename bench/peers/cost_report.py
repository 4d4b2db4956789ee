# SPDX-License-Identifier: Apache-2.0
"""Overhead of measuring, from the same rounds as accuracy."""

import statistics
from typing import Any, Dict, List

from accuracy import METER_PLANS, list_results
from tables import ReportSection, Table, median_and_half_range

LOAD_NAMES = ["idle", "steady"]


def _cpu_shares(measured: Dict[str, Any], load: str, meter: str) -> List[float]:
    return [repetition["meters"][meter]["cpu_s"] / repetition["seconds"] for repetition in measured["loads"][load]]


def _format_cost_cells(measured: Dict[str, Any], load: str, meter: str) -> List[str]:
    if any(result.get("error") for result in list_results(measured, load, meter)):
        return ["fails", "fails"]
    shares = _cpu_shares(measured, load, meter)
    percent = [100 * share for share in shares]
    return [f"{statistics.median(shares) * 3600:.1f}", median_and_half_range(percent, "{:.3f}")]


def _unfavourable_results(measured: Dict[str, Any]) -> List[str]:
    medians = {
        plan.name: 3600 * statistics.median(_cpu_shares(measured, "idle", plan.name))
        for plan in METER_PLANS
        if not any(result.get("error") for result in list_results(measured, "idle", plan.name))
    }
    joulemap_cpu_s = medians.pop("joulemap", 0.0)
    cheaper_meters = [
        f"{name} ({meter_cpu_s:.1f} s)" for name, meter_cpu_s in medians.items() if meter_cpu_s < joulemap_cpu_s
    ]
    if not cheaper_meters:
        return []
    return [
        f"While it measures, joulemap uses more CPU time ({joulemap_cpu_s:.1f} s per hour) than "
        f"{', '.join(cheaper_meters)}: it reads every 50 ms, they once a second or not at all."
    ]


def report(measured: Dict[str, Any]) -> ReportSection:
    """Creates the table of CPU time."""
    columns = [text for load in LOAD_NAMES for text in (f"{load}: CPU s per hour", f"{load}: % of a CPU")]
    rows = [
        [plan.name, *(cell for load in LOAD_NAMES for cell in _format_cost_cells(measured, load, plan.name))]
        for plan in METER_PLANS
    ]
    results = list_results(measured, "idle", "joulemap")
    stated_cpu_percents = [100 * result["overhead"]["share"] for result in results if "overhead" in result]
    notes = [
        "CPU time of the meter's processes and helpers, seen from outside by their CPU clocks between the "
        "load's two ends: start-up and the calls that begin and end are not in it. A Python process that "
        "only waits uses none, so nothing is taken off.",
        *(
            [f"joulemap says of itself, idle: {median_and_half_range(stated_cpu_percents, '{:.3f}')} % of a CPU."]
            if stated_cpu_percents
            else []
        ),
        "pyJoules does nothing between its two readings, which is why it costs nothing and cannot see a wrap.",
        "The simulated counters are ordinary files, which joulemap reads twice to be sure of them; those "
        "of the kernel it reads once. A real counter costs a register read in the kernel besides.",
    ]
    return ReportSection(
        "Cost while measuring",
        f"What each tool uses while the load runs: median +- half of the range of {measured['repetitions']} "
        f"repetitions of about {measured['seconds']:.0f} s, on an idle machine and under the steady load.",
        [Table("CPU time", ["", *columns], rows)],
        notes,
        unfavourable_results=_unfavourable_results(measured),
    )
