# SPDX-License-Identifier: Apache-2.0
"""Layers that several networks use, and the initial weights of all layers."""

from __future__ import annotations

import torch
from torch import nn

from initial_weights import make_initial_value

# Kind of each parameter in `initial_weights`, by its name in PyTorch.
LSTM_KINDS = {"weight_ih_l0": "input_kernel", "weight_hh_l0": "state_kernel"}
NORM_TYPES = (nn.BatchNorm2d, nn.LayerNorm)


class ConvNorm(nn.Module):
    """Convolution, batch norm and, unless switched off, ReLU."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, has_relu: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.has_relu = has_relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x))
        return torch.relu(x) if self.has_relu else x


def make_parameter_value(module: nn.Module, path: str, name: str, shape: torch.Size) -> torch.Tensor:
    """The initial value in PyTorch's order of dimensions."""
    if isinstance(module, nn.Conv2d) and name == "weight":
        outputs, inputs, height, width = shape
        value = torch.from_numpy(make_initial_value(f"{path}.kernel", (height, width, inputs, outputs)))
        return value.permute(3, 2, 0, 1)
    if isinstance(module, nn.Linear) and name == "weight":
        return torch.from_numpy(make_initial_value(f"{path}.kernel", (shape[1], shape[0]))).T
    if isinstance(module, nn.LSTM):
        return torch.from_numpy(make_initial_value(f"{path}.{LSTM_KINDS[name]}", (shape[1], shape[0]))).T
    if isinstance(module, nn.Embedding):
        return torch.from_numpy(make_initial_value(f"{path}.table", tuple(shape)))
    kind = "scale" if isinstance(module, NORM_TYPES) and name == "weight" else name
    return torch.from_numpy(make_initial_value(f"{path}.{kind}", tuple(shape)))


@torch.no_grad()
def set_initial_values(network: nn.Module) -> None:
    for path, module in network.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            parameter.copy_(make_parameter_value(module, path, name, parameter.shape))
