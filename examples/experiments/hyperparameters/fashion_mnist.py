# SPDX-License-Identifier: Apache-2.0
"""Reads Fashion-MNIST: 60,000 training images and 10,000 test images of clothes, 28 x 28 pixels, 10 classes."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

import torch

TRAINING_MEAN, TRAINING_DEVIATION = 0.286, 0.353  # of the pixels of all training images


@dataclass
class Images:
    """Pixels of mean 0 and standard deviation 1, as one channel of 28 x 28, and classes from 0 to 9."""

    pixels: torch.Tensor
    classes: torch.Tensor

    def __len__(self) -> int:
        return len(self.classes)


def read_idx_file(file: Path) -> torch.Tensor:
    """Reads the IDX format: a header with the sizes, then one byte per value."""
    data = gzip.decompress(file.read_bytes())
    sizes = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return torch.frombuffer(bytearray(data[4 + 4 * data[3] :]), dtype=torch.uint8).reshape(sizes)


def read_images(folder: Path, part: str, device: torch.device) -> Images:
    """`part` is "train" or "t10k", the test images. They lie on the device, so training loads nothing."""
    pixels = read_idx_file(folder / f"{part}-images-idx3-ubyte.gz").to(device).float().unsqueeze(1) / 255
    classes = read_idx_file(folder / f"{part}-labels-idx1-ubyte.gz").to(device).long()
    return Images((pixels - TRAINING_MEAN) / TRAINING_DEVIATION, classes)
