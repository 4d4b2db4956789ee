# SPDX-License-Identifier: Apache-2.0
"""A translator: LSTM encoder, LSTM decoder, dot-product attention on the encoder's outputs."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


def make_lstm_layers(width: int, count: int) -> nn.ModuleList:
    return nn.ModuleList(nn.LSTM(width, width, bias=False, batch_first=True) for _ in range(count))


class Network(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        vocabulary, width, self.length = settings["vocabulary"], settings["width"], settings["length"]
        self.source_embedding = nn.Embedding(vocabulary, width)
        self.target_embedding = nn.Embedding(vocabulary, width)
        self.encoder = make_lstm_layers(width, settings["layers"])
        self.decoder = make_lstm_layers(width, settings["layers"])
        self.combination = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, vocabulary)

    def encode(self, sources: torch.Tensor) -> tuple[torch.Tensor, list]:
        """Outputs of the last layer, and the final state of each layer."""
        x, states = self.source_embedding(sources), []
        for layer in self.encoder:
            x, state = layer(x)
            states.append(state)
        return x, states

    def decode(self, tokens: torch.Tensor, states: list, encoded: torch.Tensor) -> tuple[torch.Tensor, list]:
        """Logits of the next tokens, and the state of each layer."""
        x, new_states = self.target_embedding(tokens), []
        for layer, state in zip(self.decoder, states):
            x, state = layer(x, state)
            new_states.append(state)
        weights = torch.softmax(x @ encoded.transpose(1, 2), dim=-1)
        x = torch.tanh(self.combination(torch.cat([weights @ encoded, x], dim=-1)))
        return self.output(x), new_states

    def compute_loss(self, batch: dict) -> torch.Tensor:
        encoded, states = self.encode(batch["sources"])
        logits, _ = self.decode(batch["inputs"], states, encoded)
        return functional.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())

    def predict(self, batch: dict) -> dict:
        """Greedy decoding, token by token."""
        encoded, states = self.encode(batch["sources"])
        token, tokens = torch.zeros_like(batch["sources"][:, :1]), []
        for _ in range(self.length):
            logits, states = self.decode(token, states, encoded)
            token = logits.argmax(dim=-1)
            tokens.append(token)
        return {"tokens": torch.cat(tokens, dim=1)}
