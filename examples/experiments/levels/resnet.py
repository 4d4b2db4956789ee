# SPDX-License-Identifier: Apache-2.0
"""Residual networks of bottleneck blocks (He et al. 2016) with 50, 101 or 152 layers, of any width.

With 14 layers, one block per stage, they compile quickly.
"""

from __future__ import annotations

import torch
from torch import nn

BLOCKS_BY_DEPTH = {14: [1, 1, 1, 1], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3]}
EXPANSION = 4  # output channels of a block per channel of its 3 x 3 convolution


def normalized_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 beside a shortcut."""

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        outputs = channels * EXPANSION
        self.residual = nn.Sequential(
            *normalized_convolution(inputs, channels, 1),
            nn.ReLU(inplace=True),
            *normalized_convolution(channels, channels, 3, stride),
            nn.ReLU(inplace=True),
            *normalized_convolution(channels, outputs, 1),
        )
        has_same_shape = inputs == outputs and stride == 1
        projection = [] if has_same_shape else normalized_convolution(inputs, outputs, 1, stride)
        self.shortcut = nn.Sequential(*projection)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(self.residual(features) + self.shortcut(features))


def make_stem(width: int, has_small_images: bool) -> list[nn.Module]:
    """The first convolution. Images of 32 x 32 pixels keep their size; others are reduced by 4 in each direction."""
    if has_small_images:
        return [*normalized_convolution(3, width, 3), nn.ReLU(inplace=True)]
    return [*normalized_convolution(3, width, 7, stride=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]


def make_resnet(depth: int, classes: int, width: int = 64, has_small_images: bool = False) -> nn.Sequential:
    """The standard network has a width of 64."""
    layers = make_stem(width, has_small_images)
    inputs = width
    for stage, blocks in enumerate(BLOCKS_BY_DEPTH[depth]):
        channels = width << stage
        for block in range(blocks):
            layers.append(Bottleneck(inputs, channels, stride=2 if stage > 0 and block == 0 else 1))
            inputs = channels * EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
