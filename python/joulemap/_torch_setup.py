# SPDX-License-Identifier: Apache-2.0
"""Captures phases outside of training: torch.save, torch.load, and moving or converting a whole model (setup)."""

from __future__ import annotations

from ._guard import wrap_in_phase
from ._torch_versions import compiling_check


def install(torch) -> None:
    for name, phase in (("save", "checkpoint_save"), ("load", "checkpoint_load")):
        wrap_in_phase(torch.serialization, name, compiling_check(torch), phase)
        setattr(torch, name, getattr(torch.serialization, name))
    # .to(), .cuda() and .half() all call _apply: copying the weights to a GPU takes as long as several steps.
    wrap_in_phase(torch.nn.Module, "_apply", compiling_check(torch), "setup")
