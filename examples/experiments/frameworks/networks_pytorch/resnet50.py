# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (v1.5: the 3 x 3 convolution has the stride), also the backbone of Mask R-CNN."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .layers import ConvNorm

EXPANSION = 4


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1 = ConvNorm(inputs, width, 1)
        self.conv2 = ConvNorm(width, width, 3, stride)
        self.conv3 = ConvNorm(width, outputs, 1, has_relu=False)
        self.shortcut = ConvNorm(inputs, outputs, 1, stride, has_relu=False) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv3(self.conv2(self.conv1(x))) + self.shortcut(x))


class Backbone(nn.Module):
    """Feature maps with strides 4, 8, 16 and 32."""

    def __init__(self, width: int, blocks: tuple[int, ...]) -> None:
        super().__init__()
        self.stem = ConvNorm(3, width, 7, stride=2)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = nn.ModuleList()
        inputs = width
        for number, count in enumerate(blocks):
            stage = nn.Sequential()
            for index in range(count):
                stage.append(Bottleneck(inputs, width * 2**number, 2 if number > 0 and index == 0 else 1))
                inputs = width * 2**number * EXPANSION
            self.stages.append(stage)

    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        x = self.pool(self.stem(images))
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return features


class Network(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        self.backbone = Backbone(settings["width"], settings["blocks"])
        self.classifier = nn.Linear(settings["width"] * 8 * EXPANSION, settings["classes"])

    def classify(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.backbone(images)[-1].mean(dim=(2, 3)))

    def compute_loss(self, batch: dict) -> torch.Tensor:
        return functional.cross_entropy(self.classify(batch["images"]), batch["labels"])

    def predict(self, batch: dict) -> dict:
        return {"labels": self.classify(batch["images"]).argmax(dim=1)}
