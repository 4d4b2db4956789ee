# SPDX-License-Identifier: Apache-2.0
"""The features of DAML's models: the hyper-parameters of a layer, its input and output size, and further properties
that differ between rows (form, type, pass, cold). There is one matrix for each kind, with all measured or listed
operations; a fold only selects lines of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy
import pandas

import work
from rows import OPERATION_KEY, PredictionData, join_columns, parse

TEXT_COLUMNS = ("form", "to", "over", "way", "dtype", "pass")


class Table(NamedTuple):
    """Features of one kind; a line is an operation. Energy and time are nan where it was not measured."""

    kind: str
    place: dict[str, int]  # key of an operation -> its line
    names: list[str]
    features: numpy.ndarray
    is_number: numpy.ndarray  # by column: True for a size, False for an indicator of a form
    flops: numpy.ndarray
    bytes: numpy.ndarray
    roofline_s: numpy.ndarray
    energy_j: numpy.ndarray
    time_s: numpy.ndarray

    def at(self, lines: numpy.ndarray) -> "Table":
        line_fields = {name: getattr(self, name)[lines] for name in PER_LINE_FIELDS}
        return self._replace(place={}, **line_fields)


PER_LINE_FIELDS = ("features", "flops", "bytes", "roofline_s", "energy_j", "time_s")


def make_tables(data: PredictionData) -> dict[str, Table]:
    measured = data.operations[[*OPERATION_KEY, "energy_j", "time_s"]]
    all_operations = pandas.concat([measured, make_listed_operations(data)])
    all_operations = all_operations[~all_operations.index.duplicated()]
    all_operations = all_operations[~all_operations["kind"].isin(work.ZERO_COST_KINDS)]
    return {str(kind): table(str(kind), rows) for kind, rows in all_operations.groupby("kind")}


def make_listed_operations(data: PredictionData) -> pandas.DataFrame:
    """Operations of networks with warm caches, because DAML measured layers so, one at a time."""
    listed_operations = data.listed.assign(cold="0")
    if listed_operations.empty:
        return pandas.DataFrame(columns=OPERATION_KEY)
    return listed_operations.assign(key=join_columns(listed_operations, OPERATION_KEY)).set_index("key")[OPERATION_KEY]


def table(kind: str, rows: pandas.DataFrame) -> Table:
    parameters = [work.canonical_parameters(kind, parse(text)) for text in rows["parameters"]]
    costs = [
        work.compute_operation_size(kind, *operation_arguments)
        for operation_arguments in zip(parameters, rows["dtype"], rows["pass"])
    ]
    frame = pandas.DataFrame(parameters, index=rows.index)
    frame = frame.assign(dtype=rows["dtype"], cold=rows["cold"].astype(int), **{"pass": rows["pass"]})
    frame["input_size"], frame["output_size"] = [cost.inputs for cost in costs], [cost.outputs for cost in costs]
    texts = [name for name in TEXT_COLUMNS if name in frame]
    numbers = frame.drop(columns=texts).apply(pandas.to_numeric, errors="coerce").fillna(0)
    marks = pandas.get_dummies(frame[texts].astype(str)).astype(float)
    features = pandas.concat([numbers, marks], axis=1).astype(float)
    measured = rows["energy_j"].notna()
    features = features.loc[:, features[measured].nunique() > 1]  # constant columns carry no information
    return Table(
        kind=kind,
        place={key: line for line, key in enumerate(rows.index)},
        names=list(features.columns),
        features=features.to_numpy(),
        is_number=numpy.array([name in numbers.columns and name != "cold" for name in features.columns]),
        flops=numpy.array([cost.flops for cost in costs], float),
        bytes=numpy.array([cost.bytes for cost in costs], float),
        roofline_s=numpy.array([work.roofline_s(cost, dtype) for cost, dtype in zip(costs, rows["dtype"])]),
        energy_j=rows["energy_j"].to_numpy(float),
        time_s=rows["time_s"].to_numpy(float),
    )


def network_flops(data: PredictionData) -> dict[str, float]:
    """FLOPs of one pass of a network or of one training step, by key."""
    rows = data.listed
    by_id = {
        number: work.compute_operation_size(kind, parse(text), dtype, pass_name).flops
        for number, kind, text, dtype, pass_name in zip(
            rows.index, rows["kind"], rows["parameters"], rows["dtype"], rows["pass"]
        )
    }
    return {
        key: sum(by_id[number] * count for number, count in operation_counts)
        for key, operation_counts in data.lists.items()
    }
