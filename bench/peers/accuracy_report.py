# SPDX-License-Identifier: Apache-2.0
"""Tables of accuracy: the error of each tool and its cause."""

import statistics
from typing import Any, Dict, List, Optional

from accuracy import LOAD_NAMES, METER_PLANS, SECONDS_PER_WRAP, list_results
from tables import Bar, ReportSection, Table, median_and_half_range

MAX_ERROR_PERCENT = 0.5
LIMIT_HOLDS_FOR_S = 10.0
MAX_SPREAD_PERCENT = 1.0  # for repetitions that differ by more, the median is not meaningful
LARGE_ERROR_PERCENT = 2.0
STATED_COVERAGE = 0.95

_ERROR_NOTES = [
    "No real counter wraps every few seconds: 262 kJ last for 44 minutes at 100 W. Many wraps represents "
    "hours of work, as seen by a tool that does not read in between; for codecarbon it is harder than "
    "life, as its 15 s are much shorter than 44 minutes.",
    "joulemap reads the counters every 50 ms, so that no wrap escapes it, and interpolates between the "
    "updates around each end of its window.",
    "pyJoules subtracts two readings (EnergyState.compute_energy) and never looks at max_energy_range_uj: "
    "right until the counter wraps, then short by its range for every wrap, which leaves far too little or "
    "a negative energy.",
    "Zeus reads at both ends and adds the wraps that a helper process has counted (RaplWraparoundTracker: "
    "a read every second, every 0.1 s within 100 J of the counter's end). A window that begins or ends "
    "between a wrap and the helper's next read is off by the whole range, up or down.",
    "codecarbon adds the range once for each of its own readings (RAPLFile.delta). Those come every 15 s by "
    "default, so a shorter load has a single one, at its end, and all wraps but one are lost; with "
    "measure_power_secs=1 it sees each of them. Its start() goes on for some milliseconds after its first "
    "reading, and its stop() leaves out the last reading when the one before is less than 50 ms old, which "
    "loads of a whole number of seconds would meet and these do not.",
    "codecarbon counts no DRAM: rapl_include_dram is off by default, and when it is on, DRAM zones below a "
    "package are left out as if the package's figure held them (tried). Its RAM figure is a constant by the "
    "number of modules, and not shown.",
]


def _energy_text(joules: float) -> str:
    return f"{joules * 1e-3:.1f} kJ" if abs(joules) >= 1e4 else f"{joules:.1f} J"


def _error_cell(results: List[Dict[str, Any]], domain: str, key: str) -> str:
    if any(result.get("error") for result in results):
        return "fails"
    values = [result[f"{domain}_j"] for result in results if result.get(f"{domain}_j") is not None]
    if len(values) < len(results):
        return "none"
    negative_energies_j = [value for value in values if value < 0]
    if negative_energies_j:
        return f"{_energy_text(min(negative_energies_j))} ({len(negative_energies_j)} of {len(values)})"
    errors = [result[key] for result in results]
    if max(errors) - min(errors) > MAX_SPREAD_PERCENT:
        return f"{min(errors):+.2f} to {max(errors):+.2f}"
    return median_and_half_range(errors, "{:+.2f}")


def _error_table(measured: Dict[str, Any], title: str, domain: str, key: str) -> Table:
    rows = [
        [plan.name, *(_error_cell(list_results(measured, load, plan.name), domain, key) for load in LOAD_NAMES)]
        for plan in METER_PLANS
    ]
    return Table(title, ["error in %", *LOAD_NAMES], rows)


def _list_failures(measured: Dict[str, Any]) -> List[str]:
    failure_messages: Dict[str, None] = {}  # an ordered set
    for load in LOAD_NAMES:
        for plan in METER_PLANS:
            for result in list_results(measured, load, plan.name):
                if result.get("error"):
                    failure_messages[f'{plan.name} fails: "{result["error"]}".'] = None
    return list(failure_messages)


def _large_error_notes(measured: Dict[str, Any]) -> List[str]:
    """Counts large errors of each tool, which a median hides."""
    parts = []
    for plan in METER_PLANS:
        results = [result for load in LOAD_NAMES for result in list_results(measured, load, plan.name)]
        errors = [abs(result.get("package_own_error_percent", float("inf"))) for result in results]
        parts.append(f"{plan.name} {sum(error > LARGE_ERROR_PERCENT for error in errors)}")
    count = len(LOAD_NAMES) * measured["repetitions"]
    return [f"Package energies that are off by more than {LARGE_ERROR_PERCENT:.0f} %, of {count}: {', '.join(parts)}."]


def _median_error(measured: Dict[str, Any], load: str) -> Optional[float]:
    errors = [result.get("package_error_percent") for result in list_results(measured, load, "joulemap")]
    available_errors = [error for error in errors if error is not None]
    return statistics.median(available_errors) if available_errors and len(available_errors) == len(errors) else None


def _make_error_bars(measured: Dict[str, Any]) -> List[Bar]:
    # The time to open a window does not depend on the load's length, so half the length gives twice the relative error.
    limit = MAX_ERROR_PERCENT * max(1.0, LIMIT_HOLDS_FOR_S / measured["seconds"])
    bars = []
    for load in LOAD_NAMES:
        error = _median_error(measured, load)
        error_text = "no figure" if error is None else f"{error:+.2f} %"
        met = error is not None and abs(error) <= limit
        bars.append(Bar(f"error of package energy, {load}", f"{limit:.1f} %", error_text, met))
    return bars


def _is_truth_in_interval(result: Dict[str, Any]) -> bool:
    return abs(result["package_j"] - result["package_own_true_j"]) <= result["package_uncertainty_j"]


def _results_with_interval(measured: Dict[str, Any]) -> List[Dict[str, Any]]:
    results = [result for load in LOAD_NAMES for result in list_results(measured, load, "joulemap")]
    return [result for result in results if result.get("package_uncertainty_j") is not None]


def _interval_note(measured: Dict[str, Any]) -> List[str]:
    interval_results = _results_with_interval(measured)
    if not interval_results:
        return []
    widths = [100 * result["package_uncertainty_j"] / result["package_j"] for result in interval_results]
    return [
        "joulemap states an interval: the truth over its own window lay inside in "
        f"{sum(map(_is_truth_in_interval, interval_results))} of {len(interval_results)} runs; "
        f"its half width was {min(widths):.3f} to {max(widths):.3f} % of the energy. The others state none."
    ]


def _unfavourable_results(measured: Dict[str, Any]) -> List[str]:
    interval_results = _results_with_interval(measured)
    covered_count = sum(map(_is_truth_in_interval, interval_results))
    if covered_count >= STATED_COVERAGE * len(interval_results):
        return []
    max_error_ratio = max(
        abs(result["package_j"] - result["package_own_true_j"]) / result["package_uncertainty_j"]
        for result in interval_results
    )
    return [
        f"The interval that joulemap states for a measured energy held the truth in {covered_count} of "
        f"{len(interval_results)} runs; it is meant to hold {STATED_COVERAGE:.0%} of them. The worst error was "
        f"{max_error_ratio:.1f} times the half width."
    ]


def _arrangement_notes(measured: Dict[str, Any]) -> List[str]:
    notes = []
    for names, who in [(["joulemap"], "joulemap"), ([plan.name for plan in METER_PLANS[1:]], "the other tools")]:
        results = [result for load in LOAD_NAMES for name in names for result in list_results(measured, load, name)]
        windows = [result for result in results if "opened_early_ms" in result]
        if windows:
            early_ms = statistics.median(window["opened_early_ms"] for window in windows)
            late_ms = statistics.median(window["closed_late_ms"] for window in windows)
            notes.append(
                f"Windows: those of {who} were opened {early_ms:.1f} ms before the load and closed {late_ms:.1f} ms "
                "after it (median)."
            )
    gaps_ms = [repetition["longest_gap_ms"] for load in LOAD_NAMES for repetition in measured["loads"][load]]
    notes.append(
        f"The simulator's longest time without a counter update was {max(gaps_ms):.0f} ms (median of "
        f"the runs' longest: {statistics.median(gaps_ms):.1f} ms), as others use this machine; it should "
        "be 1 ms."
    )
    return notes


def report(measured: Dict[str, Any]) -> ReportSection:
    """Creates the tables of errors and the bar."""
    loads = (
        "Loads: steady is one busy process; bursts is one that is busy for 70 ms and sleeps for 30 ms; "
        "full keeps all CPUs busy. With many wraps the counter starts again about every "
        f"{SECONDS_PER_WRAP:.0f} s under the steady load; with one wrap it has the range of real counters, "
        "262 kJ, and its end comes in the middle of the steady load."
    )
    cells = (
        "Cells: median +- half of the range; the least and the greatest error where they are far apart; "
        "an energy where the tool gave negative ones, the worst of them and in how many repetitions; none "
        "where the tool reports none."
    )
    return ReportSection(
        "Accuracy",
        f"Energy of a load of about {measured['seconds']:.0f} s, against the truth, in "
        f"{measured['repetitions']} repetitions. All tools measure the same load at the same "
        "time, each in a process of its own, started and warmed up beforehand. All windows are opened "
        "before the load and closed after it, joulemap's first, so the first table holds the few "
        "milliseconds in which the others open theirs. The second compares each tool with the truth over "
        "its own window: from the return of its begin call to its end call, for joulemap the life of its "
        "command.",
        [
            _error_table(measured, "Package, truth over the load", "package", "package_error_percent"),
            _error_table(measured, "Package, truth over the tool's own window", "package", "package_own_error_percent"),
            _error_table(measured, "DRAM, truth over the tool's own window", "dram", "dram_own_error_percent"),
        ],
        [
            loads,
            cells,
            *_list_failures(measured),
            *_ERROR_NOTES,
            *_large_error_notes(measured),
            *_interval_note(measured),
            *_arrangement_notes(measured),
        ],
        _make_error_bars(measured),
        _unfavourable_results(measured),
    )
