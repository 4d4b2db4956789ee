# SPDX-License-Identifier: Apache-2.0
"""Converts a planned row into calls that a runner can make."""

from __future__ import annotations

import math
from typing import Any

from .design import OPERATION_KINDS, PlannedRow
from .kind import PASS_BACKWARD, PASS_BACKWARD_WEIGHTS
from .measure import OperationCall
from .tensors import TensorFactory

# Total size, in bytes, of the copies that a cold row uses in turn: a copy is no longer in the cache when it is used
# again.
COLD_COPIES_BYTES = 150e6
MAX_TENSOR_COPIES = 64


def tensor_copy_count(row: PlannedRow) -> int:
    return min(MAX_TENSOR_COPIES, max(2, math.ceil(COLD_COPIES_BYTES / row.cost.bytes))) if row.is_cold else 1


def make_operation_calls(torch: Any, device: str, row: PlannedRow) -> list[OperationCall]:
    requires_gradients = row.pass_name in (PASS_BACKWARD, PASS_BACKWARD_WEIGHTS)
    tensor_factory = TensorFactory(torch, device, row.dtype, requires_gradients)
    return [make_operation_call(torch, tensor_factory, row) for _ in range(tensor_copy_count(row))]


def make_operation_call(torch: Any, tensor_factory: TensorFactory, row: PlannedRow) -> OperationCall:
    operation = OPERATION_KINDS[row.kind].build_operation(tensor_factory, row.parameters)
    if not tensor_factory.requires_gradients:
        return operation.forward
    gradient_targets = (
        operation.weights if row.pass_name == PASS_BACKWARD_WEIGHTS else [*operation.inputs, *operation.weights]
    )
    output = operation.forward()
    gradient = torch.randn_like(output)
    grad = torch.autograd.grad
    return lambda: grad(output, gradient_targets, gradient, retain_graph=True)
