#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares jm.tune with Optuna (default sampler, fixed numbers of trials) and with the batch-size optimizer of Zeus on the
same spaces: joules until the planned number of trainings has ended, with the search.

    bench/tune/run.py simulated [--tasks 40] [--factors 3]          trainings whose true costs are known
    bench/tune/run.py real [--device cuda] [--seeds 3] [--samples 4096] [--training mlp] [--cpu-time]
    common: [--runs 20] [--only tune] [-o FILE.json]

Needs joulemap, optuna and zeus; `real` needs PyTorch, too. The cost is the energy until the validation accuracy is
reached. `net` is (search + later runs) / (later runs with the default): below 1, the search pays. Zeus trains while it
searches, so its recurrences are the runs. `credited` also counts trials of the others that reached the target as runs.
`--cpu-time` as in bench/predict_total/run.py: energy is the CPU time of the process at 10 W.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "predict_total"))

import optuna
from searches import SearchResult, search_optuna, search_tune, search_zeus
from simulated import BATCH_SIZES, TARGET_ACCURACY, LAYER_WIDTHS, Machine, default_config, make_task, expected_cost_j

import joulemap as jm
from joulemap import _tune

METHODS = ("tune", "optuna 5", "optuna 10", "optuna 20", "zeus")


def search(
    method: str, train: Callable, space: dict, default: dict, target: float, runs: int, seed: int
) -> SearchResult:
    if method == "tune":
        return search_tune(train, space, default, target, runs, seed)
    if method == "zeus":
        return search_zeus(train, space["batch_size"], default, target, runs, seed)
    return search_optuna(train, space, default, target, int(method.split()[1]), seed)


def row_of(
    search_result: SearchResult, method: str, space: str, seed: int, runs: int, default_j: float, best_j: float
) -> dict:
    """`default_j` and `best_j`: expected energy of a later run with the default and with what was found."""
    target_reached_count = sum(state == "reached" for _, _, state in search_result.costs)
    net = lambda completed_runs: (  # noqa: E731
        (search_result.search_j + max(0, runs - completed_runs) * best_j) / (runs * default_j)
    )
    return {
        "space": space, "method": method, "seed": seed, "net": net(search_result.runs_done),
        "credited": net(target_reached_count), "search": search_result.search_j / default_j,
        "found": best_j / default_j, "trials": search_result.trials, "config": search_result.config,
        "accuracy": search_result.accuracy, "default_j": default_j, "reason": search_result.reason,
    }  # fmt: skip


def run_simulated_trainings(options: argparse.Namespace) -> list:
    rows = []
    search_spaces: dict = {"batch size": {"batch_size": BATCH_SIZES}}
    search_spaces["batch size, learning rate, width"] = {
        **search_spaces["batch size"],
        "lr": jm.log_uniform(1e-4, 1e-1),
        "width": LAYER_WIDTHS,
    }
    for name, space in search_spaces.items():
        if options.factors is not None and len(space) != options.factors:
            continue
        for seed in range(options.tasks):
            task = make_task(seed)
            default = default_config(task, space)
            default_j = expected_cost_j(task, default)
            for method in options.only or METHODS:
                machine, source = Machine(), random.Random(f"{seed} {method}")
                _tune.begin = machine.begin

                def train(config: dict, trial: Any) -> None:
                    task.train(machine, source, config, trial)  # noqa: B023

                search_result = search(method, train, space, default, TARGET_ACCURACY, options.runs, seed)
                rows.append(
                    row_of(
                        search_result,
                        method,
                        name,
                        seed,
                        options.runs,
                        default_j,
                        expected_cost_j(task, search_result.config),
                    )
                )
        print_table([row for row in rows if row["space"] == name])
    return rows


def run_real_trainings(options: argparse.Namespace) -> list:
    import torch
    from tuned_trainings import TARGET_EPOCHS, TRAININGS, make_train_function

    if options.device == "cpu":
        torch.set_num_threads(1)

    rows = []
    for name, (space, default) in TRAININGS.items():
        if name not in (options.training or TRAININGS):
            continue
        train = make_train_function(name, options.device, options.samples)
        baseline_trials = [
            _Epochs(TARGET_EPOCHS) for _ in range(3)
        ]  # also because the first runs of a process are slower
        for trial in baseline_trials:
            train(default, trial)
        target = statistics.fmean(trial.accuracy for trial in baseline_trials)
        print(f"{name}: the target is an accuracy of {target:.4f}", flush=True)
        # Energies of later runs: the mean over all trainings of a configuration, of any search, and of three more.
        search_results = {}
        joules_by_config: dict = {}
        for seed in range(options.seeds):
            for method in options.only or METHODS:
                result = search_results[method, seed] = search(
                    method, train, space, default, target, options.runs, seed
                )
                for config, joules, state in result.costs:
                    if state == "reached":
                        joules_by_config.setdefault(_config_key(config), []).append(joules)
                print(f"{name}, seed {seed}, {method}: {result.config}, {result.search_j:.0f} J, {result.trials} trials, "
                      f"accuracy {result.accuracy}", flush=True)  # fmt: skip
        for config in [default, *(result.config for result in search_results.values())]:
            values = joules_by_config.setdefault(_config_key(config), [])
            while len(values) < 3:
                trial = _UnmeasuredTraining(target)
                train(config, trial)
                values.append(trial.joules)
        mean_j = {key: statistics.fmean(values) for key, values in joules_by_config.items()}
        for (method, seed), result in search_results.items():
            rows.append(
                row_of(
                    result,
                    method,
                    name,
                    seed,
                    options.runs,
                    mean_j[_config_key(default)],
                    mean_j[_config_key(result.config)],
                )
            )
        print_table([row for row in rows if row["space"] == name])
    return rows


class _Epochs:
    """A training of a number of epochs."""

    def __init__(self, epochs: int) -> None:
        self._epochs, self.accuracy = epochs, 0.0

    def report(self, epoch: int, accuracy: float) -> bool:
        self.accuracy = accuracy
        return epoch + 1 == self._epochs


class _UnmeasuredTraining:
    """A training to the target, outside of a search."""

    def __init__(self, target: float) -> None:
        self._target_accuracy, self._window, self.joules = target, _tune.begin("later"), 0.0

    def report(self, epoch: int, accuracy: float) -> bool:
        self.joules = self._window.peek().joules or 0.0
        return accuracy >= self._target_accuracy


def _config_key(config: dict) -> str:
    return json.dumps(config, sort_keys=True)


def print_table(rows: list) -> None:
    print(f"{rows[0]['space']}\n{'method':12} {'net':>7} {'credited':>9} {'search':>7} {'found':>7} {'trials':>7} "
          f"{'least accuracy':>15} {'tune wins':>10}")  # fmt: skip
    tune = {row["seed"]: row for row in rows if row["method"] == "tune"}
    for method in dict.fromkeys(row["method"] for row in rows):
        method_rows = [row for row in rows if row["method"] == method]
        columns = ("net", "credited", "search", "found", "trials")
        mean = {name: statistics.fmean(row[name] for row in method_rows) for name in columns}
        accuracies = [row["accuracy"] for row in method_rows if row["accuracy"] is not None]
        tune_wins = sum(tune[row["seed"]]["net"] <= row["net"] for row in method_rows) if tune else 0
        print(f"{method:12} {mean['net']:7.3f} {mean['credited']:9.3f} {mean['search']:7.2f} {mean['found']:7.3f} "
              f"{mean['trials']:7.1f} {min(accuracies, default=0):15.4f} {tune_wins:5}/{len(method_rows)}",
              flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("simulated", "real"))
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--factors", type=int, choices=(1, 3))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--training", choices=("mlp", "cnn"), action="append")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--only", choices=METHODS, action="append")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if options.cpu_time:
        from run import CpuTimeWindow

        _tune.begin = CpuTimeWindow
    rows = run_simulated_trainings(options) if options.kind == "simulated" else run_real_trainings(options)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
