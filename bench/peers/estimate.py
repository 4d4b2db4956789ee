# SPDX-License-Identifier: Apache-2.0
"""How far estimates are off where no counter can be read: joulemap's, and codecarbon's beside it.

The machines differ in what no tool can know without counters: how much they draw when idle, how power
grows with utilisation, and whether full load comes near the stated limit.
"""

import os
import statistics
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from machine import Law
from scene import MeterPlan, Round, Scene, play
from tables import Section, Table

LOADS = ["idle", "half", "full"]
LIMIT_W = 100.0
PATIENCE_S = 90.0
STATED_INTERVAL = 0.95
DISTURBED_SHARE = 0.1
_ZONE = "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0"


class Kind(NamedTuple):
    """A kind of machine; powers are shares of its limit."""

    name: str
    idle: float
    full: float
    gamma: float

    def law(self) -> Law:
        return Law(self.idle * LIMIT_W, self.full * LIMIT_W, self.gamma)


KINDS = [
    Kind("server, linear", 0.35, 1.0, 1.0),
    Kind("server, concave", 0.35, 1.0, 0.6),
    Kind("desktop, linear", 0.08, 1.0, 1.0),
    Kind("desktop, concave", 0.08, 1.0, 0.6),
    Kind("stays below its limit", 0.10, 0.65, 0.8),
    Kind("goes beyond its limit", 0.15, 1.3, 0.8),
]
METERS = [
    MeterPlan("joulemap", "joulemap", ["--sensors", "estimate", "--sysroot", "{root}"]),
    MeterPlan("codecarbon", "codecarbon", {"force_cpu_power": LIMIT_W, "measure_power_secs": 1}),
]


def _compare(result: Dict[str, Any], scene: Scene) -> Dict[str, Any]:
    """An estimate with the truth over its own window beside it."""
    joules = result.get("package_j")
    if result.get("error") or joules is None:
        return {"error": result.get("error", "nothing")}
    begin_ns, end_ns = result["begin_ns"], result["end_ns"]
    seconds = (end_ns - begin_ns) * 1e-9
    true_j = scene.truth.joules("package-0", begin_ns, end_ns)
    case = {
        "mean_w": joules / seconds,
        "true_w": true_j / seconds,
        "busy_share": scene.truth.cpu_s(begin_ns, end_ns) / seconds / (os.cpu_count() or 1),
        "error_percent": 100 * (joules / true_j - 1),
    }
    uncertainty_j = result.get("package_uncertainty_j")
    if uncertainty_j is not None:
        case["inside"] = abs(joules - true_j) <= uncertainty_j
        case["uncertainty_percent"] = 100 * uncertainty_j / joules
    return case


def _measure_kind(kind: Kind, seconds: float) -> List[Dict[str, Any]]:
    limit_uw = f"{LIMIT_W * 1e6:.0f}\n"
    files = {f"{_ZONE}/constraint_0_{name}_uw": limit_uw for name in ["power_limit", "max_power"]}
    rounds = [Round(load, seconds) for load in LOADS]
    # Nobody reads the counters. Both tools see the simulator's own CPU time, which is no part of the truth.
    rarely = ["--period-us", "10000"]
    scene = play(METERS, rounds, kind.law(), rarely, mount=False, files=files, patience_s=PATIENCE_S)
    return [
        {"kind": kind.name, "load": this["load"]}
        | {name: _compare(result, scene) for name, result in this["meters"].items()}
        for this in scene.rounds
    ]


def measure(seconds: float, say: Callable[[str], None]) -> Dict[str, Any]:
    """Every kind of machine under every load."""
    cases: List[Dict[str, Any]] = []
    for kind in KINDS:
        say(f"estimate: {kind.name}")
        cases += _measure_kind(kind, seconds)
    return {"seconds": seconds, "limit_w": LIMIT_W, "cases": cases}


def _error_text(result: Dict[str, Any]) -> str:
    return "fails" if "error" in result else f"{result['error_percent']:+.0f}"


def _row(case: Dict[str, Any]) -> List[str]:
    own, other = case["joulemap"], case["codecarbon"]
    if "error" in own:
        return [f"{case['kind']}, {case['load']}", "-", "-", "fails", "-", "-", _error_text(other)]
    return [
        f"{case['kind']}, {case['load']}",
        f"{100 * own['busy_share']:.0f}",
        f"{own['true_w']:.1f}",
        _error_text(own),
        f"{own['uncertainty_percent']:.0f}" if "inside" in own else "-",
        {True: "yes", False: "no", None: "-"}[own.get("inside")],
        _error_text(other),
    ]


def _count_inside(cases: List[Dict[str, Any]], load: Optional[str] = None) -> "tuple[int, int]":
    chosen = [case["joulemap"].get("inside") for case in cases if load in (None, case["load"])]
    return sum(1 for inside in chosen if inside), len(chosen)


def _mean_error(cases: List[Dict[str, Any]], name: str) -> str:
    errors = [abs(case[name]["error_percent"]) for case in cases if "error_percent" in case[name]]
    return f"{statistics.mean(errors):.0f} %" if errors else "no figure"


def _shortfalls(cases: List[Dict[str, Any]]) -> List[str]:
    inside, count = _count_inside(cases)
    if inside >= STATED_INTERVAL * count:
        return []
    return [
        f"The interval that joulemap states for its estimate held the truth in {inside} of {count} cases; "
        f"it is meant to hold {STATED_INTERVAL:.0%} of them."
    ]


def _busy_note(cases: List[Dict[str, Any]]) -> str:
    idle = [case["joulemap"].get("busy_share", 0) for case in cases if case["load"] == "idle"]
    disturbed = sum(1 for share in idle if share > DISTURBED_SHARE)
    if not disturbed:
        return "Busy is what it was: the load, and the little that others did on this machine."
    return (
        f"Others were at work on this machine in {disturbed} of {len(idle)} idle cases, maybe in more: "
        "busy is what it was, and not always what the load is called."
    )


def report(measured: Dict[str, Any]) -> Section:
    """The table of errors."""
    cases = measured["cases"]
    columns = ["machine, load", "busy %", "true W", "joulemap %", "+- stated %", "inside", "codecarbon %"]
    per_load = ", ".join("{} {} of {}".format(load, *_count_inside(cases, load)) for load in LOADS)
    notes = [
        "Inside of joulemap's stated interval: {} of {} ({}).".format(*_count_inside(cases), per_load),
        f"Mean size of the errors: joulemap {_mean_error(cases, 'joulemap')}, codecarbon "
        f"{_mean_error(cases, 'codecarbon')}. It depends on the choice of machines and is no property of a "
        "tool.",
        "joulemap: limit x (0.2 + 0.8 x busy share). It reads the limit from powercap, where everybody may.",
        "codecarbon: TDP x (0.1 + 0.9 x busy share cubed), a look every second. It was told the limit, as "
        "force_cpu_power; left alone it looks the CPU's name up in a table, which would tell of this "
        "machine and not of the simulated one.",
        _busy_note(cases),
        "Not covered: machines that tell no limit (most virtual ones), where joulemap takes 3.5 W a thread.",
    ]
    return Section(
        "Estimate",
        f"Error of the package's energy over {measured['seconds']:.0f} s when no counter can be read, on "
        f"simulated machines with a stated limit of {measured['limit_w']:.0f} W. Server and desktop draw "
        "0.35 and 0.08 of it when idle and all of it under full load; concave means that power grows with "
        "utilisation to the power of 0.6; the last two draw 0.65 and 1.3 of the limit under full load. "
        "Half is half of the CPUs busy.",
        [Table("Error of estimates", columns, [_row(case) for case in cases])],
        notes,
        shortfalls=_shortfalls(cases),
    )
