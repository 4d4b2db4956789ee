# SPDX-License-Identifier: Apache-2.0
"""A second instance of a module for blocks that are run twice in training.

The twin has the same settings and buffers, and parameters that share the memory of the original ones but have gradients
of their own. So its backward pass runs in the same call of the autograd engine as that of the original, at the same
cost, and nothing is added to the original gradients.
"""

from __future__ import annotations

from typing import Any, Sequence


def make_module_twin(torch: Any, module: Any) -> Any:
    """Makes the twin of a module. Modules and parameters are copied; other attributes are shared, because they may
    refer to anything."""
    return _copy_module(torch, module, {})


def _copy_module(torch: Any, module: Any, known_copies: dict) -> Any:
    if id(module) in known_copies:
        return known_copies[id(module)]
    twin = module.__new__(type(module))
    known_copies[id(module)] = twin
    twin_attributes = dict(module.__dict__)
    twin_attributes["_parameters"] = {
        name: _alias_parameter(torch, parameter, known_copies) for name, parameter in module._parameters.items()
    }
    twin_attributes["_modules"] = {
        name: None if child is None else _copy_module(torch, child, known_copies)
        for name, child in module._modules.items()
    }
    twin.__dict__.update(twin_attributes)
    if "_flat_weights" in twin_attributes:  # recurrent layers list their parameters again
        twin.__dict__["_flat_weights"] = [
            _alias_parameter(torch, weight, known_copies) for weight in twin_attributes["_flat_weights"]
        ]
    return twin


def _alias_parameter(torch: Any, parameter: Any, known_copies: dict) -> Any:
    if parameter is None:
        return None
    if id(parameter) not in known_copies:
        known_copies[id(parameter)] = torch.nn.Parameter(parameter.detach(), requires_grad=parameter.requires_grad)
    return known_copies[id(parameter)]


def sparse_parameters(module: Any) -> list:
    """Parameters whose gradients would grow without limit if they added up: those of sparse embeddings."""
    layers = [layer for layer in module.modules() if getattr(layer, "sparse", False) is True]
    return [parameter for layer in layers for parameter in layer.parameters(recurse=False)]


def drop_gradients(parameters: Sequence) -> None:
    for parameter in parameters:
        parameter.grad = None
