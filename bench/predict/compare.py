#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares all baselines, and with --predictions Joulemap's model, on the same rows and folds, as Markdown tables.

    python3 bench/predict/compare.py --folds build/predict/folds.csv                        # folds alone, for `model eval`
    joulemap model eval --folds build/predict/folds.csv --predictions build/predict/ours.csv
    python3 bench/predict/compare.py --predictions build/predict/ours.csv [--json build/predict/compared.json]

The tables are by split and layer type. --predictions has columns split,key,predicted_j and, for intervals,
low_j,high_j. Predictions of the baselines are cached in build/predict/ until data or code change.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Iterable

import numpy
import pandas

import baselines
import features
import metrics
import rows
import splits
import studies
from rows import PredictionData

CACHE_FOLDER = rows.ROOT / "build" / "predict"
OUR_MODEL = "joulemap"
REPORTED_MEASURES = ("rmspe", "mape", "median", "p90", "bias", "tau")
ALL_ROWS_LABEL = "**all**"


def list_row_groups(data: PredictionData, split_name: str) -> dict[str, pandas.Index]:
    """The lines of a table: name of the line -> keys of its rows."""
    if split_name in splits.NETWORK_SPLITS:
        return group_networks(data.networks, split_name)
    operations = data.operations
    groups = {str(kind): kind_operations.index for kind, kind_operations in operations.groupby("kind")}
    if split_name != "seed":
        groups.update(
            {f"*{pass_name}*": pass_operations.index for pass_name, pass_operations in operations.groupby("pass")}
        )
    else:
        groups["*DAML's families*"] = operations.index[operations["family"].isin(splits.DAML_FAMILIES)]
        groups["*VGG*"] = operations.index[operations["family"] == "VGG"]
    return {**groups, ALL_ROWS_LABEL: operations.index}


def group_networks(networks: pandas.DataFrame, split_name: str) -> dict[str, pandas.Index]:
    groups = {str(pass_label): pass_rows.index for pass_label, pass_rows in networks.groupby("pass")}
    for pass_name, pass_networks in networks.groupby("pass"):
        for is_small_batch, batch_label in ((True, "batch 1 to 8"), (False, "larger batches")):
            groups[f"{pass_name}, {batch_label}"] = pass_networks.index[
                (pass_networks["batch"].astype(int) <= 8) == is_small_batch
            ]
    groups["fully connected"] = networks.index[networks["family"] == "mlp"]
    if split_name == "seed-network":
        groups["VGG"] = networks.index[networks["family"] == "VGG"]
    return {**groups, ALL_ROWS_LABEL: networks.index}


def measured_joules(data: PredictionData, split_name: str) -> pandas.Series:
    return (data.networks if split_name in splits.NETWORK_SPLITS else data.operations)["energy_j"]


def compute_measures(
    data: PredictionData, predictions: pandas.DataFrame, split_name: str
) -> dict[str, dict[str, dict]]:
    """Errors by line of the table and model."""
    joules = measured_joules(data, split_name)
    split_predictions = predictions[predictions["split"] == split_name]
    measures_by_split = {}
    for name, keys in list_row_groups(data, split_name).items():
        group_predictions = split_predictions[split_predictions["key"].isin(keys)]
        measures_by_model = {
            str(model): metrics.compute_error_measures(
                joules.reindex(model_predictions["key"]).to_numpy(),
                model_predictions["predicted_j"].to_numpy(),
                interval_bounds(model_predictions),
            )
            for model, model_predictions in group_predictions.groupby("model")
        }
        if measures_by_model:
            measures_by_split[name] = measures_by_model
    return measures_by_split


def interval_bounds(model_predictions: pandas.DataFrame) -> "tuple[numpy.ndarray, numpy.ndarray] | None":
    if "low_j" not in model_predictions or model_predictions["low_j"].isna().any():
        return None
    return model_predictions["low_j"].to_numpy(), model_predictions["high_j"].to_numpy()


def order(names: Iterable[str]) -> list[str]:
    model_order = [OUR_MODEL, *baselines.ALL_MODELS]
    return sorted(set(names), key=model_order.index)


def format_split(
    split_name: str, measures_by_split: dict[str, dict[str, dict]], measure_names: Iterable[str]
) -> list[str]:
    if not measures_by_split:
        return [f"## {split_name}", "", "No predictions.", ""]
    names = order(name for measures_by_model in measures_by_split.values() for name in measures_by_model)
    lines = [f"## {split_name}", "", SPLIT_DESCRIPTIONS[split_name], ""]
    for measure in measure_names:
        lines += [
            f"{metrics.MEASURE_NAMES[measure]}:",
            "",
            f"| | rows | {' | '.join(names)} |",
            "|---|---:|" + "---:|" * len(names),
        ]
        for name, measures_by_model in measures_by_split.items():
            max_row_count = max(model_measures["rows"] for model_measures in measures_by_model.values())
            cells = [cell(measure, measures_by_model.get(model), max_row_count) for model in names]
            lines.append(f"| {name} | {max_row_count} | {' | '.join(cells)} |")
        lines.append("")
    return lines + format_intervals(measures_by_split)


def cell(measure: str, measures_of_model: "dict | None", most: int) -> str:
    """Formats a value, with the number of rows where a model predicts fewer rows than another."""
    if measures_of_model is None:
        return "-"
    return metrics.format_measure(measure, measures_of_model[measure]) + (
        "" if measures_of_model["rows"] == most else f" ({measures_of_model['rows']} rows)"
    )


def format_intervals(measures_by_split: dict[str, dict[str, dict]]) -> list[str]:
    lines = []
    for name, measures_by_model in measures_by_split.items():
        our_model_measures = measures_by_model.get(OUR_MODEL, {})
        if our_model_measures.get("coverage") is not None:
            lines.append(
                f"| {name} | {our_model_measures['rows']} | {our_model_measures['coverage']:.1f} % | "
                f"{our_model_measures['half_width']:.1f} % |"
            )
    return ["| intervals | rows | cover | half-width, median |", "|---|---:|---:|---:|", *lines, ""] if lines else []


SPLIT_DESCRIPTIONS = {
    split_name: text
    for split_name, text in (
        line.strip().split(None, 1) for line in splits.__doc__.splitlines() if line.startswith("    ")
    )
}


def load_or_predict_baselines(data: PredictionData, folds: list, arguments: argparse.Namespace) -> pandas.DataFrame:
    names = [name for name in baselines.ALL_MODELS if not arguments.models or name in arguments.models.split(",")]
    state = baselines.hash_inputs(
        arguments.data, arguments.lists, [*names, *sorted({fold.split for fold in folds}), str(arguments.seed)]
    )
    cached_baselines_file = arguments.kept / f"baselines-{state}.csv"
    if not cached_baselines_file.exists():
        print("compare: fitting baselines, some minutes", file=sys.stderr)
        predictions = baselines.predict_all(data, folds, names, arguments.jobs)
        arguments.kept.mkdir(parents=True, exist_ok=True)
        predictions.to_csv(cached_baselines_file, index=False, float_format="%.6g")
    return pandas.read_csv(cached_baselines_file)


def read_our_predictions(path: Path, folds: list) -> pandas.DataFrame:
    """Reads predictions; rejects keys that no fold tests, which would be evaluated on other rows than the baselines."""
    our_predictions = pandas.read_csv(path).assign(model=OUR_MODEL)
    tested = {(fold.split, key) for fold in folds for key in fold.test}
    untested = [pair for pair in zip(our_predictions["split"], our_predictions["key"]) if pair not in tested]
    if untested:
        raise SystemExit(
            f"{path}: {len(untested)} predictions that no fold tests, as {untested[0]}; write the folds anew (--folds)"
        )
    for split_name, split_predictions in our_predictions.groupby("split"):
        missing_row_count = (
            sum(tested_split == split_name for tested_split, _ in tested) - split_predictions["key"].nunique()
        )
        if missing_row_count:
            print(f"compare: {path}: {split_name}: {missing_row_count} tested rows have no prediction", file=sys.stderr)
    return our_predictions


def main() -> int:
    arguments = parse_arguments()
    data = rows.read(arguments.data, arguments.lists)
    flops = features.network_flops(data)
    folds = splits.make_all_folds(data, flops, arguments.seed)
    folds = [fold for fold in folds if not arguments.splits or fold.split in arguments.splits.split(",")]
    if arguments.folds:
        arguments.folds.parent.mkdir(parents=True, exist_ok=True)
        splits.write_folds(arguments.folds, folds)
        if not arguments.predictions and not arguments.json:
            return 0
    predictions = load_or_predict_baselines(data, folds, arguments)
    if arguments.predictions:
        predictions = pandas.concat([predictions, read_our_predictions(arguments.predictions, folds)])
    measures_by_split = {
        fold_split: compute_measures(data, predictions, fold_split)
        for fold_split in dict.fromkeys(fold.split for fold in folds)
    }
    lines = [f"{len(data.operations)} operations, {len(data.networks)} settings of networks, once each; "
             f"{sum(key in data.lists for key in data.networks.index)} of them with their list of operations. "
             f"Seed of chance: {arguments.seed}.", ""]  # fmt: skip
    for split_name, split_measures in measures_by_split.items():
        lines += format_split(split_name, split_measures, arguments.measures.split(","))
    study_results = studies.all_studies(data, flops, predictions)
    lines += [line for study in study_results for line in study.lines]
    print("\n".join(lines))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(
            json.dumps(
                {"seed": arguments.seed, "splits": measures_by_split, **{s.name: s.values for s in study_results}},
                indent=1,
            )
        )
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=rows.MEASURED_FOLDER)
    parser.add_argument("--lists", type=Path, default=rows.OPERATION_LISTS_FOLDER)
    parser.add_argument("--kept", type=Path, default=CACHE_FOLDER, help="where predictions of baselines are kept")
    parser.add_argument("--predictions", type=Path)
    parser.add_argument(
        "--folds", type=Path, help="writes split,fold,key,role (test, out); what is not listed is trained on"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--models", default="")
    parser.add_argument("--splits", default="")
    parser.add_argument("--measures", default=",".join(REPORTED_MEASURES))
    parser.add_argument("--seed", type=int, default=splits.SEED)
    parser.add_argument("--jobs", type=int, default=0, help="as many as there are processors")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
