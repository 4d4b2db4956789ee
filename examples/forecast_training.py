"""Predicts the energy of a training while it runs, with evaluation after each epoch and checkpoints.

python examples/forecast_training.py [--epochs 10]
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from torch import nn

import joulemap as jm

BATCHES_PER_EPOCH, EVALUATION_BATCHES, BATCH_SIZE = 60, 15, 128


def batch(seed: int) -> tuple:
    """Points on the unit sphere, and the class of each: the largest of 10 fixed directions."""
    random = torch.Generator().manual_seed(seed)
    points = nn.functional.normalize(torch.randn(BATCH_SIZE, 256, generator=random))
    directions = torch.randn(256, 10, generator=torch.Generator().manual_seed(0))
    return points, (points @ directions).argmax(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args().epochs
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer, loss = torch.optim.AdamW(model.parameters()), nn.CrossEntropyLoss()
    forecast = jm.predict_total(epochs=epochs, steps_per_epoch=BATCHES_PER_EPOCH, evaluation_steps=EVALUATION_BATCHES)
    for epoch in range(epochs):
        for index in range(BATCHES_PER_EPOCH):
            forecast.step()
            if index == BATCHES_PER_EPOCH // 2:
                print(forecast.total())
            points, classes = batch(1 + index)
            optimizer.zero_grad()
            loss(model(points), classes).backward()
            optimizer.step()
        with torch.no_grad():
            losses = [
                loss(model(points), classes) for points, classes in map(batch, range(1000, 1000 + EVALUATION_BATCHES))
            ]
        print(f"epoch {epoch}: loss {torch.stack(losses).mean():.3f}")
        with tempfile.TemporaryFile() as file:
            torch.save(model.state_dict(), file)
    print("whole training:", forecast.end())


if __name__ == "__main__":
    main()
