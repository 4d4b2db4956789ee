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

from .design import KINDS, SEED, Planned, has_no_backward
from .kind import Parameters, cost_of, is_small_enough

Chance = random.Random


def about(chance: Chance, least: float, most: float, multiple: int = 1) -> int:
    """Draws a value uniformly in the logarithm."""
    return max(multiple, round(least * (most / least) ** chance.random() / multiple) * multiple)


def convolution(chance: Chance, **told: int) -> Parameters:
    plain = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "bias": chance.random() < 0.5}
    return {**plain, "channels_last": chance.random() < 0.25, **told}


def in_order(parameters: Parameters) -> Parameters:
    names = "batch channels out height width kernel stride padding dilation groups bias channels_last".split()
    return {name: parameters[name] for name in names}


def grouped(chance: Chance) -> Parameters:
    groups, kernel = chance.choice((2, 4, 4, 8, 16, 32, 32, 64)), chance.choice((1, 1, 3, 3))
    channels = about(chance, 128, 3072, 8 * groups)
    out = chance.choice((channels, channels, channels * 2, channels * 4, max(groups, channels // 4 // groups * groups)))
    is_text = kernel == 1 and chance.random() < 0.6
    height = 1 if is_text else about(chance, 7, 56)
    width = about(chance, 64, 512) if is_text else height
    sizes = {"batch": about(chance, 1, 128), "channels": channels, "out": out, "height": height, "width": width}
    stride = chance.choice((1, 1, 2)) if kernel == 3 else 1
    return in_order(convolution(chance, **sizes, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups))


def widening_depthwise(chance: Chance) -> Parameters:
    channels, size = about(chance, 32, 512, 8), about(chance, 7, 56)
    sizes = {"batch": about(chance, 4, 128), "channels": channels, "out": channels * chance.choice((1, 2, 2, 3))}
    more = {"kernel": chance.choice((3, 3, 5, 7)), "stride": chance.choice((1, 2, 2)), "groups": channels}
    return in_order(convolution(chance, **sizes, height=size, width=size, padding=more["kernel"] // 2, **more))


def patches(chance: Chance) -> Parameters:
    kernel, size = chance.choice((4, 7, 8, 11, 14, 16, 16, 32)), chance.choice((128, 160, 224, 224, 256, 288, 384))
    sizes = {"batch": about(chance, 1, 128), "channels": 3, "out": about(chance, 48, 1024, 16), "height": size}
    stride = chance.choice((kernel, kernel, max(1, kernel // 2), 2, 4))
    return in_order(convolution(chance, **sizes, width=size, kernel=kernel, stride=stride))


def dense_squares(chance: Chance) -> Parameters:
    channels, size = about(chance, 64, 1024, 32), about(chance, 7, 112)
    out = chance.choice((channels, channels, channels * 2))
    sizes = {"batch": about(chance, 8, 128), "channels": channels, "out": out, "height": size, "width": size}
    return in_order(convolution(chance, **sizes, kernel=3, stride=chance.choice((1, 1, 2)), padding=1))


def thin(chance: Chance) -> Parameters:
    size = about(chance, 28, 160)
    sizes = {"batch": about(chance, 4, 128), "channels": about(chance, 8, 128, 8), "out": about(chance, 8, 128, 8)}
    kernel = chance.choice((1, 1, 3))
    return in_order(convolution(chance, **sizes, height=size, width=size, kernel=kernel, padding=kernel // 2))


def windows(chance: Chance) -> Parameters:
    tokens, heads = chance.choice((16, 49, 49, 64, 100, 144, 196)), about(chance, 1, 24)
    width, batch = chance.choice((16, 32, 32, 48, 64)), about(chance, 64, 16384)
    keys = chance.choice((tokens, tokens, tokens, 49))
    batch = max(1, min(batch, 200_000 // heads))
    return {"batch": batch, "heads": heads, "queries": tokens, "keys": keys, "width": width, "causal": False}


def short_rows(chance: Chance) -> Parameters:
    form = chance.choice(("layer", "layer", "layer", "rms"))
    rows, channels = about(chance, 20_000, 1_000_000), about(chance, 24, 384, 8)
    return {"form": form, "batch": rows, "channels": channels, "height": 1, "width": 1}


def few_heads(chance: Chance) -> Parameters:
    heads = chance.choice((3, 4, 4, 6, 8, 8, 12, 16, 24, 32))
    wide = chance.choice((heads, heads, heads, 2 * heads, 4 * heads))
    inward, outward = (heads, wide) if chance.random() < 0.5 else (wide, heads)
    return {"rows": about(chance, 20_000, 10_000_000), "in": inward, "out": outward, "bias": chance.random() < 0.5}


def in_wide_groups(chance: Chance) -> Parameters:
    """Draws groups from narrow to wide: libraries choose their kernels by the width of a group."""
    within, groups = about(chance, 4, 264, chance.choice((4, 8, 8))), about(chance, 2, 64)
    channels = within * max(2, min(groups, 4096 // within))
    groups = channels // within
    kernel, size = chance.choice((3, 3, 3, 3, 1, 5, 7)), about(chance, 7, 112)
    sizes = {"batch": about(chance, 1, 128), "channels": channels, "out": channels * chance.choice((1, 1, 1, 1, 2))}
    stride = chance.choice((1, 1, 2))
    return in_order(
        convolution(
            chance, **sizes, height=size, width=size, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups
        )
    )


def depthwise(chance: Chance) -> Parameters:
    channels, size = about(chance, 16, 1536, 8), about(chance, 7, 128)
    kernel, stride = chance.choice((3, 3, 3, 5, 5, 7, 7, 9, 11)), chance.choice((1, 1, 1, 2))
    sizes = {"batch": about(chance, 1, 128), "channels": channels, "out": channels, "height": size, "width": size}
    drawn = convolution(chance, **sizes, kernel=kernel, stride=stride, padding=kernel // 2, groups=channels)
    return in_order({**drawn, "channels_last": chance.random() < 0.4})


def pointwise(chance: Chance) -> Parameters:
    channels, size = about(chance, 16, 2048, 8), about(chance, 4, 128)
    out = chance.choice((channels, channels * 2, channels * 4, channels // 4, channels // 2, about(chance, 16, 2048, 8)))
    sizes = {"batch": about(chance, 1, 256), "channels": channels, "out": max(8, min(out, 4096))}
    stride = chance.choice((1, 1, 1, 1, 1, 2))
    return in_order(convolution(chance, **sizes, height=size, width=size, kernel=1, stride=stride))


def squares(chance: Chance) -> Parameters:
    channels, size = about(chance, 16, 768, 8), about(chance, 7, 224)
    out = chance.choice((channels, channels, channels * 2, about(chance, 16, 768, 8)))
    sizes = {"batch": about(chance, 1, 256), "channels": channels, "out": out, "height": size, "width": size}
    return in_order(convolution(chance, **sizes, kernel=3, stride=chance.choice((1, 1, 1, 2)), padding=1))


def large_kernels(chance: Chance) -> Parameters:
    kernel = chance.choice((2, 2, 4, 5, 5, 7, 7, 11))
    stride = kernel if kernel % 2 == 0 else chance.choice((1, 2, 2))
    channels, size = chance.choice((3, about(chance, 16, 768, 8))), about(chance, 14, 224, 2)
    sizes = {"batch": about(chance, 1, 128), "channels": channels, "out": about(chance, 32, 1024, 8)}
    padding = 0 if stride == kernel else kernel // 2
    return in_order(convolution(chance, **sizes, height=size, width=size, kernel=kernel, stride=stride, padding=padding))


# Most networks halve images of these side lengths until few pixels are left, and run in batches that are powers of
# two. Libraries choose kernels by such sizes, so other sizes say little about them.
USUAL_SIDES = (224, 192, 256, 160, 288)
USUAL_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def usual(chance: Chance, halvings: tuple[int, int]) -> Parameters:
    side = chance.choice((224, 224, *USUAL_SIDES)) // 2 ** chance.randint(*halvings)
    return {"batch": 2 ** chance.choice((0, 2, 3, 4, 5, 5, 6, 6, 7, 7)), "height": side, "width": side}


def usual_groups(chance: Chance) -> Parameters:
    within = chance.choice((4, 8, 16, 16, 24, 32, 32, 40, 48, 56, 64, 64, 80, 96, 112, 128, 168, 192, 224, 256))
    channels = within * chance.choice([many for many in (2, 3, 4, 6, 8, 12, 16, 24, 32, 32, 64) if many * within <= 4096])
    told = {**usual(chance, (1, 5)), "channels": channels, "out": channels, "groups": channels // within}
    return in_order(convolution(chance, **told, kernel=3, stride=chance.choice((1, 1, 1, 2)), padding=1))


def usual_depthwise(chance: Chance) -> Parameters:
    channels, kernel = chance.choice(USUAL_WIDTHS[1:]), chance.choice((3, 3, 5, 7))
    told = {**usual(chance, (1, 5)), "channels": channels, "out": channels, "groups": channels}
    drawn = convolution(chance, **told, kernel=kernel, stride=chance.choice((1, 1, 1, 2)), padding=kernel // 2)
    return in_order({**drawn, "channels_last": chance.random() < 0.4})


def usual_pointwise(chance: Chance) -> Parameters:
    channels, by = chance.choice(USUAL_WIDTHS), chance.choice((1, 2, 3, 4, 4, 6, 0.25, 0.25, 0.5))
    told = {**usual(chance, (2, 5)), "channels": channels, "out": max(8, int(channels * by))}
    return in_order(convolution(chance, **told, kernel=1))


def usual_squares(chance: Chance) -> Parameters:
    channels = chance.choice(USUAL_WIDTHS[1:-1])
    told = {**usual(chance, (0, 5)), "channels": channels, "out": channels * chance.choice((1, 1, 1, 2))}
    return in_order(convolution(chance, **told, kernel=3, stride=chance.choice((1, 1, 1, 2)), padding=1))


def usual_downsampling(chance: Chance) -> Parameters:
    kernel, stride = chance.choice(((2, 2), (2, 2), (4, 4), (7, 2), (3, 2), (5, 2)))
    into = chance.choice(USUAL_WIDTHS[2:-2])
    stem = kernel > 2 and chance.random() < 0.6
    told = {**usual(chance, (0, 0) if stem else (1, 4)), "channels": 3 if stem else into, "out": into * 2}
    padding = 0 if stride == kernel else kernel // 2
    return in_order(convolution(chance, **told, kernel=kernel, stride=stride, padding=padding))


CORNERS: tuple[tuple[str, Callable[[Chance], Parameters], int], ...] = (
    ("convolution", grouped, 130),
    ("convolution", widening_depthwise, 40),
    ("convolution", patches, 70),
    ("convolution", dense_squares, 110),
    ("convolution", thin, 60),
    ("attention", windows, 130),
    ("normalization", short_rows, 60),
    ("dense", few_heads, 60),
    ("convolution", in_wide_groups, 800),
    ("convolution", depthwise, 500),
    ("convolution", pointwise, 500),
    ("convolution", squares, 400),
    ("convolution", large_kernels, 250),
    ("convolution", usual_groups, 900),
    ("convolution", usual_depthwise, 450),
    ("convolution", usual_pointwise, 450),
    ("convolution", usual_squares, 350),
    ("convolution", usual_downsampling, 150),
)


def plan() -> list[Planned]:
    chance = random.Random(f"{SEED} corners")
    rows: dict[str, Planned] = {}
    for kind, draw, count in CORNERS:
        wanted = len(rows) + count
        while len(rows) < wanted:
            row = drawn(chance, kind, draw(chance))
            if is_small_enough(cost_of(KINDS[kind].work(row.parameters), row.dtype, row.which), row.dtype):
                rows.setdefault(row.key, row)
    shuffled = list(rows.values())
    chance.shuffle(shuffled)
    return shuffled


def drawn(chance: Chance, kind: str, parameters: Parameters) -> Planned:
    told = KINDS[kind]
    # Two of three rows are forward passes: inference runs nothing else.
    which = told.passes[0] if chance.random() < 0.66 or has_no_backward(kind, parameters) else told.passes[1]
    return Planned(kind, parameters, chance.choice(told.dtypes), which, False, "designed")
