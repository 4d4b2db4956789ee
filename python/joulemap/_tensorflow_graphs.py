# SPDX-License-Identifier: Apache-2.0
"""Reads graphs that TensorFlow has traced into GraphNames: input shapes of operations, updates of variables, chains of
operations that TensorFlow fuses. It only reads the graph, once after tracing.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional

from ._graph_names import GraphNames, is_gradient_operation

_MAX_TENSORS_IN_TEXT = 8  # the same limit as in src/scopes/tensor_text.h
_NO_TENSORS_TEXT = "()"
_RESOURCE_DTYPES = ("resource", "variant")

# TensorFlow fuses a contraction with the operations after it and names the result after the last of them.
_CONTRACTION_OPERATIONS = {"MatMul", "BatchMatMulV2", "Conv2D", "Conv3D", "DepthwiseConv2dNative"}
_FUSIBLE_OPERATIONS = {
    "BiasAdd",
    "Add",
    "AddV2",
    "FusedBatchNormV3",
    "Relu",
    "Relu6",
    "Elu",
    "LeakyRelu",
    "Tanh",
    "Sigmoid",
}
_MAX_FUSED_CHAIN = 4

# Bookkeeping of the graph, and AddN, which sums gradients.
_OPERATIONS_WITHOUT_PHASE = {
    "NoOp",
    "Placeholder",
    "Const",
    "Identity",
    "AddN",
    "PartitionedCall",
    "StatefulPartitionedCall",
}
_SOURCE_OPERATIONS = {"Placeholder", "Const", "ReadVariableOp", "AddN"}
_READ_OPERATIONS = {"ReadVariableOp", "ResourceGather"}
_UPDATE_OPERATIONS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def _shape_text(tensor) -> str:
    shape = tensor.shape
    if shape.rank is None:
        return "?"
    return ",".join("-1" if size is None else str(size) for size in shape.as_list())


def _tensors_text(tensors: Iterable) -> str:
    tensor_texts = []
    for tensor in tensors:
        dtype_name = tensor.dtype.base_dtype.name
        if dtype_name not in _RESOURCE_DTYPES:
            tensor_texts.append(("" if dtype_name == "float32" else dtype_name) + "[" + _shape_text(tensor) + "]")
    omitted_count = len(tensor_texts) - _MAX_TENSORS_IN_TEXT
    return (
        " ".join(tensor_texts[:_MAX_TENSORS_IN_TEXT]) + (f" and {omitted_count} more" if omitted_count > 0 else "")
        or _NO_TENSORS_TEXT
    )


def _find_fused_chain(operation) -> List:
    """The operations from a contraction to `operation` that TensorFlow may fuse; empty if there is no contraction."""
    chain = [operation]
    while chain[0].type not in _CONTRACTION_OPERATIONS:
        if chain[0].type not in _FUSIBLE_OPERATIONS or len(chain) > _MAX_FUSED_CHAIN:
            return []
        input_operations = [tensor.op for tensor in chain[0].inputs]
        producer = next(
            (candidate for candidate in input_operations if candidate.type in _CONTRACTION_OPERATIONS), None
        )
        producer = producer or next(
            (candidate for candidate in input_operations if candidate.type in _FUSIBLE_OPERATIONS), None
        )
        if producer is None:
            return []
        chain.insert(0, producer)
    return chain


def _add_fused_chain(operation, names: GraphNames) -> None:
    chain = _find_fused_chain(operation)
    if not chain:
        return
    chain_output_ids = {id(tensor) for chain_operation in chain for tensor in chain_operation.outputs}
    chain_inputs = [
        tensor for chain_operation in chain for tensor in chain_operation.inputs if id(tensor) not in chain_output_ids
    ]
    names.add_fused_chain(operation.name, chain[0].name, _tensors_text(chain_inputs))


def _is_variable_update(operation) -> bool:
    return operation.type in _UPDATE_OPERATIONS or operation.type.startswith(("ResourceApply", "ResourceSparseApply"))


def _graph_variables(graph) -> Iterable:
    try:
        return list(getattr(graph, "variables", ()))
    except AssertionError:  # the program has deleted one of them
        return ()


class _VariableReaders:
    """Finds the variable behind a tensor of a function's graph, and the operation that reads the variable. A function
    captures variables of the functions around it."""

    def __init__(self, graphs: Iterable) -> None:
        self._variables_by_handle: Dict[int, object] = {}
        self._outer_tensors: Dict[int, object] = {}  # tensor of the graph around, by id of the tensor inside
        self._reader_by_variable: Dict[int, str] = {}
        for graph in graphs:
            self._variables_by_handle.update((id(variable.handle), variable) for variable in _graph_variables(graph))
            self._outer_tensors.update(
                (id(inner_tensor), outer_tensor) for outer_tensor, inner_tensor in getattr(graph, "captures", ())
            )

    def add_reader(self, operation) -> None:
        variable = self.variable_of_operation(operation)
        if variable is not None and not is_gradient_operation(operation.name):
            self._reader_by_variable.setdefault(id(variable), operation.name)

    def variable_of_operation(self, operation) -> Optional[object]:
        tensor = operation.inputs[0] if len(operation.inputs) > 0 else None
        while id(tensor) in self._outer_tensors:
            tensor = self._outer_tensors[id(tensor)]
        return self._variables_by_handle.get(id(tensor))

    def find_reader(self, variable) -> Optional[str]:
        return self._reader_by_variable.get(id(variable))


def _parse_module_name(variable_name: str) -> str:
    """net/first/kernel:0 -> first; the variable itself if it is in no scope."""
    scope_names = variable_name.partition(":")[0].split("/")
    return ".".join(scope_names[1:-1] or scope_names[:-1] or scope_names)


def _add_variable_update(operation, variables: _VariableReaders, names: GraphNames) -> None:
    """Adds the update of a trainable variable, and the operations without a scope that compute its value from the
    gradient. Its layer is the one that reads the variable, else the scope in the name of the variable."""
    variable = variables.variable_of_operation(operation)
    if variable is None or not getattr(variable, "trainable", False):
        return
    reader_name, module_name = variables.find_reader(variable), _parse_module_name(variable.name)
    pending_operations = [operation]
    while pending_operations:
        update_operation = pending_operations.pop()
        if reader_name is None:
            names.add_scope(update_operation.name, "optimizer", module_name)
        else:
            names.add_update(update_operation.name, reader_name)
        for tensor in update_operation.inputs:
            input_operation = tensor.op
            is_update_computation = (
                input_operation.type not in _SOURCE_OPERATIONS
                and not is_gradient_operation(input_operation.name)
                and not names.contains_operation(input_operation.name)
            )
            if is_update_computation and "/" not in input_operation.name:
                pending_operations.append(input_operation)


def read_graphs(graphs: Iterable, names: GraphNames, unscoped_phase: str = "") -> None:
    """`graphs`: FuncGraphs of one function and of those that it calls, or the graph of a session. `unscoped_phase`: the
    phase of operations whose name shows none."""
    operations_by_graph = [(graph, graph.get_operations()) for graph in graphs]
    names.has_gradients = names.has_gradients or any(
        is_gradient_operation(graph_operation.name)
        for _, operations in operations_by_graph
        for graph_operation in operations
    )
    variables = _VariableReaders(graph for graph, _ in operations_by_graph)
    for _, operations in operations_by_graph:
        for operation in operations:
            names.add_tensors(operation.name, _tensors_text(operation.inputs))
            if operation.type in _FUSIBLE_OPERATIONS:
                _add_fused_chain(operation, names)
            if operation.type in _READ_OPERATIONS:
                variables.add_reader(operation)
    for _, operations in operations_by_graph:
        for operation in operations:
            if names.has_gradients and _is_variable_update(operation) and not names.contains_operation(operation.name):
                _add_variable_update(operation, variables, names)
        if unscoped_phase:
            _add_unscoped_operations(operations, unscoped_phase, names)


def _add_unscoped_operations(operations: Iterable, phase: str, names: GraphNames) -> None:
    for operation in operations:
        has_no_scope = (
            "/" not in operation.name
            and operation.type not in _OPERATIONS_WITHOUT_PHASE
            and not _is_variable_update(operation)
        )
        if has_no_scope and not names.contains_operation(operation.name):
            names.add_scope(operation.name, phase, "")


def computes_gradients(operations: Iterable) -> bool:
    """Whether the operations, or any that they depend on, compute gradients."""
    pending_operations, visited_operations = list(operations), set()
    while pending_operations:
        operation = pending_operations.pop()
        if operation in visited_operations:
            continue
        if is_gradient_operation(operation.name):
            return True
        visited_operations.add(operation)
        pending_operations += [tensor.op for tensor in operation.inputs]
        pending_operations += operation.control_inputs
    return False
