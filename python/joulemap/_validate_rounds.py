# SPDX-License-Identifier: Apache-2.0
"""Measures the energy of a pass, plain and with a block run twice: loops of passes in random order, for several rounds.

GPU temperature and clocks drift, so a loop is compared with the plain loops just before and after it. Energies are read
after all loops have ended: waiting for a window changes how the counter is read.

The speed of a host drifts as well, by a tenth from one second to the next on a shared machine. Where passes are limited
by the host, they are also timed one by one in turn (HostTimes).
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _measure
from ._validate_statistics import HostTimes, PassLoop, is_limited_by_host

# Number of block loops between two plain loops.
BLOCK_LOOPS_BETWEEN_PLAIN_LOOPS = 2
# Seconds of the same passes around each loop: the edge of a slow counter lies between two of its updates.
LEAD_TIME_S = 0.12
WARM_UP_S = 0.3
# Time of single passes in turn, as a share of the time of all loops.
HOST_TIMING_SHARE = 1.0
PASSES_PER_SYNC = 10
TIMED_PASS_COUNT = 3


class PassVariant(NamedTuple):
    """A variant of the pass. `block` is None for the plain pass; `is_control` marks the control of a block."""

    block: Optional[str]
    is_control: bool
    install_pass: Callable[[], Any]  # context in which the pass runs this variant


def make_plain_variant() -> PassVariant:
    return PassVariant(None, False, contextlib.nullcontext)


class WindowMeter:
    """Measures loops with windows (jm.measure): of one domain, or of all counted and measured domains."""

    lead_s = LEAD_TIME_S

    def __init__(self, domain: Optional[str]) -> None:
        self._domain = domain
        self._windows: dict = {}
        self.is_measured = True  # False once an estimate was used

    def __enter__(self) -> WindowMeter:
        """Opens the sensors. Raises if no sensor covers the domain, before minutes are spent."""
        first = self.begin()
        self.end(first)
        known = [domain.name for domain in self._windows[first].wait().domains]
        if self._domain is not None and self._domain not in known:
            raise ValueError(f"the energy of {self._domain} is not measured here: run joulemap doctor")
        return self

    def __exit__(self, *details: object) -> None:
        pass

    def begin(self) -> int:
        number = len(self._windows)
        self._windows[number] = _measure.begin("validate")
        return number

    def end(self, number: int) -> None:
        _measure.end(self._windows[number])

    def joules(self, number: int) -> float:
        energy = self._windows[number].wait()
        domains = [domain for domain in energy.domains if domain.counted and domain.joules is not None]
        if self._domain is not None:
            domains = [domain for domain in domains if domain.name == self._domain]
        if not domains:
            domain_name = self._domain or "this machine"
            raise ValueError(f"no energy of {domain_name} is measured: {energy.reason or 'run joulemap doctor'}")
        measured = [domain for domain in domains if domain.provenance == "measured"]
        self.is_measured &= bool(measured)
        return sum(domain.joules for domain in measured or domains)


class LoopRunner:
    """Runs the loops. `run` runs a pass, `wait` waits until the device has finished it."""

    def __init__(self, run: Callable[[], None], wait: Callable[[], None], meter: Any, seconds: float) -> None:
        self._run, self._wait_for_device, self._meter, self._seconds = run, wait, meter, seconds
        self._pass_s: dict = {}
        self._pass_loops: list = []
        self._window_numbers: list = []

    def time_pass(self, variant: PassVariant) -> None:
        """Runs a variant and measures the time of its pass. Its exceptions propagate."""
        with variant.install_pass():
            self._run()
            self._wait_for_device()
            begin_s = time.perf_counter()
            for _ in range(TIMED_PASS_COUNT):
                self._run()
            self._wait_for_device()
        self._pass_s[variant[:2]] = max((time.perf_counter() - begin_s) / TIMED_PASS_COUNT, 1e-6)

    def pass_count(self, variant: PassVariant, seconds: float) -> int:
        return max(1, round(seconds / self._pass_s[variant[:2]]))

    def warm_up(self, seconds: float = WARM_UP_S) -> None:
        plain = make_plain_variant()
        self._repeat_pass(self.pass_count(plain, seconds))
        self._wait_for_device()
        self.time_pass(plain)

    def run_rounds(self, variants: Sequence, rounds: int, seed: int, progress: Callable[[str], None]) -> list:
        """Returns the loops of all rounds with their energies."""
        rng = random.Random(seed)
        for number in range(rounds):
            begin_s = time.monotonic()
            order = list(variants)
            rng.shuffle(order)
            for index, variant in enumerate(order):
                if index % BLOCK_LOOPS_BETWEEN_PLAIN_LOOPS == 0:
                    self._run_loop(make_plain_variant(), number)
                self._run_loop(variant, number)
            self._run_loop(make_plain_variant(), number)
            progress(f"round {number + 1} of {rounds}: {time.monotonic() - begin_s:.1f} s")
        return [
            loop._replace(joules=self._meter.joules(token))
            for loop, token in zip(self._pass_loops, self._window_numbers)
        ]

    def time_passes_on_host(self, variants: Sequence, rounds: int, seed: int) -> Optional[HostTimes]:
        """Times single passes of all variants in turn, if the loops so far show that the host limits them."""
        if not is_limited_by_host(self._pass_loops):
            return None
        rng = random.Random(seed)
        order = [make_plain_variant(), *variants]
        times: dict = {(variant.block, variant.is_control): [] for variant in order}
        end_s = time.monotonic() + HOST_TIMING_SHARE * rounds * len(variants) * self._seconds
        while time.monotonic() < end_s:
            for _ in range(PASSES_PER_SYNC):
                rng.shuffle(order)
                for variant in order:
                    with variant.install_pass():
                        begin_s = time.perf_counter()
                        self._run()
                        times[variant.block, variant.is_control].append(time.perf_counter() - begin_s)
            self._wait_for_device()
        return times

    def _run_loop(self, variant: PassVariant, round_number: int) -> None:
        passes = self.pass_count(variant, self._seconds)
        lead_pass_count = self.pass_count(variant, self._meter.lead_s) if self._meter.lead_s > 0 else 0
        with variant.install_pass():
            self._repeat_pass(lead_pass_count)
            self._wait_for_device()
            token, begin_ns = self._meter.begin(), time.monotonic_ns()
            self._repeat_pass(passes)
            self._wait_for_device()
            end_ns = time.monotonic_ns()
            self._meter.end(token)
            self._repeat_pass(lead_pass_count)
            self._wait_for_device()
        self._window_numbers.append(token)
        self._pass_s[variant[:2]] = (end_ns - begin_ns) * 1e-9 / passes
        self._pass_loops.append(
            PassLoop(variant.block, variant.is_control, round_number, passes, begin_ns, end_ns, 0.0)
        )

    def _repeat_pass(self, passes: int) -> None:
        for _ in range(passes):
            self._run()
