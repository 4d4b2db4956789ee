# SPDX-License-Identifier: Apache-2.0
"""Files that a user names for results: complete or not at all, as the program writes them, and never over a recording."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from typing import Union

from ._library import JoulemapError

RECORDING_MAGIC = b"\xb5J\r\n"


@contextlib.contextmanager
def replaced(path: Union[str, os.PathLike]) -> Iterator[str]:
    """The path to write to: beside `path`, which takes the content when the block ends without an exception.

    A symbolic link stays and what it points to is replaced; permissions stay; pipes and devices are written directly."""
    target = os.path.realpath(os.fspath(path))
    mode = _mode_of(target)
    if mode is not None and not stat.S_ISREG(mode):
        yield target
        return
    if mode is not None and _is_recording(target):
        raise JoulemapError(f"{os.fspath(path)} is a recording: it would be overwritten; name another file")
    beside = os.path.join(os.path.dirname(target), f".joulemap-{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield beside
        if mode is not None:
            os.chmod(beside, stat.S_IMODE(mode))
        _sync(beside)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise


def _mode_of(path: str) -> Union[int, None]:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _is_recording(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(RECORDING_MAGIC)) == RECORDING_MAGIC


def _sync(path: str) -> None:
    with open(path, "rb+") as file, contextlib.suppress(OSError):  # not every file system can
        os.fsync(file.fileno())
