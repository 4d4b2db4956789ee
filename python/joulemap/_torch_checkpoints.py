# SPDX-License-Identifier: Apache-2.0
"""torch.save and torch.load are phases of their own."""

from __future__ import annotations

from ._guard import in_phase


def install(torch) -> None:
    for name, phase in (("save", "checkpoint_save"), ("load", "checkpoint_load")):
        in_phase(torch.serialization, name, torch.compiler.is_compiling, phase)
        setattr(torch, name, getattr(torch.serialization, name))
