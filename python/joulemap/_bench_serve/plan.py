# SPDX-License-Identifier: Apache-2.0
"""Plans the requests of each load level. Pure: the same workload, seed and rate give the same requests, bit for bit.

All levels have the same lengths and tenants, and the same arrivals but for their rate, so that levels differ in nothing
else. Prompts differ in every request of every level: a prefix cache finds none of them.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Iterator, Optional, Sequence

from .lengths import LengthDistribution
from .trace_file import ArrivalTraceRow

MAX_REQUESTS = 1_000_000  # of a level
PROMPT_WORD_COUNT = 1 << 31  # a word of a prompt is a number below; targets map it to their vocabulary


@dataclass(frozen=True)
class PlannedRequest:
    number: int  # in its level, from 0; of warm-up requests below 0
    arrival_s: float  # after the start of the level
    prompt_tokens: int
    output_tokens: int  # limit; the server may end earlier
    tenant: Optional[str]
    prompt_seed: str

    def prompt(self) -> list[int]:
        """The words of the prompt. They are not stored: a plan of many long prompts stays small."""
        draw = random.Random(self.prompt_seed)
        return [int(draw.random() * PROMPT_WORD_COUNT) for _ in range(self.prompt_tokens)]


@dataclass(frozen=True)
class Workload:
    """What is sent at every load level."""

    seed: int
    prompt_tokens: LengthDistribution
    output_tokens: LengthDistribution
    tenants: tuple[tuple[str, float], ...] = ()  # names and weights
    trace: tuple[ArrivalTraceRow, ...] = ()  # empty: Poisson arrivals
    requests: Optional[int] = None  # per level; None: as many as arrive within duration_s
    duration_s: Optional[float] = None


@dataclass(frozen=True)
class LoadLevel:
    """The requests at one load."""

    rate_per_s: Optional[float]  # offered load; None for a trace whose requests all arrive at once
    requests: tuple[PlannedRequest, ...]
    ramp_share: float  # share of the span before the steady part

    @property
    def span_s(self) -> float:
        """Time of the last arrival."""
        return self.requests[-1].arrival_s if self.requests else 0.0

    @property
    def steady_interval_s(self) -> Optional[tuple[float, float]]:
        """Begin and end of the steady part, after the start of the level: without the ramp at the beginning, and
        without the time in which no request arrives any more. None if it contains fewer than two arrivals."""
        begin_s = self.ramp_share * self.span_s
        if sum(begin_s <= request.arrival_s for request in self.requests) < 2 or begin_s >= self.span_s:
            return None
        return begin_s, self.span_s


def plan_load_level(workload: Workload, rate_per_s: Optional[float], index: int, ramp_share: float) -> LoadLevel:
    """`rate_per_s`: mean arrivals per second; None: those of the trace. `index` of the level: it changes the prompts."""
    if workload.trace:
        requests = tuple(_plan_trace_requests(workload, rate_per_s, index))
        rate_per_s = rate_per_s or _mean_rate_per_s(workload.trace)
    elif rate_per_s is None:
        raise ValueError("Poisson arrivals need a rate")
    else:
        requests = tuple(_plan_poisson_requests(workload, rate_per_s, index))
    return LoadLevel(rate_per_s, requests, ramp_share)


def plan_warm_up(workload: Workload, count: int) -> list[PlannedRequest]:
    """Requests that are sent one after another before the first level. Their lengths are those of the first ones."""
    lengths = _draw_lengths(workload)
    found = []
    for number in range(count):
        if workload.trace:
            row = workload.trace[number % len(workload.trace)]
            prompt, output, tenant = row.prompt_tokens, row.output_tokens, row.tenant
        else:
            prompt, output, tenant = next(lengths)
        found.append(PlannedRequest(-count + number, 0, prompt, output, tenant, f"{workload.seed}/warm-up/{number}"))
    return found


def _plan_poisson_requests(workload: Workload, rate_per_s: float, index: int) -> Iterator[PlannedRequest]:
    gaps, lengths = random.Random(f"{workload.seed}/arrivals"), _draw_lengths(workload)
    unit_rate_arrival_s = 0.0  # arrivals at one request per second
    for number in range(workload.requests or MAX_REQUESTS):
        unit_rate_arrival_s -= math.log(1 - gaps.random())
        arrival_s = unit_rate_arrival_s / rate_per_s
        if workload.duration_s is not None and arrival_s > workload.duration_s:
            return
        prompt, output, tenant = next(lengths)
        yield PlannedRequest(number, arrival_s, prompt, output, tenant, _prompt_seed(workload, index, number))


def _plan_trace_requests(workload: Workload, rate_per_s: Optional[float], index: int) -> Iterator[PlannedRequest]:
    recorded = _mean_rate_per_s(workload.trace)
    if rate_per_s is not None and recorded is None:
        raise ValueError("all requests of the trace arrive at once: it cannot be scaled to a rate")
    scale = 1.0 if rate_per_s is None or recorded is None else recorded / rate_per_s
    for number, row in enumerate(workload.trace[: workload.requests]):
        arrival_s = row.arrival_s * scale
        if workload.duration_s is not None and arrival_s > workload.duration_s:
            return
        yield PlannedRequest(
            number, arrival_s, row.prompt_tokens, row.output_tokens, row.tenant, _prompt_seed(workload, index, number)
        )


def _draw_lengths(workload: Workload) -> Iterator[tuple[int, int, Optional[str]]]:
    """Prompt length, output length and tenant of each request."""
    lengths, tenants = random.Random(f"{workload.seed}/lengths"), random.Random(f"{workload.seed}/tenants")
    while True:
        prompt, output = workload.prompt_tokens.draw(lengths), workload.output_tokens.draw(lengths)
        yield prompt, output, _choose_weighted(workload.tenants, tenants.random())


def _choose_weighted(weighted: Sequence[tuple[str, float]], uniform: float) -> Optional[str]:
    rest = uniform * sum(weight for _, weight in weighted)
    for name, weight in weighted:
        rest -= weight
        if rest < 0:
            return name
    return weighted[-1][0] if weighted else None


def _mean_rate_per_s(trace: Sequence[ArrivalTraceRow]) -> Optional[float]:
    span_s = trace[-1].arrival_s
    return (len(trace) - 1) / span_s if span_s > 0 else None


def _prompt_seed(workload: Workload, index: int, number: int) -> str:
    return f"{workload.seed}/prompt/{index}/{number}"
