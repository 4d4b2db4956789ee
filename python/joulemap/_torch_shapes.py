# SPDX-License-Identifier: Apache-2.0
"""Formats the input tensors of an operation for `report --by tensor`: "[64,3,224,224] [64,3,7,7]".

The type precedes the shape unless it is float32: "int64[64]". Of many tensors the first 8 are listed, followed by the
number of the others; "()" is an operation without tensors. Texts are cached by shapes, because programs repeat them.
Only shape and type of a tensor are read, so nothing waits for a GPU.
"""

from __future__ import annotations

from typing import Optional

from . import _capture

# The same limit as in src/scopes/tensor_text.h.
MAX_TENSORS_IN_TEXT = 8
# Bounds memory and recording size for programs whose shapes change with every batch.
MAX_CACHED_TEXTS = 4096
NO_TENSORS_TEXT = "()"


class TensorTextFormatter:
    def __init__(self, torch) -> None:
        self._tensor_type = torch.Tensor
        self._disable_torch_function = torch._C.DisableTorchFunctionSubclass
        self._cached_texts: dict = {}
        self._is_cache_full = False

    def format_argument_tensors(self, types, args, kwargs) -> Optional[str]:
        """The text for the tensor arguments of an operation; None if a shape is unknown, as of a nested tensor."""
        argument_tensors: list = []
        self._find_tensors(args, argument_tensors)
        if kwargs:
            self._find_tensors(kwargs.values(), argument_tensors)
        if not types:
            return self._format_tensors(argument_tensors)
        with self._disable_torch_function():  # must not call __torch_function__ of subclasses
            return self._format_tensors(argument_tensors)

    def format_node_tensors(self, node) -> Optional[str]:
        """The text for the gradients that an autograd node receives; None in PyTorch 2.0, which does not expose
        them."""
        gradient_metadata = getattr(node, "_input_metadata", None)
        return None if gradient_metadata is None else self._format_tensors(gradient_metadata)

    def _find_tensors(self, arguments, found_tensors: list) -> None:
        for argument in arguments:
            if isinstance(argument, self._tensor_type):
                found_tensors.append(argument)
            elif type(argument) in (list, tuple):
                self._find_tensors(argument, found_tensors)

    def _format_tensors(self, tensors) -> Optional[str]:
        try:
            shapes_and_dtypes = tuple([(tuple(tensor.shape), tensor.dtype) for tensor in tensors])
            text = self._cached_texts.get(shapes_and_dtypes)
        except Exception:  # noqa: BLE001 - no shape; the report counts operations without shapes
            return None
        if text is None and not self._is_cache_full:
            text = self._cached_texts[shapes_and_dtypes] = _format_tensor(shapes_and_dtypes)
            self._is_cache_full = len(self._cached_texts) >= MAX_CACHED_TEXTS
            if self._is_cache_full:
                _capture.diagnose(
                    "shapes_left_out",
                    f"operations had more than {MAX_CACHED_TEXTS} different inputs: further ones have no shapes",
                    "",
                )
        return text


def _format_tensor(shapes_and_dtypes: tuple) -> str:
    if not shapes_and_dtypes:
        return NO_TENSORS_TEXT
    tensor_texts = []
    for shape, dtype in shapes_and_dtypes[:MAX_TENSORS_IN_TEXT]:
        dtype_name = str(dtype).rpartition(".")[2]
        tensor_texts.append(("" if dtype_name == "float32" else dtype_name) + "[" + ",".join(map(str, shape)) + "]")
    omitted_count = len(shapes_and_dtypes) - len(tensor_texts)
    return " ".join(tensor_texts) + (f" and {omitted_count} more" if omitted_count > 0 else "")
