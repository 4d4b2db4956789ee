#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well `report --by token` attributes the energy of a serving engine, by replay.

    python3 bench/h200/tokens.py --joulemap build/dist/joulemap-*/bin/joulemap --json OUT.json
    python3 bench/h200/tokens.py --joulemap build/bin/joulemap --device cpu --quick      a trial, on any machine

- Leave-one-class-out: tokens_load.py serves a mixture of request classes, then the same without one class. The
  difference in counter energy is compared with the energy that the report of the whole mixture calls avoidable for that
  class, and with other shares: Shapley, proportional to tokens, proportional to time.
- Phases: a static batch, then only its prefill, then only its decode, compared with the split of the report.
- Throughput: output tokens per second with and without recording.

Needs joulemap and PyTorch only. About 4 minutes for each model shape; --shapes 1b and --shapes 8b can run separately.
Prints Markdown tables; exits 1 when a bar is missed (not with --quick: short runs on a CPU show that it runs, not how
accurate it is). --recorded analyses the recordings of an earlier --folder, with any version of joulemap.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
COUNTER_LAG_NS = 6_000_000  # of an H200's energy counter at an update, by bench/h200/calibrate.py
MAX_RELATIVE_ERROR = 0.05  # of avoidable energy and of phases
MAX_THROUGHPUT_LOSS = 0.02  # of tokens per second
SHARE_METHODS = ("avoidable", "shapley", "token", "time")


class Recording:
    def __init__(self, joulemap: str, file: Path, options: list[str], device: str) -> None:
        self.joulemap, self.file, self.options = joulemap, file, options
        self.lag_ns = COUNTER_LAG_NS if device.startswith("cuda") else 0
        self.began_ns = self.report([])["start_monotonic_ns"]

    def report(self, arguments: list[str], run: dict | None = None, lag_ns: int = 0) -> dict:
        command = [self.joulemap, "report", "--json", *self.options, *arguments, str(self.file)]
        if run is not None:
            begin_s, end_s = ((run[edge] + lag_ns - self.began_ns) * 1e-9 for edge in ("begin_ns", "end_ns"))
            command += ["--time", f"{max(begin_s, 0):.6f},{end_s:.6f}"]
        completed_process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if completed_process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {completed_process.stderr}")
        return json.loads(completed_process.stdout)

    def energy_j(self, run: dict) -> float:
        """Energy of all counted domains during a run, measured or, without counters, estimated."""
        report = self.report(["--by", "domain"], run, self.lag_ns)
        energy_j = report["measured_j"] if report["measured_j"] is not None else report["estimated_j"]
        if energy_j is None:
            raise SystemExit("no sensor measures or estimates energy here; see joulemap doctor")
        return energy_j

    def serving(self) -> dict:
        serving = self.report(["--by", "request"])["serving"]
        if serving is None:
            raise SystemExit("the recording contains no engine steps")
        return serving


def run_load(arguments: argparse.Namespace, shape: str, folder: Path, recorded: bool) -> tuple[Path, dict]:
    name = f"{shape}-{'recorded' if recorded else 'alone'}"
    file, load_log = folder / f"{name}.joule", folder / f"{name}.json"
    if arguments.recorded:
        return file, json.loads(load_log.read_text())
    program = [sys.executable, str(SCRIPT_FOLDER / "tokens_load.py"), "--shape", shape, "--device", arguments.device]
    program += ["--out", str(load_log), "--run-s", str(arguments.run_s), "--scale", str(arguments.scale)]
    program += ["--mixes", arguments.mixes, "--cache-blocks", str(arguments.cache_blocks)]
    program += ["--no-graphs"] if arguments.no_graphs else []
    program += ["--repeats", str(arguments.repeats)] + (["--only-replays"] if arguments.only_replays else [])
    program += ["--only-throughput"] if arguments.only_throughput or not recorded else []
    if recorded:
        program = [arguments.joulemap, "record", "-o", str(file), *arguments.record_option, "--", *program]
    package = Path(arguments.joulemap).resolve().parent.parent / "python"
    paths = [str(package), os.environ.get("PYTHONPATH", "")]
    began = time.monotonic()
    completed_process = subprocess.run(program, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, check=False)
    if completed_process.returncode != 0:
        raise SystemExit(f"{' '.join(program)}: exit code {completed_process.returncode}")
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return file, json.loads(load_log.read_text())


def compare_replays(serving: dict, runs: list[dict], energies: list[float]) -> list[dict]:
    """One case for each mixture and class that was left out."""
    replay_cases = []
    for mix in dict.fromkeys(run["mix"] for run in runs if run["kind"] == "replay"):
        numbers = [number for number, run in enumerate(runs) if run.get("mix") == mix]
        runs_by_class = {name: [] for name in dict.fromkeys(runs[number]["left_out"] for number in numbers)}
        for number in numbers:
            runs_by_class[runs[number]["left_out"]].append(number)
        # A shared host stalls now and then, which only adds energy: of repeated runs, the one of least energy is the least
        # disturbed. Medians are compared, too.
        least_energy_runs = {
            name: min(class_runs, key=lambda run_index: energies[run_index])
            for name, class_runs in runs_by_class.items()
        }
        median_j = {
            name: statistics.median(energies[run_index] for run_index in class_runs)
            for name, class_runs in runs_by_class.items()
        }
        for name in [left_out_class for left_out_class in runs_by_class if left_out_class is not None]:
            case = class_shares(serving, f"{name}@{least_energy_runs[None]}")
            mixture_energy_j = energies[least_energy_runs[None]]
            avoidable_j = [
                class_shares(serving, f"{name}@{run_index}")["avoidable"] for run_index in runs_by_class[None]
            ]
            medians = {"saved_j": median_j[None] - median_j[name], "avoidable": statistics.median(avoidable_j)}
            saved_j = mixture_energy_j - energies[least_energy_runs[name]]
            replay_cases.append(
                {"mix": mix, "class": name, "whole_j": mixture_energy_j, "saved_j": saved_j, **case, "medians": medians}
            )
    return replay_cases


def class_shares(serving: dict, tenant: str) -> dict:
    label = next(
        label_entry
        for label_entry in serving["labels"]
        if label_entry["kind"] == "tenant" and label_entry["name"] == tenant
    )
    requests = [request for request in serving["requests"] if request["tenant"] == tenant]
    return {
        "avoidable": label["avoidable_j"],
        "low": label["avoidable_low_j"],
        "high": label["avoidable_high_j"],
        "shapley": label["energy_j"],
        "token": sum(request["token_j"] for request in requests),
        "time": sum(request["time_j"] for request in requests),
    }


def compare_phases(serving: dict, runs: list[dict], energies: list[float]) -> list[dict]:
    """For each batch: energy of prefill and decode by the report, and of runs with only prefill and only decode."""
    phase_cases = []
    for key in dict.fromkeys((run["batch"], run["prompt"]) for run in runs if run["kind"] == "phases"):
        batch, prompt = key
        numbers = {
            run["phase"]: number for number, run in enumerate(runs) if (run.get("batch"), run.get("prompt")) == key
        }
        two_phase_requests = [
            request for request in serving["requests"] if request["tenant"] == f"both@{numbers['both']}"
        ]
        for phase in ("prefill", "decode"):
            alone_j = energies[numbers[phase]] / runs[numbers[phase]]["rounds"]
            reported_j = sum(request[f"{phase}_j"] for request in two_phase_requests) / runs[numbers["both"]]["rounds"]
            relative = serving[phase]["high_j"] / serving[phase]["energy_j"] - 1  # of the whole recording
            low, high = reported_j * (1 - relative), reported_j * (1 + relative)
            case = {"batch": batch, "prompt": prompt, "phase": phase, "alone_j": alone_j, "report_j": reported_j}
            phase_cases.append({**case, "low": low, "high": high})
    return phase_cases


def tokens_per_s(load_log: dict) -> float:
    runs = [run for run in load_log["runs"] if run["kind"] == "throughput"]
    return statistics.median(run["output_tokens"] / ((run["end_ns"] - run["begin_ns"]) * 1e-9) for run in runs)


def error(estimated_value: float, true: float) -> float:
    return (estimated_value - true) / true if true else float("nan")


def print_replays(shape: str, cases: list[dict]) -> None:
    print(f"\n### {shape}: energy saved by leaving out a class, and what the report gave it\n")
    print("| mixture | class | whole J | saved J | avoidable | in its interval | Shapley | by tokens | by time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        errors = [f"{error(case[share], case['saved_j']):+.1%}" for share in SHARE_METHODS]
        coverage_cell = "yes" if case["low"] <= case["saved_j"] <= case["high"] else "no"
        print(
            f"| {case['mix']} | {case['class']} | {case['whole_j']:.0f} | {case['saved_j']:.1f} | "
            f"{errors[0]} | {coverage_cell} | " + " | ".join(errors[1:]) + " |"
        )


def print_phases(shape: str, cases: list[dict]) -> None:
    print(f"\n### {shape}: prefill and decode in a batch, and each alone\n")
    print("| batch | prompt tokens | phase | alone J | report J | error | in its interval |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        coverage_cell = "yes" if case["low"] <= case["alone_j"] <= case["high"] else "no"
        print(
            f"| {case['batch']} | {case['prompt']} | {case['phase']} | {case['alone_j']:.2f} | {case['report_j']:.2f} | "
            f"{error(case['report_j'], case['alone_j']):+.1%} | {coverage_cell} |"
        )


def print_throughput(shape: str, unrecorded_tokens_per_s: float, recorded: float) -> None:
    print(
        f"\n{shape}: {unrecorded_tokens_per_s:.1f} output tokens per s alone, {recorded:.1f} recorded: "
        f"{1 - recorded / unrecorded_tokens_per_s:.1%} lost"
    )


def summarize(results: list[dict]) -> bool:
    """Prints the bars and returns whether all hold."""
    cases = [case for result in results for case in result["replays"]]
    phases = [case for result in results for case in result["phases"]]
    print("\n### All shapes\n")
    for share in SHARE_METHODS:
        errors = [abs(error(case[share], case["saved_j"])) for case in cases]
        accurate_count = sum(absolute_error <= MAX_RELATIVE_ERROR for absolute_error in errors)
        print(
            f"- {share}: median error {statistics.median(errors):.1%}, largest {max(errors):.1%}, "
            f"{accurate_count} of {len(errors)} within {MAX_RELATIVE_ERROR:.0%}"
        )
    median_errors = [abs(error(case["medians"]["avoidable"], case["medians"]["saved_j"])) for case in cases]
    print(f"- avoidable, medians of repeated runs: median error {statistics.median(median_errors):.1%}")
    of_whole = [abs(case["avoidable"] - case["saved_j"]) / case["whole_j"] for case in cases]
    print(f"- avoidable, as a share of the whole mixture: median error {statistics.median(of_whole):.1%}")
    max_phase_error = max(abs(error(case["report_j"], case["alone_j"])) for case in phases)
    covered_count = sum(case["low"] <= case["saved_j"] <= case["high"] for case in cases)
    covered_count += sum(case["low"] <= case["alone_j"] <= case["high"] for case in phases)
    losses = [result["lost"] for result in results if result["lost"] is not None]
    print(f"- phases: largest error {max_phase_error:.1%}")
    print(f"- 90 % intervals: {covered_count} of {len(cases) + len(phases)} cover")
    if losses:
        print(f"- tokens per s lost to recording: at most {max(losses):.1%}")
    max_avoidable_error = max(abs(error(case["avoidable"], case["saved_j"])) for case in cases)
    return (
        max_avoidable_error <= MAX_RELATIVE_ERROR
        and max_phase_error <= MAX_RELATIVE_ERROR
        and max(losses, default=0) <= MAX_THROUGHPUT_LOSS
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", default="1b,8b")
    parser.add_argument("--mixes", default="even,chat,retrieval,writing,sparse,dense")
    parser.add_argument("--run-s", type=float, default=4.0, help="length of a run, about")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of prompt and output lengths")
    parser.add_argument("--cache-blocks", type=int, default=24_000)
    parser.add_argument("--record-option", action="append", default=[], help="passed to joulemap record")
    parser.add_argument("--folder", type=Path, help="for recordings; kept")
    parser.add_argument("--recorded", action="store_true", help="analyse what an earlier run left in --folder")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--no-graphs", action="store_true", help="decode without CUDA graphs")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each mixture and of each without a class")
    parser.add_argument("--only-throughput", action="store_true", help="only tokens per s, alone and recorded")
    parser.add_argument("--only-replays", action="store_true", help="no tokens per s")
    parser.add_argument("--quick", action="store_true", help="a tiny network and short runs")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.shapes, arguments.mixes, arguments.run_s = "tiny", "even", 0.5
        arguments.scale, arguments.cache_blocks = 0.05, 1000
    # The GPU's energy alone: other domains contain the rest of the machine.
    options = ["--exclude", "cpu,ram"] if arguments.device.startswith("cuda") else []
    results = []
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(8) as pool:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for shape in arguments.shapes.split(","):
            unrecorded_log = None if arguments.only_replays else run_load(arguments, shape, folder, recorded=False)[1]
            file, load_log = run_load(arguments, shape, folder, recorded=True)
            if arguments.only_throughput:
                print_throughput(shape, tokens_per_s(unrecorded_log), tokens_per_s(load_log))
                continue
            recording = Recording(arguments.joulemap, file, options, arguments.device)
            serving = recording.serving()
            energies = list(pool.map(recording.energy_j, load_log["runs"]))
            result = {
                "shape": shape,
                "replays": compare_replays(serving, load_log["runs"], energies),
                "phases": compare_phases(serving, load_log["runs"], energies),
                "alone_tokens_per_s": tokens_per_s(unrecorded_log) if unrecorded_log else None,
                "recorded_tokens_per_s": tokens_per_s(load_log) if unrecorded_log else None,
                "runs": [{**run, "energy_j": energy_j} for run, energy_j in zip(load_log["runs"], energies)],
                "serving": {key: value for key, value in serving.items() if key not in ("requests", "labels")},
            }
            result["lost"] = (
                1 - result["recorded_tokens_per_s"] / result["alone_tokens_per_s"] if unrecorded_log else None
            )
            results.append(result)
            print_replays(shape, result["replays"])
            print_phases(shape, result["phases"])
            if unrecorded_log:
                print_throughput(shape, tokens_per_s(unrecorded_log), tokens_per_s(load_log))
            if arguments.json:  # after each shape, in case time runs out
                arguments.json.write_text(json.dumps({"device": arguments.device, "results": results}, indent=1))
    if not results:
        return 0
    return 0 if summarize(results) or arguments.quick else 1


if __name__ == "__main__":
    sys.exit(main())
