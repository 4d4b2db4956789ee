# SPDX-License-Identifier: Apache-2.0
"""Folds separate training and test rows as documented. Run by `make bench-predict`, with requirements.txt installed."""

from __future__ import annotations

import csv

import features
import numpy
import pytest
import rows
import splits
import work


@pytest.fixture(scope="module")
def data():
    return rows.read()


@pytest.fixture(scope="module")
def folds(data):
    print(f"seed of chance: {splits.SEED}")
    return splits.make_all_folds(data, features.network_flops(data))


def test_rows_that_were_measured_again_are_one_row_with_their_mean(data):
    assert data.operations.index.is_unique and data.networks.index.is_unique
    repeated_operations = data.operations[data.operations["times"] > 1]
    assert len(repeated_operations) > 50
    measurements = data.raw[data.raw["key"] == repeated_operations.index[0]]
    assert repeated_operations["energy_j"].iloc[0] == pytest.approx(measurements["energy_j"].mean())


def test_no_key_is_tested_and_left_out_or_tested_twice_in_a_split(folds):
    for split_name in {fold.split for fold in folds}:
        split_folds = splits.select_folds(folds, split_name)
        assert all(not fold.test & fold.out for fold in split_folds)
        assert sum(len(fold.test) for fold in split_folds) == len(
            frozenset().union(*(fold.test for fold in split_folds))
        )


def test_random_folds_test_every_operation_once(data, folds):
    tested = frozenset().union(*(fold.test for fold in splits.select_folds(folds, "random")))
    assert tested == frozenset(data.operations.index)


def test_a_held_out_family_is_in_no_training_row(data, folds):
    for fold in splits.select_folds(folds, "family") + splits.select_folds(folds, "network-family"):
        operations = data.operations.drop(index=list(fold.excluded_keys & set(data.operations.index)))
        assert fold.name not in set(operations["family"])
    for fold in splits.select_folds(folds, "network-family"):
        assert fold.name not in set(data.networks.drop(index=list(fold.test))["family"])


def test_designed_shapes_are_never_tested_by_family(data, folds):
    designed_keys = set(data.operations.index[data.operations["family"] == rows.DESIGNED_SHAPES])
    assert not any(fold.test & designed_keys for fold in splits.select_folds(folds, "family"))


def test_larger_fold_tests_only_rows_larger_than_training(data, folds):
    (fold,) = splits.select_folds(folds, "larger")
    size = data.operations["bytes"].clip(lower=1).astype(float) * data.operations["flops"].clip(lower=1)
    for _, kind_sizes in size.groupby(data.operations["kind"]):
        tested = kind_sizes.index.isin(fold.test)
        assert kind_sizes[~tested].max() <= kind_sizes[tested].min() * (1 + 1e-9)


def test_seed_split_has_only_daml_layers_and_forward_passes(data, folds):
    for fold in splits.select_folds(folds, "seed"):
        trained = data.operations.drop(index=list(fold.excluded_keys))
        for fold_operations in (trained, data.operations.loc[list(fold.test)]):
            assert set(fold_operations["kind"]) <= set(splits.DAML_LAYER_KINDS) and set(fold_operations["pass"]) == {
                "forward"
            }


def test_a_layer_that_another_family_has_as_well_is_left_out_with_either():
    import pandas

    operations = pandas.DataFrame(
        {"kind": "dense", "parameters": ["rows=1;in=2;out=3;bias=0", "rows=4;in=2;out=3;bias=0"], "dtype": "fp32"}
    ).assign(**{"pass": "forward", "cold": "0", "family": ["BERT", "GPT-2"], "flops": 1.0, "bytes": 1.0})
    operations = operations.set_index(rows.join_columns(operations, rows.OPERATION_KEY).rename("key"))
    networks = pandas.DataFrame({"family": ["GPT-2"], "pass": "inference"}, index=["gpt2|1|64|fp32|inference"])
    listed_operations = operations.reset_index(drop=True)[["kind", "parameters", "dtype", "pass"]]
    data = rows.PredictionData(
        operations, networks, operations, listed_operations, {"gpt2|1|64|fp32|inference": [(0, 12), (1, 1)]}
    )
    layers = splits.layers_of_networks(data)
    by_name = {fold.name: fold for fold in splits.families(operations, layers, data)}
    bert_operation_key, gpt2_operation_key = operations.index
    assert by_name["GPT-2"].test == {gpt2_operation_key} and by_name["GPT-2"].out == {bert_operation_key}
    assert by_name["BERT"].test == {bert_operation_key} and by_name["BERT"].out == frozenset()


def test_folds_are_the_same_each_time_and_other_ones_with_another_seed(data):
    folds_per_seed = [splits.make_all_folds(data, seed=seed) for seed in (1, 1, 2)]
    assert folds_per_seed[0] == folds_per_seed[1] != folds_per_seed[2]


def test_folds_are_written_with_their_roles(tmp_path, folds):
    splits.write_folds(tmp_path / "folds.csv", folds)
    with (tmp_path / "folds.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["role"] for line in lines} == {"test", "out"}
    assert len(lines) == sum(len(fold.test) + len(fold.out) for fold in folds)


def test_computed_flops_and_bytes_match_the_measured_table(data):
    for kind, table in features.make_tables(data).items():
        measured = data.operations[data.operations["kind"] == kind]
        lines = [table.place[key] for key in measured.index]
        numpy.testing.assert_allclose(table.flops[lines], measured["flops"], rtol=1e-6)
        numpy.testing.assert_allclose(table.bytes[lines], measured["bytes"], rtol=1e-6)


def test_flops_of_a_non_square_convolution_kernel():
    parameters = rows.parse(
        "batch=2;channels=8;out=16;height=10;width=10;kernel=1;kernel_width=7;padding=0;padding_width=3;stride=1"
    )
    assert work.compute_operation_size("convolution", parameters, "fp32", "forward").flops == 2 * 2 * 100 * 16 * 8 * 7


def test_a_row_of_a_family_that_is_held_out_is_refused(tmp_path, data):
    import pandas

    for name in ("operations", "networks"):
        frame = pandas.read_csv(rows.MEASURED_FOLDER / f"{name}.csv.gz").head(3)
        frame.assign(source="ConvNeXt" if name == "operations" else frame["source"]).to_csv(
            tmp_path / f"{name}.csv.gz", index=False
        )
    with pytest.raises(SystemExit, match="ConvNeXt"):
        rows.read(tmp_path)
