# SPDX-License-Identifier: Apache-2.0
"""Passes the operation behind each instruction of an XLA program for GPUs to the capture. On GPUs XLA names the running
instruction by an NVTX range, and the HLO text maps it to an operation. On CPUs JAX's own trace contains both.
"""

from __future__ import annotations

import functools
import re
from typing import Iterator, Tuple

from . import _capture_interface as capture

_HLO_MODULE_PATTERN = re.compile(r"^HloModule ([^\s,]+)", re.MULTILINE)
_HLO_INSTRUCTION_PATTERN = re.compile(
    r'^\s*(?:ROOT )?%?([^\s=]+) = .*?metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"', re.MULTILINE
)


def parse_hlo_operations(hlo_text: str) -> Iterator[Tuple[str, str, str]]:
    """Yields module, instruction and operation name for each instruction whose operation name has a path."""
    module = _HLO_MODULE_PATTERN.search(hlo_text)
    if module is None:
        return
    for instruction, op_name in _HLO_INSTRUCTION_PATTERN.findall(hlo_text):
        if "/" in op_name:
            yield module[1], instruction, op_name


@capture.suppress_failures
def _record_hlo_operations(executable) -> None:
    for module in executable.hlo_modules():
        for operation in parse_hlo_operations(module.to_string()):
            capture.hlo_op(*operation)


def watch_compiler() -> None:
    """Wraps XLA compilation, including programs from the compilation cache of an earlier run."""
    from jax._src import compiler

    original_compile = compiler.compile_or_get_cached

    @functools.wraps(original_compile)
    def compile_or_get_cached(backend, *args, **kwargs):
        executable = original_compile(backend, *args, **kwargs)
        if getattr(backend, "platform", "cpu") != "cpu":
            _record_hlo_operations(executable)
        return executable

    compiler.compile_or_get_cached = compile_or_get_cached
    capture.hlo_op("", "", "")
