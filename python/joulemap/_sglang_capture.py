# SPDX-License-Identifier: Apache-2.0
"""Captures the steps of SGLang in a recorded program: install() is called after sglang.srt.managers.scheduler has been
imported, in each process that schedules.

A step lasts from Scheduler.run_batch() to the end of Scheduler.process_batch_result(). What it computes is read from the
ScheduleBatch; what it generated, from the requests. With overlap scheduling, a request may run once more after it has
ended: those tokens are rejected. Every rank of tensor parallelism schedules the same batches; the first one reports them.
Batches of diffusion language models and of multiplexed prefill and decode (split prefill) are not reported.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any, List, Optional, Tuple

from ._engine_adapter import OUTCOME_ABORTED, OUTCOME_FINISHED, EngineAdapter, EngineStepLog, RequestWork

_scheduler_numbers = itertools.count()  # of schedulers in this process
_RANK_ATTRIBUTES = ("attn_tp_rank", "attn_cp_rank", "pp_rank")
_STEPS_BETWEEN_END_CHECKS = 256  # how often requests are found that ended outside of steps and calls of abort_request()


class SchedulerSteps:
    """The steps of one scheduler."""

    def __init__(self, scheduler: Any) -> None:
        scheduler_number = next(_scheduler_numbers)
        self.is_reporting_rank = _is_first_rank(scheduler)
        arguments = getattr(scheduler, "server_args", None)
        model_name = getattr(arguments, "served_model_name", None) or getattr(arguments, "model_path", None)
        self.log = EngineStepLog(
            model_name if isinstance(model_name, str) else None,
            f"engine{scheduler_number}-" if scheduler_number else "",
        )
        self._draft_token_count = getattr(arguments, "speculative_num_draft_tokens", None) or 1
        self._output_token_counts: dict = {}  # of unfinished requests, after their last step
        self._step_count = 0

    def list_request_work(self, batch: Any) -> List[RequestWork]:
        forward_mode = batch.forward_mode
        if forward_mode.is_decode():
            tokens = 1 if batch.spec_algorithm is None or batch.spec_algorithm.is_none() else self._draft_token_count
            return [
                RequestWork(
                    decode_request.rid,
                    None if decode_request.rid in self.log.requests else _cached_token_count(decode_request),
                    tokens,
                    False,
                    decode_request,
                )
                for decode_request in batch.reqs
            ]
        if not forward_mode.is_extend() or forward_mode.name not in ("EXTEND", "MIXED"):
            return []
        request_work = []
        for request, start, tokens in zip(batch.reqs, batch.prefix_lens, batch.extend_lens):
            is_prompt = start < len(request.origin_input_ids) or tokens > 1
            request_work.append(RequestWork(request.rid, start, tokens, is_prompt, request))
        return request_work

    def launch_batch(self, work: List[RequestWork], result: Any) -> None:
        for request_work in work:
            if request_work.id not in self.log.requests:
                self._output_token_counts[request_work.id] = len(request_work.engine_request.output_ids)
        self.log.launch_step(result, work)

    def complete_batch(self, result: Any) -> None:
        # With pipeline parallelism, another object than that of run_batch() arrives, in the same order.
        step = result if self.log.has_step(result) else self.log.oldest_step()
        step_results: List[Tuple[int, Optional[str]]] = []
        for entry in self.log.entries_of_step(step):
            request = entry[0].engine_request
            count_before, count_now = self._output_token_counts.get(request.rid, 0), len(request.output_ids)
            self._output_token_counts[request.rid] = count_now  # fewer than before: it starts again after a retraction
            step_results.append((max(count_now - count_before, 0), request_outcome(request)))
        self.log.complete_step(step, step_results)
        self._step_count += 1
        if self._step_count % _STEPS_BETWEEN_END_CHECKS == 0:
            self.end_finished_requests()

    def end_finished_requests(self) -> None:
        """Ends requests that ended outside of steps, and forgets the counts of those that have ended."""
        for request in list(self.log.requests.values()):
            if request.steps_in_flight == 0 and request.engine_request.finished():
                self.log.end_request(request.id, request_outcome(request.engine_request) or OUTCOME_FINISHED)
        known_requests = self.log.requests
        self._output_token_counts = {
            request_id: count for request_id, count in self._output_token_counts.items() if request_id in known_requests
        }


def _cached_token_count(request: Any) -> int:
    """KV cache of a request whose prompt was computed elsewhere, before its first decoded token here."""
    return max(len(request.origin_input_ids) + len(request.output_ids) - 1, 0)


def request_outcome(request: Any) -> Optional[str]:
    if not request.finished():
        return None
    return OUTCOME_ABORTED if type(request.finished_reason).__name__ == "FINISH_ABORT" else OUTCOME_FINISHED


def _is_first_rank(scheduler: Any) -> bool:
    if not any(
        hasattr(scheduler, name) for name in _RANK_ATTRIBUTES
    ):  # newer versions hold the ranks outside of the scheduler
        scheduler = sys.modules["sglang.srt.runtime_context"].get_parallel()
    return all(getattr(scheduler, name, 0) == 0 for name in _RANK_ATTRIBUTES)


def _find_or_create_steps(scheduler: Any) -> SchedulerSteps:
    steps = getattr(scheduler, "_joulemap_steps", None)
    if steps is None:
        steps = scheduler._joulemap_steps = SchedulerSteps(scheduler)
    return steps


def _before_run_batch(scheduler: Any, batch: Any, *args: Any, **kwargs: Any) -> Optional[List[RequestWork]]:
    steps = _find_or_create_steps(scheduler)
    if not steps.is_reporting_rank:
        return None
    steps.log.begin_step()
    return steps.list_request_work(batch)


def _after_run_batch(
    request_work: Optional[List[RequestWork]], result: Any, scheduler: Any, *args: Any, **kwargs: Any
) -> None:
    if request_work is not None and result is not None:
        _find_or_create_steps(scheduler).launch_batch(request_work, result)


def _after_process_batch_result(
    token: Any, returned_value: Any, scheduler: Any, batch: Any, result: Any = None, *args: Any, **kwargs: Any
) -> None:
    steps = _find_or_create_steps(scheduler)
    if steps.is_reporting_rank:
        steps.complete_batch(result)


def _before_abort_request(scheduler: Any, *args: Any, **kwargs: Any) -> List[Any]:
    """Requests that were retracted and wait: an abort removes them from the queue."""
    known_requests = _find_or_create_steps(scheduler).log.requests
    return [request for request in scheduler.waiting_queue if request.rid in known_requests]


def _after_abort_request(
    waiting_before: Optional[List[Any]], result: Any, scheduler: Any, *args: Any, **kwargs: Any
) -> None:
    if not waiting_before:
        return
    waiting_ids = {id(request) for request in scheduler.waiting_queue}
    for request in waiting_before:
        if id(request) not in waiting_ids:
            _find_or_create_steps(scheduler).log.end_request(request.rid, OUTCOME_ABORTED)


def install(module: Any) -> None:
    scheduler = module.Scheduler
    if hasattr(scheduler.run_batch, "_joulemap_wrapped"):
        return
    adapter = EngineAdapter("SGLang", "sglang")

    def wrap_engine_functions() -> None:
        adapter.require_attributes(scheduler, "run_batch", "process_batch_result", "abort_request")
        adapter.wrap_with_hooks(scheduler, "run_batch", _before_run_batch, _after_run_batch)
        adapter.wrap_with_hooks(scheduler, "process_batch_result", None, _after_process_batch_result)
        adapter.wrap_with_hooks(scheduler, "abort_request", _before_abort_request, _after_abort_request)
        scheduler.run_batch._joulemap_wrapped = True

    adapter.install(wrap_engine_functions)
