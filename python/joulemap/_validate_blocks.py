# SPDX-License-Identifier: Apache-2.0
"""Selects blocks of a model and runs a pass in which one of them runs twice.

The second call runs beside the first, not after it: it gets the same inputs, and its output is dropped. In training,
the second call is one of a twin of the block (_validate_twin.py): its backward pass runs in the same pass of the
autograd engine, with gradients that the first call's outputs had in an earlier pass, and its results are dropped.
Nothing is averaged or summed, so the extra energy of a pass is the work of the block and what it takes to prepare a
second call. In training, and for a block that changes its inputs, whose second call gets copies, the pass is compared
with a control pass that only prepares it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Union

from ._torch_probe_inputs import InputNotReproducible, map_tensors, tensor_version
from ._torch_replay import collect_tensors
from ._torch_wrappers import WRAPPED_MODEL_ATTRIBUTES
from ._validate_twin import drop_gradients, make_module_twin, sparse_parameters

MIN_BLOCKS, MAX_BLOCKS = 4, 40
CONTAINER_CLASSES = ("Sequential", "ModuleList", "ModuleDict")


class CannotDoubleBlockError(Exception):
    """A block cannot be run twice; the text is the reason."""


class ModuleBlock(NamedTuple):
    """Modules that are run twice together: usually one."""

    name: str
    modules: tuple  # (path, module) pairs


def unwrap_model(model: Any) -> Any:
    while (wrapped_attribute := WRAPPED_MODEL_ATTRIBUTES.get(type(model).__name__)) and hasattr(
        model, wrapped_attribute
    ):
        model = getattr(model, wrapped_attribute)
    return model


def select_blocks(model: Any, requested: Union[None, Sequence[str], dict]) -> list:
    """The requested blocks: paths of modules, or {name: [paths]}; by default those of choose_blocks()."""
    if requested is None:
        return choose_blocks(model)
    modules = dict(model.named_modules())
    groups = requested if isinstance(requested, dict) else {path: [path] for path in requested}
    for name, block_paths in groups.items():
        if not block_paths or isinstance(block_paths, str):
            raise ValueError(f"{name!r} must be a list of modules, not {block_paths!r}")
    for path in (path for block_paths in groups.values() for path in block_paths):
        if path not in modules:
            raise ValueError(f"the model has no module {path!r}; model.named_modules() lists them")
    return [
        ModuleBlock(name, tuple((path, modules[path]) for path in block_paths)) for name, block_paths in groups.items()
    ]


def choose_blocks(model: Any) -> list:
    """Starts with the model's children. While they are few, or one contains most of the parameters, replaces the
    largest by its children."""
    path_by_id = {id(module): path for path, module in reversed(list(model.named_modules()))}
    chosen_modules = _called_children(model)
    while True:
        largest_module = max(filter(_can_be_divided, chosen_modules), key=_parameter_count, default=None)
        if largest_module is None:
            break
        is_divided_enough = len(chosen_modules) >= MIN_BLOCKS and 2 * _parameter_count(largest_module) <= sum(
            map(_parameter_count, chosen_modules)
        )
        children = _called_children(largest_module)
        if is_divided_enough or len(chosen_modules) - 1 + len(children) > MAX_BLOCKS:
            break
        largest_index = next(i for i, module in enumerate(chosen_modules) if module is largest_module)
        chosen_modules[largest_index : largest_index + 1] = children
    unique_modules = {id(module): module for module in chosen_modules}
    return [
        ModuleBlock(path_by_id[module_id], ((path_by_id[module_id], module),))
        for module_id, module in list(unique_modules.items())[:MAX_BLOCKS]
    ]


def _called_children(module: Any) -> list:
    """The children; containers that are never called themselves are replaced by their children."""
    children: list = []
    for child in module.children():
        is_container = type(child).__name__ in ("ModuleList", "ModuleDict")
        children += _called_children(child) if is_container else [child]
    return children


def _can_be_divided(module: Any) -> bool:
    """Layers of PyTorch are not divided: their children are often not called."""
    is_torch_module = type(module).__module__.startswith("torch.nn.")
    return next(module.children(), None) is not None and (
        not is_torch_module or type(module).__name__ in CONTAINER_CLASSES
    )


def _parameter_count(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class ModuleObservation:
    """What a module did in one pass."""

    def __init__(self) -> None:
        self.calls = 0
        self.changes_inputs = False
        self.refusal_reason: Optional[str] = None


@contextlib.contextmanager
def replace_forward(module: Any, make: Callable) -> Iterator[None]:
    """Replaces module.forward by make(module.forward) inside the context."""
    module_state = module.__dict__
    previous_forward = module_state.get("forward")
    module_state["forward"] = make(module.forward)
    try:
        yield
    finally:
        if previous_forward is None:
            del module_state["forward"]
        else:
            module_state["forward"] = previous_forward


def observe_modules(modules: Sequence, run: Callable[[], None]) -> dict:
    """Runs a pass; returns the observations of each module by id."""
    observations = {id(module): ModuleObservation() for module in modules}

    def observed_forward(module: Any, forward: Callable) -> Callable:
        observation = observations[id(module)]

        def call(*args: Any, **kwargs: Any) -> Any:
            observation.calls += 1
            tensors: list = []
            try:
                map_tensors((args, kwargs), tensors.append)
            except InputNotReproducible as error:
                observation.refusal_reason = f"{error}, which a second call may change"
            versions_before = [tensor_version(tensor) for tensor in tensors]
            output = forward(*args, **kwargs)
            observation.changes_inputs |= versions_before != [tensor_version(tensor) for tensor in tensors]
            if not collect_tensors(output):
                observation.refusal_reason = (
                    observation.refusal_reason or f"its output is a {type(output).__name__} without tensors"
                )
            return output

        return call

    with contextlib.ExitStack() as undo_stack:
        for module in {id(module): module for module in modules}.values():
            undo_stack.enter_context(
                replace_forward(module, lambda forward, module=module: observed_forward(module, forward))
            )
        run()
    return observations


def reason_against_doubling(observation: ModuleObservation) -> Optional[str]:
    if observation.calls == 0:
        return "not called in a pass"
    if observation.calls > 1:
        return f"called {observation.calls} times in a pass"
    return observation.refusal_reason


class DoubledBlockPass:
    """A variant of the pass: runs a block twice or, as its control, once with what a second call prepares.
    `extra_backward_roots`, in training: tensors and gradients with which the backward pass begins, beside the loss."""

    def __init__(
        self,
        torch: Any,
        block: ModuleBlock,
        observations: dict,
        extra_backward_roots: Optional[list],
        is_control: bool = False,
    ) -> None:
        self._torch, self._block, self._observations, self._is_control = torch, block, observations, is_control
        self._extra_backward_roots = [] if extra_backward_roots is None else extra_backward_roots
        self._is_training = is_training = extra_backward_roots is not None
        self._module_twins = (
            {id(module): make_module_twin(torch, module) for _, module in block.modules} if is_training else {}
        )
        self._output_gradients: dict = {}  # id of a module -> index of an output -> its gradient

    @property
    def needs_control_pass(self) -> bool:
        return self._is_training or any(
            self._observations[id(module)].changes_inputs for _, module in self._block.modules
        )

    def make_control_pass(self) -> DoubledBlockPass:
        return DoubledBlockPass(
            self._torch,
            self._block,
            self._observations,
            self._extra_backward_roots if self._is_training else None,
            is_control=True,
        )

    @contextlib.contextmanager
    def install_pass(self) -> Iterator[None]:
        with contextlib.ExitStack() as undo_stack:
            for _, module in self._block.modules:
                undo_stack.enter_context(
                    replace_forward(module, lambda forward, module=module: self._make_doubled_forward(module, forward))
                )
            yield

    def _make_doubled_forward(self, module: Any, forward: Callable) -> Callable:
        copies_inputs = self._observations[id(module)].changes_inputs
        twin = self._module_twins.get(id(module))
        second_forward = forward if twin is None else twin.forward
        twin_sparse_parameters = [] if twin is None else sparse_parameters(twin)

        def call(*args: Any, **kwargs: Any) -> Any:
            second_args, second_kwargs = args, kwargs
            if copies_inputs or self._is_training:
                second_args, second_kwargs = map_tensors(
                    (args, kwargs), lambda tensor: self._make_second_input(tensor, copies_inputs)
                )
            output = forward(*args, **kwargs)
            if self._is_control:
                return output
            drop_gradients(twin_sparse_parameters)
            second_output = second_forward(*second_args, **second_kwargs)
            if self._is_training:
                self._run_second_backward(module, output, second_output)
            return output

        return call

    def _make_second_input(self, tensor: Any, copies_input: bool) -> Any:
        """The same values with a separate autograd graph."""
        if self._is_training:
            tensor = tensor.detach().requires_grad_(tensor.requires_grad)
        return tensor.clone() if copies_input else tensor

    def _run_second_backward(self, module: Any, output: Any, second_output: Any) -> None:
        """The backward pass of the second call runs with that of the first, beginning with the gradients that the first
        call's outputs had in an earlier pass. The first pass keeps them."""
        tensors = [tensor for tensor in collect_tensors(output) if tensor.requires_grad]
        second_tensors = [tensor for tensor in collect_tensors(second_output) if tensor.requires_grad]
        if len(tensors) != len(second_tensors):
            raise CannotDoubleBlockError("its second call returned other outputs than the first")
        gradient_by_output = self._output_gradients.setdefault(id(module), {})
        for output_index, (tensor, second_tensor) in enumerate(zip(tensors, second_tensors)):
            if output_index in gradient_by_output:
                self._extra_backward_roots.append((second_tensor, gradient_by_output[output_index]))
            else:
                tensor.register_hook(
                    lambda gradient, output_index=output_index: _store_gradient(
                        gradient_by_output, output_index, gradient
                    )
                )


def _store_gradient(gradient_by_output: dict, output_index: int, gradient: Any) -> None:
    """Stores the gradient of an output. An output that the pass does not use gets None, which is not stored."""
    if gradient is not None:
        gradient_by_output[output_index] = gradient.detach().clone()
