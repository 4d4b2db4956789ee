# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a benchmark. Pure. docs/reference/diagnostics.md describes each code."""

from __future__ import annotations

from typing import Sequence

from .._energy import Diagnostic
from .outcome import FAILURE_DESCRIPTIONS
from .result import MIN_LATENESS_S, MIN_REQUESTS_FOR_P99, LoadLevelResult

MIN_QUEUE_GROWTH = 5  # requests
MAX_QUEUE_GROWTH_SHARE = 0.1  # of the arrivals in the steady part


class DiagnosticCollector:
    """Collects diagnostics, each message once."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def diagnose(self, code: str, message: str, remedy: str = "", count: int = 1) -> None:
        self.add(Diagnostic(code, count, message, remedy))

    def add(self, diagnostic: Diagnostic) -> None:
        if all(known_diagnostic.message != diagnostic.message for known_diagnostic in self.diagnostics):
            self.diagnostics.append(diagnostic)


def diagnose_load_levels(levels: Sequence[LoadLevelResult], url: str, is_local: bool) -> list[Diagnostic]:
    notes = DiagnosticCollector()
    _diagnose_energy(notes, levels, url, is_local)
    _diagnose_requests(notes, levels)
    _diagnose_steady_part(notes, levels)
    return notes.diagnostics


def _diagnose_energy(notes: DiagnosticCollector, levels: Sequence[LoadLevelResult], url: str, is_local: bool) -> None:
    energies = [level.energy for level in levels if level.energy is not None]
    if not is_local:
        notes.diagnose(
            "server_elsewhere",
            f"{url} is not a loopback address: the energy of this machine is not that of the server, so none is "
            "reported",
            "run the benchmark on the server's machine, with a loopback address such as 127.0.0.1",
        )
    for energy in energies:
        for diagnostic in energy.diagnostics:
            notes.add(diagnostic)
        if energy.joules is None:
            notes.diagnose("bench_energy_unknown", f"the energy is unknown: {energy.reason}", "run joulemap doctor")
    if any(energy.provenance == "estimated" for energy in energies):
        notes.diagnose(
            "only_estimated", "no sensor is readable on this machine: all energies are estimates", "run joulemap doctor"
        )
    tokenless_levels = [level for level in levels if level.steady is not None and level.steady.output_tokens == 0]
    if tokenless_levels:
        notes.diagnose(
            "bench_no_tokens",
            f"{_format_rates(tokenless_levels)}: no successful request delivered a token in the steady part: there is no "
            "energy per token",
            count=len(tokenless_levels),
        )


def _diagnose_requests(notes: DiagnosticCollector, levels: Sequence[LoadLevelResult]) -> None:
    if failed_levels := [level for level in levels if level.failed]:
        count_by_failure: dict[str, int] = {}
        for failure in (failure for level in failed_levels for failure in level.failures):
            failure_text = FAILURE_DESCRIPTIONS[failure.kind] + (f" ({failure.status})" if failure.status else "")
            if failure.kind == "engine" and failure.example:  # the text of an exception is the user's own
                failure_text += f" ({failure.example})"
            count_by_failure[failure_text] = count_by_failure.get(failure_text, 0) + failure.count
        failed_count = sum(level.failed for level in failed_levels)
        causes = "; ".join(
            f"{failure_count}: {failure_text}" for failure_text, failure_count in count_by_failure.items()
        )
        notes.diagnose(
            "requests_failed",
            f"{_format_rates(failed_levels)}: {failed_count} of {sum(level.sent for level in failed_levels)} requests "
            f"failed ({causes}); their energy is counted, their tokens and latencies are not",
            count=failed_count,
        )
    if late_levels := [level for level in levels if level.late]:
        max_lateness_s = max(level.max_lateness_s for level in late_levels)
        notes.diagnose(
            "requests_late",
            f"{_format_rates(late_levels)}: {sum(level.late for level in late_levels)} of "
            f"{sum(level.sent for level in late_levels)} requests were sent "
            f"more than {1000 * MIN_LATENESS_S:.0f} ms late, at most {1000 * max_lateness_s:.0f} ms: this machine was "
            "too busy to send "
            "them; their latencies count from when they were due",
            "use a lower rate, or leave a processor to the benchmark",
            count=sum(level.late for level in late_levels),
        )
    if chunk_counted_levels := [level for level in levels if level.chunk_counted_requests]:
        notes.diagnose(
            "tokens_by_chunk",
            "the server does not report the number of tokens: each chunk of the stream counts as one token",
            "use a server that supports stream_options.include_usage",
            count=sum(level.chunk_counted_requests for level in chunk_counted_levels),
        )
    if cut_off_levels := [level for level in levels if level.run.was_stopped_by_deadline]:
        unsent_count = sum(len(level.run.outcomes) - level.sent for level in cut_off_levels)
        notes.diagnose(
            "bench_cut",
            f"{_format_rates(cut_off_levels)}: the time limit of the benchmark was reached; {unsent_count} requests were "
            "not sent",
            "use a longer --max-duration, or fewer requests",
            count=len(cut_off_levels),
        )


def _diagnose_steady_part(notes: DiagnosticCollector, levels: Sequence[LoadLevelResult]) -> None:
    if levels_without_steady_part := [level for level in levels if level.steady is None]:
        notes.diagnose(
            "no_steady_part",
            f"{_format_rates(levels_without_steady_part)}: there is no steady part with several arrivals: rates and "
            "energies are unknown, and latencies include the ramps",
            "send more requests: --requests or --duration",
            count=len(levels_without_steady_part),
        )
    if overloaded_levels := [level for level in levels if _is_overloaded(level)]:
        notes.diagnose(
            "server_overloaded",
            f"{_format_rates(overloaded_levels)}: the server does not finish requests as fast as they arrive: they queue, "
            "so latencies "
            "depend on the duration",
            "use lower rates",
            count=len(overloaded_levels),
        )
    if short_ramp_levels := [level for level in levels if _is_ramp_too_short(level)]:
        notes.diagnose(
            "ramp_too_short",
            f"{_format_rates(short_ramp_levels)}: requests take longer than the ramp that is left out: the load may still "
            "rise in the steady "
            "part",
            "use a longer --duration, or a larger --ramp",
            count=len(short_ramp_levels),
        )
    levels_with_few_requests = [level for level in levels if 0 < level.latencies.ttft_s.count < MIN_REQUESTS_FOR_P99]
    if levels_with_few_requests:
        min_request_count = min(level.latencies.ttft_s.count for level in levels_with_few_requests)
        notes.diagnose(
            "few_requests",
            f"{_format_rates(levels_with_few_requests)}: percentiles are of as few as {min_request_count} requests: "
            "P99 is nearly their maximum",
            f"send more requests: {MIN_REQUESTS_FOR_P99} in the steady part",
            count=len(levels_with_few_requests),
        )


def _is_overloaded(level: LoadLevelResult) -> bool:
    steady_part = level.steady
    if steady_part is None:
        return False
    queue_growth = steady_part.in_flight_end - steady_part.in_flight_begin
    max_queue_growth = max(MIN_QUEUE_GROWTH, MAX_QUEUE_GROWTH_SHARE * steady_part.arrivals)
    return queue_growth > max_queue_growth and steady_part.in_flight_end >= 2 * steady_part.in_flight_begin


def _is_ramp_too_short(level: LoadLevelResult) -> bool:
    mean_latency_s, planned_interval_s = level.latencies.latency_s.mean, level.run.level.steady_interval_s
    return mean_latency_s is not None and planned_interval_s is not None and mean_latency_s > planned_interval_s[0]


def _format_rates(levels: Sequence[LoadLevelResult]) -> str:
    """The loads that a note is about."""
    known_rates = [f"{level.rate_per_s:.4g}" for level in levels if level.rate_per_s is not None]
    return f"at {', '.join(known_rates)} requests/s" if known_rates else "in the trace"
