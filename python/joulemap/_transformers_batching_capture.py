# SPDX-License-Identifier: Apache-2.0
"""Captures continuous batching of Hugging Face transformers (generate_batch, ContinuousBatchingManager) in a recorded
program: install() is called after transformers.generation.continuous_batching.continuous_api has been imported.

A step lasts from ContinuousBatchProcessor.prepare_next_batch() to the end of update_batch(). What it computes is read
when its tensors are prepared; what it generated, from the requests. With asynchronous batching, a request may be in one
more step after it has ended: its token is rejected. A request whose KV cache is dropped (soft reset) computes it again;
one whose cache is offloaded to the CPU does not.

The loop updates an asynchronous step only after it has launched the next one. If all requests of a step have ended, that
may be much later: such a step ends when the loop finds no further work.
"""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any, List, Optional, Tuple

from ._engine_adapter import OUTCOME_ABORTED, OUTCOME_FINISHED, EngineAdapter, EngineStepLog, RequestWork

_processor_numbers = itertools.count()  # of batch processors: each numbers its requests from 0
_step_in_preparation = threading.local()  # what the step that this thread prepares computes, and its log
_update_in_progress = threading.local()  # the ProcessorSteps whose results this thread reads, and what it has read


class ProcessorSteps:
    """The steps of one batch processor, identified by their lists of requests."""

    def __init__(self, processor: Any) -> None:
        self.log = EngineStepLog(None, f"batch-{next(_processor_numbers)}-")
        # Every rank of tensor parallelism computes the same batches. Only the one with the queue of requests reports.
        self.is_reporting_rank = getattr(processor, "input_queue", None) is not None

    def generated_token_counts(self, step: Any) -> List[Tuple[int, bool]]:
        """For each request of the step: tokens generated before it, and whether it has ended."""
        return [_generation_progress(entry[0].engine_request) for entry in self.log.entries_of_step(step)]

    def complete_step(self, step: Any, progress_before: List[Tuple[int, bool]]) -> None:
        step_results: List[Tuple[int, Optional[str]]] = []
        for entry, (count_before, had_ended) in zip(self.log.entries_of_step(step), progress_before):
            count, has_ended = _generation_progress(entry[0].engine_request)
            step_results.append(
                (max(count - count_before, 0), OUTCOME_FINISHED if has_ended and not had_ended else None)
            )
        self.log.complete_step(step, step_results)

    def complete_steps_without_requests(self) -> None:
        """Completes the oldest steps while all their requests have ended."""
        while True:
            step = self.log.oldest_step()
            step_entries = self.log.entries_of_step(step)
            if not step_entries or any(entry[0].outcome is None for entry in step_entries):
                return
            self.log.complete_step(step, [(0, None)] * len(step_entries))


def _generation_progress(state: Any) -> Tuple[int, bool]:
    return len(state.generated_tokens), state.status.name == "FINISHED"


def _find_or_create_steps(processor: Any) -> ProcessorSteps:
    steps = getattr(processor, "_joulemap_steps", None)
    if steps is None:
        steps = processor._joulemap_steps = ProcessorSteps(processor)
    return steps


def _before_prepare_next_batch(processor: Any) -> None:
    steps = _find_or_create_steps(processor)
    _step_in_preparation.work, _step_in_preparation.log = None, steps.log
    steps.log.begin_step()


def _before_clear_cancelled_requests(scheduler: Any) -> List[str]:
    return list(scheduler._requests_to_cancel)


def _after_clear_cancelled_requests(cancelled: Optional[List[str]], states: Any, scheduler: Any) -> None:
    step_log = getattr(_step_in_preparation, "log", None)
    for id in cancelled or () if step_log is not None else ():
        step_log.end_request(id, OUTCOME_ABORTED)


def _before_prepare_batch_tensors(tensors: Any, requests_in_batch: Any, *args: Any, **kwargs: Any) -> None:
    request_work = []
    for future in requests_in_batch:
        state = future.state
        first_position = state.position_offset
        is_prompt = first_position < len(state.initial_tokens)
        request_work.append(RequestWork(state.request_id, first_position, future.query_length, is_prompt, state))
    _step_in_preparation.work = request_work


def _after_prepare_batch_tensors(token: Any, result: Any, tensors: Any, *args: Any, **kwargs: Any) -> None:
    _step_in_preparation.step = tensors.requests_in_batch  # prepare_batch_update() returns this list


def _after_prepare_next_batch(token: Any, has_requests: Any, processor: Any) -> None:
    request_work, _step_in_preparation.work = getattr(_step_in_preparation, "work", None), None
    step, _step_in_preparation.step = getattr(_step_in_preparation, "step", None), None
    _step_in_preparation.log = None
    steps = _find_or_create_steps(processor)
    if not has_requests:
        steps.complete_steps_without_requests()
    elif request_work and steps.is_reporting_rank:
        steps.log.launch_step(step, request_work)


def _before_generation_step(processor: Any, model: Any) -> None:
    _find_or_create_steps(processor).log.model = type(model).__name__


def _before_update_batch(processor: Any) -> None:
    _update_in_progress.steps, _update_in_progress.step_and_counts = _find_or_create_steps(processor), None


def _after_prepare_batch_update(token: Any, result: Any, tensors: Any) -> None:
    steps = getattr(_update_in_progress, "steps", None)
    if steps is not None:
        step = result[0]
        _update_in_progress.step_and_counts = step, steps.generated_token_counts(step)


def _after_update_batch(token: Any, result: Any, processor: Any) -> None:
    steps, _update_in_progress.steps = getattr(_update_in_progress, "steps", None), None
    step_and_counts, _update_in_progress.step_and_counts = getattr(_update_in_progress, "step_and_counts", None), None
    if steps is not None and step_and_counts is not None:
        steps.complete_step(*step_and_counts)


def _before_handle_request_error(processor: Any, error: Any, state: Any) -> None:
    _find_or_create_steps(processor).log.end_request(state.request_id, OUTCOME_ABORTED)


def _before_fail_all_requests(processor: Any, error: Any) -> None:
    _find_or_create_steps(processor).log.drop_all_steps()  # the loop has ended


def install(module: Any) -> None:
    processor_type = module.ContinuousBatchProcessor
    package_name = processor_type.__module__.rpartition(".")[0]
    adapter = EngineAdapter("transformers continuous batching", "transformers")

    def wrap_engine_functions() -> None:
        tensors_type = sys.modules[package_name + ".input_outputs"].ContinuousBatchingIOs
        scheduler_type = sys.modules[package_name + ".scheduler"].Scheduler
        adapter.require_attributes(
            processor_type, "prepare_next_batch", "_generation_step", "update_batch", "_handle_request_error"
        )
        adapter.require_attributes(processor_type, "fail_all_requests")
        adapter.require_attributes(tensors_type, "prepare_batch_tensors", "prepare_batch_update")
        adapter.require_attributes(scheduler_type, "clear_cancelled_requests")
        adapter.wrap_with_hooks(
            processor_type, "prepare_next_batch", _before_prepare_next_batch, _after_prepare_next_batch
        )
        adapter.wrap_with_hooks(
            scheduler_type,
            "clear_cancelled_requests",
            _before_clear_cancelled_requests,
            _after_clear_cancelled_requests,
        )
        adapter.wrap_with_hooks(
            tensors_type, "prepare_batch_tensors", _before_prepare_batch_tensors, _after_prepare_batch_tensors
        )
        adapter.wrap_with_hooks(tensors_type, "prepare_batch_update", None, _after_prepare_batch_update)
        adapter.wrap_with_hooks(processor_type, "_generation_step", _before_generation_step)
        adapter.wrap_with_hooks(processor_type, "update_batch", _before_update_batch, _after_update_batch)
        adapter.wrap_with_hooks(processor_type, "_handle_request_error", _before_handle_request_error)
        adapter.wrap_with_hooks(processor_type, "fail_all_requests", _before_fail_all_requests)

    adapter.install(wrap_engine_functions)
