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
        self._domain_name = domain
        self._window_by_number: dict = {}
        self.is_measured = True  # False once an estimate was used

    def __enter__(self) -> WindowMeter:
        """Opens the sensors. Raises if no sensor covers the domain, before minutes are spent."""
        first_window = self.begin()
        self.end(first_window)
        known_domains = [domain.name for domain in self._window_by_number[first_window].wait().domains]
        if self._domain_name is not None and self._domain_name not in known_domains:
            raise ValueError(f"the energy of {self._domain_name} is not measured here: run joulemap doctor")
        return self

    def __exit__(self, *exception_details: object) -> None:
        pass

    def begin(self) -> int:
        window_number = len(self._window_by_number)
        self._window_by_number[window_number] = _measure.begin("validate")
        return window_number

    def end(self, window_number: int) -> None:
        _measure.end(self._window_by_number[window_number])

    def joules(self, window_number: int) -> float:
        energy = self._window_by_number[window_number].wait()
        domains = [domain for domain in energy.domains if domain.counted and domain.joules is not None]
        if self._domain_name is not None:
            domains = [domain for domain in domains if domain.name == self._domain_name]
        if not domains:
            domain_name = self._domain_name or "this machine"
            raise ValueError(f"no energy of {domain_name} is measured: {energy.reason or 'run joulemap doctor'}")
        measured_domains = [domain for domain in domains if domain.provenance == "measured"]
        self.is_measured &= bool(measured_domains)
        return sum(domain.joules for domain in measured_domains or domains)


class LoopRunner:
    """Runs the loops. `run_pass` runs a pass, `wait` waits until the device has finished it."""

    def __init__(self, run_pass: Callable[[], None], wait: Callable[[], None], meter: Any, loop_s: float) -> None:
        self._run_pass, self._wait_for_device, self._meter, self._loop_s = run_pass, wait, meter, loop_s
        self._pass_s: dict = {}
        self._pass_loops: list = []
        self._window_numbers: list = []

    def time_pass(self, variant: PassVariant) -> None:
        """Runs a variant and measures the time of its pass. Its exceptions propagate."""
        with variant.install_pass():
            self._run_pass()
            self._wait_for_device()
            begin_s = time.perf_counter()
            for _ in range(TIMED_PASS_COUNT):
                self._run_pass()
            self._wait_for_device()
        self._pass_s[variant[:2]] = max((time.perf_counter() - begin_s) / TIMED_PASS_COUNT, 1e-6)

    def pass_count(self, variant: PassVariant, seconds: float) -> int:
        return max(1, round(seconds / self._pass_s[variant[:2]]))

    def warm_up(self, seconds: float = WARM_UP_S) -> None:
        plain_variant = make_plain_variant()
        self._repeat_pass(self.pass_count(plain_variant, seconds))
        self._wait_for_device()
        self.time_pass(plain_variant)

    def run_rounds(self, variants: Sequence, rounds: int, seed: int, progress: Callable[[str], None]) -> list:
        """Returns the loops of all rounds with their energies."""
        rng = random.Random(seed)
        for round_number in range(rounds):
            begin_s = time.monotonic()
            shuffled_variants = list(variants)
            rng.shuffle(shuffled_variants)
            for variant_index, variant in enumerate(shuffled_variants):
                if variant_index % BLOCK_LOOPS_BETWEEN_PLAIN_LOOPS == 0:
                    self._run_loop(make_plain_variant(), round_number)
                self._run_loop(variant, round_number)
            self._run_loop(make_plain_variant(), round_number)
            progress(f"round {round_number + 1} of {rounds}: {time.monotonic() - begin_s:.1f} s")
        return [
            loop._replace(joules=self._meter.joules(window_number))
            for loop, window_number in zip(self._pass_loops, self._window_numbers)
        ]

    def time_passes_on_host(self, variants: Sequence, rounds: int, seed: int) -> Optional[HostTimes]:
        """Times single passes of all variants in turn, if the loops so far show that the host limits them."""
        if not is_limited_by_host(self._pass_loops):
            return None
        rng = random.Random(seed)
        shuffled_variants = [make_plain_variant(), *variants]
        times_by_variant: dict = {(variant.block, variant.is_control): [] for variant in shuffled_variants}
        end_s = time.monotonic() + HOST_TIMING_SHARE * rounds * len(variants) * self._loop_s
        while time.monotonic() < end_s:
            for _ in range(PASSES_PER_SYNC):
                rng.shuffle(shuffled_variants)
                for variant in shuffled_variants:
                    with variant.install_pass():
                        begin_s = time.perf_counter()
                        self._run_pass()
                        times_by_variant[variant.block, variant.is_control].append(time.perf_counter() - begin_s)
            self._wait_for_device()
        return times_by_variant

    def _run_loop(self, variant: PassVariant, round_number: int) -> None:
        pass_count = self.pass_count(variant, self._loop_s)
        lead_pass_count = self.pass_count(variant, self._meter.lead_s) if self._meter.lead_s > 0 else 0
        with variant.install_pass():
            self._repeat_pass(lead_pass_count)
            self._wait_for_device()
            window_number, begin_ns = self._meter.begin(), time.monotonic_ns()
            self._repeat_pass(pass_count)
            self._wait_for_device()
            end_ns = time.monotonic_ns()
            self._meter.end(window_number)
            self._repeat_pass(lead_pass_count)
            self._wait_for_device()
        self._window_numbers.append(window_number)
        self._pass_s[variant[:2]] = (end_ns - begin_ns) * 1e-9 / pass_count
        self._pass_loops.append(
            PassLoop(variant.block, variant.is_control, round_number, pass_count, begin_ns, end_ns, 0.0)
        )

    def _repeat_pass(self, pass_count: int) -> None:
        for _ in range(pass_count):
            self._run_pass()
