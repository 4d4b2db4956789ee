# SPDX-License-Identifier: Apache-2.0
"""Layers by dispatcher names: products, convolutions, pooling, norms, embeddings, losses; and the table of all known
operations."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

from . import elements, recurrent
from .shapes import OperationSpec, shape_to_batch_rows_width, collect_tensors


def make_dense_spec(rows: int, in_features: int, out_features: int, bias: bool) -> OperationSpec:
    return OperationSpec(
        "dense", "", {"rows": int(rows), "in": int(in_features), "out": int(out_features), "bias": int(bias)}
    )


def classify_dense(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    bias = name in ("addmm", "addmv", "_addmm_activation")
    x, weight = args[1:3] if bias else args[:2]
    return [make_dense_spec(x.shape[0], x.shape[1], weight.shape[1] if weight.dim() > 1 else 1, bias)]


def classify_outer_product(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [make_dense_spec(outputs[0].shape[0], 1, outputs[0].shape[1], name == "addr")]


def classify_batched_product(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    first_matrix, second_matrix = args[1:3] if name in ("baddbmm", "addbmm") else args[:2]
    is_transposed = int(second_matrix.stride(-1) != 1 and second_matrix.stride(-2) == 1)
    sizes = {
        "batch": first_matrix.shape[0],
        "m": first_matrix.shape[1],
        "k": first_matrix.shape[2],
        "n": second_matrix.shape[2],
    }
    return [OperationSpec("bmm", "", {**{key: int(size) for key, size in sizes.items()}, "transposed": is_transposed})]


def make_attention_spec(q: Any, k: Any, causal: bool) -> OperationSpec:
    sizes = {"batch": math.prod(q.shape[:-3]), "heads": q.shape[-3], "queries": q.shape[-2], "keys": k.shape[-2]}
    parameters = {key: int(size) for key, size in sizes.items()}
    return OperationSpec("attention", "", {**parameters, "width": int(q.shape[-1]), "causal": int(causal)})


def classify_attention(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [make_attention_spec(args[0], args[1], any(argument is True for argument in args[3:6]))]


def is_channels_last(x: Any) -> bool:
    """Returns whether cuDNN treats the tensor as channels-last: the stride of channels is 1, that of pixels is not."""
    return x.dim() == 4 and x.shape[1] > 1 and x.stride(1) == 1 and x.shape[2] * x.shape[3] > 1


def height_and_width(values: Any) -> tuple[int, int]:
    """Returns the values for height and width: a scalar applies to both, one dimension is the width."""
    value_list = [values] if isinstance(values, int) else list(values)
    return int(value_list[-2 if len(value_list) > 1 else -1]), int(value_list[-1])


def height_and_width_parameters(values_by_name: dict[str, Any]) -> dict[str, int]:
    """Returns for each name its value for the height and, where the value for the width differs, also `name_width`."""
    heights = {parameter: height_and_width(values)[0] for parameter, values in values_by_name.items()}
    return heights | {
        f"{parameter}_width": height_and_width(values)[1]
        for parameter, values in values_by_name.items()
        if len(set(height_and_width(values))) > 1
    }


def classify_convolution(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    x, weight, bias, stride, padding, dilation, is_transposed, _, groups = args[:9]
    is_1d, kernel = x.dim() == 3, [int(size) for size in weight.shape[2:]]
    sizes = [int(size) for size in x.shape]
    out_channels = int(weight.shape[1]) * groups if is_transposed else int(weight.shape[0])
    parameters = {
        "batch": sizes[0],
        "channels": sizes[1],
        "out": out_channels,
        "height": 1 if is_1d else sizes[-2],
        "width": sizes[-1],
    }
    window_parameters = {"kernel": kernel, "stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
    if is_1d:
        neutral_height = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1}
        window_parameters = {key: [neutral_height[key], values[-1]] for key, values in window_parameters.items()}
    window_parameters = height_and_width_parameters(window_parameters)
    height_parameters = {key: value for key, value in window_parameters.items() if not key.endswith("_width")}
    parameters |= {
        **height_parameters,
        "groups": int(groups),
        "bias": int(bias is not None),
        "channels_last": int(is_channels_last(x)),
    }
    parameters |= {key: value for key, value in window_parameters.items() if key.endswith("_width")}
    if x.dim() == 5:
        parameters |= {"depth": sizes[2], "kernel_depth": kernel[0], "out_depth": int(outputs[0].shape[2])}
    if is_transposed:
        parameters |= {"out_height": 1 if is_1d else int(outputs[0].shape[-2]), "out_width": int(outputs[0].shape[-1])}
        parameters |= {"transposed": 1}
    return [OperationSpec("convolution", "", parameters)]


def image_parameters(shape: Sequence[int]) -> dict[str, int]:
    sizes = [1] * (4 - len(shape)) + [int(size) for size in shape]
    sizes = [sizes[0], math.prod(sizes[1:-2]), *sizes[-2:]]
    return dict(zip(("batch", "channels", "height", "width"), sizes))


def classify_pooling(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    form = "max" if name.startswith("max") else "avg"
    kernel, stride = args[1], args[2] if len(args) > 2 and args[2] else args[1]
    padding = args[3] if len(args) > 3 else [0]
    parameters = image_parameters(args[0].shape) | height_and_width_parameters(
        {"kernel": kernel, "stride": stride, "padding": padding}
    )
    if any(argument is True for argument in args[4:6]):  # ceil_mode: sizes are rounded up at the edges
        parameters |= {"out_height": int(outputs[0].shape[-2]), "out_width": int(outputs[0].shape[-1])}
    return [OperationSpec("pooling", form, parameters)]


def classify_adaptive_pooling(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    height, width = height_and_width(outputs[0].shape[-2:])
    parameters = image_parameters(args[0].shape) | {"out": height}
    return [
        OperationSpec(
            "pooling",
            "adaptive",
            parameters if height == width else parameters | {"out_height": height, "out_width": width},
        )
    ]


def classify_padding(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    form = next((prefix for prefix in ("reflect", "replic") if name.startswith(prefix)), "constant")
    form = {"replic": "replicate"}.get(form, form)
    input_image, output_image = image_parameters(args[0].shape), image_parameters(outputs[0].shape)
    if (input_image["batch"], input_image["channels"]) != (output_image["batch"], output_image["channels"]):
        input_image = {"batch": 1, "channels": 1, "height": 1, "width": args[0].numel()}
        output_image = {"height": 1, "width": outputs[0].numel()}
    parameters = {**input_image, "padding": max(0, int(max(args[1], default=0)))}
    if any(output_image[key] != input_image[key] + 2 * parameters["padding"] for key in ("height", "width")):
        parameters |= {"out_height": output_image["height"], "out_width": output_image["width"]}
    return [OperationSpec("padding", form, parameters)]


def classify_resize(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    form = name.replace("_upsample", "upsample").split("_")[1].rstrip("123d")
    if args[0].dim() == 5:
        return make_flat_resize_spec({"trilinear": "bilinear"}.get(form, form), args[0], outputs[0])
    height, width = int(outputs[0].shape[-2]), int(outputs[0].shape[-1])
    parameters = image_parameters(args[0].shape) | {"out": height}
    parameters |= {} if height == width else {"out_height": height, "out_width": width}
    return [OperationSpec("resize", {"linear": "bilinear", "trilinear": "bilinear"}.get(form, form), parameters)]


def classify_batch_norm(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    is_training = name != "_batch_norm_no_training" and name != "_native_batch_norm_legit_no_training"
    is_training = is_training and next((argument for argument in args[3:] if isinstance(argument, bool)), True)
    sizes = [int(size) for size in args[0].shape]
    sizes = [*sizes, *[1] * (4 - len(sizes))] if len(sizes) <= 4 else [*sizes[:3], math.prod(sizes[3:])]
    parameters = dict(zip(("batch", "channels", "height", "width"), sizes))
    return [OperationSpec("normalization", "batch" if is_training else "batch-inference", parameters)]


def make_row_norm_spec(form: str, x: Any, shape: Sequence[int]) -> OperationSpec:
    channels = math.prod(int(size) for size in shape)
    parameters = {"batch": x.numel() // channels, "channels": channels, "height": 1, "width": 1}
    return OperationSpec("normalization", form, parameters)


def classify_layer_norm(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [make_row_norm_spec("rms" if "rms" in name else "layer", args[0], args[1])]


def classify_group_norm(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """Arguments: (input, weight, bias, batch, channels, pixels, groups, epsilon)."""
    sizes = [int(size) for size in args[0].shape]
    width = sizes[3] if len(sizes) > 3 else 1
    height = int(args[5]) // width
    return [
        OperationSpec(
            "normalization", "group", {"batch": sizes[0], "channels": sizes[1], "height": height, "width": width}
        )
    ]


def classify_grid_sample(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """grid_sample: costs as much as an interpolation to the size of the grid."""
    return make_flat_resize_spec("bilinear", args[0], outputs[0])


def make_flat_resize_spec(form: str, x: Any, output: Any) -> Sequence[OperationSpec]:
    sizes = {"batch": 1, "channels": 1, "height": 1, "width": int(x.numel())}
    return [
        OperationSpec(
            "resize", form, {**sizes, "out": int(output.numel()), "out_height": 1, "out_width": int(output.numel())}
        )
    ]


def classify_packed_attention(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """Attention kernels that scaled_dot_product_attention calls. In their tensors the heads come after the
    positions."""
    q, k = args[0].transpose(-3, -2), args[1].transpose(-3, -2)
    return [make_attention_spec(q, k, any(argument is True for argument in args[3:]))]


def classify_dropout(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [OperationSpec("dropout", "", shape_to_batch_rows_width(args[0].shape))]


def classify_embedding(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    table, indices = args[:2]
    return [
        OperationSpec(
            "embedding",
            "",
            {"vocabulary": int(table.shape[0]), "width": int(table.shape[1]), "tokens": int(indices.numel())},
        )
    ]


def classify_loss(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    x = args[0]
    classes = int(x.shape[1 if x.dim() > 1 else 0])
    return [OperationSpec("loss", "", {"rows": x.numel() // classes, "classes": classes})]


def classify_multi_head_attention(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """PyTorch's own attention module in inference on a GPU, where it is one call."""
    x, width, heads = args[0], int(args[3]), int(args[4])
    rows, in_features = x.numel() // int(x.shape[-1]), int(x.shape[-1])
    tokens = {"queries": int(x.shape[1]), "keys": int(args[1].shape[1]), "width": width // heads}
    attention_parameters = {"batch": int(x.shape[0]), "heads": heads, **tokens, "causal": 0}
    return [
        make_dense_spec(rows, in_features, 3 * width, True),
        OperationSpec("attention", "", attention_parameters),
        make_dense_spec(rows, width, in_features, True),
    ]


def classify_encoder_layer(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """A whole transformer encoder layer as one call, in inference."""
    x, width, heads, feed_forward_width = args[0], int(args[1]), int(args[2]), int(args[14].shape[0])
    rows, shape = x.numel() // width, shape_to_batch_rows_width(x.shape)
    attention_parameters = {
        "batch": int(x.shape[0]),
        "heads": heads,
        "queries": int(x.shape[1]),
        "keys": int(x.shape[1]),
    }
    attention_parameters |= {"width": width // heads, "causal": 0}
    norm_spec, add_spec = make_row_norm_spec("layer", x, [width]), OperationSpec("add", "same", shape)
    form = "gelu" if args[7] else "relu"
    activation_spec = OperationSpec("activation", form, {**shape, "width": feed_forward_width})
    attention_specs = [
        make_dense_spec(rows, width, 3 * width, True),
        OperationSpec("attention", "", attention_parameters),
        make_dense_spec(rows, width, width, True),
        add_spec,
    ]
    return [
        *attention_specs,
        norm_spec,
        make_dense_spec(rows, width, feed_forward_width, True),
        activation_spec,
        make_dense_spec(rows, feed_forward_width, width, True),
        add_spec,
        norm_spec,
    ]


def operation_handlers() -> dict[str, elements.OperationHandler]:
    handlers_by_name = elements.elementwise_handlers()
    handlers_by_name |= dict.fromkeys("mm addmm mv addmv _int_mm _scaled_mm _addmm_activation".split(), classify_dense)
    handlers_by_name |= dict.fromkeys("ger addr".split(), classify_outer_product)
    handlers_by_name |= dict.fromkeys("bmm baddbmm addbmm".split(), classify_batched_product)
    handlers_by_name |= dict.fromkeys(
        ("convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution"), classify_convolution
    )
    pooling_operations = (
        "max_pool2d_with_indices avg_pool2d avg_pool1d max_pool1d max_pool3d_with_indices avg_pool3d".split()
    )
    handlers_by_name |= dict.fromkeys(pooling_operations, classify_pooling)
    pooling_operations = (
        "_adaptive_avg_pool2d adaptive_max_pool2d adaptive_avg_pool1d _adaptive_avg_pool3d adaptive_max_pool3d".split()
    )
    handlers_by_name |= dict.fromkeys(pooling_operations, classify_adaptive_pooling)
    padding_operations = [
        f"{form}_pad{dimensions}d" for form in ("reflection", "replication") for dimensions in (1, 2, 3)
    ]
    handlers_by_name |= dict.fromkeys(["constant_pad_nd", *padding_operations], classify_padding)
    resize_forms = "nearest1d nearest2d linear1d bilinear2d bicubic2d nearest3d trilinear3d".split()
    handlers_by_name |= dict.fromkeys([f"upsample_{resize_form}" for resize_form in resize_forms], classify_resize)
    handlers_by_name |= dict.fromkeys(
        ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_nearest_exact2d"], classify_resize
    )
    norm_operations = "native_batch_norm cudnn_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training"
    handlers_by_name |= dict.fromkeys(
        [*norm_operations.split(), "_batch_norm_with_update", "batch_norm"], classify_batch_norm
    )
    handlers_by_name |= dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), classify_layer_norm)
    handlers_by_name |= {
        "native_group_norm": classify_group_norm,
        "native_dropout": classify_dropout,
        "embedding": classify_embedding,
    }
    handlers_by_name |= dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), classify_loss)
    handlers_by_name |= {
        "_native_multi_head_attention": classify_multi_head_attention,
        "_transformer_encoder_layer_fwd": classify_encoder_layer,
    }
    handlers_by_name |= dict.fromkeys(
        "grid_sampler_2d grid_sampler_3d cudnn_grid_sampler".split(), classify_grid_sample
    )
    handlers_by_name |= dict.fromkeys(
        "_embedding_bag embedding_bag _embedding_bag_forward_only".split(), classify_embedding
    )
    handlers_by_name |= dict.fromkeys(
        ("_flash_attention_forward", "_efficient_attention_forward"), classify_packed_attention
    )
    handlers_by_name |= {"_cudnn_rnn": recurrent.classify_cudnn_rnn}
    handlers_by_name |= dict.fromkeys(("_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"), recurrent.classify_fused_gates)
    return handlers_by_name


OPERATION_HANDLERS = operation_handlers()


def classify_operation(func: Any, name: str, args: Sequence, outputs: Sequence) -> Optional[Sequence[OperationSpec]]:
    """Returns the classified operation, None if it is unknown. `name` excludes the trailing underscore of in-place
    variants."""
    handler = OPERATION_HANDLERS.get(name)
    if handler:
        return handler(name, args, outputs)
    if name.startswith("_scaled_dot_product") and "backward" not in name:
        return classify_attention(name, args, outputs)
    if name.startswith("_foreach_") and name != "_foreach_mm":
        return elements.classify_foreach(name, args, outputs)
    if name.endswith("_copy") and outputs:  # a materialized view
        return elements.classify_clone(name, args, outputs)
    if any(str(tag) == "Tag.pointwise" for tag in func.tags) and collect_tensors(args):
        return elements.classify_pointwise(name, args, outputs)
    return None
