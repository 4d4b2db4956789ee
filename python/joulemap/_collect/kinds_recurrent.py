# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: LSTM, GRU and plain RNN; a stack of layers is one cuDNN call. They run without CUDA graphs, as in
real programs: their many launches are part of the time of a call."""

from __future__ import annotations

from .kind import BACKWARD, FORWARD, BuiltOperation, Kind, Work, choose, draw_size, draw_width

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Maximum time steps over all layers: each step waits for the previous one, so longer calls take too long to measure.
MAX_STEPS = 1536


def draw_recurrent(u):
    layers = choose(u[4], (1, 1, 2, 3))
    hidden = draw_width(u[2], 32, 2048)
    return {
        "form": choose(u[6], ("lstm", "gru", "lstm", "rnn_tanh", "lstm", "gru", "rnn_relu")),
        "batch": draw_size(u[0], 1, 256),
        "steps": min(draw_size(u[1], 8, 1024), MAX_STEPS // layers),
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
    module = module.to(device=make.device, dtype=make.dtype).train(make.gradients)
    weights = list(module.parameters())
    for weight in weights:
        weight.requires_grad_(make.gradients)
    x = make.input(p["steps"], p["batch"], p["in"])
    return BuiltOperation(lambda: module(x)[0], [x], weights)


def work_recurrent(p):
    """Counts the products of all time steps, layers and directions; a gate value is one FLOP."""
    rows, gates = p["batch"] * p["steps"], GATES[p["form"]] * p["hidden"]
    layers, directions, hidden = p["layers"], p["directions"], p["hidden"]
    read = p["in"] + (layers - 1) * directions * hidden
    matrices = directions * gates * (read + layers * hidden)
    left = directions * layers * rows * gates
    inputs, outputs = rows * p["in"], rows * directions * hidden
    return Work(
        2 * rows * matrices + left,
        inputs,
        outputs,
        matrices + p["bias"] * 2 * directions * layers * gates,
        saved=inputs + left + directions * layers * rows * hidden,
        intermediates=2 * left + 2 * (layers - 1) * outputs,
        gradients=2 * left,
    )


TYPES = ("tf32", "fp16", "tf32", "bf16", "fp32")
KINDS = [Kind("recurrent", 320, 7, draw_recurrent, build_recurrent, work_recurrent, TYPES, (FORWARD, BACKWARD), False)]
