# SPDX-License-Identifier: Apache-2.0
"""Converts a planned row into calls that a runner can make."""

from __future__ import annotations

import math
from typing import Any

from .design import KINDS, PlannedRow
from .kind import BACKWARD, BACKWARD_WEIGHTS
from .measure import Call
from .tensors import TensorFactory

# Total size, in bytes, of the copies that a cold row uses in turn: a copy is no longer in the cache when it is used
# again.
COLD_BYTES = 150e6
MAX_COPIES = 64


def copies_of(row: PlannedRow) -> int:
    return min(MAX_COPIES, max(2, math.ceil(COLD_BYTES / row.cost.bytes))) if row.cold else 1


def calls_of(torch: Any, device: str, row: PlannedRow) -> list[Call]:
    gradients = row.which in (BACKWARD, BACKWARD_WEIGHTS)
    make = TensorFactory(torch, device, row.dtype, gradients)
    return [one_call(torch, make, row) for _ in range(copies_of(row))]


def one_call(torch: Any, make: TensorFactory, row: PlannedRow) -> Call:
    built = KINDS[row.kind].build(make, row.parameters)
    if not make.gradients:
        return built.forward
    wanted = built.weights if row.which == BACKWARD_WEIGHTS else [*built.inputs, *built.weights]
    output = built.forward()
    gradient = torch.randn_like(output)
    grad = torch.autograd.grad
    return lambda: grad(output, wanted, gradient, retain_graph=True)
