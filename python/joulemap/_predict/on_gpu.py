# SPDX-License-Identifier: Apache-2.0
"""Makes PyTorch select on fake tensors (without data) what it selects on a GPU, during a trace.

Fake tensors are placed on the CPU, since many builds of PyTorch support no other device. On the CPU, PyTorch
decomposes what a GPU runs as one kernel (attention, recurrent layers, dropout, RMS norm, a softmax that also casts).
Autocast also keeps a different set of operations in 32 bits there. Kernels that the dispatcher finds by name decide
both; the kernels here override them, and forward every tensor outside the trace to the original.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any, Callable, Iterator, Sequence

from .layers import make_attention_spec, make_row_norm_spec
from .recurrent import RecurrentKernels
from .shapes import OperationSpec, is_tensor

# Operations that autocast computes in 32 bits on a GPU but not on the CPU, from PyTorch's
# aten/src/ATen/autocast_mode.h.
OPERATIONS_IN_32_BITS = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
    pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm cosine_similarity
    poisson_nll_loss cosine_embedding_loss hinge_embedding_loss kl_div l1_loss smooth_l1_loss
    huber_loss margin_ranking_loss soft_margin_loss triplet_margin_loss
    binary_cross_entropy_with_logits dist renorm logsumexp upsample_nearest1d upsample_nearest2d
    upsample_bilinear2d upsample_bicubic2d upsample_linear1d norm.Scalar""".split()
# Operations that autocast computes in 32 bits on a GPU with one kernel that also casts its input.
CASTING_OPERATIONS = """softmax.int log_softmax.int sum sum.dim_IntList cumsum cumprod linalg_vector_norm""".split()
OPERATIONS_IN_16_BITS = ("prelu", "addmv")
# Batch, heads, positions, width: the dimensions that PyTorch's attention kernels require.
ATTENTION_DIMENSIONS = 4


def make_single_kernel(torch: Any, recorder: Any) -> Callable:
    """Returns a function that represents one kernel: the recorder counts it and its backward pass. Its outputs have
    the given shapes: one, or a list of several."""

    class SingleKernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, spec: OperationSpec, source: str, shape: Sequence[int], *tensors: Any) -> Any:
            operation = recorder.record_spec(spec, source, tensors[0])
            ctx.operation, ctx.shapes = operation, [tensor.shape for tensor in tensors]
            ctx.first_tensor = tensors[0].detach()
            ctx.set_materialize_grads(False)
            with recorder.pause_recording():
                if shape and not isinstance(shape[0], int):
                    return tuple(tensors[0].new_empty(tensor) for tensor in shape)
                return tensors[0].new_empty(shape)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            recorder.record_backward(ctx.operation)
            needed_gradients = ctx.needs_input_grad[3:]
            with recorder.pause_recording():
                input_gradients = [
                    ctx.first_tensor.new_empty(shape) if is_wanted else None
                    for shape, is_wanted in zip(ctx.shapes, needed_gradients)
                ]
            return None, None, None, *input_gradients

    return SingleKernel.apply


class ReplacementKernels:
    """Replacement kernels of one trace, for the dispatcher's table."""

    def __init__(self, torch: Any, recorder: Any) -> None:
        self._torch, self._recorder = torch, recorder
        self.single_kernel = make_single_kernel(torch, recorder)
        self._fake_tensor_type = torch._subclasses.fake_tensor.FakeTensor

    def is_traced(self, args: Sequence) -> bool:
        return any(isinstance(tensor, self._fake_tensor_type) for tensor in args)

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
        if not self.is_traced((q, k, v)):
            aten_attention = self._torch.ops.aten.scaled_dot_product_attention.default
            keyword_arguments = {"scale": scale, "enable_gqa": enable_gqa}
            return aten_attention.decompose(q, k, v, attn_mask, dropout_p, is_causal, **keyword_arguments)
        if q.dim() != ATTENTION_DIMENSIONS:  # no fused kernel supports this rank
            if attn_mask is not None and attn_mask.dtype == self._torch.bool:
                attn_mask = self._torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill(~attn_mask, float("-inf"))
            unfused_attention = self._torch.ops.aten._scaled_dot_product_attention_math
            return unfused_attention(
                q, k, v, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
            )[0]
        attention_spec = make_attention_spec(q, k, is_causal)
        if attn_mask is not None:  # a mask selects another kernel
            attention_spec.parameters["masked"] = 1
        return self.single_kernel(
            attention_spec, "aten.scaled_dot_product_attention", [*q.shape[:-1], v.shape[-1]], q, k, v
        )

    def dropout(self, x, p, train):
        if not self.is_traced((x,)):
            return self._torch.ops.aten.dropout.default.decompose(x, p, train)
        if not train or p == 0 or x.numel() == 0:
            return x
        if p == 1:
            return x * 0
        return self._torch.ops.aten.native_dropout(x, p, True)[0]

    def rms_norm(self, x, normalized_shape, weight=None, eps=None):
        if not self.is_traced((x,)):
            return self._torch.ops.aten.rms_norm.default.decompose(x, normalized_shape, weight, eps)
        tensors = (x,) if weight is None else (x, weight)
        return self.single_kernel(make_row_norm_spec("rms", x, normalized_shape), "aten.rms_norm", x.shape, *tensors)

    def softmax(self, x, dim, dtype=None):
        return self._torch.ops.aten._softmax(self._cast_without_recording(x, dtype), dim, False)

    def safe_softmax(self, x, dim, dtype=None):
        """Softmax that sets fully masked rows to zero. Finding these rows has no gradient."""
        result = self.softmax(x, dim, dtype)
        is_row_masked = (x.detach() == float("-inf")).all(dim, keepdim=True)
        if not self.is_traced((x,)):
            return self._torch.where(is_row_masked, 0.0, result)
        self._torch.where(is_row_masked, x.new_zeros(()), result.detach())
        return result

    def log_softmax(self, x, dim, dtype=None):
        return self._torch.ops.aten._log_softmax(self._cast_without_recording(x, dtype), dim, False)

    def _cast_without_recording(self, x: Any, dtype: Any) -> Any:
        if dtype is None or dtype == x.dtype:
            return x
        if not self.is_traced((x,)) or x.dtype not in (self._torch.float16, self._torch.bfloat16):
            return x.to(dtype)
        with self._recorder.pause_recording():
            return x.to(dtype)

    def make_32_bit_kernel(self, func: Any, has_fused_cast: bool) -> Callable:
        torch, low_precision = self._torch, (self._torch.float16, self._torch.bfloat16)

        def cast(value: Any) -> Any:
            if is_tensor(value) and value.dtype in low_precision:
                return self._cast_without_recording(value, torch.float32) if has_fused_cast else value.to(torch.float32)
            return value

        def compute(*args: Any, **named: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
                if has_fused_cast and named.get("dtype") is not None:
                    return func(*args, **named)
                return func(*map(cast, args), **{key: cast(value) for key, value in named.items()})

        return compute

    def make_16_bit_kernel(self, func: Any, dtype: Any) -> Callable:
        torch = self._torch

        def cast(value: Any) -> Any:
            return value.to(dtype) if is_tensor(value) and value.dtype == torch.float32 else value

        def compute(*args: Any, **named: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
                return func(*map(cast, args), **named)

        return compute


@contextlib.contextmanager
def select_gpu_kernels(torch: Any, recorder: Any, autocast: Any) -> Iterator[None]:
    kernels = ReplacementKernels(torch, recorder)
    aten_library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel_by_name = {"scaled_dot_product_attention": kernels.attention, "dropout": kernels.dropout}
            kernel_by_name |= {"softmax.int": kernels.softmax, "log_softmax.int": kernels.log_softmax}
            kernel_by_name |= (
                {"_safe_softmax": kernels.safe_softmax} if hasattr(torch.ops.aten, "_safe_softmax") else {}
            )
            kernel_by_name |= {"rms_norm": kernels.rms_norm} if hasattr(torch.ops.aten, "_fused_rms_norm") else {}
            kernel_by_name |= RecurrentKernels(
                torch, recorder, kernels.single_kernel, kernels.is_traced, autocast
            ).kernels_by_name()
            recorder.replacement_kernels = kernel_by_name
            for name, kernel in kernel_by_name.items():
                aten_library.impl(name, kernel, "AutogradCPU")
            if autocast is not None:
                register_autocast_kernels(torch, aten_library, kernels, autocast)
        autocast_context = torch.autocast("cpu", dtype=autocast) if autocast is not None else contextlib.nullcontext()
        with autocast_context, disable_fake_tensor_check(), disable_flex_compile():
            yield
    finally:
        aten_library._destroy()


@contextlib.contextmanager
def disable_fake_tensor_check() -> Iterator[None]:
    """Makes the transformers package build the masks of GPU tensors, which differ from those of fake tensors."""
    module = sys.modules.get("transformers.utils.import_utils")
    original_check = getattr(module, "is_fake_tensor", None)
    if original_check is None:
        yield
        return
    module.is_fake_tensor = lambda _: False
    try:
        yield
    finally:
        module.is_fake_tensor = original_check


@contextlib.contextmanager
def disable_flex_compile() -> Iterator[None]:
    """Disables the compilation of flex_attention when it is called, which fake tensors do not support."""
    module = sys.modules.get("torch.nn.attention.flex_attention")
    flag_name = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
    if not hasattr(module, flag_name):
        yield
        return
    previous_flag = getattr(module, flag_name)
    setattr(module, flag_name, True)
    try:
        yield
    finally:
        setattr(module, flag_name, previous_flag)


def register_autocast_kernels(torch: Any, library: Any, kernels: ReplacementKernels, dtype: Any) -> None:
    for name in (*OPERATIONS_IN_32_BITS, *CASTING_OPERATIONS, *OPERATIONS_IN_16_BITS):
        packet_name, _, overload_name = name.partition(".")
        if not hasattr(torch.ops.aten, packet_name):
            continue
        func = getattr(getattr(torch.ops.aten, packet_name), overload_name or "default")
        is_16_bit = name in OPERATIONS_IN_16_BITS
        kernel = (
            kernels.make_16_bit_kernel(func, dtype)
            if is_16_bit
            else kernels.make_32_bit_kernel(func, name in CASTING_OPERATIONS)
        )
        library.impl(name, kernel, "AutocastCPU")
