# SPDX-License-Identifier: Apache-2.0
"""Which rows are tested and which are kept out of training, the same for every model. A fold names the keys that it
tests and those that it leaves out besides; every other key is trained on, measured networks included.

    random           operations, five parts by chance: for comparison only, since neighbours of a row are trained on
    family           operations, one family of networks at a time; shapes that were designed are always trained on
    larger           operations, the largest three tenths of each kind by FLOPs and bytes, from the smaller ones
    seed             as DAML had it: forward passes of its thirteen layer types, five parts by chance
    network-family   networks of one family at a time; the family's operations are left out as in `family`
    network-larger   the largest three tenths of networks by their FLOPs; operations as in `larger`
    seed-network     inference of DAML's families, five parts by chance; operations of tested networks are left out
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

import numpy
import pandas

import work
from rows import DESIGNED, Data

SEED = 20230
PARTS = 5
TRAINED_SHARE = 0.7
# DAML's layer types, under our names.
SEED_KINDS = (
    "dense convolution pooling input padding normalization activation rescaling reshape dropout add multiply concatenate"
).split()
# Keras' applications, of which DAML took 22; its DenseNets are held out here, and NASNet is not measured.
SEED_FAMILIES = {"VGG", "ResNet", "MobileNet", "EfficientNet", "Inception", "Xception"}
TOLD = ["kind", "parameters", "dtype", "pass"]
OPERATION_SPLITS = ("random", "family", "larger", "seed")
NETWORK_SPLITS = ("network-family", "network-larger", "seed-network")


class Fold(NamedTuple):
    split: str
    name: str
    test: frozenset
    out: frozenset  # neither tested nor trained on

    @property
    def untrained(self) -> frozenset:
        return self.test | self.out


def all_folds(data: Data, flops: "dict[str, float] | None" = None, seed: int = SEED) -> list[Fold]:
    """`flops` is of networks, by key; without it none of them is larger than another."""
    operations, networks = data.operations, data.networks
    layers = layers_of_networks(data)
    folds = list(parts("random", operations, seed, by="kind"))
    folds += families(operations, layers, data)
    folds.append(larger(operations))
    taught = operations[operations["kind"].isin(SEED_KINDS) & (operations["pass"] == "forward")]
    folds += parts("seed", taught, seed, by="kind", out=set(operations.index) - set(taught.index))
    folds += network_families(networks, operations, layers, data)
    if flops:
        folds.append(larger_networks(networks, flops, out=folds_of(folds, "larger")[0].test))
    folds += seed_networks(networks, layers, seed)
    return folds


def folds_of(folds: Iterable[Fold], split: str) -> list[Fold]:
    return [fold for fold in folds if fold.split == split]


def parts(split: str, rows: pandas.DataFrame, seed: int, by: str, out: Iterable = ()) -> Iterator[Fold]:
    """Every row is tested once. Within a kind or a family rows are dealt in turns, so that each part has some of it."""
    chance = numpy.random.default_rng(seed)
    shuffled = rows.iloc[chance.permutation(len(rows))]
    turn = shuffled.groupby(by).cumcount() % PARTS
    for part in range(PARTS):
        yield Fold(split, str(part), frozenset(turn.index[turn == part]), frozenset(out))


def layers_of_networks(data: Data) -> dict[str, frozenset]:
    """Keys of measured operations by the key of a network that consists of them, warm or cold."""
    known: dict = defaultdict(set)
    for key, row in zip(data.operations.index, data.operations[TOLD].values):
        known[work.signature(*row)].add(key)
    by_id = {
        number: known.get(work.signature(*row)) for number, row in zip(data.listed.index, data.listed[TOLD].values)
    }
    return {
        key: frozenset().union(*(by_id[number] for number, _ in listed if by_id[number]))
        for key, listed in data.lists.items()
    }


def family_layers(family: str, operations: pandas.DataFrame, layers: dict, networks: pandas.DataFrame) -> frozenset:
    """Those that stand in the data under its name, and those of other names that its networks have as well."""
    own = frozenset(operations.index[operations["family"] == family])
    shared = (layers.get(key, frozenset()) for key in networks.index[networks["family"] == family])
    return own.union(*shared)


def families(operations: pandas.DataFrame, layers: dict, data: Data) -> Iterator[Fold]:
    for family, rows in operations.groupby("family"):
        if family != DESIGNED:
            test = frozenset(rows.index)
            yield Fold("family", str(family), test, family_layers(family, operations, layers, data.networks) - test)


def network_families(networks, operations, layers: dict, data: Data) -> Iterator[Fold]:
    for family, rows in networks.groupby("family"):
        out = family_layers(family, operations, layers, data.networks)
        yield Fold("network-family", str(family), frozenset(rows.index), out)


def largest(size: pandas.Series) -> frozenset:
    ordered = size.sort_values(kind="stable")
    return frozenset(ordered.index[round(TRAINED_SHARE * len(ordered)) :])


def larger(operations: pandas.DataFrame) -> Fold:
    size = numpy.log(operations["bytes"].clip(lower=1)) + numpy.log(operations["flops"].clip(lower=1))
    test = frozenset().union(*(largest(some) for _, some in size.groupby(operations["kind"])))
    return Fold("larger", "all", test, frozenset())


def larger_networks(networks: pandas.DataFrame, flops: dict[str, float], out: frozenset) -> Fold:
    size = pandas.Series(flops).reindex(networks.index).dropna()
    test = frozenset().union(*(largest(some) for _, some in size.groupby(networks["pass"].reindex(size.index))))
    return Fold("network-larger", "all", test, out)


def seed_networks(networks: pandas.DataFrame, layers: dict, seed: int) -> Iterator[Fold]:
    taught = networks[networks["family"].isin(SEED_FAMILIES) & (networks["pass"] == "inference")]
    for fold in parts("seed-network", taught, seed, by="family", out=set(networks.index) - set(taught.index)):
        yield fold._replace(out=fold.out.union(*(layers.get(key, frozenset()) for key in fold.test)))


def write_folds(path: Path, folds: Iterable[Fold]) -> None:
    """Lines of role `test` and `out`; what a fold does not list, it trains on."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("split", "fold", "key", "role"))
        for fold in folds:
            writer.writerows((fold.split, fold.name, key, "test") for key in sorted(fold.test))
            writer.writerows((fold.split, fold.name, key, "out") for key in sorted(fold.out))
