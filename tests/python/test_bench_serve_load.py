"""joulemap bench serve sends requests when they are due, and ends by itself. In virtual time."""

from __future__ import annotations

import asyncio
from typing import Awaitable, Callable, Optional

import pytest
from virtual_loop import run

from joulemap._bench_serve import load
from joulemap._bench_serve.lengths import parse_lengths
from joulemap._bench_serve.load import LEVEL_START_DELAY_S, run_load_level, warm_up
from joulemap._bench_serve.outcome import BenchError, RequestFailure
from joulemap._bench_serve.plan import Workload, plan_load_level, plan_warm_up
from joulemap._bench_serve.result import MIN_LATENESS_S, summarize_load_level

BEGIN_S = 1000.0 + LEVEL_START_DELAY_S  # of a level, in virtual time
WORKLOAD = Workload(1, parse_lengths("4"), parse_lengths("3"), requests=20)


class ScriptedServer:
    """A server that does what a test says."""

    url, model, is_local, has_one_token_per_chunk = "fake", None, True, False

    def __init__(self, answer: Callable[..., Awaitable[None]]) -> None:
        self.answer = answer
        self.prompt_preparation_s = 0.0  # time that it takes to make a prompt
        self.sent_s: list[float] = []

    async def open(self, timeout_s: float) -> None: ...

    async def close(self) -> None: ...

    def prepare(self, request):
        asyncio.get_running_loop().advance_time(self.prompt_preparation_s)
        return request

    async def send(self, prepared, outcome) -> None:
        self.sent_s.append(asyncio.get_running_loop().time())
        await self.answer(prepared, outcome)


class Meter:
    """Records when the energy window opens and closes."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def start(self) -> None: ...

    def begin(self) -> None:
        self.times_s.append(asyncio.get_running_loop().time())

    end = begin

    def read(self) -> None: ...


def plan_test_level(rate: float = 2, workload: Workload = WORKLOAD):
    return plan_load_level(workload, rate, 0, 0.2)


def run_level_with_answer(
    answer, level=None, timeout_s: float = 30, deadline_s: float = 1e6, meter: Optional[Meter] = None
):
    target = ScriptedServer(answer)
    level_run = run(run_load_level(level or plan_test_level(), target, meter or Meter(), timeout_s, deadline_s))
    return target, level_run


async def hang(request, outcome) -> None:
    await asyncio.get_running_loop().create_future()


async def answer_after_1_s(request, outcome) -> None:
    loop = asyncio.get_running_loop()
    for delay_s in (1.0, 0.2, 0.2):
        await asyncio.sleep(delay_s)
        outcome.chunk_times_s.append(loop.time())
    outcome.output_tokens, outcome.prompt_tokens = 3, 4


def test_requests_are_sent_when_they_are_due_although_none_is_answered():
    target, _ = run_level_with_answer(hang)
    assert target.sent_s == pytest.approx([BEGIN_S + request.arrival_s for request in plan_test_level().requests])


def test_latencies_are_those_of_the_server():
    _, level_run = run_level_with_answer(answer_after_1_s)
    result = summarize_load_level(level_run, None, False)
    assert result.succeeded == 20 and result.late == 0
    assert result.latencies.ttft_s.p99 == pytest.approx(1.0)
    assert result.latencies.tpot_s.p50 == pytest.approx(0.2)
    assert result.latencies.latency_s.mean == pytest.approx(1.4)


def test_a_busy_machine_sends_late_which_is_counted_and_part_of_the_latency():
    async def answer(request, outcome) -> None:
        if request.number == 5:
            asyncio.get_running_loop().advance_time(3.0)  # no other task runs meanwhile
        await answer_after_1_s(request, outcome)

    _, level_run = run_level_with_answer(answer)
    result = summarize_load_level(level_run, None, False)
    due_s = [request.arrival_s for request in plan_test_level().requests]
    blocked = [time_s for time_s in due_s if due_s[5] < time_s < due_s[5] + 3 - MIN_LATENESS_S]
    assert result.late == len(blocked) > 1
    assert result.max_lateness_s == pytest.approx(due_s[5] + 3 - blocked[0])
    assert level_run.outcomes[6].ttft_s == pytest.approx(1 + due_s[5] + 3 - due_s[6])


@pytest.mark.parametrize("most_ahead", [None, 40])
def test_prompts_are_made_before_the_level_begins_as_far_as_memory_allows(monkeypatch, most_ahead):
    if most_ahead is not None:
        monkeypatch.setattr(load, "MAX_TOKENS_AHEAD", most_ahead)  # ten prompts
    target = ScriptedServer(answer_after_1_s)
    target.prompt_preparation_s = 2.0
    level_run = run(run_load_level(plan_test_level(), target, Meter(), 30, 1e6))
    lateness_flags = [outcome.lateness_s > 1 for outcome in level_run.outcomes]
    assert not any(lateness_flags[:9]) and any(lateness_flags[9:]) == (most_ahead is not None)
    assert sorted(target.sent_s) == target.sent_s and all(outcome.is_success for outcome in level_run.outcomes)


def test_a_server_that_hangs_ends_each_request_at_its_time_limit():
    _, level_run = run_level_with_answer(hang, timeout_s=7)
    assert [outcome.failure.kind for outcome in level_run.outcomes] == ["timeout"] * 20
    assert [outcome.ended_s - outcome.due_s for outcome in level_run.outcomes] == pytest.approx([7.0] * 20)
    assert not level_run.was_stopped_by_deadline


def test_the_time_limit_of_the_benchmark_ends_requests_and_sends_no_more():
    deadline_s = BEGIN_S + plan_test_level().requests[9].arrival_s + 0.01
    _, level_run = run_level_with_answer(hang, deadline_s=deadline_s)
    kinds = [outcome.failure.kind if outcome.failure else None for outcome in level_run.outcomes]
    assert kinds == ["cut"] * 10 + [None] * 10
    assert [outcome.sent_s is None for outcome in level_run.outcomes] == [False] * 10 + [True] * 10
    assert max(outcome.ended_s for outcome in level_run.outcomes[:10]) == pytest.approx(deadline_s)
    assert level_run.was_stopped_by_deadline and level_run.steady_interval_s is None
    assert summarize_load_level(level_run, None, False).failed == 10


def test_energy_is_measured_from_the_end_of_the_ramp_to_the_last_arrival():
    meter, level = Meter(), plan_test_level()
    _, level_run = run_level_with_answer(answer_after_1_s, level, meter=meter)
    expected = [BEGIN_S + 0.2 * level.span_s, BEGIN_S + level.span_s]
    assert meter.times_s == pytest.approx(expected)
    assert level_run.steady_interval_s == pytest.approx(tuple(expected))


def test_a_level_with_one_request_is_not_measured():
    meter = Meter()
    _, level_run = run_level_with_answer(
        answer_after_1_s, plan_test_level(workload=Workload(1, *[parse_lengths("1")] * 2, requests=1)), meter=meter
    )
    assert meter.times_s == [] and level_run.steady_interval_s is None and level_run.outcomes[0].is_success


def test_failures_of_requests_do_not_stop_the_others():
    async def answer(request, outcome) -> None:
        if request.number % 2:
            raise RequestFailure("status", "503 busy", 503)
        await answer_after_1_s(request, outcome)

    _, level_run = run_level_with_answer(answer)
    result = summarize_load_level(level_run, None, False)
    assert (result.succeeded, result.failed) == (10, 10)
    assert [(failure_group.kind, failure_group.status, failure_group.count) for failure_group in result.failures] == [
        ("status", 503, 10)
    ]


def test_progress_counts_requests_that_were_sent_and_that_ended():
    progress_counts = []
    run(
        run_load_level(
            plan_test_level(),
            ScriptedServer(answer_after_1_s),
            Meter(),
            30,
            1e6,
            lambda *counts: progress_counts.append(counts),
        )
    )
    assert (
        progress_counts[-1] == (20, 20)
        and all(ended_count <= sent_count for sent_count, ended_count in progress_counts)
        and (20, 20) not in progress_counts[:-1]
    )


def test_requests_before_the_first_level_come_one_after_another():
    target = ScriptedServer(answer_after_1_s)
    run(warm_up(plan_warm_up(WORKLOAD, 3), target, 30))
    assert target.sent_s == pytest.approx([1000.0, 1001.4, 1002.8])


def test_a_failure_before_the_first_level_ends_the_benchmark():
    async def refuse(request, outcome) -> None:
        raise RequestFailure("refused", "Connection refused")

    target = ScriptedServer(refuse)
    with pytest.raises(BenchError, match="no connection") as exception_info:
        run(warm_up(plan_warm_up(WORKLOAD, 3), target, 30))
    assert len(target.sent_s) == 1 and "start the server" in exception_info.value.remedy
