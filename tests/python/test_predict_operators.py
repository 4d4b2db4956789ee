"""Every operator of PyTorch's registry: none that computes is treated as a copy. Unknown operators are reported."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _predict import elements, layers, recorder  # noqa: E402
from _predict.operation_list import list_operations  # noqa: E402

nn, functional = torch.nn, torch.nn.functional

# Handlers of operators that only read and write elements, by index or in another order, and at most add elements.
MOVE_HANDLERS = {
    elements.classify_gather,
    elements.classify_clone,
    elements.classify_copy,
    elements.classify_concatenate,
    elements.classify_host_read,
}
MOVE_HANDLERS |= {elements.classify_slice_gradient, elements.classify_fill}
# Names of operators that compute more than that.
COMPUTING_NAMES = re.compile(
    r"(mm|bmm|mv|conv|lstm|gru|rnn|attention|attend|fft|dist|linalg|solve|cholesky|qr|svd|eig|inv|lu_|det$|grid_sampler"
    r"|ctc|embedding|norm|hist|bincount|sort|topk|unique|quant|einsum|pool|softmax|cum|fused|linear|dot|ger|loss|exp$"
    r"|multinomial|median|kthvalue|mode$|upsample|interpolat|reduce$|renorm|trace|cross|matrix_exp|sparse_m|spmm|_thnn"
    r"|dropout)"
)
# Exceptions, which match but only move or fill data: random distributions, a view of a diagonal, scatter and slice.
MOVES_DESPITE_NAME = {
    "normal",
    "randn",
    "randn_like",
    "exponential",
    "linalg_diagonal",
    "scatter_reduce",
    "slice_inverse",
}


def list_registered_operators() -> list:
    operators = []
    for qualified_name in torch._C._dispatch_get_all_op_names():
        namespace, _, name = qualified_name.partition("::")
        packet, _, overload = name.partition(".")
        if namespace != "aten" or not hasattr(torch.ops.aten, packet):
            continue
        func = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
        if func is not None and not any(argument.is_out for argument in func._schema.arguments):
            operators.append(func)
    return operators


def plain_name(func) -> str:
    name = func.overloadpacket.__name__
    return name if name == "copy_" or not name.endswith("_") else name[:-1]


def is_decomposed(func) -> bool:
    """Whether PyTorch decomposes the operator before it reaches the recorder."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def is_move_operation(func) -> bool:
    name = plain_name(func)
    if (
        name in recorder.OPERATIONS_WITHOUT_LAUNCH
        or name in recorder.UNMARKED_VIEW_OPERATIONS
        or recorder.is_view(func)
    ):
        return True
    return layers.OPERATION_HANDLERS.get(name) in MOVE_HANDLERS or (
        name.endswith("_copy") and name not in layers.OPERATION_HANDLERS
    )


def test_no_computing_operator_is_classified_as_a_copy():
    operators = list_registered_operators()
    assert len(operators) > 1500
    misclassified_names = {
        plain_name(func) for func in operators if is_move_operation(func) and COMPUTING_NAMES.search(plain_name(func))
    }
    misclassified_names -= {plain_name(func) for func in operators if is_decomposed(func)}
    assert misclassified_names - MOVES_DESPITE_NAME == set()


def test_every_name_that_is_known_is_registered():
    """A misspelled name would never match an operator."""
    names = {plain_name(func) for func in list_registered_operators()}
    other_version_names = {"_cat"}
    assert {name for name in layers.OPERATION_HANDLERS if name not in names} - other_version_names == set()


def listed(compute, *inputs) -> tuple[set, list]:
    class Module(nn.Module):
        def forward(self, *module_inputs):
            return compute(*module_inputs)

    operation_list = list_operations(Module(), inputs)
    return {operation["kind"] for operation in operation_list["operations"]}, [
        operation["source"] for operation in operation_list["unknown"]
    ]


@torch.library.custom_op("acme::fast", mutates_args=())
def fast(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


fast.register_fake(torch.empty_like)

IMAGE_TENSOR, GRID_TENSOR, MATRIX_TENSOR = torch.empty(1, 3, 8, 8), torch.empty(1, 4, 4, 2), torch.empty(8, 8)
VOLUME_TENSOR = torch.empty(1, 2, 4, 4, 4)
KNOWN_OPERATORS = {
    "attention": (
        lambda query: functional.scaled_dot_product_attention(query, query, query),
        (torch.empty(1, 2, 16, 8),),
        "attention",
    ),
    "grid_sample": (
        lambda x, g: functional.grid_sample(x, g, align_corners=False),
        (IMAGE_TENSOR, GRID_TENSOR),
        "resize",
    ),
    "embedding_bag": (
        lambda weight: functional.embedding_bag(torch.zeros(4, 5, dtype=torch.int64), weight),
        (MATRIX_TENSOR,),
        "embedding",
    ),
    "conv_transpose": (
        lambda x, weight: functional.conv_transpose2d(x, weight),
        (IMAGE_TENSOR, torch.empty(3, 4, 2, 2)),
        "convolution",
    ),
    "einsum": (lambda x: torch.einsum("bij,bjk->bik", x, x), (torch.empty(2, 4, 4),), "bmm"),
    "bmm": (lambda x: torch.bmm(x, x), (torch.empty(2, 4, 4),), "bmm"),
    "int_mm": (lambda x: torch._int_mm(x, x), (torch.empty(32, 32, dtype=torch.int8),), "dense"),
    "weight_norm": (
        lambda weight_direction, g: torch._weight_norm(weight_direction, g),
        (torch.empty(5, 4), torch.empty(5, 1)),
        "activation",
    ),
    "foreach_add": (lambda x: torch._foreach_add([x, x], [x, x]), (MATRIX_TENSOR,), "add"),
    "foreach_norm": (lambda x: torch._foreach_norm([x, x]), (MATRIX_TENSOR,), "reduce"),
    "mse_loss": (lambda x: functional.mse_loss(x, x), (MATRIX_TENSOR,), "reduce"),
    "trilinear": (lambda x: functional.interpolate(x, scale_factor=2, mode="trilinear"), (VOLUME_TENSOR,), "resize"),
    "lstm_cell": (
        lambda x, weight: torch.lstm_cell(x, (x, x), weight, weight),
        (torch.empty(2, 4), torch.empty(16, 4)),
        "dense",
    ),
}
UNKNOWN_OPERATORS = {
    "fft": (lambda x: torch.fft.rfft(x).abs(), (MATRIX_TENSOR,), "aten._fft_r2c"),
    "cdist": (lambda x: torch.cdist(x, x), (torch.empty(40, 64),), "aten._euclidean_dist"),
    "svd": (lambda x: torch.linalg.svdvals(x), (MATRIX_TENSOR,), "aten._linalg_svd"),
    "sort": (lambda x: x.sort()[0], (MATRIX_TENSOR,), "aten.sort"),
    "topk": (lambda x: x.topk(2)[0], (MATRIX_TENSOR,), "aten.topk"),
    "sparse": (lambda x: torch.sparse.mm(x.to_sparse(), x), (MATRIX_TENSOR,), "aten._sparse_addmm"),
    "quantize": (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255), (MATRIX_TENSOR,), None),
    "custom": (lambda x: fast(x), (MATRIX_TENSOR,), "acme.fast"),
}


@pytest.mark.parametrize("name", KNOWN_OPERATORS)
def test_computing_operators_are_classified_by_their_computation(name):
    compute, inputs, kind = KNOWN_OPERATORS[name]
    kinds, unknown = listed(compute, *inputs)
    assert kind in kinds and unknown == []


@pytest.mark.parametrize("name", UNKNOWN_OPERATORS)
def test_unknown_operations_are_listed(name):
    compute, inputs, source = UNKNOWN_OPERATORS[name]
    _, unknown = listed(compute, *inputs)
    assert unknown and (source is None or source in unknown)


def test_flex_attention_is_attention():
    flex_attention_module = pytest.importorskip("torch.nn.attention.flex_attention")
    kinds, unknown = listed(
        lambda query: flex_attention_module.flex_attention(query, query, query), torch.empty(1, 2, 16, 8)
    )
    assert "attention" in kinds and not any("attention" in source for source in unknown)
