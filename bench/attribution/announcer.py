# SPDX-License-Identifier: Apache-2.0
"""Announces a process's current operation to the simulated machine: the writer of
tests/simulated_machine/operations.h."""

import mmap
import os
import struct


class Announcer:
    """Writes the current operation of this process to its slot in the page, which is shared memory."""

    def __init__(self, operation_page_path: str, operation_kinds_path: str, slot: int) -> None:
        """Announces the first operation."""
        with open(operation_kinds_path, encoding="ascii") as kinds:
            self._operation_numbers = {line.split()[0]: number for number, line in enumerate(kinds)}
        with open(operation_page_path, "r+b") as page:
            self._shared_page = mmap.mmap(page.fileno(), 0)
        self._slot_offset = 8 * slot
        struct.pack_into("=II", self._shared_page, self._slot_offset, os.getpid(), 0)

    def at(self, operation: str) -> None:
        """Announces the operation that this process runs from now on."""
        struct.pack_into("=I", self._shared_page, self._slot_offset + 4, self._operation_numbers[operation])
