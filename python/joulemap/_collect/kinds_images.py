# SPDX-License-Identifier: Apache-2.0
"""Operations on images: convolution, pooling, padding, resize, and normalization of any tensor."""

from __future__ import annotations

from .kind import BuiltOperation, ForwardWork, OperationKind, choose_option, draw_size, draw_width, element_count
from .kinds_products import DRAWN_PASSES, PRODUCT_DTYPES

DRAWN_CONVOLUTION_FORMS = ("plain", "one", "depthwise", "plain", "one", "grouped", "plain", "plain")


def draw_convolution_parameters(unit_draws):
    form, kernel = (
        choose_option(unit_draws[5], DRAWN_CONVOLUTION_FORMS),
        choose_option(unit_draws[4], (3, 3, 3, 3, 5, 7, 2, 4)),
    )
    channels = 3 if unit_draws[1] < 0.06 and form == "plain" else draw_width(unit_draws[1], 8, 2048)
    out_channels, groups = draw_width(unit_draws[2], 8, 2048), 1
    if form == "one":
        kernel = 1
    elif form == "depthwise":
        out_channels = groups = channels
    elif form == "grouped":
        groups = choose_option(unit_draws[7] * 7 % 1, (2, 4, 8, 16, 32))
        channels, out_channels = (
            max(groups, channel_count // groups * groups) for channel_count in (channels, out_channels)
        )
    size = draw_size(unit_draws[3], 4, 448)
    stride = choose_option(unit_draws[6], (1, 1, 1, 2, 2, kernel))
    return {
        "batch": draw_size(unit_draws[0], 1, 256),
        "channels": channels,
        "out": out_channels,
        "height": size,
        "width": size if unit_draws[8] < 0.9 else max(4, size // 2),
        "kernel": kernel,
        "stride": stride,
        "padding": kernel // 2 if stride < max(2, kernel) else 0,
        "dilation": 2 if kernel == 3 and unit_draws[8] > 0.95 else 1,
        "groups": groups,
        "bias": unit_draws[7] < 0.3,
        "channels_last": unit_draws[8] * 10 % 1 < 0.3,
    }


def value_along_width(parameters, name: str) -> int:
    """Returns the value for the width, which equals the one for the height unless given separately."""
    return parameters.get(f"{name}_width", parameters[name])


def height_and_width(parameters, name: str) -> tuple[int, int]:
    return parameters[name], value_along_width(parameters, name)


def compute_output_side(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return max(0, (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)


def output_pixel_count(parameters) -> int:
    dilation = parameters.get("dilation", 1)
    height = compute_output_side(
        parameters["height"], parameters["kernel"], parameters["stride"], parameters["padding"], dilation
    )
    width_parameters = (value_along_width(parameters, name) for name in ("kernel", "stride", "padding"))
    return height * compute_output_side(parameters["width"], *width_parameters, dilation)


def build_convolution(tensor_factory, parameters):
    torch = tensor_factory.torch
    x = tensor_factory.make_input(
        parameters["batch"],
        parameters["channels"],
        parameters["height"],
        parameters["width"],
        channels_last=parameters["channels_last"],
    )
    weight_shape = (
        parameters["out"],
        parameters["channels"] // parameters["groups"],
        *height_and_width(parameters, "kernel"),
    )
    weight = tensor_factory.make_weight(*weight_shape, channels_last=parameters["channels_last"])
    bias = tensor_factory.make_weight(parameters["out"]) if parameters["bias"] else None
    window_options = {key: height_and_width(parameters, key) for key in ("stride", "padding")}
    window_options.update(dilation=parameters["dilation"], groups=parameters["groups"])
    convolve = torch.nn.functional.conv2d
    return BuiltOperation(
        lambda: convolve(x, weight, bias, **window_options), [x], [weight] if bias is None else [weight, bias]
    )


def count_convolution_work(parameters):
    output_pixels = output_pixel_count(parameters)
    input_elements = element_count(
        parameters["batch"], parameters["channels"], parameters["height"], parameters["width"]
    )
    weight_elements = element_count(
        parameters["out"], parameters["channels"] // parameters["groups"], *height_and_width(parameters, "kernel")
    )
    flops = 2 * parameters["batch"] * output_pixels * weight_elements
    return ForwardWork(
        flops,
        input_elements,
        parameters["batch"] * parameters["out"] * output_pixels,
        weight_elements + parameters["bias"] * parameters["out"],
        saved_for_backward=input_elements,
    )


def draw_pooling_parameters(unit_draws):
    form, kernel = (
        choose_option(unit_draws[4], ("max", "avg", "adaptive", "max")),
        choose_option(unit_draws[5], (2, 3, 3, 5, 7)),
    )
    size = draw_size(unit_draws[2], 7, 448)
    image = {
        "batch": draw_size(unit_draws[0], 1, 256),
        "channels": draw_width(unit_draws[1], 3, 2048),
        "height": size,
        "width": size,
    }
    if form == "adaptive":
        return {"form": form, **image, "out": choose_option(unit_draws[3], (1, 1, 7))}
    stride, padding = choose_option(unit_draws[3], (2, 2, 1, kernel)), kernel // 2 if unit_draws[3] * 8 % 1 < 0.5 else 0
    return {"form": form, **image, "kernel": kernel, "stride": stride, "padding": padding}


def build_pooling(tensor_factory, parameters):
    functional = tensor_factory.torch.nn.functional
    x = tensor_factory.make_input(
        parameters["batch"], parameters["channels"], parameters["height"], parameters["width"]
    )
    if parameters["form"] == "adaptive":
        return BuiltOperation(lambda: functional.adaptive_avg_pool2d(x, parameters["out"]), [x])
    pool = functional.max_pool2d if parameters["form"] == "max" else functional.avg_pool2d
    return BuiltOperation(lambda: pool(x, parameters["kernel"], parameters["stride"], parameters["padding"]), [x])


def count_pooling_work(parameters):
    image_count = parameters["batch"] * parameters["channels"]
    if parameters["form"] == "adaptive":
        return ForwardWork(
            image_count * parameters["height"] * parameters["width"],
            image_count * parameters["height"] * parameters["width"],
            image_count * parameters["out"] ** 2,
        )
    outputs = image_count * output_pixel_count(parameters)
    index_bytes = 8 * outputs if parameters["form"] == "max" else 0
    return ForwardWork(
        outputs * parameters["kernel"] ** 2,
        image_count * parameters["height"] * parameters["width"],
        outputs,
        other_bytes=index_bytes,
    )


def draw_image_shape(unit_draws):
    return {
        "batch": draw_size(unit_draws[0], 1, 256),
        "channels": draw_width(unit_draws[1], 3, 2048),
        "height": (size := draw_size(unit_draws[2], 4, 448)),
        "width": size,
    }


def image_element_count(parameters) -> int:
    return element_count(parameters["batch"], parameters["channels"], parameters["height"], parameters["width"])


def draw_padding_parameters(unit_draws):
    form = choose_option(unit_draws[3], ("constant", "constant", "reflect", "replicate"))
    return {**draw_image_shape(unit_draws), "form": form, "padding": choose_option(unit_draws[4], (1, 2, 3, 1))}


def build_padding(tensor_factory, parameters):
    x = tensor_factory.make_input(
        parameters["batch"], parameters["channels"], parameters["height"], parameters["width"]
    )
    pad, pad_before = tensor_factory.torch.nn.functional.pad, parameters["padding"]
    height, width = padded_size(parameters)
    pad_sizes = (
        pad_before,
        width - parameters["width"] - pad_before,
        pad_before,
        height - parameters["height"] - pad_before,
    )
    return BuiltOperation(lambda: pad(x, pad_sizes, mode=parameters["form"]), [x])


def padded_size(parameters) -> tuple[int, int]:
    """Returns height and width after padding. `parameters` contains out_height and out_width where padding is
    asymmetric."""
    return tuple(
        parameters.get(f"out_{dimension}", parameters[dimension] + 2 * parameters["padding"])
        for dimension in ("height", "width")
    )


def count_padding_work(parameters):
    outputs = element_count(parameters["batch"], parameters["channels"], *padded_size(parameters))
    return ForwardWork(outputs, image_element_count(parameters), outputs)


def draw_resize_parameters(unit_draws):
    form = choose_option(unit_draws[3], ("nearest", "bilinear"))
    return {
        **draw_image_shape(unit_draws),
        "form": form,
        "out": max(4, int(draw_size(unit_draws[2], 4, 448) * choose_option(unit_draws[4], (2, 2, 0.5, 1.5)))),
    }


def build_resize(tensor_factory, parameters):
    x = tensor_factory.make_input(
        parameters["batch"], parameters["channels"], parameters["height"], parameters["width"]
    )
    resize = tensor_factory.torch.nn.functional.interpolate
    return BuiltOperation(lambda: resize(x, size=(parameters["out"], parameters["out"]), mode=parameters["form"]), [x])


def count_resize_work(parameters):
    outputs = parameters["batch"] * parameters["channels"] * parameters["out"] ** 2
    return ForwardWork(outputs, image_element_count(parameters), outputs)


def draw_normalization_parameters(unit_draws):
    form = choose_option(unit_draws[4], ("batch", "layer", "batch", "group", "batch-inference", "rms", "layer"))
    if form in ("layer", "rms"):
        rows, width = (
            draw_size(unit_draws[0] * 0.5 + unit_draws[2] * 0.5, 1, 262144),
            draw_width(unit_draws[1], 32, 16384),
        )
        return {"form": form, "batch": rows, "channels": width, "height": 1, "width": 1}
    image = draw_image_shape(unit_draws)
    image["channels"] = max(8, image["channels"] // 8 * 8)
    return {"form": form, **image}


def build_normalization(tensor_factory, parameters):
    functional, form, channels = tensor_factory.torch.nn.functional, parameters["form"], parameters["channels"]
    scale_weight, shift_weight = tensor_factory.make_weight(channels), tensor_factory.make_weight(channels)
    if form in ("layer", "rms"):
        x = tensor_factory.make_input(parameters["batch"], channels)
        if form == "layer":
            return BuiltOperation(
                lambda: functional.layer_norm(x, (channels,), scale_weight, shift_weight),
                [x],
                [scale_weight, shift_weight],
            )
        return BuiltOperation(lambda: functional.rms_norm(x, (channels,), scale_weight), [x], [scale_weight])
    x = tensor_factory.make_input(parameters["batch"], channels, parameters["height"], parameters["width"])
    if form == "group":
        return BuiltOperation(
            lambda: functional.group_norm(x, 8, scale_weight, shift_weight), [x], [scale_weight, shift_weight]
        )
    mean, variance = tensor_factory.make_constant(0.0, channels), tensor_factory.make_constant(1.0, channels)
    batch_norm, is_training = functional.batch_norm, form == "batch"
    return BuiltOperation(
        lambda: batch_norm(x, mean, variance, scale_weight, shift_weight, training=is_training),
        [x],
        [scale_weight, shift_weight],
    )


def count_normalization_work(parameters):
    size = image_element_count(parameters)
    return ForwardWork(size, size, size, 2 * parameters["channels"], saved_for_backward=size)


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
