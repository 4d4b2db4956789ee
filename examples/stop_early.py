"""Stops a training when a further unit of loss costs more than the given energy.

python examples/stop_early.py [--joules-per-loss 2000]
"""

from __future__ import annotations

import argparse

import torch
from forecast_training import BATCHES_PER_EPOCH, EVALUATION_BATCHES, batch
from torch import nn

import joulemap as jm


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--joules-per-loss", type=float, default=2000)
    early_stop = jm.EarlyStop(joules_per_loss=parser.parse_args().joules_per_loss)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer, loss = torch.optim.AdamW(model.parameters(), 3e-4), nn.CrossEntropyLoss()
    for epoch in range(60):
        for index in range(BATCHES_PER_EPOCH):
            points, classes = batch(1 + index)
            optimizer.zero_grad()
            loss(model(points), classes).backward()
            optimizer.step()
        with torch.no_grad():
            losses = [
                loss(model(points), classes) for points, classes in map(batch, range(1000, 1000 + EVALUATION_BATCHES))
            ]
        value = torch.stack(losses).mean().item()
        stops = early_stop.update(value)
        print(f"epoch {epoch}: loss {value:.3f}; {early_stop.reason}")
        if stops:
            break


if __name__ == "__main__":
    main()
