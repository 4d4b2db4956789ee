# SPDX-License-Identifier: Apache-2.0
"""The cost at which a training will reach a target, from saturating curves of its metric over the cost so far. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple, Optional

from ._early_stop import (
    CURVE_TIME_CONSTANTS, CURVE_EXPONENTS, FITTED_POINT_SHARE, MIN_FITTED_POINTS, LossPoint, _autocorrelation_factor,
    _evaluate_curve_shapes, _fit_curve, t_quantile_95,
)  # fmt: skip


class TargetCost(NamedTuple):
    """The cost at which a curve reaches the target; infinite if it saturates before."""

    value: float
    low: float  # of the steepest curve that fits about as well as the best one


def cost_to_target(points: Sequence[LossPoint], target: float) -> Optional[TargetCost]:
    """Where the loss reaches `target`: points are (cost so far, loss), lower losses are better. None if the points do not
    determine a curve."""
    fitted_count = min(len(points), max(MIN_FITTED_POINTS, math.ceil(FITTED_POINT_SHARE * len(points))))
    recent_points = [point for point in points[-fitted_count:] if point.energy_j > 0]
    if len(recent_points) < MIN_FITTED_POINTS or recent_points[-1].energy_j <= recent_points[0].energy_j:
        return None
    losses = [point.loss for point in recent_points]
    shapes = _evaluate_curve_shapes([point.energy_j for point in recent_points])
    fits = [_fit_curve(shape_values, derivative, losses) for shape_values, derivative in shapes]
    best_fit = min(fits, key=lambda fit: fit.squared_residuals)
    degrees_of_freedom = len(recent_points) - 3
    variance = best_fit.squared_residuals / degrees_of_freedom
    interval_factor = t_quantile_95(degrees_of_freedom) * _autocorrelation_factor(best_fit.residuals)
    last_cost = recent_points[-1].energy_j
    # An evaluation that lies above the curve by chance reaches the target, too.
    eased_target = target + math.sqrt(variance)
    value, low = math.inf, math.inf
    for shape_index, (fit, (shape_values, derivative)) in enumerate(zip(fits, shapes)):
        shape_weight, mean_shape_value, mean_loss = (
            fit.slope / derivative,
            statistics.fmean(shape_values),
            statistics.fmean(losses),
        )
        target_costs = [
            last_cost * _cost_at_loss(shape_index, shape_weight, mean_loss - shape_weight * mean_shape_value, loss)
            for loss in (target, eased_target)
        ]
        if fit is best_fit:
            value = target_costs[0]
        if fit.squared_residuals <= best_fit.squared_residuals + interval_factor**2 * variance:
            low = min(low, *target_costs)
    return TargetCost(max(value, last_cost), min(low, value))


def _cost_at_loss(shape_index: int, shape_weight: float, shape_offset: float, loss: float) -> float:
    """The cost, in units of the last one, at which shape_offset + shape_weight x shape(cost) equals the
    loss."""
    if shape_weight <= 0:
        return math.inf
    shape_level = (loss - shape_offset) / shape_weight
    if shape_index < len(CURVE_EXPONENTS):
        exponent = CURVE_EXPONENTS[shape_index]
        if exponent == 0:
            return math.exp(min(-shape_level, 100.0))
        if exponent > 0:
            return shape_level ** (-1 / exponent) if shape_level > 0 else math.inf
        return (-shape_level) ** (-1 / exponent) if shape_level < 0 else 0.0
    return (
        1 - CURVE_TIME_CONSTANTS[shape_index - len(CURVE_EXPONENTS)] * math.log(shape_level)
        if shape_level > 0
        else math.inf
    )
