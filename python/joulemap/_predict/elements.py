# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations and data movement, by dispatcher names: activation, add, multiply, cast, reshape,
concatenate, reduce.

A handler takes (name, arguments, outputs) and returns the operation, or several where PyTorch launches several
kernels.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .shapes import Told, beside, by_dimension, elements, is_tensor, tensors_in, three

FORMS = {"hardtanh": "relu6", "_softmax": "softmax", "_log_softmax": "log_softmax"}
DTYPES = {"torch.float16": "fp16", "torch.bfloat16": "bf16"}  # all other types map to fp32
MULTIPLIED = {"mul", "div", "where", "fmod", "remainder", "pow", "addcmul", "addcdiv", "lerp", "masked_fill"}
MULTIPLIED |= {"floor_divide", "true_divide", "atan2", "rsub_mul"}
FILLS = """arange full zeros ones fill zero new_zeros new_ones new_full full_like zeros_like ones_like scalar_tensor
    linspace eye bernoulli uniform normal rand randn randint randperm rand_like randn_like exponential random
    tril_indices triu_indices randint_like logspace""".split()
NAMED = """hardswish hardsigmoid hardtanh mish elu selu leaky_relu softplus log_sigmoid_forward hardshrink softshrink
    threshold rrelu_with_noise relu6 tril triu cumsum cumprod logcumsumexp glu
    _weight_norm_interface celu prelu _prelu_kernel""".split()
GATHERS = """gather index index_select index_put _index_put_impl scatter scatter_add scatter_reduce index_add index_copy
    roll flip repeat repeat_interleave take take_along_dim masked_select masked_scatter _unsafe_index
    _unsafe_index_put unfold_copy im2col col2im index_fill select_scatter slice_scatter diag_embed rot90
    put nonzero""".split()
REDUCES = {"mean": "mean", "sum": "sum", "amax": "amax", "max": "amax", "min": "amax", "amin": "amax", "any": "amax"}
REDUCES |= {"all": "amax", "argmax": "amax", "argmin": "amax", "prod": "sum", "var": "mean", "var_mean": "mean"}
REDUCES |= {"std": "mean", "std_mean": "mean", "linalg_vector_norm": "sum", "norm": "sum", "logsumexp": "sum"}
REDUCES |= {"nansum": "sum", "aminmax": "amax", "count_nonzero": "sum", "dot": "sum", "vdot": "sum"}

# Elementwise losses of two tensors, followed by a mean or a sum.
LOSSES = """mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss
    l1_loss kl_div""".split()

Handler = Callable[[str, Sequence, Sequence], Sequence[Told]]


def dtype_name(dtype: Any) -> str:
    return DTYPES.get(str(dtype), "fp32")


def pointwise(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    """Classifies an operation on one or more tensors that writes each element once."""
    shapes = sorted((one.shape for one in tensors_in(args)), key=elements, reverse=True)
    out = outs[0].shape if outs else shapes[0]
    shapes = [shape for shape in shapes if elements(shape) > 1 or elements(out) == 1]
    numbers = sum(isinstance(one, (int, float)) for one in args[:2])
    if len(shapes) < 2 and not (name in ("add", "sub", "mul", "div", "rsub") and (numbers or len(args) > 1)):
        return [Told("activation", FORMS.get(name, name), three(out))]
    kind = "multiply" if name in MULTIPLIED else "add"
    if len(shapes) < 2:
        return [Told(kind, "scalar", three(out))]
    # With several operands, smaller ones count by how often they are read; the one least like the output sets the
    # form.
    form, parameters = beside(out, shapes[-1] if list(shapes[0]) == list(out) else shapes[0])
    return [Told(kind, form, parameters)]


def softmax(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    return [Told("activation", FORMS[name], by_dimension(args[0].shape, args[1]))]


def filled(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    return [Told("activation", "fill", three(outs[0].shape))]


def named(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    return [Told("activation", FORMS.get(name, name), three(outs[0].shape))]


def gathered(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    """Classifies reads or writes by index; tables from which little is read do not count."""
    values = args[2] if name.startswith(("scatter", "index_put", "_index_put", "index_copy", "index_add")) else None
    values = args[3] if name.startswith(("scatter", "index_copy", "index_add")) and len(args) > 3 else values
    shape = values.shape if is_tensor(values) else outs[0].shape
    return [Told("reshape", "gather", three(shape))]


def layout_form(x: Any) -> str:
    if x.dim() >= 4:
        return "heads"
    if x.dim() == 3:
        return "channels-first"
    return "transpose"


def is_dense(x: Any) -> bool:
    """Returns whether the elements lie in memory without gaps or repetition, in any order."""
    expected = 1
    for stride, size in sorted(zip(x.stride(), x.shape)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def same_order(x: Any, y: Any) -> bool:
    """Returns whether a copy reads in the order in which it writes."""
    if x.stride() == y.stride():
        return True
    if list(x.shape) != list(y.shape):
        return False
    both = sorted((b, a) for a, b, size in zip(x.stride(), y.stride(), x.shape) if size != 1 and a)
    return all(left[1] <= right[1] for left, right in zip(both, both[1:]))


def copied(source: Any, target: Any) -> Sequence[Told]:
    parameters = three(target.shape)
    if source.dtype != target.dtype:
        return [Told("cast", dtype_name(target.dtype), parameters)]
    if same_order(source, target):
        return [Told("cast", dtype_name(target.dtype), parameters)]
    return [Told("reshape", layout_form(source), parameters)]


def cloned(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    return copied(args[0], outs[0])


def copied_into(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    return copied(args[1], args[0]) if is_tensor(args[1]) else filled(name, args, [args[0]])


def read_by_host(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    return [Told("cast", "fp32", three(args[0].shape))]


def concatenated(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    parts = [one for one in args[0] if one.numel()]
    out = [int(size) for size in outs[0].shape]
    dim = (args[1] if len(args) > 1 else 0) % len(out)
    before, after, count = math.prod(out[:dim]), math.prod(out[dim + 1 :]), max(1, len(parts))
    if out[dim] % count == 0:
        parameters = {"batch": before, "rows": out[dim] // count, "width": after}
    else:
        parameters = {"batch": before, "rows": 1, "width": max(1, round(out[dim] * after / count))}
    return [Told("concatenate", "", {**parameters, "parts": count})]


def reduced(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    x, form = args[0], REDUCES[name]
    dims = args[1] if len(args) > 1 and name != "linalg_vector_norm" else args[2] if len(args) > 2 else None
    if name == "norm":
        dims = args[2] if len(args) > 2 else None
    if is_tensor(dims):  # elementwise maximum of two tensors
        return pointwise(name, args, outs)
    if isinstance(dims, bool) or dims is None or dims == []:
        return [Told("reduce", form, {**three(x.shape), "over": 2})]
    several = [dims] if isinstance(dims, int) else list(dims)
    return [Told("reduce", form, over_dimensions([int(size) for size in x.shape] or [1], several))]


def over_dimensions(sizes: list[int], dims: list[int]) -> dict[str, int]:
    """Returns the shape of a reduction over the last dimensions, over rows in between, or over all."""
    dims = sorted(dim % len(sizes) for dim in dims)
    width = math.prod(sizes[dim] for dim in dims)
    if width == math.prod(sizes):
        return {**three(sizes), "over": 2}
    if dims[-1] == len(sizes) - 1:
        rest = [size for index, size in enumerate(sizes) if index not in dims]
        return {"batch": rest[0], "rows": math.prod(rest[1:]), "width": width, "over": 0}
    after = math.prod(sizes[dims[-1] + 1 :])
    return {"batch": math.prod(sizes) // (width * after), "rows": width, "width": after, "over": 1}


def loss_of_elements(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    told = [Told("add", "same", three(args[0].shape))]
    return told if outs[0].dim() else [*told, Told("reduce", "mean", {**three(args[0].shape), "over": 2})]


def of_each(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    """_foreach_*: the same operation for every tensor of a list, in a few kernels. Unknown operations are not
    handled."""
    plain = name.removeprefix("_foreach_")
    first = [one for one in args[0] if is_tensor(one)]
    size = {"batch": 1, "rows": 1, "width": sum(int(one.numel()) for one in first)}
    if plain in ("norm", "max", "powsum"):
        return [Told("reduce", "sum", {**size, "over": 2})]
    if plain in ("copy", "clone"):
        return [Told("cast", dtype_name(first[0].dtype), size)]
    if plain == "zero":
        return [Told("activation", "fill", size)]
    lists = [one for one in args[1:] if isinstance(one, (list, tuple)) and tensors_in(one)]
    if not lists:
        return [Told("activation", plain, size)]
    return [Told("multiply" if plain in MULTIPLIED else "add", "same", size)]


def gradient_of_part(name: str, args: Sequence, outs: Sequence) -> Sequence[Told]:
    """Fills zeros and copies the partial gradient into them."""
    return [
        Told("activation", "fill", three(outs[0].shape)),
        Told("cast", dtype_name(outs[0].dtype), three(args[0].shape)),
    ]


def handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {"_softmax": softmax, "_log_softmax": softmax}
    found |= dict.fromkeys(FILLS, filled) | dict.fromkeys(NAMED, named) | dict.fromkeys(GATHERS, gathered)
    found |= dict.fromkeys(REDUCES, reduced) | dict.fromkeys(("clone", "_to_copy", "contiguous"), cloned)
    found |= dict.fromkeys(("cat", "stack", "_cat"), concatenated) | dict.fromkeys(LOSSES, loss_of_elements)
    found |= dict.fromkeys(("copy_", "_copy_from"), copied_into)
    found |= {"_local_scalar_dense": read_by_host, "masked_fill": pointwise}
    parts = "slice_backward select_backward diagonal_backward unfold_backward index_select_backward".split()
    found |= dict.fromkeys(parts, gradient_of_part)
    found |= dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"), cloned)
    return found
