# SPDX-License-Identifier: Apache-2.0
"""Trains a network and runs its inference in PyTorch, eagerly or compiled by torch.compile."""

from __future__ import annotations

import importlib

import numpy as np
import torch

from .layers import set_initial_values

BETAS = (0.9, 0.999)
EPSILON = 1e-10  # so small that its place in the formula, which differs between frameworks, does not matter


class Trainer:
    def __init__(self, network: str, settings: dict, device: str, is_compiled: bool = False) -> None:
        self.device = torch.device(device)
        if device == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32, as convolutions have it by default
        module = importlib.import_module(f"networks_pytorch.{network}")
        self.network = module.Network(settings)
        set_initial_values(self.network)
        self.network.to(self.device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=settings["learning_rate"], betas=BETAS, eps=EPSILON
        )
        self.compute_loss, self.compute_output = self.network.compute_loss, self.network.predict
        if is_compiled:
            self.compute_loss, self.compute_output = (
                torch.compile(function) for function in (self.compute_loss, self.compute_output)
            )

    def put(self, batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
        """The batch on the device, in PyTorch's layout and integer type."""
        tensors = {}
        for name, array in batch.items():
            tensor = torch.from_numpy(array)
            if name == "images":
                tensor = tensor.permute(0, 3, 1, 2).contiguous()
            tensors[name] = tensor.to(self.device, torch.int64 if tensor.dtype == torch.int32 else None)
        return tensors

    def train_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """The loss before the update, still on the device."""
        self.network.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.compute_loss(batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.inference_mode()
    def predict(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        self.network.eval()
        return self.compute_output(batch)

    def fetch(self, values: dict | list | torch.Tensor) -> dict | list | np.ndarray:
        """Values as NumPy arrays; waits for the device."""
        if isinstance(values, dict):
            return {name: self.fetch(value) for name, value in values.items()}
        if isinstance(values, list):
            return [self.fetch(value) for value in values]
        return values.cpu().numpy()

    def count_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())
