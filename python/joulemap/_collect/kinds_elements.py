# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations and data movement: activation, rescaling, reshape, dropout, add, multiply, concatenate,
cast, reduce, and the input that is copied from the host."""

from __future__ import annotations

from .kind import (
    PASS_FORWARD,
    BuiltOperation,
    ForwardWork,
    OperationKind,
    choose_option,
    draw_size,
    draw_width,
    element_count,
)

# Activations to draw. The backward pass of each reads the input or the output of the forward pass.
DRAWN_ACTIVATIONS = (
    "relu",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "softmax",
    "hardswish",
    "leaky_relu",
    "relu6",
    "log_softmax",
)


def draw_tensor_shape(unit_draws):
    """Draws an image (batch, channels, pixels) or a text (batch, tokens, width); the last dimension is `width`."""
    if unit_draws[2] < 0.5:
        image_side = draw_size(unit_draws[3], 4, 256)
        return {
            "batch": draw_size(unit_draws[0], 1, 256),
            "rows": draw_width(unit_draws[1], 3, 2048),
            "width": image_side * image_side,
        }
    return {
        "batch": draw_size(unit_draws[0], 1, 256),
        "rows": draw_size(unit_draws[1], 1, 2048),
        "width": draw_width(unit_draws[3], 16, 16384),
    }


def tensor_element_count(parameters) -> int:
    return element_count(parameters["batch"], parameters["rows"], parameters["width"])


def make_tensor(tensor_factory, parameters):
    return tensor_factory.make_input(parameters["batch"], parameters["rows"], parameters["width"])


def draw_activation_parameters(unit_draws):
    return {"form": choose_option(unit_draws[4], DRAWN_ACTIVATIONS), **draw_tensor_shape(unit_draws)}


def build_activation(tensor_factory, parameters):
    x, activate = (
        make_tensor(tensor_factory, parameters),
        getattr(tensor_factory.torch.nn.functional, parameters["form"]),
    )
    if parameters["form"] in ("softmax", "log_softmax"):
        return BuiltOperation(lambda: activate(x, -1), [x])
    return BuiltOperation(lambda: activate(x), [x])


def count_activation_work(parameters):
    return ForwardWork(
        tensor_element_count(parameters),
        tensor_element_count(parameters),
        tensor_element_count(parameters),
        saved_for_backward=tensor_element_count(parameters),
    )


def draw_rescaling_parameters(unit_draws):
    return {**draw_tensor_shape(unit_draws), "from_bytes": unit_draws[4] < 0.4}


def build_rescaling(tensor_factory, parameters):
    x = (
        tensor_factory.make_byte_tensor(parameters["batch"], parameters["rows"], parameters["width"])
        if parameters["from_bytes"]
        else make_tensor(tensor_factory, parameters)
    )
    if parameters["from_bytes"]:
        return BuiltOperation(lambda: x.to(tensor_factory.dtype) * 0.00784 + -1.0)
    return BuiltOperation(lambda: x * 0.5 + 0.25, [x])


def count_rescaling_work(parameters):
    """Counts two kernels in eager mode, three from bytes; includes writing and reading the intermediates between
    them."""
    size = tensor_element_count(parameters)
    intermediates = 2 * size if not parameters["from_bytes"] else 4 * size
    if parameters["from_bytes"]:
        return ForwardWork(2 * size, 0, size, intermediates=intermediates, other_bytes=size)
    return ForwardWork(2 * size, size, size, intermediates=intermediates)


def draw_reshape_parameters(unit_draws):
    return {
        "form": choose_option(unit_draws[4], ("heads", "channels-last", "channels-first", "transpose")),
        **draw_tensor_shape(unit_draws),
    }


def build_reshape(tensor_factory, parameters):
    x = make_tensor(tensor_factory, parameters)
    # As in attention: (batch, rows, heads, width) to heads first.
    if parameters["form"] == "heads" and parameters["width"] % 8 == 0:
        return BuiltOperation(
            lambda: x.view(parameters["batch"], parameters["rows"], 8, -1).transpose(1, 2).contiguous(), [x]
        )
    if parameters["form"] == "channels-first":
        transposed_tensor = x.transpose(1, 2)
        return BuiltOperation(lambda: transposed_tensor.reshape(parameters["batch"], -1), [x])
    if parameters["form"] == "transpose":
        flat_matrix = x.view(-1, parameters["width"])
        return BuiltOperation(lambda: flat_matrix.t().contiguous(), [x])
    return BuiltOperation(lambda: x.transpose(1, 2).contiguous(), [x])


def count_reshape_work(parameters):
    return ForwardWork(0, tensor_element_count(parameters), tensor_element_count(parameters))


def draw_dropout_parameters(unit_draws):
    return {**draw_tensor_shape(unit_draws), "rate": choose_option(unit_draws[4], (0.1, 0.2, 0.5))}


def build_dropout(tensor_factory, parameters):
    x, dropout = make_tensor(tensor_factory, parameters), tensor_factory.torch.nn.functional.dropout
    return BuiltOperation(lambda: dropout(x, parameters["rate"], training=True), [x])


def count_dropout_work(parameters):
    return ForwardWork(
        tensor_element_count(parameters),
        tensor_element_count(parameters),
        tensor_element_count(parameters),
        other_bytes=tensor_element_count(parameters),
    )


def draw_two_operand_parameters(unit_draws):
    return {
        "form": choose_option(unit_draws[4], ("same", "same", "row", "last", "scalar")),
        **draw_tensor_shape(unit_draws),
    }


def make_second_operand(tensor_factory, parameters):
    shapes = {
        "same": (parameters["batch"], parameters["rows"], parameters["width"]),
        "row": (parameters["batch"], parameters["rows"], 1),
        "last": (parameters["width"],),
    }
    return tensor_factory.make_input(*shapes.get(parameters["form"], (1,)))


def second_operand_element_count(parameters) -> int:
    return {
        "same": tensor_element_count(parameters),
        "row": parameters["batch"] * parameters["rows"],
        "last": parameters["width"],
    }.get(parameters["form"], 1)


def build_add(tensor_factory, parameters):
    first_operand, second_operand = (
        make_tensor(tensor_factory, parameters),
        make_second_operand(tensor_factory, parameters),
    )
    return BuiltOperation(
        lambda: tensor_factory.torch.add(first_operand, second_operand), [first_operand, second_operand]
    )


def count_add_work(parameters):
    return ForwardWork(
        tensor_element_count(parameters),
        tensor_element_count(parameters) + second_operand_element_count(parameters),
        tensor_element_count(parameters),
    )


def build_multiply(tensor_factory, parameters):
    first_operand, second_operand = (
        make_tensor(tensor_factory, parameters),
        make_second_operand(tensor_factory, parameters),
    )
    return BuiltOperation(
        lambda: tensor_factory.torch.mul(first_operand, second_operand), [first_operand, second_operand]
    )


def count_multiply_work(parameters):
    operand_elements = tensor_element_count(parameters) + second_operand_element_count(parameters)
    return ForwardWork(
        tensor_element_count(parameters),
        operand_elements,
        tensor_element_count(parameters),
        saved_for_backward=operand_elements,
    )


def draw_concatenate_parameters(unit_draws):
    return {**draw_tensor_shape(unit_draws), "parts": choose_option(unit_draws[4], (2, 2, 3, 4, 6))}


def build_concatenate(tensor_factory, parameters):
    input_tensors = [make_tensor(tensor_factory, parameters) for _ in range(parameters["parts"])]
    return BuiltOperation(lambda: tensor_factory.torch.cat(input_tensors, 1), input_tensors)


def count_concatenate_work(parameters):
    return ForwardWork(
        0,
        parameters["parts"] * tensor_element_count(parameters),
        parameters["parts"] * tensor_element_count(parameters),
    )


def draw_cast_parameters(unit_draws):
    return {"to": choose_option(unit_draws[4], ("bf16", "fp16", "fp32")), **draw_tensor_shape(unit_draws)}


def build_cast(tensor_factory, parameters):
    x, target_dtype = make_tensor(tensor_factory, parameters), tensor_factory.to_torch_dtype(parameters["to"])
    if target_dtype == tensor_factory.dtype:
        return BuiltOperation(lambda: x.clone(), [x])
    return BuiltOperation(lambda: x.to(target_dtype), [x])


def count_cast_work(parameters):
    output_bytes = tensor_element_count(parameters) * (4 if parameters["to"] == "fp32" else 2)
    return ForwardWork(0, tensor_element_count(parameters), 0, other_bytes=output_bytes)


def draw_reduce_parameters(unit_draws):
    return {
        "form": choose_option(unit_draws[4], ("mean", "sum", "amax")),
        "over": choose_option(unit_draws[5], ("last", "rows", "all")),
        **draw_tensor_shape(unit_draws),
    }


def build_reduce(tensor_factory, parameters):
    x, reduce_tensor = make_tensor(tensor_factory, parameters), getattr(tensor_factory.torch, parameters["form"])
    reduced_dims = {"last": (2,), "rows": (1,), "all": (0, 1, 2)}[parameters["over"]]
    return BuiltOperation(lambda: reduce_tensor(x, dim=reduced_dims), [x])


def count_reduce_work(parameters):
    output_elements = {
        "last": parameters["batch"] * parameters["rows"],
        "rows": parameters["batch"] * parameters["width"],
        "all": 1,
    }[parameters["over"]]
    return ForwardWork(tensor_element_count(parameters), tensor_element_count(parameters), output_elements)


def draw_input_parameters(unit_draws):
    image_side = draw_size(unit_draws[1], 16, 320)
    return {
        "batch": draw_size(unit_draws[0], 1, 256),
        "channels": choose_option(unit_draws[2], (3, 3, 1, 4)),
        "height": image_side,
        "width": image_side,
        "pinned": unit_draws[3] < 0.6,
        "bytes": unit_draws[4] < 0.3,
    }


def build_input(tensor_factory, parameters):
    pinned, shape = (
        bool(parameters["pinned"]),
        (parameters["batch"], parameters["channels"], parameters["height"], parameters["width"]),
    )
    host_tensor = tensor_factory.make_host_tensor(*shape, pinned=pinned, as_bytes=bool(parameters["bytes"]))
    return BuiltOperation(lambda: host_tensor.to(tensor_factory.device, non_blocking=pinned))


def count_input_work(parameters):
    size = element_count(parameters["batch"], parameters["channels"], parameters["height"], parameters["width"])
    return ForwardWork(0, 0, 0, other_bytes=size) if parameters["bytes"] else ForwardWork(0, 0, size)


KINDS = [
    OperationKind("activation", 760, 5, draw_activation_parameters, build_activation, count_activation_work),
    OperationKind("rescaling", 240, 5, draw_rescaling_parameters, build_rescaling, count_rescaling_work),
    OperationKind(
        "reshape", 300, 5, draw_reshape_parameters, build_reshape, count_reshape_work, passes=(PASS_FORWARD,)
    ),
    OperationKind("dropout", 240, 5, draw_dropout_parameters, build_dropout, count_dropout_work),
    OperationKind("add", 320, 5, draw_two_operand_parameters, build_add, count_add_work),
    OperationKind("multiply", 320, 5, draw_two_operand_parameters, build_multiply, count_multiply_work),
    OperationKind(
        "concatenate",
        280,
        5,
        draw_concatenate_parameters,
        build_concatenate,
        count_concatenate_work,
        passes=(PASS_FORWARD,),
    ),
    OperationKind("cast", 140, 5, draw_cast_parameters, build_cast, count_cast_work, passes=(PASS_FORWARD,)),
    OperationKind(
        "reduce",
        160,
        6,
        draw_reduce_parameters,
        build_reduce,
        count_reduce_work,
        passes=(PASS_FORWARD, PASS_FORWARD, "backward"),
    ),
    OperationKind(
        "input", 240, 5, draw_input_parameters, build_input, count_input_work, passes=(PASS_FORWARD,), in_graph=False
    ),
]
