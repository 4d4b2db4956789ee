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
        word_generator = random.Random(self.prompt_seed)
        return [int(word_generator.random() * PROMPT_WORD_COUNT) for _ in range(self.prompt_tokens)]


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
    request_lengths = _draw_lengths(workload)
    planned_requests = []
    for request_number in range(count):
        if workload.trace:
            trace_row = workload.trace[request_number % len(workload.trace)]
            prompt_tokens, output_tokens, tenant = trace_row.prompt_tokens, trace_row.output_tokens, trace_row.tenant
        else:
            prompt_tokens, output_tokens, tenant = next(request_lengths)
        planned_requests.append(
            PlannedRequest(
                -count + request_number,
                0,
                prompt_tokens,
                output_tokens,
                tenant,
                f"{workload.seed}/warm-up/{request_number}",
            )
        )
    return planned_requests


def _plan_poisson_requests(workload: Workload, rate_per_s: float, level_index: int) -> Iterator[PlannedRequest]:
    gap_generator, request_lengths = random.Random(f"{workload.seed}/arrivals"), _draw_lengths(workload)
    unit_rate_arrival_s = 0.0  # arrivals at one request per second
    for request_number in range(workload.requests or MAX_REQUESTS):
        unit_rate_arrival_s -= math.log(1 - gap_generator.random())
        arrival_s = unit_rate_arrival_s / rate_per_s
        if workload.duration_s is not None and arrival_s > workload.duration_s:
            return
        prompt_tokens, output_tokens, tenant = next(request_lengths)
        yield PlannedRequest(
            request_number,
            arrival_s,
            prompt_tokens,
            output_tokens,
            tenant,
            _prompt_seed(workload, level_index, request_number),
        )


def _plan_trace_requests(workload: Workload, rate_per_s: Optional[float], level_index: int) -> Iterator[PlannedRequest]:
    recorded_rate_per_s = _mean_rate_per_s(workload.trace)
    if rate_per_s is not None and recorded_rate_per_s is None:
        raise ValueError("all requests of the trace arrive at once: it cannot be scaled to a rate")
    time_scale = 1.0 if rate_per_s is None or recorded_rate_per_s is None else recorded_rate_per_s / rate_per_s
    for request_number, trace_row in enumerate(workload.trace[: workload.requests]):
        arrival_s = trace_row.arrival_s * time_scale
        if workload.duration_s is not None and arrival_s > workload.duration_s:
            return
        yield PlannedRequest(
            request_number,
            arrival_s,
            trace_row.prompt_tokens,
            trace_row.output_tokens,
            trace_row.tenant,
            _prompt_seed(workload, level_index, request_number),
        )


def _draw_lengths(workload: Workload) -> Iterator[tuple[int, int, Optional[str]]]:
    """Prompt length, output length and tenant of each request."""
    length_generator, tenant_generator = (
        random.Random(f"{workload.seed}/lengths"),
        random.Random(f"{workload.seed}/tenants"),
    )
    while True:
        prompt_tokens, output_tokens = (
            workload.prompt_tokens.draw(length_generator),
            workload.output_tokens.draw(length_generator),
        )
        yield prompt_tokens, output_tokens, _choose_weighted(workload.tenants, tenant_generator.random())


def _choose_weighted(weighted_names: Sequence[tuple[str, float]], uniform_draw: float) -> Optional[str]:
    remaining_weight = uniform_draw * sum(weight for _, weight in weighted_names)
    for tenant_name, weight in weighted_names:
        remaining_weight -= weight
        if remaining_weight < 0:
            return tenant_name
    return weighted_names[-1][0] if weighted_names else None


def _mean_rate_per_s(trace: Sequence[ArrivalTraceRow]) -> Optional[float]:
    span_s = trace[-1].arrival_s
    return (len(trace) - 1) / span_s if span_s > 0 else None


def _prompt_seed(workload: Workload, level_index: int, request_number: int) -> str:
    return f"{workload.seed}/prompt/{level_index}/{request_number}"
