# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations and data movement, by dispatcher names: activation, add, multiply, cast, reshape,
concatenate, reduce.

A handler takes (name, arguments, outputs) and returns the operation, or several where PyTorch launches several
kernels.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .shapes import (
    OperationSpec,
    shape_to_batch_rows_width,
    broadcast_form,
    element_count,
    is_tensor,
    shape_with_dim_as_width,
    collect_tensors,
)

ACTIVATION_FORMS = {"hardtanh": "relu6", "_softmax": "softmax", "_log_softmax": "log_softmax"}
DTYPE_NAMES = {"torch.float16": "fp16", "torch.bfloat16": "bf16"}  # all other types map to fp32
MULTIPLY_OPERATIONS = {"mul", "div", "where", "fmod", "remainder", "pow", "addcmul", "addcdiv", "lerp", "masked_fill"}
MULTIPLY_OPERATIONS |= {"floor_divide", "true_divide", "atan2", "rsub_mul"}
FILL_OPERATIONS = """arange full zeros ones fill zero new_zeros new_ones new_full full_like zeros_like ones_like
    scalar_tensor linspace eye bernoulli uniform normal rand randn randint randperm rand_like randn_like exponential
    random tril_indices triu_indices randint_like logspace""".split()
ACTIVATION_OPERATIONS = """hardswish hardsigmoid hardtanh mish elu selu leaky_relu softplus log_sigmoid_forward
    hardshrink softshrink threshold rrelu_with_noise relu6 tril triu cumsum cumprod logcumsumexp glu
    _weight_norm_interface celu prelu _prelu_kernel""".split()
GATHER_OPERATIONS = """gather index index_select index_put _index_put_impl scatter scatter_add scatter_reduce index_add
    index_copy roll flip repeat repeat_interleave take take_along_dim masked_select masked_scatter _unsafe_index
    _unsafe_index_put unfold_copy im2col col2im index_fill select_scatter slice_scatter diag_embed rot90
    put nonzero""".split()
REDUCE_FORMS = {
    "mean": "mean",
    "sum": "sum",
    "amax": "amax",
    "max": "amax",
    "min": "amax",
    "amin": "amax",
    "any": "amax",
}
REDUCE_FORMS |= {"all": "amax", "argmax": "amax", "argmin": "amax", "prod": "sum", "var": "mean", "var_mean": "mean"}
REDUCE_FORMS |= {"std": "mean", "std_mean": "mean", "linalg_vector_norm": "sum", "norm": "sum", "logsumexp": "sum"}
REDUCE_FORMS |= {"nansum": "sum", "aminmax": "amax", "count_nonzero": "sum", "dot": "sum", "vdot": "sum"}

# Elementwise losses of two tensors, followed by a mean or a sum.
LOSS_OPERATIONS = """mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
    soft_margin_loss l1_loss kl_div""".split()

OperationHandler = Callable[[str, Sequence, Sequence], Sequence[OperationSpec]]


def dtype_name(dtype: Any) -> str:
    return DTYPE_NAMES.get(str(dtype), "fp32")


def classify_pointwise(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """Classifies an operation on one or more tensors that writes each element once."""
    shapes = sorted((argument.shape for argument in collect_tensors(args)), key=element_count, reverse=True)
    output_shape = outputs[0].shape if outputs else shapes[0]
    shapes = [shape for shape in shapes if element_count(shape) > 1 or element_count(output_shape) == 1]
    number_count = sum(isinstance(argument, (int, float)) for argument in args[:2])
    if len(shapes) < 2 and not (name in ("add", "sub", "mul", "div", "rsub") and (number_count or len(args) > 1)):
        return [OperationSpec("activation", ACTIVATION_FORMS.get(name, name), shape_to_batch_rows_width(output_shape))]
    kind = "multiply" if name in MULTIPLY_OPERATIONS else "add"
    if len(shapes) < 2:
        return [OperationSpec(kind, "scalar", shape_to_batch_rows_width(output_shape))]
    # The operand whose shape differs most from the output determines the form: the smallest one if the largest has the
    # shape of the output, otherwise the largest.
    form, parameters = broadcast_form(output_shape, shapes[-1] if list(shapes[0]) == list(output_shape) else shapes[0])
    return [OperationSpec(kind, form, parameters)]


def classify_softmax(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [OperationSpec("activation", ACTIVATION_FORMS[name], shape_with_dim_as_width(args[0].shape, args[1]))]


def classify_fill(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [OperationSpec("activation", "fill", shape_to_batch_rows_width(outputs[0].shape))]


def classify_activation(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [OperationSpec("activation", ACTIVATION_FORMS.get(name, name), shape_to_batch_rows_width(outputs[0].shape))]


def classify_gather(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """Classifies reads or writes by index. Only the elements that are moved count, not the whole table."""
    moved_values = (
        args[2] if name.startswith(("scatter", "index_put", "_index_put", "index_copy", "index_add")) else None
    )
    moved_values = (
        args[3] if name.startswith(("scatter", "index_copy", "index_add")) and len(args) > 3 else moved_values
    )
    shape = moved_values.shape if is_tensor(moved_values) else outputs[0].shape
    return [OperationSpec("reshape", "gather", shape_to_batch_rows_width(shape))]


def reshape_form(x: Any) -> str:
    if x.dim() >= 4:
        return "heads"
    if x.dim() == 3:
        return "channels-first"
    return "transpose"


def is_non_overlapping_and_dense(x: Any) -> bool:
    """Returns whether the elements lie in memory without gaps or repetition, in any order."""
    expected_stride = 1
    for stride, size in sorted(zip(x.stride(), x.shape)):
        if size == 1:
            continue
        if stride != expected_stride:
            return False
        expected_stride *= size
    return True


def has_same_memory_order(x: Any, y: Any) -> bool:
    """Returns whether a copy reads in the order in which it writes."""
    if x.stride() == y.stride():
        return True
    if list(x.shape) != list(y.shape):
        return False
    stride_pairs = sorted(
        (target_stride, source_stride)
        for source_stride, target_stride, size in zip(x.stride(), y.stride(), x.shape)
        if size != 1 and source_stride
    )
    return all(earlier_pair[1] <= later_pair[1] for earlier_pair, later_pair in zip(stride_pairs, stride_pairs[1:]))


def make_copy_spec(source: Any, target: Any) -> Sequence[OperationSpec]:
    parameters = shape_to_batch_rows_width(target.shape)
    if source.dtype != target.dtype:
        return [OperationSpec("cast", dtype_name(target.dtype), parameters)]
    if has_same_memory_order(source, target):
        return [OperationSpec("cast", dtype_name(target.dtype), parameters)]
    return [OperationSpec("reshape", reshape_form(source), parameters)]


def classify_clone(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return make_copy_spec(args[0], outputs[0])


def classify_copy(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return make_copy_spec(args[1], args[0]) if is_tensor(args[1]) else classify_fill(name, args, [args[0]])


def classify_host_read(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [OperationSpec("cast", "fp32", shape_to_batch_rows_width(args[0].shape))]


def classify_concatenate(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    input_tensors = [tensor for tensor in args[0] if tensor.numel()]
    output_sizes = [int(size) for size in outputs[0].shape]
    dim = (args[1] if len(args) > 1 else 0) % len(output_sizes)
    leading_elements, trailing_elements, input_count = (
        math.prod(output_sizes[:dim]),
        math.prod(output_sizes[dim + 1 :]),
        max(1, len(input_tensors)),
    )
    if output_sizes[dim] % input_count == 0:
        parameters = {"batch": leading_elements, "rows": output_sizes[dim] // input_count, "width": trailing_elements}
    else:
        parameters = {
            "batch": leading_elements,
            "rows": 1,
            "width": max(1, round(output_sizes[dim] * trailing_elements / input_count)),
        }
    return [OperationSpec("concatenate", "", {**parameters, "parts": input_count})]


def classify_reduce(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    x, form = args[0], REDUCE_FORMS[name]
    dims = args[1] if len(args) > 1 and name != "linalg_vector_norm" else args[2] if len(args) > 2 else None
    if name == "norm":
        dims = args[2] if len(args) > 2 else None
    if is_tensor(dims):  # elementwise maximum of two tensors
        return classify_pointwise(name, args, outputs)
    if isinstance(dims, bool) or dims is None or dims == []:
        return [OperationSpec("reduce", form, {**shape_to_batch_rows_width(x.shape), "over": 2})]
    reduced_dims = [dims] if isinstance(dims, int) else list(dims)
    return [OperationSpec("reduce", form, reduction_parameters([int(size) for size in x.shape] or [1], reduced_dims))]


def reduction_parameters(sizes: list[int], dims: list[int]) -> dict[str, int]:
    """The reduction of a tensor [batch, rows, width] that equals a reduction of `sizes` over `dims`. "over" is 0 for
    the width (trailing dimensions), 2 for all of it, and 1 for the rows, which any other dimensions are treated as."""
    dims = sorted(dim % len(sizes) for dim in dims)
    width = math.prod(sizes[dim] for dim in dims)
    if width == math.prod(sizes):
        return {**shape_to_batch_rows_width(sizes), "over": 2}
    if dims[-1] == len(sizes) - 1:
        kept_sizes = [size for index, size in enumerate(sizes) if index not in dims]
        return {"batch": kept_sizes[0], "rows": math.prod(kept_sizes[1:]), "width": width, "over": 0}
    trailing_elements = math.prod(sizes[dims[-1] + 1 :])
    return {
        "batch": math.prod(sizes) // (width * trailing_elements),
        "rows": width,
        "width": trailing_elements,
        "over": 1,
    }


def classify_elementwise_loss(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    operation_specs = [OperationSpec("add", "same", shape_to_batch_rows_width(args[0].shape))]
    return (
        operation_specs
        if outputs[0].dim()
        else [
            *operation_specs,
            OperationSpec("reduce", "mean", {**shape_to_batch_rows_width(args[0].shape), "over": 2}),
        ]
    )


def classify_foreach(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """Classifies _foreach_* operations, which do the same for every tensor of a list, in a few kernels, as one
    operation on all their elements."""
    base_name = name.removeprefix("_foreach_")
    first_tensors = [argument for argument in args[0] if is_tensor(argument)]
    total_size = {"batch": 1, "rows": 1, "width": sum(int(argument.numel()) for argument in first_tensors)}
    if base_name in ("norm", "max", "powsum"):
        return [OperationSpec("reduce", "sum", {**total_size, "over": 2})]
    if base_name in ("copy", "clone"):
        return [OperationSpec("cast", dtype_name(first_tensors[0].dtype), total_size)]
    if base_name == "zero":
        return [OperationSpec("activation", "fill", total_size)]
    tensor_lists = [
        argument for argument in args[1:] if isinstance(argument, (list, tuple)) and collect_tensors(argument)
    ]
    if not tensor_lists:
        return [OperationSpec("activation", base_name, total_size)]
    return [OperationSpec("multiply" if base_name in MULTIPLY_OPERATIONS else "add", "same", total_size)]


def classify_slice_gradient(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """The gradient of a slice or selection: PyTorch fills a tensor with zeros and copies the partial gradient into
    it."""
    return [
        OperationSpec("activation", "fill", shape_to_batch_rows_width(outputs[0].shape)),
        OperationSpec("cast", dtype_name(outputs[0].dtype), shape_to_batch_rows_width(args[0].shape)),
    ]


def elementwise_handlers() -> dict[str, OperationHandler]:
    handlers_by_name: dict[str, OperationHandler] = {"_softmax": classify_softmax, "_log_softmax": classify_softmax}
    handlers_by_name |= (
        dict.fromkeys(FILL_OPERATIONS, classify_fill)
        | dict.fromkeys(ACTIVATION_OPERATIONS, classify_activation)
        | dict.fromkeys(GATHER_OPERATIONS, classify_gather)
    )
    handlers_by_name |= dict.fromkeys(REDUCE_FORMS, classify_reduce) | dict.fromkeys(
        ("clone", "_to_copy", "contiguous"), classify_clone
    )
    handlers_by_name |= dict.fromkeys(("cat", "stack", "_cat"), classify_concatenate) | dict.fromkeys(
        LOSS_OPERATIONS, classify_elementwise_loss
    )
    handlers_by_name |= dict.fromkeys(("copy_", "_copy_from"), classify_copy)
    handlers_by_name |= {"_local_scalar_dense": classify_host_read, "masked_fill": classify_pointwise}
    slice_gradient_operations = (
        "slice_backward select_backward diagonal_backward unfold_backward index_select_backward".split()
    )
    handlers_by_name |= dict.fromkeys(slice_gradient_operations, classify_slice_gradient)
    handlers_by_name |= dict.fromkeys(
        ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"), classify_clone
    )
    return handlers_by_name
