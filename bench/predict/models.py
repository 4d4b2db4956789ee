# SPDX-License-Identifier: Apache-2.0
"""Models of one layer type: DAML's (polynomial regression, random forest, XGBoost, CatBoost), NeuralPower's, and two
simple ones (FLOPs, thermal design power times roofline). Each is a function from measured rows to a function from rows
to joules.

DAML states the loss only of its forest (squared error). Joules of our rows span five orders of magnitude. Forests and
boosted trees therefore learn logarithms here, and polynomials minimize relative errors, which suits the percentages
used for evaluation; `rf-joules` is the forest on joules. Each model uses one thread: folds run in parallel.
"""

from __future__ import annotations

import warnings
from typing import Callable

import numpy
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, Ridge
from sklearn.preprocessing import PolynomialFeatures

import work
from features import Table

PredictFunction = Callable[[Table], numpy.ndarray]
Fit = Callable[[Table], PredictFunction]
RANDOM_STATE = 1
FOREST_TREE_COUNT = 60  # trees of a forest; there are hundreds of folds
VALIDATION_SHARE = 0.2  # share of training rows for validation of the Lasso's penalty
LASSO_PENALTIES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)


def fit_forest_joules(train: Table) -> PredictFunction:
    forest = RandomForestRegressor(FOREST_TREE_COUNT, random_state=RANDOM_STATE).fit(train.features, train.energy_j)
    return lambda rows: forest.predict(rows.features)


def fit_forest(train: Table) -> PredictFunction:
    return _fit_logarithms(RandomForestRegressor(FOREST_TREE_COUNT, random_state=RANDOM_STATE), train)


def fit_xgboost(train: Table) -> PredictFunction:
    from xgboost import XGBRegressor

    model = XGBRegressor(
        n_estimators=150, max_depth=6, learning_rate=0.15, n_jobs=1, random_state=RANDOM_STATE, tree_method="hist"
    )
    return _fit_logarithms(model, train)


def fit_catboost(train: Table) -> PredictFunction:
    return _fit_logarithms(_make_catboost(), train)


def fit_catboost_physics(train: Table) -> PredictFunction:
    """A stronger baseline, not from a paper: FLOPs, bytes and roofline in addition to DAML's features."""
    return _fit_logarithms(_make_catboost(), train, features_with_physics)


def _make_catboost():
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        iterations=200, depth=6, learning_rate=0.15, border_count=64, thread_count=1, random_seed=RANDOM_STATE,
        verbose=False, allow_writing_files=False,
    )  # fmt: skip


def own_features(rows: Table) -> numpy.ndarray:
    return rows.features


def features_with_physics(rows: Table) -> numpy.ndarray:
    log_physics_features = [
        numpy.log(numpy.maximum(physics_values, lower_bound))
        for physics_values, lower_bound in _list_physics_amounts(rows)
    ]
    return numpy.column_stack([rows.features, *log_physics_features])


def _list_physics_amounts(rows: Table) -> list:
    return [
        (rows.flops, 1),
        (rows.bytes, 1),
        (rows.roofline_s, 1e-12),
        (rows.flops / numpy.maximum(rows.bytes, 1), 1e-6),
    ]


def _fit_logarithms(
    model, train: Table, extract_features: Callable[[Table], numpy.ndarray] = own_features
) -> PredictFunction:
    model.fit(extract_features(train), numpy.log(train.energy_j))
    return lambda rows: numpy.exp(model.predict(extract_features(rows)))


class PolynomialTerms:
    """Monomials of sizes up to a degree, indicators of forms, and further columns, scaled by their training maxima."""

    def __init__(self, train: Table, degree: int, logarithms: bool = False, uses_physics: bool = False) -> None:
        self._degree, self._logarithms, self._uses_physics = degree, logarithms, uses_physics
        self._scale = numpy.ones(1)
        self._scale = numpy.maximum(numpy.abs(self(train)).max(axis=0), 1e-30)

    def __call__(self, rows: Table) -> numpy.ndarray:
        sizes, marks = rows.features[:, rows.is_number], rows.features[:, ~rows.is_number]
        if self._logarithms:
            sizes = numpy.hstack([sizes, numpy.log2(1 + sizes)])
        parts = [PolynomialFeatures(self._degree, include_bias=True).fit_transform(sizes), marks]
        if self._uses_physics:
            # Arithmetic and memory terms for each form, type and pass: NeuralPower has one type and one pass.
            physics_features = numpy.column_stack([rows.flops, rows.bytes, rows.roofline_s])
            parts += [physics_features] + [physics_features * marks[:, [column]] for column in range(marks.shape[1])]
        return numpy.hstack(parts) / self._scale


def fit_polynomial(train: Table) -> PredictFunction:
    """Polynomial of degree 2, clipped below at the training minimum."""
    terms = PolynomialTerms(train, 2)
    weight = 1 / train.energy_j**2
    model = Ridge(1e-6 * weight.sum() / len(weight), fit_intercept=False, solver="svd")
    model.fit(terms(train), train.energy_j, sample_weight=weight)
    return lambda rows: numpy.maximum(model.predict(terms(rows)), train.energy_j.min())


def fit_neuralpower(train: Table) -> PredictFunction:
    """Time by monomials of degree 3, power by monomials of degree 2 of sizes and logarithms, both with physical terms
    and Lasso. The form is that of the authors. Added here: weights by relative error, and clipping of power to the
    training range."""
    power = train.energy_j / train.time_s
    seconds = fit_lasso(train, train.time_s, PolynomialTerms(train, 3, uses_physics=True))
    watts = fit_lasso(train, power, PolynomialTerms(train, 2, logarithms=True, uses_physics=True))
    return lambda rows: seconds(rows) * numpy.minimum(watts(rows), power.max())


def fit_lasso(train: Table, target: numpy.ndarray, terms: PolynomialTerms) -> PredictFunction:
    """Lasso on relative errors: rows and target are divided by the target. Clipped below at the training minimum."""
    columns = terms(train) / target[:, None]
    norms = numpy.maximum(numpy.sqrt((columns**2).mean(axis=0)), 1e-30)
    columns, unit_targets = columns / norms, numpy.ones(len(target))
    training_mask = numpy.random.default_rng(RANDOM_STATE).random(len(target)) >= VALIDATION_SHARE

    def fitted(penalty: float, rows: numpy.ndarray) -> Lasso:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return Lasso(penalty, fit_intercept=False, max_iter=200, tol=1e-3).fit(columns[rows], unit_targets[rows])

    def held_back_error(penalty: float) -> float:
        return float(numpy.mean((fitted(penalty, training_mask).predict(columns[~training_mask]) - 1) ** 2))

    best_penalty = (
        min(LASSO_PENALTIES, key=held_back_error)
        if 0 < training_mask.sum() < len(training_mask)
        else LASSO_PENALTIES[0]
    )
    coefficients = fitted(best_penalty, numpy.ones(len(target), bool)).coef_ / norms
    return lambda rows: numpy.maximum(terms(rows) @ coefficients, target.min())


def predict_from_datasheet(rows: Table) -> numpy.ndarray:
    """Data sheet's power times roofline time from its peaks; nothing is fitted."""
    return work.TDP_W * numpy.maximum(rows.roofline_s, 1e-12)


def fit_flops(flops: numpy.ndarray, energy_j: numpy.ndarray) -> Callable[[numpy.ndarray], numpy.ndarray]:
    """Linear fit of logarithms over all kinds. Without FLOPs: the geometric mean of training rows without FLOPs."""
    has_flops = flops > 0
    slope, offset = numpy.polyfit(numpy.log(flops[has_flops]), numpy.log(energy_j[has_flops]), 1)
    zero_flops_energy_j = (
        float(numpy.exp(numpy.log(energy_j[~has_flops]).mean()))
        if (~has_flops).any()
        else float(numpy.median(energy_j))
    )
    return lambda query_flops: numpy.where(
        query_flops > 0, numpy.exp(offset + slope * numpy.log(numpy.maximum(query_flops, 1))), zero_flops_energy_j
    )


FIT_FUNCTIONS: dict[str, Fit] = {
    "polynomial": fit_polynomial,
    "neuralpower": fit_neuralpower,
    "catboost": fit_catboost,
    "xgboost": fit_xgboost,
    "rf": fit_forest,
    "rf-joules": fit_forest_joules,
    "catboost-physics": fit_catboost_physics,
}
