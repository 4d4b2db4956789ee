# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (v1.5: the 3 x 3 convolution has the stride), also the backbone of Mask R-CNN."""

from __future__ import annotations

import jax

from .layers import Scope, convolve_and_normalize, cross_entropy, linear, pool_maximum

EXPANSION = 4


def run_bottleneck(scope: Scope, name: str, x: jax.Array, width: int, stride: int) -> jax.Array:
    outputs = width * EXPANSION
    shortcut = x
    if x.shape[-1] != outputs:
        shortcut = convolve_and_normalize(scope, f"{name}.shortcut", x, outputs, 1, stride, has_relu=False)
    x = convolve_and_normalize(scope, f"{name}.conv1", x, width, 1)
    x = convolve_and_normalize(scope, f"{name}.conv2", x, width, 3, stride)
    return jax.nn.relu(convolve_and_normalize(scope, f"{name}.conv3", x, outputs, 1, has_relu=False) + shortcut)


def run_backbone(scope: Scope, images: jax.Array, width: int, blocks: tuple[int, ...]) -> list[jax.Array]:
    """Feature maps with strides 4, 8, 16 and 32."""
    x = pool_maximum(convolve_and_normalize(scope, "backbone.stem", images, width, 7, stride=2))
    features = []
    for number, count in enumerate(blocks):
        for index in range(count):
            stride = 2 if number > 0 and index == 0 else 1
            x = run_bottleneck(scope, f"backbone.stages.{number}.{index}", x, width * 2**number, stride)
        features.append(x)
    return features


def classify(scope: Scope, images: jax.Array, settings: dict) -> jax.Array:
    features = run_backbone(scope, images, settings["width"], settings["blocks"])
    return linear(scope, "classifier", features[-1].mean(axis=(1, 2)), settings["classes"])


def compute_loss(scope: Scope, batch: dict, settings: dict) -> jax.Array:
    return cross_entropy(classify(scope, batch["images"], settings), batch["labels"]).mean()


def predict(scope: Scope, batch: dict, settings: dict) -> dict:
    return {"labels": classify(scope, batch["images"], settings).argmax(axis=1)}
