# SPDX-License-Identifier: Apache-2.0
"""GraphNames: what the names in the graphs of a compiled TensorFlow function mean, for the .meta file of its traces
(src/ingest/trace_sidecar.h): layers and phases of scopes and operations, input shapes of operations, and operations
that TensorFlow fuses into one.
"""

from __future__ import annotations

from typing import Dict, Iterator, Optional, Tuple

_TAPE_PREFIX = "gradient_tape/"


def is_gradient_operation(name: str) -> bool:
    """Whether an operation of that name computes gradients: gradient_tape/..., or gradients/... of tf.gradients."""
    return name.startswith(_TAPE_PREFIX) or any(
        scope_name.partition("_")[0] == "gradients" for scope_name in name.split("/")[:-1]
    )


def _merge_shape_texts(first_shape: str, second_shape: str) -> str:
    """int64[64,3], int64[32,3] -> int64[-1,3]; empty if types or ranks differ."""
    (first_type, _, first_sizes), (second_type, _, second_sizes) = (
        first_shape.partition("["),
        second_shape.partition("["),
    )
    size_pairs = list(zip(first_sizes.rstrip("]").split(","), second_sizes.rstrip("]").split(",")))
    if first_type != second_type or first_sizes.count(",") != second_sizes.count(","):
        return ""
    return (
        first_type
        + "["
        + ",".join(first_size if first_size == second_size else "-1" for first_size, second_size in size_pairs)
        + "]"
    )


def _merge_tensor_texts(first_tensors: str, second_tensors: str) -> str:
    first_shapes, second_shapes = first_tensors.split(" "), second_tensors.split(" ")
    merged_shapes = [
        _merge_shape_texts(first_shape, second_shape) if first_shape != second_shape else first_shape
        for first_shape, second_shape in zip(first_shapes, second_shapes)
    ]
    return " ".join(merged_shapes) if len(first_shapes) == len(second_shapes) and all(merged_shapes) else ""


class GraphNames:
    """The names of one function of the program, collected while it is traced."""

    def __init__(self) -> None:
        self._scopes: Dict[str, Tuple[str, str]] = {}
        self._tensors: Dict[str, str] = {}
        self._fused_chains: Dict[str, Tuple[str, str]] = {}
        self._variable_updates: Dict[str, str] = {}
        self.has_gradients = False  # the function computes gradients

    def add_scope(self, name: str, phase: str, module: str) -> None:
        self._scopes[name] = (phase, module)

    def add_tensors(self, name: str, tensors: str) -> None:
        """A function that is traced for several shapes has several operations of one name: sizes that differ become
        -1."""
        known_tensors = self._tensors.get(name, tensors)
        if known_tensors != tensors:
            tensors = (
                _merge_tensor_texts(known_tensors, tensors) if known_tensors else ""
            )  # empty: they have nothing in common
        self._tensors[name] = tensors

    def add_fused_chain(self, name: str, first: str, tensors: str) -> None:
        """`name`: the last operation of a chain that TensorFlow may fuse. `first`: the first one, which takes the
        time."""
        self._fused_chains[name] = (first, tensors)

    def add_update(self, name: str, reader: str) -> None:
        """`name`: an operation that updates a variable. `reader`: the operation in a layer that reads the variable."""
        self._variable_updates[name] = reader

    def contains_operation(self, name: str) -> bool:
        """Whether the operation, or a scope around it, has a phase or a layer."""
        return name in self._variable_updates or self.find_module(name) is not None

    def find_module(self, name: str) -> Optional[str]:
        """The module of the innermost known scope that contains the operation."""
        name = name[len(_TAPE_PREFIX) :] if name.startswith(_TAPE_PREFIX) else name
        while name:
            phase_and_module = self._scopes.get(name)
            if phase_and_module is not None:
                return phase_and_module[1]
            name = name.rpartition("/")[0]
        return None

    def metadata_lines(self) -> Iterator[Tuple[str, ...]]:
        """The lines of the .meta file, as fields."""
        for name, (phase, module) in self._scopes.items():
            yield ("scope", name, phase, module)
        for name, tensors in self._tensors.items():
            if tensors:
                yield ("tensors", name, tensors)
        for name, (first_operation, tensors) in self._fused_chains.items():
            yield ("fused", name, first_operation, tensors)
        for name, reader in self._variable_updates.items():
            yield ("update", name, reader)
