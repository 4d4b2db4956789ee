# SPDX-License-Identifier: Apache-2.0
"""Tells the capture what the instructions of programs come from that XLA compiles for a GPU: there XLA names the instruction
that runs by an NVTX range, and the program's text knows the operation behind it. On CPUs a trace of JAX's own has it all.
"""

from __future__ import annotations

import functools
import re
from typing import Iterator, Tuple

from . import _capture_interface as capture

_MODULE = re.compile(r"^HloModule ([^\s,]+)", re.MULTILINE)
_INSTRUCTION = re.compile(r'^\s*(?:ROOT )?%?([^\s=]+) = .*?metadata=\{[^}]*?op_name="((?:[^"\\]|\\.)*)"', re.MULTILINE)


def operations_of(hlo_text: str) -> Iterator[Tuple[str, str, str]]:
    """Module, instruction and name of the operation, for each instruction that has one with a path."""
    module = _MODULE.search(hlo_text)
    if module is None:
        return
    for instruction, op_name in _INSTRUCTION.findall(hlo_text):
        if "/" in op_name:
            yield module[1], instruction, op_name


@capture.guarded
def _tell(executable) -> None:
    for module in executable.hlo_modules():
        for told in operations_of(module.to_string()):
            capture.hlo_op(*told)


def watch_compiler() -> None:
    """Programs from the cache of an earlier run go the same way."""
    from jax._src import compiler

    original = compiler.compile_or_get_cached

    @functools.wraps(original)
    def compile_or_get_cached(backend, *args, **kwargs):
        executable = original(backend, *args, **kwargs)
        if getattr(backend, "platform", "cpu") != "cpu":
            _tell(executable)
        return executable

    compiler.compile_or_get_cached = compile_or_get_cached
    capture.hlo_op("", "", "")
