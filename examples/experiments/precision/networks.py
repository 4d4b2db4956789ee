# SPDX-License-Identifier: Apache-2.0
"""The networks and their inputs: a transformer that predicts the next token, and a residual network."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

sys.path.append(str(Path(__file__).resolve().parent.parent / "levels"))

from resnet import make_resnet  # noqa: E402


@dataclass
class TransformerSize:
    layers: int
    width: int
    heads: int
    tokens: int  # of a sequence
    vocabulary: int
    batch: int


@dataclass
class ResnetSize:
    depth: int
    width: int
    image_pixels: int
    classes: int
    batch: int


TRANSFORMER_SIZES = {
    "small": TransformerSize(layers=2, width=128, heads=4, tokens=64, vocabulary=500, batch=4),
    "large": TransformerSize(layers=12, width=768, heads=12, tokens=512, vocabulary=32000, batch=16),
}
RESNET_SIZES = {
    "small": ResnetSize(depth=14, width=8, image_pixels=32, classes=10, batch=8),
    "large": ResnetSize(depth=50, width=64, image_pixels=224, classes=1000, batch=64),
}


class TransformerLayer(nn.Module):
    """Causal self-attention and a feed-forward part, each after its norm and beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_output = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def attend(self, features: torch.Tensor) -> torch.Tensor:
        heads = self.query_key_value(self.attention_norm(features)).unflatten(-1, (3, self.heads, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each: batch, heads, tokens, width of a head
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attention_output(attended.transpose(1, 2).flatten(2))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        features = features + self.attend(features)
        return features + self.feed_forward(features)


class Transformer(nn.Module):
    """Scores of the next token, as rows of classes."""

    def __init__(self, size: TransformerSize) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(size.vocabulary, size.width)
        self.position_embedding = nn.Parameter(0.02 * torch.randn(size.tokens, size.width))
        self.layers = nn.Sequential(*[TransformerLayer(size.width, size.heads) for _ in range(size.layers)])
        self.head = nn.Sequential(nn.LayerNorm(size.width), nn.Linear(size.width, size.vocabulary))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        features = self.token_embedding(tokens) + self.position_embedding
        return self.head(self.layers(features)).flatten(0, 1)


@dataclass
class Task:
    """A network with one batch, on a device."""

    network: nn.Module
    inputs: torch.Tensor
    targets: torch.Tensor


def make_task(name: str, size: str, device: torch.device, seed: int) -> Task:
    """The batch is random and is trained on repeatedly, so the loss falls."""
    torch.manual_seed(seed)
    if name == "transformer":
        shape = TRANSFORMER_SIZES[size]
        network = Transformer(shape)
        text = torch.randint(shape.vocabulary, (shape.batch, shape.tokens + 1))
        inputs, targets = text[:, :-1].contiguous(), text[:, 1:].flatten()
    else:
        shape = RESNET_SIZES[size]
        network = make_resnet(shape.depth, shape.classes, shape.width, shape.image_pixels <= 32)
        inputs = torch.randn(shape.batch, 3, shape.image_pixels, shape.image_pixels)
        targets = torch.randint(shape.classes, (shape.batch,))
    return Task(network.to(device), inputs.to(device), targets.to(device))
