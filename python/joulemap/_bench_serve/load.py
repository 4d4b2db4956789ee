# SPDX-License-Identifier: Apache-2.0
"""Sends the requests of a level. The load is open: each request is sent when the plan says, whether or not earlier ones
have been answered. A request that is sent late is counted as late, and its latencies count from when it was due.

A level ends by itself: every request ends at the latest timeout_s after it was due, and all of them at deadline_s.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Callable, Optional, Protocol, Sequence

from .._energy import Energy
from .outcome import BenchError, LoadLevelRun, RequestOutcome, RequestFailure
from .plan import LoadLevel, PlannedRequest

MAX_TOKENS_AHEAD = 5_000_000  # tokens of prompts, for each of which a target needs up to about 40 bytes
LEVEL_START_DELAY_S = 0.05  # between the start of a level and its first possible arrival


class RequestTarget(Protocol):
    """What requests are sent to."""

    url: str
    model: Optional[str]
    is_local: bool  # on this machine
    has_one_token_per_chunk: bool  # its chunks are tokens

    async def open(self, timeout_s: float) -> None: ...

    # What send() needs. Called before the level begins, if memory allows.
    def prepare(self, request: PlannedRequest) -> Any: ...

    async def send(self, prepared: Any, outcome: RequestOutcome) -> None: ...  # returns with the end of the answer

    async def close(self) -> None: ...


class SteadyPartMeter(Protocol):
    """What measures the energy of the steady part of a level."""

    def start(self) -> None: ...

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def read(self) -> Optional[Energy]: ...


ProgressCallback = Callable[[int, int], None]  # requests that were sent, and that have ended


async def run_load_level(
    level: LoadLevel,
    target: RequestTarget,
    meter: SteadyPartMeter,
    timeout_s: float,
    deadline_s: float,
    progress: ProgressCallback = lambda *_: None,
) -> LoadLevelRun:
    """`timeout_s` of a request after it is due. `deadline_s`: when everything ends, on the clock of the event loop."""
    loop = asyncio.get_running_loop()
    prepared_requests = _prepare_requests_ahead(level, target)
    begin_s = loop.time() + LEVEL_START_DELAY_S
    outcomes = [RequestOutcome(request, begin_s + request.arrival_s) for request in level.requests]
    steady_part_task = asyncio.ensure_future(_measure_steady_part(level, begin_s, deadline_s, meter))
    request_tasks: list[asyncio.Future] = []
    ended_count = 0

    def count_ended_request(_: asyncio.Future) -> None:
        nonlocal ended_count
        ended_count += 1
        progress(len(request_tasks), ended_count)

    try:
        for outcome in outcomes:
            prepared_request = prepared_requests.popleft() if prepared_requests else target.prepare(outcome.request)
            await _sleep_until(min(outcome.due_s, deadline_s))
            if loop.time() >= deadline_s:
                break
            request_task = asyncio.ensure_future(
                _send_request(outcome, prepared_request, target, timeout_s, deadline_s)
            )
            request_task.add_done_callback(count_ended_request)
            request_tasks.append(request_task)
            progress(len(request_tasks), ended_count)
        await asyncio.gather(*request_tasks)
        steady_interval_s = await steady_part_task
    finally:
        for request_task in (*request_tasks, steady_part_task):
            request_task.cancel()
    was_stopped_by_deadline = any(
        outcome.sent_s is None or (outcome.failure and outcome.failure.kind == "cut") for outcome in outcomes
    )
    return LoadLevelRun(level, outcomes, steady_interval_s, bool(was_stopped_by_deadline))


def _prepare_requests_ahead(level: LoadLevel, target: RequestTarget) -> collections.deque[Any]:
    """Makes prompts before the level begins: making a long one takes milliseconds, in which nothing is sent or received.
    Those beyond MAX_TOKENS_AHEAD would need too much memory."""
    prepared_requests: collections.deque[Any] = collections.deque()
    prompt_tokens = 0
    for request in level.requests:
        prompt_tokens += request.prompt_tokens
        if prompt_tokens > MAX_TOKENS_AHEAD:
            break
        prepared_requests.append(target.prepare(request))
    return prepared_requests


async def _send_request(
    outcome: RequestOutcome, prepared_request: Any, target: RequestTarget, timeout_s: float, deadline_s: float
) -> None:
    loop = asyncio.get_running_loop()
    outcome.sent_s = loop.time()
    end_s = min(outcome.due_s + timeout_s, deadline_s)
    try:
        await asyncio.wait_for(target.send(prepared_request, outcome), max(0.0, end_s - loop.time()))
    except asyncio.TimeoutError:
        was_stopped_by_deadline = deadline_s < outcome.due_s + timeout_s
        outcome.failure = (
            RequestFailure("cut", "") if was_stopped_by_deadline else RequestFailure("timeout", f"{timeout_s:g} s")
        )
    except RequestFailure as failure:
        outcome.failure = failure
    outcome.ended_s = loop.time()


async def _measure_steady_part(
    level: LoadLevel, begin_s: float, deadline_s: float, meter: SteadyPartMeter
) -> Optional[tuple[float, float]]:
    """Opens the energy window for the steady part. Returns when it opened and closed; None if it could not close."""
    loop = asyncio.get_running_loop()
    if level.steady_interval_s is None or begin_s + level.steady_interval_s[1] >= deadline_s:
        return None
    await _sleep_until(begin_s + level.steady_interval_s[0])
    meter.begin()
    window_opened_s = loop.time()
    await _sleep_until(begin_s + level.steady_interval_s[1])
    window_closed_s = loop.time()
    meter.end()
    return window_opened_s, window_closed_s


async def _sleep_until(time_s: float) -> None:
    """Yields to other tasks at least once."""
    await asyncio.sleep(max(0.0, time_s - asyncio.get_running_loop().time()))


async def warm_up(requests: Sequence[PlannedRequest], target: RequestTarget, timeout_s: float) -> None:
    """Sends requests one after another. Raises BenchError if one fails: then the levels would fail, too."""
    loop = asyncio.get_running_loop()
    for request in requests:
        prepared_request = target.prepare(request)
        outcome = RequestOutcome(request, loop.time())
        await _send_request(outcome, prepared_request, target, timeout_s, loop.time() + 2 * timeout_s)
        if outcome.failure is not None:
            remedy = "start the server, or correct --endpoint" if outcome.failure.kind == "refused" else ""
            raise BenchError(f"{target.url}: a request before the first level failed: {outcome.failure}", remedy)
