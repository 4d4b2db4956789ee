# SPDX-License-Identifier: Apache-2.0
"""How far each tool is off, and what it costs while it measures, with all tools on the same loads at the same time."""

import os
import statistics
from typing import Any, Callable, Dict, List, Optional

from machine import Law, MachineFailed, Truth
from scene import MeterPlan, Round, Scene, play
from tables import Bar, Section, Table, median_and_range

LIMIT_PERCENT = 0.5
LIMIT_HOLDS_FOR_S = 10.0

METERS = [
    MeterPlan("joulemap", "joulemap", ["--sensors", "powercap"]),
    MeterPlan("pyJoules", "pyjoules", {}),
    MeterPlan("Zeus", "zeus", {}),
    MeterPlan("codecarbon, 15 s", "codecarbon", {}),  # its default
    MeterPlan("codecarbon, 1 s", "codecarbon", {"measure_power_secs": 1}),
]
LOADS = ["steady", "bursts", "full", "many wraps", "one wrap"]
COST_LOADS = ["idle", "steady"]

# Not a whole number of seconds: codecarbon's last periodic reading would fall on the very end, which flatters or hurts.
BEYOND_S = 0.2
STEP_S = 0.3
SECONDS_PER_WRAP = 2.0
REAL_RANGE_UJ = 262_143_328_850  # max_energy_range_uj of most Intel packages: 2**32 units of 61 uJ


def _seconds(base_s: float, repetition: int) -> float:
    return base_s + BEYOND_S + STEP_S * (repetition % 3)


def _plain_scene(base_s: float, repetitions: int, law: Law) -> Scene:
    rounds = [
        Round(load, _seconds(base_s, repetition))
        for repetition in range(repetitions)
        for load in ["steady", "bursts", "full", "idle"]
    ]
    return play(METERS, rounds, law)


def _scene_of_many_wraps(base_s: float, repetitions: int, law: Law, power_w: float) -> Scene:
    wrap_uj = round(power_w * SECONDS_PER_WRAP * 1e6)
    rounds = [Round("steady", _seconds(base_s, repetition)) for repetition in range(repetitions)]
    return play(METERS, rounds, law, ["--wrap-uj", str(wrap_uj), "--start-uj", str(wrap_uj // 2)])


def _scene_of_one_wrap(base_s: float, repetition: int, law: Law, power_w: float, warm_up_j: float) -> Scene:
    """The range of real counters, whose end comes in the middle of the load.

    Until the peers have started the machine uses about warm_up_j; what is left is burnt before the load.
    """
    ahead_j = power_w * base_s / 2
    this = Round("steady", _seconds(base_s, repetition), wrap_ahead_j=ahead_j)
    start_uj = round(REAL_RANGE_UJ - (1.5 * warm_up_j + ahead_j) * 1e6)
    return play(METERS, [this], law, ["--wrap-uj", str(REAL_RANGE_UJ), "--start-uj", str(start_uj)])


def _with_errors(result: Dict[str, Any], load: Dict[str, Any], truth: Truth) -> Dict[str, Any]:
    """A meter's result with the truth beside it: over the load, and over what the meter itself calls its window."""
    full = dict(result)
    if "begin_ns" in result:
        full["opened_early_ms"] = (load["begin_ns"] - result["begin_ns"]) * 1e-6
        full["closed_late_ms"] = (result["end_ns"] - load["end_ns"]) * 1e-6
    for domain, name in [("package", "package-0"), ("dram", "dram-0")]:
        joules = result.get(f"{domain}_j")
        if joules is None or result.get("error"):
            continue
        over_load_j = truth.joules(name, load["begin_ns"], load["end_ns"])
        own_j = truth.joules(name, result["begin_ns"], result["end_ns"])
        full[f"{domain}_true_j"] = over_load_j
        full[f"{domain}_error_percent"] = 100 * (joules / over_load_j - 1)
        full[f"{domain}_own_error_percent"] = 100 * (joules / own_j - 1)
    return full


def _collect(scene: Scene, into: Dict[str, List[Dict[str, Any]]], name_of: Callable[[str], str]) -> None:
    for this in scene.rounds:
        begin_ns, end_ns = this["begin_ns"], this["end_ns"]
        into.setdefault(name_of(this["load"]), []).append(
            {
                "seconds": (end_ns - begin_ns) * 1e-9,
                "mean_w": scene.truth.joules("package-0", begin_ns, end_ns) / ((end_ns - begin_ns) * 1e-9),
                "longest_gap_ms": scene.truth.longest_gap_ns(begin_ns, end_ns) * 1e-6,
                "meters": {name: _with_errors(result, this, scene.truth) for name, result in this["meters"].items()},
            }
        )


def measure(base_s: float, repetitions: int, say: Callable[[str], None]) -> Dict[str, Any]:
    """All loads; for each a list of repetitions."""
    law = Law()
    power_w = law.power_w(1 / (os.cpu_count() or 1))
    loads: Dict[str, List[Dict[str, Any]]] = {}
    say("accuracy: steady, bursts, full, idle")
    _collect(_plain_scene(base_s, repetitions, law), loads, lambda load: load)
    say("accuracy: a counter that wraps often")
    often = _scene_of_many_wraps(base_s, repetitions, law, power_w)
    _collect(often, loads, lambda load: "many wraps")
    warm_up_j = often.truth.joules("package-0", often.truth.start_ns, often.rounds[0]["begin_ns"])
    for repetition in range(repetitions):
        say(f"accuracy: a counter that wraps once, {repetition + 1} of {repetitions}")
        try:
            once = _scene_of_one_wrap(base_s, repetition, law, power_w, warm_up_j)
        except MachineFailed:  # the peers took longer to start, and it had wrapped before the load
            once = _scene_of_one_wrap(base_s, repetition, law, power_w, 3 * warm_up_j)
        _collect(once, loads, lambda load: "one wrap")
    return {"seconds": base_s, "repetitions": repetitions, "loads": loads}


def _results(measured: Dict[str, Any], load: str, meter: str) -> List[Dict[str, Any]]:
    return [repetition["meters"][meter] for repetition in measured["loads"][load]]


def _energy_text(joules: float) -> str:
    return f"{joules * 1e-3:.1f} kJ" if abs(joules) >= 1e4 else f"{joules:.1f} J"


def _error_cell(results: List[Dict[str, Any]], domain: str, key: str) -> str:
    if any(result.get("error") for result in results):
        return "fails"
    values = [result.get(f"{domain}_j") for result in results]
    if any(value is None for value in values):
        return "none"
    if min(values) < 0:
        return f"negative: {_energy_text(min(values))}"
    return median_and_range([result[key] for result in results], "{:+.2f}")


def _failures(measured: Dict[str, Any]) -> List[str]:
    found: List[str] = []
    for load in measured["loads"]:
        for plan in METERS:
            for result in _results(measured, load, plan.name):
                words = f'{plan.name} fails: "{result.get("error")}".'
                if result.get("error") and words not in found:
                    found.append(words)
    return found


def _error_table(measured: Dict[str, Any], title: str, domain: str, key: str) -> Table:
    rows = [
        [plan.name, *(_error_cell(_results(measured, load, plan.name), domain, key) for load in LOADS)]
        for plan in METERS
    ]
    return Table(title, ["error in %", *LOADS], rows)


def _median_error(measured: Dict[str, Any], load: str) -> Optional[float]:
    errors = [result.get("package_error_percent") for result in _results(measured, load, "joulemap")]
    return None if any(error is None for error in errors) else statistics.median(errors)


def _bars(measured: Dict[str, Any]) -> List[Bar]:
    # The windows are opened and closed in the same time whatever the load's length: half the load, twice the error.
    limit = LIMIT_PERCENT * max(1.0, LIMIT_HOLDS_FOR_S / measured["seconds"])
    bars = []
    for load in LOADS:
        error = _median_error(measured, load)
        shown = "no figure" if error is None else f"{error:+.2f} %"
        met = error is not None and abs(error) <= limit
        bars.append(Bar(f"error of package energy, {load}", f"{limit:.1f} %", shown, met))
    return bars


def report(measured: Dict[str, Any]) -> Section:
    """The tables of errors and the bar."""
    results = [result for load in LOADS for plan in METERS for result in _results(measured, load, plan.name)]
    early_ms = [result["opened_early_ms"] for result in results if "opened_early_ms" in result]
    late_ms = [result["closed_late_ms"] for result in results if "closed_late_ms" in result]
    gaps_ms = [repetition["longest_gap_ms"] for load in LOADS for repetition in measured["loads"][load]]
    notes = [
        "Loads: steady is one busy process; bursts is one that is busy for 70 ms and sleeps for 30 ms; full keeps all CPUs "
        f"busy. With many wraps the counter starts again about every {SECONDS_PER_WRAP:.0f} s under the steady load; with "
        "one wrap it has the range of real counters, 262 kJ, and its end comes in the middle of the steady load.",
        *_failures(measured),
        "joulemap reads the counters every 20 ms, so that no wrap escapes it, and interpolates between the two renewals "
        "around each end of its window.",
        "pyJoules subtracts two readings (EnergyState.compute_energy) and never looks at max_energy_range_uj: right until "
        "the counter wraps, then short by its range for every wrap, which mostly leaves a negative energy.",
        "Zeus reads at both ends and adds the wraps that a helper process has counted (RaplWraparoundTracker: a look every "
        "second, every 0.1 s within 100 J of the end). A window that begins or ends between a wrap and the helper's next "
        "look is off by the whole range: up to 0.1 s in which it can happen at each wrap, so it is seldom met.",
        "codecarbon adds the range once for each of its own readings (RAPLFile.delta). Those come every 15 s by default, so "
        "a 10 s load has a single one, at its end, and all wraps but one are lost; with measure_power_secs=1 it sees each. "
        "Its stop() leaves out the last reading when the one before is less than 50 ms old.",
        "codecarbon counts no DRAM: rapl_include_dram is off by default, and when it is on, DRAM zones below a package are "
        "left out as if the package held them. Its RAM figure is a constant by the number of modules and not shown.",
        "Simulator: its longest time without renewing the counters was "
        f"{max(gaps_ms):.0f} ms (median {statistics.median(gaps_ms):.1f} ms); a real one renews every millisecond.",
    ]
    if early_ms:
        notes.append(
            f"Windows were opened {statistics.median(early_ms):.1f} ms before the load began and closed "
            f"{statistics.median(late_ms):.1f} ms after it ended (median of all tools)."
        )
    return Section(
        "Accuracy",
        f"Energy of a load of about {measured['seconds']:.0f} s, against the truth: median (range) of "
        f"{measured['repetitions']} repetitions. All tools measure the same load at the same time, each in a process of "
        "its own, started and warmed up beforehand. All windows are opened before the load and closed after it, so the "
        "first table holds the few milliseconds in which the other tools open theirs; the second compares each tool with "
        "the truth over its own window, from the return of its begin call to its end call.",
        [
            _error_table(measured, "Package, truth over the load", "package", "package_error_percent"),
            _error_table(measured, "Package, truth over the tool's own window", "package", "package_own_error_percent"),
            _error_table(measured, "DRAM, truth over the tool's own window", "dram", "dram_own_error_percent"),
        ],
        notes,
        _bars(measured),
    )


def _cost_cell(measured: Dict[str, Any], load: str, meter: str) -> List[str]:
    shares = [
        repetition["meters"][meter]["cpu_s"] / repetition["seconds"] for repetition in measured["loads"][load]
    ]
    return [f"{statistics.median(shares) * 3600:.1f}", median_and_range([100 * share for share in shares], "{:.3f}")]


def report_cost(measured: Dict[str, Any]) -> Section:
    """What measuring costs, from the same rounds."""
    columns = [text for load in COST_LOADS for text in (f"{load}: CPU s per hour", f"{load}: % of a CPU")]
    rows = [
        [plan.name, *(cell for load in COST_LOADS for cell in _cost_cell(measured, load, plan.name))]
        for plan in METERS
    ]
    stated = [
        100 * result["overhead"]["share"] for result in _results(measured, "idle", "joulemap") if "overhead" in result
    ]
    notes = [
        "CPU time of the meter's processes and helpers, from outside, by their CPU clocks, between the load's two ends: "
        "start-up and the two calls are not in it. A Python process that only waits costs nothing, so nothing is taken off.",
        "pyJoules does nothing between its two readings, which is why it costs nothing and cannot see a wrap.",
        "The simulated counters are ordinary files, which joulemap reads twice to be sure of them; those of a kernel it "
        "reads once. A real counter costs a register read in the kernel instead.",
    ]
    if stated:
        notes.insert(1, f"joulemap says of itself, idle: {median_and_range(stated, '{:.3f}')} % of a CPU.")
    return Section(
        "Cost while measuring",
        f"What each tool uses while the load runs: median (range) of {measured['repetitions']} repetitions of about "
        f"{measured['seconds']:.0f} s, on an idle machine and under the steady load.",
        [Table("CPU time", ["", *columns], rows)],
        notes,
    )
