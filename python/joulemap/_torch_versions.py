# SPDX-License-Identifier: Apache-2.0
"""APIs of PyTorch that differ between versions, from 2.0 on. All other APIs in use are the same in every version."""

from __future__ import annotations

from typing import Any, Callable

from . import _capture


def get_is_compiling(torch: Any) -> Callable[[], bool]:
    """Returns the function that torch.compile replaces by True while it traces code. It recognizes only this function,
    so callers must not wrap it."""
    return torch.compiler.is_compiling if hasattr(torch, "compiler") else torch._utils.is_compiling  # since 2.1; 2.0


def get_transform_level_reader(torch: Any) -> Callable[[], object]:
    """Returns a function that returns None outside of torch.func transforms."""
    functorch = torch._C._functorch
    return getattr(functorch, "maybe_current_level", None) or functorch.peek_interpreter_stack  # since 2.2; before


def grad_scaler_class(torch: Any) -> type:
    """The base class of all gradient scalers."""
    return getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler  # since 2.3; before


def register_forward_hook(modules: Any, hook: Callable) -> Any:
    """Registers a global module hook; PyTorch 2.1 and later also call it when a module raises."""
    if hasattr(modules, "_global_forward_hooks_always_called"):  # since PyTorch 2.1
        return modules.register_module_forward_hook(hook, always_call=True)
    return modules.register_module_forward_hook(hook)


def has_sequence_numbers(torch: Any) -> bool:
    """Whether autograd nodes have sequence numbers: since 2.1."""
    return hasattr((torch.ones(1, device="cpu", requires_grad=True) * 1).grad_fn, "_sequence_nr")


def warn_about_old_compilers(torch: Any) -> None:
    """Dynamo of 2.0 removes optimizer hooks and traces through the hooks of the capture."""
    if not hasattr(torch, "compiler"):
        message = "torch.compile of PyTorch 2.0 hides optimizers: steps after its first use are not recorded"
        _capture.diagnose("old_compiler", message, "use PyTorch 2.1 or later, or call jm.step() in the loop")
