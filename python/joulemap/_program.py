# SPDX-License-Identifier: Apache-2.0
"""The console script `joulemap`: replaces this process by the C++ program bin/joulemap of this package. Only `joulemap
collect`, which needs PyTorch, runs in Python."""

from __future__ import annotations

import os
import sys


def main() -> None:
    if sys.argv[1:2] == ["collect"]:
        from ._collect.command import main as collect

        sys.exit(collect(sys.argv[2:]))
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "joulemap")
    os.environ.setdefault("JOULEMAP_PYTHON", sys.executable)  # for verbs that need Python: export, bench
    os.execv(program, [program, *sys.argv[1:]])
