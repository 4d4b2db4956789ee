# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: LSTM, GRU and plain RNN; a stack of layers is one cuDNN call. They run without CUDA graphs, as in
real programs: their many launches are part of the time of a call."""

from __future__ import annotations

from .kind import BACKWARD, FORWARD, Built, Kind, Work, one_of, whole, wide

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Maximum time steps over all layers: each step waits for the previous one, so longer calls take too long to measure.
MOST_STEPS = 1536


def draw_recurrent(u):
    layers = one_of(u[4], (1, 1, 2, 3))
    hidden = wide(u[2], 32, 2048)
    return {
        "form": one_of(u[6], ("lstm", "gru", "lstm", "rnn_tanh", "lstm", "gru", "rnn_relu")),
        "batch": whole(u[0], 1, 256),
        "steps": min(whole(u[1], 8, 1024), MOST_STEPS // layers),
        "in": hidden if u[3] < 0.4 else wide((u[3] - 0.4) / 0.6, 16, 2048),
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
    return Built(lambda: module(x)[0], [x], weights)


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
        kept=inputs + left + directions * layers * rows * hidden,
        between=2 * left + 2 * (layers - 1) * outputs,
        gradients=2 * left,
    )


TYPES = ("tf32", "fp16", "tf32", "bf16", "fp32")
KINDS = [Kind("recurrent", 320, 7, draw_recurrent, build_recurrent, work_recurrent, TYPES, (FORWARD, BACKWARD), False)]
