# SPDX-License-Identifier: Apache-2.0
"""Which rows are tested and which are excluded from training, the same for every model. A fold lists the keys that it
tests and those that it also excludes; all other keys are used for training, including measured networks.

        random           operations, five random parts: for comparison only, since training contains neighbours of a row
        family           operations, one family of networks at a time; designed shapes are always used for training
        larger           operations, the largest 30 % of each kind by FLOPs and bytes, from the smaller ones
        seed             as in DAML: forward passes of its thirteen layer types, five random parts
        network-family   networks of one family at a time; the family's operations are excluded as in `family`
        network-larger   the largest 30 % of networks by their FLOPs; operations as in `larger`
        seed-network     inference of DAML's families, five random parts; operations of tested networks are excluded
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

import numpy
import pandas

import work
from rows import DESIGNED_SHAPES, PredictionData

SEED = 20230
FOLD_COUNT = 5
TRAINING_SHARE = 0.7
# DAML's layer types, under Joulemap's names.
DAML_LAYER_KINDS = (
    "dense convolution pooling input padding normalization activation rescaling reshape dropout add multiply concatenate"
).split()
# Keras' applications, of which DAML used 22; its DenseNets are held out here, and NASNet is not measured.
DAML_FAMILIES = {"VGG", "ResNet", "MobileNet", "EfficientNet", "Inception", "Xception"}
IDENTITY_COLUMNS = ["kind", "parameters", "dtype", "pass"]
OPERATION_SPLITS = ("random", "family", "larger", "seed")
NETWORK_SPLITS = ("network-family", "network-larger", "seed-network")


class Fold(NamedTuple):
    split: str
    name: str
    test: frozenset
    out: frozenset  # neither tested nor used for training

    @property
    def excluded_keys(self) -> frozenset:
        return self.test | self.out


def make_all_folds(data: PredictionData, flops: "dict[str, float] | None" = None, seed: int = SEED) -> list[Fold]:
    """Returns all folds. `flops` is of networks, by key; without it there is no split of networks by size."""
    operations, networks = data.operations, data.networks
    layers = layers_of_networks(data)
    folds = list(cross_validation_folds("random", operations, seed, by="kind"))
    folds += families(operations, layers, data)
    folds.append(larger_sizes_fold(operations))
    daml_rows = operations[operations["kind"].isin(DAML_LAYER_KINDS) & (operations["pass"] == "forward")]
    folds += cross_validation_folds(
        "seed", daml_rows, seed, by="kind", out=set(operations.index) - set(daml_rows.index)
    )
    folds += network_family_folds(networks, operations, layers, data)
    if flops:
        folds.append(larger_networks_fold(networks, flops, out=select_folds(folds, "larger")[0].test))
    folds += seed_network_folds(networks, layers, seed)
    return folds


def select_folds(folds: Iterable[Fold], split_name: str) -> list[Fold]:
    return [fold for fold in folds if fold.split == split_name]


def cross_validation_folds(
    split_name: str, rows: pandas.DataFrame, seed: int, by: str, out: Iterable = ()
) -> Iterator[Fold]:
    """Tests every row once. Rows of a kind or family are distributed in turn, so that each part contains some of
    them."""
    chance = numpy.random.default_rng(seed)
    shuffled = rows.iloc[chance.permutation(len(rows))]
    part_numbers = shuffled.groupby(by).cumcount() % FOLD_COUNT
    for part in range(FOLD_COUNT):
        yield Fold(split_name, str(part), frozenset(part_numbers.index[part_numbers == part]), frozenset(out))


def layers_of_networks(data: PredictionData) -> dict[str, frozenset]:
    """Keys of measured operations, warm or cold, by key of the network that contains them."""
    keys_by_signature: dict = defaultdict(set)
    for key, row in zip(data.operations.index, data.operations[IDENTITY_COLUMNS].values):
        keys_by_signature[work.operation_signature(*row)].add(key)
    by_id = {
        number: keys_by_signature.get(work.operation_signature(*row))
        for number, row in zip(data.listed.index, data.listed[IDENTITY_COLUMNS].values)
    }
    return {
        key: frozenset().union(*(by_id[number] for number, _ in operation_counts if by_id[number]))
        for key, operation_counts in data.lists.items()
    }


def family_operation_keys(
    family: str, operations: pandas.DataFrame, layers: dict, networks: pandas.DataFrame
) -> frozenset:
    """Operations with this family's name in the data, and operations of other families that its networks contain."""
    family_keys = frozenset(operations.index[operations["family"] == family])
    network_layer_keys = (layers.get(key, frozenset()) for key in networks.index[networks["family"] == family])
    return family_keys.union(*network_layer_keys)


def families(operations: pandas.DataFrame, layers: dict, data: PredictionData) -> Iterator[Fold]:
    for family, rows in operations.groupby("family"):
        if family != DESIGNED_SHAPES:
            test = frozenset(rows.index)
            yield Fold(
                "family", str(family), test, family_operation_keys(family, operations, layers, data.networks) - test
            )


def network_family_folds(networks, operations, layers: dict, data: PredictionData) -> Iterator[Fold]:
    for family, rows in networks.groupby("family"):
        out = family_operation_keys(family, operations, layers, data.networks)
        yield Fold("network-family", str(family), frozenset(rows.index), out)


def largest_keys(size: pandas.Series) -> frozenset:
    sorted_sizes = size.sort_values(kind="stable")
    return frozenset(sorted_sizes.index[round(TRAINING_SHARE * len(sorted_sizes)) :])


def larger_sizes_fold(operations: pandas.DataFrame) -> Fold:
    size = numpy.log(operations["bytes"].clip(lower=1)) + numpy.log(operations["flops"].clip(lower=1))
    test = frozenset().union(*(largest_keys(group_sizes) for _, group_sizes in size.groupby(operations["kind"])))
    return Fold("larger", "all", test, frozenset())


def larger_networks_fold(networks: pandas.DataFrame, flops: dict[str, float], out: frozenset) -> Fold:
    size = pandas.Series(flops).reindex(networks.index).dropna()
    test = frozenset().union(
        *(largest_keys(group_sizes) for _, group_sizes in size.groupby(networks["pass"].reindex(size.index)))
    )
    return Fold("network-larger", "all", test, out)


def seed_network_folds(networks: pandas.DataFrame, layers: dict, seed: int) -> Iterator[Fold]:
    daml_rows = networks[networks["family"].isin(DAML_FAMILIES) & (networks["pass"] == "inference")]
    out = set(networks.index) - set(daml_rows.index)
    for fold in cross_validation_folds("seed-network", daml_rows, seed, by="family", out=out):
        yield fold._replace(out=fold.out.union(*(layers.get(key, frozenset()) for key in fold.test)))


def write_folds(path: Path, folds: Iterable[Fold]) -> None:
    """Writes lines of role `test` and `out`; a fold trains on all keys that it does not list."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("split", "fold", "key", "role"))
        for fold in folds:
            writer.writerows((fold.split, fold.name, key, "test") for key in sorted(fold.test))
            writer.writerows((fold.split, fold.name, key, "out") for key in sorted(fold.out))
