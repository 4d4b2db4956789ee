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


def predict_by_sums(data: PredictionData, folds: Iterable[Fold], sums: dict, model_names: Iterable[str]) -> list[tuple]:
    """Predictions by sums over layers. Kinds without measurements, and views, contribute nothing."""
    key_by_id, lines = keys_by_id(data), []
    total_j_by_network = total(data, key_by_id, sums["everything", "all"].get("rf", {}))
    flops = features.network_flops(data)
    for fold in folds:
        tested = [key for key in sorted(fold.test) if key in data.lists]
        for model, joules in sums[fold.split, fold.name].items() if tested else ():
            predicted_j_by_network = (
                by_total_flops(data, fold, flops) if model == "flops" else total(data, key_by_id, joules, tested)
            )
            lines += [
                (model, fold.split, fold.name, key, predicted_j_by_network[key])
                for key in tested
                if key in predicted_j_by_network
            ]
            if model == "rf" and "rf-scaled" in model_names:
                scaled_j_by_network = scale_sums(data, fold, total_j_by_network, predicted_j_by_network)
                lines += [
                    ("rf-scaled", fold.split, fold.name, key, scaled_j_by_network[key])
                    for key in tested
                    if key in scaled_j_by_network
                ]
    return lines


def sums_of_operations(data: PredictionData, sums: dict) -> list[tuple]:
    """Sums for every network by models of all rows: not a prediction, but the energy of its operations run alone."""
    key_by_id = keys_by_id(data)
    return [
        (model, "everything", "all", key, joules)
        for model, joules_by_key in sums["everything", "all"].items()
        for key, joules in total(data, key_by_id, joules_by_key).items()
    ]


def total(
    data: PredictionData, ids: dict[int, str], joules: dict[str, float], keys: "Iterable[str] | None" = None
) -> dict:
    network_keys = data.lists if keys is None else keys
    return {key: sum(count * joules.get(ids[number], 0.0) for number, count in data.lists[key]) for key in network_keys}


def scale_sums(
    data: PredictionData, fold: Fold, total_j_by_network: dict[str, float], predicted_j_by_network: dict[str, float]
) -> dict[str, float]:
    """Sums times the median ratio of network energy to sum over training networks, by pass."""
    trained = data.networks[
        ~data.networks.index.isin(fold.excluded_keys) & data.networks.index.isin(list(total_j_by_network))
    ]
    factors = trained["energy_j"] / pandas.Series(total_j_by_network).reindex(trained.index)
    median_factor = factors.groupby(trained["pass"]).median()
    passes = data.networks["pass"]
    return {
        key: joules * median_factor[passes[key]]
        for key, joules in predicted_j_by_network.items()
        if passes[key] in median_factor
    }


def by_total_flops(data: PredictionData, fold: Fold, flops: dict[str, float]) -> dict[str, float]:
    predicted_j_by_network = {}
    for _, rows in data.networks[data.networks.index.isin(list(flops))].groupby("pass"):
        train, test = rows[~rows.index.isin(fold.excluded_keys)], rows[rows.index.isin(fold.test)]
        if len(train) > 1 and len(test):
            line = models.fit_flops(numpy.array([flops[key] for key in train.index]), train["energy_j"].to_numpy())
            predicted_j_by_network.update(
                zip(test.index, line(numpy.array([flops[key] for key in test.index])).tolist())
            )
    return predicted_j_by_network


class NetworkInputs(NamedTuple):
    """Inputs of a model-wise approach, one line per network; steps are layers in the order of first appearance."""

    keys: list[str]
    amounts: numpy.ndarray  # [networks, features]
    kinds: list[numpy.ndarray]  # per network: [steps]
    steps: list[numpy.ndarray]  # per network: [steps, features]
    target: numpy.ndarray  # logarithm of joules


def predict_by_network(
    data: PredictionData, folds: Iterable[Fold], model_names: Iterable[str], jobs: int
) -> list[tuple]:
    names = [name for name in MODEL_WISE if name in model_names]
    network_inputs = make_network_inputs(data)
    if not network_inputs.keys or not names:
        return []
    cases = [(fold, name) for fold in merge_family_folds(folds) for name in names]
    case_predictions = Parallel(n_jobs=jobs, batch_size=1)(
        delayed(predict_networks)(network_inputs, *case) for case in cases
    )
    return [
        (name, split_of(fold), fold.name, key, joules)
        for (fold, name), network_predictions in zip(cases, case_predictions)
        for key, joules in network_predictions
    ]


def merge_family_folds(folds: Iterable[Fold]) -> list[Fold]:
    """Merges the folds of families into FAMILY_FOLD_COUNT folds; keeps other network folds."""
    folds = list(folds)
    one_by_one = select_folds(folds, "network-family")
    groups = [one_by_one[fold_offset::FAMILY_FOLD_COUNT] for fold_offset in range(FAMILY_FOLD_COUNT)]
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
    network_features, kinds, steps = [], [], []
    for key, row in rows.iterrows():
        encoded_operations = [
            (described[number], count) for number, count in data.lists[key] if described[number] is not None
        ]
        run = [math.log(int(row["batch"])), math.log(int(row["size"])), float(row["pass"] == "training")]
        run += [float(row["dtype"] == dtype) for dtype in RUN_DTYPES]
        network_features.append([*run, *by_kind(encoded_operations)])
        kinds.append(numpy.array([encoded_operation[0] for encoded_operation, _ in encoded_operations[:MAX_STEPS]]))
        steps.append(
            numpy.array(
                [
                    [*encoded_operation[1], math.log(count)]
                    for encoded_operation, count in encoded_operations[:MAX_STEPS]
                ],
                numpy.float32,
            )
        )
    return NetworkInputs(
        keys, numpy.array(network_features, numpy.float32), kinds, steps, numpy.log(rows["energy_j"].to_numpy())
    )


COLUMNS = ["kind", "parameters", "dtype", "pass"]


def encode_operation(
    kind: str, text: str, dtype: str, pass_name: str
) -> "tuple[int, list[float], float, float] | None":
    """Kind, features of a step, input and output size; None for views."""
    if kind == "view":
        return None
    parameters = work.canonical_parameters(kind, parse(text))
    cost = work.compute_operation_size(kind, parameters, dtype, pass_name)
    sizes = [
        math.log1p(float(parameters[name])) if isinstance(parameters.get(name), (int, float)) else 0.0 for name in SIZES
    ]
    marks = [float(dtype == category) for category in DTYPES] + [float(pass_name == category) for category in PASSES]
    return (
        KINDS.index(kind),
        [*sizes, math.log1p(cost.inputs), math.log1p(cost.outputs), *marks],
        cost.inputs,
        cost.outputs,
    )


def by_kind(encoded_operations: list) -> list[float]:
    totals_by_kind = numpy.zeros((len(KINDS), 3))
    for (kind, _, inputs, outputs), count in encoded_operations:
        totals_by_kind[kind] += count * numpy.array([1.0, inputs, outputs])
    return numpy.log1p(totals_by_kind).ravel().tolist()


def predict_networks(network_inputs: NetworkInputs, fold: Fold, name: str) -> list[tuple[str, float]]:
    from recurrent import fit_mlp, fit_recurrent

    train = [number for number, key in enumerate(network_inputs.keys) if key not in fold.excluded_keys]
    test = [number for number, key in enumerate(network_inputs.keys) if key in fold.test]
    if len(train) < 8 or not test:
        return []
    if name == "mlp":
        logarithms = fit_mlp(network_inputs.amounts[train], network_inputs.target[train], network_inputs.amounts[test])
    else:
        pick = [
            ([network_inputs.kinds[n] for n in network_indices], [network_inputs.steps[n] for n in network_indices])
            for network_indices in (train, test)
        ]
        logarithms = fit_recurrent(
            *pick[0], network_inputs.target[train], *pick[1], len(KINDS), uses_embedding=name == "embedded-rnn"
        )
    return [(network_inputs.keys[number], float(numpy.exp(value))) for number, value in zip(test, logarithms)]
