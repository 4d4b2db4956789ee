# SPDX-License-Identifier: Apache-2.0
"""The model-wise networks in PyTorch, on one thread: from standardized features to the standardized logarithm of a
network's joules."""

from __future__ import annotations

import numpy
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

MLP_EPOCHS, RNN_EPOCHS = 400, 20
HIDDEN_SIZE, EMBEDDING_SIZE, BATCH_SIZE = 48, 8, 32


def mean_and_scale(values: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Mean and standard deviation, which is 1 for columns that are constant in training."""
    standard_deviation = values.std(axis=0)
    return values.mean(axis=0), numpy.where(standard_deviation < 1e-3, 1.0, standard_deviation)


def fit_mlp(train: numpy.ndarray, target: numpy.ndarray, test: numpy.ndarray) -> numpy.ndarray:
    start()
    (mean, standard_deviation), (center, width) = mean_and_scale(train), mean_and_scale(target)
    x, y = float_tensor((train - mean) / standard_deviation), float_tensor((target - center) / width)
    model = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    for _ in range(MLP_EPOCHS):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x)[:, 0], y).backward()
        optimizer.step()
    with torch.no_grad():
        return model(float_tensor((test - mean) / standard_deviation))[:, 0].numpy() * width + center


class RecurrentRegressor(nn.Module):
    def __init__(self, features: int, kinds: int, uses_embedding: bool) -> None:
        super().__init__()
        self.kind = nn.Embedding(kinds, EMBEDDING_SIZE if uses_embedding else kinds)
        if not uses_embedding:  # one-hot encoding
            self.kind.weight.data.copy_(torch.eye(kinds))
            self.kind.weight.requires_grad_(False)
        self.layers = nn.GRU(features + self.kind.embedding_dim, HIDDEN_SIZE, batch_first=True)
        self.out = nn.Linear(HIDDEN_SIZE, 1)

    def forward(self, kinds: torch.Tensor, steps: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed_sequence = pack_padded_sequence(
            torch.cat([self.kind(kinds), steps], 2), lengths, True, enforce_sorted=False
        )
        _, final_hidden_state = self.layers(packed_sequence)
        return self.out(final_hidden_state[0])[:, 0]


def fit_recurrent(kinds, steps, target, test_kinds, test_steps, count: int, uses_embedding: bool) -> numpy.ndarray:
    """Trains on batches of sequences with similar lengths, which limits padding."""
    start()
    (mean, standard_deviation), (center, width) = mean_and_scale(numpy.concatenate(steps)), mean_and_scale(target)

    def padded(some_kinds, some_steps):
        lengths = torch.tensor([len(operation_kinds) for operation_kinds in some_kinds])
        sequences = [float_tensor((step_features - mean) / standard_deviation) for step_features in some_steps]
        return (
            pad_sequence([torch.tensor(operation_kinds) for operation_kinds in some_kinds], True),
            pad_sequence(sequences, True),
            lengths,
        )

    order = sorted(range(len(kinds)), key=lambda number: len(kinds[number]))
    batches = [order[batch_start : batch_start + BATCH_SIZE] for batch_start in range(0, len(order), BATCH_SIZE)]
    inputs = [padded([kinds[n] for n in batch], [steps[n] for n in batch]) for batch in batches]
    targets = [float_tensor((target[batch] - center) / width) for batch in batches]
    model = RecurrentRegressor(steps[0].shape[1], count, uses_embedding)
    optimizer = torch.optim.Adam([parameter for parameter in model.parameters() if parameter.requires_grad], lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=RNN_EPOCHS * len(batches))
    for _ in range(RNN_EPOCHS):
        for number in torch.randperm(len(batches)).tolist():
            optimizer.zero_grad()
            nn.functional.mse_loss(model(*inputs[number]), targets[number]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        return model(*padded(test_kinds, test_steps)).numpy() * width + center


def start() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)


def float_tensor(values: numpy.ndarray) -> torch.Tensor:
    return torch.tensor(numpy.asarray(values), dtype=torch.float32)
