# SPDX-License-Identifier: Apache-2.0
"""Two small trainings to a validation accuracy on drawn digits, for a CPU or a GPU: an MLP, of which only the batch size is
tuned (its learning rate grows with the square root), and a CNN with batch size, learning rate and width."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional
from trainings import draw_digits

import joulemap as jm

MAX_EPOCHS = 20
# The target is the accuracy that the default reaches after this number of epochs.
TARGET_EPOCHS = 5
# Space and default of each training.
TRAININGS = {
    "mlp": ({"batch_size": [16, 32, 64, 128, 256, 512]}, {"batch_size": 32}),
    "cnn": (
        {"batch_size": [32, 64, 128, 256], "lr": jm.log_uniform(1e-4, 3e-2), "width": [4, 8, 16]},
        {"batch_size": 64, "lr": 1e-3, "width": 8},
    ),
}


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn(width: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> list:
        return [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(*block(1, width), *block(width, 2 * width), nn.Flatten(), nn.Linear(2 * width * 49, 10))


def make_train_function(name: str, device: str, samples: int) -> Callable:
    images, labels = (data.to(device) for data in draw_digits(samples, 1))
    held_images, held_labels = (data.to(device) for data in draw_digits(max(1024, samples // 2), 2))
    runs = [0]

    def train(config: dict, trial: Any) -> None:
        runs[0] += 1
        torch.manual_seed(runs[0])  # each run has another beginning, as later runs have
        batch = config["batch_size"]
        model = (mlp() if name == "mlp" else cnn(config["width"])).to(device)
        rate = config.get("lr", 1e-3 * math.sqrt(batch / 64))
        optimizer = torch.optim.AdamW(model.parameters(), rate)
        for epoch in range(MAX_EPOCHS):
            order = torch.randperm(samples, device=device)
            for indices in order.split(batch):
                optimizer.zero_grad(set_to_none=True)
                functional.cross_entropy(model(images[indices]), labels[indices]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                accuracy = (model(held_images).argmax(1) == held_labels).float().mean().item()
            model.train()
            if trial.report(epoch, accuracy=accuracy):
                return

    return train
