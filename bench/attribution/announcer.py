# SPDX-License-Identifier: Apache-2.0
"""Announces a process's current operation to the simulated machine: the writer of
tests/simulated_machine/operations.h."""

import mmap
import os
import struct


class Announcer:
    """Writes the current operation of this process to its slot in the page, which is shared memory."""

    def __init__(self, page_path: str, kinds_path: str, slot: int) -> None:
        """Announces the first operation."""
        with open(kinds_path, encoding="ascii") as kinds:
            self._numbers = {line.split()[0]: number for number, line in enumerate(kinds)}
        with open(page_path, "r+b") as page:
            self._page = mmap.mmap(page.fileno(), 0)
        self._offset = 8 * slot
        struct.pack_into("=II", self._page, self._offset, os.getpid(), 0)

    def at(self, operation: str) -> None:
        """Announces the operation that this process runs from now on."""
        struct.pack_into("=I", self._page, self._offset + 4, self._numbers[operation])
