# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: LSTM, GRU and plain RNN; a stack of layers is one cuDNN call. They run without CUDA graphs, as in
real programs: their many launches are part of the time of a call."""

from __future__ import annotations

from .kind import (
    PASS_BACKWARD,
    PASS_FORWARD,
    BuiltOperation,
    ForwardWork,
    OperationKind,
    choose_option,
    draw_size,
    draw_width,
)

GATE_COUNTS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Maximum time steps over all layers: each step waits for the previous one, so longer calls take too long to measure.
MAX_TIME_STEPS = 1536


def draw_recurrent_parameters(unit_draws):
    layers = choose_option(unit_draws[4], (1, 1, 2, 3))
    hidden_size = draw_width(unit_draws[2], 32, 2048)
    return {
        "form": choose_option(unit_draws[6], ("lstm", "gru", "lstm", "rnn_tanh", "lstm", "gru", "rnn_relu")),
        "batch": draw_size(unit_draws[0], 1, 256),
        "steps": min(draw_size(unit_draws[1], 8, 1024), MAX_TIME_STEPS // layers),
        "in": hidden_size if unit_draws[3] < 0.4 else draw_width((unit_draws[3] - 0.4) / 0.6, 16, 2048),
        "hidden": hidden_size,
        "layers": layers,
        "directions": 2 if unit_draws[5] < 0.3 else 1,
        "bias": 1,
    }


def build_recurrent(tensor_factory, parameters):
    nn = tensor_factory.torch.nn
    form = parameters["form"]
    module_options = {"nonlinearity": form.removeprefix("rnn_")} if form.startswith("rnn") else {}
    module_type = {"lstm": nn.LSTM, "gru": nn.GRU}.get(form, nn.RNN)
    module = module_type(
        parameters["in"],
        parameters["hidden"],
        parameters["layers"],
        bidirectional=parameters["directions"] == 2,
        **module_options,
    )
    module = module.to(device=tensor_factory.device, dtype=tensor_factory.dtype).train(
        tensor_factory.requires_gradients
    )
    weights = list(module.parameters())
    for weight in weights:
        weight.requires_grad_(tensor_factory.requires_gradients)
    x = tensor_factory.make_input(parameters["steps"], parameters["batch"], parameters["in"])
    return BuiltOperation(lambda: module(x)[0], [x], weights)


def count_recurrent_work(parameters):
    """Counts the products of all time steps, layers and directions; a gate value is one FLOP."""
    rows, total_gate_size = (
        parameters["batch"] * parameters["steps"],
        GATE_COUNTS[parameters["form"]] * parameters["hidden"],
    )
    layers, directions, hidden_size = parameters["layers"], parameters["directions"], parameters["hidden"]
    product_inputs = parameters["in"] + (layers - 1) * directions * hidden_size
    weight_elements = directions * total_gate_size * (product_inputs + layers * hidden_size)
    gate_values = directions * layers * rows * total_gate_size
    inputs, outputs = rows * parameters["in"], rows * directions * hidden_size
    return ForwardWork(
        2 * rows * weight_elements + gate_values,
        inputs,
        outputs,
        weight_elements + parameters["bias"] * 2 * directions * layers * total_gate_size,
        saved_for_backward=inputs + gate_values + directions * layers * rows * hidden_size,
        intermediates=2 * gate_values + 2 * (layers - 1) * outputs,
        gradients=2 * gate_values,
    )


RECURRENT_DTYPES = ("tf32", "fp16", "tf32", "bf16", "fp32")
KINDS = [
    OperationKind(
        "recurrent",
        320,
        7,
        draw_recurrent_parameters,
        build_recurrent,
        count_recurrent_work,
        RECURRENT_DTYPES,
        (PASS_FORWARD, PASS_BACKWARD),
        False,
    )
]
