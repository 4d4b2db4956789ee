# SPDX-License-Identifier: Apache-2.0
"""Files of the package that are imported when they are first needed.

Python locks a module while a thread imports it, and a child that is forked meanwhile inherits the lock: its own import of
that module never ends. So a fork waits until such an import is over.
"""

from __future__ import annotations

import _thread
import os

_lock = _thread.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def load(file: str, name: str) -> object:
    """`name` of `file`, one of this package: load("_library", "ask")."""
    with _lock:
        from importlib import import_module

        return getattr(import_module(f".{file}", __package__), name)
