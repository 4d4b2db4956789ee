# SPDX-License-Identifier: Apache-2.0
"""Records every operation that reaches PyTorch's dispatcher, with its module. For backward operations it also finds
the forward operation whose gradient they compute.

Autograd numbers its nodes. A number that appears while an operation runs belongs to the node of that operation. When
the backward pass processes that node, the operations that it runs are the gradient of that operation. They are
recorded as one backward operation where they were measured as one (`BACKWARD_OPERATIONS_BY_KIND`), else one by one, as
forward operations of the backward phase.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional, Sequence

from .elements import dtype_name
from .layers import make_attention_spec, classify_operation, make_dense_spec
from .scalar_values import ScalarValueTracker
from .shapes import OperationSpec, collect_tensors

# Operations that launch nothing: PyTorch's internal bookkeeping on fake tensors.
OPERATIONS_WITHOUT_LAUNCH = {
    "detach",
    "detach_",
    "lift_fresh",
    "is_same_size",
    "_has_compatible_shallow_copy_type",
    "device",
}
OPERATIONS_WITHOUT_LAUNCH |= {"size", "stride", "sym_size", "sym_stride", "sym_numel", "is_contiguous", "layout"}
OPERATIONS_WITHOUT_LAUNCH |= {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
# Views besides those that PyTorch itself marks as views.
UNMARKED_VIEW_OPERATIONS = {"_unsafe_view", "resize", "set", "as_strided", "unsafe_split", "unsafe_split_with_sizes"}
# Operations of a node that together form its one backward operation, by the kind of the forward operation.
BACKWARD_OPERATIONS_BY_KIND = {
    "dense": {"mm", "sum", "t", "view", "transpose", "unsqueeze", "squeeze", "mv", "mul", "expand"},
    "bmm": {"bmm", "transpose", "sum", "view", "baddbmm"},
    "multiply": {"mul", "sum", "view", "div", "neg"},
    "add": {"sum", "view"},
}
PRODUCT_OPERATIONS = {"dense", "bmm", "attention"}


class OperationTrace:
    """Recorded operations and the current state of the trace."""

    def __init__(self, torch: Any, dtype: str) -> None:
        self._torch, self._precision = torch, dtype
        self.operations: list[dict] = []
        self.unknown_operations: list[dict] = []
        self.notes: list[str] = []
        self.phase = "forward"
        self.module_path_stack: list[str] = []
        self.layer_of_parameter: dict[int, str] = {}
        self.replacement_kernels: dict[str, Callable] = {}  # by name: kernels of a GPU, see on_gpu
        self._pause_depth = 0
        self._operation_of_node: dict[int, Optional[dict]] = {}
        self._first_unclaimed_node = self._next_node_number()
        self._claimed_nodes = range(0)

    def _next_node_number(self) -> int:
        return self._torch._C._autograd._get_sequence_nr()

    @contextlib.contextmanager
    def pause_recording(self) -> Iterator[None]:
        """Records no operations inside: they are part of another operation, and so are their gradients."""
        self._pause_depth += 1
        try:
            yield
        finally:
            self._pause_depth -= 1
            self._claim_nodes({"part": True})

    def _claim_nodes(self, operation: Optional[dict]) -> None:
        """Assigns the autograd nodes created since the last call to this operation."""
        next_number = self._next_node_number()
        if next_number > self._first_unclaimed_node:
            self._claimed_nodes = range(self._first_unclaimed_node, next_number)
        for node_number in range(self._first_unclaimed_node, next_number):
            self._operation_of_node[node_number] = operation
        self._first_unclaimed_node = next_number

    def _reclaim_nodes_of_clone(self) -> None:
        """Before an in-place operation whose gradient needs the input, autograd clones the input. The node belongs to
        the in-place operation: this makes the next _claim_nodes() reassign it from the clone."""
        last_operation = self.operations[-1] if self.operations else None
        if (
            last_operation
            and last_operation["source"] == "aten.clone"
            and self._next_node_number() == self._first_unclaimed_node
            and self._claimed_nodes
        ):
            if self._operation_of_node.get(self._claimed_nodes[-1]) is last_operation:
                self._first_unclaimed_node = self._claimed_nodes[0]

    def record_spec(
        self, spec: OperationSpec, source: str, tensor: Any, layer: Optional[str] = None, pass_name: str = "forward"
    ) -> dict:
        if layer is None:
            layer = self.module_path_stack[-1] if self.module_path_stack else ""
        dtype = self.compute_dtype(spec.kind, tensor)
        operation = {
            "layer": layer,
            "source": source,
            "kind": spec.kind,
            "form": spec.form,
            "parameters": spec.parameters,
        }
        operation |= {"dtype": dtype, "pass": pass_name, "phase": self.phase, "count": 1}
        self.operations.append(operation)
        if pass_name == "forward":
            self._claim_nodes(operation)
        return operation

    def compute_dtype(self, kind: str, tensor: Any) -> str:
        name = dtype_name(tensor.dtype) if tensor is not None else "fp32"
        if name != "fp32" or tensor is None or tensor.dtype != self._torch.float32:
            return name
        if kind in ("convolution", "recurrent"):  # cuDNN, for which PyTorch allows TF32
            return "fp32" if self._precision == "fp32" else "tf32"
        return "tf32" if kind in PRODUCT_OPERATIONS and self._precision == "tf32" else name

    def record_backward(self, forward: dict, pass_name: str = "backward") -> None:
        """Records one backward operation per forward operation, however many kernels it takes."""
        if forward.get("part") or id(forward) in self._recorded_backward:
            return
        self._recorded_backward[id(forward)] = forward
        self.operations.append({**forward, "pass": pass_name, "phase": "backward"})

    def begin_backward(self) -> None:
        self.phase, self._recorded_backward = "backward", {}

    def record_operation(
        self, func: Any, name: str, args: Sequence, outputs: Sequence, node: Any, in_place: bool
    ) -> None:
        """Records one operation. `name` excludes the trailing underscore of in-place variants."""
        if self._pause_depth or name in OPERATIONS_WITHOUT_LAUNCH:
            return
        forward = self._operation_of_node.get(node._sequence_nr()) if node is not None else None
        if forward is not None and self._record_gradient(forward, name, args, node):
            return
        layer = self._find_layer(node, forward)
        source = f"{func.namespace}.{name}"
        dtype_source_tensor = dtype_determining_tensor(name, collect_tensors(args), outputs)
        if is_view(func) or name in UNMARKED_VIEW_OPERATIONS:
            operation_specs: Optional[Sequence[OperationSpec]] = [
                OperationSpec("view", "", {"batch": 1, "rows": 1, "width": 1})
            ]
        else:
            operation_specs = (
                classify_operation(func, name, args, outputs) if func.namespace in ("aten", "prims") else None
            )
        if name.startswith("nll_loss") and self._merge_log_softmax_into_loss(operation_specs):
            return
        if operation_specs is None:
            operation_specs = [self._make_unknown_spec(func.namespace, source, layer, args, outputs)]
        if in_place and node is None:
            self._reclaim_nodes_of_clone()
        for operation_spec in operation_specs:
            self.record_spec(operation_spec, source, dtype_source_tensor, layer)

    def _merge_log_softmax_into_loss(self, operation_specs: Optional[Sequence[OperationSpec]]) -> bool:
        """Merges log softmax and the following selection into one loss."""
        last_operation = next(
            (operation for operation in reversed(self.operations) if operation["kind"] != "view"), None
        )
        if (
            not operation_specs
            or last_operation is None
            or last_operation["form"] != "log_softmax"
            or last_operation["pass"] != "forward"
        ):
            return False
        last_operation.update(
            kind="loss", form="", parameters=operation_specs[0].parameters, source="aten.nll_loss_forward"
        )
        self._claim_nodes(last_operation)
        return True

    def _find_layer(self, node: Any, forward: Optional[dict]) -> str:
        if forward is not None and "layer" in forward:
            return forward["layer"]
        if node is not None and hasattr(node, "variable"):
            return self.layer_of_parameter.get(id(node.variable), "")
        return self.module_path_stack[-1] if self.module_path_stack else ""

    def record_unknown(self, name: str, namespace: str, args: Sequence, outputs: Sequence) -> None:
        layer, source = self._find_layer(None, None), f"{namespace}.{name}"
        unknown_spec = self._make_unknown_spec(namespace, source, layer, args, outputs)
        self.record_spec(unknown_spec, source, dtype_determining_tensor(name, collect_tensors(args), outputs), layer)

    def _make_unknown_spec(
        self, namespace: str, source: str, layer: str, args: Sequence, outputs: Sequence
    ) -> OperationSpec:
        is_pytorch_operation = namespace in ("aten", "prims")
        reason = "an operation of unknown kind" if is_pytorch_operation else f"an operation of the library {namespace}"
        self.unknown_operations.append({"layer": layer, "source": source, "reason": reason, "bounded": True})
        element_counts = [
            sum(int(tensor.numel()) for tensor in tensors) for tensors in (collect_tensors(args), outputs)
        ]
        return OperationSpec(
            "unknown",
            "",
            {"batch": 1, "rows": 1, "width": max(element_counts), "in": element_counts[0], "out": element_counts[1]},
        )

    def _record_gradient(self, forward: dict, name: str, args: Sequence, node: Any) -> bool:
        """Records an operation of a node as part of its one backward operation; returns False if it is separate."""
        if forward.get("part"):
            return True
        kind = forward["kind"]
        if name == "convolution_backward":
            return self._record_convolution_gradient(forward, args[-1])
        if "_backward" in name and not name.endswith(("slice_backward", "select_backward")):
            if kind in ("view", "unknown", "cast", "reshape"):
                return False
            self.record_backward(forward)
            return True
        if name not in BACKWARD_OPERATIONS_BY_KIND.get(kind, ()):
            return False
        has_gradient_edge = [edge is not None for edge, _ in node.next_functions]
        if kind == "dense":
            return self._record_dense_gradients(forward, name, has_gradient_edge)
        if kind == "add":
            if name == "sum":
                self.record_backward(forward)
            return True
        if all(has_gradient_edge[-2:]) and len(has_gradient_edge) > 1:
            self.record_backward(forward)
            return True
        return False

    def _record_convolution_gradient(self, forward: dict, needed_gradients: Sequence[bool]) -> bool:
        # The input gradient alone costs as much as the forward pass.
        if needed_gradients[0] and not needed_gradients[1]:
            self.record_spec(
                OperationSpec(forward["kind"], forward["form"], forward["parameters"]), forward["source"], None, ""
            )
            self.operations[-1].update(layer=forward["layer"], dtype=forward["dtype"])
            return True
        self.record_backward(forward, "backward" if needed_gradients[0] else "backward-weights")
        return True

    def _record_dense_gradients(self, forward: dict, name: str, has_gradient_edge: Sequence[bool]) -> bool:
        """Handles the gradients of (bias,) input and weights."""
        if name not in ("mm", "mv"):
            return True
        needs_input_gradient, needs_weight_gradient = (
            has_gradient_edge[-2:] if len(has_gradient_edge) > 1 else (False, True)
        )
        if needs_input_gradient and not needs_weight_gradient:
            sizes = forward["parameters"]
            self.record_spec(
                make_dense_spec(sizes["rows"], sizes["out"], sizes["in"], False),
                forward["source"],
                None,
                forward["layer"],
            )
            self.operations[-1]["dtype"] = forward["dtype"]
            return True
        self.record_backward(forward, "backward" if needs_input_gradient else "backward-weights")
        return True


def dtype_determining_tensor(name: str, tensors: Sequence, outputs: Sequence) -> Any:
    """Returns the tensor whose type the operation computes in: the first floating-point one; for elementwise
    operations the widest."""
    floating_point_tensors = [tensor for tensor in tensors if tensor.dtype.is_floating_point]
    if name in ("add", "sub", "mul", "div", "where", "addcmul") and len(floating_point_tensors) > 1:
        return max(floating_point_tensors, key=lambda tensor: tensor.dtype.itemsize)
    return floating_point_tensors[0] if floating_point_tensors else outputs[0] if outputs else None


def is_view(func: Any) -> bool:
    """Returns whether the output aliases the memory of the input without writing to it."""
    alias_infos = [returned.alias_info for returned in func._schema.returns]
    return bool(alias_infos) and all(alias_info is not None and not alias_info.is_write for alias_info in alias_infos)


def make_dispatch_mode(torch: Any, recorder: OperationTrace) -> Any:
    """Returns the dispatch mode that passes every operation to the recorder."""
    from torch.utils._python_dispatch import TorchDispatchMode

    get_current_node = torch._C._current_autograd_node
    name_by_function: dict[Any, str] = {}
    scalar_tracker = ScalarValueTracker(torch)

    class DispatchRecorder(TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not hasattr(func, "overloadpacket"):
                return record_higher_order_operator(torch, recorder, func, args, kwargs or {})
            name = name_by_function.get(func)
            if name is None:
                name = func.overloadpacket.__name__
                name = name if name == "copy_" or not name.endswith("_") else name[:-1]
                name_by_function[func] = name
            if name in OPERATIONS_WITHOUT_LAUNCH:
                return func(*args, **(kwargs or {}))
            if torch.is_inference_mode_enabled():
                composite_kernel = find_composite_kernel(torch, recorder, func)
                if composite_kernel is not None:
                    with self:
                        return composite_kernel(*args, **(kwargs or {}))
            result = (
                scalar_tracker.read_scalar(args[0])
                if name == "_local_scalar_dense"
                else make_fake_outputs(torch, name, args)
            )
            result = func(*args, **(kwargs or {})) if result is None else result
            outputs = collect_tensors(result) if isinstance(result, (list, tuple)) else collect_tensors([result])
            scalar_tracker.record_outputs(func, name, args, outputs)
            recorded_arguments = [*args, *(kwargs or {}).values()] if name in OPERATIONS_WITH_KEYWORD_TENSORS else args
            recorder.record_operation(
                func, name, recorded_arguments, outputs, get_current_node(), name != func.overloadpacket.__name__
            )
            return result

    return DispatchRecorder()


def find_composite_kernel(torch: Any, recorder: OperationTrace, func: Any) -> Optional[Callable]:
    """In a module that enters inference mode itself, functions arrive whole, without the dispatcher's kernels for
    autograd. Returns what computes such a function from its operations."""
    kernel = recorder.replacement_kernels.get(func.name().removeprefix("aten::"))
    if kernel is None and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
        return func.decompose
    return kernel


def record_higher_order_operator(
    torch: Any, recorder: OperationTrace, func: Any, args: Sequence, keyword_arguments: dict
) -> Any:
    """Records an operator that takes functions. The operations inside are part of it: flex_attention is one attention
    kernel."""
    with recorder.pause_recording():
        result = func(*args, **keyword_arguments)
    outputs = collect_tensors(result) if isinstance(result, (list, tuple)) else collect_tensors([result])
    name = func.name()
    if name == "flex_attention":
        recorder.record_spec(make_attention_spec(args[0], args[1], False), f"higher_order.{name}", args[0])
    else:
        recorder.record_unknown(name, "higher_order", args, outputs)
    return result


OPERATIONS_WITH_KEYWORD_TENSORS = {"_scaled_dot_product_flash_attention_for_cpu"}


def make_fake_outputs(torch: Any, name: str, args: Sequence) -> Any:
    """Returns outputs of operations that PyTorch cannot run on fake tensors."""
    if name == "_native_multi_head_attention":
        return torch.empty_like(args[0]), torch.empty(0, device=args[0].device)
    if name == "_transformer_encoder_layer_fwd":
        return torch.empty_like(args[0])
    return None
