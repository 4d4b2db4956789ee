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
    succeeded_outcomes = [outcome for outcome in run.outcomes if outcome.is_success]
    sent_outcomes = [outcome for outcome in run.outcomes if outcome.sent_s is not None]
    steady_part = _summarize_steady_part(run, succeeded_outcomes)
    return LoadLevelResult(
        run=run,
        sent=len(sent_outcomes),
        succeeded=len(succeeded_outcomes),
        failed=sum(outcome.failure is not None for outcome in sent_outcomes),
        late=sum(outcome.lateness_s > MIN_LATENESS_S for outcome in sent_outcomes),
        max_lateness_s=max((outcome.lateness_s for outcome in sent_outcomes), default=0.0),
        chunk_counted_requests=0
        if has_one_token_per_chunk
        else sum(outcome.output_tokens is None for outcome in succeeded_outcomes),
        failures=_count_failures(sent_outcomes),
        latencies=_summarize_latencies(run, succeeded_outcomes),
        steady=steady_part,
        energy=energy if steady_part else None,
        energy_per_output_token=_energy_per_token(energy, steady_part.output_tokens if steady_part else 0),
        energy_per_total_token=_energy_per_token(energy, steady_part.total_tokens if steady_part else 0),
        tenants=tuple(_summarize_tenants(run)),
    )


def _summarize_steady_part(run: LoadLevelRun, succeeded_outcomes: Sequence[RequestOutcome]) -> Optional[SteadyPart]:
    planned_interval_s = run.level.steady_interval_s
    if run.steady_interval_s is None or planned_interval_s is None:
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
        arrivals=sum(planned_interval_s[0] <= outcome.request.arrival_s for outcome in run.outcomes),
        completed=sum(is_in_window(outcome.ended_s) for outcome in succeeded_outcomes),
        output_tokens=sum(
            _tokens_per_chunk(outcome) * sum(map(is_in_window, outcome.chunk_times_s)) for outcome in succeeded_outcomes
        ),
        prompt_tokens=sum(
            outcome.prompt_length
            for outcome in succeeded_outcomes
            if is_in_window(next(iter(outcome.chunk_times_s), None))
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
        outcome.sent_s is not None
        and outcome.sent_s <= time_s
        and (outcome.ended_s is None or outcome.ended_s > time_s)
        for outcome in outcomes
    )


def _request_overlap_s(outcome: RequestOutcome, begin_s: float, end_s: float) -> float:
    if outcome.sent_s is None:
        return 0.0
    return max(0.0, min(end_s, end_s if outcome.ended_s is None else outcome.ended_s) - max(begin_s, outcome.sent_s))


def _summarize_latencies(run: LoadLevelRun, outcomes: Iterable[RequestOutcome]) -> Latencies:
    planned_interval_s = run.level.steady_interval_s
    begin_s = planned_interval_s[0] if planned_interval_s else 0.0
    counted_outcomes = [outcome for outcome in outcomes if outcome.is_success and outcome.request.arrival_s >= begin_s]
    return Latencies(
        compute_latency_distribution([outcome.ttft_s for outcome in counted_outcomes]),
        compute_latency_distribution([outcome.tpot_s for outcome in counted_outcomes]),
        compute_latency_distribution([outcome.latency_s for outcome in counted_outcomes]),
    )


def compute_latency_distribution(values: Iterable[Optional[float]]) -> LatencyDistribution:
    known_values = sorted(value for value in values if value is not None)
    mean = sum(known_values) / len(known_values) if known_values else None
    return LatencyDistribution(
        len(known_values), mean, quantile(known_values, 0.5), quantile(known_values, 0.9), quantile(known_values, 0.99)
    )


def quantile(ordered: Sequence[float], share: float) -> Optional[float]:
    """Interpolated linearly between the values, as numpy.quantile does."""
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    lower_index = int(position)
    upper_index = min(lower_index + 1, len(ordered) - 1)
    return ordered[lower_index] + (position - lower_index) * (ordered[upper_index] - ordered[lower_index])


def _count_failures(sent_outcomes: Iterable[RequestOutcome]) -> tuple[FailureCount, ...]:
    """By kind and HTTP status, the most frequent first."""
    count_by_kind: dict[tuple, FailureCount] = {}
    for outcome in sent_outcomes:
        failure = outcome.failure
        if failure is None:
            continue
        kind_and_status = failure.kind, failure.status
        earlier_count = count_by_kind.get(kind_and_status)
        example = earlier_count.example if earlier_count else failure.detail
        count_by_kind[kind_and_status] = FailureCount(
            *kind_and_status, count=1 + (earlier_count.count if earlier_count else 0), example=example
        )
    return tuple(
        sorted(
            count_by_kind.values(),
            key=lambda failure_count: (-failure_count.count, failure_count.kind, failure_count.status or 0),
        )
    )


def _energy_per_token(energy: Optional[Energy], token_count: float) -> EnergyPerToken:
    if energy is None or energy.joules is None or token_count <= 0:
        return EnergyPerToken(None, None, None)
    low_j, high_j = energy.low_j, energy.high_j
    return EnergyPerToken(
        energy.joules / token_count,
        None if low_j is None else low_j / token_count,
        None if high_j is None else high_j / token_count,
    )


def _summarize_tenants(run: LoadLevelRun) -> Iterable[TenantResult]:
    for tenant_name in sorted(
        {outcome.request.tenant for outcome in run.outcomes if outcome.request.tenant is not None}
    ):
        outcomes = [outcome for outcome in run.outcomes if outcome.request.tenant == tenant_name]
        successful_outcomes = [outcome for outcome in outcomes if outcome.is_success]
        output_tokens = sum(outcome.output_length for outcome in successful_outcomes)
        yield TenantResult(
            tenant_name, len(outcomes), len(successful_outcomes), output_tokens, _summarize_latencies(run, outcomes)
        )
