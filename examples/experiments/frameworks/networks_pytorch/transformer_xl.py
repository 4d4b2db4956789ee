# SPDX-License-Identifier: Apache-2.0
"""Transformer-XL: each segment attends to itself and to the previous segment, by relative positions."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


def make_position_encoding(length: int, width: int) -> torch.Tensor:
    """Sines and cosines of the distances length - 1 to 0: (length, width)."""
    distances = torch.arange(length - 1, -1, -1, dtype=torch.float32)
    frequencies = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def shift_to_distances(scores: torch.Tensor) -> torch.Tensor:
    """Moves the score of each distance to the key at that distance: (batch, heads, queries, keys)."""
    batch, heads, queries, keys = scores.shape
    padded_scores = functional.pad(scores, (1, 0)).reshape(batch, heads, keys + 1, queries)
    return padded_scores[:, :, 1:].reshape(batch, heads, queries, keys)


class RelativeAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.position = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))

    def split_heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

    def forward(self, x: torch.Tensor, context: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor):
        query, key, value = (self.split_heads(part) for part in (self.query(x), self.key(context), self.value(context)))
        position = self.split_heads(self.position(positions))
        content_scores = (query + self.content_bias) @ key.transpose(-1, -2)
        position_scores = shift_to_distances((query + self.position_bias) @ position.transpose(-1, -2))
        scores = (content_scores + position_scores) * query.shape[-1] ** -0.5 + mask
        return self.output((scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        width = settings["width"]
        self.attention = RelativeAttention(width, settings["heads"])
        self.norm1 = nn.LayerNorm(width)
        self.linear1 = nn.Linear(width, settings["hidden_width"])
        self.linear2 = nn.Linear(settings["hidden_width"], width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor):
        x = self.norm1(x + self.attention(x, torch.cat([memory, x], dim=1), positions, mask))
        return self.norm2(x + self.linear2(torch.relu(self.linear1(x))))


class Network(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        width, self.segment = settings["width"], settings["segment"]
        self.embedding = nn.Embedding(settings["vocabulary"], width)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings["layers"]))
        self.output = nn.Linear(width, settings["vocabulary"])
        self.register_buffer("positions", make_position_encoding(2 * self.segment, width), persistent=False)
        mask = torch.full((self.segment, 2 * self.segment), -1e9).triu(diagonal=self.segment + 1)
        self.register_buffer("mask", mask, persistent=False)

    def read_segment(self, tokens: torch.Tensor, memories: list) -> tuple[torch.Tensor, list]:
        """Logits of the next tokens, and the inputs of each block: the memory of the next segment."""
        x, new_memories = self.embedding(tokens), []
        for block, memory in zip(self.blocks, memories):
            new_memories.append(x.detach())
            x = block(x, memory, self.positions, self.mask)
        return self.output(x), new_memories

    def read_text(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of all segments. The memory of the first one is zero."""
        zero_memory = torch.zeros(tokens.shape[0], self.segment, self.embedding.embedding_dim, device=tokens.device)
        memories, logits = [zero_memory] * len(self.blocks), []
        for segment in tokens.split(self.segment, dim=1):
            segment_logits, memories = self.read_segment(segment, memories)
            logits.append(segment_logits)
        return torch.cat(logits, dim=1)

    def compute_loss(self, batch: dict) -> torch.Tensor:
        return functional.cross_entropy(self.read_text(batch["inputs"]).flatten(0, 1), batch["targets"].flatten())

    def predict(self, batch: dict) -> dict:
        return {"tokens": self.read_text(batch["inputs"]).argmax(dim=-1)}
