"""A simulated GPU: writes the script that the fake NVML follows, and computes the energy that the script implies.

Times are seconds of CLOCK_MONOTONIC, as time.monotonic() and start_monotonic_ns of `joulemap stat` use.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class FakeGpu:
    """Piecewise constant power: (seconds since the script's origin, watts) pairs; repeats every repeat_s if given."""

    uuid: str = "GPU-11111111-2222-3333-4444-555555555555"
    name: str = "Fake H200"
    power: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 100.0)])
    repeat_s: float | None = None
    statements: list[str] = field(default_factory=list)  # other statements of tests/fake_nvml/script.h

    def script(self) -> str:
        points = " ".join(f"{time_s}:{watts}" for time_s, watts in self.power)
        repeat = f" repeat {self.repeat_s}" if self.repeat_s else ""
        lines = [f"device {self.uuid}", f"name {self.name}", f"power {points}{repeat}", *self.statements]
        return "\n".join(lines) + "\n"

    def _integrate_points(self, end_time_s: float) -> float:
        ends = [time_s for time_s, _ in self.power[1:]] + [end_time_s]
        pairs = zip(self.power, ends, strict=True)
        return sum(max(min(end, end_time_s) - begin, 0.0) * watts for (begin, watts), end in pairs)

    def compute_joules_until(self, time_s: float) -> float:
        """Energy in joules from the origin until a time in seconds since the origin."""
        if self.repeat_s is None:
            return self._integrate_points(time_s) if time_s >= 0 else time_s * self.power[0][1]
        rounds = time_s // self.repeat_s
        return rounds * self._integrate_points(self.repeat_s) + self._integrate_points(time_s - rounds * self.repeat_s)


class FakeNvml:
    """A script on disk and the environment that makes joulemap use it."""

    def __init__(self, directory: Path, library: Path, *gpus: FakeGpu) -> None:
        self.gpus = gpus
        self.origin = time.monotonic()
        script = directory / "fake-nvml-script"
        script.write_text(f"origin {self.origin!r}\n" + "".join(gpu.script() for gpu in gpus))
        self.environment = {"JOULEMAP_NVML": str(library), "JOULEMAP_FAKE_NVML": str(script)}

    def joules(self, begin: float, end: float, gpu: int = 0) -> float:
        """Energy of a GPU in joules between two moments of CLOCK_MONOTONIC, in seconds."""
        curve = self.gpus[gpu]
        return curve.compute_joules_until(end - self.origin) - curve.compute_joules_until(begin - self.origin)
