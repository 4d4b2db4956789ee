# SPDX-License-Identifier: Apache-2.0
"""Which rank of a distributed run this process is, once torch.distributed knows it."""

from __future__ import annotations

import os

from . import _capture
from ._guard import guarded

# What launchers say is read by libjoulemap_capture.so itself; a rank that the program gave is told to children by this.
VARIABLE = "JOULEMAP_RANK"


class RankWatch:
    """Looks whenever a step of another kind begins: by then a program that trains together has found the others."""

    def __init__(self, torch) -> None:
        self._distributed = torch.distributed if torch.distributed.is_available() else None
        self._looks_left = 100

    @guarded
    def look(self) -> None:
        if self._distributed is None or self._looks_left == 0:
            return
        self._looks_left -= 1
        if self._distributed.is_initialized():
            rank = str(self._distributed.get_rank())
            self._looks_left = 0
            os.environ[VARIABLE] = rank
            _capture.fact("rank", rank)
