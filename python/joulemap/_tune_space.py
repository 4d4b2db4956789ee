# SPDX-License-Identifier: Apache-2.0
"""The space of jm.tune: factors and their values, as coordinates of a surrogate model and as Optuna's distributions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

# Finite spaces up to this size are enumerated; of larger ones, this number of points is drawn.
MAX_CANDIDATES = 256
# Candidates near the best point, in spaces that are not enumerated; and their distance in coordinates.
NEIGHBOUR_CANDIDATE_COUNT = 64
NEIGHBOUR_STEP_STD = 0.12


@dataclass(frozen=True)
class Range:
    """The values of a factor between two bounds. uniform(), log_uniform() and integers() return one."""

    low: float
    high: float
    is_log: bool = False
    is_integer: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a range needs low < high, not {self.low!r} and {self.high!r}")
        if self.is_log and self.low <= 0:
            raise ValueError(f"a logarithmic range needs low > 0, not {self.low!r}")

    def to_coordinate(self, value: float) -> float:
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, coordinate: float) -> Union[int, float]:
        if self.is_log:
            value = self.low * (self.high / self.low) ** coordinate
        else:
            value = self.low + coordinate * (self.high - self.low)
        value = min(max(value, self.low), self.high)
        return round(value) if self.is_integer else value


def uniform(low: float, high: float) -> Range:
    """A factor of jm.tune() with all numbers from `low` to `high`."""
    return Range(float(low), float(high))


def log_uniform(low: float, high: float) -> Range:
    """A factor of jm.tune() with all numbers from `low` to `high`, on a logarithmic scale: a learning rate."""
    return Range(float(low), float(high), is_log=True)


def integers(low: int, high: int, *, log: bool = False) -> Range:
    """A factor of jm.tune() with all integers from `low` to `high`."""
    if int(low) != low or int(high) != high:
        raise ValueError(f"integers() needs integers, not {low!r} and {high!r}")
    return Range(int(low), int(high), is_log=log, is_integer=True)


class ConfigSpace:
    """The factors of a search: name -> list of values, or Range."""

    def __init__(self, factors: Mapping) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise TypeError('space must name at least one factor: {"batch_size": [32, 64, 128]}')
        self.factors = {name: _validate_factor(name, values) for name, values in factors.items()}
        # For each coordinate, the index of its factor: a factor without an order has one coordinate for each value.
        self.factor_of_coordinate = [
            index for index, values in enumerate(self.factors.values()) for _ in range(_coordinate_count(values))
        ]

    @property
    def size(self) -> float:
        """Number of configurations; infinite with a continuous factor."""
        return math.prod(_factor_value_count(values) for values in self.factors.values())

    def validate_config(self, config: Mapping) -> dict:
        """The configuration with the factors in order, its values as the space has them (1, not 1.0); raises ValueError
        if it is not in the space."""
        if set(config) != set(self.factors):
            raise ValueError(f"a configuration needs the factors {', '.join(self.factors)}, not {', '.join(config)}")
        return {name: _validate_value(name, config[name], values) for name, values in self.factors.items()}

    def first_config(self) -> dict:
        """The first value of each list and the midpoint of each range."""
        return {
            name: values.value(0.5) if isinstance(values, Range) else values[0] for name, values in self.factors.items()
        }

    def encode(self, config: Mapping) -> list:
        """Coordinates of a configuration, about 0 to 1 for each factor."""
        coordinates: list = []
        for name, values in self.factors.items():
            value = config[name]
            if isinstance(values, Range):
                coordinates.append(values.to_coordinate(value))
            elif _has_numeric_values(values):
                coordinates.append(sorted(values).index(value) / max(1, len(values) - 1))
            else:  # different values have distance 1
                coordinates += [math.sqrt(0.5) * (index == values.index(value)) for index in range(len(values))]
        return coordinates

    def list_candidates(self, random_generator: Any, best_config: Mapping) -> list:
        """Configurations that a trial may try: all of a small space, otherwise random ones and neighbours of the best.
        `random_generator` is a random.Random."""
        if self.size <= MAX_CANDIDATES:
            return self._all_configs()
        random_configs = [
            {name: values.value(random_generator.random()) if isinstance(values, Range)
             else random_generator.choice(values) for name, values in self.factors.items()}
            for _ in range(MAX_CANDIDATES)
        ]  # fmt: skip
        return [
            *random_configs,
            *(self._draw_neighbour(random_generator, best_config) for _ in range(NEIGHBOUR_CANDIDATE_COUNT)),
        ]

    def _all_configs(self) -> list:
        configs: list = [{}]
        for name, values in self.factors.items():
            factor_values = range(int(values.low), int(values.high) + 1) if isinstance(values, Range) else values
            configs = [{**config, name: value} for config in configs for value in factor_values]
        return configs

    def _draw_neighbour(self, random_generator: Any, best_config: Mapping) -> dict:
        """The best configuration with one factor changed, or all a little."""
        changed_factor = random_generator.choice([None, *self.factors])
        config = dict(best_config)
        for name, values in self.factors.items():
            if changed_factor not in (None, name):
                continue
            if isinstance(values, Range):
                coordinate = values.to_coordinate(best_config[name]) + random_generator.gauss(0, NEIGHBOUR_STEP_STD)
                config[name] = values.value(min(max(coordinate, 0), 1))
            elif changed_factor == name:
                config[name] = random_generator.choice(values)
        return config

    def to_optuna_distributions(self) -> dict:
        """The same factors as distributions of Optuna."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        distributions: dict = {}
        for name, values in self.factors.items():
            if not isinstance(values, Range):
                distributions[name] = CategoricalDistribution(values)
            elif values.is_integer:
                distributions[name] = IntDistribution(int(values.low), int(values.high), log=values.is_log)
            else:
                distributions[name] = FloatDistribution(values.low, values.high, log=values.is_log)
        return distributions


def _validate_factor(name: str, values: Any) -> Any:
    if isinstance(values, Range):
        return values
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list of values, or jm.uniform(), jm.log_uniform() or jm.integers()")
    value_list = list(values)
    if not value_list:
        raise ValueError(f"{name} has no value")
    unsupported_values = [
        value for value in value_list if value is not None and not isinstance(value, (bool, int, float, str))
    ]
    if unsupported_values:
        raise TypeError(
            f"values of {name} must be numbers, strings, booleans or None, not {unsupported_values[0]!r}: use names"
        )
    if len(set(value_list)) < len(value_list):
        raise ValueError(f"{name} repeats a value")
    return value_list


def _validate_value(name: str, value: Any, values: Any) -> Any:
    if not isinstance(values, Range):
        if value not in values:
            raise ValueError(f"{name}={value!r} is not in the space")
        return values[values.index(value)]
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (is_number and values.low <= value <= values.high):
        raise ValueError(f"{name}={value!r} is not in the space")
    if values.is_integer and int(value) != value:
        raise ValueError(f"{name}={value!r} is not in the space: it must be an integer")
    return int(value) if values.is_integer else float(value)


def _has_numeric_values(values: list) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _coordinate_count(values: Any) -> int:
    return 1 if isinstance(values, Range) or _has_numeric_values(values) else len(values)


def _factor_value_count(values: Any) -> float:
    if not isinstance(values, Range):
        return len(values)
    return values.high - values.low + 1 if values.is_integer else math.inf
