#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small programs that diff_false_positives.py records repeatedly: plain PyTorch, nothing to download.

    diff_programs.py NAME [--seconds 2.5] [--device cuda] [--twice-every N]

Each repeats its step for that many seconds after the first steps and prints the number of steps. With --twice-every N
the model runs twice in every N-th step (forward, and backward in training): a known change of 1/N of the model's
energy.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class RepeatedModule(nn.Module):
    """Runs the model twice in every N-th call."""

    def __init__(self, model: nn.Module, every: int) -> None:
        super().__init__()
        self.model, self.every, self.calls = model, every, 0

    def forward(self, x):
        self.calls += 1
        y = self.model(x)
        if self.every and self.calls % self.every == 0:
            y = 0.5 * (y + self.model(x))
        return y


def convolutions(input_channels: int, output_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(input_channels, output_channels, 3, padding=1), nn.BatchNorm2d(output_channels), nn.ReLU(inplace=True),
        nn.Conv2d(output_channels, output_channels, 3, padding=1), nn.BatchNorm2d(output_channels), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, width: int = 48, depth: int = 4) -> None:
        super().__init__()
        sizes = [width * 2**i for i in range(depth)]
        self.down = nn.ModuleList(
            convolutions(input_channels, output_channels) for input_channels, output_channels in zip([3, *sizes], sizes)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * output_channels, output_channels, 2, stride=2)
            for output_channels in reversed(sizes[:-1])
        )
        self.join = nn.ModuleList(
            convolutions(2 * output_channels, output_channels) for output_channels in reversed(sizes[:-1])
        )
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        skip_tensors = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else nn.functional.max_pool2d(x, 2))
            skip_tensors.append(x)
        for upsampler, join, skip in zip(self.up, self.join, reversed(skip_tensors[:-1])):
            x = join(torch.cat([upsampler(x), skip], 1))
        return self.head(x)


class Residual(nn.Module):
    def __init__(self, input_channels: int, output_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = (
            nn.Conv2d(input_channels, output_channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(output_channels),
        )
        self.conv2, self.norm2 = (
            nn.Conv2d(output_channels, output_channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(output_channels),
        )
        self.shortcut = (
            nn.Identity()
            if input_channels == output_channels
            else nn.Conv2d(input_channels, output_channels, 1, stride, bias=False)
        )

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> nn.Module:
    stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [
        block
        for input_channels, output_channels, stride in stages
        for block in (Residual(input_channels, output_channels, stride), Residual(output_channels, output_channels, 1))
    ]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100))


class Transformer(nn.Module):
    def __init__(self, width: int = 512, layers: int = 6, words: int = 8000) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.layers(self.embedding(x))).flatten(0, 1)


def mlp() -> nn.Module:
    return nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(512, 512), nn.ReLU())], nn.Linear(512, 100))


# Name: (constructor of the model, function from the device to the input, number of classes; 0: inference).
PROGRAMS = {
    "unet": (UNet, lambda device: torch.randn(8, 3, 256, 256, device=device), 0),
    "resnet18": (resnet18, lambda device: torch.randn(64, 3, 128, 128, device=device), 100),
    "transformer": (Transformer, lambda device: torch.randint(0, 8000, (16, 128), device=device), 8000),
    "mlp": (mlp, lambda device: torch.randn(256, 512, device=device), 100),  # launch-bound
}


def run_timed_steps(seconds: float, step) -> int:
    """Runs steps for that many seconds after the first three, which import, allocate and choose algorithms."""
    steps, until_s = 0, None
    while until_s is None or time.monotonic() < until_s:
        step()
        steps += 1
        if steps == 3:
            until_s = time.monotonic() + seconds
    return steps


def run_inference(model: nn.Module, x, seconds: float) -> int:
    with torch.no_grad():
        return run_timed_steps(seconds, lambda: model(x).flatten()[0].item())


def train(model: nn.Module, x, classes: int, seconds: float) -> int:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with torch.no_grad():
        target = torch.randint(0, classes, (model(x).shape[0],), device=x.device)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        loss.item()

    return run_timed_steps(seconds, step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--twice-every", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(0)
    make, data, classes = PROGRAMS[options.name]
    model = RepeatedModule(make(), options.twice_every).to(options.device)
    x = data(options.device)
    print(train(model, x, classes, options.seconds) if classes else run_inference(model.eval(), x, options.seconds))


if __name__ == "__main__":
    main()
