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


def list_row_groups(data: PredictionData, split: str) -> dict[str, pandas.Index]:
    """The lines of a table: name of the line -> keys of its rows."""
    if split in splits.NETWORK_SPLITS:
        return group_networks(data.networks, split)
    operations = data.operations
    groups = {str(kind): some.index for kind, some in operations.groupby("kind")}
    if split != "seed":
        groups.update({f"*{which}*": some.index for which, some in operations.groupby("pass")})
    else:
        groups["*DAML's families*"] = operations.index[operations["family"].isin(splits.DAML_FAMILIES)]
        groups["*VGG*"] = operations.index[operations["family"] == "VGG"]
    return {**groups, ALL_ROWS_LABEL: operations.index}


def group_networks(networks: pandas.DataFrame, split: str) -> dict[str, pandas.Index]:
    groups = {str(which): some.index for which, some in networks.groupby("pass")}
    for which, some in networks.groupby("pass"):
        for small, named in ((True, "batch 1 to 8"), (False, "larger batches")):
            groups[f"{which}, {named}"] = some.index[(some["batch"].astype(int) <= 8) == small]
    groups["fully connected"] = networks.index[networks["family"] == "mlp"]
    if split == "seed-network":
        groups["VGG"] = networks.index[networks["family"] == "VGG"]
    return {**groups, ALL_ROWS_LABEL: networks.index}


def measured_joules(data: PredictionData, split: str) -> pandas.Series:
    return (data.networks if split in splits.NETWORK_SPLITS else data.operations)["energy_j"]


def compute_measures(data: PredictionData, found: pandas.DataFrame, split: str) -> dict[str, dict[str, dict]]:
    """Errors by line of the table and model."""
    joules = measured_joules(data, split)
    here = found[found["split"] == split]
    measures_by_split = {}
    for name, keys in list_row_groups(data, split).items():
        some = here[here["key"].isin(keys)]
        measures_by_model = {
            str(model): metrics.compute_error_measures(
                joules.reindex(mine["key"]).to_numpy(), mine["predicted_j"].to_numpy(), interval_bounds(mine)
            )
            for model, mine in some.groupby("model")
        }
        if measures_by_model:
            measures_by_split[name] = measures_by_model
    return measures_by_split


def interval_bounds(mine: pandas.DataFrame) -> "tuple[numpy.ndarray, numpy.ndarray] | None":
    if "low_j" not in mine or mine["low_j"].isna().any():
        return None
    return mine["low_j"].to_numpy(), mine["high_j"].to_numpy()


def order(names: Iterable[str]) -> list[str]:
    first = [OUR_MODEL, *baselines.ALL_MODELS]
    return sorted(set(names), key=first.index)


def format_split(split: str, measures_by_split: dict[str, dict[str, dict]], shown: Iterable[str]) -> list[str]:
    if not measures_by_split:
        return [f"## {split}", "", "No predictions.", ""]
    names = order(name for measures_by_model in measures_by_split.values() for name in measures_by_model)
    lines = [f"## {split}", "", SPLIT_DESCRIPTIONS[split], ""]
    for measure in shown:
        lines += [
            f"{metrics.MEASURE_NAMES[measure]}:",
            "",
            f"| | rows | {' | '.join(names)} |",
            "|---|---:|" + "---:|" * len(names),
        ]
        for name, measures_by_model in measures_by_split.items():
            most = max(one["rows"] for one in measures_by_model.values())
            cells = [cell(measure, measures_by_model.get(model), most) for model in names]
            lines.append(f"| {name} | {most} | {' | '.join(cells)} |")
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
        one = measures_by_model.get(OUR_MODEL, {})
        if one.get("coverage") is not None:
            lines.append(f"| {name} | {one['rows']} | {one['coverage']:.1f} % | {one['half_width']:.1f} % |")
    return ["| intervals | rows | cover | half-width, median |", "|---|---:|---:|---:|", *lines, ""] if lines else []


SPLIT_DESCRIPTIONS = {
    split: text
    for split, text in (line.strip().split(None, 1) for line in splits.__doc__.splitlines() if line.startswith("    "))
}


def load_or_predict_baselines(data: PredictionData, folds: list, given: argparse.Namespace) -> pandas.DataFrame:
    names = [name for name in baselines.ALL_MODELS if not given.models or name in given.models.split(",")]
    state = baselines.hash_inputs(
        given.data, given.lists, [*names, *sorted({fold.split for fold in folds}), str(given.seed)]
    )
    kept = given.kept / f"baselines-{state}.csv"
    if not kept.exists():
        print("compare: fitting baselines, some minutes", file=sys.stderr)
        found = baselines.predict_all(data, folds, names, given.jobs)
        given.kept.mkdir(parents=True, exist_ok=True)
        found.to_csv(kept, index=False, float_format="%.6g")
    return pandas.read_csv(kept)


def read_our_predictions(path: Path, folds: list) -> pandas.DataFrame:
    """Reads predictions; rejects keys that no fold tests, which would be evaluated on other rows than the baselines."""
    ours = pandas.read_csv(path).assign(model=OUR_MODEL)
    tested = {(fold.split, key) for fold in folds for key in fold.test}
    untested = [pair for pair in zip(ours["split"], ours["key"]) if pair not in tested]
    if untested:
        raise SystemExit(
            f"{path}: {len(untested)} predictions that no fold tests, as {untested[0]}; write the folds anew (--folds)"
        )
    for split, mine in ours.groupby("split"):
        missing = sum(one == split for one, _ in tested) - mine["key"].nunique()
        if missing:
            print(f"compare: {path}: {split}: {missing} tested rows have no prediction", file=sys.stderr)
    return ours


def main() -> int:
    given = parse_arguments()
    data = rows.read(given.data, given.lists)
    flops = features.network_flops(data)
    folds = splits.make_all_folds(data, flops, given.seed)
    folds = [fold for fold in folds if not given.splits or fold.split in given.splits.split(",")]
    if given.folds:
        given.folds.parent.mkdir(parents=True, exist_ok=True)
        splits.write_folds(given.folds, folds)
        if not given.predictions and not given.json:
            return 0
    found = load_or_predict_baselines(data, folds, given)
    if given.predictions:
        found = pandas.concat([found, read_our_predictions(given.predictions, folds)])
    measures_by_split = {
        split: compute_measures(data, found, split) for split in dict.fromkeys(fold.split for fold in folds)
    }
    lines = [f"{len(data.operations)} operations, {len(data.networks)} settings of networks, once each; "
             f"{sum(key in data.lists for key in data.networks.index)} of them with their list of operations. "
             f"Seed of chance: {given.seed}.", ""]  # fmt: skip
    for split, split_measures in measures_by_split.items():
        lines += format_split(split, split_measures, given.measures.split(","))
    study_results = studies.all_studies(data, flops, found)
    lines += [line for study in study_results for line in study.lines]
    print("\n".join(lines))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(
            json.dumps(
                {"seed": given.seed, "splits": measures_by_split, **{s.name: s.values for s in study_results}}, indent=1
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
