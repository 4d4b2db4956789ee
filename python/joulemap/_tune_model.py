# SPDX-License-Identifier: Apache-2.0
"""The surrogate model of jm.tune: a Gaussian process over the logarithm of the cost to the target. Its scales are not
fitted but averaged over draws from their prior, weighted by the evidence: a few trials do not determine them. Pure and
deterministic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

HYPERPARAMETER_DRAWS = 64
# Draws with the smallest weights, which together have this share of the weight, are left out.
DROPPED_WEIGHT_SHARE = 0.01
# Standard deviation of the logarithm of the cost relative to the default: the constant part and the part that varies.
LEVEL_LOG_STD = 0.4
PRIOR_AMPLITUDE = 0.5
PRIOR_LENGTH_SCALE = 0.4  # distance over which costs are correlated, for one factor
HYPERPARAMETER_LOG_STD = 0.6  # standard deviation of the logarithm of each of these scales
# Standard deviation of the logarithm of the cost between runs of one configuration: 2 % to 50 % at 90 %. Each
# configuration runs once, so the trials hardly determine it: with a narrower prior, intervals of runs that vary more
# would be too narrow.
PRIOR_NOISE_LOG_STD = 0.1
NOISE_HYPERPRIOR_LOG_STD = 1.0


class CostObservation(NamedTuple):
    """The cost of a configuration, from a trial."""

    point: Sequence  # its coordinates
    log_cost: float  # relative to the default
    spread: float  # standard deviation of log_cost if the cost is a forecast of a stopped trial; otherwise 0


class TrialGain(NamedTuple):
    """What a trial of a configuration would change, in the unit of the cost."""

    saving: float  # expected saving of a later run
    target_cost: float  # expected cost of the trial if it ends at the target, times the probability of that
    pruning_probability: float  # probability that it costs more than the best configuration


class CostModel:
    """The costs of all configurations, given the observations."""

    def __init__(self, observations: Sequence, coordinate_factors: Sequence, seed: int) -> None:
        import numpy as np

        self._np = np
        self._observed_points = np.array([observation.point for observation in observations], dtype=float)
        log_costs = np.array([observation.log_cost for observation in observations], dtype=float)
        forecast_stds = np.array([observation.spread for observation in observations], dtype=float)
        factor_of_coordinate = np.array(coordinate_factors)
        factor_count = int(factor_of_coordinate.max()) + 1
        normal_draws = np.random.default_rng(seed).standard_normal((HYPERPARAMETER_DRAWS, factor_count + 2))
        # With more factors, each one matters less (Hvarfner et al., ICML 2024).
        length_scales = (
            PRIOR_LENGTH_SCALE
            * math.sqrt(factor_count)
            * np.exp(HYPERPARAMETER_LOG_STD * normal_draws[:, :factor_count])
        )
        amplitudes = PRIOR_AMPLITUDE * np.exp(HYPERPARAMETER_LOG_STD * normal_draws[:, factor_count])
        noise_stds = PRIOR_NOISE_LOG_STD * np.exp(NOISE_HYPERPRIOR_LOG_STD * normal_draws[:, factor_count + 1])
        self._length_scales, self._amplitudes = length_scales[:, factor_of_coordinate], amplitudes
        covariances = self._covariance(self._observed_points, self._observed_points)
        log_cost_variances = noise_stds[:, None] ** 2 + forecast_stds[None, :] ** 2 + 1e-9
        covariances[:, np.arange(len(log_costs)), np.arange(len(log_costs))] += log_cost_variances
        self._cholesky_factors = np.linalg.cholesky(covariances)
        whitened_log_costs = np.linalg.solve(
            self._cholesky_factors, np.broadcast_to(log_costs[None, :, None], (HYPERPARAMETER_DRAWS, len(log_costs), 1))
        )
        log_evidence = -0.5 * (whitened_log_costs[:, :, 0] ** 2).sum(1) - np.log(
            np.einsum("sii->si", self._cholesky_factors)
        ).sum(1)
        weights = np.exp(log_evidence - log_evidence.max())
        weights /= weights.sum()
        draw_order = np.argsort(-weights, kind="stable")
        kept_draws = draw_order[: int(np.searchsorted(np.cumsum(weights[draw_order]), 1 - DROPPED_WEIGHT_SHARE)) + 1]
        self._length_scales, self._amplitudes = self._length_scales[kept_draws], self._amplitudes[kept_draws]
        self._cholesky_factors, self._whitened_log_costs, self._noise_stds = (
            self._cholesky_factors[kept_draws],
            whitened_log_costs[kept_draws],
            noise_stds[kept_draws],
        )
        self.weights = weights[kept_draws]
        self.weights /= self.weights.sum()

    def _covariance(self, points: Any, other_points: Any) -> Any:
        """Matern 5/2 between points, for each draw, plus a constant for the unknown level."""
        np = self._np
        differences = points[:, None, :] - other_points[None, :, :]
        squared_distances = np.einsum("ijk,sk->sij", differences**2, self._length_scales**-2.0)
        scaled_distances = np.sqrt(5 * squared_distances)
        return LEVEL_LOG_STD**2 + self._amplitudes[:, None, None] ** 2 * (
            1 + scaled_distances + scaled_distances**2 / 3
        ) * np.exp(-scaled_distances)

    def posterior_log_costs(self, points: Sequence) -> tuple:
        """Means and standard deviations of the log cost without the noise: an array (draws, points) each."""
        np = self._np
        query_points = np.array(points, dtype=float)
        whitened_covariance = np.linalg.solve(
            self._cholesky_factors, self._covariance(self._observed_points, query_points)
        )
        means = (whitened_covariance * self._whitened_log_costs).sum(1)
        variances = LEVEL_LOG_STD**2 + self._amplitudes[:, None] ** 2 - (whitened_covariance**2).sum(1)
        return means, np.sqrt(np.maximum(variances, 1e-12))

    def expected_costs(self, points: Sequence) -> Any:
        """Expected cost at each point, relative to the default."""
        log_cost_means, log_cost_stds = self.posterior_log_costs(points)
        return (self.weights[:, None] * self._np.exp(log_cost_means + log_cost_stds**2 / 2)).sum(0)

    def sample_costs(self, points: Sequence, count: int, seed: int) -> Any:
        """Draws of the costs at the points, jointly: an array (count, points)."""
        np = self._np
        random_generator = np.random.default_rng(seed)
        query_points = np.array(points, dtype=float)
        whitened_covariance = np.linalg.solve(
            self._cholesky_factors, self._covariance(self._observed_points, query_points)
        )
        means = (whitened_covariance * self._whitened_log_costs).sum(1)
        covariances = self._covariance(query_points, query_points) - np.einsum(
            "sni,snj->sij", whitened_covariance, whitened_covariance
        )
        cholesky_factors = np.linalg.cholesky(covariances + 1e-9 * np.eye(len(query_points)))
        hyperparameter_draws = random_generator.choice(len(self.weights), size=count, p=self.weights)
        normal_draws = random_generator.standard_normal((count, len(query_points)))
        noise_variance = self._noise_stds[hyperparameter_draws, None] ** 2  # a later run costs its mean, not its median
        return np.exp(
            means[hyperparameter_draws]
            + np.einsum("sij,sj->si", cholesky_factors[hyperparameter_draws], normal_draws)
            + noise_variance / 2
        )

    def expected_gains(self, points: Sequence, best_cost: float) -> list:
        """What a trial at each point would change, if it stops as soon as it costs more than `best_cost`. The saving is
        that of the expected cost after the trial, which is less certain than the cost of the trial (the knowledge
        gradient)."""
        np = self._np
        log_cost_means, log_cost_stds = self.posterior_log_costs(points)
        std_changes = log_cost_stds**2 / np.sqrt(log_cost_stds**2 + self._noise_stds[:, None] ** 2)
        log_cost_means, log_cost_stds = log_cost_means + (log_cost_stds**2 - std_changes**2) / 2, std_changes
        z = (math.log(best_cost) - log_cost_means) / log_cost_stds
        probability_below, shifted_probability = _normal_cdf(np, z), _normal_cdf(np, z - log_cost_stds)
        reached_cost = np.exp(log_cost_means + log_cost_stds**2 / 2) * shifted_probability
        weighted_average = lambda values: (self.weights[:, None] * values).sum(0)  # noqa: E731
        savings, target_costs, pruning_probabilities = (
            weighted_average(best_cost * probability_below - reached_cost),
            weighted_average(reached_cost),
            weighted_average(1 - probability_below),
        )
        return [
            TrialGain(max(0.0, float(saving)), float(target_cost), float(pruning_probability))
            for saving, target_cost, pruning_probability in zip(savings, target_costs, pruning_probabilities)
        ]


def _normal_cdf(np: Any, z: Any) -> Any:
    """Probability that a standard normal variable is below z, to 1e-7 (Abramowitz and Stegun, 26.2.17): NumPy has no error
    function."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper_tail = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * series
    return np.where(z >= 0, 1 - upper_tail, upper_tail)
