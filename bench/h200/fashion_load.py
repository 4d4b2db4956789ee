#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains GATorch's network on Fashion-MNIST, epoch by epoch. fashion_study.py starts it under `joulemap record`.

As in GATorch's example: 784-512-512-10 with ReLU after every layer, batches of 64 in the order of the data, SGD with a
rate of 0.001, the loss read every 100 batches. Different from the example: images are in memory as tensors and a batch
is one slice of them. The example decodes 60,000 pictures in every epoch, which takes longer than the training. Then
the training repeats from fresh weights, as far as time allows. A change that repeats with the weights is due to the
training; a change that does not is due to the machine. Rests before, between and after measure idle power.
"""

from __future__ import annotations

import gzip
import struct
import sys
import time
from pathlib import Path

import torch
from study_load import Device, LoadLog, remaining_s, make_load_parser, print_progress
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

BATCH_SIZE, LEARNING_RATE, EVALUATION_INTERVAL_STEPS = 64, 1e-3, 100
IDLE_REST_S, MIN_REMAINING_S = 2.0, 2.5


def read_idx_file(file: Path) -> torch.Tensor:
    """Reads a file of the IDX format, in which the data are published: a header with the sizes, then bytes."""
    data = gzip.decompress(file.read_bytes())
    dimensions = data[3]
    sizes = struct.unpack(f">{dimensions}I", data[4 : 4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions :]), dtype=torch.uint8).reshape(sizes)


def dataset(folder: Path | None, limit: int | None) -> TensorDataset:
    if folder is None:  # without the data: random images, to test the script only
        images, labels = torch.randint(0, 256, (limit or 60000, 28, 28)), torch.randint(0, 10, (limit or 60000,))
    else:
        images, labels = (
            read_idx_file(folder / f"train-{name}-ubyte.gz")[:limit] for name in ("images-idx3", "labels-idx1")
        )
    return TensorDataset((images.float() / 255).unsqueeze(1), labels.long())


def network(device: str) -> nn.Module:
    torch.manual_seed(0)
    stack = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10), nn.ReLU()]
    return nn.Sequential(nn.Flatten(), *stack).to(device)


class Training:
    def __init__(self, device: Device, loader: DataLoader) -> None:
        self.device, self.loader = device, loader
        self.model, self.compute_loss = network(device.name), nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)

    def epoch(self) -> dict:
        """Runs one pass over the data: span, time spent waiting for batches, and the mean of the losses read."""
        begin_ns, loading_ns, steps, losses = time.monotonic_ns(), 0, 0, []
        batches = iter(self.loader)
        while True:
            batch_request_ns = time.monotonic_ns()
            batch = next(batches, None)
            loading_ns += time.monotonic_ns() - batch_request_ns
            if batch is None:
                break
            x, y = batch[0].to(self.device.name), batch[1].to(self.device.name)
            loss = self.compute_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if steps % EVALUATION_INTERVAL_STEPS == 0:
                losses.append(loss.item())
            steps += 1
        self.device.wait()
        ends = {"begin_ns": begin_ns, "end_ns": time.monotonic_ns()}
        return {**ends, "steps": steps, "loading_s": loading_ns * 1e-9, "loss": sum(losses) / len(losses)}


def train(load_log: LoadLog, device: Device, loader: DataLoader, run: str, epochs: int, options) -> None:
    training = Training(device, loader)
    for number in range(epochs):
        if remaining_s(options) < IDLE_REST_S + MIN_REMAINING_S:
            print_progress(f"{run}: out of time after {number} epochs")
            return
        document = training.epoch()
        load_log.add(run=run, epoch=number, **document)
        if number % 20 == 0 or number == epochs - 1:
            print_progress(
                f"{run} {number}: {(document['end_ns'] - document['begin_ns']) * 1e-9:.2f} s, loss {document['loss']:.4f}"
            )


def main() -> int:
    parser = make_load_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, help="folder of the four idx files, e.g. /usr/share/datasets/fashion-mnist"
    )
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--again", type=int, default=100, help="epochs from fresh weights")
    parser.add_argument("--images", type=int, help="use only the first N images; default: all")
    options = parser.parse_args()
    data = dataset(options.data, options.images)
    batches = BatchSampler(SequentialSampler(data), BATCH_SIZE, drop_last=False)
    loader = DataLoader(data, sampler=batches, batch_size=None)
    device = Device(torch, options.device)
    load_log = LoadLog(
        options.out, options.device, real_data=options.data is not None, images=len(data), batch=BATCH_SIZE
    )
    rest_s = 0.2 if options.tiny else IDLE_REST_S
    load_log.add(run="rest", epoch=0, **device.rest(rest_s))
    train(load_log, device, loader, "training", options.epochs, options)
    load_log.add(run="rest", epoch=1, **device.rest(rest_s))
    train(load_log, device, loader, "again", options.again, options)
    load_log.add(run="rest", epoch=2, **device.rest(rest_s))
    return 0


if __name__ == "__main__":
    sys.exit(main())
