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
    rest = sizes[:dim] + sizes[dim + 1 :]
    return {"batch": rest[0] if rest else 1, "rows": math.prod(rest[1:]), "width": sizes[dim]}


def broadcast_form(shape: Sequence[int], second: Sequence[int]) -> tuple[str, dict[str, int]]:
    """Returns how the second operand of an operation, at most as large as the first, broadcasts: "same" shape,
    "scalar", "last" (it has the trailing dimensions), or "row" (any other way); and the shape of the first operand in
    those terms."""
    if list(shape) == list(second):
        return "same", shape_to_batch_rows_width(shape)
    if element_count(second) == 1:
        return "scalar", shape_to_batch_rows_width(shape)
    padded = [1] * (len(shape) - len(second)) + [int(size) for size in second]
    used = [index for index, size in enumerate(padded) if size != 1]
    first, last = used[0], used[-1]
    sizes = [int(size) for size in shape]
    if last == len(sizes) - 1 and all(padded[index] == sizes[index] for index in range(first, len(sizes))):
        before, width = sizes[:first], math.prod(sizes[first:])
        return "last", {"batch": before[0] if before else 1, "rows": math.prod(before[1:]), "width": width}
    # The dimensions over which the second operand repeats are the width: for (batch, channels, 1, 1) and an image,
    # its pixels.
    cut = last + 1 if last + 1 < len(sizes) else len(sizes) - 1
    before = sizes[:cut]
    return "row", {"batch": before[0] if before else 1, "rows": math.prod(before[1:]), "width": math.prod(sizes[cut:])}


def is_tensor(value: Any) -> bool:
    return hasattr(value, "storage_offset")


def collect_tensors(values: Any) -> list:
    """Returns all tensors among the arguments, including those in lists."""
    found = []
    for value in values:
        if is_tensor(value):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += collect_tensors(value)
    return found
