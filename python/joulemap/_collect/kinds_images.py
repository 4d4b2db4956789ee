# SPDX-License-Identifier: Apache-2.0
"""Operations on images: convolution, pooling, padding, resize, and normalization of any tensor."""

from __future__ import annotations

from .kind import BuiltOperation, Kind, Work, choose, product, draw_size, draw_width
from .kinds_products import ALL_PASSES, TENSOR_TYPES

FORMS = ("plain", "one", "depthwise", "plain", "one", "grouped", "plain", "plain")


def draw_convolution(u):
    form, kernel = choose(u[5], FORMS), choose(u[4], (3, 3, 3, 3, 5, 7, 2, 4))
    channels = 3 if u[1] < 0.06 and form == "plain" else draw_width(u[1], 8, 2048)
    out, groups = draw_width(u[2], 8, 2048), 1
    if form == "one":
        kernel = 1
    elif form == "depthwise":
        out = groups = channels
    elif form == "grouped":
        groups = choose(u[7] * 7 % 1, (2, 4, 8, 16, 32))
        channels, out = (max(groups, value // groups * groups) for value in (channels, out))
    size = draw_size(u[3], 4, 448)
    stride = choose(u[6], (1, 1, 1, 2, 2, kernel))
    return {
        "batch": draw_size(u[0], 1, 256),
        "channels": channels,
        "out": out,
        "height": size,
        "width": size if u[8] < 0.9 else max(4, size // 2),
        "kernel": kernel,
        "stride": stride,
        "padding": kernel // 2 if stride < max(2, kernel) else 0,
        "dilation": 2 if kernel == 3 and u[8] > 0.95 else 1,
        "groups": groups,
        "bias": u[7] < 0.3,
        "channels_last": u[8] * 10 % 1 < 0.3,
    }


def of_width(p, name: str) -> int:
    """Returns the value for the width, which equals the one for the height unless given separately."""
    return p.get(f"{name}_width", p[name])


def both(p, name: str) -> tuple[int, int]:
    return p[name], of_width(p, name)


def pooled_side(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return max(0, (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)


def pooled_pixels(p) -> int:
    dilation = p.get("dilation", 1)
    height = pooled_side(p["height"], p["kernel"], p["stride"], p["padding"], dilation)
    return height * pooled_side(p["width"], *(of_width(p, name) for name in ("kernel", "stride", "padding")), dilation)


def build_convolution(make, p):
    torch = make.torch
    x = make.input(p["batch"], p["channels"], p["height"], p["width"], channels_last=p["channels_last"])
    weight_shape = (p["out"], p["channels"] // p["groups"], *both(p, "kernel"))
    weight = make.weight(*weight_shape, channels_last=p["channels_last"])
    bias = make.weight(p["out"]) if p["bias"] else None
    more = {"stride": both(p, "stride"), "padding": both(p, "padding"), "dilation": p["dilation"], "groups": p["groups"]}
    convolve = torch.nn.functional.conv2d
    return BuiltOperation(lambda: convolve(x, weight, bias, **more), [x], [weight] if bias is None else [weight, bias])


def work_convolution(p):
    out_pixels = pooled_pixels(p)
    into = product(p["batch"], p["channels"], p["height"], p["width"])
    filters = product(p["out"], p["channels"] // p["groups"], *both(p, "kernel"))
    flops = 2 * p["batch"] * out_pixels * filters
    return Work(flops, into, p["batch"] * p["out"] * out_pixels, filters + p["bias"] * p["out"], saved=into)


def draw_pooling(u):
    form, kernel = choose(u[4], ("max", "avg", "adaptive", "max")), choose(u[5], (2, 3, 3, 5, 7))
    size = draw_size(u[2], 7, 448)
    image = {"batch": draw_size(u[0], 1, 256), "channels": draw_width(u[1], 3, 2048), "height": size, "width": size}
    if form == "adaptive":
        return {"form": form, **image, "out": choose(u[3], (1, 1, 7))}
    stride, padding = choose(u[3], (2, 2, 1, kernel)), kernel // 2 if u[3] * 8 % 1 < 0.5 else 0
    return {"form": form, **image, "kernel": kernel, "stride": stride, "padding": padding}


def build_pooling(make, p):
    functional = make.torch.nn.functional
    x = make.input(p["batch"], p["channels"], p["height"], p["width"])
    if p["form"] == "adaptive":
        return BuiltOperation(lambda: functional.adaptive_avg_pool2d(x, p["out"]), [x])
    pool = functional.max_pool2d if p["form"] == "max" else functional.avg_pool2d
    return BuiltOperation(lambda: pool(x, p["kernel"], p["stride"], p["padding"]), [x])


def work_pooling(p):
    image = p["batch"] * p["channels"]
    if p["form"] == "adaptive":
        return Work(image * p["height"] * p["width"], image * p["height"] * p["width"], image * p["out"] ** 2)
    outputs = image * pooled_pixels(p)
    indices = 8 * outputs if p["form"] == "max" else 0
    return Work(outputs * p["kernel"] ** 2, image * p["height"] * p["width"], outputs, other_bytes=indices)


def draw_image(u):
    return {
        "batch": draw_size(u[0], 1, 256),
        "channels": draw_width(u[1], 3, 2048),
        "height": (size := draw_size(u[2], 4, 448)),
        "width": size,
    }


def image_elements(p) -> int:
    return product(p["batch"], p["channels"], p["height"], p["width"])


def draw_padding(u):
    form = choose(u[3], ("constant", "constant", "reflect", "replicate"))
    return {**draw_image(u), "form": form, "padding": choose(u[4], (1, 2, 3, 1))}


def build_padding(make, p):
    x = make.input(p["batch"], p["channels"], p["height"], p["width"])
    pad, before = make.torch.nn.functional.pad, p["padding"]
    height, width = padded(p)
    sides = (before, width - p["width"] - before, before, height - p["height"] - before)
    return BuiltOperation(lambda: pad(x, sides, mode=p["form"]), [x])


def padded(p) -> tuple[int, int]:
    """Returns height and width after padding. `p` contains out_height and out_width where padding is asymmetric."""
    return tuple(p.get(f"out_{side}", p[side] + 2 * p["padding"]) for side in ("height", "width"))


def work_padding(p):
    outputs = product(p["batch"], p["channels"], *padded(p))
    return Work(outputs, image_elements(p), outputs)


def draw_resize(u):
    form = choose(u[3], ("nearest", "bilinear"))
    return {**draw_image(u), "form": form, "out": max(4, int(draw_size(u[2], 4, 448) * choose(u[4], (2, 2, 0.5, 1.5))))}


def build_resize(make, p):
    x = make.input(p["batch"], p["channels"], p["height"], p["width"])
    resize = make.torch.nn.functional.interpolate
    return BuiltOperation(lambda: resize(x, size=(p["out"], p["out"]), mode=p["form"]), [x])


def work_resize(p):
    outputs = p["batch"] * p["channels"] * p["out"] ** 2
    return Work(outputs, image_elements(p), outputs)


def draw_normalization(u):
    form = choose(u[4], ("batch", "layer", "batch", "group", "batch-inference", "rms", "layer"))
    if form in ("layer", "rms"):
        rows, width = draw_size(u[0] * 0.5 + u[2] * 0.5, 1, 262144), draw_width(u[1], 32, 16384)
        return {"form": form, "batch": rows, "channels": width, "height": 1, "width": 1}
    image = draw_image(u)
    image["channels"] = max(8, image["channels"] // 8 * 8)
    return {"form": form, **image}


def build_normalization(make, p):
    functional, form, channels = make.torch.nn.functional, p["form"], p["channels"]
    gain, offset = make.weight(channels), make.weight(channels)
    if form in ("layer", "rms"):
        x = make.input(p["batch"], channels)
        if form == "layer":
            return BuiltOperation(lambda: functional.layer_norm(x, (channels,), gain, offset), [x], [gain, offset])
        return BuiltOperation(lambda: functional.rms_norm(x, (channels,), gain), [x], [gain])
    x = make.input(p["batch"], channels, p["height"], p["width"])
    if form == "group":
        return BuiltOperation(lambda: functional.group_norm(x, 8, gain, offset), [x], [gain, offset])
    mean, variance = make.constant(0.0, channels), make.constant(1.0, channels)
    norm, trains = functional.batch_norm, form == "batch"
    return BuiltOperation(lambda: norm(x, mean, variance, gain, offset, training=trains), [x], [gain, offset])


def work_normalization(p):
    size = image_elements(p)
    return Work(size, size, size, 2 * p["channels"], saved=size)


KINDS = [
    Kind("convolution", 2400, 9, draw_convolution, build_convolution, work_convolution, TENSOR_TYPES, ALL_PASSES),
    Kind("pooling", 420, 6, draw_pooling, build_pooling, work_pooling),
    Kind("padding", 240, 5, draw_padding, build_padding, work_padding),
    Kind("resize", 140, 5, draw_resize, build_resize, work_resize),
    Kind("normalization", 760, 5, draw_normalization, build_normalization, work_normalization),
]
