# SPDX-License-Identifier: Apache-2.0
"""Operations on images: convolution, pooling, padding, resize, and normalization of any tensor."""

from __future__ import annotations

from .kind import BuiltOperation, ForwardWork, OperationKind, choose_option, draw_size, draw_width, element_count
from .kinds_products import DRAWN_PASSES, PRODUCT_DTYPES

DRAWN_CONVOLUTION_FORMS = ("plain", "one", "depthwise", "plain", "one", "grouped", "plain", "plain")


def draw_convolution_parameters(u):
    form, kernel = choose_option(u[5], DRAWN_CONVOLUTION_FORMS), choose_option(u[4], (3, 3, 3, 3, 5, 7, 2, 4))
    channels = 3 if u[1] < 0.06 and form == "plain" else draw_width(u[1], 8, 2048)
    out, groups = draw_width(u[2], 8, 2048), 1
    if form == "one":
        kernel = 1
    elif form == "depthwise":
        out = groups = channels
    elif form == "grouped":
        groups = choose_option(u[7] * 7 % 1, (2, 4, 8, 16, 32))
        channels, out = (max(groups, value // groups * groups) for value in (channels, out))
    size = draw_size(u[3], 4, 448)
    stride = choose_option(u[6], (1, 1, 1, 2, 2, kernel))
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


def value_along_width(p, name: str) -> int:
    """Returns the value for the width, which equals the one for the height unless given separately."""
    return p.get(f"{name}_width", p[name])


def height_and_width(p, name: str) -> tuple[int, int]:
    return p[name], value_along_width(p, name)


def compute_output_side(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return max(0, (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)


def output_pixel_count(p) -> int:
    dilation = p.get("dilation", 1)
    height = compute_output_side(p["height"], p["kernel"], p["stride"], p["padding"], dilation)
    width_parameters = (value_along_width(p, name) for name in ("kernel", "stride", "padding"))
    return height * compute_output_side(p["width"], *width_parameters, dilation)


def build_convolution(make, p):
    torch = make.torch
    x = make.make_input(p["batch"], p["channels"], p["height"], p["width"], channels_last=p["channels_last"])
    weight_shape = (p["out"], p["channels"] // p["groups"], *height_and_width(p, "kernel"))
    weight = make.make_weight(*weight_shape, channels_last=p["channels_last"])
    bias = make.make_weight(p["out"]) if p["bias"] else None
    more = {key: height_and_width(p, key) for key in ("stride", "padding")}
    more.update(dilation=p["dilation"], groups=p["groups"])
    convolve = torch.nn.functional.conv2d
    return BuiltOperation(lambda: convolve(x, weight, bias, **more), [x], [weight] if bias is None else [weight, bias])


def count_convolution_work(p):
    out_pixels = output_pixel_count(p)
    into = element_count(p["batch"], p["channels"], p["height"], p["width"])
    filters = element_count(p["out"], p["channels"] // p["groups"], *height_and_width(p, "kernel"))
    flops = 2 * p["batch"] * out_pixels * filters
    return ForwardWork(
        flops, into, p["batch"] * p["out"] * out_pixels, filters + p["bias"] * p["out"], saved_for_backward=into
    )


def draw_pooling_parameters(u):
    form, kernel = choose_option(u[4], ("max", "avg", "adaptive", "max")), choose_option(u[5], (2, 3, 3, 5, 7))
    size = draw_size(u[2], 7, 448)
    image = {"batch": draw_size(u[0], 1, 256), "channels": draw_width(u[1], 3, 2048), "height": size, "width": size}
    if form == "adaptive":
        return {"form": form, **image, "out": choose_option(u[3], (1, 1, 7))}
    stride, padding = choose_option(u[3], (2, 2, 1, kernel)), kernel // 2 if u[3] * 8 % 1 < 0.5 else 0
    return {"form": form, **image, "kernel": kernel, "stride": stride, "padding": padding}


def build_pooling(make, p):
    functional = make.torch.nn.functional
    x = make.make_input(p["batch"], p["channels"], p["height"], p["width"])
    if p["form"] == "adaptive":
        return BuiltOperation(lambda: functional.adaptive_avg_pool2d(x, p["out"]), [x])
    pool = functional.max_pool2d if p["form"] == "max" else functional.avg_pool2d
    return BuiltOperation(lambda: pool(x, p["kernel"], p["stride"], p["padding"]), [x])


def count_pooling_work(p):
    image = p["batch"] * p["channels"]
    if p["form"] == "adaptive":
        return ForwardWork(image * p["height"] * p["width"], image * p["height"] * p["width"], image * p["out"] ** 2)
    outputs = image * output_pixel_count(p)
    indices = 8 * outputs if p["form"] == "max" else 0
    return ForwardWork(outputs * p["kernel"] ** 2, image * p["height"] * p["width"], outputs, other_bytes=indices)


def draw_image_shape(u):
    return {
        "batch": draw_size(u[0], 1, 256),
        "channels": draw_width(u[1], 3, 2048),
        "height": (size := draw_size(u[2], 4, 448)),
        "width": size,
    }


def image_element_count(p) -> int:
    return element_count(p["batch"], p["channels"], p["height"], p["width"])


def draw_padding_parameters(u):
    form = choose_option(u[3], ("constant", "constant", "reflect", "replicate"))
    return {**draw_image_shape(u), "form": form, "padding": choose_option(u[4], (1, 2, 3, 1))}


def build_padding(make, p):
    x = make.make_input(p["batch"], p["channels"], p["height"], p["width"])
    pad, before = make.torch.nn.functional.pad, p["padding"]
    height, width = padded_size(p)
    sides = (before, width - p["width"] - before, before, height - p["height"] - before)
    return BuiltOperation(lambda: pad(x, sides, mode=p["form"]), [x])


def padded_size(p) -> tuple[int, int]:
    """Returns height and width after padding. `p` contains out_height and out_width where padding is asymmetric."""
    return tuple(p.get(f"out_{side}", p[side] + 2 * p["padding"]) for side in ("height", "width"))


def count_padding_work(p):
    outputs = element_count(p["batch"], p["channels"], *padded_size(p))
    return ForwardWork(outputs, image_element_count(p), outputs)


def draw_resize_parameters(u):
    form = choose_option(u[3], ("nearest", "bilinear"))
    return {
        **draw_image_shape(u),
        "form": form,
        "out": max(4, int(draw_size(u[2], 4, 448) * choose_option(u[4], (2, 2, 0.5, 1.5)))),
    }


def build_resize(make, p):
    x = make.make_input(p["batch"], p["channels"], p["height"], p["width"])
    resize = make.torch.nn.functional.interpolate
    return BuiltOperation(lambda: resize(x, size=(p["out"], p["out"]), mode=p["form"]), [x])


def count_resize_work(p):
    outputs = p["batch"] * p["channels"] * p["out"] ** 2
    return ForwardWork(outputs, image_element_count(p), outputs)


def draw_normalization_parameters(u):
    form = choose_option(u[4], ("batch", "layer", "batch", "group", "batch-inference", "rms", "layer"))
    if form in ("layer", "rms"):
        rows, width = draw_size(u[0] * 0.5 + u[2] * 0.5, 1, 262144), draw_width(u[1], 32, 16384)
        return {"form": form, "batch": rows, "channels": width, "height": 1, "width": 1}
    image = draw_image_shape(u)
    image["channels"] = max(8, image["channels"] // 8 * 8)
    return {"form": form, **image}


def build_normalization(make, p):
    functional, form, channels = make.torch.nn.functional, p["form"], p["channels"]
    gain, offset = make.make_weight(channels), make.make_weight(channels)
    if form in ("layer", "rms"):
        x = make.make_input(p["batch"], channels)
        if form == "layer":
            return BuiltOperation(lambda: functional.layer_norm(x, (channels,), gain, offset), [x], [gain, offset])
        return BuiltOperation(lambda: functional.rms_norm(x, (channels,), gain), [x], [gain])
    x = make.make_input(p["batch"], channels, p["height"], p["width"])
    if form == "group":
        return BuiltOperation(lambda: functional.group_norm(x, 8, gain, offset), [x], [gain, offset])
    mean, variance = make.make_constant(0.0, channels), make.make_constant(1.0, channels)
    norm, trains = functional.batch_norm, form == "batch"
    return BuiltOperation(lambda: norm(x, mean, variance, gain, offset, training=trains), [x], [gain, offset])


def count_normalization_work(p):
    size = image_element_count(p)
    return ForwardWork(size, size, size, 2 * p["channels"], saved_for_backward=size)


KINDS = [
    OperationKind(
        "convolution",
        2400,
        9,
        draw_convolution_parameters,
        build_convolution,
        count_convolution_work,
        PRODUCT_DTYPES,
        DRAWN_PASSES,
    ),
    OperationKind("pooling", 420, 6, draw_pooling_parameters, build_pooling, count_pooling_work),
    OperationKind("padding", 240, 5, draw_padding_parameters, build_padding, count_padding_work),
    OperationKind("resize", 140, 5, draw_resize_parameters, build_resize, count_resize_work),
    OperationKind(
        "normalization", 760, 5, draw_normalization_parameters, build_normalization, count_normalization_work
    ),
]
