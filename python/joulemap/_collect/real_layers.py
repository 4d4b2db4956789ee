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

REAL_LAYERS_FILE = Path(__file__).resolve().parent / "real_layers.csv"
# The parameter that scales with the batch size, by kind.
BATCH_PARAMETER = {"dense": "rows", "embedding": "tokens", "loss": "rows"}
MAX_BATCH_SIZE = 256
# Share of convolutions drawn as channels-last; the listed layers do not specify it.
CHANNELS_LAST_SHARE = 0.3


class RealLayer(NamedTuple):
    kind: str
    family: str
    parameters: Parameters


def parse_parameter_value(text: str):
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return text


@functools.cache
def read_real_layers() -> tuple[RealLayer, ...]:
    if not REAL_LAYERS_FILE.exists():
        return ()
    with REAL_LAYERS_FILE.open(newline="") as file:
        return tuple(
            RealLayer(
                line["kind"],
                line["family"],
                {
                    name: parse_parameter_value(text)
                    for name, text in (assignment.split("=") for assignment in line["parameters"].split(";"))
                },
            )
            for line in csv.DictReader(file)
        )


def layers_of_kind(kind: str) -> list[RealLayer]:
    return [layer for layer in read_real_layers() if layer.kind == kind]


def scale_layer_to_batch(layer: RealLayer, unit_draw: float) -> Parameters:
    batch_parameter = BATCH_PARAMETER.get(layer.kind, "batch")
    parameters = {
        **layer.parameters,
        batch_parameter: layer.parameters[batch_parameter] * draw_size(unit_draw, 1, MAX_BATCH_SIZE),
    }
    if "channels_last" in parameters:
        parameters["channels_last"] = unit_draw * 100 % 1 < CHANNELS_LAST_SHARE
    return parameters
