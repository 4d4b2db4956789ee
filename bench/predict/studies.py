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


def all_studies(data: PredictionData, flops: dict[str, float], found: pandas.DataFrame) -> list[Study]:
    """Runs all studies. `found`: predictions of baselines; their split `everything` comes from models of all rows."""
    return [study_noise_floor(data), study_flops_against_energy(data, flops), study_additivity(data, found)]


def study_noise_floor(data: PredictionData) -> Study:
    """Compares one measurement with the mean of the others of its key: a lower bound for errors of predictions."""
    raw = data.raw[data.raw.groupby("key")["energy_j"].transform("size") > 1]
    by_key = raw.groupby("key")["energy_j"]
    others = (by_key.transform("sum") - raw["energy_j"]) / (by_key.transform("size") - 1)
    kinds = raw["kind"].where(raw["kind"] != "network", "networks")
    values, lines = {}, ["## Noise floor", "", "One measurement, predicted by the others of the same key.", ""]
    lines += ["| | keys | RMSPE, % | median, % | p90, % |", "|---|---:|---:|---:|---:|"]
    groups = {**{str(kind): some.index for kind, some in raw.reset_index(drop=True).groupby(kinds.to_numpy())}}
    raw, others = raw.reset_index(drop=True), others.reset_index(drop=True)
    groups["**operations**"] = raw.index[raw["kind"] != "network"]
    for name, index in groups.items():
        stats = metrics.compute_error_measures(raw["energy_j"][index].to_numpy(), others[index].to_numpy())
        values[name] = {**stats, "keys": int(raw["key"][index].nunique())}
        lines.append(
            f"| {name} | {values[name]['keys']} | {stats['rmspe']:.1f} | {stats['median']:.1f} | {stats['p90']:.1f} |"
        )
    return Study("noise_floor", values, [*lines, ""])


def study_flops_against_energy(data: PredictionData, flops: dict[str, float]) -> Study:
    values, lines = (
        {},
        ["## FLOPs against energy", "", "Proportional: joules = FLOPs times one number, the best there is.", ""],
    )
    lines += ["| | rows | correlation | of logarithms | RMSPE of proportional, % |", "|---|---:|---:|---:|---:|"]
    rows = data.networks.assign(flops=pandas.Series(flops, dtype=float)).dropna(subset=["flops"])
    first = rows["batch"] == "1"
    groups = {
        "operations": data.operations[data.operations["flops"] > 0],
        "operations, fp32 forward": data.operations.query("flops > 0 and dtype == 'fp32' and `pass` == 'forward'"),
        "dense alone": data.operations[data.operations["kind"] == "dense"],
        "convolution alone": data.operations[data.operations["kind"] == "convolution"],
        "inference": rows[rows["pass"] == "inference"],
        "inference, batch 1": rows[(rows["pass"] == "inference") & first],
        "inference, default type": rows[(rows["pass"] == "inference") & (rows["dtype"] == "default")],
        "training": rows[rows["pass"] == "training"],
        "fully connected": rows[rows["family"] == "mlp"],
    }
    for name, some in groups.items():
        if len(some) < 3:
            continue
        values[name] = stats = fit_proportional(some["flops"].to_numpy(float), some["energy_j"].to_numpy())
        lines.append(
            f"| {name} | {stats['rows']} | {stats['correlation']:.2f} | "
            f"{stats['log_correlation']:.2f} | {stats['rmspe']:.0f} |"
        )
    return Study("flops_against_energy", values, [*lines, ""])


def fit_proportional(flops: numpy.ndarray, joules: numpy.ndarray) -> dict:
    """Fits joules proportional to FLOPs with the least root mean square percentage error."""
    shares = flops / joules
    stats = metrics.compute_error_measures(joules, flops * shares.sum() / (shares**2).sum())
    correlation = float(numpy.corrcoef(flops, joules)[0, 1])
    logarithms = float(numpy.corrcoef(numpy.log(flops), numpy.log(joules))[0, 1])
    return {**stats, "correlation": correlation, "log_correlation": logarithms}


def study_additivity(data: PredictionData, found: pandas.DataFrame) -> Study:
    head = ["## Additivity", ""]
    alone = found[(found["split"] == "everything") & (found["model"] == ADDITIVITY_MODEL)].set_index("key")[
        "predicted_j"
    ]
    if alone.empty:
        return Study(
            "additivity", {}, [*head, f"Needs the lists of operations (data/networks) and {ADDITIVITY_MODEL}.", ""]
        )
    rows = data.networks[data.networks.index.isin(alone.index)]
    factor = rows["energy_j"] / alone.reindex(rows.index)
    large = rows["energy_j"] > rows.groupby("pass")["energy_j"].transform("median")
    batch = rows["batch"].astype(int)
    groups = {
        "fully connected": rows["family"] == "mlp",
        "fully connected, batch 1": (rows["family"] == "mlp") & (batch == 1),
    }
    for which in ("inference", "training"):
        here = rows["pass"] == which
        groups |= {
            which: here,
            f"{which}, batch 1": here & (batch == 1),
            f"{which}, batch 2 to 31": here & batch.between(2, 31),
        }
        groups |= {f"{which}, batch 32 and more": here & (batch >= 32)}
        groups |= {f"{which}, more joules than half of them": here & large, f"{which}, fewer joules": here & ~large}
    values, lines = {}, [*head, re.sub(r"\s+", " ", ADDITIVITY_NOTE), ""]
    lines += ["| | rows | P10 | median | P90 |", "|---|---:|---:|---:|---:|"]
    for name, here in groups.items():
        if here.any():
            low, median, high = factor[here].quantile([0.1, 0.5, 0.9])
            values[name] = {"rows": int(here.sum()), "p10": low, "median": median, "p90": high}
            lines.append(f"| {name} | {here.sum()} | {low:.2f} | {median:.2f} | {high:.2f} |")
    return Study("additivity", values, [*lines, ""])


ADDITIVITY_NOTE = """The whole over the sum of its operations, each alone and without waiting for the host:
DAML's factor. CatBoost with FLOPs and bytes, fitted to all measured operations, predicts the energy of an operation
alone, since batches of
networks and of measured operations seldom meet. Networks run eagerly: what is above 1 at small batches is, for the
most part, the GPU at rest while the host launches."""
