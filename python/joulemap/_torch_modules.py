# SPDX-License-Identifier: Apache-2.0
"""Names modules by their paths within a model; models are distinguished by instance, not by class."""

from __future__ import annotations

import sys
import weakref
from typing import Callable, Optional

from . import _capture
from ._torch_versions import get_transform_level_reader
from ._torch_wrappers import WRAPPED_MODEL_ATTRIBUTES


def make_transform_check(torch) -> Callable[[], bool]:
    """Returns a function that is True during a trace or transform (torch.jit.trace, torch.func.grad), when a call does
    not simply compute its result."""
    get_tracing_state = torch._C._get_tracing_state
    get_transform_level = get_transform_level_reader(torch)

    def is_in_transform() -> bool:
        return get_tracing_state() is not None or get_transform_level() is not None

    return is_in_transform


def make_running_check(torch) -> Callable[[object], bool]:
    """Returns a function that is True if a called module was already running: recursion, or state left by an
    interrupt."""
    call_impl_code = torch.nn.Module._call_impl.__code__

    def is_running(module) -> bool:
        """Counts the frames of Module._call_impl for this module. The current call has such a frame already if a global
        hook captured it, and none yet if a replaced __call__ did."""
        frame, running_count = sys._getframe().f_back, 0
        own_frame_count = 1 if frame is not None and frame.f_code.co_name == "before" else 0
        while frame is not None:
            if frame.f_code is call_impl_code and frame.f_locals.get("self") is module:
                running_count += 1
            frame = frame.f_back
        return running_count > own_frame_count

    return is_running


class ModuleNames:
    """Names modules on their first call. A model is traversed once, when it is first called."""

    def __init__(self, torch) -> None:
        self._loss_type = torch.nn.modules.loss._Loss
        self._module_type = torch.nn.Module
        self._path_by_node: dict[int, str] = {}  # paths of modules within their model
        self._root_by_node: dict[int, weakref.ref] = {}  # by node: the model that contains it
        self._numbers_in_use: dict[str, set[int]] = {}  # by class: numbers of models that are alive
        self._miss_counts: dict[int, int] = {}  # by node of a model: calls of modules it does not contain

    def name_called_module(self, module, outermost: Optional[object]) -> None:
        """Names `module`, which was called within `outermost`."""
        if outermost is not None and self._should_rescan(outermost):
            self._name_modules(outermost)
        if _capture.find_module_node(module) < 0:
            self._name_modules(module)

    def module_path(self, module) -> str:
        """The path of the module; its class if it has none."""
        return self._path_by_node.get(_capture.find_module_node(module), "") or type(module).__name__

    def _should_rescan(self, outermost_module) -> bool:
        """Whether to traverse the model again, because a module was called that it did not contain. After the 1st, 2nd,
        4th, 8th ... such call only: some models create modules in every call and do not keep them."""
        node = _capture.find_module_node(outermost_module)
        miss_count = self._miss_counts[node] = self._miss_counts.get(node, 0) + 1
        return miss_count & (miss_count - 1) == 0

    def _name_modules(self, root) -> None:
        node = _capture.find_module_node(root)
        if node < 0:
            node = self._name_root(root)
        contained_ids = {id(module) for module in root.modules()}
        self._name_children(root, node, self._path_by_node.get(node, ""), weakref.ref(root), contained_ids, {id(root)})

    def _name_root(self, root) -> int:
        model = root
        while (wrapped_attribute := WRAPPED_MODEL_ATTRIBUTES.get(type(model).__name__)) and isinstance(
            getattr(model, wrapped_attribute, None), self._module_type
        ):
            model = getattr(model, wrapped_attribute)
        node = _capture.find_module_node(model)
        if node < 0:
            node = _capture.find_or_add_module_node(0, self._unused_name(model))
            self._path_by_node[node] = ""
        self._name_node(root, node, weakref.ref(root))
        return node

    def _unused_name(self, model) -> str:
        """The name of a model: its class, with a number if another model of that class is alive."""
        name = type(model).__name__
        used_numbers = self._numbers_in_use.setdefault(name, set())
        number = next(
            candidate_number
            for candidate_number in range(1, len(used_numbers) + 2)
            if candidate_number not in used_numbers
        )
        used_numbers.add(number)
        weakref.finalize(model, used_numbers.discard, number).atexit = False
        return name if number == 1 else f"{name}#{number}"

    def _name_node(self, module, node: int, root: weakref.ref) -> None:
        _capture.name_module(module, node, isinstance(module, self._loss_type))
        self._root_by_node[node] = root

    def _name_children(
        self, parent, node: int, parent_path: str, root: weakref.ref, contained_ids: set[int], seen_ids: set[int]
    ) -> None:
        wrapped_attribute = WRAPPED_MODEL_ATTRIBUTES.get(type(parent).__name__)
        for name, module in parent._modules.items():
            if module is None or id(module) in seen_ids:
                continue
            seen_ids.add(id(module))
            if name == wrapped_attribute:
                child_node, child_path = node, parent_path
            else:
                child_path = f"{parent_path}.{name}" if parent_path else name
                child_node = _capture.find_or_add_module_node(node, child_path)
            known_node = _capture.find_module_node(module)
            if known_node < 0 or self._belongs_to_other_model(known_node, contained_ids):
                self._path_by_node[child_node] = child_path
                self._name_node(module, child_node, root)
            else:
                child_node, child_path = known_node, self._path_by_node.get(known_node, child_path)
            self._name_children(module, child_node, child_path, root, contained_ids, seen_ids)

    def _belongs_to_other_model(self, node: int, contained_ids: set[int]) -> bool:
        """Whether a module was named within a model that no longer exists, or that is part of this one."""
        root = self._root_by_node.get(node)
        model = root() if root is not None else None
        return model is None or id(model) in contained_ids
