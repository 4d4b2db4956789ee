# SPDX-License-Identifier: Apache-2.0
"""Lazy imports of the package's modules.

Python locks a module while a thread imports it. A child forked during the import inherits the lock, and its own
import of that module never ends. Forks therefore wait until the import has finished.
"""

from __future__ import annotations

import _thread
import os

_import_lock = _thread.RLock()
os.register_at_fork(
    before=_import_lock.acquire, after_in_parent=_import_lock.release, after_in_child=_import_lock.release
)


def load_attribute(file: str, name: str) -> object:
    """Returns attribute `name` of the package's module `file`: load("_library", "read_energy")."""
    with _import_lock:
        from importlib import import_module

        return getattr(import_module(f".{file}", __package__), name)
