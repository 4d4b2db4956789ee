# SPDX-License-Identifier: Apache-2.0
"""Trains a network on Fashion-MNIST until it reaches an accuracy, and measures the energy of the training.

python train.py --optimizer adam --rate 0.001 --batch 128 --folder .
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from fashion_mnist import Images, read_images
from torch import nn

import joulemap as jm

DEBIAN_DATA_FOLDER = "/usr/share/datasets/fashion-mnist"  # of the package dataset-fashion-mnist
SGD_MOMENTUM = 0.9


@dataclass
class Training:
    """The end of one training: at the target, or at the limit of epochs."""

    reached: bool
    accuracy: float  # on the test images
    images: int  # trained on; an image counts once per epoch


def make_network(size: str) -> nn.Module:
    """small: a perceptron with one hidden layer; large: a network with two convolutions."""
    if size == "small":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    convolutions = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    convolutions += [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


def make_optimizer(name: str, network: nn.Module, rate: float) -> torch.optim.Optimizer:
    if name == "sgd":
        return torch.optim.SGD(network.parameters(), lr=rate, momentum=SGD_MOMENTUM)
    return torch.optim.Adam(network.parameters(), lr=rate)


def shuffled_batches(count: int, batch: int, device: torch.device) -> Iterator[torch.Tensor]:
    """Indices of endless epochs. Each epoch has a new order and omits its incomplete last batch."""
    while True:
        order = torch.randperm(count).to(device)
        yield from order[: count // batch * batch].split(batch)


def train_step(
    network: nn.Module, optimizer: torch.optim.Optimizer, pixels: torch.Tensor, classes: torch.Tensor
) -> None:
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(pixels), classes).backward()
    optimizer.step()


@torch.no_grad()
def measure_accuracy(network: nn.Module, images: Images) -> float:
    correct_count = sum(
        (network(pixels).argmax(dim=1) == classes).sum()
        for pixels, classes in zip(images.pixels.split(2000), images.classes.split(2000))
    )
    return float(correct_count) / len(images)


def train_to_target(options: argparse.Namespace, seed: int, train_images: Images, test_images: Images) -> Training:
    """Tests the network after every `images_between_tests` images; these tests are part of the measured energy."""
    torch.manual_seed(seed)
    device = train_images.pixels.device
    network = make_network(options.size).to(device)
    optimizer = make_optimizer(options.optimizer, network, options.rate)
    steps_between_tests = max(1, options.images_between_tests // options.batch)
    limit_images = options.epochs * len(train_images)
    for step, batch in enumerate(shuffled_batches(len(train_images), options.batch, device), 1):
        train_step(network, optimizer, train_images.pixels[batch], train_images.classes[batch])
        if step % steps_between_tests:
            continue
        accuracy = measure_accuracy(network, test_images)
        training = Training(accuracy >= options.target, accuracy, step * options.batch)
        if training.reached or training.images >= limit_images:
            return training


def warm_up(options: argparse.Namespace, train_images: Images, test_images: Images) -> None:
    """Loads kernels and starts threads before the measurement."""
    network = make_network(options.size).to(train_images.pixels.device)
    optimizer = make_optimizer(options.optimizer, network, options.rate)
    for _ in range(5):
        train_step(network, optimizer, train_images.pixels[: options.batch], train_images.classes[: options.batch])
    measure_accuracy(network, test_images)


def run_trainings(options: argparse.Namespace) -> dict[str, object]:
    """The metrics of a row: means of its trainings."""
    device = torch.device(options.device)
    train_images = read_images(options.data, "train", device)
    test_images = read_images(options.data, "t10k", device)
    warm_up(options, train_images, test_images)
    count = options.trainings
    with jm.measure("training") as window:
        trainings = [
            train_to_target(options, options.seed * count + i, train_images, test_images) for i in range(count)
        ]
    images = sum(training.images for training in trainings) / count
    return {
        "training_j": None if window.energy_j is None else window.energy_j / count,
        "training_s": window.time_s / count,
        "provenance": window.provenance,
        "reached": sum(training.reached for training in trainings) / count,
        "accuracy": sum(training.accuracy for training in trainings) / count,
        "epochs": images / len(train_images),
        "steps": images / options.batch,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--size", choices=["small", "large"], default="small", help="size of the network")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd", help="sgd has a momentum of 0.9")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate")
    parser.add_argument("--batch", type=int, default=128, help="images per step")
    parser.add_argument("--target", type=float, default=0.85, help="accuracy on the test images that ends a training")
    parser.add_argument("--epochs", type=float, default=4, help="limit of a training")
    parser.add_argument("--images-between-tests", type=int, default=10240, help="training images between two tests")
    parser.add_argument("--trainings", type=int, default=1, help="trainings per row, each with its own seed")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and the order of images")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    data_folder = Path(os.environ.get("FASHION_MNIST", DEBIAN_DATA_FOLDER))
    parser.add_argument("--data", type=Path, default=data_folder, help="folder with train-images-idx3-ubyte.gz")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where metrics.json is written")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} does not exist: apt-get install dataset-fashion-mnist, or --data FOLDER")
    torch.set_num_threads(options.threads)
    metrics = run_trainings(options)
    (options.folder / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
