# SPDX-License-Identifier: Apache-2.0
"""What a window used, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Domain:
    """What one part of the machine used: "package-0", "dram-0", "gpu0"."""

    name: str
    joules: Optional[float]
    uncertainty_j: Optional[float]
    watts: Optional[float]
    provenance: Optional[str]  # "measured", "estimated"; None when there are no joules
    counted: bool  # part of the sum; False for what another domain contains
    part_of: str
    sensor: str
    reason: str  # why there are no joules; else empty


@dataclass(frozen=True)
class Diagnostic:
    """What was wrong with the data behind a number."""

    code: str
    count: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Energy:
    """What a window used, with the half width of its 95 % interval."""

    joules: Optional[float]
    uncertainty_j: Optional[float]
    seconds: Optional[float]
    watts: Optional[float]
    provenance: Optional[str]
    reason: str
    measured_j: Optional[float] = None
    estimated_j: Optional[float] = None
    settled: bool = False  # no later question will tell more
    begin_ns: int = 0  # of time.monotonic_ns()
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
    """Three significant digits, without an exponent where people would not use one."""
    if value is None:
        return "?"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
