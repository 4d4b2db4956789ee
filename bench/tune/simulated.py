# SPDX-License-Identifier: Apache-2.0
"""Simulated trainings whose energy to the target is known: a batch size that is small wastes energy per sample, one that is
large needs more samples (McCandlish et al., arXiv 1812.06162); a wrong learning rate slows or diverges. Runs differ."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from typing import Any

from joulemap import Energy

BATCH_SIZES = [8, 16, 32, 64, 128, 256, 512, 1024]
LAYER_WIDTHS = [64, 128, 256]
SAMPLES_PER_EPOCH = 10_000  # of an epoch
MAX_EPOCHS = 60
TARGET_ACCURACY = 0.9
TRUE_COST_RUNS = 40


class Machine:
    """A clock and a meter that only trainings advance. Its windows replace those of joulemap."""

    def __init__(self) -> None:
        self.joules = self.seconds = 0.0

    def advance(self, joules: float, seconds: float) -> None:
        self.joules += joules
        self.seconds += seconds

    def begin(self, name: str = "window") -> Window:
        return Window(self)


class Window:
    def __init__(self, machine: Machine) -> None:
        self._machine, self._begin, self._end = machine, (machine.joules, machine.seconds), None

    def peek(self) -> Energy:
        end = self._end or (self._machine.joules, self._machine.seconds)
        joules, seconds = end[0] - self._begin[0], end[1] - self._begin[1]
        return Energy(joules, 0.0, seconds, None, "simulated", "", settled=True)

    def end(self) -> None:
        self._end = self._end or (self._machine.joules, self._machine.seconds)

    wait = peek


@dataclass
class SimulatedTask:
    """A training job: how much a sample costs, and how fast the accuracy grows."""

    sample_j: float  # energy of a sample in large batches, at width 128
    fixed: float  # batch size below which a step costs mostly its fixed part
    noise_batch: float  # batch size above which more samples are needed
    samples: float  # samples to the target in small batches
    power: float  # shape of the accuracy curve
    rate: float  # best learning rate of large batches
    tolerance: float  # of the learning rate, in natural logarithms
    noise: float  # standard deviation of the logarithm of the samples needed, between runs
    default: int  # default batch size
    watts: float

    def train(self, machine: Machine, source: random.Random, config: dict, trial: Any) -> None:
        batch, width = config["batch_size"], config.get("width", 128)
        rate, slowdown = config.get("lr"), 1.0
        if rate is not None:
            optimal_learning_rate = self.rate / (1 + self.noise_batch / batch)
            slowdown = math.exp(math.log(rate / optimal_learning_rate) ** 2 / (2 * self.tolerance**2))
            if rate > 30 * optimal_learning_rate:
                slowdown = 1e9  # diverges
        highest = {64: 0.925, 128: 0.95, 256: 0.96}[width]
        needed = self.samples * (1 + batch / self.noise_batch) * slowdown * source.lognormvariate(0, self.noise)
        # The accuracy of width 128 reaches the target after `needed` samples.
        scale = needed / (((0.95 - 0.1) / (0.95 - TARGET_ACCURACY)) ** (1 / self.power) - 1)
        epoch_j = SAMPLES_PER_EPOCH * self.sample_j * (1 + self.fixed / batch) * (width / 128) ** 0.8
        for epoch in range(MAX_EPOCHS):
            machine.advance(epoch_j, epoch_j / self.watts)
            accuracy = highest - (highest - 0.1) * (1 + SAMPLES_PER_EPOCH * (epoch + 1) / scale) ** -self.power
            if trial.report(epoch, accuracy=accuracy + source.gauss(0, 0.002)):
                return


def make_task(seed: int) -> SimulatedTask:
    source = random.Random(f"task {seed}")
    draw_log_uniform = lambda low, high: low * (high / low) ** source.random()  # noqa: E731
    return SimulatedTask(
        sample_j=draw_log_uniform(0.001, 0.1), fixed=draw_log_uniform(10, 200),
        noise_batch=draw_log_uniform(30, 1000), samples=draw_log_uniform(3e4, 1.2e5),
        power=source.uniform(0.7, 2), rate=draw_log_uniform(3e-3, 3e-2), tolerance=source.uniform(0.8, 1.8),
        noise=source.uniform(0.02, 0.08), default=source.choice([16, 32, 64, 128, 256]), watts=300,
    )  # fmt: skip


class StopAtTarget:
    """Ends a training at the target."""

    def __init__(self) -> None:
        self.reached = False

    def report(self, epoch: int, accuracy: float) -> bool:
        self.reached = self.reached or accuracy >= TARGET_ACCURACY
        return self.reached


def expected_cost_j(task: SimulatedTask, config: dict) -> float:
    """Expected energy to the target of a later run; of a run that misses it, all its energy, and then the default's."""
    costs = []
    for run in range(TRUE_COST_RUNS):
        machine, source, trial = Machine(), random.Random(f"truth {run}"), StopAtTarget()
        task.train(machine, source, config, trial)
        if not trial.reached:
            task.train(machine, source, {**default_config(task, config)}, trial)
        costs.append(machine.joules)
    return statistics.fmean(costs)


def default_config(task: SimulatedTask, like: dict) -> dict:
    """The default of the space of a configuration: the batch size of the task, a usual learning rate, width 128."""
    return {name: {"batch_size": task.default, "lr": 3e-3, "width": 128}[name] for name in like}
