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
    Cost,
    Kind,
    Parameters,
    cost_of,
    is_small_enough,
    min_seconds,
    choose,
)
from .tables import value_of

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in [
        *kinds_products.KINDS, *kinds_images.KINDS, *kinds_elements.KINDS, *kinds_optimizer.KINDS, *kinds_recurrent.KINDS
    ]  # fmt: skip
}
# Rows whose tensors have this many bytes may be measured cold: a second call would find its data in the cache (50 to
# 60 MB on an H200), so calls cycle through copies, which forces them to read from memory.
COLD_BYTES = (1e6, 60e6)
COLD_SHARE = 0.3
# Below this lower bound of its duration, in s, a kernel takes the minimum time of a launch. Only TINY_SHARE of such
# draws become rows, because a few suffice.
TINY_S = 2e-6
TINY_SHARE = 0.3
SEED = 11
# Consecutive draws without a new row after which the range counts as exhausted.
MAX_REJECTED_DRAWS = 20000


class PlannedRow(NamedTuple):
    kind: str
    parameters: Parameters
    dtype: str
    which: str  # name of the pass
    cold: bool
    source: str  # "designed", or the family of networks that contains this layer

    @property
    def key(self) -> str:
        return key_of(self.kind, self.parameters, self.dtype, self.which, self.cold)

    @property
    def cost(self) -> Cost:
        return cost_of(KINDS[self.kind].work(self.parameters), self.dtype, self.which)


def key_of(kind: str, parameters: Parameters, dtype: str, which: str, cold: bool) -> str:
    return f"{kind} {parameters_text(parameters)} {dtype} {which}{' cold' if cold else ''}"


def with_cost(row: dict) -> dict:
    """Returns a measured row with FLOPs and bytes recomputed by the current conventions."""
    kind = KINDS.get(row["kind"])
    if kind is None:
        return row
    pairs = (pair.split("=") for pair in row["parameters"].split(";"))
    cost = cost_of(kind.work({name: value_of(text) for name, text in pairs}), row["dtype"], row["pass"])
    return {**row, **cost._asdict()}


def parameters_text(parameters: Parameters) -> str:
    return ";".join(f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in parameters.items())


def points(dimensions: int, offset: float) -> Iterator[list[float]]:
    """Yields points that fill the unit cube evenly."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = [ratio ** -(index + 1) for index in range(dimensions)]
    for number in itertools.count(1):
        yield [(offset + number * step) % 1.0 for step in steps]


def rows_of(kind: Kind, count: int) -> Iterator[PlannedRow]:
    layers = real_layers.of_kind(kind.name)
    seen: set[str] = set()
    rejected = 0
    for point in points(kind.dimensions + 5, offset=0.5):
        if len(seen) == count or rejected > MAX_REJECTED_DRAWS:
            return
        row = draw_row(kind, point, layers)
        if row is None or row.key in seen:
            rejected += 1
            continue
        seen.add(row.key)
        rejected = 0
        yield row


def draw_row(kind: Kind, point: Sequence[float], layers: Sequence[real_layers.Layer]) -> PlannedRow | None:
    *shape, dtype_u, pass_u, cold_u, source_u, tiny_u = point
    parameters, source = kind.draw(shape), "designed"
    if layers and source_u < 0.5:
        layer = choose(source_u * 2, layers)
        parameters, source = real_layers.with_batch(layer, shape[0]), layer.family
    dtype, which = choose(dtype_u, kind.dtypes), choose(pass_u, kind.passes)
    if has_no_backward(kind.name, parameters):
        which = kind.passes[0]
    work = kind.work(parameters)
    cost = cost_of(work, dtype, which)
    if min(work.outputs, work.inputs) < 0 or (work.outputs <= 0 and work.other_bytes <= 0):
        return None
    if not is_small_enough(cost, dtype):
        return None
    if kind.in_graph and tiny_u > TINY_SHARE and min_seconds(cost, dtype) < TINY_S:
        return None
    if parameters.get("form") == "batch" and work.inputs == parameters["channels"]:  # no variance: 1 value per channel
        return None
    cold = kind.in_graph and COLD_BYTES[0] <= cost.bytes <= COLD_BYTES[1] and cold_u < COLD_SHARE
    return PlannedRow(kind.name, parameters, dtype, which, cold, source)


def has_no_backward(kind: str, parameters: Parameters) -> bool:
    """Returns whether the operation gives no gradient, or passes its gradient on without launching a kernel."""
    forwards_gradient = {"add": "same", "reduce": "sum"}
    return bool(parameters.get("from_bytes")) or forwards_gradient.get(kind, "") == parameters.get("form")


def plan(kinds: Sequence[str] = (), scale: float = 1.0) -> list[PlannedRow]:
    """Returns all rows of the given kinds (all kinds if none is given) in measurement order."""
    positioned = []
    for kind in KINDS.values():
        if kinds and kind.name not in kinds:
            continue
        jitter = random.Random(f"{SEED} {kind.name}")
        rows = list(rows_of(kind, max(1, round(kind.rows * scale))))
        positioned += [((index + jitter.random()) / len(rows), row) for index, row in enumerate(rows)]
    return [row for _, row in sorted(positioned, key=lambda item: item[0])]
