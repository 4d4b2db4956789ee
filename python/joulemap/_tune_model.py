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

    def __init__(self, observations: Sequence, owners: Sequence, seed: int) -> None:
        import numpy as np

        self._np = np
        self._observed_points = np.array([one.point for one in observations], dtype=float)
        logs = np.array([one.log_cost for one in observations], dtype=float)
        spreads = np.array([one.spread for one in observations], dtype=float)
        owner = np.array(owners)
        factors = int(owner.max()) + 1
        normal = np.random.default_rng(seed).standard_normal((HYPERPARAMETER_DRAWS, factors + 2))
        # With more factors, each one matters less (Hvarfner et al., ICML 2024).
        lengths = PRIOR_LENGTH_SCALE * math.sqrt(factors) * np.exp(HYPERPARAMETER_LOG_STD * normal[:, :factors])
        amplitudes = PRIOR_AMPLITUDE * np.exp(HYPERPARAMETER_LOG_STD * normal[:, factors])
        noises = PRIOR_NOISE_LOG_STD * np.exp(NOISE_HYPERPRIOR_LOG_STD * normal[:, factors + 1])
        self._length_scales, self._amplitudes = lengths[:, owner], amplitudes
        covariances = self._covariance(self._observed_points, self._observed_points)
        diagonal = noises[:, None] ** 2 + spreads[None, :] ** 2 + 1e-9
        covariances[:, np.arange(len(logs)), np.arange(len(logs))] += diagonal
        self._cholesky_factors = np.linalg.cholesky(covariances)
        whitened = np.linalg.solve(
            self._cholesky_factors, np.broadcast_to(logs[None, :, None], (HYPERPARAMETER_DRAWS, len(logs), 1))
        )
        evidence = -0.5 * (whitened[:, :, 0] ** 2).sum(1) - np.log(np.einsum("sii->si", self._cholesky_factors)).sum(1)
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        order = np.argsort(-weights, kind="stable")
        kept = order[: int(np.searchsorted(np.cumsum(weights[order]), 1 - DROPPED_WEIGHT_SHARE)) + 1]
        self._length_scales, self._amplitudes = self._length_scales[kept], self._amplitudes[kept]
        self._cholesky_factors, self._whitened_log_costs, self._noise_stds = (
            self._cholesky_factors[kept],
            whitened[kept],
            noises[kept],
        )
        self.weights = weights[kept]
        self.weights /= self.weights.sum()

    def _covariance(self, points: Any, others: Any) -> Any:
        """Matern 5/2 between points, for each draw, plus a constant for the unknown level."""
        np = self._np
        differences = points[:, None, :] - others[None, :, :]
        squares = np.einsum("ijk,sk->sij", differences**2, self._length_scales**-2.0)
        scaled = np.sqrt(5 * squares)
        return LEVEL_LOG_STD**2 + self._amplitudes[:, None, None] ** 2 * (1 + scaled + scaled**2 / 3) * np.exp(-scaled)

    def posterior_log_costs(self, points: Sequence) -> tuple:
        """Means and standard deviations of the log cost without the noise: an array (draws, points) each."""
        np = self._np
        others = np.array(points, dtype=float)
        solved = np.linalg.solve(self._cholesky_factors, self._covariance(self._observed_points, others))
        means = (solved * self._whitened_log_costs).sum(1)
        variances = LEVEL_LOG_STD**2 + self._amplitudes[:, None] ** 2 - (solved**2).sum(1)
        return means, np.sqrt(np.maximum(variances, 1e-12))

    def expected_costs(self, points: Sequence) -> Any:
        """Expected cost at each point, relative to the default."""
        means, spreads = self.posterior_log_costs(points)
        return (self.weights[:, None] * self._np.exp(means + spreads**2 / 2)).sum(0)

    def sample_costs(self, points: Sequence, count: int, seed: int) -> Any:
        """Draws of the costs at the points, jointly: an array (count, points)."""
        np = self._np
        random = np.random.default_rng(seed)
        others = np.array(points, dtype=float)
        solved = np.linalg.solve(self._cholesky_factors, self._covariance(self._observed_points, others))
        means = (solved * self._whitened_log_costs).sum(1)
        covariances = self._covariance(others, others) - np.einsum("sni,snj->sij", solved, solved)
        roots = np.linalg.cholesky(covariances + 1e-9 * np.eye(len(others)))
        drawn = random.choice(len(self.weights), size=count, p=self.weights)
        normal = random.standard_normal((count, len(others)))
        variance = self._noise_stds[drawn, None] ** 2  # a later run costs its mean, not its median
        return np.exp(means[drawn] + np.einsum("sij,sj->si", roots[drawn], normal) + variance / 2)

    def expected_gains(self, points: Sequence, best: float) -> list:
        """What a trial at each point would change, if it stops as soon as it costs more than `best`. The saving is that of
        the expected cost after the trial, which is less certain than the cost of the trial (the knowledge gradient)."""
        np = self._np
        means, spreads = self.posterior_log_costs(points)
        changes = spreads**2 / np.sqrt(spreads**2 + self._noise_stds[:, None] ** 2)
        means, spreads = means + (spreads**2 - changes**2) / 2, changes
        z = (math.log(best) - means) / spreads
        below, shifted = _normal_cdf(np, z), _normal_cdf(np, z - spreads)
        reach = np.exp(means + spreads**2 / 2) * shifted
        weighted_average = lambda values: (self.weights[:, None] * values).sum(0)  # noqa: E731
        savings, reaches, pruned = (
            weighted_average(best * below - reach),
            weighted_average(reach),
            weighted_average(1 - below),
        )
        return [TrialGain(max(0.0, float(a)), float(b), float(c)) for a, b, c in zip(savings, reaches, pruned)]


def _normal_cdf(np: Any, z: Any) -> Any:
    """Probability that a standard normal variable is below z, to 1e-7 (Abramowitz and Stegun, 26.2.17): NumPy has no error
    function."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * series
    return np.where(z >= 0, 1 - tail, tail)
