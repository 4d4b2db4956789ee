"""Trains a small residual network, and shows what each of its layers costs and earns.

    python examples/value_of_layers.py [layers.html]
"""

from __future__ import annotations

import sys

import torch
from forecast_training import batch
from torch import nn

import joulemap as jm


class Block(nn.Module):
    """A residual block: x + second(relu(first(x)))."""

    def __init__(self, width: int, hidden_width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden_width), nn.Linear(hidden_width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x)))


def main() -> None:
    torch.manual_seed(0)
    blocks = {f"block{number}": Block(64, 64 * 4**number) for number in range(3)}
    model = nn.Sequential()
    model.add_module("stem", nn.Linear(256, 64))
    for name, block in blocks.items():
        model.add_module(name, block)
    model.add_module("head", nn.Linear(64, 10))
    optimizer, loss = torch.optim.AdamW(model.parameters(), 1e-3), nn.CrossEntropyLoss()
    for step in range(200):
        points, classes = batch(1 + step % 60)
        optimizer.zero_grad()
        loss(model(points), classes).backward()
        optimizer.step()
    data = [batch(1000 + index) for index in range(100)]

    @torch.no_grad()
    def evaluate(model: nn.Module) -> float:
        return torch.stack([loss(model(points), classes) for points, classes in data]).mean().item()

    values = jm.layer_value(model, evaluate, layers=["stem", *blocks, "block2.first"], rounds=8)
    print(values)
    if len(sys.argv) > 1:
        values.save(sys.argv[1])


if __name__ == "__main__":
    main()
