# SPDX-License-Identifier: Apache-2.0
"""Counts the Python function calls of a network's own code: the host work between launches.

It counts during the trace but excludes tracing overhead. Counting stops when a call enters this package or the parts of
PyTorch that compute shapes instead of data, and resumes when that call returns.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Optional

PACKAGE_PATH = str(Path(__file__).resolve().parent)
# Modules of PyTorch that compute shapes instead of data. On a GPU all of this is C++.
TRACING_PATHS = tuple(
    f"/torch/{name}"
    for name in (
        "_subclasses",
        "_refs",
        "_meta_registrations",
        "_prims",
        "_decomp",
        "_library",
        "_ops.py",
        "utils/_python_dispatch",
        "_dynamo",
        "compiler",
        "fx/",
    )
)
# nn.Module calls this function only if hooks exist, which tracing adds.
HOOK_WRAPPER_NAME = "inner"


class PythonCallCounter(contextlib.AbstractContextManager):
    """`call_count` is valid after exit; None if another profiler occupies Python's profiler slot."""

    def __init__(self) -> None:
        self.call_count: Optional[int] = None
        self._is_excluded_by_path, self._excluded_depth = {}, 0  # type: ignore[var-annotated]

    def __enter__(self) -> PythonCallCounter:
        if sys.getprofile() is None:
            self.call_count = 0
            sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: Any) -> None:
        if self.call_count is not None:
            sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            if self._excluded_depth or self._is_excluded(frame):
                self._excluded_depth += 1
            elif frame.f_code.co_name != HOOK_WRAPPER_NAME:
                self.call_count += 1  # type: ignore[operator]
        elif event == "return" and self._excluded_depth:
            self._excluded_depth -= 1

    def _is_excluded(self, frame: FrameType) -> bool:
        code_path = frame.f_code.co_filename
        if code_path not in self._is_excluded_by_path:
            self._is_excluded_by_path[code_path] = code_path.startswith(PACKAGE_PATH) or any(
                tracing_path in code_path for tracing_path in TRACING_PATHS
            )
        return self._is_excluded_by_path[code_path]
