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

    @property
    def energy_j(self) -> Optional[float]:
        """Same value as `joules`."""
        return self.joules

    @property
    def low_j(self) -> Optional[float]:
        """Lower bound of the 95 % interval; never below 0."""
        return interval_bound(self.joules, self.uncertainty_j, -1)

    @property
    def high_j(self) -> Optional[float]:
        """Upper bound of the 95 % interval."""
        return interval_bound(self.joules, self.uncertainty_j, 1)


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

    @property
    def energy_j(self) -> Optional[float]:
        """Same value as `joules`."""
        return self.joules

    @property
    def low_j(self) -> Optional[float]:
        """Lower bound of the 95 % interval; never below 0."""
        return interval_bound(self.joules, self.uncertainty_j, -1)

    @property
    def high_j(self) -> Optional[float]:
        """Upper bound of the 95 % interval."""
        return interval_bound(self.joules, self.uncertainty_j, 1)

    @property
    def time_s(self) -> Optional[float]:
        """Same value as `seconds`."""
        return self.seconds

    def __str__(self) -> str:
        duration = "" if self.seconds is None else f" in {_format_number(self.seconds)} s"
        if self.joules is None:
            return f"energy unknown{duration} ({self.reason})"
        counted = [domain for domain in self.domains if domain.counted and domain.provenance == self.provenance]
        parts = ", ".join(f"{domain.name} {_format_number(domain.joules)} J" for domain in counted)
        energy = f"{_format_number(self.joules)} J ± {_format_number(self.uncertainty_j)} J"
        return f"{energy}{duration} ({parts}), {self.provenance}"


def interval_bound(joules: Optional[float], uncertainty_j: Optional[float], sign: int) -> Optional[float]:
    """Bound of an interval that cannot be negative; None if the energy or its uncertainty is unknown."""
    if joules is None or uncertainty_j is None:
        return None
    return max(0.0, joules + sign * uncertainty_j)


def _format_number(value: Optional[float]) -> str:
    """Formats with three significant digits; without an exponent from 100 on."""
    if value is None:
        return "?"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
