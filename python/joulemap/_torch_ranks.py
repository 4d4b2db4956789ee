# SPDX-License-Identifier: Apache-2.0
"""Records the rank of this process in a distributed run, once torch.distributed is initialized."""

from __future__ import annotations

import os

from . import _capture
from ._guard import suppress_failures

# libjoulemap_capture.so reads the variables of launchers itself. This one passes a rank set by the program to child
# processes.
RANK_VARIABLE = "JOULEMAP_RANK"


class RankRecorder:
    """Checks whenever the sampling mode of steps changes, at most 100 times: by then the program has initialized its
    process group."""

    def __init__(self, torch) -> None:
        self._distributed = torch.distributed if torch.distributed.is_available() else None
        self._remaining_checks = 100

    @suppress_failures
    def record_rank(self) -> None:
        if self._distributed is None or self._remaining_checks == 0:
            return
        self._remaining_checks -= 1
        if self._distributed.is_initialized():
            rank = str(self._distributed.get_rank())
            self._remaining_checks = 0
            os.environ[RANK_VARIABLE] = rank
            _capture.fact("rank", rank)
