"""Statistics of joulemap bench serve: percentiles, rates and energy per token from what happened, and its diagnostics."""

from __future__ import annotations

import json
from typing import Optional

import pytest

from joulemap._bench_serve.notes import diagnose_load_levels
from joulemap._bench_serve.outcome import LoadLevelRun, RequestOutcome, RequestFailure
from joulemap._bench_serve.output import ReportedSettings, to_json, to_text
from joulemap._bench_serve.plan import LoadLevel, PlannedRequest
from joulemap._bench_serve.result import quantile, summarize_load_level
from joulemap._energy import Diagnostic, Energy

REPORTED_SETTINGS = ReportedSettings(
    "endpoint", "http://127.0.0.1:8000/v1", "m", "completions", True, "poisson", None, 1, "10", "4", 120, 0.2, 2
)
KNOWN_ENERGY = Energy(100.0, 10.0, 8.0, 12.5, "measured", "")


def make_outcome(
    number: int, arrival_s: float, chunks: list[float], tokens: Optional[int] = None, **options
) -> RequestOutcome:
    """A successful request; times of chunks are after its arrival."""
    request = PlannedRequest(number, arrival_s, 10, 4, options.pop("tenant", None), "")
    times = [arrival_s + chunk for chunk in chunks]
    ended_s = times[-1] if times else arrival_s
    return RequestOutcome(request, arrival_s, arrival_s, times, ended_s, 10, tokens, **options)


def make_level_run(
    outcomes: list[RequestOutcome], steady_interval_s: Optional[tuple[float, float]] = (2.0, 10.0)
) -> LoadLevelRun:
    level = LoadLevel(1.0, tuple(outcome.request for outcome in outcomes), 0.2)
    return LoadLevelRun(level, outcomes, steady_interval_s)


# Ten seconds at one request per second, each answered with four tokens within half a second.
EVENLY_SPACED_OUTCOMES = [
    make_outcome(arrival_second, float(arrival_second), [0.2, 0.3, 0.4, 0.5], 4) for arrival_second in range(11)
]


def codes(result, is_local: bool = True) -> list[str]:
    return [note.code for note in diagnose_load_levels([result], "http://server/v1", is_local)]


def test_quantiles_are_those_of_numpy():
    numpy = pytest.importorskip("numpy")
    values = [0.1, 0.4, 0.4, 2.0, 7.5, 8.0]
    for share in (0, 0.5, 0.9, 0.99, 1):
        assert quantile(values, share) == pytest.approx(numpy.quantile(values, share))
    assert quantile([], 0.5) is None


def test_rates_and_energies_are_of_the_steady_part():
    result = summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), KNOWN_ENERGY, False)
    # Arrivals from 2 s on; the one at 10 s arrives as the part ends, and is not answered within it.
    assert result.steady.arrivals == 9 and result.steady.completed == 8
    assert result.steady.output_tokens == 32 and result.steady.prompt_tokens == 80
    assert result.energy_per_output_token.energy_j == pytest.approx(100 / 32)
    assert (result.energy_per_output_token.low_j, result.energy_per_output_token.high_j) == pytest.approx(
        (90 / 32, 110 / 32)
    )
    assert result.energy_per_total_token.energy_j == pytest.approx(100 / 112)
    assert result.latencies.ttft_s.count == 9
    assert result.latencies.tpot_s.p50 == pytest.approx(0.1)
    assert result.steady.in_flight_mean == pytest.approx(8 * 0.5 / 8)


def test_only_tokens_within_the_steady_part_count():
    edges = [
        make_outcome(0, 0.0, [1.5, 2.5], 2),
        make_outcome(1, 3.0, [1], 1),
        make_outcome(2, 9.0, [0.5, 2], 2),
        make_outcome(3, 10.0, [1], 1),
    ]
    steady = summarize_load_level(make_level_run(edges), KNOWN_ENERGY, False).steady
    assert steady.output_tokens == 3
    assert steady.prompt_tokens == 20  # the first token of request 0 was before, that of request 3 after
    assert steady.completed == 2
    assert (steady.in_flight_begin, steady.in_flight_end) == (1, 2)


def test_the_tokens_of_a_chunk_are_counted_as_the_server_reports_them():
    speculative = [make_outcome(number, 3.0 + number, [0.1, 0.2, 0.3], 9) for number in range(5)]
    result = summarize_load_level(make_level_run(speculative), KNOWN_ENERGY, False)
    assert result.steady.output_tokens == pytest.approx(45)
    assert result.latencies.tpot_s.p50 == pytest.approx(0.2 / 8)
    assert "tokens_by_chunk" not in codes(result)


def test_without_a_count_of_the_server_chunks_are_tokens_and_a_note_says_so():
    uncounted_outcomes = [make_outcome(number, 3.0 + number, [0.1, 0.2, 0.3]) for number in range(5)]
    result = summarize_load_level(make_level_run(uncounted_outcomes), KNOWN_ENERGY, False)
    assert result.steady.output_tokens == 15 and result.chunk_counted_requests == 5
    assert "tokens_by_chunk" in codes(result)
    assert "tokens_by_chunk" not in codes(summarize_load_level(make_level_run(uncounted_outcomes), KNOWN_ENERGY, True))


def test_failed_requests_have_no_tokens_and_no_latency():
    failed_outcomes = [make_outcome(11, 5.0, [0.1, 0.2], None, failure=RequestFailure("closed", "after 2 chunks"))]
    result = summarize_load_level(
        make_level_run([*EVENLY_SPACED_OUTCOMES[:6], *failed_outcomes, *EVENLY_SPACED_OUTCOMES[6:]]),
        KNOWN_ENERGY,
        False,
    )
    assert result.steady.output_tokens == 32 and result.latencies.ttft_s.count == 9
    assert (result.succeeded, result.failed) == (11, 1)
    assert [(failure_group.kind, failure_group.count, failure_group.example) for failure_group in result.failures] == [
        ("closed", 1, "after 2 chunks")
    ]
    assert "requests_failed" in codes(result)


def test_the_note_of_a_failed_engine_contains_its_exception():
    failure = RequestFailure("engine", "ValueError: the prompt is too long")
    failed_outcomes = [make_outcome(11, 5.0, [], None, failure=failure)]
    result = summarize_load_level(make_level_run([*EVENLY_SPACED_OUTCOMES, *failed_outcomes]), KNOWN_ENERGY, False)
    notes = {note.code: note for note in diagnose_load_levels([result], "engine", True)}
    assert "raised an exception (ValueError: the prompt is too long)" in notes["requests_failed"].message


def test_one_token_has_no_time_per_token():
    single_token_outcomes = [make_outcome(number, 3.0 + number, [0.1], 1) for number in range(5)]
    result = summarize_load_level(make_level_run(single_token_outcomes), KNOWN_ENERGY, False)
    assert result.latencies.tpot_s.count == 0 and result.latencies.tpot_s.p50 is None


def test_an_unknown_energy_is_null_and_has_a_cause():
    unknown = Energy(None, None, 8.0, None, None, "no sensor")
    result = summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), unknown, False)
    assert result.energy_per_output_token.energy_j is None
    note = next(n for n in diagnose_load_levels([result], "", True) if n.code == "bench_energy_unknown")
    assert "no sensor" in note.message
    level = json.loads(to_json(REPORTED_SETTINGS, [result], []))["levels"][0]
    assert level["energy"]["energy_j"] is None
    assert level["per_output_token"] == {"energy_j": None, "low_j": None, "high_j": None}


def test_estimated_energies_of_a_level_are_marked():
    estimated_energy = Energy(
        100.0, 60.0, 8.0, 12.5, "estimated", "", diagnostics=[Diagnostic("counter_reset", 1, "fell", "")]
    )
    result = summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), estimated_energy, False)
    assert {"only_estimated", "counter_reset"} <= set(codes(result))
    assert "estimated" in to_text(REPORTED_SETTINGS, [result], [])


def test_a_remote_server_has_no_energy():
    result = summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), None, False)
    assert "server_elsewhere" in codes(result, is_local=False) and "server_elsewhere" not in codes(result)
    assert result.energy_per_output_token.energy_j is None and "unknown" in to_text(REPORTED_SETTINGS, [result], [])


def test_without_tokens_there_is_no_energy_per_token():
    silent = [
        make_outcome(number, float(number), [], None, failure=RequestFailure("empty", "")) for number in range(11)
    ]
    result = summarize_load_level(make_level_run(silent), KNOWN_ENERGY, False)
    assert result.energy_per_output_token.energy_j is None and result.energy.joules == 100
    assert "bench_no_tokens" in codes(result)


def test_without_a_steady_part_rates_are_unknown_and_latencies_of_all_requests():
    result = summarize_load_level(make_level_run([make_outcome(0, 1.0, [0.5, 0.6], 2)], None), None, False)
    assert result.steady is None and result.latencies.ttft_s.count == 1
    assert "no_steady_part" in codes(result)
    assert json.loads(to_json(REPORTED_SETTINGS, [result], []))["levels"][0]["steady"] is None


def test_a_growing_queue_is_an_overload():
    queued_outcomes = [
        make_outcome(number, number / 10, [2 + number / 20, 2.1 + number / 20], 2) for number in range(101)
    ]
    assert "server_overloaded" in codes(summarize_load_level(make_level_run(queued_outcomes), KNOWN_ENERGY, False))
    assert "server_overloaded" not in codes(
        summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), KNOWN_ENERGY, False)
    )


def test_requests_longer_than_the_ramp_are_noted():
    long = [make_outcome(number, float(number), [1.0, 3.0], 2) for number in range(11)]
    assert "ramp_too_short" in codes(summarize_load_level(make_level_run(long), KNOWN_ENERGY, False))
    assert "ramp_too_short" not in codes(
        summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), KNOWN_ENERGY, False)
    )


def test_percentiles_of_few_requests_are_noted():
    many_outcomes = [make_outcome(number, number / 20, [0.01, 0.02], 2) for number in range(201)]
    assert "few_requests" in codes(summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), KNOWN_ENERGY, False))
    assert "few_requests" not in codes(summarize_load_level(make_level_run(many_outcomes), KNOWN_ENERGY, False))


def test_late_and_unsent_requests_are_noted():
    late_outcomes = [make_outcome(number, float(number), [0.2], 1) for number in range(11)]
    late_outcomes[4].sent_s = late_outcomes[4].due_s + 0.3
    late_outcomes[9].sent_s = late_outcomes[9].ended_s = None
    run = make_level_run(late_outcomes)
    run.was_stopped_by_deadline = True
    result = summarize_load_level(run, KNOWN_ENERGY, False)
    assert (result.sent, result.late, result.max_lateness_s) == (10, 1, pytest.approx(0.3))
    notes = {note.code: note.message for note in diagnose_load_levels([result], "", True)}
    assert "at most 300 ms" in notes["requests_late"] and "1 requests were not sent" in notes["bench_cut"]


def test_tenants_have_their_own_latencies():
    tenant_outcomes = [
        make_outcome(n, float(n), [0.2 + n % 2, 0.3 + n % 2], 2, tenant=("chat", "search")[n % 2]) for n in range(11)
    ]
    tenant_outcomes[4].failure = RequestFailure("closed", "")
    result = summarize_load_level(make_level_run(tenant_outcomes), KNOWN_ENERGY, False)
    assert [(tenant.name, tenant.requests, tenant.output_tokens) for tenant in result.tenants] == [
        ("chat", 6, 10),
        ("search", 5, 10),
    ]
    assert [tenant.latencies.ttft_s.count for tenant in result.tenants] == [4, 4]  # chat: 2, 6, 8 and 10 s
    assert [tenant.latencies.ttft_s.p50 for tenant in result.tenants] == pytest.approx([0.2, 1.2])
    assert " search " in to_text(REPORTED_SETTINGS, [result], [])


def test_the_table_fits_a_terminal_and_shows_notes():
    results = [summarize_load_level(make_level_run(EVENLY_SPACED_OUTCOMES), KNOWN_ENERGY, False)]
    notes = diagnose_load_levels(results, "", True)
    text = to_text(REPORTED_SETTINGS, results, notes)
    assert max(map(len, text.splitlines())) <= 80
    assert "3.12" in text and "0.312" in text and "measured" in text and "note: at 1 requests/s" in text
    assert "note:" not in to_text(REPORTED_SETTINGS, results, notes, with_notes=False)
