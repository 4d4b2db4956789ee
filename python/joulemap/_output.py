# SPDX-License-Identifier: Apache-2.0
"""Output files named by the user: replaced atomically, and never written over a recording."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import unicodedata
from collections.abc import Iterator
from typing import Any, Union

from ._library import JoulemapError

RECORDING_MAGIC = b"\xb5J\r\n"


@contextlib.contextmanager
def replace_file_atomically(path: Union[str, os.PathLike]) -> Iterator[str]:
    """Yields a temporary path beside `path`, which is renamed to `path` when the block ends without an exception.

    A symbolic link is kept and its target replaced, unless another user may have planted the link. Permissions are
    kept; a new file is readable only by its owner. Pipes and devices are written directly."""
    if _has_untrusted_owner(os.fspath(path)):
        raise JoulemapError(f"{os.fspath(path)} belongs to another user in a world-writable folder: use another path")
    target_path = os.path.realpath(os.fspath(path))
    file_mode = _file_mode(target_path)
    if file_mode is not None and not stat.S_ISREG(file_mode):
        yield target_path
        return
    if file_mode is not None and _is_recording_file(target_path):
        raise JoulemapError(f"{os.fspath(path)} is a recording and would be overwritten: use another path")
    temporary_path = os.path.join(os.path.dirname(target_path), f".joulemap-{os.getpid()}-{threading.get_ident()}.tmp")
    os.close(os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    try:
        yield temporary_path
        if file_mode is not None:
            os.chmod(temporary_path, stat.S_IMODE(file_mode))
        _sync_file(temporary_path)
        os.replace(temporary_path, target_path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary_path)
        raise


def escape_csv_cell(value: Any) -> Any:
    """Escapes a text like `joulemap export --to csv`: terminal control characters become "?", and spreadsheet formulas
    are prefixed with an apostrophe."""
    if not isinstance(value, str):
        return value
    escaped_text = "".join("?" if _is_control_character(character) else character for character in value)
    return (
        "'" + escaped_text
        if escaped_text[:1] in ("=", "+", "-", "@") and not _is_number(escaped_text)
        else escaped_text
    )


def _is_control_character(character: str) -> bool:
    is_allowed_format_character = character in "\u00ad\u200c\u200d"  # soft hyphen; joiners that scripts and emoji need
    return not is_allowed_format_character and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_untrusted_owner(path: str) -> bool:
    """Whether another user placed this link or file in a world-writable folder: may_be_planted of
    src/base/output_file.cc."""
    if not os.path.lexists(path):
        return False
    folder_status = os.stat(os.path.dirname(path) or ".")
    path_status = os.lstat(path)
    is_link_or_file = stat.S_ISLNK(path_status.st_mode) or stat.S_ISREG(path_status.st_mode)
    return (
        is_link_or_file
        and bool(folder_status.st_mode & stat.S_IWOTH)
        and path_status.st_uid not in (os.geteuid(), folder_status.st_uid)
    )


def _file_mode(path: str) -> Union[int, None]:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _is_recording_file(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(RECORDING_MAGIC)) == RECORDING_MAGIC


def _sync_file(path: str) -> None:
    with open(path, "rb+") as file, contextlib.suppress(OSError):  # some file systems do not support fsync
        os.fsync(file.fileno())
