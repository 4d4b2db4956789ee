# SPDX-License-Identifier: Apache-2.0
"""The energy of a window as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Domain:
    """The energy of one part of the machine: "package-0", "dram-0", "gpu0"."""

    name: str  # "package-0", "dram-0", "gpu0"
    joules: Optional[float]  # energy in J; None if unknown
    uncertainty_j: Optional[float]  # half width of the 95 % interval, in J
    watts: Optional[float]  # mean power, in W
    provenance: Optional[str]  # "measured" or "estimated"; None without joules
    counted: bool  # true if the sum includes it; False if another domain contains it
    part_of: str  # the domain that contains it, or empty
    sensor: str  # the sensor that provides the energy: "powercap", "nvml"
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

    code: str  # stable name, such as "counter_reset"
    count: int  # occurrences
    message: str  # description with the names and numbers of the run
    remedy: str  # what to do, or empty


@dataclass(frozen=True)
class Energy:
    """The energy of a window, with the half width of its 95 % interval."""

    joules: Optional[float]  # energy of the counted domains, in J: `measured_j` if known, otherwise `estimated_j`
    uncertainty_j: Optional[float]  # half width of the 95 % interval, in J
    seconds: Optional[float]  # duration of the window, in s
    watts: Optional[float]  # mean power, in W
    provenance: Optional[str]  # "measured", "estimated" or None
    reason: str  # why the energy is unknown; otherwise empty
    measured_j: Optional[float] = None  # sum of the counted domains that are measured, in J
    estimated_j: Optional[float] = None  # sum of the counted domains that are estimated, in J
    settled: bool = False  # true if later sensor updates do not change the energy
    begin_ns: int = 0  # start of the window, in ns of CLOCK_MONOTONIC
    end_ns: int = 0  # end of the window, in ns of CLOCK_MONOTONIC
    domains: list[Domain] = field(default_factory=list)  # one Domain per package, memory, GPU ...
    diagnostics: list[Diagnostic] = field(default_factory=list)  # problems with the data

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
        duration_text = "" if self.seconds is None else f" in {_format_number(self.seconds)} s"
        if self.joules is None:
            return f"energy unknown{duration_text} ({self.reason})"
        counted_domains = [domain for domain in self.domains if domain.counted and domain.provenance == self.provenance]
        domain_texts = ", ".join(f"{domain.name} {_format_number(domain.joules)} J" for domain in counted_domains)
        energy_text = f"{_format_number(self.joules)} J ± {_format_number(self.uncertainty_j)} J"
        return f"{energy_text}{duration_text} ({domain_texts}), {self.provenance}"


def interval_bound(joules: Optional[float], uncertainty_j: Optional[float], sign: int) -> Optional[float]:
    """Bound of an interval that cannot be negative; None if the energy or its uncertainty is unknown."""
    if joules is None or uncertainty_j is None:
        return None
    return max(0.0, joules + sign * uncertainty_j)


def _format_number(value: Optional[float]) -> str:
    """Formats with three significant digits; from 100 on, all integer digits and no decimals."""
    if value is None:
        return "?"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
