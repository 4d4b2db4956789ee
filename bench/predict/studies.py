# SPDX-License-Identifier: Apache-2.0
"""DAML's further studies: repeatability of measurements, FLOPs against energy, and additivity of layers."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy
import pandas

import metrics
from rows import PredictionData


ADDITIVITY_MODEL = "catboost-physics"


class Study(NamedTuple):
    name: str
    values: dict
    lines: list[str]


def all_studies(data: PredictionData, flops: dict[str, float], baseline_predictions: pandas.DataFrame) -> list[Study]:
    """Runs all studies. `baseline_predictions`: predictions of baselines; their split `everything` comes from models of
    all rows."""
    return [
        study_noise_floor(data),
        study_flops_against_energy(data, flops),
        study_additivity(data, baseline_predictions),
    ]


def study_noise_floor(data: PredictionData) -> Study:
    """Compares one measurement with the mean of the others of its key: a lower bound for errors of predictions."""
    repeated_measurements = data.raw[data.raw.groupby("key")["energy_j"].transform("size") > 1]
    by_key = repeated_measurements.groupby("key")["energy_j"]
    other_runs_mean_j = (by_key.transform("sum") - repeated_measurements["energy_j"]) / (by_key.transform("size") - 1)
    kinds = repeated_measurements["kind"].where(repeated_measurements["kind"] != "network", "networks")
    values, lines = {}, ["## Noise floor", "", "One measurement, predicted by the others of the same key.", ""]
    lines += ["| | keys | RMSPE, % | median, % | p90, % |", "|---|---:|---:|---:|---:|"]
    groups = {
        **{
            str(kind): kind_rows.index
            for kind, kind_rows in repeated_measurements.reset_index(drop=True).groupby(kinds.to_numpy())
        }
    }
    repeated_measurements, other_runs_mean_j = (
        repeated_measurements.reset_index(drop=True),
        other_runs_mean_j.reset_index(drop=True),
    )
    groups["**operations**"] = repeated_measurements.index[repeated_measurements["kind"] != "network"]
    for name, index in groups.items():
        error_measures = metrics.compute_error_measures(
            repeated_measurements["energy_j"][index].to_numpy(), other_runs_mean_j[index].to_numpy()
        )
        values[name] = {**error_measures, "keys": int(repeated_measurements["key"][index].nunique())}
        lines.append(
            f"| {name} | {values[name]['keys']} | {error_measures['rmspe']:.1f} | "
            f"{error_measures['median']:.1f} | {error_measures['p90']:.1f} |"
        )
    return Study("noise_floor", values, [*lines, ""])


def study_flops_against_energy(data: PredictionData, flops: dict[str, float]) -> Study:
    values, lines = (
        {},
        ["## FLOPs against energy", "", "Proportional: joules = FLOPs times one number, the best there is.", ""],
    )
    lines += ["| | rows | correlation | of logarithms | RMSPE of proportional, % |", "|---|---:|---:|---:|---:|"]
    rows = data.networks.assign(flops=pandas.Series(flops, dtype=float)).dropna(subset=["flops"])
    is_batch_one = rows["batch"] == "1"
    groups = {
        "operations": data.operations[data.operations["flops"] > 0],
        "operations, fp32 forward": data.operations.query("flops > 0 and dtype == 'fp32' and `pass` == 'forward'"),
        "dense alone": data.operations[data.operations["kind"] == "dense"],
        "convolution alone": data.operations[data.operations["kind"] == "convolution"],
        "inference": rows[rows["pass"] == "inference"],
        "inference, batch 1": rows[(rows["pass"] == "inference") & is_batch_one],
        "inference, default type": rows[(rows["pass"] == "inference") & (rows["dtype"] == "default")],
        "training": rows[rows["pass"] == "training"],
        "fully connected": rows[rows["family"] == "mlp"],
    }
    for name, group_rows in groups.items():
        if len(group_rows) < 3:
            continue
        values[name] = fit_measures = fit_proportional(
            group_rows["flops"].to_numpy(float), group_rows["energy_j"].to_numpy()
        )
        lines.append(
            f"| {name} | {fit_measures['rows']} | {fit_measures['correlation']:.2f} | "
            f"{fit_measures['log_correlation']:.2f} | {fit_measures['rmspe']:.0f} |"
        )
    return Study("flops_against_energy", values, [*lines, ""])


def fit_proportional(flops: numpy.ndarray, joules: numpy.ndarray) -> dict:
    """Fits joules proportional to FLOPs with the least root mean square percentage error."""
    shares = flops / joules
    error_measures = metrics.compute_error_measures(joules, flops * shares.sum() / (shares**2).sum())
    correlation = float(numpy.corrcoef(flops, joules)[0, 1])
    logarithms = float(numpy.corrcoef(numpy.log(flops), numpy.log(joules))[0, 1])
    return {**error_measures, "correlation": correlation, "log_correlation": logarithms}


def study_additivity(data: PredictionData, baseline_predictions: pandas.DataFrame) -> Study:
    head = ["## Additivity", ""]
    layer_sum_j = baseline_predictions[
        (baseline_predictions["split"] == "everything") & (baseline_predictions["model"] == ADDITIVITY_MODEL)
    ].set_index("key")["predicted_j"]
    if layer_sum_j.empty:
        return Study(
            "additivity", {}, [*head, f"Needs the lists of operations (data/networks) and {ADDITIVITY_MODEL}.", ""]
        )
    rows = data.networks[data.networks.index.isin(layer_sum_j.index)]
    factor = rows["energy_j"] / layer_sum_j.reindex(rows.index)
    is_above_median = rows["energy_j"] > rows.groupby("pass")["energy_j"].transform("median")
    batch = rows["batch"].astype(int)
    groups = {
        "fully connected": rows["family"] == "mlp",
        "fully connected, batch 1": (rows["family"] == "mlp") & (batch == 1),
    }
    for pass_name in ("inference", "training"):
        row_mask = rows["pass"] == pass_name
        groups |= {
            pass_name: row_mask,
            f"{pass_name}, batch 1": row_mask & (batch == 1),
            f"{pass_name}, batch 2 to 31": row_mask & batch.between(2, 31),
        }
        groups |= {f"{pass_name}, batch 32 and more": row_mask & (batch >= 32)}
        groups |= {
            f"{pass_name}, more joules than half of them": row_mask & is_above_median,
            f"{pass_name}, fewer joules": row_mask & ~is_above_median,
        }
    values, lines = {}, [*head, re.sub(r"\s+", " ", ADDITIVITY_NOTE), ""]
    lines += ["| | rows | P10 | median | P90 |", "|---|---:|---:|---:|---:|"]
    for name, row_mask in groups.items():
        if row_mask.any():
            low, median, high = factor[row_mask].quantile([0.1, 0.5, 0.9])
            values[name] = {"rows": int(row_mask.sum()), "p10": low, "median": median, "p90": high}
            lines.append(f"| {name} | {row_mask.sum()} | {low:.2f} | {median:.2f} | {high:.2f} |")
    return Study("additivity", values, [*lines, ""])


ADDITIVITY_NOTE = """The whole over the sum of its operations, each alone and without waiting for the host:
DAML's factor. CatBoost with FLOPs and bytes, fitted to all measured operations, predicts the energy of an operation
alone, since batches of
networks and of measured operations seldom meet. Networks run eagerly: what is above 1 at small batches is, for the
most part, the GPU at rest while the host launches."""
