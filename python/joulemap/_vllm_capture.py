# SPDX-License-Identifier: Apache-2.0
"""Captures the steps of vLLM (V1 engine) in a recorded program: install() is called after
vllm.v1.core.sched.scheduler has been imported, in the process that schedules.

A step lasts from Scheduler.schedule() to the end of Scheduler.update_from_output(). What it computes is read from the
SchedulerOutput; what it generated, from the requests. With asynchronous scheduling, a request may be scheduled once more
after it has ended: those tokens are rejected.

vLLM ends a request at a stop string with the message that also aborts requests. A request with stop strings therefore
counts as finished, not as aborted.
"""

from __future__ import annotations

import itertools
from typing import Any, List, Optional, Tuple

from ._engine_adapter import OUTCOME_ABORTED, OUTCOME_FINISHED, EngineAdapter, EngineStepLog, RequestWork

_scheduler_numbers = itertools.count()  # of schedulers: request ids of two engines in a process may be equal
_MAX_UNKNOWN_STEPS = 64  # steps, if none was known; a few are unknown where the recording began in between


class SchedulerSteps:
    """The steps of one scheduler."""

    def __init__(self, scheduler: Any) -> None:
        scheduler_number = next(_scheduler_numbers)
        self._scheduler = scheduler
        self.log = EngineStepLog(_model_name(scheduler), f"engine{scheduler_number}-" if scheduler_number else "")
        self._has_known_step = False
        self._unknown_step_count = 0

    def launch_scheduled_step(self, output: Any) -> None:
        scheduled_counts = output.num_scheduled_tokens
        if not scheduled_counts:
            return
        cached_requests = output.scheduled_cached_reqs
        start_by_request = dict(zip(cached_requests.req_ids, cached_requests.num_computed_tokens))
        for new_request in output.scheduled_new_reqs:
            start_by_request[new_request.req_id] = new_request.num_computed_tokens
        speculative_tokens = output.scheduled_spec_decode_tokens
        requests = self._scheduler.requests
        request_work = []
        for id, tokens in scheduled_counts.items():
            request, start = requests[id], start_by_request[id]
            # After a preemption, tokens that were generated before it are computed like a prompt.
            is_prompt = start < request.num_prompt_tokens or tokens - len(speculative_tokens.get(id, ())) > 1
            request_work.append(RequestWork(id, start, tokens, is_prompt, request))
        self.log.launch_step(output, request_work)
        self._has_known_step = True

    def output_token_counts(self, output: Any) -> List[int]:
        """Tokens that each request of the step has generated before it."""
        if not self._has_known_step and output.num_scheduled_tokens:
            self._unknown_step_count += 1
            if self._unknown_step_count > _MAX_UNKNOWN_STEPS:
                raise RuntimeError(f"{type(self._scheduler).__name__} does not call Scheduler.schedule() of vLLM")
        return [entry[0].engine_request.num_output_tokens for entry in self.log.entries_of_step(output)]

    def complete_scheduled_step(self, output: Any, counts_before: List[int]) -> None:
        step_results: List[Tuple[int, Optional[str]]] = []
        for entry, count_before in zip(self.log.entries_of_step(output), counts_before):
            request = entry[0].engine_request
            step_results.append((max(request.num_output_tokens - count_before, 0), _request_outcome(request)))
        self.log.complete_step(output, step_results)

    def end_requests(self, ids: Any) -> None:
        known_requests = self.log.requests
        if isinstance(ids, str):
            ids = (ids,)
        elif not isinstance(ids, (list, tuple, set, frozenset)):  # None: all; an iterator is used up by now
            ids = list(known_requests)
        for id in ids:
            request = known_requests.get(id)
            outcome = _request_outcome(request.engine_request) if request is not None else None
            if outcome is not None:
                self.log.end_request(id, outcome)


def _request_outcome(request: Any) -> Optional[str]:
    if not request.is_finished():
        return None
    name = request.status.name
    if name == "FINISHED_ABORTED" and getattr(request.sampling_params, "stop", None):
        return OUTCOME_FINISHED
    return OUTCOME_ABORTED if name in ("FINISHED_ABORTED", "FINISHED_ERROR") else OUTCOME_FINISHED


def _model_name(scheduler: Any) -> Optional[str]:
    config = getattr(getattr(scheduler, "vllm_config", None), "model_config", None)
    name = getattr(config, "served_model_name", None) or getattr(config, "model", None)
    if isinstance(name, (list, tuple)):
        name = name[0] if name else None
    return name if isinstance(name, str) else None


def _find_or_create_steps(scheduler: Any) -> SchedulerSteps:
    steps = getattr(scheduler, "_joulemap_steps", None)
    if steps is None:
        steps = scheduler._joulemap_steps = SchedulerSteps(scheduler)
    return steps


def _before_schedule(scheduler: Any, *args: Any, **kwargs: Any) -> None:
    _find_or_create_steps(scheduler).log.begin_step()


def _after_schedule(token: Any, output: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
    steps = _find_or_create_steps(scheduler)
    if not steps.log.has_step(output):  # a subclass may call the wrapped schedule() of its base
        steps.launch_scheduled_step(output)


def _before_update_from_output(scheduler: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> List[int]:
    return _find_or_create_steps(scheduler).output_token_counts(scheduler_output)


def _after_update_from_output(
    counts: List[int], result: Any, scheduler: Any, scheduler_output: Any, *args: Any, **kwargs: Any
) -> None:
    if counts:
        _find_or_create_steps(scheduler).complete_scheduled_step(scheduler_output, counts)


def _after_finish_requests(
    token: Any, result: Any, scheduler: Any, request_ids: Any = None, *args: Any, **kwargs: Any
) -> None:
    _find_or_create_steps(scheduler).end_requests(request_ids)


def install(module: Any) -> None:
    scheduler = module.Scheduler
    if hasattr(scheduler.schedule, "_joulemap_wrapped"):
        return
    adapter = EngineAdapter("vLLM", "vllm")

    def wrap_engine_functions() -> None:
        adapter.require_attributes(scheduler, "schedule", "update_from_output", "finish_requests")
        adapter.wrap_with_hooks(scheduler, "schedule", _before_schedule, _after_schedule)
        adapter.wrap_with_hooks(scheduler, "update_from_output", _before_update_from_output, _after_update_from_output)
        adapter.wrap_with_hooks(scheduler, "finish_requests", None, _after_finish_requests)
        scheduler.schedule._joulemap_wrapped = True

    adapter.install(wrap_engine_functions)
