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


def draw_recurrent_parameters(u):
    layers = choose_option(u[4], (1, 1, 2, 3))
    hidden = draw_width(u[2], 32, 2048)
    return {
        "form": choose_option(u[6], ("lstm", "gru", "lstm", "rnn_tanh", "lstm", "gru", "rnn_relu")),
        "batch": draw_size(u[0], 1, 256),
        "steps": min(draw_size(u[1], 8, 1024), MAX_TIME_STEPS // layers),
        "in": hidden if u[3] < 0.4 else draw_width((u[3] - 0.4) / 0.6, 16, 2048),
        "hidden": hidden,
        "layers": layers,
        "directions": 2 if u[5] < 0.3 else 1,
        "bias": 1,
    }


def build_recurrent(make, p):
    nn = make.torch.nn
    form = p["form"]
    named = {"nonlinearity": form.removeprefix("rnn_")} if form.startswith("rnn") else {}
    module_type = {"lstm": nn.LSTM, "gru": nn.GRU}.get(form, nn.RNN)
    module = module_type(p["in"], p["hidden"], p["layers"], bidirectional=p["directions"] == 2, **named)
    module = module.to(device=make.device, dtype=make.dtype).train(make.requires_gradients)
    weights = list(module.parameters())
    for weight in weights:
        weight.requires_grad_(make.requires_gradients)
    x = make.make_input(p["steps"], p["batch"], p["in"])
    return BuiltOperation(lambda: module(x)[0], [x], weights)


def count_recurrent_work(p):
    """Counts the products of all time steps, layers and directions; a gate value is one FLOP."""
    rows, gates = p["batch"] * p["steps"], GATE_COUNTS[p["form"]] * p["hidden"]
    layers, directions, hidden = p["layers"], p["directions"], p["hidden"]
    read = p["in"] + (layers - 1) * directions * hidden
    matrices = directions * gates * (read + layers * hidden)
    left = directions * layers * rows * gates
    inputs, outputs = rows * p["in"], rows * directions * hidden
    return ForwardWork(
        2 * rows * matrices + left,
        inputs,
        outputs,
        matrices + p["bias"] * 2 * directions * layers * gates,
        saved_for_backward=inputs + left + directions * layers * rows * hidden,
        intermediates=2 * left + 2 * (layers - 1) * outputs,
        gradients=2 * left,
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
