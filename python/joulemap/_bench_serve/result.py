# SPDX-License-Identifier: Apache-2.0
"""Statistics of a load level. Pure: what happened to the requests, and the energy of the steady part, become percentiles,
rates and energy per token. Unknown values are None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Optional, Sequence

from .._energy import Energy
from .outcome import LoadLevelRun, RequestOutcome

MIN_LATENESS_S = 0.010  # a request that is sent later counts as late
MIN_REQUESTS_FOR_P99 = 100  # requests; with fewer, P99 is nearly the maximum


@dataclass(frozen=True)
class LatencyDistribution:
    """Of a time in s over requests."""

    count: int
    mean: Optional[float]
    p50: Optional[float]
    p90: Optional[float]
    p99: Optional[float]


@dataclass(frozen=True)
class Latencies:
    """Of the successful requests that arrived in the steady part; of all successful ones if there is none."""

    ttft_s: LatencyDistribution
    tpot_s: LatencyDistribution
    latency_s: LatencyDistribution


@dataclass(frozen=True)
class FailureCount:
    kind: str
    status: Optional[int]
    count: int
    example: str  # detail of the first one


@dataclass(frozen=True)
class SteadyPart:
    """What was delivered in the steady part."""

    begin_s: float  # after the start of the level
    end_s: float
    arrivals: int
    completed: int  # successful requests that ended in it
    output_tokens: float  # of successful requests, received in it
    prompt_tokens: int  # of successful requests whose first token was received in it
    in_flight_begin: int
    in_flight_end: int
    in_flight_mean: float

    @property
    def time_s(self) -> float:
        return self.end_s - self.begin_s

    @property
    def total_tokens(self) -> float:
        return self.output_tokens + self.prompt_tokens


@dataclass(frozen=True)
class EnergyPerToken:
    """Energy per token, in J, with its 95 % interval."""

    energy_j: Optional[float]
    low_j: Optional[float]
    high_j: Optional[float]


@dataclass(frozen=True)
class TenantResult:
    name: str
    requests: int
    succeeded: int
    output_tokens: int
    latencies: Latencies


@dataclass(frozen=True)
class LoadLevelResult:
    """One line of the report."""

    run: LoadLevelRun
    sent: int
    succeeded: int
    failed: int
    late: int
    max_lateness_s: float
    chunk_counted_requests: int  # successful requests whose tokens only chunks count
    failures: tuple[FailureCount, ...]
    latencies: Latencies
    steady: Optional[SteadyPart]
    energy: Optional[Energy]  # of the steady part
    energy_per_output_token: EnergyPerToken
    energy_per_total_token: EnergyPerToken
    tenants: tuple[TenantResult, ...]

    @property
    def rate_per_s(self) -> Optional[float]:
        return self.run.level.rate_per_s


def summarize_load_level(run: LoadLevelRun, energy: Optional[Energy], has_one_token_per_chunk: bool) -> LoadLevelResult:
    succeeded = [outcome for outcome in run.outcomes if outcome.is_success]
    sent = [outcome for outcome in run.outcomes if outcome.sent_s is not None]
    steady = _summarize_steady_part(run, succeeded)
    return LoadLevelResult(
        run=run,
        sent=len(sent),
        succeeded=len(succeeded),
        failed=sum(outcome.failure is not None for outcome in sent),
        late=sum(outcome.lateness_s > MIN_LATENESS_S for outcome in sent),
        max_lateness_s=max((outcome.lateness_s for outcome in sent), default=0.0),
        chunk_counted_requests=0
        if has_one_token_per_chunk
        else sum(outcome.output_tokens is None for outcome in succeeded),
        failures=_count_failures(sent),
        latencies=_summarize_latencies(run, succeeded),
        steady=steady,
        energy=energy if steady else None,
        energy_per_output_token=_energy_per_token(energy, steady.output_tokens if steady else 0),
        energy_per_total_token=_energy_per_token(energy, steady.total_tokens if steady else 0),
        tenants=tuple(_summarize_tenants(run)),
    )


def _summarize_steady_part(run: LoadLevelRun, succeeded: Sequence[RequestOutcome]) -> Optional[SteadyPart]:
    planned = run.level.steady_interval_s
    if run.steady_interval_s is None or planned is None:
        return None
    window_opened_s, window_closed_s = run.steady_interval_s
    if window_closed_s <= window_opened_s:
        return None

    def is_in_window(time_s: Optional[float]) -> bool:
        return time_s is not None and window_opened_s <= time_s < window_closed_s

    level_begin_s = run.outcomes[0].due_s - run.outcomes[0].request.arrival_s
    return SteadyPart(
        begin_s=window_opened_s - level_begin_s,
        end_s=window_closed_s - level_begin_s,
        arrivals=sum(planned[0] <= outcome.request.arrival_s for outcome in run.outcomes),
        completed=sum(is_in_window(outcome.ended_s) for outcome in succeeded),
        output_tokens=sum(
            _tokens_per_chunk(outcome) * sum(map(is_in_window, outcome.chunk_times_s)) for outcome in succeeded
        ),
        prompt_tokens=sum(
            outcome.prompt_length for outcome in succeeded if is_in_window(next(iter(outcome.chunk_times_s), None))
        ),
        in_flight_begin=_count_in_flight(run.outcomes, window_opened_s),
        in_flight_end=_count_in_flight(run.outcomes, window_closed_s),
        in_flight_mean=sum(_request_overlap_s(outcome, window_opened_s, window_closed_s) for outcome in run.outcomes)
        / (window_closed_s - window_opened_s),
    )


def _tokens_per_chunk(outcome: RequestOutcome) -> float:
    """A server may send several tokens in a chunk; their total is known at the end."""
    return outcome.output_length / len(outcome.chunk_times_s) if outcome.chunk_times_s else 0.0


def _count_in_flight(outcomes: Iterable[RequestOutcome], time_s: float) -> int:
    return sum(
        o.sent_s is not None and o.sent_s <= time_s and (o.ended_s is None or o.ended_s > time_s) for o in outcomes
    )


def _request_overlap_s(outcome: RequestOutcome, begin_s: float, end_s: float) -> float:
    if outcome.sent_s is None:
        return 0.0
    return max(0.0, min(end_s, end_s if outcome.ended_s is None else outcome.ended_s) - max(begin_s, outcome.sent_s))


def _summarize_latencies(run: LoadLevelRun, outcomes: Iterable[RequestOutcome]) -> Latencies:
    planned = run.level.steady_interval_s
    begin_s = planned[0] if planned else 0.0
    counted = [outcome for outcome in outcomes if outcome.is_success and outcome.request.arrival_s >= begin_s]
    return Latencies(
        compute_latency_distribution([outcome.ttft_s for outcome in counted]),
        compute_latency_distribution([outcome.tpot_s for outcome in counted]),
        compute_latency_distribution([outcome.latency_s for outcome in counted]),
    )


def compute_latency_distribution(values: Iterable[Optional[float]]) -> LatencyDistribution:
    known = sorted(value for value in values if value is not None)
    mean = sum(known) / len(known) if known else None
    return LatencyDistribution(len(known), mean, quantile(known, 0.5), quantile(known, 0.9), quantile(known, 0.99))


def quantile(ordered: Sequence[float], share: float) -> Optional[float]:
    """Interpolated linearly between the values, as numpy.quantile does."""
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def _count_failures(sent: Iterable[RequestOutcome]) -> tuple[FailureCount, ...]:
    """By kind and HTTP status, the most frequent first."""
    counts: dict[tuple, FailureCount] = {}
    for outcome in sent:
        failure = outcome.failure
        if failure is None:
            continue
        key = failure.kind, failure.status
        before = counts.get(key)
        example = before.example if before else failure.detail
        counts[key] = FailureCount(*key, count=1 + (before.count if before else 0), example=example)
    return tuple(sorted(counts.values(), key=lambda one: (-one.count, one.kind, one.status or 0)))


def _energy_per_token(energy: Optional[Energy], tokens: float) -> EnergyPerToken:
    if energy is None or energy.joules is None or tokens <= 0:
        return EnergyPerToken(None, None, None)
    low_j, high_j = energy.low_j, energy.high_j
    return EnergyPerToken(
        energy.joules / tokens, None if low_j is None else low_j / tokens, None if high_j is None else high_j / tokens
    )


def _summarize_tenants(run: LoadLevelRun) -> Iterable[TenantResult]:
    for name in sorted({outcome.request.tenant for outcome in run.outcomes if outcome.request.tenant is not None}):
        outcomes = [outcome for outcome in run.outcomes if outcome.request.tenant == name]
        succeeded = [outcome for outcome in outcomes if outcome.is_success]
        tokens = sum(outcome.output_length for outcome in succeeded)
        yield TenantResult(name, len(outcomes), len(succeeded), tokens, _summarize_latencies(run, outcomes))
