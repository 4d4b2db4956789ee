# SPDX-License-Identifier: Apache-2.0
"""jm.EarlyStop: stops a training when a further unit of loss costs more joules than the user pays for it. The slope of
the loss over the energy comes from saturating curves fitted to the measured points; estimate_loss_slope() is pure."""

from __future__ import annotations

import math
import statistics
from typing import Any, NamedTuple, Optional, Sequence

from ._energy import Energy, _format_number
from ._measure import Measurement, begin
from ._validate_statistics import t_quantile_95

# Shapes of curves a + b f(J): powers J^-c of the energy (0: its logarithm), and exponentials exp(-J / tau) with tau as a
# fraction of the energy of the last point. Negative c are curves that do not saturate yet, as at the beginning of a
# training.
CURVE_EXPONENTS = (-3.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
CURVE_TIME_CONSTANTS = (0.05, 0.1, 0.2, 0.4, 0.8)
# The curve is fitted to this fraction of the points, the latest ones, and at least to MIN_FITTED_POINTS.
FITTED_POINT_SHARE = 0.6
MIN_FITTED_POINTS = 5
MAX_AUTOCORRELATION = 0.8
# Beyond this number, points are means of two, four ... updates.
MAX_LOSS_POINTS = 100


class LossPoint(NamedTuple):
    """The loss after an energy since the beginning of the training."""

    energy_j: float
    loss: float


class LossSlope(NamedTuple):
    """Decrease of the loss per joule at the last point, with its 90 % interval; never negative."""

    value: float
    low: float
    high: float


def estimate_loss_slope(points: Sequence) -> Optional[LossSlope]:
    """Slope at the last point of curves that decrease, most of which saturate. Every shape that fits about as well as the
    best one contributes to the interval. None if the points do not determine a curve."""
    fitted_point_count = min(len(points), max(MIN_FITTED_POINTS, math.ceil(FITTED_POINT_SHARE * len(points))))
    fitted_points = [point for point in points[-fitted_point_count:] if point.energy_j > 0]
    if len(fitted_points) < MIN_FITTED_POINTS or fitted_points[-1].energy_j <= fitted_points[0].energy_j:
        return None
    losses = [point.loss for point in fitted_points]
    curve_shapes = _evaluate_curve_shapes([point.energy_j for point in fitted_points])
    curve_fits = [_fit_curve(curve_values, derivative, losses) for curve_values, derivative in curve_shapes]
    best_fit = min(curve_fits, key=lambda fit: fit.squared_residuals)
    degrees_of_freedom = len(fitted_points) - 3
    t_value = t_quantile_95(degrees_of_freedom)
    residual_variance = best_fit.squared_residuals / degrees_of_freedom
    autocorrelation_factor = _autocorrelation_factor(best_fit.residuals)
    plausible_fits = [
        fit
        for fit in curve_fits
        if fit.squared_residuals
        <= best_fit.squared_residuals + (t_value * autocorrelation_factor) ** 2 * residual_variance
    ]
    residual_error = t_value * autocorrelation_factor * math.sqrt(residual_variance)
    low = min(fit.slope - residual_error * fit.slope_error for fit in plausible_fits)
    high = max(fit.slope + residual_error * fit.slope_error for fit in plausible_fits)
    return LossSlope(max(0.0, best_fit.slope), max(0.0, low), max(0.0, high))


class _CurveFit(NamedTuple):
    slope: float  # decrease of the loss per joule at the last point
    slope_error: float  # standard error of the slope for residuals of standard deviation 1
    squared_residuals: float
    residuals: list


def _average_points(points: Sequence) -> LossPoint:
    return LossPoint(
        statistics.fmean(point.energy_j for point in points), statistics.fmean(point.loss for point in points)
    )


def _evaluate_curve_shapes(energies_j: Sequence) -> list:
    """For each shape: its values at the points, and minus its derivative at the last one, in 1/J."""
    last_energy_j = energies_j[-1]
    relative_energies = [energy_j / last_energy_j for energy_j in energies_j]
    curve_shapes = []
    for exponent in CURVE_EXPONENTS:
        sign = math.copysign(1.0, exponent)
        curve_values = (
            [-math.log(x) for x in relative_energies]
            if exponent == 0
            else [sign * x**-exponent for x in relative_energies]
        )
        curve_shapes.append((curve_values, (abs(exponent) or 1.0) / last_energy_j))
    for relative_tau in CURVE_TIME_CONSTANTS:
        curve_shapes.append(
            ([math.exp((1 - x) / relative_tau) for x in relative_energies], 1 / (relative_tau * last_energy_j))
        )
    return curve_shapes


def _fit_curve(curve_values: list, derivative: float, losses: list) -> _CurveFit:
    """Least squares of loss = a + b x curve value. b is negative if the loss rises."""
    mean_curve_value, mean_loss = statistics.fmean(curve_values), statistics.fmean(losses)
    squared_deviations = sum((curve_value - mean_curve_value) ** 2 for curve_value in curve_values)
    coefficient = (
        sum((curve_value - mean_curve_value) * (loss - mean_loss) for curve_value, loss in zip(curve_values, losses))
        / squared_deviations
    )
    residuals = [
        loss - mean_loss - coefficient * (curve_value - mean_curve_value)
        for curve_value, loss in zip(curve_values, losses)
    ]
    squared_residuals = sum(residual**2 for residual in residuals)
    return _CurveFit(coefficient * derivative, derivative / math.sqrt(squared_deviations), squared_residuals, residuals)


def _autocorrelation_factor(residuals: Sequence) -> float:
    """Factor of a standard error for the autocorrelation of the residuals at lag 1."""
    squared_residuals = sum(residual**2 for residual in residuals)
    if squared_residuals == 0:
        return 1.0
    lag_1_autocorrelation = (
        sum(earlier_residual * later_residual for earlier_residual, later_residual in zip(residuals, residuals[1:]))
        / squared_residuals
    )
    clamped_autocorrelation = min(max(lag_1_autocorrelation, 0.0), MAX_AUTOCORRELATION)
    return math.sqrt((1 + clamped_autocorrelation) / (1 - clamped_autocorrelation))


class EarlyStop:
    """Stops a training run when a further unit of loss costs more than `joules_per_loss` joules. Create it just before the
    loop, and call update() after each evaluation:

        stop = jm.EarlyStop(joules_per_loss=500)
        for epoch in range(100):
            train()
            if stop.update(evaluate()):
                print(stop.reason)
                break

    It fits saturating curves to the losses over the measured energy of the machine. It stops when the upper bound of the
    slope (90 % interval) stays below 1 / `joules_per_loss` for `confirmations` updates in a row, and never while the
    energy is unknown. It does not anticipate later drops of the loss, such as after a change of the learning rate.

    - `joules_per_loss`: the most that a decrease of the loss by 1 may cost, in J; for an accuracy, update(1 - accuracy)
    - `warm_up`: number of first updates to ignore
    - `evaluations`: minimum number of updates after the warm-up before it may stop, 5 or more
    - `confirmations`: number of updates in a row that must agree
    """

    def __init__(
        self, joules_per_loss: float, *, warm_up: int = 1, evaluations: int = 6, confirmations: int = 2
    ) -> None:
        if not (math.isfinite(joules_per_loss) and joules_per_loss > 0):
            raise ValueError(f"joules_per_loss must be a positive number, not {joules_per_loss!r}")
        if evaluations < MIN_FITTED_POINTS:
            raise ValueError(f"evaluations must be at least {MIN_FITTED_POINTS}, not {evaluations!r}")
        self.joules_per_loss = joules_per_loss  # the most that a decrease of the loss by 1 may cost, in J
        self._warm_up_updates, self._min_evaluations, self._required_confirmations = (
            warm_up,
            evaluations,
            max(1, confirmations),
        )
        self.points: list = []  # (energy_j, loss) of each update after the warm-up, or means of several updates
        self.slope: Optional[LossSlope] = None  # decrease of the loss per joule now: value, low, high; None if unknown
        self.stopped = False  # true once update() has returned True
        self.reason = "no update yet"  # the last decision, in words
        self.energy: Optional[Energy] = None  # energy of the training until the last update
        self._stop_confirmation_count = self._skipped_warm_up_updates = 0
        self._grouped_updates: list = []  # updates that will be one point
        self._group_size = 1
        self._training_window: Measurement = begin("training")

    def begin(self) -> None:
        """Starts over: forgets all updates."""
        self.points, self.slope, self.energy = [], None, None
        self.stopped, self.reason = False, "no update yet"
        self._stop_confirmation_count = self._skipped_warm_up_updates = 0
        self._grouped_updates, self._group_size = [], 1
        self._training_window = begin("training")

    @property
    def provenance(self) -> Optional[str]:
        """Provenance of the energy: "measured", "estimated" or None."""
        return None if self.energy is None else self.energy.provenance

    def update(self, loss: Any) -> bool:
        """Adds a loss, which float() must accept; lower is better. Returns True if the training should stop now."""
        loss_value = float(loss)
        energy = self._training_window.peek()
        if self.energy is not None and self.energy.provenance not in (None, energy.provenance):
            self.points, self._grouped_updates, self._stop_confirmation_count = (
                [],
                [],
                0,
            )  # measured and estimated energies are not on one curve
        self.energy = energy
        if energy.joules is None:
            self.reason = f"continues: the energy is unknown ({energy.reason})"
        elif not math.isfinite(loss_value):
            self.reason = f"continues: the loss is {loss_value}"
        elif self._skipped_warm_up_updates < self._warm_up_updates:
            self._skipped_warm_up_updates += 1
            self.reason = "continues: warm-up"
        else:
            self._add_point(LossPoint(energy.joules, loss_value))
        return self.stopped

    def _add_point(self, point: LossPoint) -> None:
        """Adds an update; a full group becomes a point, after which the decision is made."""
        self._grouped_updates.append(point)
        if len(self._grouped_updates) < self._group_size:
            return
        mean_point, self._grouped_updates = _average_points(self._grouped_updates), []
        last_energy_j = self.points[-1].energy_j if self.points else 0.0
        self.points.append(mean_point._replace(energy_j=max(last_energy_j, mean_point.energy_j)))
        if len(self.points) >= MAX_LOSS_POINTS:
            self.points = [
                _average_points(self.points[first_index : first_index + 2])
                for first_index in range(0, len(self.points) - 1, 2)
            ]
            self._group_size *= 2
        self._decide_stop()

    def _decide_stop(self) -> None:
        self.slope = estimate_loss_slope(self.points)
        if len(self.points) < self._min_evaluations or self.slope is None:
            self.reason = f"continues: {len(self.points)} of at least {self._min_evaluations} evaluations"
            return
        is_worth_continuing = self.slope.high * self.joules_per_loss >= 1
        self._stop_confirmation_count = 0 if is_worth_continuing else self._stop_confirmation_count + 1
        self.stopped = self.stopped or self._stop_confirmation_count >= self._required_confirmations
        if self.stopped:
            decision_text = f"stops after {_format_number(self.points[-1].energy_j)} J"
        elif is_worth_continuing:
            decision_text = "continues"
        else:
            decision_text = (
                f"continues until confirmed ({self._stop_confirmation_count} of {self._required_confirmations})"
            )
        self.reason = f"{decision_text}: {self._describe_cost()} ({self.provenance})"

    def _describe_cost(self) -> str:
        """What a further unit of loss costs, against the limit."""
        assert self.slope is not None
        limit_text = f"the limit is {_format_number(self.joules_per_loss)} J"
        if self.slope.high == 0:
            return f"the loss no longer decreases; {limit_text}"
        min_cost_j = 1 / self.slope.high
        estimated_cost_text = "" if self.slope.value == 0 else f", about {_format_number(1 / self.slope.value)} J"
        return (
            f"a further decrease of the loss by 1 costs at least {_format_number(min_cost_j)} J{estimated_cost_text}; "
            f"{limit_text}"
        )

    def __repr__(self) -> str:
        return f"<EarlyStop {self.reason}>"


def broadcast_decision_of_rank_0(decision: bool) -> bool:
    """The decision of rank 0 on all ranks of torch.distributed: each rank measures another energy."""
    import sys

    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return decision
    decisions = [decision]
    torch.distributed.broadcast_object_list(decisions, src=0)
    return bool(decisions[0])
