# SPDX-License-Identifier: Apache-2.0
"""Captures operations in a few sampled steps, because capturing takes some microseconds per operation.

In the forward pass a TorchFunctionMode sees every operation of PyTorch. In the backward pass every autograd node gets a
prehook, within the module that made it; ranges of sequence numbers identify that module (see
python/capture/module_calls.h). Only the thread that began the step is captured. Each operation is recorded with the
shapes of its inputs.
"""

from __future__ import annotations

import bisect
import threading
from typing import Optional

from . import _capture
from ._guard import record_failure, wrap_function
from ._torch_shapes import TensorTextFormatter
from ._torch_versions import get_is_compiling

SCOPE_OP = 3
# Larger graphs are not captured, so that a step does not take seconds.
MAX_GRAPH_NODES = 50_000
# Limits per step: without parameter updates a program has one step that never ends.
MAX_BACKWARD_PASSES = 16
MAX_OPERATIONS_PER_STEP = 200_000


class OperationRecorder:
    def __init__(self, torch, compile_detector) -> None:
        self._torch = torch
        self._compile_detector = compile_detector
        self._operation_mode: Optional[object] = None
        self._recorded_thread = 0  # thread that entered the mode
        self._backward_pass_count = 0
        self._tensor_texts = TensorTextFormatter(torch)
        self._mode_type = _make_operation_mode_class(torch, self._tensor_texts)

    @property
    def is_recording(self) -> bool:
        """Whether operations of this thread are recorded now."""
        return (
            self._operation_mode is not None
            and not self._operation_mode.is_idle
            and threading.get_ident() == self._recorded_thread
        )

    def set_recording(self, is_sampled: bool) -> None:
        """Called at the beginning of a step: starts or stops recording operations."""
        if self._operation_mode is not None:
            self._pop_mode()
        if (
            is_sampled
            and self._operation_mode is None
            and not self._compile_detector.has_compiled
            and self._can_push_mode()
        ):
            self._push_mode()

    def _can_push_mode(self) -> bool:
        """Function modes form a stack; the mode must not be pushed between those of the program."""
        return self._torch._C._len_torch_function_stack() == 0 and threading.current_thread() is threading.main_thread()

    def _push_mode(self) -> None:
        self._operation_mode = self._mode_type()
        self._operation_mode.__enter__()
        self._recorded_thread = threading.get_ident()
        self._backward_pass_count = 0
        _capture.set_own_function_mode_count(1)
        _capture.set_node_interval_recording(True)

    def reset_after_fork(self) -> None:
        """Stops recording in the child of a fork: the step belongs to the parent."""
        if self._operation_mode is not None:
            self._pop_mode()

    def _pop_mode(self) -> None:
        """Stops recording. If a function mode of the program is on top of the stack, the recorder's mode stays below
        it, idle, until a later call finds it on top."""
        torch_c = self._torch._C
        self._operation_mode.is_idle = True
        _capture.set_node_interval_recording(False)
        depth = torch_c._len_torch_function_stack()
        if (
            threading.get_ident() != self._recorded_thread
            or depth == 0
            or torch_c._get_function_stack_at(depth - 1) is not self._operation_mode
        ):
            return
        self._operation_mode.__exit__(None, None, None)
        self._operation_mode = None
        _capture.set_own_function_mode_count(0)

    def hook_autograd_graph(self, root) -> None:
        if (
            self._operation_mode is None
            or self._operation_mode.is_idle
            or threading.get_ident() != self._recorded_thread
        ):
            return
        self._backward_pass_count += 1
        if self._backward_pass_count > MAX_BACKWARD_PASSES:
            self._pop_mode()
            return
        with self._torch._C.DisableTorchFunction():
            root_tensors = root if isinstance(root, (list, tuple)) else [root]
            root_nodes = [tensor.grad_fn for tensor in root_tensors if getattr(tensor, "grad_fn", None) is not None]
            if not root_nodes or not hasattr(root_nodes[0], "_sequence_nr"):
                return  # PyTorch 2.0: nodes have no sequence numbers that identify their modules
            graph_nodes = _collect_graph_nodes(root_nodes)
            if graph_nodes is not None:
                _hook_node_operations(graph_nodes, self._tensor_texts)


def watch_tracing(torch, operation_recorder: OperationRecorder) -> None:
    """Stops recording operations when torch.jit.trace or the ONNX export begins to trace: traced values would get the
    names and source lines of the recorder instead of the program's. The next sampled step records again."""
    is_compiling = get_is_compiling(torch)

    def begin(args):
        if operation_recorder.is_recording:
            operation_recorder.set_recording(False)

    def end(token, has_returned, args):
        pass

    for owner, name in (
        (torch.jit._trace, "trace"),
        (torch.jit._trace, "trace_module"),
        (torch.jit, "trace"),
        (torch.jit, "trace_module"),
        (torch._C, "_create_graph_by_tracing"),
    ):
        wrap_function(owner, name, is_compiling, begin, end)


def _make_name_lookup(torch):
    """Names operations as programs do. (torch.overrides has the names, too, but takes a tenth of a second to build
    them.)"""
    named_modules = (("torch.nn.functional", torch.nn.functional), ("torch", torch))

    def name_of(function) -> Optional[str]:
        """None for calls that are not operations: attributes, switches, other profilers."""
        name = getattr(function, "__name__", "__get__")
        if name in ("__get__", "__set__", "__delete__"):
            return None
        if getattr(torch.Tensor, name, None) is function:
            return "torch.Tensor." + name
        for module_name, module in named_modules:
            if getattr(module, name, None) is function:
                return f"{module_name}.{name}"
        module_name = getattr(function, "__module__", None) or getattr(
            getattr(function, "__self__", None), "__name__", "torch"
        )
        return (
            None
            if module_name.startswith("torch._ops.profiler") or name == "_set_grad_enabled"
            else f"{module_name}.{name}"
        )

    return name_of


def _make_operation_mode_class(torch, tensor_texts: TensorTextFormatter):
    lookup_operation_name = _make_name_lookup(torch)
    name_by_function: dict = {}

    class OperationMode(torch.overrides.TorchFunctionMode):
        is_idle = False
        visited_count = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if self.is_idle:
                return func(*args, **(kwargs or {}))
            depth = None
            try:
                self.visited_count += 1
                self.is_idle = self.visited_count >= MAX_OPERATIONS_PER_STEP
                name = (
                    name_by_function[func]
                    if func in name_by_function
                    else name_by_function.setdefault(func, lookup_operation_name(func))
                )
                if name is not None:
                    depth = _capture.enter_child_scope(
                        SCOPE_OP, name, tensor_texts.format_argument_tensors(types, args, kwargs)
                    )
            except Exception as error:  # noqa: BLE001 - must not reach the program
                self.is_idle = True
                record_failure(error)
            try:
                return func(*args, **(kwargs or {}))
            finally:
                if depth is not None:
                    _capture.leave_to(depth)

    return OperationMode


def _collect_graph_nodes(root_nodes: list) -> Optional[list]:
    """All reachable nodes; None if there are more than MAX_GRAPH_NODES."""
    visited_nodes, reachable_nodes, pending_nodes = set(root_nodes), [], list(root_nodes)
    while pending_nodes:
        node = pending_nodes.pop()
        reachable_nodes.append(node)
        if len(reachable_nodes) > MAX_GRAPH_NODES:
            return None
        for next_node, _ in node.next_functions:
            if next_node is not None and next_node not in visited_nodes:
                visited_nodes.add(next_node)
                pending_nodes.append(next_node)
    return reachable_nodes


def _hook_node_operations(graph_nodes: list, tensor_texts: TensorTextFormatter) -> None:
    node_intervals = sorted(_capture.node_intervals())
    interval_ends = [sequence_number for sequence_number, _ in node_intervals]
    hook_by_key: dict = {}
    for node in graph_nodes:
        sequence_number = node._sequence_nr()
        if sequence_number < 0 or sequence_number >= 2**63:  # AccumulateGrad of a parameter, which belongs to no module
            continue
        interval_index = bisect.bisect_left(interval_ends, sequence_number)
        module_node = node_intervals[interval_index][1] if interval_index < len(interval_ends) else 0
        hook_key = module_node, node.name(), tensor_texts.format_node_tensors(node)
        if hook_key not in hook_by_key:
            hook_by_key[hook_key] = _capture.make_operation_hook(*hook_key)
        node.register_prehook(hook_by_key[hook_key])
