# SPDX-License-Identifier: Apache-2.0
"""Shapes of tensors in the terms of operations: (batch, rows, width), and how a second operand broadcasts to the
first."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence


class OperationSpec(NamedTuple):
    """A classified operation: kind, form and integer parameters, as in src/predict/graph/operation.h."""

    kind: str
    form: str
    parameters: dict[str, int]


def element_count(shape: Sequence[int]) -> int:
    return math.prod(int(size) for size in shape)


def shape_to_batch_rows_width(shape: Sequence[int]) -> dict[str, int]:
    """Returns any shape as batch, rows and width; for images the width is all pixels of a channel."""
    sizes = [int(size) for size in shape]
    if len(sizes) >= 4:
        return {"batch": sizes[0], "rows": sizes[1], "width": math.prod(sizes[2:])}
    sizes = [1] * (3 - len(sizes)) + sizes
    return {"batch": sizes[0], "rows": sizes[1], "width": sizes[2]}


def shape_with_dim_as_width(shape: Sequence[int], dim: int) -> dict[str, int]:
    """Returns the shape with the dimension of computation as `width`, wherever it is."""
    sizes = [int(size) for size in shape] or [1]
    dim %= len(sizes)
    other_sizes = sizes[:dim] + sizes[dim + 1 :]
    return {"batch": other_sizes[0] if other_sizes else 1, "rows": math.prod(other_sizes[1:]), "width": sizes[dim]}


def broadcast_form(shape: Sequence[int], second_shape: Sequence[int]) -> tuple[str, dict[str, int]]:
    """Returns how the second operand of an operation, at most as large as the first, broadcasts: "same" shape,
    "scalar", "last" (it has the trailing dimensions), or "row" (any other way); and the shape of the first operand in
    those terms."""
    if list(shape) == list(second_shape):
        return "same", shape_to_batch_rows_width(shape)
    if element_count(second_shape) == 1:
        return "scalar", shape_to_batch_rows_width(shape)
    padded_sizes = [1] * (len(shape) - len(second_shape)) + [int(size) for size in second_shape]
    non_unit_dims = [index for index, size in enumerate(padded_sizes) if size != 1]
    first_dim, last_dim = non_unit_dims[0], non_unit_dims[-1]
    sizes = [int(size) for size in shape]
    if last_dim == len(sizes) - 1 and all(
        padded_sizes[index] == sizes[index] for index in range(first_dim, len(sizes))
    ):
        leading_sizes, width = sizes[:first_dim], math.prod(sizes[first_dim:])
        return "last", {
            "batch": leading_sizes[0] if leading_sizes else 1,
            "rows": math.prod(leading_sizes[1:]),
            "width": width,
        }
    # The dimensions over which the second operand repeats are the width: for (batch, channels, 1, 1) and an image,
    # its pixels.
    first_width_dim = last_dim + 1 if last_dim + 1 < len(sizes) else len(sizes) - 1
    leading_sizes = sizes[:first_width_dim]
    return "row", {
        "batch": leading_sizes[0] if leading_sizes else 1,
        "rows": math.prod(leading_sizes[1:]),
        "width": math.prod(sizes[first_width_dim:]),
    }


def is_tensor(value: Any) -> bool:
    return hasattr(value, "storage_offset")


def collect_tensors(values: Any) -> list:
    """Returns all tensors among the arguments, including those in lists."""
    tensors = []
    for value in values:
        if is_tensor(value):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += collect_tensors(value)
    return tensors
