# SPDX-License-Identifier: Apache-2.0
"""Errors of predictions in percent of the measurement, and rank correlation."""

from __future__ import annotations

from typing import Optional

import numpy

MEASURE_NAMES = {
    "rmspe": "Root mean square percentage error, %",
    "mape": "Mean absolute percentage error, %",
    "median": "Median absolute percentage error, %",
    "p90": "What nine of ten errors lie below, %",
    "bias": "Bias: the mean of signed errors, %",
    "tau": "Kendall's tau",
}


def compute_error_measures(
    joules: numpy.ndarray, predicted: numpy.ndarray, interval: "Optional[tuple[numpy.ndarray, numpy.ndarray]]" = None
) -> dict[str, "float | int | None"]:
    errors = 100 * (predicted - joules) / joules
    sizes = numpy.abs(errors)
    values = {
        "rows": len(errors),
        "rmspe": float(numpy.sqrt(numpy.mean(errors**2))),
        "mape": float(sizes.mean()),
        "median": float(numpy.median(sizes)),
        "p90": float(numpy.quantile(sizes, 0.9)),
        "bias": float(errors.mean()),
        "tau": kendall_tau(joules, predicted),
    }
    if interval is not None:
        low, high = interval
        values["coverage"] = float(100 * numpy.mean((low <= joules) & (joules <= high)))
        values["half_width"] = float(100 * numpy.median((high - low) / 2 / predicted))
    return values


def kendall_tau(joules: numpy.ndarray, predicted: numpy.ndarray) -> Optional[float]:
    """Kendall's tau; None if all values are equal or there is only one."""
    from scipy.stats import kendalltau

    tau = kendalltau(joules, predicted).statistic if len(joules) > 1 else numpy.nan
    return None if numpy.isnan(tau) else float(tau)


def format_measure(measure: str, value: Optional[float]) -> str:
    if value is None:
        return "-"
    if measure == "tau":
        return f"{value:.3f}"
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:.0e}"
