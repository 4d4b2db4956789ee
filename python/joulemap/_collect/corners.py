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

from .design import KINDS, SEED, PlannedRow, has_no_backward
from .kind import Parameters, cost_of, is_small_enough

RandomGenerator = random.Random


def log_uniform(rng: RandomGenerator, least: float, most: float, multiple: int = 1) -> int:
    """Draws a multiple of `multiple` between `least` and `most`, uniformly in the logarithm."""
    return max(multiple, round(least * (most / least) ** rng.random() / multiple) * multiple)


def convolution(rng: RandomGenerator, **parameters: int) -> Parameters:
    defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": rng.random() < 0.5}
    return {**defaults, "channels_last": rng.random() < 0.25, **parameters}


def ordered_parameters(parameters: Parameters) -> Parameters:
    names = "batch channels out height width kernel stride padding dilation groups bias channels_last".split()
    return {name: parameters[name] for name in names}


def grouped(rng: RandomGenerator) -> Parameters:
    groups, kernel = rng.choice((2, 4, 4, 8, 16, 32, 32, 64)), rng.choice((1, 1, 3, 3))
    channels = log_uniform(rng, 128, 3072, 8 * groups)
    out = rng.choice((channels, channels, channels * 2, channels * 4, max(groups, channels // 4 // groups * groups)))
    is_text = kernel == 1 and rng.random() < 0.6
    height = 1 if is_text else log_uniform(rng, 7, 56)
    width = log_uniform(rng, 64, 512) if is_text else height
    sizes = {"batch": log_uniform(rng, 1, 128), "channels": channels, "out": out, "height": height, "width": width}
    stride = rng.choice((1, 1, 2)) if kernel == 3 else 1
    return ordered_parameters(
        convolution(rng, **sizes, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups)
    )


def widening_depthwise(rng: RandomGenerator) -> Parameters:
    channels, size = log_uniform(rng, 32, 512, 8), log_uniform(rng, 7, 56)
    sizes = {"batch": log_uniform(rng, 4, 128), "channels": channels, "out": channels * rng.choice((1, 2, 2, 3))}
    kernel_parameters = {"kernel": rng.choice((3, 3, 5, 7)), "stride": rng.choice((1, 2, 2)), "groups": channels}
    return ordered_parameters(
        convolution(
            rng, **sizes, height=size, width=size, padding=kernel_parameters["kernel"] // 2, **kernel_parameters
        )
    )


def patch_embedding(rng: RandomGenerator) -> Parameters:
    kernel, size = rng.choice((4, 7, 8, 11, 14, 16, 16, 32)), rng.choice((128, 160, 224, 224, 256, 288, 384))
    sizes = {"batch": log_uniform(rng, 1, 128), "channels": 3, "out": log_uniform(rng, 48, 1024, 16), "height": size}
    stride = rng.choice((kernel, kernel, max(1, kernel // 2), 2, 4))
    return ordered_parameters(convolution(rng, **sizes, width=size, kernel=kernel, stride=stride))


def dense_square_kernels(rng: RandomGenerator) -> Parameters:
    channels, size = log_uniform(rng, 64, 1024, 32), log_uniform(rng, 7, 112)
    out = rng.choice((channels, channels, channels * 2))
    sizes = {"batch": log_uniform(rng, 8, 128), "channels": channels, "out": out, "height": size, "width": size}
    return ordered_parameters(convolution(rng, **sizes, kernel=3, stride=rng.choice((1, 1, 2)), padding=1))


def few_channels(rng: RandomGenerator) -> Parameters:
    size = log_uniform(rng, 28, 160)
    sizes = {
        "batch": log_uniform(rng, 4, 128),
        "channels": log_uniform(rng, 8, 128, 8),
        "out": log_uniform(rng, 8, 128, 8),
    }
    kernel = rng.choice((1, 1, 3))
    return ordered_parameters(convolution(rng, **sizes, height=size, width=size, kernel=kernel, padding=kernel // 2))


def window_attention(rng: RandomGenerator) -> Parameters:
    tokens, heads = rng.choice((16, 49, 49, 64, 100, 144, 196)), log_uniform(rng, 1, 24)
    width, batch = rng.choice((16, 32, 32, 48, 64)), log_uniform(rng, 64, 16384)
    keys = rng.choice((tokens, tokens, tokens, 49))
    batch = max(1, min(batch, 200_000 // heads))
    return {"batch": batch, "heads": heads, "queries": tokens, "keys": keys, "width": width, "causal": False}


def short_rows(rng: RandomGenerator) -> Parameters:
    form = rng.choice(("layer", "layer", "layer", "rms"))
    rows, channels = log_uniform(rng, 20_000, 1_000_000), log_uniform(rng, 24, 384, 8)
    return {"form": form, "batch": rows, "channels": channels, "height": 1, "width": 1}


def few_heads(rng: RandomGenerator) -> Parameters:
    heads = rng.choice((3, 4, 4, 6, 8, 8, 12, 16, 24, 32))
    wide = rng.choice((heads, heads, heads, 2 * heads, 4 * heads))
    in_features, out_features = (heads, wide) if rng.random() < 0.5 else (wide, heads)
    return {
        "rows": log_uniform(rng, 20_000, 10_000_000),
        "in": in_features,
        "out": out_features,
        "bias": rng.random() < 0.5,
    }


def wide_groups(rng: RandomGenerator) -> Parameters:
    """Draws groups from narrow to wide: libraries choose their kernels by the width of a group."""
    group_width, groups = log_uniform(rng, 4, 264, rng.choice((4, 8, 8))), log_uniform(rng, 2, 64)
    channels = group_width * max(2, min(groups, 4096 // group_width))
    groups = channels // group_width
    kernel, size = rng.choice((3, 3, 3, 3, 1, 5, 7)), log_uniform(rng, 7, 112)
    sizes = {"batch": log_uniform(rng, 1, 128), "channels": channels, "out": channels * rng.choice((1, 1, 1, 1, 2))}
    stride = rng.choice((1, 1, 2))
    return ordered_parameters(
        convolution(
            rng, **sizes, height=size, width=size, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups
        )
    )


def depthwise(rng: RandomGenerator) -> Parameters:
    channels, size = log_uniform(rng, 16, 1536, 8), log_uniform(rng, 7, 128)
    kernel, stride = rng.choice((3, 3, 3, 5, 5, 7, 7, 9, 11)), rng.choice((1, 1, 1, 2))
    sizes = {"batch": log_uniform(rng, 1, 128), "channels": channels, "out": channels, "height": size, "width": size}
    drawn = convolution(rng, **sizes, kernel=kernel, stride=stride, padding=kernel // 2, groups=channels)
    return ordered_parameters({**drawn, "channels_last": rng.random() < 0.4})


def pointwise(rng: RandomGenerator) -> Parameters:
    channels, size = log_uniform(rng, 16, 2048, 8), log_uniform(rng, 4, 128)
    out = rng.choice(
        (channels, channels * 2, channels * 4, channels // 4, channels // 2, log_uniform(rng, 16, 2048, 8))
    )
    sizes = {"batch": log_uniform(rng, 1, 256), "channels": channels, "out": max(8, min(out, 4096))}
    stride = rng.choice((1, 1, 1, 1, 1, 2))
    return ordered_parameters(convolution(rng, **sizes, height=size, width=size, kernel=1, stride=stride))


def square_kernels(rng: RandomGenerator) -> Parameters:
    channels, size = log_uniform(rng, 16, 768, 8), log_uniform(rng, 7, 224)
    out = rng.choice((channels, channels, channels * 2, log_uniform(rng, 16, 768, 8)))
    sizes = {"batch": log_uniform(rng, 1, 256), "channels": channels, "out": out, "height": size, "width": size}
    return ordered_parameters(convolution(rng, **sizes, kernel=3, stride=rng.choice((1, 1, 1, 2)), padding=1))


def large_kernels(rng: RandomGenerator) -> Parameters:
    kernel = rng.choice((2, 2, 4, 5, 5, 7, 7, 11))
    stride = kernel if kernel % 2 == 0 else rng.choice((1, 2, 2))
    channels, size = rng.choice((3, log_uniform(rng, 16, 768, 8))), log_uniform(rng, 14, 224, 2)
    sizes = {"batch": log_uniform(rng, 1, 128), "channels": channels, "out": log_uniform(rng, 32, 1024, 8)}
    padding = 0 if stride == kernel else kernel // 2
    return ordered_parameters(
        convolution(rng, **sizes, height=size, width=size, kernel=kernel, stride=stride, padding=padding)
    )


# Most networks halve images of these side lengths until few pixels are left, and run in batches that are powers of
# two. Libraries choose kernels by size, so measurements at other sizes hardly predict these.
USUAL_SIDES = (224, 192, 256, 160, 288)
USUAL_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def usual_image(rng: RandomGenerator, halvings: tuple[int, int]) -> Parameters:
    side = rng.choice((224, 224, *USUAL_SIDES)) // 2 ** rng.randint(*halvings)
    return {"batch": 2 ** rng.choice((0, 2, 3, 4, 5, 5, 6, 6, 7, 7)), "height": side, "width": side}


def usual_groups(rng: RandomGenerator) -> Parameters:
    group_width = rng.choice((4, 8, 16, 16, 24, 32, 32, 40, 48, 56, 64, 64, 80, 96, 112, 128, 168, 192, 224, 256))
    channels = group_width * rng.choice(
        [many for many in (2, 3, 4, 6, 8, 12, 16, 24, 32, 32, 64) if many * group_width <= 4096]
    )
    parameters = {**usual_image(rng, (1, 5)), "channels": channels, "out": channels, "groups": channels // group_width}
    return ordered_parameters(convolution(rng, **parameters, kernel=3, stride=rng.choice((1, 1, 1, 2)), padding=1))


def usual_depthwise(rng: RandomGenerator) -> Parameters:
    channels, kernel = rng.choice(USUAL_WIDTHS[1:]), rng.choice((3, 3, 5, 7))
    parameters = {**usual_image(rng, (1, 5)), "channels": channels, "out": channels, "groups": channels}
    drawn = convolution(rng, **parameters, kernel=kernel, stride=rng.choice((1, 1, 1, 2)), padding=kernel // 2)
    return ordered_parameters({**drawn, "channels_last": rng.random() < 0.4})


def usual_pointwise(rng: RandomGenerator) -> Parameters:
    channels, by = rng.choice(USUAL_WIDTHS), rng.choice((1, 2, 3, 4, 4, 6, 0.25, 0.25, 0.5))
    parameters = {**usual_image(rng, (2, 5)), "channels": channels, "out": max(8, int(channels * by))}
    return ordered_parameters(convolution(rng, **parameters, kernel=1))


def usual_square_kernels(rng: RandomGenerator) -> Parameters:
    channels = rng.choice(USUAL_WIDTHS[1:-1])
    parameters = {**usual_image(rng, (0, 5)), "channels": channels, "out": channels * rng.choice((1, 1, 1, 2))}
    return ordered_parameters(convolution(rng, **parameters, kernel=3, stride=rng.choice((1, 1, 1, 2)), padding=1))


def usual_downsampling(rng: RandomGenerator) -> Parameters:
    kernel, stride = rng.choice(((2, 2), (2, 2), (4, 4), (7, 2), (3, 2), (5, 2)))
    into = rng.choice(USUAL_WIDTHS[2:-2])
    stem = kernel > 2 and rng.random() < 0.6
    parameters = {**usual_image(rng, (0, 0) if stem else (1, 4)), "channels": 3 if stem else into, "out": into * 2}
    padding = 0 if stride == kernel else kernel // 2
    return ordered_parameters(convolution(rng, **parameters, kernel=kernel, stride=stride, padding=padding))


CORNERS: tuple[tuple[str, Callable[[RandomGenerator], Parameters], int], ...] = (
    ("convolution", grouped, 130),
    ("convolution", widening_depthwise, 40),
    ("convolution", patch_embedding, 70),
    ("convolution", dense_square_kernels, 110),
    ("convolution", few_channels, 60),
    ("attention", window_attention, 130),
    ("normalization", short_rows, 60),
    ("dense", few_heads, 60),
    ("convolution", wide_groups, 800),
    ("convolution", depthwise, 500),
    ("convolution", pointwise, 500),
    ("convolution", square_kernels, 400),
    ("convolution", large_kernels, 250),
    ("convolution", usual_groups, 900),
    ("convolution", usual_depthwise, 450),
    ("convolution", usual_pointwise, 450),
    ("convolution", usual_square_kernels, 350),
    ("convolution", usual_downsampling, 150),
)


def plan() -> list[PlannedRow]:
    rng = random.Random(f"{SEED} corners")
    rows: dict[str, PlannedRow] = {}
    for kind, draw, count in CORNERS:
        wanted = len(rows) + count
        while len(rows) < wanted:
            row = drawn(rng, kind, draw(rng))
            if is_small_enough(cost_of(KINDS[kind].work(row.parameters), row.dtype, row.which), row.dtype):
                rows.setdefault(row.key, row)
    shuffled = list(rows.values())
    rng.shuffle(shuffled)
    return shuffled


def drawn(rng: RandomGenerator, kind: str, parameters: Parameters) -> PlannedRow:
    definition = KINDS[kind]
    # Two of three rows are forward passes: inference runs nothing else.
    which = definition.passes[0] if rng.random() < 0.66 or has_no_backward(kind, parameters) else definition.passes[1]
    return PlannedRow(kind, parameters, rng.choice(definition.dtypes), which, False, "designed")
