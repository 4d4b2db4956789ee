# SPDX-License-Identifier: Apache-2.0
"""The energy of a window as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Domain:
    """The energy of one part of the machine: "package-0", "dram-0", "gpu0"."""

    name: str
    joules: Optional[float]
    uncertainty_j: Optional[float]
    watts: Optional[float]
    provenance: Optional[str]  # "measured" or "estimated"; None without joules
    counted: bool  # included in the sum; False if another domain contains it
    part_of: str
    sensor: str
    reason: str  # why the energy is unknown; otherwise empty


@dataclass(frozen=True)
class Diagnostic:
    """A problem with the data behind a number."""

    code: str
    count: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Energy:
    """The energy of a window, with the half width of its 95 % interval."""

    joules: Optional[float]
    uncertainty_j: Optional[float]
    seconds: Optional[float]
    watts: Optional[float]
    provenance: Optional[str]
    reason: str
    measured_j: Optional[float] = None
    estimated_j: Optional[float] = None
    settled: bool = False  # final: later sensor updates do not change it
    begin_ns: int = 0  # ns of CLOCK_MONOTONIC
    end_ns: int = 0
    domains: list[Domain] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def __str__(self) -> str:
        took = "" if self.seconds is None else f" in {_digits(self.seconds)} s"
        if self.joules is None:
            return f"energy unknown{took} ({self.reason})"
        counted = [domain for domain in self.domains if domain.counted and domain.provenance == self.provenance]
        parts = ", ".join(f"{domain.name} {_digits(domain.joules)} J" for domain in counted)
        return f"{_digits(self.joules)} J ± {_digits(self.uncertainty_j)} J{took} ({parts}), {self.provenance}"


def _digits(value: Optional[float]) -> str:
    """Formats with three significant digits; without an exponent from 100 on."""
    if value is None:
        return "?"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
