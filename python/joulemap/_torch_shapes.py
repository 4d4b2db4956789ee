# SPDX-License-Identifier: Apache-2.0
"""What the tensors are that an operation is given, as `report --by tensor` shows them: "[64,3,224,224] [64,3,7,7]".

A type stands in front unless it is float32: "int64[64]". Of many tensors the first ones are told, and how many there are
besides; "()" is an operation that is given none. Texts are made once for the same shapes: programs repeat themselves.
Nothing is read of a tensor but its shape and type, so nothing waits for a GPU.
"""

from __future__ import annotations

from typing import Optional

from . import _capture

# As src/scopes/tensor_text.h has it.
MOST_TENSORS = 8
# Shapes that change with every batch must not fill the memory and the recording.
MOST_TEXTS = 4096
NO_TENSORS = "()"


class TensorTexts:
    def __init__(self, torch) -> None:
        self._tensor = torch.Tensor
        self._without_subclasses = torch._C.DisableTorchFunctionSubclass
        self._texts: dict = {}
        self._is_full = False

    def of_arguments(self, types, args, kwargs) -> Optional[str]:
        """None where it cannot be known: a nested tensor has no shape."""
        found: list = []
        self._find(args, found)
        if kwargs:
            self._find(kwargs.values(), found)
        if not types:
            return self._text(found)
        with self._without_subclasses():  # asking a tensor of the program's own kind must not call the program
            return self._text(found)

    def of_node(self, node) -> Optional[str]:
        """Of a node of the autograd graph: the gradients it is given. PyTorch 2.0 does not tell them."""
        given = getattr(node, "_input_metadata", None)
        return None if given is None else self._text(given)

    def _find(self, values, found: list) -> None:
        for value in values:
            if isinstance(value, self._tensor):
                found.append(value)
            elif type(value) in (list, tuple):
                self._find(value, found)

    def _text(self, tensors) -> Optional[str]:
        try:
            key = tuple([(tuple(tensor.shape), tensor.dtype) for tensor in tensors])
            text = self._texts.get(key)
        except Exception:  # noqa: BLE001 - it has none; the report counts operations without shapes
            return None
        if text is None and not self._is_full:
            text = self._texts[key] = _written(key)
            self._is_full = len(self._texts) >= MOST_TEXTS
            if self._is_full:
                _capture.diagnose(
                    "shapes_left_out", f"operations had more than {MOST_TEXTS} different inputs: others have no shapes", ""
                )
        return text


def _written(key: tuple) -> str:
    if not key:
        return NO_TENSORS
    words = []
    for shape, dtype in key[:MOST_TENSORS]:
        name = str(dtype).rpartition(".")[2]
        words.append(("" if name == "float32" else name) + "[" + ",".join(map(str, shape)) + "]")
    more = len(key) - len(words)
    return " ".join(words) + (f" and {more} more" if more > 0 else "")
