# SPDX-License-Identifier: Apache-2.0
"""The cost at which a training will reach a target, from saturating curves of its metric over the cost so far. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple, Optional

from ._early_stop import (
    CURVE_DECAY_RATES, CURVE_EXPONENTS, FITTED_POINT_SHARE, MIN_FITTED_POINTS, LossPoint, _autocorrelation_factor,
    _evaluate_curve_shapes, _fit_curve, t_quantile_95,
)  # fmt: skip


class TargetCost(NamedTuple):
    """The cost at which a curve reaches the target; infinite if it saturates before."""

    value: float
    low: float  # of the steepest curve that fits about as well as the best one


def cost_to_target(points: Sequence[LossPoint], target: float) -> Optional[TargetCost]:
    """Where the loss reaches `target`: points are (cost so far, loss), lower losses are better. None if the points do not
    determine a curve."""
    count = min(len(points), max(MIN_FITTED_POINTS, math.ceil(FITTED_POINT_SHARE * len(points))))
    recent = [point for point in points[-count:] if point.energy_j > 0]
    if len(recent) < MIN_FITTED_POINTS or recent[-1].energy_j <= recent[0].energy_j:
        return None
    losses = [point.loss for point in recent]
    shapes = _evaluate_curve_shapes([point.energy_j for point in recent])
    fits = [_fit_curve(values, derivative, losses) for values, derivative in shapes]
    best = min(fits, key=lambda fit: fit.squared_residuals)
    degrees = len(recent) - 3
    variance = best.squared_residuals / degrees
    factor = t_quantile_95(degrees) * _autocorrelation_factor(best.residuals)
    last = recent[-1].energy_j
    # An evaluation that lies above the curve by chance reaches the target, too.
    eased_target = target + math.sqrt(variance)
    value, low = math.inf, math.inf
    for index, (fit, (values, derivative)) in enumerate(zip(fits, shapes)):
        weight, centre, mean = fit.slope / derivative, statistics.fmean(values), statistics.fmean(losses)
        reached = [last * _cost_at_loss(index, weight, mean - weight * centre, loss) for loss in (target, eased_target)]
        if fit is best:
            value = reached[0]
        if fit.squared_residuals <= best.squared_residuals + factor**2 * variance:
            low = min(low, *reached)
    return TargetCost(max(value, last), min(low, value))


def _cost_at_loss(index: int, weight: float, start: float, loss: float) -> float:
    """The cost, in units of the last one, at which start + weight x shape(cost) equals the loss."""
    if weight <= 0:
        return math.inf
    level = (loss - start) / weight
    if index < len(CURVE_EXPONENTS):
        power = CURVE_EXPONENTS[index]
        if power == 0:
            return math.exp(min(-level, 100.0))
        if power > 0:
            return level ** (-1 / power) if level > 0 else math.inf
        return (-level) ** (-1 / power) if level < 0 else 0.0
    return 1 - CURVE_DECAY_RATES[index - len(CURVE_EXPONENTS)] * math.log(level) if level > 0 else math.inf
