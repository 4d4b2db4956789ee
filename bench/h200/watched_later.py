# SPDX-License-Identifier: Apache-2.0
"""`joulemap record` whose capture begins in the middle of a program, so that a process can be compared with itself: where
steps wait for launches, two processes differ by more than what is looked for. Of use to benchmarks only.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Callable


def hold_back() -> Callable[[], None]:
    """Call before torch is imported, in a recorded program. What is returned lets everything begin."""
    watcher = next(finder for finder in sys.meta_path if type(finder).__name__ == "_Finder")
    sys.meta_path.remove(watcher)
    library = os.environ.pop("CUDA_INJECTION64_PATH")

    def begin() -> None:
        import torch

        sys.meta_path.insert(0, watcher)
        from joulemap import _torch_capture

        _torch_capture.install(torch)
        ctypes.CDLL(library).InitializeInjection()

    return begin
