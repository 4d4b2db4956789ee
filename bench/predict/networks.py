# SPDX-License-Identifier: Apache-2.0
"""Whole networks: sums over their layers, as in DAML, and its model-wise approaches, which use the whole network
(MLP: amounts by layer type; RNN: sequence of layers; embedded RNN: layer types as learned vectors).

DAML's report does not describe the architecture or inputs of its model-wise networks; these are small ones on the same
features as the rest. They learn the logarithm of the joules. Families are left out in groups, not one at a time,
because recurrent networks train slowly. They therefore train on a few families less than the other models.
"""

from __future__ import annotations

import math
from typing import Iterable, NamedTuple

import numpy
import pandas
from joblib import Parallel, delayed

import features
import models
import work
from rows import OPERATION_KEY, PredictionData, join_columns, parse
from splits import Fold, select_folds

MODEL_WISE = ("mlp", "rnn", "embedded-rnn")
FAMILY_FOLD_COUNT = 5
MAX_STEPS = 160
KINDS = sorted({*work.OPERATION_KINDS, "view", "unknown"})
DTYPES = ("fp32", "tf32", "fp16", "bf16")
RUN_DTYPES = ("default", "fp32", "tf32", "fp16", "bf16", "amp-bf16")
PASSES = ("forward", "backward", "backward-weights", "optimizer")
SIZES = (
    "batch",
    "channels",
    "rows",
    "in",
    "out",
    "height",
    "width",
    "kernel",
    "stride",
    "groups",
    "elements",
    "tokens",
)


def keys_by_id(data: PredictionData) -> dict[int, str]:
    if data.listed.empty:
        return {}
    return dict(zip(data.listed.index, join_columns(data.listed.assign(cold="0"), OPERATION_KEY)))


def predict_by_sums(data: PredictionData, folds: Iterable[Fold], sums: dict, chosen: Iterable[str]) -> list[tuple]:
    """Predictions by sums over layers. Kinds without measurements, and views, contribute nothing."""
    ids, lines = keys_by_id(data), []
    whole = total(data, ids, sums["everything", "all"].get("rf", {}))
    flops = features.network_flops(data)
    for fold in folds:
        tested = [key for key in sorted(fold.test) if key in data.lists]
        for model, joules in sums[fold.split, fold.name].items() if tested else ():
            found = by_total_flops(data, fold, flops) if model == "flops" else total(data, ids, joules, tested)
            lines += [(model, fold.split, fold.name, key, found[key]) for key in tested if key in found]
            if model == "rf" and "rf-scaled" in chosen:
                scaled = scale_sums(data, fold, whole, found)
                lines += [("rf-scaled", fold.split, fold.name, key, scaled[key]) for key in tested if key in scaled]
    return lines


def sums_of_operations(data: PredictionData, sums: dict) -> list[tuple]:
    """Sums for every network by models of all rows: not a prediction, but the energy of its operations run alone."""
    ids = keys_by_id(data)
    return [
        (model, "everything", "all", key, joules)
        for model, joules_by_key in sums["everything", "all"].items()
        for key, joules in total(data, ids, joules_by_key).items()
    ]


def total(
    data: PredictionData, ids: dict[int, str], joules: dict[str, float], keys: "Iterable[str] | None" = None
) -> dict:
    wanted = data.lists if keys is None else keys
    return {key: sum(count * joules.get(ids[number], 0.0) for number, count in data.lists[key]) for key in wanted}


def scale_sums(data: PredictionData, fold: Fold, whole: dict[str, float], found: dict[str, float]) -> dict[str, float]:
    """Sums times the median ratio of network energy to sum over training networks, by pass."""
    trained = data.networks[~data.networks.index.isin(fold.excluded_keys) & data.networks.index.isin(list(whole))]
    factors = trained["energy_j"] / pandas.Series(whole).reindex(trained.index)
    median_factor = factors.groupby(trained["pass"]).median()
    passes = data.networks["pass"]
    return {key: joules * median_factor[passes[key]] for key, joules in found.items() if passes[key] in median_factor}


def by_total_flops(data: PredictionData, fold: Fold, flops: dict[str, float]) -> dict[str, float]:
    found = {}
    for _, rows in data.networks[data.networks.index.isin(list(flops))].groupby("pass"):
        train, test = rows[~rows.index.isin(fold.excluded_keys)], rows[rows.index.isin(fold.test)]
        if len(train) > 1 and len(test):
            line = models.fit_flops(numpy.array([flops[key] for key in train.index]), train["energy_j"].to_numpy())
            found.update(zip(test.index, line(numpy.array([flops[key] for key in test.index])).tolist()))
    return found


class NetworkInputs(NamedTuple):
    """Inputs of a model-wise approach, one line per network; steps are layers in the order of first appearance."""

    keys: list[str]
    amounts: numpy.ndarray  # [networks, features]
    kinds: list[numpy.ndarray]  # per network: [steps]
    steps: list[numpy.ndarray]  # per network: [steps, features]
    target: numpy.ndarray  # logarithm of joules


def predict_by_network(data: PredictionData, folds: Iterable[Fold], chosen: Iterable[str], jobs: int) -> list[tuple]:
    names = [name for name in MODEL_WISE if name in chosen]
    seen = make_network_inputs(data)
    if not seen.keys or not names:
        return []
    cases = [(fold, name) for fold in merge_family_folds(folds) for name in names]
    done = Parallel(n_jobs=jobs, batch_size=1)(delayed(predict_networks)(seen, *case) for case in cases)
    return [
        (name, split_of(fold), fold.name, key, joules)
        for (fold, name), found in zip(cases, done)
        for key, joules in found
    ]


def merge_family_folds(folds: Iterable[Fold]) -> list[Fold]:
    """Merges the folds of families into FAMILY_FOLD_COUNT folds; keeps other network folds."""
    folds = list(folds)
    one_by_one = select_folds(folds, "network-family")
    groups = [one_by_one[first::FAMILY_FOLD_COUNT] for first in range(FAMILY_FOLD_COUNT)]
    together = [
        Fold("network-family", f"group {number}", frozenset().union(*(fold.test for fold in group)), frozenset())
        for number, group in enumerate(groups)
    ]
    return (
        [fold for fold in together if fold.test]
        + select_folds(folds, "network-larger")
        + select_folds(folds, "seed-network")
    )


def split_of(fold: Fold) -> str:
    return fold.split


def make_network_inputs(data: PredictionData) -> NetworkInputs:
    described = {number: encode_operation(*row) for number, row in zip(data.listed.index, data.listed[COLUMNS].values)}
    keys = [key for key in data.networks.index if key in data.lists]
    rows = data.networks.loc[keys]
    amounts, kinds, steps = [], [], []
    for key, row in rows.iterrows():
        listed = [(described[number], count) for number, count in data.lists[key] if described[number] is not None]
        run = [math.log(int(row["batch"])), math.log(int(row["size"])), float(row["pass"] == "training")]
        run += [float(row["dtype"] == dtype) for dtype in RUN_DTYPES]
        amounts.append([*run, *by_kind(listed)])
        kinds.append(numpy.array([one[0] for one, _ in listed[:MAX_STEPS]]))
        steps.append(numpy.array([[*one[1], math.log(count)] for one, count in listed[:MAX_STEPS]], numpy.float32))
    return NetworkInputs(
        keys, numpy.array(amounts, numpy.float32), kinds, steps, numpy.log(rows["energy_j"].to_numpy())
    )


COLUMNS = ["kind", "parameters", "dtype", "pass"]


def encode_operation(kind: str, text: str, dtype: str, which: str) -> "tuple[int, list[float], float, float] | None":
    """Kind, features of a step, input and output size; None for views."""
    if kind == "view":
        return None
    parameters = work.canonical_parameters(kind, parse(text))
    cost = work.compute_operation_size(kind, parameters, dtype, which)
    sizes = [
        math.log1p(float(parameters[name])) if isinstance(parameters.get(name), (int, float)) else 0.0 for name in SIZES
    ]
    marks = [float(dtype == one) for one in DTYPES] + [float(which == one) for one in PASSES]
    return (
        KINDS.index(kind),
        [*sizes, math.log1p(cost.inputs), math.log1p(cost.outputs), *marks],
        cost.inputs,
        cost.outputs,
    )


def by_kind(listed: list) -> list[float]:
    amounts = numpy.zeros((len(KINDS), 3))
    for (kind, _, inputs, outputs), count in listed:
        amounts[kind] += count * numpy.array([1.0, inputs, outputs])
    return numpy.log1p(amounts).ravel().tolist()


def predict_networks(seen: NetworkInputs, fold: Fold, name: str) -> list[tuple[str, float]]:
    from recurrent import fit_mlp, fit_recurrent

    train = [number for number, key in enumerate(seen.keys) if key not in fold.excluded_keys]
    test = [number for number, key in enumerate(seen.keys) if key in fold.test]
    if len(train) < 8 or not test:
        return []
    if name == "mlp":
        logarithms = fit_mlp(seen.amounts[train], seen.target[train], seen.amounts[test])
    else:
        pick = [([seen.kinds[n] for n in some], [seen.steps[n] for n in some]) for some in (train, test)]
        logarithms = fit_recurrent(
            *pick[0], seen.target[train], *pick[1], len(KINDS), uses_embedding=name == "embedded-rnn"
        )
    return [(seen.keys[number], float(numpy.exp(value))) for number, value in zip(test, logarithms)]
