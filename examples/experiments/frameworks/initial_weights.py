# SPDX-License-Identifier: Apache-2.0
"""Initial weights that depend only on name and shape of a parameter: every framework starts from the same network.

Shapes: kernels of convolutions (height, width, inputs, outputs), of dense layers (inputs, outputs), tables (rows,
width).
"""

from __future__ import annotations

import math
import zlib

import numpy as np

CONVOLUTION_RANK = 4
TABLE_DEVIATION = 0.05
DETECTION_LAYERS = {"boxes", "objectness", "box_heads", "class_heads"}  # outputs of detectors begin near 0
DETECTION_DEVIATION = 0.01


def make_initial_value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """`name` is the path of the layer and the kind of the parameter: "stages.0.0.conv1.kernel"."""
    kind = name.rpartition(".")[2]
    if kind == "scale":
        return np.ones(shape, dtype=np.float32)
    if kind.endswith("bias"):
        return np.zeros(shape, dtype=np.float32)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return random.standard_normal(shape, dtype=np.float32) * np.float32(choose_deviation(name, kind, shape))


def choose_deviation(name: str, kind: str, shape: tuple[int, ...]) -> float:
    if kind == "table":
        return TABLE_DEVIATION
    if DETECTION_LAYERS & set(name.split(".")):
        return DETECTION_DEVIATION
    variance_gain = 2 if len(shape) == CONVOLUTION_RANK else 1  # most convolutions precede a ReLU
    return math.sqrt(variance_gain / math.prod(shape[:-1]))
