# SPDX-License-Identifier: Apache-2.0
"""Runs the loads for accuracy and overhead: all tools measure the same loads at the same time."""

import os
from typing import Any, Callable, Dict, List

from machine import PowerLaw, SimulatedMachineError, TruthLog
from scene import MeterPlan, LoadRound, MeasuredScene, run_scene_on_simulated_machine

METER_PLANS = [
    MeterPlan("joulemap", "joulemap", ["--sensors", "powercap"]),
    MeterPlan("pyJoules", "pyjoules", {}),
    MeterPlan("Zeus", "zeus", {}),
    MeterPlan("codecarbon, 15 s", "codecarbon", {}),  # its default
    MeterPlan("codecarbon, 1 s", "codecarbon", {"measure_power_secs": 1}),
]
LOAD_NAMES = ["steady", "bursts", "full", "many wraps", "one wrap"]

# Added to the length of a load, so that it is no whole number of seconds: otherwise codecarbon's last periodic reading
# would always coincide with the end, which increases its error.
EXTRA_LOAD_S = 0.2
LOAD_STEP_S = 0.3
PATIENCE_S = 60.0
SECONDS_PER_WRAP = 2.0
INTEL_COUNTER_RANGE_UJ = 262_143_328_850  # max_energy_range_uj of most Intel packages: 2**32 units of 61 uJ


def _load_duration_s(base_duration_s: float, repetition: int) -> float:
    return base_duration_s + EXTRA_LOAD_S + LOAD_STEP_S * (repetition % 3)


def _run_plain_scene(base_duration_s: float, repetitions: int, law: PowerLaw) -> MeasuredScene:
    rounds = [
        LoadRound(load, _load_duration_s(base_duration_s, repetition))
        for repetition in range(repetitions)
        for load in ["steady", "bursts", "full", "idle"]
    ]
    return run_scene_on_simulated_machine(METER_PLANS, rounds, law, patience_s=PATIENCE_S)


def _run_many_wraps_scene(base_duration_s: float, repetitions: int, law: PowerLaw, power_w: float) -> MeasuredScene:
    wrap_uj = round(power_w * SECONDS_PER_WRAP * 1e6)
    rounds = [LoadRound("steady", _load_duration_s(base_duration_s, repetition)) for repetition in range(repetitions)]
    options = ["--wrap-uj", str(wrap_uj), "--start-uj", str(wrap_uj // 2)]
    return run_scene_on_simulated_machine(METER_PLANS, rounds, law, options, patience_s=PATIENCE_S)


def _run_one_wrap_scene(
    base_duration_s: float, repetition: int, law: PowerLaw, power_w: float, warm_up_j: float
) -> MeasuredScene:
    """A scene with the range of real counters, which wrap in the middle of the load.

    The machine uses about warm_up_j until the peers have started; the rest of the range is used up before the load.
    """
    ahead_j = power_w * base_duration_s / 2
    this = LoadRound("steady", _load_duration_s(base_duration_s, repetition), wrap_ahead_j=ahead_j)
    start_uj = round(INTEL_COUNTER_RANGE_UJ - (1.5 * warm_up_j + ahead_j) * 1e6)
    return run_scene_on_simulated_machine(
        METER_PLANS, [this], law, ["--wrap-uj", str(INTEL_COUNTER_RANGE_UJ), "--start-uj", str(start_uj)]
    )


def _add_errors(result: Dict[str, Any], load: Dict[str, Any], truth: TruthLog) -> Dict[str, Any]:
    """Adds the true energy to a meter's result: over the load, and over the meter's own window."""
    result_with_errors = dict(result)
    if "begin_ns" in result:
        result_with_errors["opened_early_ms"] = (load["begin_ns"] - result["begin_ns"]) * 1e-6
        result_with_errors["closed_late_ms"] = (result["end_ns"] - load["end_ns"]) * 1e-6
    for domain, name in [("package", "package-0"), ("dram", "dram-0")]:
        joules = result.get(f"{domain}_j")
        if joules is None or result.get("error"):
            continue
        load_true_j = truth.joules(name, load["begin_ns"], load["end_ns"])
        window_true_j = truth.joules(name, result["begin_ns"], result["end_ns"])
        result_with_errors[f"{domain}_true_j"] = load_true_j
        result_with_errors[f"{domain}_own_true_j"] = window_true_j
        result_with_errors[f"{domain}_error_percent"] = 100 * (joules / load_true_j - 1)
        result_with_errors[f"{domain}_own_error_percent"] = 100 * (joules / window_true_j - 1)
    return result_with_errors


def _collect_rounds(
    scene: MeasuredScene, rounds_by_name: Dict[str, List[Dict[str, Any]]], load_name_function: Callable[[str], str]
) -> None:
    for this in scene.rounds:
        begin_ns, end_ns = this["begin_ns"], this["end_ns"]
        seconds = (end_ns - begin_ns) * 1e-9
        meters = {name: _add_errors(result, this, scene.truth) for name, result in this["meters"].items()}
        rounds_by_name.setdefault(load_name_function(this["load"]), []).append(
            {
                "seconds": seconds,
                "mean_w": scene.truth.joules("package-0", begin_ns, end_ns) / seconds,
                "longest_gap_ms": scene.truth.longest_tick_interval_ns(begin_ns, end_ns) * 1e-6,
                "meters": meters,
            }
        )


def measure(base_duration_s: float, repetitions: int, print_progress: Callable[[str], None]) -> Dict[str, Any]:
    """Runs all loads; returns a list of repetitions for each."""
    law = PowerLaw()
    power_w = law.power_w(1 / (os.cpu_count() or 1))
    loads: Dict[str, List[Dict[str, Any]]] = {}
    print_progress("accuracy: steady, bursts, full, idle")
    _collect_rounds(_run_plain_scene(base_duration_s, repetitions, law), loads, lambda load: load)
    print_progress("accuracy: a counter that wraps often")
    many_wraps_scene = _run_many_wraps_scene(base_duration_s, repetitions, law, power_w)
    _collect_rounds(many_wraps_scene, loads, lambda load: "many wraps")
    warm_up_j = many_wraps_scene.truth.joules(
        "package-0", many_wraps_scene.truth.start_ns, many_wraps_scene.rounds[0]["begin_ns"]
    )
    for repetition in range(repetitions):
        print_progress(f"accuracy: a counter that wraps once, {repetition + 1} of {repetitions}")
        try:
            once = _run_one_wrap_scene(base_duration_s, repetition, law, power_w, warm_up_j)
        except SimulatedMachineError:  # the peers took longer to start, and the counter wrapped before the load
            once = _run_one_wrap_scene(base_duration_s, repetition, law, power_w, 3 * warm_up_j)
        _collect_rounds(once, loads, lambda load: "one wrap")
    return {"seconds": base_duration_s, "repetitions": repetitions, "loads": loads}


def list_results(measured: Dict[str, Any], load: str, meter: str) -> List[Dict[str, Any]]:
    """Results of a meter for a load, one for each repetition."""
    return [repetition["meters"][meter] for repetition in measured["loads"][load]]
