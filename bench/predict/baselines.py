#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes predictions of every baseline for every fold of splits.py, as a table: model,split,fold,key,predicted_j.

    python3 bench/predict/baselines.py --out build/predict/baselines.csv [--models rf,xgboost] [--splits family,larger]

A model of a kind that trains on the same rows in two folds is fitted once: leaving out a family refits only the kinds
with rows of that family. compare.py calls this script and caches its output until data or code change.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Iterable, NamedTuple

import numpy
import pandas
from joblib import Parallel, delayed

import features
import models
import networks
import rows
import splits
from features import Table
from rows import PredictionData
from splits import Fold

# Splits in which a model is used. The forest on joules is as slow as the one on logarithms and never better, so it is
# used only beside DAML's own numbers (seed) and for larger sizes.
MODEL_SPLITS = {"rf-joules": ("seed", "larger")}
LAYER_MODELS = (*models.FIT_FUNCTIONS, "flops", "tdp-roofline")
ALL_MODELS = (*LAYER_MODELS, "rf-scaled", *networks.MODEL_WISE)
FILES_WITHOUT_PREDICTIONS = {"compare.py", "metrics.py", "studies.py", "test_compare.py", "test_splits.py"}
COLUMNS = ["model", "split", "fold", "key", "predicted_j"]


class PredictionJob(NamedTuple):
    """Lines of one kind to predict by models that are trained without the `unseen` lines."""

    kind: str
    unseen: frozenset  # lines excluded from training
    lines: frozenset
    names: tuple  # names of models


def predict_by_layer(
    data: PredictionData, folds: Iterable[Fold], model_names: Iterable[str], jobs: int
) -> tuple[pandas.DataFrame, dict]:
    """Returns predictions for tested operations, and by fold and model the joules of every operation needed, including
    listed ones. The fold ALL_DATA_FOLD contains the operations of all networks, predicted by models of all rows."""
    tables, operation_key_by_id = features.make_tables(data), networks.keys_by_id(data)
    needs = {fold: needed_operation_keys(fold, data, operation_key_by_id) for fold in [*folds, ALL_DATA_FOLD]}
    prediction_jobs = make_prediction_jobs(
        tables, needs, [name for name in model_names if name in models.FIT_FUNCTIONS]
    )
    prediction_jobs.sort(
        key=lambda prediction_job: -len(tables[prediction_job.kind].flops)
    )  # longest first, for load balance
    job_predictions = Parallel(n_jobs=jobs, batch_size=1)(
        delayed(predict_job)(tables[prediction_job.kind], prediction_job) for prediction_job in prediction_jobs
    )
    predictions_by_case = {
        (prediction_job.kind, prediction_job.unseen): predictions_by_model
        for prediction_job, predictions_by_model in zip(prediction_jobs, job_predictions)
    }
    lines, sums = [], {}
    for fold, keys in needs.items():
        joules = assemble_predictions(tables, fold, keys, predictions_by_case)
        if "flops" in model_names:
            joules["flops"] = by_flops(tables, fold, keys)
        if "tdp-roofline" in model_names:
            joules["tdp-roofline"] = dict(by_roofline(tables, keys))
        sums[fold.split, fold.name] = joules
        lines += [
            (model, fold.split, fold.name, key, joules_by_key[key])
            for model, joules_by_key in joules.items()
            for key in sorted(fold.test)
            if key in joules_by_key
        ]
    return pandas.DataFrame(lines, columns=COLUMNS), sums


ALL_DATA_FOLD = Fold("everything", "all", frozenset(), frozenset())


def needed_operation_keys(fold: Fold, data: PredictionData, ids: dict[int, str]) -> frozenset:
    """Keys of operations whose predictions a fold needs."""
    fold_keys = data.lists if fold is ALL_DATA_FOLD else fold.test
    listed_operation_keys = {ids[number] for key in fold_keys for number, _ in data.lists.get(key, ())}
    return frozenset(listed_operation_keys | (fold.test & set(data.operations.index)))


def make_prediction_jobs(
    tables: dict[str, Table], needs: dict[Fold, frozenset], names: list[str]
) -> list[PredictionJob]:
    lines: dict = defaultdict(set)
    model_names_by_case: dict = defaultdict(set)
    for fold, keys in needs.items():
        for kind, table in tables.items():
            needed_lines = {table.place[key] for key in keys if key in table.place}
            if needed_lines:
                lines[kind, list_held_out_lines(table, fold)] |= needed_lines
                model_names_by_case[kind, list_held_out_lines(table, fold)] |= set(select_model_names(fold, names))
    return [
        PredictionJob(*case, frozenset(job_lines), tuple(sorted(model_names_by_case[case])))
        for case, job_lines in lines.items()
    ]


def select_model_names(fold: Fold, names: Iterable[str]) -> list[str]:
    return [name for name in names if fold.split in MODEL_SPLITS.get(name, (fold.split,))]


def list_held_out_lines(table: Table, fold: Fold) -> frozenset:
    return frozenset(table.place[key] for key in fold.excluded_keys if key in table.place)


def predict_job(table: Table, prediction_job: PredictionJob) -> dict[str, dict[int, float]]:
    """Joules by model and line. A kind with fewer than 8 measured rows for training has no prediction."""
    train = numpy.array(list_training_lines(table, prediction_job.unseen), int)
    if len(train) < 8:
        return {}
    lines = numpy.array(sorted(prediction_job.lines), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictions_by_model = {
            name: models.FIT_FUNCTIONS[name](table.at(train))(table.at(lines)) for name in prediction_job.names
        }
    return {name: dict(zip(lines.tolist(), joules.tolist())) for name, joules in predictions_by_model.items()}


def list_training_lines(table: Table, held_out_lines: frozenset) -> list[int]:
    """Measured lines without those excluded from training."""
    return [line for line in numpy.flatnonzero(numpy.isfinite(table.energy_j)).tolist() if line not in held_out_lines]


def assemble_predictions(
    tables: dict[str, Table], fold: Fold, keys: frozenset, predictions_by_case: dict
) -> dict[str, dict[str, float]]:
    joules: dict = defaultdict(dict)
    for kind, table in tables.items():
        predictions_by_model = predictions_by_case.get((kind, list_held_out_lines(table, fold)), {})
        table_keys = [key for key in keys if key in table.place]
        for model in select_model_names(fold, predictions_by_model):
            predictions_by_line = predictions_by_model[model]
            joules[model].update(
                (key, predictions_by_line[table.place[key]])
                for key in table_keys
                if table.place[key] in predictions_by_line
            )
    return joules


def by_flops(tables: dict[str, Table], fold: Fold, keys: frozenset) -> dict[str, float]:
    training_lines_by_table = [
        (table, list_training_lines(table, list_held_out_lines(table, fold))) for table in tables.values()
    ]
    flops = numpy.concatenate([table.flops[lines] for table, lines in training_lines_by_table])
    line = models.fit_flops(
        flops, numpy.concatenate([table.energy_j[lines] for table, lines in training_lines_by_table])
    )
    joules_by_key = {}
    for table in tables.values():
        table_keys = [key for key in keys if key in table.place]
        joules_by_key.update(zip(table_keys, line(table.flops[[table.place[key] for key in table_keys]]).tolist()))
    return joules_by_key


def by_roofline(tables: dict[str, Table], keys: frozenset) -> Iterable[tuple[str, float]]:
    for table in tables.values():
        table_keys = [key for key in keys if key in table.place]
        rows_ = table.at(numpy.array([table.place[key] for key in table_keys], int))
        yield from zip(table_keys, models.predict_from_datasheet(rows_).tolist())


def predict_all(
    data: PredictionData, folds: list[Fold], model_names: Iterable[str] = ALL_MODELS, jobs: int = 0
) -> pandas.DataFrame:
    jobs = jobs or os.cpu_count() or 1
    began = time.monotonic()
    layer_predictions, sums = predict_by_layer(data, folds, model_names, jobs)
    print(f"baselines: layer by layer {time.monotonic() - began:.0f} s", file=sys.stderr)
    sum_predictions = networks.predict_by_sums(data, folds, sums, model_names) + networks.sums_of_operations(data, sums)
    began = time.monotonic()
    of_networks = networks.predict_by_network(data, folds, model_names, jobs)
    print(f"baselines: network by network {time.monotonic() - began:.0f} s", file=sys.stderr)
    lines = [pandas.DataFrame(prediction_rows, columns=COLUMNS) for prediction_rows in (sum_predictions, of_networks)]
    return pandas.concat([layer_predictions, *lines], ignore_index=True)


def hash_inputs(measured: Path, operation_lists_folder: Path, names: Iterable[str]) -> str:
    """Hash of data and code: predictions of another state are computed again."""
    digest = hashlib.sha256(" ".join(names).encode())
    code = [path for path in sorted(Path(__file__).parent.glob("*.py")) if path.name not in FILES_WITHOUT_PREDICTIONS]
    for path in [*sorted(measured.glob("*.csv.gz")), *sorted(operation_lists_folder.glob("*.csv.gz")), *code]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=rows.MEASURED_FOLDER)
    parser.add_argument("--lists", type=Path, default=rows.OPERATION_LISTS_FOLDER)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default=",".join(ALL_MODELS))
    parser.add_argument("--splits", default="")
    parser.add_argument("--jobs", type=int, default=0, help="as many as there are processors")
    arguments = parser.parse_args()
    data = rows.read(arguments.data, arguments.lists)
    folds = splits.make_all_folds(data, features.network_flops(data))
    folds = [fold for fold in folds if not arguments.splits or fold.split in arguments.splits.split(",")]
    predictions = predict_all(data, folds, arguments.models.split(","), arguments.jobs)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    predictions.to_csv(arguments.out, index=False, float_format="%.6g")
    return 0


if __name__ == "__main__":
    sys.exit(main())
