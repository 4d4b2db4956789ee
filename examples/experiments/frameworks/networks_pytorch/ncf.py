# SPDX-License-Identifier: Apache-2.0
"""NCF (NeuMF): a product of embeddings and a multilayer perceptron rate pairs of users and items."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Network(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        factors, widths = settings["factors"], settings["mlp_widths"]
        self.product_users = nn.Embedding(settings["users"], factors)
        self.product_items = nn.Embedding(settings["items"], factors)
        self.mlp_users = nn.Embedding(settings["users"], widths[0] // 2)
        self.mlp_items = nn.Embedding(settings["items"], widths[0] // 2)
        self.mlp = nn.ModuleList(nn.Linear(inputs, outputs) for inputs, outputs in zip(widths, widths[1:]))
        self.rating = nn.Linear(factors + widths[-1], 1)

    def rate(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        product = self.product_users(users) * self.product_items(items)
        x = torch.cat([self.mlp_users(users), self.mlp_items(items)], dim=-1)
        for layer in self.mlp:
            x = torch.relu(layer(x))
        return self.rating(torch.cat([product, x], dim=-1)).squeeze(-1)

    def compute_loss(self, batch: dict) -> torch.Tensor:
        logits = self.rate(batch["users"], batch["items"])
        return functional.binary_cross_entropy_with_logits(logits, batch["liked"])

    def predict(self, batch: dict) -> dict:
        items = batch["ranked_items"]
        users = batch["ranked_users"][:, None].expand(items.shape)
        return {"best": self.rate(users, items).topk(10, dim=1).indices}
