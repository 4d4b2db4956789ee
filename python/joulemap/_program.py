# SPDX-License-Identifier: Apache-2.0
"""The console script `joulemap`: the program that lies beside this file, in place of this process."""

from __future__ import annotations

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "joulemap")
    os.execv(program, [program, *sys.argv[1:]])
