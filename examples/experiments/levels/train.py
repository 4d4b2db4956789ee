# SPDX-License-Identifier: Apache-2.0
"""Trains a residual network on synthetic images for some epochs and measures the energy of the training.

python train.py --depth 50 --batch 32 --classes 10 --folder .
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from resnet import make_resnet
from torch import nn

import joulemap as jm

LEARNING_RATE = 0.003
SGD_MOMENTUM = 0.9
NOISE = 0.5  # standard deviation of the noise in each pixel; that of the patterns is 1
PATTERN_PIXELS = 8  # width of the pattern of a class, which is enlarged to the size of an image


@dataclass
class Size:
    width: int  # channels of the first stage
    image_pixels: int  # width of an image


SIZES = {"small": Size(width=8, image_pixels=32), "large": Size(width=64, image_pixels=224)}


@dataclass
class Epoch:
    time_s: float
    loss: float


def draw_images(options: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    """Images on the device, and their classes. Each class has a pattern, which images show with noise."""
    device = torch.device(options.device)
    torch.manual_seed(1)
    patterns = torch.randn(options.classes, 3, PATTERN_PIXELS, PATTERN_PIXELS)
    classes = torch.arange(options.images) % options.classes
    pixels = SIZES[options.size].image_pixels
    images = nn.functional.interpolate(patterns[classes].to(device), size=(pixels, pixels), mode="nearest")
    images += NOISE * torch.randn(images.shape, device=device)
    return images, classes.to(device)


def wait_for_device(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def train_epoch(
    network: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, classes: torch.Tensor, batch: int
) -> torch.Tensor:
    """The mean loss of the epoch, which stays on the device."""
    losses = []
    for indices in torch.randperm(len(images)).to(images.device).split(batch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(images[indices]), classes[indices])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean()


def make_network(options: argparse.Namespace) -> nn.Module:
    size = SIZES[options.size]
    torch.manual_seed(options.seed)
    return make_resnet(options.depth, options.classes, size.width, size.image_pixels <= 32).to(options.device)


def train(
    options: argparse.Namespace,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    classes: torch.Tensor,
) -> list[Epoch]:
    """Without warm-up: the first epoch includes what the first steps do only once."""
    epochs = []
    for number in range(options.epochs):
        jm.epoch(number)
        epoch_begin_s = time.perf_counter()
        loss = float(train_epoch(network, optimizer, images, classes, options.batch))  # waits for the device
        epochs.append(Epoch(time.perf_counter() - epoch_begin_s, loss))
        jm.log(loss=loss)
    jm.epoch(options.epochs)  # ends the last epoch: what follows is not part of it
    return epochs


def run(options: argparse.Namespace) -> dict[str, object]:
    """The metrics of a row."""
    images, classes = draw_images(options)
    network = make_network(options)
    # Before the window: the first optimizer imports much of PyTorch, for two seconds.
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=SGD_MOMENTUM)
    wait_for_device(options.device)
    with jm.measure("training") as window:
        epochs = train(options, network, optimizer, images, classes)
    later_s = sum(epoch.time_s for epoch in epochs[1:]) / max(1, len(epochs) - 1)
    return {
        "training_j": window.energy_j,
        "training_s": window.time_s,
        "provenance": window.provenance,
        "power_w": window.watts,
        "first_epoch_ratio": epochs[0].time_s / later_s if later_s else None,
        "epoch_s": [epoch.time_s for epoch in epochs],
        "loss": [epoch.loss for epoch in epochs],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--size", choices=sorted(SIZES), default="small", help="width of the network, size of images")
    parser.add_argument("--depth", type=int, choices=[50, 101, 152], default=50, help="layers of the network")
    parser.add_argument("--batch", type=int, default=32, help="images per step")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--images", type=int, default=64, help="images of an epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the weights and the order of images")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where metrics.json is written")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    metrics = run(options)
    (options.folder / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
