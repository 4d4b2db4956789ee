# SPDX-License-Identifier: Apache-2.0
"""The paths of a model's layers, for traces of PyTorch's profiler, which contain only "nn.Module: Conv2d_3".

The number is the index of the module within its class, in the order of first calls in the trace. The file therefore
lists, for each class, the paths of its modules in that order. The order is exact if inputs are given; otherwise it is
the order of registration.
"""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, Union

from ._output import replace_file_atomically
from ._torch_wrappers import WRAPPED_MODEL_ATTRIBUTES


def module_names(model: Any, *inputs: Any, **named_inputs: Any) -> dict[str, list[str]]:
    """Paths of the model's layers by class: {"Conv2d": ["stem", "layers.0.conv1"], ...}.

    With inputs, the model is called once without gradients, and layers are listed in the order of their first call;
    buffers and random state are restored. Without inputs, layers are listed in the order of registration, which is the
    same for most models. Modules that are never called themselves (ModuleList) are excluded.
    """
    path_by_module = _module_paths(model)
    called_modules = _record_call_order(model, inputs, named_inputs) if inputs or named_inputs else []
    ordered_modules = called_modules + [
        module for module in path_by_module if module not in set(called_modules) and _is_callable(module)
    ]
    names: dict[str, list[str]] = {}
    for module in ordered_modules:
        if module in path_by_module:
            names.setdefault(type(module).__name__, []).append(path_by_module[module])
    return names


def save_module_names(model: Any, path: Union[str, PathLike], *inputs: Any, **named_inputs: Any) -> None:
    """Writes module_names() to a file for `joulemap import kineto --modules`."""
    names = module_names(model, *inputs, **named_inputs)
    with replace_file_atomically(path) as temporary_path, open(temporary_path, "w", encoding="utf-8") as file:
        json.dump(names, file, indent=1)
        file.write("\n")


def _module_paths(model: Any) -> dict[Any, str]:
    """Path of each module of the model, as in a recording: wrappers such as DistributedDataParallel are not part of
    paths, and the model itself is named by its class."""
    while hasattr(model, wrapped_attribute := WRAPPED_MODEL_ATTRIBUTES.get(type(model).__name__, "")):
        model = getattr(model, wrapped_attribute)
    path_by_module: dict[Any, str] = {model: type(model).__name__}
    _add_child_paths(model, "", path_by_module)
    return path_by_module


def _add_child_paths(parent: Any, parent_path: str, path_by_module: dict[Any, str]) -> None:
    wrapped_attribute = WRAPPED_MODEL_ATTRIBUTES.get(type(parent).__name__)
    for name, module in parent._modules.items():
        if module is None or module in path_by_module:
            continue
        module_path = parent_path if name == wrapped_attribute else f"{parent_path}.{name}" if parent_path else name
        path_by_module[module] = module_path
        _add_child_paths(module, module_path, path_by_module)


def _is_callable(module: Any) -> bool:
    """False for pure containers: they inherit torch.nn.Module.forward, which raises."""
    import torch

    return type(module).forward is not torch.nn.Module.forward


def _record_call_order(model: Any, inputs: tuple, named_inputs: dict) -> list[Any]:
    import torch

    called_modules: dict[Any, None] = {}
    hooks = [
        submodule.register_forward_pre_hook(lambda module, _: called_modules.setdefault(module))
        for submodule in model.modules()
    ]
    buffer_copies = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with torch.no_grad(), torch.random.fork_rng():
            model(*inputs, **named_inputs)
    finally:
        for hook in hooks:
            hook.remove()
        with torch.no_grad():
            for buffer, buffer_copy in buffer_copies:
                buffer.copy_(buffer_copy)
    return list(called_modules)
