# SPDX-License-Identifier: Apache-2.0
"""What PyTorch calls differently from version to version, 2.0 on. Everything else has had one name ever since."""

from __future__ import annotations

from typing import Any, Callable

from . import _capture


def compiling_check(torch: Any) -> Callable[[], bool]:
    """torch.compile knows this function and takes it for True while it looks through a program: a wrapper would not do."""
    return torch.compiler.is_compiling if hasattr(torch, "compiler") else torch._utils.is_compiling  # 2.1, 2.0


def transform_level(torch: Any) -> Callable[[], object]:
    """None where no transform of torch.func is under way."""
    functorch = torch._C._functorch
    return getattr(functorch, "maybe_current_level", None) or functorch.peek_interpreter_stack  # 2.2, 2.0


def grad_scaler(torch: Any) -> type:
    """The class that all scalers of losses are, or inherit from."""
    return getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler  # 2.3, 2.0


def register_forward_hook(modules: Any, hook: Callable) -> Any:
    """Of all modules; also called when a module raises, where PyTorch can do that."""
    if hasattr(modules, "_global_forward_hooks_always_called"):  # 2.1
        return modules.register_module_forward_hook(hook, always_call=True)
    return modules.register_module_forward_hook(hook)


def numbers_nodes(torch: Any) -> bool:
    """Whether nodes of autograd's graph tell in which order they were made: since 2.1."""
    return hasattr((torch.ones(1, device="cpu", requires_grad=True) * 1).grad_fn, "_sequence_nr")


def tell_of_old_compilers(torch: Any) -> None:
    """Dynamo of 2.0 takes away what optimizers tell of themselves, and looks through our hooks."""
    if not hasattr(torch, "compiler"):
        message = "torch.compile of PyTorch 2.0 hides optimizers: steps after its first use are not told"
        _capture.diagnose("old_compiler", message, "PyTorch 2.1 or later; else jm.step() in the loop")
