# SPDX-License-Identifier: Apache-2.0
"""Shapes that networks use and the parameter ranges of the design rarely cover.

They are: attention within small windows of many images, normalization of many short rows, grouped convolutions over
sequences, image patches, thin 1x1 convolutions over large images, and products of many rows with a few heads. All
kinds of convolution are drawn once more with sizes typical of networks, grouped and ungrouped, because most networks
spend most of their energy there. A fixed seed draws them; their source is `designed`.
"""

from __future__ import annotations

import random
from typing import Callable

from .design import DESIGN_SEED, OPERATION_KINDS, PlannedRow, has_no_backward
from .kind import Parameters, is_within_size_limits, operation_cost

RandomGenerator = random.Random


def draw_log_uniform(rng: RandomGenerator, minimum: float, maximum: float, multiple: int = 1) -> int:
    """Draws a multiple of `multiple` between `minimum` and `maximum`, uniformly in the logarithm."""
    return max(multiple, round(minimum * (maximum / minimum) ** rng.random() / multiple) * multiple)


def add_convolution_defaults(rng: RandomGenerator, **parameters: int) -> Parameters:
    defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": rng.random() < 0.5}
    return {**defaults, "channels_last": rng.random() < 0.25, **parameters}


def order_convolution_parameters(parameters: Parameters) -> Parameters:
    ordered_names = "batch channels out height width kernel stride padding dilation groups bias channels_last".split()
    return {name: parameters[name] for name in ordered_names}


def draw_grouped_convolution(rng: RandomGenerator) -> Parameters:
    groups, kernel = rng.choice((2, 4, 4, 8, 16, 32, 32, 64)), rng.choice((1, 1, 3, 3))
    channels = draw_log_uniform(rng, 128, 3072, 8 * groups)
    out_channels = rng.choice(
        (channels, channels, channels * 2, channels * 4, max(groups, channels // 4 // groups * groups))
    )
    is_text = kernel == 1 and rng.random() < 0.6
    height = 1 if is_text else draw_log_uniform(rng, 7, 56)
    width = draw_log_uniform(rng, 64, 512) if is_text else height
    sizes = {
        "batch": draw_log_uniform(rng, 1, 128),
        "channels": channels,
        "out": out_channels,
        "height": height,
        "width": width,
    }
    stride = rng.choice((1, 1, 2)) if kernel == 3 else 1
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups)
    )


def draw_depthwise_with_multiplier(rng: RandomGenerator) -> Parameters:
    channels, size = draw_log_uniform(rng, 32, 512, 8), draw_log_uniform(rng, 7, 56)
    sizes = {"batch": draw_log_uniform(rng, 4, 128), "channels": channels, "out": channels * rng.choice((1, 2, 2, 3))}
    kernel_parameters = {"kernel": rng.choice((3, 3, 5, 7)), "stride": rng.choice((1, 2, 2)), "groups": channels}
    return order_convolution_parameters(
        add_convolution_defaults(
            rng, **sizes, height=size, width=size, padding=kernel_parameters["kernel"] // 2, **kernel_parameters
        )
    )


def draw_patch_embedding(rng: RandomGenerator) -> Parameters:
    kernel, size = rng.choice((4, 7, 8, 11, 14, 16, 16, 32)), rng.choice((128, 160, 224, 224, 256, 288, 384))
    sizes = {
        "batch": draw_log_uniform(rng, 1, 128),
        "channels": 3,
        "out": draw_log_uniform(rng, 48, 1024, 16),
        "height": size,
    }
    stride = rng.choice((kernel, kernel, max(1, kernel // 2), 2, 4))
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, width=size, kernel=kernel, stride=stride)
    )


def draw_ungrouped_3x3_convolution(rng: RandomGenerator) -> Parameters:
    channels, size = draw_log_uniform(rng, 64, 1024, 32), draw_log_uniform(rng, 7, 112)
    out_channels = rng.choice((channels, channels, channels * 2))
    sizes = {
        "batch": draw_log_uniform(rng, 8, 128),
        "channels": channels,
        "out": out_channels,
        "height": size,
        "width": size,
    }
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, kernel=3, stride=rng.choice((1, 1, 2)), padding=1)
    )


def draw_narrow_convolution(rng: RandomGenerator) -> Parameters:
    size = draw_log_uniform(rng, 28, 160)
    sizes = {
        "batch": draw_log_uniform(rng, 4, 128),
        "channels": draw_log_uniform(rng, 8, 128, 8),
        "out": draw_log_uniform(rng, 8, 128, 8),
    }
    kernel = rng.choice((1, 1, 3))
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, height=size, width=size, kernel=kernel, padding=kernel // 2)
    )


def draw_window_attention(rng: RandomGenerator) -> Parameters:
    tokens, heads = rng.choice((16, 49, 49, 64, 100, 144, 196)), draw_log_uniform(rng, 1, 24)
    width, batch = rng.choice((16, 32, 32, 48, 64)), draw_log_uniform(rng, 64, 16384)
    keys = rng.choice((tokens, tokens, tokens, 49))
    batch = max(1, min(batch, 200_000 // heads))
    return {"batch": batch, "heads": heads, "queries": tokens, "keys": keys, "width": width, "causal": False}


def draw_short_row_normalization(rng: RandomGenerator) -> Parameters:
    form = rng.choice(("layer", "layer", "layer", "rms"))
    rows, channels = draw_log_uniform(rng, 20_000, 1_000_000), draw_log_uniform(rng, 24, 384, 8)
    return {"form": form, "batch": rows, "channels": channels, "height": 1, "width": 1}


def draw_narrow_dense(rng: RandomGenerator) -> Parameters:
    heads = rng.choice((3, 4, 4, 6, 8, 8, 12, 16, 24, 32))
    wide_features = rng.choice((heads, heads, heads, 2 * heads, 4 * heads))
    in_features, out_features = (heads, wide_features) if rng.random() < 0.5 else (wide_features, heads)
    return {
        "rows": draw_log_uniform(rng, 20_000, 10_000_000),
        "in": in_features,
        "out": out_features,
        "bias": rng.random() < 0.5,
    }


def draw_varied_group_convolution(rng: RandomGenerator) -> Parameters:
    """Draws groups from narrow to wide: libraries choose their kernels by the width of a group."""
    group_width, groups = draw_log_uniform(rng, 4, 264, rng.choice((4, 8, 8))), draw_log_uniform(rng, 2, 64)
    channels = group_width * max(2, min(groups, 4096 // group_width))
    groups = channels // group_width
    kernel, size = rng.choice((3, 3, 3, 3, 1, 5, 7)), draw_log_uniform(rng, 7, 112)
    sizes = {
        "batch": draw_log_uniform(rng, 1, 128),
        "channels": channels,
        "out": channels * rng.choice((1, 1, 1, 1, 2)),
    }
    stride = rng.choice((1, 1, 2))
    return order_convolution_parameters(
        add_convolution_defaults(
            rng, **sizes, height=size, width=size, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups
        )
    )


def draw_depthwise_convolution(rng: RandomGenerator) -> Parameters:
    channels, size = draw_log_uniform(rng, 16, 1536, 8), draw_log_uniform(rng, 7, 128)
    kernel, stride = rng.choice((3, 3, 3, 5, 5, 7, 7, 9, 11)), rng.choice((1, 1, 1, 2))
    sizes = {
        "batch": draw_log_uniform(rng, 1, 128),
        "channels": channels,
        "out": channels,
        "height": size,
        "width": size,
    }
    drawn_parameters = add_convolution_defaults(
        rng, **sizes, kernel=kernel, stride=stride, padding=kernel // 2, groups=channels
    )
    return order_convolution_parameters({**drawn_parameters, "channels_last": rng.random() < 0.4})


def draw_pointwise_convolution(rng: RandomGenerator) -> Parameters:
    channels, size = draw_log_uniform(rng, 16, 2048, 8), draw_log_uniform(rng, 4, 128)
    out_channels = rng.choice(
        (channels, channels * 2, channels * 4, channels // 4, channels // 2, draw_log_uniform(rng, 16, 2048, 8))
    )
    sizes = {"batch": draw_log_uniform(rng, 1, 256), "channels": channels, "out": max(8, min(out_channels, 4096))}
    stride = rng.choice((1, 1, 1, 1, 1, 2))
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, height=size, width=size, kernel=1, stride=stride)
    )


def draw_3x3_convolution(rng: RandomGenerator) -> Parameters:
    channels, size = draw_log_uniform(rng, 16, 768, 8), draw_log_uniform(rng, 7, 224)
    out_channels = rng.choice((channels, channels, channels * 2, draw_log_uniform(rng, 16, 768, 8)))
    sizes = {
        "batch": draw_log_uniform(rng, 1, 256),
        "channels": channels,
        "out": out_channels,
        "height": size,
        "width": size,
    }
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, kernel=3, stride=rng.choice((1, 1, 1, 2)), padding=1)
    )


def draw_large_kernel_convolution(rng: RandomGenerator) -> Parameters:
    kernel = rng.choice((2, 2, 4, 5, 5, 7, 7, 11))
    stride = kernel if kernel % 2 == 0 else rng.choice((1, 2, 2))
    channels, size = rng.choice((3, draw_log_uniform(rng, 16, 768, 8))), draw_log_uniform(rng, 14, 224, 2)
    sizes = {"batch": draw_log_uniform(rng, 1, 128), "channels": channels, "out": draw_log_uniform(rng, 32, 1024, 8)}
    padding = 0 if stride == kernel else kernel // 2
    return order_convolution_parameters(
        add_convolution_defaults(rng, **sizes, height=size, width=size, kernel=kernel, stride=stride, padding=padding)
    )


# Most networks halve images of these side lengths until few pixels are left, and run in batches that are powers of
# two. Libraries choose kernels by size, so measurements at other sizes hardly predict these.
USUAL_IMAGE_SIDES = (224, 192, 256, 160, 288)
USUAL_CHANNEL_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def draw_usual_image_shape(rng: RandomGenerator, halving_range: tuple[int, int]) -> Parameters:
    image_side = rng.choice((224, 224, *USUAL_IMAGE_SIDES)) // 2 ** rng.randint(*halving_range)
    return {"batch": 2 ** rng.choice((0, 2, 3, 4, 5, 5, 6, 6, 7, 7)), "height": image_side, "width": image_side}


def draw_usual_grouped_convolution(rng: RandomGenerator) -> Parameters:
    group_width = rng.choice((4, 8, 16, 16, 24, 32, 32, 40, 48, 56, 64, 64, 80, 96, 112, 128, 168, 192, 224, 256))
    channels = group_width * rng.choice(
        [group_count for group_count in (2, 3, 4, 6, 8, 12, 16, 24, 32, 32, 64) if group_count * group_width <= 4096]
    )
    parameters = {
        **draw_usual_image_shape(rng, (1, 5)),
        "channels": channels,
        "out": channels,
        "groups": channels // group_width,
    }
    return order_convolution_parameters(
        add_convolution_defaults(rng, **parameters, kernel=3, stride=rng.choice((1, 1, 1, 2)), padding=1)
    )


def draw_usual_depthwise_convolution(rng: RandomGenerator) -> Parameters:
    channels, kernel = rng.choice(USUAL_CHANNEL_WIDTHS[1:]), rng.choice((3, 3, 5, 7))
    parameters = {**draw_usual_image_shape(rng, (1, 5)), "channels": channels, "out": channels, "groups": channels}
    drawn_parameters = add_convolution_defaults(
        rng, **parameters, kernel=kernel, stride=rng.choice((1, 1, 1, 2)), padding=kernel // 2
    )
    return order_convolution_parameters({**drawn_parameters, "channels_last": rng.random() < 0.4})


def draw_usual_pointwise_convolution(rng: RandomGenerator) -> Parameters:
    channels, channel_factor = rng.choice(USUAL_CHANNEL_WIDTHS), rng.choice((1, 2, 3, 4, 4, 6, 0.25, 0.25, 0.5))
    parameters = {
        **draw_usual_image_shape(rng, (2, 5)),
        "channels": channels,
        "out": max(8, int(channels * channel_factor)),
    }
    return order_convolution_parameters(add_convolution_defaults(rng, **parameters, kernel=1))


def draw_usual_3x3_convolution(rng: RandomGenerator) -> Parameters:
    channels = rng.choice(USUAL_CHANNEL_WIDTHS[1:-1])
    parameters = {
        **draw_usual_image_shape(rng, (0, 5)),
        "channels": channels,
        "out": channels * rng.choice((1, 1, 1, 2)),
    }
    return order_convolution_parameters(
        add_convolution_defaults(rng, **parameters, kernel=3, stride=rng.choice((1, 1, 1, 2)), padding=1)
    )


def draw_usual_downsampling_convolution(rng: RandomGenerator) -> Parameters:
    kernel, stride = rng.choice(((2, 2), (2, 2), (4, 4), (7, 2), (3, 2), (5, 2)))
    in_channels = rng.choice(USUAL_CHANNEL_WIDTHS[2:-2])
    is_stem = kernel > 2 and rng.random() < 0.6
    parameters = {
        **draw_usual_image_shape(rng, (0, 0) if is_stem else (1, 4)),
        "channels": 3 if is_stem else in_channels,
        "out": in_channels * 2,
    }
    padding = 0 if stride == kernel else kernel // 2
    return order_convolution_parameters(
        add_convolution_defaults(rng, **parameters, kernel=kernel, stride=stride, padding=padding)
    )


CORNER_SHAPES: tuple[tuple[str, Callable[[RandomGenerator], Parameters], int], ...] = (
    ("convolution", draw_grouped_convolution, 130),
    ("convolution", draw_depthwise_with_multiplier, 40),
    ("convolution", draw_patch_embedding, 70),
    ("convolution", draw_ungrouped_3x3_convolution, 110),
    ("convolution", draw_narrow_convolution, 60),
    ("attention", draw_window_attention, 130),
    ("normalization", draw_short_row_normalization, 60),
    ("dense", draw_narrow_dense, 60),
    ("convolution", draw_varied_group_convolution, 800),
    ("convolution", draw_depthwise_convolution, 500),
    ("convolution", draw_pointwise_convolution, 500),
    ("convolution", draw_3x3_convolution, 400),
    ("convolution", draw_large_kernel_convolution, 250),
    ("convolution", draw_usual_grouped_convolution, 900),
    ("convolution", draw_usual_depthwise_convolution, 450),
    ("convolution", draw_usual_pointwise_convolution, 450),
    ("convolution", draw_usual_3x3_convolution, 350),
    ("convolution", draw_usual_downsampling_convolution, 150),
)


def plan_corner_rows() -> list[PlannedRow]:
    rng = random.Random(f"{DESIGN_SEED} corners")
    rows: dict[str, PlannedRow] = {}
    for kind, draw_parameters, count in CORNER_SHAPES:
        target_row_count = len(rows) + count
        while len(rows) < target_row_count:
            row = make_planned_row(rng, kind, draw_parameters(rng))
            if is_within_size_limits(
                operation_cost(OPERATION_KINDS[kind].forward_work(row.parameters), row.dtype, row.pass_name), row.dtype
            ):
                rows.setdefault(row.key, row)
    shuffled_rows = list(rows.values())
    rng.shuffle(shuffled_rows)
    return shuffled_rows


def make_planned_row(rng: RandomGenerator, kind: str, parameters: Parameters) -> PlannedRow:
    operation_kind = OPERATION_KINDS[kind]
    # Two of three rows are forward passes: inference runs nothing else.
    pass_name = (
        operation_kind.passes[0]
        if rng.random() < 0.66 or has_no_backward(kind, parameters)
        else operation_kind.passes[1]
    )
    return PlannedRow(kind, parameters, rng.choice(operation_kind.dtypes), pass_name, False, "designed")
