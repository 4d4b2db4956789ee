# SPDX-License-Identifier: Apache-2.0
"""The list of rows to measure: always the same rows in the same order.

Shapes come from a low-discrepancy sequence (multiples of the powers of a generalised golden ratio, modulo 1), so the
first hundred of a kind cover its range about as evenly as the first thousand. Half of them are layers of real
networks (`real_layers`) with a drawn batch size. Kinds are interleaved in proportion to their row counts. A run may
therefore end anywhere: the rows it measured form a balanced design.
"""

from __future__ import annotations

import itertools
import random
from typing import Iterator, NamedTuple, Sequence

from . import kinds_elements, kinds_images, kinds_optimizer, kinds_products, kinds_recurrent, real_layers
from .kind import (
    OperationCost,
    OperationKind,
    Parameters,
    choose_option,
    is_within_size_limits,
    min_duration_s,
    operation_cost,
)
from .tables import parse_cell

OPERATION_KINDS: dict[str, OperationKind] = {
    kind.name: kind
    for kind in [
        *kinds_products.KINDS,
        *kinds_images.KINDS,
        *kinds_elements.KINDS,
        *kinds_optimizer.KINDS,
        *kinds_recurrent.KINDS,
    ]  # fmt: skip
}
# Rows whose tensors have this many bytes may be measured cold: a second call would find its data in the cache (50 to
# 60 MB on an H200), so calls cycle through copies, which forces them to read from memory.
COLD_ROW_BYTES_RANGE = (1e6, 60e6)
COLD_ROW_SHARE = 0.3
# Below this lower bound of its duration, in s, a kernel takes the minimum time of a launch. Only TINY_ROW_SHARE of such
# draws become rows, because a few suffice.
MAX_TINY_OPERATION_S = 2e-6
TINY_ROW_SHARE = 0.3
DESIGN_SEED = 11
# Consecutive draws without a new row after which the range counts as exhausted.
MAX_REJECTED_DRAWS = 20000


class PlannedRow(NamedTuple):
    kind: str
    parameters: Parameters
    dtype: str
    pass_name: str  # name of the pass
    is_cold: bool
    source: str  # "designed", or the family of networks that contains this layer

    @property
    def key(self) -> str:
        return operation_row_key(self.kind, self.parameters, self.dtype, self.pass_name, self.is_cold)

    @property
    def cost(self) -> OperationCost:
        return operation_cost(OPERATION_KINDS[self.kind].forward_work(self.parameters), self.dtype, self.pass_name)


def operation_row_key(kind: str, parameters: Parameters, dtype: str, pass_name: str, is_cold: bool) -> str:
    return f"{kind} {format_parameters(parameters)} {dtype} {pass_name}{' cold' if is_cold else ''}"


def recompute_cost(row: dict) -> dict:
    """Returns a measured row with FLOPs and bytes recomputed by the current conventions."""
    kind = OPERATION_KINDS.get(row["kind"])
    if kind is None:
        return row
    name_value_pairs = (assignment.split("=") for assignment in row["parameters"].split(";"))
    cost = operation_cost(
        kind.forward_work({name: parse_cell(text) for name, text in name_value_pairs}), row["dtype"], row["pass"]
    )
    return {**row, **cost._asdict()}


def format_parameters(parameters: Parameters) -> str:
    return ";".join(f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in parameters.items())


def quasi_random_points(dimensions: int, offset: float) -> Iterator[list[float]]:
    """Yields points that fill the unit cube evenly."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = [ratio ** -(index + 1) for index in range(dimensions)]
    for point_number in itertools.count(1):
        yield [(offset + point_number * step) % 1.0 for step in steps]


def draw_rows_of_kind(kind: OperationKind, count: int) -> Iterator[PlannedRow]:
    layers = real_layers.layers_of_kind(kind.name)
    drawn_keys: set[str] = set()
    rejected_count = 0
    for point in quasi_random_points(kind.dimensions + 5, offset=0.5):
        if len(drawn_keys) == count or rejected_count > MAX_REJECTED_DRAWS:
            return
        row = draw_row(kind, point, layers)
        if row is None or row.key in drawn_keys:
            rejected_count += 1
            continue
        drawn_keys.add(row.key)
        rejected_count = 0
        yield row


def draw_row(kind: OperationKind, point: Sequence[float], layers: Sequence[real_layers.RealLayer]) -> PlannedRow | None:
    *shape, dtype_coordinate, pass_coordinate, cold_coordinate, source_coordinate, tiny_coordinate = point
    parameters, source = kind.draw_parameters(shape), "designed"
    if layers and source_coordinate < 0.5:
        layer = choose_option(source_coordinate * 2, layers)
        parameters, source = real_layers.scale_layer_to_batch(layer, shape[0]), layer.family
    dtype, pass_name = choose_option(dtype_coordinate, kind.dtypes), choose_option(pass_coordinate, kind.passes)
    if has_no_backward(kind.name, parameters):
        pass_name = kind.passes[0]
    forward_work = kind.forward_work(parameters)
    cost = operation_cost(forward_work, dtype, pass_name)
    if min(forward_work.outputs, forward_work.inputs) < 0 or (
        forward_work.outputs <= 0 and forward_work.other_bytes <= 0
    ):
        return None
    if not is_within_size_limits(cost, dtype):
        return None
    if kind.in_graph and tiny_coordinate > TINY_ROW_SHARE and min_duration_s(cost, dtype) < MAX_TINY_OPERATION_S:
        return None
    # No variance: 1 value per channel.
    if parameters.get("form") == "batch" and forward_work.inputs == parameters["channels"]:
        return None
    is_cold = (
        kind.in_graph
        and COLD_ROW_BYTES_RANGE[0] <= cost.bytes <= COLD_ROW_BYTES_RANGE[1]
        and cold_coordinate < COLD_ROW_SHARE
    )
    return PlannedRow(kind.name, parameters, dtype, pass_name, is_cold, source)


def has_no_backward(kind: str, parameters: Parameters) -> bool:
    """Returns whether the operation gives no gradient, or passes its gradient on without launching a kernel."""
    gradient_forwarding_forms = {"add": "same", "reduce": "sum"}
    return bool(parameters.get("from_bytes")) or gradient_forwarding_forms.get(kind, "") == parameters.get("form")


def plan_designed_rows(kinds: Sequence[str] = (), scale: float = 1.0) -> list[PlannedRow]:
    """Returns all rows of the given kinds (all kinds if none is given) in measurement order."""
    positioned_rows = []
    for kind in OPERATION_KINDS.values():
        if kinds and kind.name not in kinds:
            continue
        jitter = random.Random(f"{DESIGN_SEED} {kind.name}")
        rows = list(draw_rows_of_kind(kind, max(1, round(kind.row_count * scale))))
        positioned_rows += [((index + jitter.random()) / len(rows), row) for index, row in enumerate(rows)]
    return [row for _, row in sorted(positioned_rows, key=lambda position_and_row: position_and_row[0])]
