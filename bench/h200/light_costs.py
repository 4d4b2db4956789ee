# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of light mode in a launch-bound training. One process uses the GPU alone. Runs of three steps
are captured or not, in random order, and each run is compared with its neighbour: drift from second to second cancels.

The overhead has two parts: the added time of steps that are not traced, and the added time of traced steps and of
starting CUPTI, weighted by their frequency. Overhead that persists while capture is paused (CUPTI after it was closed,
the recorder) is not included; the table also shows the time of steps before joulemap started.
"""

from __future__ import annotations

import random
import statistics

from delayed_capture import CAPTURE_RUN_STEPS

UNRECORDED_S, SETTLING_STEPS = 8.0, 400
MIN_TRIMMED = 0.02


def write_light_overhead(bench, network: str, most: float, processes: int, turns_s: float) -> None:
    """Writes the table and the bar. `bench` creates workers (capture.py)."""
    runs = [run for run in (measure_process(bench, network, turns_s) for _ in range(processes)) if run is not None]
    if not runs:
        return
    bench.add_line(f"\n### {network}, light\n")
    bench.add_line("| process | before | left alone | watched | a step more | followed | more each | together |")
    bench.add_line("|---|---|---|---|---|---|---|---|")
    for number, run in enumerate(runs, 1):
        bench.add_line(
            f"| {number} | {1e3 * run['before_s']:.2f} ms | {1e3 * run['alone_s']:.2f} ms | "
            f"{1e3 * run['watched_s']:.2f} ms | {statistics.fmean(run['apart']):+.2%} | "
            f"{len(run['extra_s'])} times | {1e3 * mean(run['extra_s']):.0f} ms | "
            f"{combine_overheads(run['apart'], run['extra_s'], run['captured_s']):+.2%} |"
        )
    overhead, low, high = bootstrap_over_processes(runs)
    verdict = bench.bar(f"{network}, joulemap light: added time", overhead <= most)
    bench.add_line(
        f"\n{len(runs)} processes, {turns_s:.0f} s each: **{overhead:+.2%}** ({low:+.2%} to {high:+.2%}), "
        f"<= {most:.0%}: {verdict}"
    )


def measure_process(bench, network: str, turns_s: float) -> dict | None:
    worker = bench.recorded(network, "auto", "joulemap-later")[0]
    if not worker.is_ready():
        bench.add_line(f"light mode of {network}: did not start: {worker.failure}")
        return None
    before_s = worker.run(max(5, round(UNRECORDED_S / worker.run(20)["step_s"])))["step_s"]
    worker.process.stdin.write("watch\n")
    worker.run(SETTLING_STEPS)  # detects that steps are launch-bound and switches to light mode
    steps = worker.ask(f"turns {turns_s}")["steps"]
    worker.end()
    captured_s = sum(step[0] for step in steps if step[1])
    return {"before_s": before_s, "captured_s": captured_s, **compare_neighbouring_runs(steps)}


def compare_neighbouring_runs(steps: list) -> dict:
    """Takes (seconds, captured, traced) per step. Returns relative differences of neighbouring runs without traced
    steps, and the added time of runs with traced steps."""
    runs = [
        steps[start_index : start_index + CAPTURE_RUN_STEPS]
        for start_index in range(0, len(steps) - CAPTURE_RUN_STEPS + 1, CAPTURE_RUN_STEPS)
    ]
    run_summaries = [
        (statistics.fmean(step[0] for step in run), run[0][1], any(step[2] for step in run)) for run in runs
    ]
    relative_differences, extra_s = [], []
    for (first_run_s, is_first_captured, one_followed), (second_run_s, is_second_captured, other_followed) in zip(
        run_summaries, run_summaries[1:]
    ):
        if one_followed or other_followed:
            continue
        if is_first_captured != is_second_captured:
            relative_differences.append(
                first_run_s / second_run_s - 1 if is_first_captured else second_run_s / first_run_s - 1
            )
    usual_s = statistics.median(run_s for run_s, is_captured, followed in run_summaries if is_captured and not followed)
    for run, (run_s, _, followed) in zip(runs, run_summaries):
        if followed:
            extra_s.append(CAPTURE_RUN_STEPS * (run_s - usual_s))
    return {
        "apart": trim_values(relative_differences),
        "extra_s": extra_s,
        "alone_s": statistics.median(run_s for run_s, is_captured, _ in run_summaries if not is_captured),
        "watched_s": usual_s,
    }


def trim_values(values: list[float]) -> list[float]:
    """Removes the same number of values at both ends, because the machine delays some steps."""
    out = max(1, int(MIN_TRIMMED * len(values)))
    return sorted(values)[out:-out]


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def combine_overheads(relative_differences: list[float], extra_s: list[float], captured_s: float) -> float:
    return statistics.fmean(relative_differences) + sum(extra_s) / captured_s


def bootstrap_over_processes(runs: list[dict]) -> tuple[float, float, float]:
    """Returns the mean and its 95 % interval by a bootstrap over processes and over values within each."""
    random_source = random.Random(1)

    def draw() -> float:
        process_overheads = []
        for run in random_source.choices(runs, k=len(runs)):
            extra_s = random_source.choices(run["extra_s"], k=len(run["extra_s"])) if run["extra_s"] else []
            process_overheads.append(
                combine_overheads(random_source.choices(run["apart"], k=len(run["apart"])), extra_s, run["captured_s"])
            )
        return statistics.fmean(process_overheads)

    bootstrap_overheads = sorted(draw() for _ in range(1000))
    overhead = statistics.fmean(combine_overheads(run["apart"], run["extra_s"], run["captured_s"]) for run in runs)
    return overhead, bootstrap_overheads[25], bootstrap_overheads[-26]
