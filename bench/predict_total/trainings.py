# SPDX-License-Identifier: Apache-2.0
"""Four real, small trainings with warm-up, evaluation and checkpoints, for a CPU or a GPU. Their data need no download:
drawn digits, and the sources of Python's standard library as text."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import torch
from torch import nn
from torch.nn import functional

# Seven segments: top, top-left, top-right, centre, bottom-left, bottom-right, bottom.
DIGIT_SEGMENTS = [
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
]
SEGMENT_SLICES = [
    (slice(4, 7), slice(8, 20)), (slice(4, 15), slice(7, 10)), (slice(4, 15), slice(18, 21)),
    (slice(13, 16), slice(8, 20)), (slice(14, 25), slice(7, 10)), (slice(14, 25), slice(18, 21)),
    (slice(22, 25), slice(8, 20)),
]  # fmt: skip
CONTEXT_LENGTH = 64


@dataclass
class Training:
    """A training of `epochs` epochs. Evaluates every `evaluate_every` steps, saves every `save_every` steps."""

    name: str
    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Callable  # (model, batch) -> loss
    batches: list  # of one epoch
    validation: list
    epochs: int
    evaluate_every: int
    save_every: int

    @property
    def steps(self) -> int:
        return self.epochs * len(self.batches)

    def step(self, index: int) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model, self.batches[index % len(self.batches)])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def evaluate(self) -> float:
        self.model.eval()
        with torch.no_grad():
            loss = torch.stack([self.loss(self.model, batch) for batch in self.validation]).mean().item()
        self.model.train()
        return loss

    def save(self) -> None:
        with tempfile.NamedTemporaryFile(suffix=".pt") as file:
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, file)
            file.flush()
            os.fsync(file.fileno())

    def run(self) -> Iterator[int]:
        """Yields the index of each step before it; evaluates and saves between steps."""
        for index in range(self.steps):
            yield index
            self.step(index)
            if (index + 1) % self.evaluate_every == 0:
                self.evaluate()
            if (index + 1) % self.save_every == 0:
                self.save()


def draw_digits(count: int, seed: int) -> tuple:
    """Noisy, shifted images of 1 x 28 x 28 pixels, and the digits they show."""
    random = torch.Generator().manual_seed(seed)
    digit_templates = torch.zeros(10, 28, 28)
    for digit, lit in enumerate(DIGIT_SEGMENTS):
        for bit, place in zip(lit, SEGMENT_SLICES):
            digit_templates[digit][place] = float(bit == "1")
    digits = torch.randint(0, 10, (count,), generator=random)
    shifts = torch.randint(-3, 4, (count, 2), generator=random).tolist()
    images = torch.stack([digit_templates[d].roll(tuple(shift), (0, 1)) for d, shift in zip(digits.tolist(), shifts)])
    images *= 0.5 + 0.5 * torch.rand(count, 1, 1, generator=random)
    return (images + 0.6 * torch.randn(images.shape, generator=random)).unsqueeze(1), digits


def read_text(characters: int) -> torch.Tensor:
    """Sources of the standard library as bytes below 128."""
    text = ""
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        text += path.read_text(encoding="utf-8", errors="ignore")
        if len(text) >= characters:
            break
    return torch.tensor(list(text[:characters].encode("ascii", "replace")), dtype=torch.long)


def image_batches(count: int, size: int, seed: int, device: str) -> list:
    images, digits = draw_digits(count * size, seed)
    return [(x.to(device), y.to(device)) for x, y in zip(images.split(size), digits.split(size))]


def text_batches(count: int, held_out: int, size: int, device: str) -> tuple:
    """Batches for training and validation: shuffled pieces of the text."""
    length = CONTEXT_LENGTH + 1
    text_pieces = read_text((count + held_out) * size * length).view(-1, length)
    text_pieces = text_pieces[torch.randperm(len(text_pieces), generator=torch.Generator().manual_seed(1))]
    batches = [batch.to(device) for batch in text_pieces.split(size)]
    return batches[:count], batches[count:]


def image_loss(model: nn.Module, batch: tuple) -> torch.Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def text_loss(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    scores = model(batch[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.token_embedding, self.positions = nn.Embedding(128, width), nn.Embedding(CONTEXT_LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, max(2, width // 32), 4 * width, 0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 128)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT_LENGTH))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden_states = self.token_embedding(text) + self.positions.weight[: text.shape[1]]
        return self.head(self.layers(hidden_states, mask=self.mask, is_causal=True))


class Lstm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.token_embedding, self.layers = nn.Embedding(128, width), nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, 128)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.token_embedding(text))[0])


def cnn(width: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> list:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(1, width), *block(width, 2 * width), nn.Flatten(), nn.Linear(2 * width * 49, 10))


def mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10))  # fmt: skip


def make_training(name: str, device: str, length: float, width_factor: int) -> Training:
    """One of TRAINING_NAMES. `length` multiplies the steps of an epoch, `width_factor` the width of the network."""
    torch.manual_seed(0)
    if name in ("mlp", "cnn"):
        model = (mlp(512 * width_factor) if name == "mlp" else cnn(16 * width_factor)).to(device)
        per_epoch, epochs = (120, 20) if name == "mlp" else (60, 10)
        count = max(4, math.ceil(length * per_epoch))
        data = image_batches(count, 128, 1, device), image_batches(max(2, count // 4), 128, 2, device), image_loss
        event_intervals = (count, 5 * count) if name == "mlp" else (count, count)
    else:
        model = (Transformer(64 * width_factor, 2) if name == "transformer" else Lstm(96 * width_factor)).to(device)
        per_epoch, epochs = (400, 2) if name == "transformer" else (80, 8)
        count = max(20, math.ceil(length * per_epoch))
        validation_batch_count = max(2, count // 20 if name == "transformer" else count // 5)
        data = *text_batches(count, validation_batch_count, 32, device), text_loss
        # The transformer evaluates and saves by steps, as language models do; the LSTM at the end of each epoch.
        event_intervals = (max(1, count // 10), max(1, count // 2)) if name == "transformer" else (count, 2 * count)
    batches, validation, loss = data
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return Training(name, model, optimizer, loss, batches, validation, epochs, *event_intervals)


TRAINING_NAMES = ("mlp", "cnn", "transformer", "lstm")
