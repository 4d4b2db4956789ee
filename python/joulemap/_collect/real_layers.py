# SPDX-License-Identifier: Apache-2.0
"""Layers of real networks whose shapes the design uses: `real_layers.csv` beside this file, written by
tools/list_real_layers.py. Parameters are those of the kind, for one image or one text; the batch size is drawn.

It excludes the held-out families that evaluate predictions: ConvNeXt, DenseNet, RegNet, Swin, MaxViT, ShuffleNet,
ALBERT, T5, GPT-NeoX.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import NamedTuple

from .kind import Parameters, draw_size

FILE = Path(__file__).resolve().parent / "real_layers.csv"
# The parameter that scales with the batch size, by kind.
BATCH_PARAMETER = {"dense": "rows", "embedding": "tokens", "loss": "rows"}
MAX_BATCH = 256
# Share of convolutions drawn as channels-last; the listed layers do not specify it.
CHANNELS_LAST_SHARE = 0.3


class Layer(NamedTuple):
    kind: str
    family: str
    parameters: Parameters


def value_of(text: str):
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return text


@functools.cache
def all_layers() -> tuple[Layer, ...]:
    if not FILE.exists():
        return ()
    with FILE.open(newline="") as file:
        return tuple(
            Layer(
                line["kind"],
                line["family"],
                {name: value_of(text) for name, text in (pair.split("=") for pair in line["parameters"].split(";"))},
            )
            for line in csv.DictReader(file)
        )


def of_kind(kind: str) -> list[Layer]:
    return [layer for layer in all_layers() if layer.kind == kind]


def with_batch(layer: Layer, u: float) -> Parameters:
    batch_parameter = BATCH_PARAMETER.get(layer.kind, "batch")
    parameters = {**layer.parameters, batch_parameter: layer.parameters[batch_parameter] * draw_size(u, 1, MAX_BATCH)}
    if "channels_last" in parameters:
        parameters["channels_last"] = u * 100 % 1 < CHANNELS_LAST_SHARE
    return parameters
