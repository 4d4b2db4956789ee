#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GATorch's Fashion-MNIST example with jm.attach: the energy of each layer, forward and backward.

    apt-get install dataset-fashion-mnist
    python examples/attach_fashion_mnist.py                 # needs torch; --epochs 1, --device cuda

The network and the loop are those of GATorch's example: 784-512-512-10 with ReLU after every layer, batches of 64,
SGD. GATorch calls `ga = GA(); ga.attach_model(model, loss=..., optimizer=...)` where this example calls jm.attach.
"""

from __future__ import annotations

import argparse
import gzip
import struct
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import joulemap as jm

DEFAULT_DATA_FOLDER = Path("/usr/share/datasets/fashion-mnist")


def read_idx_file(file: Path) -> torch.Tensor:
    """Reads the published IDX format: a header with the sizes, then bytes."""
    data = gzip.decompress(file.read_bytes())
    sizes = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return torch.frombuffer(bytearray(data[4 + 4 * data[3] :]), dtype=torch.uint8).reshape(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=DEFAULT_DATA_FOLDER, help="the folder with train-images-idx3-ubyte.gz and its like"
    )
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--images", type=int, default=60000, help="use so many of them")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--file", default="fashion.joule", help="the recording")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} is not there: apt-get install dataset-fashion-mnist, or --data FOLDER")

    images = read_idx_file(options.data / "train-images-idx3-ubyte.gz")[: options.images].float() / 255
    labels = read_idx_file(options.data / "train-labels-idx1-ubyte.gz")[: options.images].long()
    loader = DataLoader(TensorDataset(images, labels), batch_size=64)
    stack = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10), nn.ReLU()]
    model = nn.Sequential(nn.Flatten(), *stack).to(options.device)
    compute_loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    with jm.attach(model, loss=compute_loss, optimizer=optimizer, loader=loader, file=options.file) as run:
        for _ in range(options.epochs):
            for batch, targets in loader:
                optimizer.zero_grad()
                loss = compute_loss(model(batch.to(options.device)), targets.to(options.device))
                loss.backward()
                optimizer.step()

    print(run.report(by="layer"))
    for row in run.ledger(by="layer").nested().rows:
        if len(row.path) == 2 and row.energy_j is not None:
            print(f"{' '.join(row.path)}: {row.energy_j:.4g} J ({row.basis})")
    print(f"{len(run.steps())} steps; joulemap report {options.file} --html page.html shows the rest")


if __name__ == "__main__":
    main()
