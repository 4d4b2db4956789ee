# SPDX-License-Identifier: Apache-2.0
"""Selects blocks of a model and runs a pass in which one of them runs twice.

The second call runs beside the first, not after it: it gets the same inputs, and its output is dropped. In training,
its backward pass runs when the gradients of the first call's outputs are available, uses them, and its results are
dropped. Nothing is averaged or summed, so the extra energy of a pass is the work of the block and nothing else. The
exception is a block that changes its inputs: its second call gets copies, and it is compared with a control pass that
only makes the copies.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Union

from ._torch_probe_inputs import CannotBeKept, map_tensors, version_of
from ._torch_replay import tensors_in
from ._torch_wrappers import WRAPPERS

FEWEST_BLOCKS, MOST_BLOCKS = 4, 40
CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")


class Refused(Exception):
    """A block cannot be run twice; the text is the reason."""


class Block(NamedTuple):
    """Modules that are run twice together: usually one."""

    name: str
    modules: tuple  # of (path, module)


def unwrapped(model: Any) -> Any:
    while (held := WRAPPERS.get(type(model).__name__)) and hasattr(model, held):
        model = getattr(model, held)
    return model


def named_blocks(model: Any, asked: Union[None, Sequence[str], dict]) -> list:
    """The requested blocks: paths of modules, or {name: [paths]}; by default those of choose_blocks()."""
    if asked is None:
        return choose_blocks(model)
    modules = dict(model.named_modules())
    groups = asked if isinstance(asked, dict) else {path: [path] for path in asked}
    for path in (path for paths in groups.values() for path in paths):
        if path not in modules:
            raise ValueError(f"the model has no module {path!r}; they are those of model.named_modules()")
    return [Block(name, tuple((path, modules[path]) for path in paths)) for name, paths in groups.items()]


def choose_blocks(model: Any) -> list:
    """Starts with the model's children. While they are few, or one contains most of the parameters, replaces the
    largest by its children."""
    paths = {id(module): path for path, module in reversed(list(model.named_modules()))}
    chosen = _called_children(model)
    while True:
        largest = max(filter(_opens, chosen), key=_parameters, default=None)
        if largest is None:
            break
        enough = len(chosen) >= FEWEST_BLOCKS and 2 * _parameters(largest) <= sum(map(_parameters, chosen))
        children = _called_children(largest)
        if enough or len(chosen) - 1 + len(children) > MOST_BLOCKS:
            break
        at = next(i for i, module in enumerate(chosen) if module is largest)
        chosen[at : at + 1] = children
    unique = {id(module): module for module in chosen}
    return [Block(paths[key], ((paths[key], module),)) for key, module in list(unique.items())[:MOST_BLOCKS]]


def _called_children(module: Any) -> list:
    """The children; containers that are never called themselves are replaced by their children."""
    children: list = []
    for child in module.children():
        is_list = type(child).__name__ in ("ModuleList", "ModuleDict")
        children += _called_children(child) if is_list else [child]
    return children


def _opens(module: Any) -> bool:
    """Layers of PyTorch are not divided: their children are often not called."""
    is_own = type(module).__module__.startswith("torch.nn.")
    return next(module.children(), None) is not None and (not is_own or type(module).__name__ in CONTAINERS)


def _parameters(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class Seen:
    """Observations of a module in one pass."""

    def __init__(self) -> None:
        self.calls = 0
        self.changes_inputs = False
        self.refusal: Optional[str] = None


@contextlib.contextmanager
def forward_replaced(module: Any, make: Callable) -> Iterator[None]:
    """Replaces module.forward by make(module.forward) inside the context."""
    state = module.__dict__
    before = state.get("forward")
    state["forward"] = make(module.forward)
    try:
        yield
    finally:
        if before is None:
            del state["forward"]
        else:
            state["forward"] = before


def look_at(modules: Sequence, run: Callable[[], None]) -> dict:
    """Runs a pass; returns the observations of each module by id."""
    seen = {id(module): Seen() for module in modules}

    def watched(module: Any, forward: Callable) -> Callable:
        found = seen[id(module)]

        def call(*args: Any, **kwargs: Any) -> Any:
            found.calls += 1
            tensors: list = []
            try:
                map_tensors((args, kwargs), tensors.append)
            except CannotBeKept as error:
                found.refusal = f"it {error}, which a second call may change"
            before = [version_of(tensor) for tensor in tensors]
            output = forward(*args, **kwargs)
            found.changes_inputs |= before != [version_of(tensor) for tensor in tensors]
            if not tensors_in(output):
                found.refusal = found.refusal or f"its output is a {type(output).__name__} without tensors"
            return output

        return call

    with contextlib.ExitStack() as undo:
        for module in {id(module): module for module in modules}.values():
            undo.enter_context(forward_replaced(module, lambda forward, module=module: watched(module, forward)))
        run()
    return seen


def reason_against(found: Seen) -> Optional[str]:
    if found.calls == 0:
        return "it is not called in a pass"
    if found.calls > 1:
        return f"it is called {found.calls} times in a pass"
    return found.refusal


class Doubling:
    """A variant of the pass: runs a block twice or, as its control, once with the copies that the second call needs."""

    def __init__(self, torch: Any, block: Block, seen: dict, train: bool, is_control: bool = False) -> None:
        self._torch, self._block, self._seen, self._train, self._is_control = torch, block, seen, train, is_control

    @property
    def needs_control(self) -> bool:
        return any(self._seen[id(module)].changes_inputs for _, module in self._block.modules)

    def control(self) -> Doubling:
        return Doubling(self._torch, self._block, self._seen, self._train, is_control=True)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        with contextlib.ExitStack() as undo:
            for _, module in self._block.modules:
                undo.enter_context(forward_replaced(module, lambda forward, module=module: self._twice(module, forward)))
            yield

    def _twice(self, module: Any, forward: Callable) -> Callable:
        copies = self._seen[id(module)].changes_inputs

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves: list = []
            again_args, again_kwargs = args, kwargs
            if copies or self._train:
                again_args, again_kwargs = map_tensors((args, kwargs), lambda tensor: self._again(tensor, copies, leaves))
            output = forward(*args, **kwargs)
            if not self._is_control:
                again = forward(*again_args, **again_kwargs)
                if self._train:
                    self._run_backward_again(module, output, again, leaves)
            return output

        return call

    def _again(self, tensor: Any, copies: bool, leaves: list) -> Any:
        """The same values with a separate autograd graph."""
        if self._train:
            needs_gradient = tensor.requires_grad
            tensor = tensor.detach()
            if needs_gradient:
                leaves.append(tensor.requires_grad_())
        return tensor.clone() if copies else tensor

    def _run_backward_again(self, module: Any, output: Any, again: Any, leaves: list) -> None:
        torch = self._torch
        outputs = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        outputs_again = [tensor for tensor in tensors_in(again) if tensor.requires_grad]
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        targets = list({id(tensor): tensor for tensor in (*leaves, *parameters)}.values())
        if not outputs or not targets:
            return
        if len(outputs) != len(outputs_again):
            raise Refused("its second call gave other outputs than its first")

        def backward_again(gradients: Sequence) -> None:
            pairs = [(out, gradient) for out, gradient in zip(outputs_again, gradients) if gradient is not None]
            if pairs:
                outs, upstream = zip(*pairs)
                torch.autograd.grad(outs, targets, upstream, allow_unused=True)

        if len(outputs) == 1:
            outputs[0].register_hook(lambda gradient: backward_again([gradient]))
        else:
            torch.autograd.graph.register_multi_grad_hook(outputs, backward_again)
