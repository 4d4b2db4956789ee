# SPDX-License-Identifier: Apache-2.0
"""The searches that are compared: jm.tune, Optuna with a fixed number of trials, and the batch-size optimizer of Zeus (You
et al., NSDI 2023) in its own implementation: pruning exploration, then Gaussian Thompson sampling."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Callable, Optional

import optuna

import joulemap as jm
from joulemap import _tune
from joulemap._tune_space import ConfigSpace

# A job that costs more than this multiple of the least cost so far is stopped: the default of Zeus.
ZEUS_BETA = 2.0
ZEUS_RETRIES = 20


@dataclass
class SearchResult:
    """What a search found and spent."""

    config: dict  # for later runs
    search_j: float
    trials: int
    accuracy: Optional[float]  # of the trial with this configuration
    runs_done: int = 0  # later runs that the search has done already: Zeus trains while it searches
    reason: str = ""
    costs: list = field(default_factory=list)  # (configuration, joules, state) of each trial


class Run:
    """A training that ends at the target or at a limit of its energy, as those of Optuna and Zeus do."""

    def __init__(self, target: float, limit_j: float = math.inf) -> None:
        self.reached, self.accuracy = False, 0.0
        self._target_accuracy, self._limit_j = target, limit_j
        self._window, self._last_total_j = _tune.begin("trial"), 0.0
        self.joules = 0.0

    def report(self, epoch: int, accuracy: float) -> bool:
        self.accuracy = accuracy
        joules = self._window.peek().joules or 0.0
        step_j, self._last_total_j = joules - self._last_total_j, joules
        self.reached = accuracy >= self._target_accuracy
        # Zeus does not begin an epoch that would exceed its limit.
        return self.reached or joules + step_j > self._limit_j

    def end(self) -> None:
        self._window.end()
        self.joules = self._window.wait().joules or 0.0


def search_tune(train: Callable, space: Mapping, default: dict, target: float, runs: int, seed: int) -> SearchResult:
    result = jm.tune(train, space, at_least={"accuracy": target}, default=default, runs_planned=runs, seed=seed)
    config = default if result.best is None else result.best
    best_trial = result.best_trial
    costs = [(row.config, row.energy_j, row.state) for row in result.trials]
    accuracy = None if best_trial is None else best_trial.metrics["accuracy"]
    return SearchResult(config, result.search_j or 0.0, len(result.trials), accuracy, reason=result.reason, costs=costs)


def search_optuna(
    train: Callable, space: Mapping, default: dict, target: float, trials: int, seed: int
) -> SearchResult:
    """Optuna's default sampler minimizes the energy to the target; runs that miss the target count as pruned."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial(default)
    factors, window, costs = ConfigSpace(space), _tune.begin("optuna"), []
    best_run: tuple = (math.inf, default, None)
    for _ in range(trials):
        trial = study.ask(factors.to_optuna_distributions())
        config, run = dict(trial.params), Run(target)
        train(config, run)
        run.end()
        costs.append((config, run.joules, "reached" if run.reached else "missed"))
        if run.reached:
            study.tell(trial, run.joules)
            best_run = min(best_run, (run.joules, config, run.accuracy), key=lambda candidate_run: candidate_run[0])
        else:
            trial.report(-run.accuracy, 0)
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    window.end()
    return SearchResult(best_run[1], window.wait().joules or 0.0, trials, best_run[2], costs=costs)


def search_zeus(train: Callable, batch_sizes: list, default: dict, target: float, runs: int, seed: int) -> SearchResult:
    """`runs` recurrences of the job, each of which trains to the target: simulate_one_job of zeus._legacy.simulate, with
    measured trainings instead of a trace, without power limits, and with energy alone as the cost (eta = 1)."""
    from zeus._legacy.job import Job
    from zeus._legacy.policy.optimizer import PruningGTSBatchSizeOptimizer

    warnings.filterwarnings("ignore", module="zeus")
    job = Job("data", "network", "optimizer", target, 1000, default["batch_size"])
    optimizer = PruningGTSBatchSizeOptimizer(seed=seed, verbose=False)
    optimizer.register_job(job, batch_sizes)
    window, min_spent_j, costs = _tune.begin("zeus"), math.inf, []
    best_run: tuple = (math.inf, default, None)
    completed_runs = 0
    for _ in range(runs):
        spent_j = 0.0
        for _ in range(ZEUS_RETRIES):
            config = {**default, "batch_size": int(optimizer.predict(job))}
            run = Run(target, ZEUS_BETA * min_spent_j)
            train(config, run)
            run.end()
            costs.append((config, run.joules, "reached" if run.reached else "missed"))
            spent_j += run.joules
            optimizer.observe(job, config["batch_size"], run.joules, run.reached)
            if run.reached:
                min_spent_j, completed_runs = min(min_spent_j, spent_j), completed_runs + 1
                best_run = min(best_run, (run.joules, config, run.accuracy), key=lambda candidate_run: candidate_run[0])
                break
            if not completed_runs:
                break  # Zeus assumes that the default reaches the target
        if not completed_runs:
            break
    window.end()
    return SearchResult(
        best_run[1], window.wait().joules or 0.0, len(costs), best_run[2], runs_done=completed_runs, costs=costs
    )
