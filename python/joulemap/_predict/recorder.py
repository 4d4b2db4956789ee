# SPDX-License-Identifier: Apache-2.0
"""Records every operation that reaches PyTorch's dispatcher, with its module. For backward operations it also finds
the forward operation whose gradient they compute.

Autograd numbers its nodes. A number that appears while an operation runs belongs to the node of that operation. When
the backward pass processes that node, the operations that it runs are the gradient of that operation. They are
recorded as one backward operation where they were measured as one (`GRADIENTS`), else one by one, as forward
operations of the backward phase.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional, Sequence

from .scalar_values import ScalarValues
from .elements import dtype_name
from .layers import attention_of, dense, classify
from .shapes import OperationSpec, tensors_in

# Operations that launch nothing: PyTorch's internal bookkeeping on fake tensors.
NO_LAUNCH = {"detach", "detach_", "lift_fresh", "is_same_size", "_has_compatible_shallow_copy_type", "device"}
NO_LAUNCH |= {"size", "stride", "sym_size", "sym_stride", "sym_numel", "is_contiguous", "layout"}
NO_LAUNCH |= {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
# Views besides those that PyTorch itself marks as views.
VIEWS = {"_unsafe_view", "resize", "set", "as_strided", "unsafe_split", "unsafe_split_with_sizes"}
# Operations of a node that together form its one backward operation, by the kind of the forward operation.
GRADIENTS = {
    "dense": {"mm", "sum", "t", "view", "transpose", "unsqueeze", "squeeze", "mv", "mul", "expand"},
    "bmm": {"bmm", "transpose", "sum", "view", "baddbmm"},
    "multiply": {"mul", "sum", "view", "div", "neg"},
    "add": {"sum", "view"},
}
PRODUCTS = {"dense", "bmm", "attention"}


class Recorder:
    """Recorded operations and the current state of the trace."""

    def __init__(self, torch: Any, dtype: str) -> None:
        self._torch, self._dtype = torch, dtype
        self.operations: list[dict] = []
        self.unknown: list[dict] = []
        self.notes: list[str] = []
        self.phase = "forward"
        self.modules: list[str] = []
        self.layer_of_parameter: dict[int, str] = {}
        self._pauses = 0
        self._operation_of_node: dict[int, Optional[dict]] = {}
        self._number = self._next_number()
        self._claimed = range(0)

    def _next_number(self) -> int:
        return self._torch._C._autograd._get_sequence_nr()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Records no operations inside: they are part of another operation, and so are their gradients."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            self._claim({"part": True})

    def _claim(self, operation: Optional[dict]) -> None:
        """Assigns the autograd nodes created since the last call to this operation."""
        after = self._next_number()
        if after > self._number:
            self._claimed = range(self._number, after)
        for number in range(self._number, after):
            self._operation_of_node[number] = operation
        self._number = after

    def _claim_from_copy(self) -> None:
        """Before an in-place operation whose gradient needs the input, autograd clones the input. The node belongs to
        the in-place operation: this makes the next _claim() reassign it from the clone."""
        last = self.operations[-1] if self.operations else None
        if last and last["source"] == "aten.clone" and self._next_number() == self._number and self._claimed:
            if self._operation_of_node.get(self._claimed[-1]) is last:
                self._number = self._claimed[0]

    def record_spec(
        self, spec: OperationSpec, source: str, tensor: Any, layer: Optional[str] = None, which: str = "forward"
    ) -> dict:
        if layer is None:
            layer = self.modules[-1] if self.modules else ""
        dtype = self.dtype_of(spec.kind, tensor)
        operation = {
            "layer": layer,
            "source": source,
            "kind": spec.kind,
            "form": spec.form,
            "parameters": spec.parameters,
        }
        operation |= {"dtype": dtype, "pass": which, "phase": self.phase, "count": 1}
        self.operations.append(operation)
        if which == "forward":
            self._claim(operation)
        return operation

    def dtype_of(self, kind: str, tensor: Any) -> str:
        name = dtype_name(tensor.dtype) if tensor is not None else "fp32"
        if name != "fp32" or tensor is None or tensor.dtype != self._torch.float32:
            return name
        if kind in ("convolution", "recurrent"):  # cuDNN, for which PyTorch allows TF32
            return "fp32" if self._dtype == "fp32" else "tf32"
        return "tf32" if kind in PRODUCTS and self._dtype == "tf32" else name

    def record_backward(self, forward: dict, which: str = "backward") -> None:
        """Records one backward operation per forward operation, however many kernels it takes."""
        if forward.get("part") or id(forward) in self._done:
            return
        self._done[id(forward)] = forward
        self.operations.append({**forward, "pass": which, "phase": "backward"})

    def begin_backward(self) -> None:
        self.phase, self._done = "backward", {}

    def record(self, func: Any, name: str, args: Sequence, outs: Sequence, node: Any, in_place: bool) -> None:
        """Records one operation. `name` excludes the trailing underscore of in-place variants."""
        if self._pauses or name in NO_LAUNCH:
            return
        forward = self._operation_of_node.get(node._sequence_nr()) if node is not None else None
        if forward is not None and self._is_gradient(forward, name, args, node):
            return
        layer = self._layer_of(node, forward)
        source = f"{func.namespace}.{name}"
        main_input = main_tensor(name, tensors_in(args), outs)
        if is_view(func) or name in VIEWS:
            specs: Optional[Sequence[OperationSpec]] = [OperationSpec("view", "", {"batch": 1, "rows": 1, "width": 1})]
        else:
            specs = classify(func, name, args, outs) if func.namespace in ("aten", "prims") else None
        if name.startswith("nll_loss") and self._merge_into_softmax(specs):
            return
        if specs is None:
            specs = [self._unknown(func.namespace, source, layer, args, outs)]
        if in_place and node is None:
            self._claim_from_copy()
        for spec in specs:
            self.record_spec(spec, source, main_input, layer)

    def _merge_into_softmax(self, specs: Optional[Sequence[OperationSpec]]) -> bool:
        """Merges log softmax and the following selection into one loss."""
        last = next((operation for operation in reversed(self.operations) if operation["kind"] != "view"), None)
        if not specs or last is None or last["form"] != "log_softmax" or last["pass"] != "forward":
            return False
        last.update(kind="loss", form="", parameters=specs[0].parameters, source="aten.nll_loss_forward")
        self._claim(last)
        return True

    def _layer_of(self, node: Any, forward: Optional[dict]) -> str:
        if forward is not None and "layer" in forward:
            return forward["layer"]
        if node is not None and hasattr(node, "variable"):
            return self.layer_of_parameter.get(id(node.variable), "")
        return self.modules[-1] if self.modules else ""

    def record_unknown(self, name: str, namespace: str, args: Sequence, outs: Sequence) -> None:
        layer, source = self._layer_of(None, None), f"{namespace}.{name}"
        spec = self._unknown(namespace, source, layer, args, outs)
        self.record_spec(spec, source, main_tensor(name, tensors_in(args), outs), layer)

    def _unknown(self, namespace: str, source: str, layer: str, args: Sequence, outs: Sequence) -> OperationSpec:
        known = namespace in ("aten", "prims")
        reason = "an operation of unknown kind" if known else f"an operation of the library {namespace}"
        self.unknown.append({"layer": layer, "source": source, "reason": reason, "bounded": True})
        sizes = [sum(int(tensor.numel()) for tensor in tensors) for tensors in (tensors_in(args), outs)]
        return OperationSpec(
            "unknown", "", {"batch": 1, "rows": 1, "width": max(sizes), "in": sizes[0], "out": sizes[1]}
        )

    def _is_gradient(self, forward: dict, name: str, args: Sequence, node: Any) -> bool:
        """Records an operation of a node as part of its one backward operation; returns False if it is separate."""
        if forward.get("part"):
            return True
        kind = forward["kind"]
        if name == "convolution_backward":
            return self._convolution(forward, args[-1])
        if "_backward" in name and not name.endswith(("slice_backward", "select_backward")):
            if kind in ("view", "unknown", "cast", "reshape"):
                return False
            self.record_backward(forward)
            return True
        if name not in GRADIENTS.get(kind, ()):
            return False
        edges = [edge is not None for edge, _ in node.next_functions]
        if kind == "dense":
            return self._dense(forward, name, edges)
        if kind == "add":
            if name == "sum":
                self.record_backward(forward)
            return True
        if all(edges[-2:]) and len(edges) > 1:
            self.record_backward(forward)
            return True
        return False

    def _convolution(self, forward: dict, wanted: Sequence[bool]) -> bool:
        if wanted[0] and not wanted[1]:  # the input gradient alone costs as much as the forward pass
            self.record_spec(
                OperationSpec(forward["kind"], forward["form"], forward["parameters"]), forward["source"], None, ""
            )
            self.operations[-1].update(layer=forward["layer"], dtype=forward["dtype"])
            return True
        self.record_backward(forward, "backward" if wanted[0] else "backward-weights")
        return True

    def _dense(self, forward: dict, name: str, edges: Sequence[bool]) -> bool:
        """Handles the gradients of (bias,) input and weights."""
        if name not in ("mm", "mv"):
            return True
        into, weights = edges[-2:] if len(edges) > 1 else (False, True)
        if into and not weights:
            sizes = forward["parameters"]
            self.record_spec(
                dense(sizes["rows"], sizes["out"], sizes["in"], False), forward["source"], None, forward["layer"]
            )
            self.operations[-1]["dtype"] = forward["dtype"]
            return True
        self.record_backward(forward, "backward" if into else "backward-weights")
        return True


def main_tensor(name: str, tensors: Sequence, outs: Sequence) -> Any:
    """Returns the tensor whose type the operation computes in: the first floating-point one; for elementwise
    operations the widest."""
    floating = [tensor for tensor in tensors if tensor.dtype.is_floating_point]
    if name in ("add", "sub", "mul", "div", "where", "addcmul") and len(floating) > 1:
        return max(floating, key=lambda tensor: tensor.dtype.itemsize)
    return floating[0] if floating else outs[0] if outs else None


def is_view(func: Any) -> bool:
    """Returns whether the output aliases the memory of the input without writing to it."""
    aliases = [alias.alias_info for alias in func._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def dispatch_recorder(torch: Any, recorder: Recorder) -> Any:
    """Returns the dispatch mode that passes every operation to the recorder."""
    from torch.utils._python_dispatch import TorchDispatchMode

    node_of = torch._C._current_autograd_node
    plain: dict[Any, str] = {}
    scalars = ScalarValues(torch)

    class DispatchRecorder(TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not hasattr(func, "overloadpacket"):
                return record_higher_order(torch, recorder, func, args, kwargs or {})
            name = plain.get(func)
            if name is None:
                name = func.overloadpacket.__name__
                name = name if name == "copy_" or not name.endswith("_") else name[:-1]
                plain[func] = name
            if name in NO_LAUNCH:
                return func(*args, **(kwargs or {}))
            out = scalars.value_of(args[0]) if name == "_local_scalar_dense" else fake_outputs(torch, name, args)
            out = func(*args, **(kwargs or {})) if out is None else out
            outs = tensors_in(out) if isinstance(out, (list, tuple)) else tensors_in([out])
            scalars.record_outputs(func, name, args, outs)
            given = [*args, *(kwargs or {}).values()] if name in WITH_KEYWORD_TENSORS else args
            recorder.record(func, name, given, outs, node_of(), name != func.overloadpacket.__name__)
            return out

    return DispatchRecorder()


def record_higher_order(torch: Any, recorder: Recorder, func: Any, args: Sequence, named: dict) -> Any:
    """Records an operator that takes functions. The operations inside are part of it: flex_attention is one attention
    kernel."""
    with recorder.paused():
        out = func(*args, **named)
    outs = tensors_in(out) if isinstance(out, (list, tuple)) else tensors_in([out])
    name = func.name()
    if name == "flex_attention":
        recorder.record_spec(attention_of(args[0], args[1], False), f"higher_order.{name}", args[0])
    else:
        recorder.record_unknown(name, "higher_order", args, outs)
    return out


WITH_KEYWORD_TENSORS = {"_scaled_dot_product_flash_attention_for_cpu"}


def fake_outputs(torch: Any, name: str, args: Sequence) -> Any:
    """Returns outputs of operations that PyTorch cannot run on fake tensors."""
    if name == "_native_multi_head_attention":
        return torch.empty_like(args[0]), torch.empty(0, device=args[0].device)
    if name == "_transformer_encoder_layer_fwd":
        return torch.empty_like(args[0])
    return None
