# SPDX-License-Identifier: Apache-2.0
"""Captures phases outside of training: torch.save, torch.load, and moving or converting a whole model (setup)."""

from __future__ import annotations

from ._guard import wrap_in_phase
from ._torch_versions import get_is_compiling


def install(torch) -> None:
    for name, phase in (("save", "checkpoint_save"), ("load", "checkpoint_load")):
        wrap_in_phase(torch.serialization, name, get_is_compiling(torch), phase)
        setattr(torch, name, getattr(torch.serialization, name))
    # .to(), .cuda() and .half() all call _apply: copying the weights to a GPU takes as long as several steps.
    wrap_in_phase(torch.nn.Module, "_apply", get_is_compiling(torch), "setup")
